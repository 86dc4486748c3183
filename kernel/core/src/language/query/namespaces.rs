//! What a prefix stands for.

use crate::language::strings::is_normal;
use std::borrow::Cow;

/// What the prefix `xml` stands for, bound or not (Namespaces in XML 1.0, section 3).
const XML_NAMESPACE: &str = "http://www.w3.org/XML/1998/namespace";

/// Prefix bindings of a query. The prefix "" binds the default element namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Namespaces {
    default: String,
    /// Sorted by prefix.
    bindings: Vec<(String, String)>,
    /// Prefixes whose URI is no Unicode text.
    unwritable: Vec<String>,
}

/// What a prefix is bound to.
pub(crate) enum UriBinding<'n> {
    /// Nothing.
    None,
    /// A namespace URI; "" is no namespace.
    Uri(&'n str),
    /// A URI that is no Unicode text.
    Unwritable,
}

impl Namespaces {
    /// No bindings, no default namespace: what canonical text is read with.
    pub const NONE: &'static Namespaces =
        &Namespaces { default: String::new(), bindings: Vec::new(), unwritable: Vec::new() };

    /// Bindings from pairs of prefix and namespace URI; of equal prefixes the last counts.
    pub fn new<P: Into<String>, U: Into<String>>(pairs: impl IntoIterator<Item = (P, U)>) -> Self {
        let mut namespaces = Namespaces::default();
        for (prefix, uri) in pairs {
            namespaces.bind(prefix.into(), uri.into());
        }
        namespaces
    }

    fn bind(&mut self, prefix: String, uri: String) {
        if prefix.is_empty() {
            self.default = uri;
            return;
        }
        match self.bindings.binary_search_by(|(known, _)| known.as_str().cmp(&prefix)) {
            Ok(at) => self.bindings[at].1 = uri,
            Err(at) => self.bindings.insert(at, (prefix, uri)),
        }
    }

    /// Binds a prefix to a URI that is no Unicode text: a query that uses it is refused.
    pub fn bind_unwritable(&mut self, prefix: impl Into<String>) {
        self.unwritable.push(prefix.into());
    }

    /// What a prefix is bound to; the default element namespace for "".
    pub(crate) fn binding(&self, prefix: &str) -> UriBinding<'_> {
        if prefix != "xml" && self.unwritable.iter().any(|each| each == prefix) {
            return UriBinding::Unwritable;
        }
        match prefix {
            "" => UriBinding::Uri(&self.default),
            _ => self.uri(prefix).map_or(UriBinding::None, UriBinding::Uri),
        }
    }

    /// The default element namespace; "" if there is none.
    pub(crate) fn default_uri(&self) -> &str {
        &self.default
    }

    /// The namespace URI of a prefix that is not empty.
    pub(crate) fn uri(&self, prefix: &str) -> Option<&str> {
        if prefix == "xml" {
            return Some(XML_NAMESPACE);
        }
        let at = self.bindings.binary_search_by(|(known, _)| known.as_str().cmp(prefix)).ok()?;
        Some(&self.bindings[at].1)
    }
}

/// Whether a URI has no white space but single blanks between other characters.
pub(crate) fn is_collapsed(uri: &str) -> bool {
    is_normal(uri.as_bytes())
}

/// The URI that a literal means: white space in it counts as in a list of words.
pub(crate) fn collapsed(literal: &str) -> Cow<'_, str> {
    if is_collapsed(literal) {
        return Cow::Borrowed(literal);
    }
    let words = literal.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty());
    Cow::Owned(words.collect::<Vec<_>>().join(" "))
}
