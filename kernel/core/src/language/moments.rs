//! Dates, times and durations (XML Schema 1.1, part 2, 3.3.7 to 3.3.9, 3.4.26 and 3.4.27; XQuery and XPath Functions and
//! Operators 3.1, 8, 9 and 19).
//!
//! The calendar is the Gregorian one for all years, the year before 0001 is 0000. A value without a time zone stands in
//! the implicit one, which is UTC. Years have at most nine digits; a second is known to the nanosecond, and digits
//! after that are cut off. There are no leap seconds. The numbers of a duration have at most twelve digits. A text of more than [`TEXT_BYTES_MAX`] bytes is none, so that no
//! value has to be read again and again.

use super::number_text::round;
use super::types::Type;
use std::io::Write;

/// Bytes of a text, white space around it counted.
pub(crate) const TEXT_BYTES_MAX: usize = 256;
const YEAR_DIGITS_MAX: usize = 9;
const DURATION_DIGITS_MAX: usize = 12;
/// Seconds or months of a duration.
const DURATION_MAX: u64 = 100_000_000_000_000_000;
const BILLION: u32 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;
/// Days from 1 March of the year 0000 to 1 January 1970.
const EPOCH_DAYS: i64 = 719_468;
/// Days of 400 years.
const CYCLE_DAYS: i64 = 146_097;

/// A date, a time of day, both, or a duration of one of the types that have an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    kind: Type,
    /// Seconds from the beginning of 1970 to what calendar and clock show, in whatever time zone they stand; of a time,
    /// from midnight; of a date, to its beginning. Of a duration its seconds or its months.
    seconds: i64,
    nanos: u32,
    /// Minutes by which its clocks are ahead of UTC, if it says so.
    zone: Option<i16>,
}

/// A point in time: seconds, and billionths of one. Of a time of day it is one of some fixed day, of a duration its
/// length, of one in months a number of them.
pub(crate) type Instant = (i64, u32);

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
            // A month has no seconds, and they are no months.
            (from, to) if from.is_duration() && to.is_duration() => (0, 0),
            _ => return None,
        };
        Some(Moment { kind, seconds, nanos, ..self })
    }

    /// The sum with another, one of them a duration; none if there is no such value.
    pub(crate) fn plus(self, other: Moment) -> Option<Moment> {
        if other.kind.is_duration() { self.shifted(other) } else { other.shifted(self) }
    }

    /// What it is without a duration, or the time since another of its type.
    pub(crate) fn minus(self, other: Moment) -> Option<Moment> {
        if other.kind.is_duration() {
            return self.shifted(Moment::of_units(other.kind, -other.units())?);
        }
        if self.kind != other.kind {
            return None;
        }
        let nanos = |moment: Moment| {
            let (seconds, nanos) = moment.instant();
            i128::from(seconds) * i128::from(BILLION) + i128::from(nanos)
        };
        Moment::of_units(Type::DayTimeDuration, nanos(self) - nanos(other))
    }

    /// A duration many times, rounded; none if there is no such value.
    pub(crate) fn times(self, factor: f64) -> Option<Moment> {
        self.scaled(|units| units * factor)
    }

    /// A part of a duration, rounded; none if there is no such value.
    pub(crate) fn over(self, divisor: f64) -> Option<Moment> {
        self.scaled(|units| units / divisor)
    }

    fn scaled(self, scale: impl Fn(f64) -> f64) -> Option<Moment> {
        let units = round(scale(self.units() as f64));
        let is_duration = self.kind.is_duration() && units.abs() < 1e27;
        is_duration.then(|| Moment::of_units(self.kind, units as i128))?
    }

    /// How many times it has another duration of its type.
    pub(crate) fn ratio(self, other: Moment) -> Option<f64> {
        let is_ratio = self.kind == other.kind && self.kind.is_duration() && other.units() != 0;
        is_ratio.then(|| self.units() as f64 / other.units() as f64)
    }

    /// Nanoseconds or months of a duration.
    fn units(self) -> i128 {
        let seconds = i128::from(self.seconds);
        match self.kind {
            Type::DayTimeDuration => seconds * i128::from(BILLION) + i128::from(self.nanos),
            _ => seconds,
        }
    }

    fn of_units(kind: Type, units: i128) -> Option<Moment> {
        let (seconds, nanos) = match kind {
            Type::DayTimeDuration => {
                (units.div_euclid(BILLION.into()), units.rem_euclid(BILLION.into()) as u32)
            }
            _ => (units, 0),
        };
        Moment { kind, seconds: i64::try_from(seconds).ok()?, nanos, zone: None }.within_limits()
    }

    /// Later or longer by a duration.
    fn shifted(self, by: Moment) -> Option<Moment> {
        if !by.kind.is_duration() {
            return None;
        }
        let nanos = self.nanos + by.nanos;
        let sum = self.seconds.checked_add(by.seconds)?.checked_add((nanos / BILLION).into())?;
        let nanos = nanos % BILLION;
        let (seconds, nanos) = match (self.kind, by.kind) {
            (own, of) if own.is_duration() => (own == of).then_some((sum, nanos))?,
            (Type::Date | Type::DateTime, Type::YearMonthDuration) => {
                (self.seconds_after_months(by.seconds)?, self.nanos)
            }
            (_, Type::YearMonthDuration) => return None,
            (Type::Date, _) => (sum - sum.rem_euclid(DAY_SECONDS), 0),
            (Type::Time, _) => (sum.rem_euclid(DAY_SECONDS), nanos),
            _ => (sum, nanos),
        };
        Moment { seconds, nanos, ..self }.within_limits()
    }

    /// The same day of another month, or the last one that it has.
    fn seconds_after_months(self, months: i64) -> Option<i64> {
        let (year, month, day) = civil(self.seconds.div_euclid(DAY_SECONDS));
        let months = (year * 12 + month - 1).checked_add(months)?;
        let first = |months: i64| days(months.div_euclid(12), months.rem_euclid(12) + 1, 1);
        // Far beyond the years that there are.
        if months.unsigned_abs() > DURATION_MAX / 100 {
            return None;
        }
        let day = (day - 1).min(first(months + 1) - first(months) - 1);
        let clock = self.seconds.rem_euclid(DAY_SECONDS);
        first(months).checked_add(day)?.checked_mul(DAY_SECONDS)?.checked_add(clock)
    }

    /// Itself if its year, or its length, is one that there is.
    fn within_limits(self) -> Option<Moment> {
        let is_within = match self.kind {
            kind if kind.is_duration() => self.seconds.unsigned_abs() < DURATION_MAX,
            Type::Time => true,
            _ => {
                let (year, ..) = civil(self.seconds.div_euclid(DAY_SECONDS));
                year.unsigned_abs() < 10_u64.pow(YEAR_DIGITS_MAX as u32)
            }
        };
        is_within.then_some(self)
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

    /// The value that has a bound as its ordinal, of dates and times one with a time zone.
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
        if kind.is_duration() {
            return Moment { kind, seconds, nanos, zone: None };
        }
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

    fn write_duration(self, out: &mut Vec<u8>) -> std::io::Result<()> {
        let is_negative = self.seconds < 0;
        // The nanoseconds of a negative one count from below.
        let borrowed = is_negative && self.nanos > 0;
        let size = self.seconds.unsigned_abs() - u64::from(borrowed);
        let nanos = if borrowed { BILLION - self.nanos } else { self.nanos };
        out.extend_from_slice(if is_negative { b"-P" } else { b"P" });
        let mut part = |value: u64, designator: char| match value {
            0 => Ok(()),
            value => write!(out, "{value}{designator}"),
        };
        if self.kind == Type::YearMonthDuration {
            part(size / 12, 'Y')?;
            part(size % 12, 'M')?;
            return if size == 0 { write!(out, "0M") } else { Ok(()) };
        }
        let (days, clock) = (size / DAY_SECONDS as u64, size % DAY_SECONDS as u64);
        part(days, 'D')?;
        if clock == 0 && nanos == 0 {
            return if days == 0 { write!(out, "T0S") } else { Ok(()) };
        }
        out.push(b'T');
        let mut part = |value: u64, designator: char| match value {
            0 => Ok(()),
            value => write!(out, "{value}{designator}"),
        };
        part(clock / 3600, 'H')?;
        part(clock / 60 % 60, 'M')?;
        if nanos > 0 {
            write!(out, "{}.{nanos:09}", clock % 60)?;
            while out.last() == Some(&b'0') {
                out.pop();
            }
            out.push(b'S');
            return Ok(());
        }
        match clock % 60 {
            0 => Ok(()),
            seconds => write!(out, "{seconds}S"),
        }
    }

    fn write_parts(self, out: &mut Vec<u8>) -> std::io::Result<()> {
        if self.kind.is_duration() {
            return self.write_duration(out);
        }
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
            (Type::DayTimeDuration, "-P1DT0.000001S"),
            (Type::DayTimeDuration, "P30D"),
            (Type::YearMonthDuration, "-P13M"),
        ] {
            let bound = Moment::read(kind, text.as_bytes()).and_then(Moment::bound).expect(text);
            let mut out = Vec::new();
            Moment::of_bound(kind, bound).write(&mut out);
            assert_eq!(Moment::read(kind, &out).and_then(Moment::bound), Some(bound), "{text}");
        }
    }

    #[test]
    fn durations_are_added_and_moments_are_apart() {
        let of = |text: &str| {
            let kinds = Type::MOMENTS.into_iter();
            kinds.filter_map(|kind| Moment::read(kind, text.as_bytes())).next().expect(text)
        };
        for (left, sign, right, expected) in [
            ("2024-01-31", '+', "P1M", Some("2024-02-29")),
            ("2024-02-29", '+', "P1Y", Some("2025-02-28")),
            ("2024-02-29", '-', "P4Y", Some("2020-02-29")),
            ("0001-01-31", '-', "P1M", Some("0000-12-31")),
            ("0000-03-31", '-', "P1M", Some("0000-02-29")),
            ("P1M", '+', "-0001-12-31Z", Some("0000-01-31Z")),
            ("2026-12-31", '+', "PT36H", Some("2027-01-01")),
            ("2026-12-31", '-', "PT0.5S", Some("2026-12-30")),
            ("2024-02-28T23:59:59.9+01:00", '+', "PT0.1S", Some("2024-02-29T00:00:00+01:00")),
            ("2024-03-31T12:00:00", '-', "P1M", Some("2024-02-29T12:00:00")),
            ("23:00:00Z", '+', "P1DT2H", Some("01:00:00Z")),
            ("01:00:00", '-', "PT2H", Some("23:00:00")),
            ("12:00:00", '+', "P1M", None),
            ("2024-03-01", '-', "2024-02-28", Some("P2D")),
            ("2024-03-01+14:00", '-', "2024-03-01", Some("-PT14H")),
            ("2024-03-01", '-', "2024-03-01T00:00:00", None),
            ("2024-03-01T00:00:00", '-', "2024-02-29T23:59:59.75", Some("PT0.25S")),
            ("12:00:00", '-', "12:00:00-05:00", Some("-PT5H")),
            ("P1D", '+', "-PT25H", Some("-PT1H")),
            ("P1D", '-', "PT0.25S", Some("PT23H59M59.75S")),
            ("P1D", '+', "P1M", None),
            ("P1D", '-', "2024-03-01", None),
            ("2024-03-01", '+', "2024-03-01", None),
            ("999999999-12-31", '+', "P1D", None),
            ("-999999999-01-01", '-', "P999999999999M", None),
            ("2024-03-01", '+', "P999999999999D", None),
        ] {
            let found = match sign {
                '+' => of(left).plus(of(right)),
                _ => of(left).minus(of(right)),
            };
            let mut out = Vec::new();
            found.into_iter().for_each(|found| found.write(&mut out));
            let expected = expected.unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(&out), expected, "{left} {sign} {right}");
        }
        for (text, factor, expected) in [
            ("P1D", 1.5, Some("P1DT12H")),
            ("-PT1S", 0.1, Some("-PT0.1S")),
            ("P1M", 0.5, Some("P1M")),
            ("-P1M", 0.5, Some("P0M")),
            ("P1Y", f64::NAN, None),
            ("P1Y", f64::INFINITY, None),
            ("P1D", 1e300, None),
            ("2024-03-01", 1.0, None),
        ] {
            let mut out = Vec::new();
            of(text).times(factor).into_iter().for_each(|found| found.write(&mut out));
            let expected = expected.unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(&out), expected, "{text} * {factor}");
        }
        assert_eq!(of("P1D").ratio(of("PT36H")), Some(24.0 / 36.0));
        assert_eq!(of("P1D").ratio(of("PT0S")).or(of("P1D").ratio(of("P1M"))), None);
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
