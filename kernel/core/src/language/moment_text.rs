//! Dates, times and durations as text (XML Schema 1.1, part 2, 3.3.7 to 3.3.9, 3.4.26 and 3.4.27; XQuery and XPath
//! Functions and Operators 3.1, 19.1.2).
//!
//! The limits are ours: years of at most nine digits, numbers of a duration of at most twelve; digits of a second after
//! the ninth are cut off. A text of more than [`TEXT_BYTES_MAX`] bytes is no value, which bounds what one cast reads.

use super::moments::{BILLION, DAY_SECONDS, Moment, YEAR_DIGITS_MAX, civil, days};
use super::types::Type;
use std::io::Write;

/// Bytes of a text, white space around it counted.
pub(crate) const TEXT_BYTES_MAX: usize = 256;
const DURATION_DIGITS_MAX: usize = 12;

impl Moment {
    /// A text as a value of one of the types; none if it is not one, or has a year of too many digits.
    pub(crate) fn read(kind: Type, text: &[u8]) -> Option<Moment> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let mut rest = text.trim_ascii();
        if kind.is_duration() {
            let (seconds, nanos) = duration(kind, rest)?;
            return Some(Moment { kind, seconds, nanos, zone: None });
        }
        let days = match kind {
            Type::Date | Type::DateTime => date(&mut rest)?,
            _ => 0,
        };
        if kind == Type::DateTime {
            symbol(&mut rest, b'T')?;
        }
        let (clock, nanos) = match kind {
            Type::Time | Type::DateTime => clock(&mut rest)?,
            _ => (0, 0),
        };
        // The day's last instant is the next one's first; a time has no next day.
        let clock = if kind == Type::Time { clock % DAY_SECONDS } else { clock };
        let zone = zone(rest)?;
        Some(Moment { kind, seconds: days * DAY_SECONDS + clock, nanos, zone })
    }

    /// Writes it as XQuery does.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        // Writing to a vector does not fail.
        let _ =
            if self.kind.is_duration() { self.write_duration(out) } else { self.write_parts(out) };
    }

    fn write_duration(self, out: &mut Vec<u8>) -> std::io::Result<()> {
        let is_negative = self.seconds < 0;
        // The nanoseconds of a negative one count from below.
        let borrowed = is_negative && self.nanos > 0;
        let size = self.seconds.unsigned_abs() - u64::from(borrowed);
        let nanos = if borrowed { BILLION - self.nanos } else { self.nanos };
        out.extend_from_slice(if is_negative { b"-P" } else { b"P" });
        if self.kind == Type::YearMonthDuration {
            write_amount(size / 12, 'Y', out)?;
            write_amount(size % 12, 'M', out)?;
            return if size == 0 { write!(out, "0M") } else { Ok(()) };
        }
        let (days, clock) = (size / DAY_SECONDS as u64, size % DAY_SECONDS as u64);
        write_amount(days, 'D', out)?;
        if clock == 0 && nanos == 0 {
            return if days == 0 { write!(out, "T0S") } else { Ok(()) };
        }
        out.push(b'T');
        write_amount(clock / 3600, 'H', out)?;
        write_amount(clock / 60 % 60, 'M', out)?;
        if nanos == 0 {
            return write_amount(clock % 60, 'S', out);
        }
        write!(out, "{}", clock % 60)?;
        write_fraction(nanos, out)?;
        write!(out, "S")
    }

    fn write_parts(self, out: &mut Vec<u8>) -> std::io::Result<()> {
        let clock = self.seconds.rem_euclid(DAY_SECONDS);
        if self.kind != Type::Time {
            let (year, month, day) = civil(self.seconds.div_euclid(DAY_SECONDS));
            let sign = if year < 0 { "-" } else { "" };
            write!(out, "{sign}{:04}-{month:02}-{day:02}", year.abs())?;
        }
        if self.kind == Type::DateTime {
            out.push(b'T');
        }
        if self.kind != Type::Date {
            write!(out, "{:02}:{:02}:{:02}", clock / 3600, clock / 60 % 60, clock % 60)?;
            write_fraction(self.nanos, out)?;
        }
        match self.zone {
            None => Ok(()),
            Some(0) => write!(out, "Z"),
            Some(zone) => {
                let sign = if zone < 0 { '-' } else { '+' };
                write!(out, "{sign}{:02}:{:02}", zone.abs() / 60, zone.abs() % 60)
            }
        }
    }
}

/// A number of a duration with its designator; nothing for 0.
fn write_amount(value: u64, designator: char, out: &mut Vec<u8>) -> std::io::Result<()> {
    if value == 0 { Ok(()) } else { write!(out, "{value}{designator}") }
}

/// The digits after the point of seconds, with the point; nothing for 0.
fn write_fraction(nanos: u32, out: &mut Vec<u8>) -> std::io::Result<()> {
    if nanos == 0 {
        return Ok(());
    }
    write!(out, ".{nanos:09}")?;
    while out.last() == Some(&b'0') {
        out.pop();
    }
    Ok(())
}

fn symbol(rest: &mut &[u8], wanted: u8) -> Option<()> {
    let (&byte, after) = rest.split_first()?;
    *rest = after;
    (byte == wanted).then_some(())
}

/// Two digits of a number that is not greater than some.
fn pair(rest: &mut &[u8], max: i64) -> Option<i64> {
    let (digits, after) = rest.split_at_checked(2)?;
    *rest = after;
    whole(digits).filter(|&value| value <= max)
}

fn whole(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value, &byte| {
        byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0'))
    })
}

/// Seconds and nanoseconds of a duration, or months.
fn duration(kind: Type, text: &[u8]) -> Option<(i64, u32)> {
    const YEARS: [(u8, i64); 2] = [(b'Y', 12), (b'M', 1)];
    const DAYS: [(u8, i64); 1] = [(b'D', DAY_SECONDS)];
    const CLOCK: [(u8, i64); 3] = [(b'H', 3600), (b'M', 60), (b'S', 1)];
    let positive = text.strip_prefix(b"-");
    let text = positive.unwrap_or(text).strip_prefix(b"P")?;
    let mut parts = text.splitn(2, |&byte| byte == b'T');
    let (before, clock) = (parts.next()?, parts.next());
    let units: &[(u8, i64)] = if kind == Type::YearMonthDuration { &YEARS } else { &DAYS };
    let is_whole = kind == Type::DayTimeDuration || clock.is_none();
    if !is_whole || (clock.is_none() && before.is_empty()) || clock == Some(b"") {
        return None;
    }
    let (whole, _) = amounts(before, units)?;
    let (seconds, nanos) = amounts(clock.unwrap_or_default(), &CLOCK)?;
    let seconds = whole + seconds;
    Some(match (positive, nanos) {
        (None, _) => (seconds, nanos),
        (Some(_), 0) => (-seconds, 0),
        (Some(_), _) => (-seconds - 1, BILLION - nanos),
    })
}

/// The sum of numbers with designators after them, each of which comes once and in order; seconds may have a fraction.
fn amounts(mut text: &[u8], mut units: &[(u8, i64)]) -> Option<(i64, u32)> {
    let (mut sum, mut nanos) = (0, 0);
    while !text.is_empty() {
        let len = text.iter().position(|byte| !byte.is_ascii_digit())?;
        let (digits, mut rest) = text.split_at(len);
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        if digits.is_empty() || len - zeros > DURATION_DIGITS_MAX {
            return None;
        }
        let is_fraction = rest.first() == Some(&b'.');
        if is_fraction {
            (nanos, _) = fraction(&mut rest)?;
        }
        let (&designator, rest) = rest.split_first()?;
        let at = units.iter().position(|&(known, _)| known == designator)?;
        if is_fraction && designator != b'S' {
            return None;
        }
        sum += whole(digits)? * units[at].1;
        units = &units[at + 1..];
        text = rest;
    }
    Some((sum, nanos))
}

/// The nanoseconds of digits after a point, and whether they are all zeros.
fn fraction(rest: &mut &[u8]) -> Option<(u32, bool)> {
    let after = &rest[1..];
    let len = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, after) = after.split_at(len);
    *rest = after;
    let known = &digits[..len.min(9)];
    let nanos = u32::try_from(whole(known)?).ok()? * 10_u32.pow(9 - known.len() as u32);
    (!digits.is_empty()).then_some((nanos, digits.iter().all(|&digit| digit == b'0')))
}

/// The days from the beginning of 1970 to a date, which is taken from the text.
fn date(rest: &mut &[u8]) -> Option<i64> {
    let is_negative = rest.first() == Some(&b'-');
    if is_negative {
        *rest = &rest[1..];
    }
    let len = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    let (digits, after) = rest.split_at(len);
    *rest = after;
    let is_padded = len > 4 && digits[0] == b'0';
    if !(4..=YEAR_DIGITS_MAX).contains(&len) || is_padded {
        return None;
    }
    let year = if is_negative { -whole(digits)? } else { whole(digits)? };
    symbol(rest, b'-')?;
    let month = pair(rest, 12)?;
    symbol(rest, b'-')?;
    let day = pair(rest, 31)?;
    let days = days(year, month, day);
    // No other date is as many days away.
    (civil(days) == (year, month, day)).then_some(days)
}

/// Seconds from midnight, and nanoseconds; 24:00:00 is a whole day.
fn clock(rest: &mut &[u8]) -> Option<(i64, u32)> {
    let hours = pair(rest, 24)?;
    symbol(rest, b':')?;
    let minutes = pair(rest, 59)?;
    symbol(rest, b':')?;
    let seconds = hours * 3600 + minutes * 60 + pair(rest, 59)?;
    let mut nanos = 0;
    let mut is_whole = true;
    if rest.first() == Some(&b'.') {
        (nanos, is_whole) = fraction(rest)?;
    }
    let is_past = seconds > DAY_SECONDS || (seconds == DAY_SECONDS && !is_whole);
    (!is_past).then_some((seconds, nanos))
}

/// A time zone, which is all that is left of the text; nothing is none.
#[expect(clippy::option_option, reason = "a text may be wrong, and a time zone may be missing")]
fn zone(mut rest: &[u8]) -> Option<Option<i16>> {
    let sign = match rest {
        [] => return Some(None),
        b"Z" => return Some(Some(0)),
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return None,
    };
    rest = &rest[1..];
    let hours = pair(&mut rest, 14)?;
    symbol(&mut rest, b':')?;
    let minutes = hours * 60 + pair(&mut rest, 59)?;
    (rest.is_empty() && minutes <= 14 * 60).then_some(Some(sign * minutes as i16))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(kind: Type, text: &str) -> Option<String> {
        let mut out = Vec::new();
        Moment::read(kind, text.as_bytes())?.write(&mut out);
        String::from_utf8(out).ok()
    }

    #[test]
    fn values_are_written_as_xquery_writes_them() {
        for (kind, text, expected) in [
            (Type::Date, " 2024-02-29 ", "2024-02-29"),
            (Type::Date, "2000-02-29-00:00", "2000-02-29Z"),
            (Type::Date, "0000-02-29+14:00", "0000-02-29+14:00"),
            (Type::Date, "-0004-02-29", "-0004-02-29"),
            (Type::Date, "-0000-01-01", "0000-01-01"),
            (Type::Date, "12345-12-31", "12345-12-31"),
            (Type::Date, "-999999999-12-31", "-999999999-12-31"),
            (Type::DateTime, "1999-12-31T24:00:00", "2000-01-01T00:00:00"),
            (Type::DateTime, "-0001-12-31T24:00:00.000Z", "0000-01-01T00:00:00Z"),
            (Type::DateTime, "2026-01-01T23:59:59.10-05:30", "2026-01-01T23:59:59.1-05:30"),
            (Type::Time, "24:00:00", "00:00:00"),
            (Type::Time, "12:00:00.1234567899", "12:00:00.123456789"),
            (Type::DayTimeDuration, " P30D ", "P30D"),
            (Type::DayTimeDuration, "-PT36H", "-P1DT12H"),
            (Type::DayTimeDuration, "PT0S", "PT0S"),
            (Type::DayTimeDuration, "-P0DT0M", "PT0S"),
            (Type::DayTimeDuration, "-PT0.5S", "-PT0.5S"),
            (Type::DayTimeDuration, "-PT61.25S", "-PT1M1.25S"),
            (Type::DayTimeDuration, "P000000000000001DT1M", "P1DT1M"),
            (Type::YearMonthDuration, "P13M", "P1Y1M"),
            (Type::YearMonthDuration, "-P1Y12M", "-P2Y"),
            (Type::YearMonthDuration, "P0Y", "P0M"),
        ] {
            assert_eq!(written(kind, text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn texts_that_are_none_are_refused() {
        for (kind, text) in [
            (Type::Date, ""),
            (Type::Date, "2026"),
            (Type::Date, "2026-1-01"),
            (Type::Date, "2026-01-00"),
            (Type::Date, "2026-00-01"),
            (Type::Date, "2026-04-31"),
            (Type::Date, "2023-02-29"),
            (Type::Date, "1900-02-29"),
            (Type::Date, "02026-01-01"),
            (Type::Date, "+2026-01-01"),
            (Type::Date, "1234567890-01-01"),
            (Type::Date, "2026-01-01+14:01"),
            (Type::Date, "2026-01-01z"),
            (Type::Date, "2026-01-01T00:00:00"),
            (Type::DateTime, "2026-01-01"),
            (Type::DateTime, "2026-01-01 00:00:00"),
            (Type::DateTime, "2026-01-01T24:00:01"),
            (Type::DateTime, "2026-01-01T24:00:00.0000000001"),
            (Type::DateTime, "2026-01-01T00:00:60"),
            (Type::DateTime, "2026-01-01T00:00:00."),
            (Type::DateTime, "2026-01-01T00:00"),
            (Type::Time, "1:00:00"),
            (Type::Time, "00:60:00"),
            (Type::Time, "25:00:00"),
            (Type::Time, "00:00:00+1:00"),
            (Type::Time, "00:00:00+01:60"),
            (Type::DayTimeDuration, "P"),
            (Type::DayTimeDuration, "PT"),
            (Type::DayTimeDuration, "P1DT"),
            (Type::DayTimeDuration, "P1M"),
            (Type::DayTimeDuration, "1D"),
            (Type::DayTimeDuration, "+P1D"),
            (Type::DayTimeDuration, "PT1.5H"),
            (Type::DayTimeDuration, "PT.5S"),
            (Type::DayTimeDuration, "PT5.S"),
            (Type::DayTimeDuration, "PT1S1M"),
            (Type::DayTimeDuration, "PT1M1M"),
            (Type::DayTimeDuration, "P1DT1D"),
            (Type::DayTimeDuration, "P1234567890123D"),
            (Type::DayTimeDuration, "P-1D"),
            (Type::YearMonthDuration, "P1D"),
            (Type::YearMonthDuration, "P1YT1M"),
            (Type::YearMonthDuration, "P1M1Y"),
            (Type::YearMonthDuration, "PT1M"),
        ] {
            assert_eq!(Moment::read(kind, text.as_bytes()), None, "{text}");
        }
    }
}
