//! A stream's text, put together from its items.

use super::super::chars::name_end;
use super::super::encoding::{Charset, invalid};
use super::super::refusal::{Code, Fault, Step};
use super::dictionary::{Dictionaries, Dictionary};
use super::item::{Item, Items, Name, wrong};
use super::{IN_BAND, VERSION_BYTES, WITH_DICTIONARY};
use std::sync::Arc;

/// Start and end in a text.
type Place = (u32, u32);

/// A text and what is needed to go through its stream again.
#[derive(Debug, Default)]
pub(in super::super) struct Rebuilt {
    pub(crate) text: Vec<u8>,
    pub(crate) dictionary: Option<Arc<Dictionary>>,
    /// Where each name that the stream says first stands in the text.
    names: Vec<Place>,
    /// Names of the open elements.
    open: Vec<Place>,
    /// The first item.
    pub(crate) body: usize,
}

impl Rebuilt {
    /// The text, which has to be UTF-8; if it is not, the place is one of the text.
    pub(crate) fn take_text(&mut self) -> Step<String> {
        String::from_utf8(std::mem::take(&mut self.text))
            .map_err(|error| invalid(Charset::Utf8, error.utf8_error().valid_up_to()))
    }

    /// Bytes of a name.
    #[inline(always)]
    pub(super) fn name_len(&self, name: Name<'_>) -> usize {
        let number = match name {
            Name::New(bytes) => return bytes.len(),
            Name::Known(number) => number,
        };
        match self.dictionary.as_ref().and_then(|dictionary| dictionary.name(number)) {
            Some(name) => name.len(),
            None => {
                let place = self.names.get(number - self.dictionary_len());
                place.map_or(0, |&(start, end)| (end - start) as usize)
            }
        }
    }

    #[inline(always)]
    fn dictionary_len(&self) -> usize {
        self.dictionary.as_ref().map_or(0, |dictionary| dictionary.len())
    }

    /// Writes a name; gives its place.
    #[inline(always)]
    fn name(&mut self, name: Name<'_>, at: usize) -> Step<Place> {
        let start = self.text.len();
        match name {
            Name::New(bytes) => {
                self.text.extend_from_slice(bytes);
                self.names.push((start as u32, self.text.len() as u32));
            }
            Name::Known(number) => {
                let known = self.dictionary_len();
                let in_dictionary = self.dictionary.as_ref().and_then(|it| it.name(number));
                if let Some(name) = in_dictionary {
                    self.text.extend_from_slice(name.as_bytes());
                } else if let Some(&(start, end)) = self.names.get(number - known) {
                    self.text.extend_from_within(start as usize..end as usize);
                } else {
                    let fault = Fault::new(Code::WireName, at).int("number", number as u64 + 1);
                    return Err(fault.int("names", (known + self.names.len()) as u64));
                }
            }
        }
        Ok((start as u32, self.text.len() as u32))
    }

    /// Writes one item.
    #[inline(always)]
    fn item(&mut self, item: Item<'_>, items: &mut Items<'_>, at: usize, len: usize) -> Step<()> {
        match item {
            Item::Text(run) | Item::Raw(run) => self.text.extend_from_slice(run),
            Item::Start { name, attributes, is_empty } => {
                self.text.push(b'<');
                let name = self.name(name, at)?;
                for _ in 0..attributes {
                    let at = items.at;
                    let attribute = items.attribute()?;
                    self.text.push(b' ');
                    self.name(attribute.name, at)?;
                    self.text.extend_from_slice(&[b'=', attribute.quote]);
                    self.text.extend_from_slice(attribute.value);
                    self.text.push(attribute.quote);
                    self.check(at, len)?;
                }
                if is_empty {
                    self.text.push(b'/');
                } else {
                    self.open.push(name);
                }
                self.text.push(b'>');
            }
            Item::Tag(tag) => {
                if tag.first() != Some(&b'<') {
                    return Err(wrong(at, "a tag that does not begin with \"<\""));
                }
                let start = self.text.len();
                self.text.extend_from_slice(tag);
                if !tag.ends_with(b"/>") {
                    let end = start + name_end(tag, 1);
                    self.open.push((start as u32 + 1, end as u32));
                }
            }
            Item::End => {
                let Some((start, end)) = self.open.pop() else {
                    return Err(wrong(at, "an end, and no element is open"));
                };
                self.text.extend_from_slice(b"</");
                self.text.extend_from_within(start as usize..end as usize);
                self.text.push(b'>');
            }
        }
        self.check(at, len)
    }

    #[inline(always)]
    fn check(&self, at: usize, len: usize) -> Step<()> {
        if self.text.len() > len { Err(self.wrong_length(at, len)) } else { Ok(()) }
    }

    #[cold]
    fn wrong_length(&self, at: usize, len: usize) -> Box<Fault> {
        let fault = Fault::new(Code::WireLength, at).int("given", self.text.len() as u64);
        fault.int("expected", len as u64)
    }
}

/// Puts the text of a stream together. Places of faults are bytes of the stream.
pub(in super::super) fn rebuild(
    bytes: &[u8],
    known: &Dictionaries,
    bytes_max: u64,
    rebuilt: &mut Rebuilt,
) -> Step<()> {
    let (mut items, len) = begin(bytes, known, rebuilt)?;
    if u64::from(len) > bytes_max {
        let code = Code::LimitMessageBytes;
        return Err(Fault::limit(code, 0, "message_bytes_max", len.into(), bytes_max));
    }
    let len = len as usize;
    // What is said is believed once there is something to show for it.
    rebuilt.text.reserve(len.min(8 * bytes.len()));
    write(&mut items, rebuilt, len)?;
    if rebuilt.text.len() < len {
        return Err(rebuilt.wrong_length(bytes.len(), len));
    }
    Ok(())
}

/// The byte of a stream, which has been read once, at which the item begins that a byte of its text is
/// in.
#[cold]
pub(in super::super) fn locate(bytes: &[u8], known: &Dictionaries, at: usize) -> usize {
    let mut rebuilt = Rebuilt::default();
    let read = begin(bytes, known, &mut rebuilt)
        .and_then(|(mut items, _)| write(&mut items, &mut rebuilt, at));
    read.map_or_else(|fault| fault.at, |()| bytes.len())
}

/// Reads what stands before the items; gives them, and the length of the text as the stream says it.
fn begin<'w>(
    bytes: &'w [u8],
    known: &Dictionaries,
    rebuilt: &mut Rebuilt,
) -> Step<(Items<'w>, u32)> {
    let mut items = Items::new(bytes, 1);
    rebuilt.dictionary = None;
    rebuilt.names.clear();
    rebuilt.open.clear();
    match bytes.first() {
        Some(&IN_BAND) => {}
        Some(&WITH_DICTIONARY) => {
            let version = items.run(VERSION_BYTES as u32)?;
            let number = version.first_chunk().copied();
            rebuilt.dictionary = number.and_then(|version| known.get(version));
            if rebuilt.dictionary.is_none() {
                let version: String = version.iter().map(|byte| format!("{byte:02x}")).collect();
                return Err(Fault::new(Code::WireDictionary, 1).text("version", &version));
            }
        }
        _ => return Err(wrong(0, "a first byte that is no stream's")),
    }
    let len = items.number()?;
    rebuilt.body = items.at;
    Ok((items, len))
}

fn write(items: &mut Items<'_>, rebuilt: &mut Rebuilt, len: usize) -> Step<()> {
    loop {
        let at = items.at;
        match items.next()? {
            Some(item) => rebuilt.item(item, items, at, len)?,
            None => return Ok(()),
        }
    }
}
