//! Functions that choose among the items of a sequence, and those of dates, times and characters that XPath 1.0 does not
//! have (XQuery and XPath Functions and Operators 3.1).
//!
//! A position that is missing or no number is that of no item; `insert-before` puts it first.

use super::run::{Evaluator, Run};
use super::value::Item;
use crate::language::comparison::Comparison;
use crate::language::functions::Function;
use crate::language::grammar::references::is_xml_character;
use crate::language::moments::Moment;
use crate::language::number_text::round;
use crate::language::types::Type;
use crate::language::xquery::syntax::{ExprId, Number};

impl Evaluator<'_, '_> {
    /// Puts the items that a function chooses on the stack.
    pub(crate) fn choose(&mut self, function: Function, arguments: &[ExprId]) -> Run<()> {
        let mark = self.state.stack.len();
        if function == Function::Head {
            let first = self.first(arguments[0])?;
            first.into_iter().for_each(|item| self.push(item));
            return Ok(());
        }
        self.eval(arguments[0])?;
        let count = self.state.stack.len() - mark;
        self.budget.charge(count as u64)?;
        match function {
            Function::Tail if count > 0 => drop(self.state.stack.remove(mark)),
            Function::Reverse => self.state.stack[mark..].reverse(),
            Function::Remove => {
                let at = self.place(arguments[1])?;
                if (1.0..=count as f64).contains(&at) {
                    self.state.stack.remove(mark + at as usize - 1);
                }
            }
            Function::InsertBefore => {
                // A position that is none is less than the first, too.
                let before =
                    self.place(arguments[1])?.max(1.0).min(count as f64 + 1.0) as usize - 1;
                self.eval(arguments[2])?;
                let added = self.state.stack.len() - mark - count;
                self.budget.charge(added as u64)?;
                self.state.stack[mark + before..].rotate_right(added);
            }
            Function::Subsequence => {
                let start = self.place(arguments[1])?;
                let end = match arguments.get(2) {
                    Some(&length) => start + self.place(length)?,
                    None => f64::INFINITY,
                };
                let is_chosen = |place: usize| {
                    let place = place as f64 + 1.0;
                    start <= place && place < end
                };
                let mut kept = mark;
                for place in (0..count).filter(|&place| is_chosen(place)) {
                    self.state.stack[kept] = self.state.stack[mark + place];
                    kept += 1;
                }
                self.state.stack.truncate(kept);
            }
            _ => {}
        }
        Ok(())
    }

    /// The first item of an expression as a place or a length: rounded, NaN if it is no number.
    fn place(&mut self, id: ExprId) -> Run<f64> {
        Ok(self.first_number(id)?.map_or(f64::NAN, |number| round(number.value())))
    }

    /// `index-of()`: values of types that do not compare are not equal.
    pub(crate) fn index_of(&mut self, arguments: &[ExprId]) -> Run<()> {
        let Some(wanted) = self.first_atom(arguments[1])? else { return Ok(()) };
        let mark = self.state.stack.len();
        self.eval(arguments[0])?;
        let mut places = Vec::new();
        for index in mark..self.state.stack.len() {
            self.budget.charge(1)?;
            let item = self.atomised(self.state.stack[index])?;
            let is_alike = matches!(
                (item, wanted),
                (Item::String(_) | Item::Untyped(_), Item::String(_) | Item::Untyped(_))
                    | (Item::Number(_), Item::Number(_))
                    | (Item::Boolean(_), Item::Boolean(_))
                    | (Item::Moment(_), Item::Moment(_))
            );
            let is_equal = match (item, wanted) {
                (
                    Item::String(one) | Item::Untyped(one),
                    Item::String(other) | Item::Untyped(other),
                ) if arguments.len() > 2 => {
                    self.budget.charge_text(one.len().min(other.len()))?;
                    self.bytes(one).eq_ignore_ascii_case(self.bytes(other))
                }
                _ => is_alike && self.pair(Comparison::Eq, item, wanted)?,
            };
            if is_equal {
                places.push(Item::integer(index - mark + 1));
            }
        }
        self.state.stack.truncate(mark);
        self.state.stack.extend(places);
        Ok(())
    }

    /// The time of the message, as a type of dates or times.
    pub(crate) fn current(&self, kind: Type) -> Option<Item> {
        Moment::of_micros(self.state.time).cast(kind).map(Item::Moment)
    }

    /// `dateTime()`: a date and a time as one.
    pub(crate) fn date_with_time(&mut self, arguments: &[ExprId]) -> Run<Option<Item>> {
        let date = self.cast(Type::Date, arguments[0])?;
        let time = self.cast(Type::Time, arguments[1])?;
        Ok(match (date, time) {
            (Some(Item::Moment(date)), Some(Item::Moment(time))) => time.on(date).map(Item::Moment),
            _ => None,
        })
    }

    /// `year-from-date()` and its like.
    pub(crate) fn component(
        &mut self,
        (part, of): (&str, Type),
        argument: ExprId,
    ) -> Run<Option<Item>> {
        let Some(Item::Moment(moment)) = self.cast(of, argument)? else { return Ok(None) };
        Ok(match part {
            "timezone" => moment.timezone().map(Item::Moment),
            "seconds" => {
                Some(Item::Number(Number::decimal(moment.part(part) as f64 / 1_000_000_000.0)))
            }
            _ => Some(Item::Number(Number::Integer(moment.part(part)))),
        })
    }

    /// `string-to-codepoints()`
    pub(crate) fn codepoints(&mut self, argument: ExprId) -> Run<()> {
        let text = self.argument_text(argument)?;
        let numbers: Vec<Item> = String::from_utf8_lossy(self.bytes(text))
            .chars()
            .map(|character| Item::integer(character as usize))
            .collect();
        self.budget.charge(numbers.len() as u64)?;
        self.state.stack.extend(numbers);
        Ok(())
    }

    /// `codepoints-to-string()`: numbers of no character are left out.
    pub(crate) fn text_of_codepoints(&mut self, argument: ExprId) -> Run<Item> {
        let mark = self.state.stack.len();
        self.eval(argument)?;
        let mut text = String::new();
        for index in mark..self.state.stack.len() {
            self.budget.charge(1)?;
            let atom = self.atomised(self.state.stack[index])?;
            let value = self.number_of(atom)?.value();
            let character = (value.fract() == 0.0).then_some(value as u32).and_then(char::from_u32);
            text.extend(character.filter(|&character| is_xml_character(character)));
        }
        self.state.stack.truncate(mark);
        Ok(Item::String(self.keep(text.as_bytes())?))
    }

    /// `encode-for-uri()`
    pub(crate) fn encoded(&mut self, argument: ExprId) -> Run<Item> {
        let text = self.argument_text(argument)?;
        let mut encoded = Vec::with_capacity(text.len());
        for &byte in self.bytes(text) {
            if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                encoded.push(byte);
            } else {
                encoded.extend(format!("%{byte:02X}").bytes());
            }
        }
        Ok(Item::String(self.keep(&encoded)?))
    }

    /// `round()` to so many digits after the point, of two the greater number.
    pub(crate) fn rounded_up(&mut self, arguments: &[ExprId]) -> Run<Option<Item>> {
        let Some(number) = self.first_number(arguments[0])? else { return Ok(None) };
        let digits = self.place(arguments[1])?;
        Ok(Some(Item::Number(if digits.is_nan() {
            Number::Double(f64::NAN)
        } else {
            number.to_greater(digits)
        })))
    }

    /// `round-half-to-even()`, to so many digits after the point.
    pub(crate) fn rounded_to_even(&mut self, arguments: &[ExprId]) -> Run<Option<Item>> {
        let Some(number) = self.first_number(arguments[0])? else { return Ok(None) };
        let digits = match arguments.get(1) {
            Some(&digits) => self.place(digits)?,
            None => 0.0,
        };
        Ok(Some(Item::Number(if digits.is_nan() {
            Number::Double(f64::NAN)
        } else {
            number.to_even(digits)
        })))
    }
}
