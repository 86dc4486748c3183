//! Dates, times and durations: their order and their arithmetic (XQuery and XPath Functions and Operators 3.1, 8 and 9).
//!
//! The calendar is the Gregorian one for all years, the year before 0001 is 0000. A value without a time zone stands in
//! the implicit one, which is UTC. Years have at most nine digits; a second is known to the nanosecond. There are no
//! leap seconds.

use super::number_text::round;
use super::types::Type;

pub(super) const YEAR_DIGITS_MAX: usize = 9;
/// Seconds or months of a duration.
const DURATION_MAX: u64 = 100_000_000_000_000_000;
pub(super) const BILLION: u32 = 1_000_000_000;
pub(super) const DAY_SECONDS: i64 = 86_400;
/// Days from 1 March of the year 0000 to 1 January 1970.
const EPOCH_DAYS: i64 = 719_468;
/// Days of 400 years.
const CYCLE_DAYS: i64 = 146_097;

/// A date, a time of day, both, or a duration of one of the types that have an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(super) kind: Type,
    /// Seconds from the beginning of 1970 to what calendar and clock show, in whatever time zone they stand; of a time,
    /// from midnight; of a date, to its beginning. Of a duration its seconds or its months.
    pub(super) seconds: i64,
    pub(super) nanos: u32,
    /// Minutes by which its clocks are ahead of UTC, if it says so.
    pub(super) zone: Option<i16>,
}

/// A point in time: seconds, and billionths of one. Of a time of day it is one of some fixed day, of a duration its
/// length, of one in months a number of them.
pub(crate) type Instant = (i64, u32);

impl Moment {
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
    pub(super) fn within_limits(self) -> Option<Moment> {
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

    /// Equal for equal values: the instant and the type, which is one for all durations of no length.
    pub(crate) fn identity(self) -> (Type, Instant) {
        let instant = self.instant();
        let is_no_length = self.kind.is_duration() && instant == (0, 0);
        (if is_no_length { Type::DayTimeDuration } else { self.kind }, instant)
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
}

/// Days from the beginning of 1970 to a date. Years are counted from March, so that the leap day ends them.
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let of_cycle = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = of_cycle / 4 - of_cycle / 100;
    year.div_euclid(400) * CYCLE_DAYS + of_cycle * 365 + leap_days + of_year - EPOCH_DAYS
}

/// Year, month and day of a date.
pub(super) fn civil(days: i64) -> (i64, i64, i64) {
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
