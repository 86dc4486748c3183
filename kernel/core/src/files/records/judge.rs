//! Which elements are records: asked of the door, once for each name below the same ancestors.

use crate::xml::parser::{Door, Limits, Refusal, name_end};
use hashbrown::HashMap;
use std::hash::RandomState;

/// Names remembered below the same ancestors.
const KNOWN_MAX: usize = 4096;

/// A test of an expanded name; what is not given may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameTest {
    /// Namespace; "" for none.
    pub uri: Option<String>,
    /// Local name.
    pub local: Option<String>,
}

/// Tells records from other elements of the same depth.
pub(super) struct Judge {
    door: Door,
    path: Vec<NameTest>,
    known: HashMap<Box<[u8]>, bool, RandomState>,
    last: (Vec<u8>, bool),
    document: Vec<u8>,
    declares: memchr::memmem::Finder<'static>,
}

impl Judge {
    pub(crate) fn new(path: Vec<NameTest>, limits: &Limits) -> Self {
        Judge {
            door: Door::new(limits.clone()),
            path,
            known: HashMap::default(),
            last: (Vec::new(), false),
            document: Vec::new(),
            declares: memchr::memmem::Finder::new(b"xmlns"),
        }
    }

    /// Elements above a record.
    pub(crate) fn ancestors(&self) -> usize {
        self.path.len() - 1
    }

    /// The ancestors are others now.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
        self.last.0.clear();
    }

    /// Whether the element with this start tag is a record. What the door would refuse is one if its
    /// local name is right: it is handed on, so that somebody hears why.
    #[inline]
    pub(crate) fn is_record(&mut self, context: &[u8], closing: &[u8], tag: &[u8]) -> bool {
        let name = &tag[1..name_end(tag, 1)];
        // Names in the tag mean what they mean outside, unless it declares namespaces.
        let is_plain = self.declares.find(&tag[name.len()..]).is_none();
        if is_plain {
            if self.last.0 == name {
                return self.last.1;
            }
            if let Some(&found) = self.known.get(name) {
                self.last = (name.to_vec(), found);
                return found;
            }
        }
        let is_record = self.ask(context, closing, tag, name, is_plain);
        if is_plain {
            if self.known.len() >= KNOWN_MAX {
                self.known.clear();
            }
            self.known.insert(name.into(), is_record);
            self.last = (name.to_vec(), is_record);
        }
        is_record
    }

    #[cold]
    fn ask(
        &mut self,
        context: &[u8],
        closing: &[u8],
        tag: &[u8],
        name: &[u8],
        is_plain: bool,
    ) -> bool {
        let mut document = std::mem::take(&mut self.document);
        document.clear();
        document.extend_from_slice(context);
        if is_plain {
            document.extend_from_slice(&[b"<", name, b"/>"].concat());
        } else {
            document.extend_from_slice(tag);
            if !tag.ends_with(b"/>") {
                document.extend_from_slice(&[b"</", name, b">"].concat());
            }
        }
        document.extend_from_slice(closing);
        let (path, parsed) = (&self.path, self.door.parse(&document, None));
        let found = match parsed {
            Ok(parsed) => {
                let names = parsed.message.tree.name.iter();
                let names = names.map(|&id| (parsed.names.uri(id), parsed.names.local(id)));
                path.iter().zip(names).all(|(test, (uri, local))| {
                    test.uri.as_ref().is_none_or(|wanted| wanted == uri)
                        && test.local.as_ref().is_none_or(|wanted| wanted == local)
                })
            }
            Err(_) => may_be_record(path, name),
        };
        self.document = document;
        found
    }

    /// Whether the element with this start tag may be a record, for all that its local name says.
    pub(crate) fn may_be_record(&self, tag: &[u8]) -> bool {
        may_be_record(&self.path, &tag[1..name_end(tag, 1)])
    }

    /// What the door says of the elements of a document: how many there are.
    pub(crate) fn count(&mut self, parts: &[&[u8]]) -> Result<usize, Refusal> {
        self.document.clear();
        for part in parts {
            self.document.extend_from_slice(part);
        }
        self.door.parse(&self.document, None).map(|parsed| parsed.message.tree.name.len())
    }
}

fn may_be_record(path: &[NameTest], name: &[u8]) -> bool {
    let local = name.rsplit(|&byte| byte == b':').next().unwrap_or(name);
    let test = path.last().and_then(|test| test.local.as_ref());
    test.is_none_or(|wanted| wanted.as_bytes() == local)
}
