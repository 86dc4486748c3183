//! The namespaces in scope around what is written.

/// Namespaces in scope, at most one for a prefix; none to begin with (`xml` is always in scope and
/// never said).
///
/// ```
/// use pathcast_core::xml::serializer::Namespaces;
/// let mut outer = Namespaces::default();
/// outer.declare("", "urn:a");
/// let mut inner = outer.clone();
/// inner.declare("p", "urn:b");
/// inner.declare("", "");
/// assert_eq!((inner.uri("p"), inner.uri("q"), inner.uri("")), (Some("urn:b"), None, None));
/// assert_eq!(outer.uri(""), Some("urn:a"));
/// inner.declare("p", "urn:c");
/// assert_eq!((inner.uri("p"), inner.prefix("urn:b")), (Some("urn:c"), None));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespaces {
    /// The default namespace, if there is one.
    default: Option<Box<str>>,
    /// Prefix and namespace, by prefix.
    prefixed: Vec<(Box<str>, Box<str>)>,
}

impl Namespaces {
    /// Declares a prefix ("" for the default namespace), in the place of what it was before. The
    /// empty URI undeclares. The prefix `xml` is passed over.
    ///
    /// Cost: linear in the prefixes in scope; of finding one, logarithmic.
    pub fn declare(&mut self, prefix: &str, uri: &str) {
        if prefix == "xml" {
            return;
        }
        if prefix.is_empty() {
            self.default = if uri.is_empty() { None } else { Some(uri.into()) };
            return;
        }
        match (self.place(prefix.as_bytes()), uri) {
            (Ok(place), "") => drop(self.prefixed.remove(place)),
            (Err(_), "") => {}
            (Ok(place), _) => self.prefixed[place].1 = uri.into(),
            (Err(place), _) => self.prefixed.insert(place, (prefix.into(), uri.into())),
        }
    }

    /// Where a prefix is, or would be.
    #[inline]
    fn place(&self, prefix: &[u8]) -> Result<usize, usize> {
        self.prefixed.binary_search_by(|(known, _)| known.as_bytes().cmp(prefix))
    }

    /// Namespace of a prefix; of the empty prefix, the default namespace.
    #[inline]
    pub fn uri(&self, prefix: &str) -> Option<&str> {
        if prefix.is_empty() {
            return self.default.as_deref();
        }
        self.place(prefix.as_bytes()).ok().map(|place| &*self.prefixed[place].1)
    }

    /// The first prefix of a namespace by code point; the default namespace, which attributes do not
    /// have, has none. Cost: linear.
    pub fn prefix(&self, uri: &str) -> Option<&str> {
        self.prefixed.iter().find(|(_, known)| &**known == uri).map(|(prefix, _)| &**prefix)
    }

    /// Prefix and namespace of all that are in scope but that of `xml`; the prefix of the default namespace is empty.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let prefixed = self.prefixed.iter().map(|(prefix, uri)| (&**prefix, &**uri));
        self.default.as_deref().map(|uri| ("", uri)).into_iter().chain(prefixed)
    }

    /// Whether the only namespace in scope is that of `xml`.
    pub(crate) fn is_empty(&self) -> bool {
        self.default.is_none() && self.prefixed.is_empty()
    }

    /// Whether this prefix has this namespace, given as UTF-8.
    #[inline]
    pub(super) fn has(&self, prefix: &[u8], uri: &[u8]) -> bool {
        if prefix.is_empty() {
            return self.default.as_deref().unwrap_or("").as_bytes() == uri;
        }
        self.place(prefix).is_ok_and(|place| self.prefixed[place].1.as_bytes() == uri)
    }

    #[inline]
    pub(super) fn has_default(&self) -> bool {
        self.default.is_some()
    }
}
