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
    let mut parts = Vec::new();
    let Head { kind, is_constructor, frame } = read(bytes, |part| {
        parts.push(match part {
            EncodedPart::Text(text) => Part::Bytes(text.as_bytes().into()),
            EncodedPart::Hole(hole) => hole,
        });
    })?;
    let frame = frame.map(|texts| {
        let [before, after] = texts.map(|text| text.as_bytes().into());
        Frame { before, after }
    });
    let parts = parts.into();
    Some(Template { frame, parts, is_constructor, deliver: self::kind(kind).deliver, uses: 0 })
}

/// Whether some bytes are a template of a kind, whose paths are among so many.
pub(super) fn is_sound(bytes: &[u8], kind: u8, paths: PathId) -> bool {
    let mut are_there = true;
    let head = read(bytes, |part| {
        if let EncodedPart::Hole(Part::Hole { target: Target { path: Some(path), .. }, .. }) = part
        {
            are_there &= path < paths;
        }
    });
    head.is_some_and(|Head { kind: own, is_constructor, frame }| {
        let deliver = self::kind(own).deliver;
        let told = byte_of(Kind::new(deliver, is_constructor, frame.is_some()));
        are_there && own == kind && own == told
    })
}

/// What a template begins with.
struct Head<'b> {
    kind: u8,
    is_constructor: bool,
    /// What stands before the first group and after the last.
    frame: Option<[&'b str; 2]>,
}

/// A part where it lies.
enum EncodedPart<'b> {
    Text(&'b str),
    Hole(Part),
}

/// Reads a template, and gives each of its parts.
fn read<'b>(bytes: &'b [u8], mut part: impl FnMut(EncodedPart<'b>)) -> Option<Head<'b>> {
    let mut rest = Reader(bytes);
    let (kind, is_constructor) = (rest.byte()?, rest.flag()?);
    let frame = if rest.flag()? { Some([rest.text()?, rest.text()?]) } else { None };
    while !rest.0.is_empty() {
        part(if rest.flag()? {
            EncodedPart::Hole(rest.hole()?)
        } else {
            EncodedPart::Text(rest.text()?)
        });
    }
    Some(Head { kind, is_constructor, frame })
}

/// What has to be known of a template before anything is written, as a byte.
pub(super) fn kind_byte(template: &Template) -> u8 {
    byte_of(Kind::of(template))
}

fn byte_of(Kind { deliver, may_be_empty }: Kind) -> u8 {
    deliver as u8 | u8::from(may_be_empty) << 2
}

/// The kind of its byte.
#[inline]
pub(super) fn kind(byte: u8) -> Kind {
    let deliver = Deliver::ALL[usize::from(byte & 3)];
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

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
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
            2 => Leaf::Attribute { uri: self.text()?.into(), local: self.text()?.into() },
            _ => return None,
        };
        let mut outer = Namespaces::default();
        for _ in 0..self.number()? {
            let prefix = self.text()?;
            outer.declare(prefix, self.text()?);
        }
        Some(Part::Hole { target: Target { path, leaf }, form, outer })
    }
}
