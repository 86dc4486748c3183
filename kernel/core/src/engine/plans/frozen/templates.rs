//! Templates as bytes.
//!
//! A number is four bytes, little endian; text is its length and its bytes.

use crate::engine::paths::PathId;
use crate::engine::plans::template::{Deliver, Form, Frame, Kind, Leaf, Part, Target, Template};
use crate::xml::serializer::Namespaces;

/// No path: the BoundNode itself.
const ITSELF: PathId = PathId::MAX;

/// A template as bytes, but for how many use it.
pub(super) fn encoded(template: &Template) -> Vec<u8> {
    let mut out = vec![kind_byte(template), u8::from(template.is_constructor)];
    out.push(u8::from(template.frame.is_some()));
    if let Some(Frame { before, after }) = &template.frame {
        put(&mut out, before);
        put(&mut out, after);
    }
    for part in &template.parts {
        match part {
            Part::Bytes(bytes) => {
                out.push(0);
                put(&mut out, bytes);
            }
            Part::Hole { target, form, outer } => {
                out.extend([1, *form as u8]);
                out.extend(target.path.unwrap_or(ITSELF).to_le_bytes());
                match &target.leaf {
                    Leaf::Element => out.push(0),
                    Leaf::Text => out.push(1),
                    Leaf::Attribute { uri, local } => {
                        out.push(2);
                        put(&mut out, uri.as_bytes());
                        put(&mut out, local.as_bytes());
                    }
                }
                let declared: Vec<(&str, &str)> = outer.iter().collect();
                out.extend((declared.len() as u32).to_le_bytes());
                for (prefix, uri) in declared {
                    put(&mut out, prefix.as_bytes());
                    put(&mut out, uri.as_bytes());
                }
            }
        }
    }
    out
}

/// The template of some bytes; none if they are not of one.
pub(super) fn decoded(bytes: &[u8]) -> Option<Template> {
    let mut rest = Reader(bytes);
    let kind = kind(rest.byte()?);
    let is_constructor = rest.byte()? == 1;
    let frame = match rest.byte()? {
        0 => None,
        _ => Some(Frame { before: rest.bytes()?.into(), after: rest.bytes()?.into() }),
    };
    let mut parts = Vec::new();
    while let Some(tag) = rest.byte() {
        parts.push(if tag == 0 { Part::Bytes(rest.bytes()?.into()) } else { rest.hole()? });
    }
    let parts = parts.into();
    Some(Template { frame, parts, is_constructor, deliver: kind.deliver, uses: 0 })
}

/// What has to be known of a template before anything is written, as a byte.
pub(super) fn kind_byte(template: &Template) -> u8 {
    let Kind { deliver, may_be_empty } = Kind::of(template);
    deliver as u8 | u8::from(may_be_empty) << 2
}

/// The kind of its byte.
#[inline]
pub(super) fn kind(byte: u8) -> Kind {
    let deliver = Deliver::ALL[usize::from(byte & 3) % Deliver::ALL.len()];
    Kind { deliver, may_be_empty: byte >> 2 & 1 == 1 }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Bytes that are left to read.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }

    fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = self.number()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'b str> {
        str::from_utf8(self.bytes()?).ok()
    }

    fn hole(&mut self) -> Option<Part> {
        let form = *Form::ALL.get(usize::from(self.byte()?))?;
        let path = Some(self.number()?).filter(|&path| path != ITSELF);
        let leaf = match self.byte()? {
            0 => Leaf::Element,
            1 => Leaf::Text,
            _ => Leaf::Attribute { uri: self.text()?.into(), local: self.text()?.into() },
        };
        let mut outer = Namespaces::default();
        for _ in 0..self.number()? {
            let prefix = self.text()?;
            outer.declare(prefix, self.text()?);
        }
        Some(Part::Hole { target: Target { path, leaf }, form, outer })
    }
}
