//! Dates, times and durations put together and taken apart (XQuery and XPath Functions and Operators 3.1, 5.6, 8.1 and 9.5).

use super::moments::{BILLION, DAY_SECONDS, Moment, civil};
use super::types::Type;

impl Moment {
    /// The `xs:dateTime` of so many microseconds since the beginning of 1970, in UTC.
    pub(crate) fn of_micros(micros: i64) -> Moment {
        let nanos = (micros.rem_euclid(1_000_000) * 1000) as u32;
        let seconds = micros.div_euclid(1_000_000);
        Moment { kind: Type::DateTime, seconds, nanos, zone: Some(0) }
    }

    /// A time of day on a date; none if they stand in two time zones.
    pub(crate) fn on(self, date: Moment) -> Option<Moment> {
        let zone = match (date.zone, self.zone) {
            (Some(one), Some(other)) if one != other => return None,
            (one, other) => one.or(other),
        };
        Some(Moment { kind: Type::DateTime, seconds: date.seconds + self.seconds, zone, ..self })
    }

    /// The time zone that it says, as a duration.
    pub(crate) fn timezone(self) -> Option<Moment> {
        let seconds = i64::from(self.zone?) * 60;
        Some(Moment { kind: Type::DayTimeDuration, seconds, nanos: 0, zone: None })
    }

    /// A part by its name, that of seconds in nanoseconds; of a negative duration none is above zero.
    pub(crate) fn part(self, name: &str) -> i64 {
        let (year, month, day) = civil(self.seconds.div_euclid(DAY_SECONDS));
        let (sign, size, nanos) = match (self.seconds < 0, self.nanos) {
            (true, 0) => (-1, -self.seconds, 0),
            // The nanoseconds of a negative duration count from below.
            (true, nanos) => (-1, -self.seconds - 1, BILLION - nanos),
            (false, nanos) => (1, self.seconds, nanos),
        };
        let clock = match self.kind.is_duration() {
            true => size,
            false => self.seconds.rem_euclid(DAY_SECONDS),
        };
        let in_seconds = |nanos: u32| clock % 60 * i64::from(BILLION) + i64::from(nanos);
        match name {
            "year" => year,
            "month" => month,
            "day" => day,
            "years" => sign * (size / 12),
            "months" => sign * (size % 12),
            "days" => sign * (size / DAY_SECONDS),
            "hours" if self.kind.is_duration() => sign * (clock / 3600 % 24),
            "minutes" if self.kind.is_duration() => sign * (clock / 60 % 60),
            "seconds" if self.kind.is_duration() => sign * in_seconds(nanos),
            "hours" => clock / 3600,
            "minutes" => clock / 60 % 60,
            _ => in_seconds(self.nanos),
        }
    }
}
