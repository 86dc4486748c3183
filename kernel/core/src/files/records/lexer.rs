//! Where markup begins and ends: a machine over bytes that can stop and go on at any of them.
//!
//! It knows tags, attribute values, comments, CDATA sections and instructions, and nothing of names,
//! references or characters, which the door checks. A `<` inside a tag or a value, a `--` inside a
//! comment and a `<` that begins nothing are faults: what follows would be read as something else.

use crate::xml::parser::{Code, NAME, is};

/// Where in the markup the machine is, after some byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum State {
    /// Character data.
    Text,
    /// After `<`.
    Less,
    /// After `<!`.
    Bang,
    /// After `<!-`.
    BangDash,
    /// After `<![`, and so on up to `<![CDATA`.
    Section0,
    /// After `<![C`.
    Section1,
    /// After `<![CD`.
    Section2,
    /// After `<![CDA`.
    Section3,
    /// After `<![CDAT`.
    Section4,
    /// After `<![CDATA`.
    Section5,
    /// In a comment.
    Comment,
    /// In a comment, after `-`.
    CommentDash,
    /// In a comment, after `--`.
    CommentDashes,
    /// In a CDATA section.
    Cdata,
    /// In a CDATA section, after `]`.
    CdataBracket,
    /// In a CDATA section, after `]]`.
    CdataBrackets,
    /// In an instruction.
    Instruction,
    /// In an instruction, after `?`.
    InstructionMark,
    /// In a start tag, outside of attribute values.
    StartTag,
    /// In a start tag, after `/`.
    Slash,
    /// In an attribute value in double quotes.
    Double,
    /// In an attribute value in single quotes.
    Single,
    /// In an end tag.
    EndTag,
}

impl State {
    /// Every state, by number.
    pub(crate) const ALL: [State; 23] = [
        State::Text,
        State::Less,
        State::Bang,
        State::BangDash,
        State::Section0,
        State::Section1,
        State::Section2,
        State::Section3,
        State::Section4,
        State::Section5,
        State::Comment,
        State::CommentDash,
        State::CommentDashes,
        State::Cdata,
        State::CdataBracket,
        State::CdataBrackets,
        State::Instruction,
        State::InstructionMark,
        State::StartTag,
        State::Slash,
        State::Double,
        State::Single,
        State::EndTag,
    ];

    /// The state of a number; nothing for one that has none.
    pub fn of(number: u8) -> Option<State> {
        State::ALL.get(number as usize).copied()
    }
}

/// What is no markup of XML, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexicalFault {
    /// What is wrong.
    pub(crate) code: Code,
    /// Offset in the file.
    pub(crate) at: u64,
}

/// Who is told of tags. Each gives whether the machine shall stop there.
pub(super) trait Sink {
    /// Character data ends with the `<` at this offset; nothing of it has been read when it stops.
    fn less(&mut self, _at: u64) -> bool {
        false
    }
    /// The `<` of a start tag was at this offset.
    fn open(&mut self, at: u64) -> bool;
    /// A start tag ends before this offset.
    fn opened(&mut self, _end: u64) -> bool {
        false
    }
    /// The tag of an empty element ends before this offset.
    fn empty(&mut self, end: u64) -> bool;
    /// An end tag ends before this offset.
    fn close(&mut self, end: u64) -> bool;
}

/// Reads a block that begins at this offset of the file, in this state, up to its end or to where the
/// sink stops it; gives the bytes read.
#[inline(always)]
pub(super) fn advance<S: Sink>(
    state: &mut State,
    block: &[u8],
    base: u64,
    sink: &mut S,
) -> Result<usize, LexicalFault> {
    let mut at = 0;
    while at < block.len() {
        let byte = block[at];
        // Where markup that began before the file cannot be true, its places do not matter.
        let here = base + at as u64;
        let fault = |code, at| Err(LexicalFault { code, at });
        // The state after the byte; arms that read more than one say so in `at`.
        *state = match *state {
            State::Text => {
                let Some(found) = find(block, at, [(0xFF, b'<')], |byte| byte == b'<') else {
                    return Ok(block.len());
                };
                at = found;
                if sink.less(base + at as u64) {
                    return Ok(at);
                }
                if block.get(at + 1) == Some(&b'/') {
                    // As below, without going round.
                    at += 1;
                    State::EndTag
                } else {
                    State::Less
                }
            }
            State::Less => match byte {
                b'/' => State::EndTag,
                b'!' => State::Bang,
                b'?' => State::Instruction,
                _ if is(byte, NAME) => {
                    *state = State::StartTag;
                    at += 1;
                    if sink.open(here.wrapping_sub(1)) {
                        return Ok(at);
                    }
                    continue;
                }
                _ => return fault(Code::Name, here),
            },
            State::StartTag => {
                let Some(found) = find(block, at, TAG_STOPS, is_tag_stop) else {
                    if block.last() == Some(&b'/') {
                        *state = State::Slash;
                    }
                    return Ok(block.len());
                };
                at = found;
                match block[at] {
                    b'>' => {
                        *state = State::Text;
                        at += 1;
                        let end = base + at as u64;
                        let is_empty = at > 1 && block[at - 2] == b'/';
                        let stops = if is_empty { sink.empty(end) } else { sink.opened(end) };
                        if stops {
                            return Ok(at);
                        }
                        continue;
                    }
                    b'"' => State::Double,
                    b'\'' => State::Single,
                    _ => return fault(Code::Tag, base + at as u64),
                }
            }
            State::Slash => {
                if byte != b'>' {
                    *state = State::StartTag;
                    continue;
                }
                *state = State::Text;
                at += 1;
                if sink.empty(here + 1) {
                    return Ok(at);
                }
                continue;
            }
            State::Double | State::Single => {
                let quote = if *state == State::Double { b'"' } else { b'\'' };
                let wanted = [(0xFF, quote), (0xFF, b'<')];
                let Some(found) = find(block, at, wanted, |byte| byte == quote || byte == b'<')
                else {
                    return Ok(block.len());
                };
                at = found;
                if block[at] == b'<' {
                    return fault(Code::AttributeLess, base + at as u64);
                }
                State::StartTag
            }
            State::EndTag => {
                let Some(found) = find(block, at, TAG_STOPS, is_tag_stop) else {
                    return Ok(block.len());
                };
                at = found;
                if block[at] != b'>' {
                    return fault(Code::Tag, base + at as u64);
                }
                *state = State::Text;
                at += 1;
                if sink.close(base + at as u64) {
                    return Ok(at);
                }
                continue;
            }
            State::Bang => match byte {
                b'-' => State::BangDash,
                b'[' => State::Section0,
                _ => return fault(Code::Markup, here.wrapping_sub(2)),
            },
            State::BangDash if byte == b'-' => State::Comment,
            State::BangDash => return fault(Code::Markup, here.wrapping_sub(3)),
            State::Section0 => section(State::Section1, byte, b'C', here)?,
            State::Section1 => section(State::Section2, byte, b'D', here)?,
            State::Section2 => section(State::Section3, byte, b'A', here)?,
            State::Section3 => section(State::Section4, byte, b'T', here)?,
            State::Section4 => section(State::Section5, byte, b'A', here)?,
            State::Section5 => section(State::Cdata, byte, b'[', here)?,
            // Single dashes are many where what is taken for a comment is none.
            State::Comment => match memchr::memmem::find(&block[at..], b"--") {
                None if block.last() == Some(&b'-') => {
                    *state = State::CommentDash;
                    return Ok(block.len());
                }
                None => return Ok(block.len()),
                Some(run) => {
                    at += run;
                    State::CommentDash
                }
            },
            State::CommentDash if byte == b'-' => State::CommentDashes,
            State::CommentDash => State::Comment,
            State::CommentDashes if byte == b'>' => State::Text,
            State::CommentDashes => return fault(Code::Comment, here.wrapping_sub(2)),
            State::Cdata => match memchr::memchr(b']', &block[at..]) {
                None => return Ok(block.len()),
                Some(run) => {
                    at += run;
                    State::CdataBracket
                }
            },
            State::CdataBracket if byte == b']' => State::CdataBrackets,
            State::CdataBracket => State::Cdata,
            State::CdataBrackets => match byte {
                b'>' => State::Text,
                b']' => State::CdataBrackets,
                _ => State::Cdata,
            },
            State::Instruction => match memchr::memchr(b'?', &block[at..]) {
                None => return Ok(block.len()),
                Some(run) => {
                    at += run;
                    State::InstructionMark
                }
            },
            State::InstructionMark => match byte {
                b'>' => State::Text,
                b'?' => State::InstructionMark,
                _ => State::Instruction,
            },
        };
        at += 1;
    }
    Ok(at)
}

/// What is common to `<` and `>`, and to both quotes: two tests for the four of them.
const TAG_STOPS: [(u8, u8); 2] = [(0xFD, b'<'), (0xFA, b'"')];

/// Bytes that mean something inside a tag, outside of attribute values. A slash is looked at where
/// the tag ends.
#[inline(always)]
fn is_tag_stop(byte: u8) -> bool {
    matches!(byte, b'<' | b'>' | b'"' | b'\'')
}

/// The first byte that is wanted, from a place on: near ones without a call. Each wanted byte passes
/// one of the tests, the bits that a mask leaves of it being those of a value.
#[inline(always)]
fn find<const N: usize>(
    block: &[u8],
    at: usize,
    tests: [(u8, u8); N],
    is_wanted: impl Fn(u8) -> bool,
) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    const NEAR: usize = 4;
    let is_exact = tests.iter().all(|test| test.0 == 0xFF);
    let mut near = at;
    let mut words = 0;
    while let Some(chunk) = block.get(near..).and_then(|rest| rest.first_chunk::<8>()) {
        if is_exact && words == NEAR {
            let rest = &block[near..];
            let run = match tests.as_slice() {
                [one] => memchr::memchr(one.1, rest),
                [one, other, ..] => memchr::memchr2(one.1, other.1, rest),
                [] => None,
            };
            return run.map(|run| near + run);
        }
        words += 1;
        let word = u64::from_le_bytes(*chunk);
        // The lowest byte that is marked passes; a borrow reaches higher ones only.
        let mut marks = tests.iter().fold(0, |marks, &(mask, value)| {
            let same = (word & (ONES * u64::from(mask))) ^ (ONES * u64::from(value & mask));
            marks | (same.wrapping_sub(ONES) & !same & HIGH)
        });
        while marks != 0 {
            let found = near + marks.trailing_zeros() as usize / 8;
            if is_wanted(block[found]) {
                return Some(found);
            }
            marks &= marks - 1;
        }
        near += 8;
    }
    let rest = block.get(near..)?;
    rest.iter().position(|&byte| is_wanted(byte)).map(|run| near + run)
}

/// One more byte of `<![CDATA[`.
fn section(next: State, byte: u8, expected: u8, here: u64) -> Result<State, LexicalFault> {
    if byte == expected { Ok(next) } else { Err(LexicalFault { code: Code::Markup, at: here }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Told(Vec<(&'static str, u64)>);

    impl Sink for Told {
        fn open(&mut self, at: u64) -> bool {
            self.0.push(("open", at));
            false
        }
        fn opened(&mut self, end: u64) -> bool {
            self.0.push(("opened", end));
            false
        }
        fn empty(&mut self, end: u64) -> bool {
            self.0.push(("empty", end));
            false
        }
        fn close(&mut self, end: u64) -> bool {
            self.0.push(("close", end));
            false
        }
    }

    #[test]
    fn states_have_the_numbers_of_their_places() {
        for (number, state) in State::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, number);
        }
    }

    /// Fails when what the machine tells depends on where a block ends.
    #[test]
    fn tags_are_the_same_however_the_text_is_cut() {
        let text = "<a b='>/' c = \"'\"><!-- <x> - -><y> --><![CDATA[<z> ]] ]>]]]></a >"
            .replace("- ->", "- >");
        let text = format!("{text}<?p <q> ??><e f='g'/>");
        let mut whole = Told::default();
        let mut state = State::Text;
        assert_eq!(advance(&mut state, text.as_bytes(), 10, &mut whole), Ok(text.len()));
        let expected = ["open", "opened", "close", "open", "empty"];
        assert_eq!(whole.0.iter().map(|told| told.0).collect::<Vec<_>>(), expected);
        for size in 1..9 {
            let (mut cut, mut state, mut base) = (Told::default(), State::Text, 10);
            for block in text.as_bytes().chunks(size) {
                assert_eq!(advance(&mut state, block, base, &mut cut), Ok(block.len()));
                base += block.len() as u64;
            }
            assert_eq!((cut.0, state), (whole.0.clone(), State::Text));
        }
    }

    #[test]
    fn a_byte_is_found_wherever_it_lies() {
        for before in 0..70 {
            for after in [0, 1, 7, 8, 40] {
                for (byte, other) in [(b'<', 0xBC), (b'>', b'='), (b'"', b'#'), (b'\'', b'&')] {
                    let text = [vec![other; before], vec![byte], vec![byte; after]].concat();
                    assert_eq!(find(&text, 0, TAG_STOPS, is_tag_stop), Some(before));
                    assert_eq!(find(&text[..before], 0, TAG_STOPS, is_tag_stop), None);
                    let found = find(&text, 0, [(0xFF, byte), (0xFF, b'<')], |it| it == byte);
                    assert_eq!(found, Some(before));
                }
            }
        }
    }

    #[test]
    fn what_is_no_markup_is_a_fault_at_its_place() {
        for (text, code, at) in [
            ("<a b='<'>", Code::AttributeLess, 6),
            ("<a <b>", Code::Tag, 3),
            ("</a b='1'>", Code::Tag, 6),
            ("x < y", Code::Name, 3),
            ("<!-- a -- b -->", Code::Comment, 7),
            ("<!DOCTYPE a>", Code::Markup, 0),
            ("<![CDATX[", Code::Markup, 7),
        ] {
            let mut state = State::Text;
            let found = advance(&mut state, text.as_bytes(), 0, &mut Told::default());
            assert_eq!(found, Err(LexicalFault { code, at }), "{text}");
        }
    }
}
