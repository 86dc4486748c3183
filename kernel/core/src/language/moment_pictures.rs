//! Dates and times as a picture shows them (XQuery and XPath Functions and Operators 3.1, 9.8), with English names.
//!
//! Numbers have digits, ordinals, or as many digits as a width asks for; names are whole or have three letters. Roman
//! numerals, numbers in words, weeks, eras and calendars are refused by name.

use super::moments::{BILLION, DAY_SECONDS, Moment, days};
use super::types::Type;

/// Why a text is no picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MomentPictureFault {
    /// FOFD1340
    Syntax,
    /// FOFD1350: a part that values of the type do not have.
    Absent(char),
    /// What is written in brackets.
    Unsupported(String),
}

/// How dates or times are written.
#[derive(Clone, Debug)]
pub(crate) struct MomentPicture {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Part(Part),
}

/// A part of a date or time.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Its letter.
    letter: char,
    form: Form,
    /// The fewest and the most characters that a width asks for.
    min: usize,
    max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// With so many digits at least.
    Digits(usize),
    /// `1st`
    Ordinal,
    /// `monday`
    Small,
    /// `MONDAY`
    Capital,
    /// `Monday`
    Title,
    /// `+01:00`, and `Z` for UTC if so.
    Zone(ZoneForm, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ZoneForm {
    /// `+01:00`
    Colon,
    /// `+0100`
    Joined,
    /// `+01`, and `+05:30`
    TwoDigits,
    /// `+1`, and `+5:30`
    Hours,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

impl MomentPicture {
    /// Reads a picture of values of a type.
    pub(crate) fn read(of: Type, text: &str) -> Result<MomentPicture, MomentPictureFault> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['[', ']']) {
            literal.push_str(&rest[..at]);
            let bracket = &rest[at..at + 1];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(bracket) {
                literal.push_str(bracket);
                rest = after;
                continue;
            }
            let end = rest.find(']').filter(|_| bracket == "[");
            let Some(end) = end else { return Err(MomentPictureFault::Syntax) };
            let written: String =
                rest[..end].chars().filter(|c| !matches!(c, ' ' | '\t' | '\r' | '\n')).collect();
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Part(Part::read(of, &written)?));
            rest = &rest[end + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Ok(MomentPicture { pieces })
    }

    /// Writes a value of the type that it is a picture of.
    pub(crate) fn write(&self, moment: Moment) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Part(part) => part.write(moment, &mut out),
            }
        }
        out
    }
}

impl Part {
    fn read(of: Type, written: &str) -> Result<Part, MomentPictureFault> {
        let unsupported = || MomentPictureFault::Unsupported(written.to_owned());
        let Some(letter) = written.chars().next() else { return Err(MomentPictureFault::Syntax) };
        let rest = &written[letter.len_utf8()..];
        let (form, width) = match rest.rsplit_once(',') {
            Some((form, width)) => (form, Some(width)),
            None => (rest, None),
        };
        match letter {
            'Y' | 'M' | 'D' | 'd' | 'F' if of == Type::Time => {
                return Err(MomentPictureFault::Absent(letter));
            }
            'H' | 'h' | 'P' | 'm' | 's' | 'f' if of == Type::Date => {
                return Err(MomentPictureFault::Absent(letter));
            }
            'Y' | 'M' | 'D' | 'd' | 'F' | 'H' | 'h' | 'P' | 'm' | 's' | 'f' | 'Z' | 'z' => {}
            'W' | 'w' | 'C' | 'E' => return Err(unsupported()),
            _ => return Err(MomentPictureFault::Syntax),
        }
        let (min, max) = match width.map(width_of) {
            None => (1, usize::MAX),
            Some(Some(width)) => width,
            Some(None) => return Err(MomentPictureFault::Syntax),
        };
        let form = form.strip_suffix('c').unwrap_or(form);
        let is_zone = matches!(letter, 'Z' | 'z');
        let form = match form {
            _ if is_zone => zone_form(form).filter(|_| width.is_none()).ok_or_else(unsupported)?,
            "" => match letter {
                'F' | 'P' => Form::Small,
                'm' | 's' => Form::Digits(2),
                _ => Form::Digits(1),
            },
            "n" => Form::Small,
            "N" => Form::Capital,
            "Nn" => Form::Title,
            "1o" => Form::Ordinal,
            digits if digits.bytes().all(|byte| matches!(byte, b'0' | b'1')) => {
                Form::Digits(digits.len())
            }
            _ => return Err(unsupported()),
        };
        let is_name = matches!(form, Form::Small | Form::Capital | Form::Title);
        let is_known = match letter {
            'F' => is_name && matches!(max, 3 | usize::MAX),
            'M' if is_name => matches!(max, 3 | usize::MAX),
            'P' => is_name && matches!(max, 2 | usize::MAX),
            'f' => matches!(form, Form::Digits(_)) && width.is_none(),
            'D' | 'd' | 'H' | 'h' | 'm' | 's' | 'Y' => !is_name && (letter == 'Y' || max >= 2),
            _ => true,
        };
        if is_known { Ok(Part { letter, form, min, max }) } else { Err(unsupported()) }
    }

    fn write(self, moment: Moment, out: &mut String) {
        let name = match self.letter {
            'Z' | 'z' => return self.write_zone(moment, out),
            'f' => return self.write_fraction(moment, out),
            'P' => Some(if moment.part("hours") < 12 { "Am" } else { "Pm" }),
            'F' => Some(DAYS[moment.weekday()]),
            'M' if !matches!(self.form, Form::Digits(_) | Form::Ordinal) => {
                Some(MONTHS[moment.part("month") as usize - 1])
            }
            _ => None,
        };
        if let Some(name) = name {
            let name = &name[..name.len().min(self.max)];
            let shown = match self.form {
                Form::Small => name.to_ascii_lowercase(),
                Form::Capital => name.to_ascii_uppercase(),
                _ => name.to_owned(),
            };
            out.push_str(&format!("{shown:0$}", self.min));
            return;
        }
        let mut number = match self.letter {
            'Y' => moment.part("year").abs(),
            'M' => moment.part("month"),
            'D' => moment.part("day"),
            'd' => moment.day_of_year(),
            'H' => moment.part("hours"),
            'h' => (moment.part("hours") + 11) % 12 + 1,
            'm' => moment.part("minutes"),
            _ => moment.part("seconds") / i64::from(BILLION),
        };
        let digits = match self.form {
            Form::Digits(digits) => digits,
            _ => 1,
        };
        if self.letter == 'Y' {
            let kept = match (self.max, digits) {
                (usize::MAX, 1) => usize::MAX,
                (usize::MAX, digits) => digits,
                (max, _) => max,
            };
            // A year has at most nine digits.
            number = if kept < 10 { number % 10_i64.pow(kept as u32) } else { number };
        }
        let least = digits.max(self.min);
        out.push_str(&format!("{number:00$}", least));
        if self.form == Form::Ordinal {
            out.push_str(match (number % 100, number % 10) {
                (11..=13, _) => "th",
                (_, 1) => "st",
                (_, 2) => "nd",
                (_, 3) => "rd",
                _ => "th",
            });
        }
    }

    /// The digits after the point of seconds: as many as asked, or, of one that is asked, as there are.
    fn write_fraction(self, moment: Moment, out: &mut String) {
        let nanos = moment.part("seconds") % i64::from(BILLION);
        let digits = format!("{nanos:09}");
        match self.form {
            Form::Digits(count) if count > 1 => {
                out.push_str(&digits[..count.min(9)]);
                out.extend(std::iter::repeat_n('0', count.saturating_sub(9)));
            }
            _ => {
                let trimmed = digits.trim_end_matches('0');
                out.push_str(if trimmed.is_empty() { "0" } else { trimmed });
            }
        }
    }

    fn write_zone(self, moment: Moment, out: &mut String) {
        let (Form::Zone(form, is_z), Some(zone)) = (self.form, moment.zone_minutes()) else {
            return;
        };
        if is_z && zone == 0 {
            out.push('Z');
            return;
        }
        if self.letter == 'z' {
            out.push_str("GMT");
        }
        let sign = if zone < 0 { '-' } else { '+' };
        let (hours, minutes) = (zone.abs() / 60, zone.abs() % 60);
        out.push_str(&match form {
            ZoneForm::Joined => format!("{sign}{hours:02}{minutes:02}"),
            ZoneForm::TwoDigits if minutes == 0 => format!("{sign}{hours:02}"),
            ZoneForm::Colon | ZoneForm::TwoDigits => format!("{sign}{hours:02}:{minutes:02}"),
            ZoneForm::Hours if minutes == 0 => format!("{sign}{hours}"),
            ZoneForm::Hours => format!("{sign}{hours}:{minutes:02}"),
        });
    }
}

/// How a time zone is written.
fn zone_form(form: &str) -> Option<Form> {
    let (form, is_z) = match form.strip_suffix('t') {
        Some(form) => (form, true),
        None => (form, false),
    };
    let form = match form {
        "" | "01:01" | "00:00" => ZoneForm::Colon,
        "0101" | "0000" => ZoneForm::Joined,
        "01" | "00" => ZoneForm::TwoDigits,
        "1" | "0" => ZoneForm::Hours,
        _ => return None,
    };
    Some(Form::Zone(form, is_z))
}

/// The fewest and the most characters of `2-3`, `2`, `*-3` and `*`.
fn width_of(text: &str) -> Option<(usize, usize)> {
    let (min, max) = text.split_once('-').unwrap_or((text, "*"));
    let number = |text: &str, any: usize| match text {
        "*" => Some(any),
        _ => text.parse().ok().filter(|&number: &usize| (1..1000).contains(&number)),
    };
    let (min, max) = (number(min, 1)?, number(max, usize::MAX)?);
    (min <= max).then_some((min, max))
}

impl Moment {
    /// Minutes by which its clocks are ahead of UTC, if it says so.
    fn zone_minutes(self) -> Option<i64> {
        self.zone.map(i64::from)
    }

    /// The day of the week, of which Monday is the first.
    fn weekday(self) -> usize {
        let (year, month, day) = (self.part("year"), self.part("month"), self.part("day"));
        // 1 January 1970 was a Thursday.
        (days(year, month, day) + 3).rem_euclid(7) as usize
    }

    /// The day of the year, of which the first is 1.
    fn day_of_year(self) -> i64 {
        let (year, month, day) = (self.part("year"), self.part("month"), self.part("day"));
        days(year, month, day) - days(year, 1, 1) + 1
    }

    /// The same instant in another time zone, of so many minutes; without one, what it shows there. None beyond the
    /// years that there are.
    pub(crate) fn in_zone(self, minutes: Option<i16>) -> Option<Moment> {
        let shift = match (self.zone, minutes) {
            (Some(old), Some(new)) => i64::from(new - old) * 60,
            _ => 0,
        };
        let seconds = self.seconds + shift;
        let seconds = match self.kind {
            Type::Time => seconds.rem_euclid(DAY_SECONDS),
            Type::Date => seconds - seconds.rem_euclid(DAY_SECONDS),
            _ => seconds,
        };
        Moment { seconds, zone: minutes, ..self }.within_limits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_those_of_the_standard() {
        let of = |kind, text: &str, picture: &str| {
            let moment = Moment::read(kind, text.as_bytes()).expect(text);
            MomentPicture::read(kind, picture).expect(picture).write(moment)
        };
        for (picture, expected) in [
            ("[Y0001]-[M01]-[D01]", "2002-12-31"),
            ("[M]-[D]-[Y]", "12-31-2002"),
            ("[D1] [MNn] [Y]", "31 December 2002"),
            ("[D1o] [MNn], [Y]", "31st December, 2002"),
            ("[FNn,*-3] [D01] [MNn,3-3] [Y,2-2]", "Tue 31 Dec 02"),
            ("[[[d]]]", "[365]"),
            ("[F] [FN]", "tuesday TUESDAY"),
        ] {
            assert_eq!(of(Type::Date, "2002-12-31", picture), expected);
        }
        for (picture, expected) in [
            ("[h]:[m01] [PN]", "3:58 PM"),
            ("[h]:[m01]:[s01] [Pn]", "3:58:45 pm"),
            ("[H01]:[m01]:[s01].[f001]", "15:58:45.762"),
            ("[H01]:[m01] [Z]", "15:58 +02:00"),
            ("[H][Z0101][Z1][z]", "15+0200+2GMT+02:00"),
            ("[f] [H,3]", "762 015"),
        ] {
            assert_eq!(of(Type::Time, "15:58:45.762+02:00", picture), expected);
        }
        assert_eq!(of(Type::DateTime, "2026-01-01T00:00:00Z", "[h][P][Z01:01t]"), "12amZ");
        let read = |kind, picture| MomentPicture::read(kind, picture).err();
        assert_eq!(read(Type::Date, "[H]"), Some(MomentPictureFault::Absent('H')));
        assert_eq!(read(Type::Time, "[Y]"), Some(MomentPictureFault::Absent('Y')));
        for wrong in ["[", "]", "[]", "[Q]", "[Y,x]", "[Y,3-2]"] {
            assert_eq!(read(Type::DateTime, wrong), Some(MomentPictureFault::Syntax), "{wrong}");
        }
        for unsupported in ["[YI]", "[DWwo]", "[w]", "[E]", "[ZN]", "[M,5-1x]"] {
            assert!(read(Type::DateTime, unsupported).is_some(), "{unsupported}");
        }
    }

    #[test]
    fn zones_are_adjusted() {
        for (kind, text, zone, expected) in [
            (Type::DateTime, "2002-03-07T10:00:00-07:00", Some(-300), "2002-03-07T12:00:00-05:00"),
            (Type::DateTime, "2002-03-07T10:00:00", Some(-300), "2002-03-07T10:00:00-05:00"),
            (Type::DateTime, "2002-03-07T10:00:00-07:00", None, "2002-03-07T10:00:00"),
            (Type::Date, "2002-03-07-07:00", Some(-600), "2002-03-06-10:00"),
            (Type::Time, "10:00:00-07:00", Some(600), "03:00:00+10:00"),
        ] {
            let moment = Moment::read(kind, text.as_bytes()).expect(text).in_zone(zone);
            let mut out = Vec::new();
            moment.expect(text).write(&mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
    }
}
