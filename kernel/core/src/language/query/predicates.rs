//! Predicates of a query: positions, comparisons, nested paths, `and` between them.

use super::arrange::{add_predicate, comparison, condition_depth};
use super::ast::{Axis, Condition, Constant, NameTest, Operator, Stage, Step};
use super::canonical::{CAST, MATCHES};
use super::compile::{DEPTH_MAX, Declined, End, Parser};
use crate::language::comparison::Comparison;
use crate::language::folding::Fold;
use crate::language::folding::TextTest;
use crate::language::moments::Moment;
use crate::language::types::Type;
use crate::language::values::Values;
use std::borrow::Cow;

impl<'q> Parser<'q> {
    /// One predicate; the place is at its bracket.
    pub(super) fn predicate(
        &mut self,
        stages: &mut Vec<Stage<'q>>,
        depth: usize,
    ) -> Result<(), Declined> {
        if depth > DEPTH_MAX {
            return Err(Declined);
        }
        self.scanner.skip(1);
        self.nodes += 1;
        let (mut positions, mut conditions) = (Vec::new(), Vec::new());
        let mut is_first = true;
        loop {
            if let Some(constant) = self.constant(depth)? {
                if let (b']', true, Constant::Number(number)) =
                    (self.scanner.peek(), is_first, &constant)
                {
                    positions.push((Comparison::Eq, *number));
                } else {
                    let operator = self.operator().ok_or(Declined)?.flipped();
                    self.flipped_comparison(
                        operator,
                        constant,
                        &mut positions,
                        &mut conditions,
                        depth,
                    )?;
                }
            } else {
                self.conjunct(&mut positions, &mut conditions, depth)?;
            }
            if self.scanner.take(b']') {
                add_predicate(stages, positions, conditions);
                return Ok(());
            }
            if !self.scanner.take_word("and") {
                return Err(Declined);
            }
            self.nodes += 1;
            is_first = false;
        }
    }

    /// What stands after `constant op`.
    fn flipped_comparison(
        &mut self,
        operator: Comparison,
        constant: Constant<'q>,
        positions: &mut Vec<(Comparison, f64)>,
        conditions: &mut Vec<Condition<'q>>,
        depth: usize,
    ) -> Result<(), Declined> {
        if self.call_of("position") {
            self.nodes += 1;
            let Constant::Number(number) = constant else { return Err(Declined) };
            positions.push((operator, number));
            return Ok(());
        }
        let mut steps = Vec::new();
        let mut is_pending = false;
        let end = self.path(&mut steps, &mut is_pending, depth)?;
        let compare = Some(comparison(operator, constant));
        let condition = self.nested(steps, end, is_pending, compare, depth)?;
        push(conditions, condition);
        Ok(())
    }

    /// A condition that does not begin with a constant.
    fn conjunct(
        &mut self,
        positions: &mut Vec<(Comparison, f64)>,
        conditions: &mut Vec<Condition<'q>>,
        depth: usize,
    ) -> Result<(), Declined> {
        if self.call_of("position") {
            let operator = self.operator().ok_or(Declined)?;
            // The call and the constant.
            self.nodes += 2 + usize::from(self.scanner.peek() == b'-');
            positions.push((operator, self.number()?));
            return Ok(());
        }
        if let Some(operator) = self.call_operator() {
            let condition = self.call(operator, depth + 1)?;
            push(conditions, condition);
            return Ok(());
        }
        if self.is_canonical && self.open_call(MATCHES) {
            let end = self.argument(depth + 1, b',')?;
            push(conditions, Some(self.texts_call(end, TextTest::Matches, Fold::None, depth + 1)?));
            return Ok(());
        }
        if self.is_canonical
            && let Some(fold) = self.open_fold()
        {
            push(conditions, Some(self.folded(fold, depth + 1)?));
            return Ok(());
        }
        if self.is_canonical && self.open_call(CAST) {
            push(conditions, Some(self.cast(None, depth + 1)?));
            return Ok(());
        }
        if self.is_canonical
            && let Some(&kind) = Type::MOMENTS.iter().find(|kind| self.open_call(kind.name()))
        {
            push(conditions, Some(self.cast(Some(kind), depth + 1)?));
            return Ok(());
        }
        let mut steps = Vec::new();
        let mut is_pending = false;
        let end = self.path(&mut steps, &mut is_pending, depth)?;
        let mut compare = None;
        if let Some(operator) = self.operator() {
            compare = Some(if self.is_canonical && self.scanner.peek() == b'(' {
                (equality(operator)?, self.set(depth + 1)?)
            } else {
                comparison(operator, self.constant(depth)?.ok_or(Declined)?)
            });
        }
        let condition = self.nested(steps, end, is_pending, compare, depth)?;
        push(conditions, condition);
        Ok(())
    }

    /// The condition that a path in a predicate is; none when it is always true, as `.` is.
    fn nested(
        &self,
        mut steps: Vec<Step<'q>>,
        end: End<'q>,
        is_pending: bool,
        compare: Option<(Operator, Constant<'q>)>,
        depth: usize,
    ) -> Result<Option<Condition<'q>>, Declined> {
        let is_element = matches!(end, End::Element);
        if is_element && is_pending && compare.is_some() {
            return Err(Declined);
        }
        // `//.[@a]` takes its conditions as predicates; a comparison of it is for the slow way.
        let is_or_self = steps.last().is_some_and(|step| step.axis == Axis::DescendantOrSelf);
        if is_or_self && compare.is_some() {
            return Err(Declined);
        }
        let condition = end.condition(compare);
        if steps.is_empty() && !is_pending {
            return Ok(condition);
        }
        let too_deep = |end: &Condition<'_>| depth + 1 + condition_depth(end) > DEPTH_MAX;
        // Most nest far less deep: brackets, calls and `concat` of the condition are three at most.
        if depth + 3 > DEPTH_MAX && condition.as_ref().is_some_and(too_deep) {
            return Err(Declined);
        }
        self.finish(&mut steps, condition, is_pending && !is_element, false);
        Ok((!steps.is_empty()).then_some(Condition::Nested(steps)))
    }

    /// `starts-with(` or `contains(`.
    fn call_operator(&mut self) -> Option<Operator> {
        match self.scanner.peek() {
            b's' => self.open_call("starts-with").then_some(Operator::StartsWith),
            b'c' => self.open_call("contains").then_some(Operator::Contains),
            _ => None,
        }
    }

    /// Moves over `name(`.
    #[inline]
    fn open_call(&mut self, name: &str) -> bool {
        let start = self.scanner.at;
        let is_here = self.scanner.take_word(name) && self.scanner.take(b'(');
        if !is_here {
            self.scanner.at = start;
        }
        is_here
    }

    /// Moves over `name()`.
    #[inline]
    fn call_of(&mut self, name: &str) -> bool {
        let start = self.scanner.at;
        let is_here = self.open_call(name) && self.scanner.take(b')');
        if !is_here {
            self.scanner.at = start;
        }
        is_here
    }

    /// Moves over `lower-case(` and the like.
    fn open_fold(&mut self) -> Option<Fold> {
        let named = |fold: &Fold| fold.name().is_some_and(|name| self.open_call(name));
        Fold::ALL.into_iter().find(named)
    }

    /// What stands after `lower-case(`, which only canonical text has: an attribute, `text()` or `.`, and one string or
    /// several.
    fn folded(&mut self, fold: Fold, depth: usize) -> Result<Condition<'q>, Declined> {
        let end = self.argument(depth, b')')?;
        let equal = equality(self.operator().ok_or(Declined)?)?;
        let texts = self.one_or_more(depth)?;
        end.condition(Some((equal, Constant::Texts(fold, texts)))).ok_or(Declined)
    }

    /// What stands after the first argument of a function of canonical text that takes one string or several.
    fn texts_call(
        &mut self,
        end: End<'q>,
        test: TextTest,
        fold: Fold,
        depth: usize,
    ) -> Result<Condition<'q>, Declined> {
        let texts = self.one_or_more(depth)?;
        if !self.scanner.take(b')') {
            return Err(Declined);
        }
        let compare = (Operator::of_test(test), Constant::of_texts(test, fold, texts));
        end.condition(Some(compare)).ok_or(Declined)
    }

    /// A string, or strings in parentheses.
    fn one_or_more(&mut self, depth: usize) -> Result<Values<'static>, Declined> {
        if self.scanner.peek() == b'(' {
            return self.strings(depth + 1);
        }
        let text = self.string(depth)?.ok_or(Declined)?;
        Values::of([&*text]).ok_or(Declined)
    }

    /// What stands after `double(` or `date(` and the like, which only canonical text has: an attribute, `text()` or `.`,
    /// and a comparison with a number or the text of a date.
    fn cast(&mut self, to: Option<Type>, depth: usize) -> Result<Condition<'q>, Declined> {
        let end = self.argument(depth, b')')?;
        let operator = self.operator().ok_or(Declined)?;
        if let Some(kind) = to {
            let moment = Moment::read(kind, self.literal()?.as_bytes());
            let bound = moment.and_then(Moment::bound).ok_or(Declined)?;
            if operator == Comparison::Ne {
                return Err(Declined);
            }
            let compare = (Operator::Compare(operator), Constant::Moment(kind, bound));
            return end.condition(Some(compare)).ok_or(Declined);
        }
        let compare = if self.scanner.peek() == b'(' {
            (equality(operator)?, Constant::one_of_doubles(self.numbers()?))
        } else {
            let number = self.number()?;
            (Operator::Compare(operator), Constant::Double(number))
        };
        end.condition(Some(compare)).ok_or(Declined)
    }

    /// Numbers or strings in parentheses, which only canonical text has.
    fn set(&mut self, depth: usize) -> Result<Constant<'q>, Declined> {
        if depth > DEPTH_MAX {
            return Err(Declined);
        }
        let is_number = matches!(self.scanner.byte_after(1), b'-' | b'.' | b'0'..=b'9');
        Ok(if is_number {
            Constant::one_of_numbers(self.numbers()?)
        } else {
            Constant::one_of(self.strings(depth)?)
        })
    }

    fn strings(&mut self, depth: usize) -> Result<Values<'static>, Declined> {
        let mut strings: Vec<Cow<'q, str>> = Vec::new();
        self.listed(|parser| {
            strings.push(parser.string(depth)?.ok_or(Declined)?);
            Ok(())
        })?;
        Values::of(strings.iter().map(|text| &**text)).ok_or(Declined)
    }

    /// Numbers in parentheses.
    fn numbers(&mut self) -> Result<Values<'static>, Declined> {
        let mut numbers = Vec::new();
        self.listed(|parser| {
            numbers.push(parser.number()?);
            Ok(())
        })?;
        Values::of_numbers(numbers).ok_or(Declined)
    }

    /// One or more in parentheses, with commas between them.
    fn listed(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<(), Declined>,
    ) -> Result<(), Declined> {
        self.scanner.skip(1);
        loop {
            read(self)?;
            if self.scanner.take(b')') {
                return Ok(());
            }
            if !self.scanner.take(b',') {
                return Err(Declined);
            }
        }
    }

    /// What stands after `starts-with(`: one attribute or `.`, and a string. For other paths the
    /// function looks at the first node alone, which no condition does.
    fn call(
        &mut self,
        operator: Operator,
        depth: usize,
    ) -> Result<Option<Condition<'q>>, Declined> {
        if self.is_canonical
            && let Some(fold) = self.open_fold()
        {
            let end = self.argument(depth + 1, b')')?;
            if !self.scanner.take(b',') {
                return Err(Declined);
            }
            let test = operator.test().ok_or(Declined)?;
            return self.texts_call(end, test, fold, depth).map(Some);
        }
        let end = self.argument(depth, b',')?;
        if self.is_canonical && self.scanner.peek() == b'(' {
            let test = operator.test().ok_or(Declined)?;
            return self.texts_call(end, test, Fold::None, depth).map(Some);
        }
        let constant = self.string(depth)?.ok_or(Declined)?;
        if !self.scanner.take(b')') {
            return Err(Declined);
        }
        let is_one = match &end {
            End::Attribute(test) => matches!(test, NameTest::Name { .. }),
            End::Element => true,
            End::Text => false,
        };
        if !is_one {
            return Err(Declined);
        }
        // Every string starts with the empty one and contains it.
        if constant.is_empty() {
            return Ok(None);
        }
        Ok(end.condition(Some((operator, Constant::String(constant)))))
    }

    /// The first argument of a call: an attribute, `text()` or `.`, what stands after it, and blanks.
    fn argument(&mut self, depth: usize, after: u8) -> Result<End<'q>, Declined> {
        if depth > DEPTH_MAX {
            return Err(Declined);
        }
        self.nodes += 1;
        let mut steps = Vec::new();
        let mut is_pending = false;
        let end = self.path(&mut steps, &mut is_pending, depth)?;
        if is_pending || !steps.is_empty() || !self.scanner.take(after) {
            return Err(Declined);
        }
        Ok(end)
    }

    fn operator(&mut self) -> Option<Comparison> {
        let (operator, length) = self.scanner.comparison()?;
        self.scanner.skip(length);
        self.nodes += 1;
        Some(operator)
    }

    /// A finite number with one minus or none.
    fn number(&mut self) -> Result<f64, Declined> {
        let is_negative = self.scanner.take(b'-');
        let value = self.scanner.decimal().filter(|value| value.is_finite()).ok_or(Declined)?;
        // Adding zero makes a negative zero positive.
        Ok(if is_negative { -value } else { value } + 0.0)
    }

    /// A constant, if one begins here; `depth` brackets and calls stand around it.
    #[inline]
    fn constant(&mut self, depth: usize) -> Result<Option<Constant<'q>>, Declined> {
        if let Some(text) = self.string(depth)? {
            return Ok(Some(Constant::String(text)));
        }
        match self.scanner.byte() {
            b'0'..=b'9' | b'-' => {}
            b'.' if self.scanner.byte_after(1).is_ascii_digit() => {}
            _ => return Ok(None),
        }
        self.nodes += 1 + usize::from(self.scanner.byte() == b'-');
        Ok(Some(Constant::Number(self.number()?)))
    }
}

/// Strings.
impl<'q> Parser<'q> {
    /// A string, if one begins here: a literal, or literals joined by `concat`, as a string with
    /// both kinds of quotes has to be written.
    fn string(&mut self, depth: usize) -> Result<Option<Cow<'q, str>>, Declined> {
        match self.scanner.peek() {
            b'\'' | b'"' => Ok(Some(Cow::Borrowed(self.literal()?))),
            b'c' if self.open_call("concat") => {
                self.joined(depth + 1).map(|text| Some(Cow::Owned(text)))
            }
            _ => Ok(None),
        }
    }

    #[inline]
    fn literal(&mut self) -> Result<&'q str, Declined> {
        self.nodes += 1;
        self.scanner.literal().ok_or(Declined)
    }

    /// What stands after `concat(`: two literals or more.
    fn joined(&mut self, depth: usize) -> Result<String, Declined> {
        if depth > DEPTH_MAX {
            return Err(Declined);
        }
        self.nodes += 1;
        let mut text = String::new();
        let mut count = 0;
        loop {
            text.push_str(self.literal()?);
            count += 1;
            if !self.scanner.take(b',') {
                break;
            }
        }
        if count > 1 && self.scanner.take(b')') { Ok(text) } else { Err(Declined) }
    }
}

/// The operator before a set.
fn equality(operator: Comparison) -> Result<Operator, Declined> {
    if operator == Comparison::Eq { Ok(Operator::Compare(operator)) } else { Err(Declined) }
}

/// Adds a condition, if there is one; most steps have no more than one.
fn push<'q>(conditions: &mut Vec<Condition<'q>>, condition: Option<Condition<'q>>) {
    if let Some(condition) = condition {
        if conditions.is_empty() {
            conditions.reserve_exact(1);
        }
        conditions.push(condition);
    }
}
