//! Numbers, dates and times as pictures show them, and in other time zones (XQuery and XPath Functions and Operators 3.1,
//! 4.7, 9.6 and 9.8).

use super::run::{Evaluator, Run};
use super::value::Item;
use crate::language::functions::Function;
use crate::language::moments::Moment;
use crate::language::number_pictures::Digits;
use crate::language::types::Type;
use crate::language::xquery::syntax::{ExprId, Number, Picture};

/// Minutes of the time zones that are furthest from UTC.
const ZONE_MINUTES_MAX: i64 = 14 * 60;

impl Evaluator<'_, '_> {
    /// `format-number()`, `format-date()` and their like. No date has no text; what is no number is NaN.
    pub(crate) fn pictured(
        &mut self,
        id: ExprId,
        function: Function,
        argument: ExprId,
    ) -> Run<Option<Item>> {
        let shown = match self.program.picture(id) {
            Some(Picture::Number(picture)) => {
                let number = self.first_number(argument)?;
                let number = number.unwrap_or(Number::Double(f64::NAN));
                let value = number.value();
                let is_negative = value.is_sign_negative();
                let written = match number {
                    Number::Integer(value) => value.unsigned_abs().to_string(),
                    _ => format!("{}", value.abs()),
                };
                let digits = match value {
                    value if value.is_nan() => Digits::NaN,
                    value if value.is_infinite() => Digits::Infinite,
                    _ => Digits::Finite(&written),
                };
                picture.write(is_negative, digits)
            }
            Some(Picture::Moment(picture)) => {
                let Some(of) = function.moments() else { return Ok(None) };
                let Some(Item::Moment(moment)) = self.cast(of, argument)? else { return Ok(None) };
                picture.write(moment)
            }
            None => return Ok(None),
        };
        self.budget.charge_text(shown.len())?;
        Ok(Some(Item::String(self.keep(shown.as_bytes())?)))
    }

    /// `adjust-dateTime-to-timezone()` and its like: to UTC where no zone is said, to none where that is no item, or
    /// none of the world's.
    pub(crate) fn adjusted(
        &mut self,
        function: Function,
        arguments: &[ExprId],
    ) -> Run<Option<Item>> {
        let Some(of) = function.moments() else { return Ok(None) };
        let Some(Item::Moment(moment)) = self.cast(of, arguments[0])? else { return Ok(None) };
        let zone = match arguments.get(1) {
            None => Some(0),
            Some(&zone) => match self.cast(Type::DayTimeDuration, zone)? {
                Some(Item::Moment(zone)) => minutes_of(zone),
                _ => None,
            },
        };
        Ok(moment.in_zone(zone).map(Item::Moment))
    }
}

/// The minutes of a time zone.
fn minutes_of(zone: Moment) -> Option<i16> {
    let (seconds, nanos) = zone.instant();
    let is_zone = nanos == 0 && seconds % 60 == 0 && (seconds / 60).abs() <= ZONE_MINUTES_MAX;
    is_zone.then_some((seconds / 60) as i16)
}
