//! Dates and times (XML Schema 1.1, part 2, 3.3.7 to 3.3.9; XQuery and XPath Functions and Operators 3.1, 9 and 19).
//!
//! The calendar is the Gregorian one for all years, the year before 0001 is 0000. A value without a time zone stands in
//! the implicit one, which is UTC. Years have at most nine digits; a second is known to the nanosecond, and digits
//! after that are cut off. There are no leap seconds. A text of more than [`TEXT_BYTES_MAX`] bytes is none, so that no
//! value has to be read again and again.

use super::types::Type;
use std::io::Write;

/// Bytes of a text, white space around it counted.
pub(crate) const TEXT_BYTES_MAX: usize = 256;
const YEAR_DIGITS_MAX: usize = 9;
const DAY_SECONDS: i64 = 86_400;
/// Days from 1 March of the year 0000 to 1 January 1970.
const EPOCH_DAYS: i64 = 719_468;
/// Days of 400 years.
const CYCLE_DAYS: i64 = 146_097;

/// A date, a time of day, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    kind: Type,
    /// Seconds from the beginning of 1970 to what calendar and clock show, in whatever time zone they stand; of a time,
    /// from midnight; of a date, to its beginning.
    seconds: i64,
    nanos: u32,
    /// Minutes by which its clocks are ahead of UTC, if it says so.
    zone: Option<i16>,
}

/// A point in time: seconds, and billionths of one. Of a time of day it is one of some fixed day.
pub(crate) type Instant = (i64, u32);

impl Moment {
    /// A text as a value of one of the types; none if it is not one, or has a year of too many digits.
    pub(crate) fn read(kind: Type, text: &[u8]) -> Option<Moment> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let mut rest = text.trim_ascii();
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

    /// Its type.
    pub(crate) fn kind(self) -> Type {
        self.kind
    }

    /// The value as one of another type: a part of a date with a time, or the beginning of a date.
    pub(crate) fn cast(self, kind: Type) -> Option<Moment> {
        let (seconds, nanos) = match (self.kind, kind) {
            (from, to) if from == to => (self.seconds, self.nanos),
            (Type::Date, Type::DateTime) => (self.seconds, 0),
            (Type::DateTime, Type::Date) => {
                (self.seconds - self.seconds.rem_euclid(DAY_SECONDS), 0)
            }
            (Type::DateTime, Type::Time) => (self.seconds.rem_euclid(DAY_SECONDS), self.nanos),
            _ => return None,
        };
        Some(Moment { kind, seconds, nanos, ..self })
    }

    /// What it is compared by with values of its type.
    pub(crate) fn instant(self) -> Instant {
        (self.seconds - i64::from(self.zone.unwrap_or(0)) * 60, self.nanos)
    }

    /// The number by which it is ordered among the values of its type: microseconds, of which the last bit is 1 if it is
    /// not a whole number of them that a double has. So it is on the right side of every number that [`Moment::bound`]
    /// gives, and equal to it if and only if they are the same instant.
    pub(crate) fn ordinal(self) -> f64 {
        let halves = self.halves();
        let size = halves.unsigned_abs();
        let lost = Moment::lost_bits(size);
        let is_inexact = size & ((1 << lost) - 1) != 0;
        // Fifty-three bits, which a double has.
        let kept = (size >> lost | u128::from(is_inexact)) << lost;
        let ordinal = kept as f64 / 2.0;
        if halves < 0 { -ordinal } else { ordinal }
    }

    /// Its ordinal, if all others compare with that as the values themselves do: it is a whole number of microseconds,
    /// and the last bit of the double is 0. So are all seconds from the year -7000 to the year 11000.
    pub(crate) fn bound(self) -> Option<f64> {
        let size = self.halves().unsigned_abs();
        let is_even = size & ((2 << Moment::lost_bits(size)) - 1) == 0;
        is_even.then(|| self.ordinal())
    }

    /// The value that has a bound as its ordinal, with a time zone.
    pub(crate) fn of_bound(kind: Type, bound: f64) -> Moment {
        let micros = bound as i128;
        let seconds = micros.div_euclid(1_000_000) as i64;
        let minutes = match kind {
            // Where a date begins at that instant: further west on that day, or further east on the next.
            Type::Date => match seconds.rem_euclid(DAY_SECONDS) / 60 {
                minutes if minutes <= 14 * 60 => -minutes,
                minutes => DAY_SECONDS / 60 - minutes,
            },
            Type::Time if seconds < 0 => (-seconds + 59) / 60,
            Type::Time if seconds >= DAY_SECONDS => -((seconds - DAY_SECONDS) / 60 + 1),
            _ => 0,
        };
        let nanos = (micros.rem_euclid(1_000_000) * 1000) as u32;
        Moment { kind, seconds: seconds + minutes * 60, nanos, zone: Some(minutes as i16) }
    }

    /// Half microseconds, where parts of a microsecond count as a half.
    fn halves(self) -> i128 {
        let (seconds, nanos) = self.instant();
        let micros = i128::from(seconds) * 1_000_000 + i128::from(nanos / 1000);
        micros * 2 + i128::from(nanos % 1000 != 0)
    }

    /// The bits of a number for which a double has no room.
    fn lost_bits(size: u128) -> u32 {
        (u128::BITS - size.leading_zeros()).saturating_sub(f64::MANTISSA_DIGITS)
    }

    /// Writes it as XQuery does.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        // Writing to a vector does not fail.
        let _ = self.write_parts(out);
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
            if self.nanos > 0 {
                write!(out, ".{:09}", self.nanos)?;
                while out.last() == Some(&b'0') {
                    out.pop();
                }
            }
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
        let after = &rest[1..];
        let len = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, after) = after.split_at(len);
        *rest = after;
        is_whole = digits.iter().all(|&digit| digit == b'0');
        let known = &digits[..len.min(9)];
        nanos = u32::try_from(whole(known)?).ok()? * 10_u32.pow(9 - known.len() as u32);
        if digits.is_empty() {
            return None;
        }
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

/// Days from the beginning of 1970 to a date. Years are counted from March, so that the leap day ends them.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let of_cycle = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = of_cycle / 4 - of_cycle / 100;
    year.div_euclid(400) * CYCLE_DAYS + of_cycle * 365 + leap_days + of_year - EPOCH_DAYS
}

/// Year, month and day of a date.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let day = days.rem_euclid(CYCLE_DAYS);
    let year = (day - day / 1460 + day / 36_524 - day / (CYCLE_DAYS - 1)) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = (month + 2) % 12 + 1;
    (days.div_euclid(CYCLE_DAYS) * 400 + year + i64::from(month <= 2), month, day)
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
        ] {
            assert_eq!(Moment::read(kind, text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn days_and_dates_are_the_same() {
        assert_eq!((days(1970, 1, 1), days(2000, 3, 1), days(0, 3, 1)), (0, 11_017, -EPOCH_DAYS));
        for day in (-1_000_000..1_000_000).chain([-400 * CYCLE_DAYS, 1_000_000 * CYCLE_DAYS]) {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), day);
        }
    }

    #[test]
    fn ordinals_compare_with_bounds_as_instants_do() {
        let texts = [
            "-999999999-01-01T00:00:00Z",
            "-7000-01-01T00:00:00.1",
            "-0001-12-31T23:59:59.999999999",
            "0000-01-01T00:00:00Z",
            "1969-12-31T23:59:59.9999999",
            "1969-12-31T23:59:59.999999",
            "1970-01-01T00:00:00",
            "1970-01-01T00:00:00.000000001",
            "2026-01-01T00:00:00.000001",
            "2026-01-01T00:00:00.0000010001",
            "2026-01-01T00:00:00.000002",
            "2399-01-01T00:00:00.3",
            "2399-01-01T00:00:00.300001",
            "9999-12-31T23:59:59",
            "9999-12-31T23:59:59.999999999",
            "9999-12-31T24:00:00",
            "12000-01-01T00:00:01",
            "999999999-12-31T23:59:59.999999999",
        ];
        let of = |text: &str| Moment::read(Type::DateTime, text.as_bytes()).expect(text);
        let moments: Vec<Moment> = texts.map(of).to_vec();
        let mut bounds = 0;
        for bound in moments.iter().filter(|moment| moment.bound().is_some()) {
            bounds += 1;
            for moment in &moments {
                let by_ordinal = moment.ordinal().partial_cmp(&bound.ordinal());
                assert_eq!(by_ordinal, Some(moment.instant().cmp(&bound.instant())));
            }
        }
        assert_eq!(bounds, 9);
    }

    #[test]
    fn a_bound_is_that_of_its_text() {
        for (kind, text) in [
            (Type::Date, "2026-12-31"),
            (Type::Date, "2026-12-31+14:00"),
            (Type::Date, "2026-12-31-14:00"),
            (Type::Date, "-0004-02-29+00:01"),
            (Type::Date, "0000-01-01-12:00"),
            (Type::Time, "00:00:00+14:00"),
            (Type::Time, "23:59:59.5-14:00"),
            (Type::Time, "00:00:30+00:01"),
            (Type::DateTime, "2026-12-31T23:59:59.999999+05:30"),
        ] {
            let bound = Moment::read(kind, text.as_bytes()).and_then(Moment::bound).expect(text);
            let mut out = Vec::new();
            Moment::of_bound(kind, bound).write(&mut out);
            assert_eq!(Moment::read(kind, &out).and_then(Moment::bound), Some(bound), "{text}");
        }
    }

    #[test]
    fn time_zones_and_leap_days_count_in_an_order() {
        let instant =
            |text: &str| Moment::read(Type::DateTime, text.as_bytes()).map(Moment::instant);
        let same =
            ["2024-03-01T00:30:00+01:00", "2024-02-29T23:30:00", "2024-02-29T18:00:00-05:30"];
        assert!(
            same.iter().all(|text| instant(text) == instant(same[0]) && instant(text).is_some())
        );
        assert!(instant("2024-02-29T23:59:59.999999999Z") < instant("2024-02-29T24:00:00Z"));
        assert!(instant("-0001-12-31T00:00:00") < instant("0000-01-01T00:00:00"));
    }
}
