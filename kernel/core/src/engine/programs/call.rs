//! The functions (XQuery 1.0 and XPath 2.0 Functions and Operators).
//!
//! Arguments are converted as their function wants them: of a sequence where one item is wanted the
//! first is used, of anything where text is wanted its string, of anything where a number is wanted
//! the number. A missing item is the empty text, NaN for a position in `substring`, and nothing for
//! a function of a number.

use super::RunError;
use super::numbers::text_number;
use super::run::{Evaluator, Run};
use super::value::{Item, Text};
use crate::engine::evaluate::budget::BYTES_PER_STEP;
use crate::engine::evaluate::call::{
    add_elements_with_ids, is_same_language, language_of, name_of,
};
use crate::engine::evaluate::document::Node;
use crate::engine::evaluate::path_machine::{PathMachine, put_in_order};
use crate::language::arithmetic::Arithmetic;
use crate::language::folding::Fold;
use crate::language::functions::Function;
use crate::language::moments::Moment;
use crate::language::strings;
use crate::language::types::Type;
use crate::language::xpath::List;
use crate::language::xquery::syntax::{ExprId, Number};
use memchr::memmem;
use std::borrow::Cow;

impl<'r> Evaluator<'r, '_> {
    /// Puts the value of a call on the stack.
    pub(crate) fn call(&mut self, id: ExprId, function: Function, list: List) -> Run<()> {
        use Function::*;
        self.budget.charge(1)?;
        let arguments = self.program.list(list);
        let item = match function {
            True => Item::Boolean(true),
            False => Item::Boolean(false),
            Position => Item::integer(self.focus.map_or(1, |focus| focus.position as usize)),
            Last => Item::integer(self.focus.map_or(1, |focus| focus.size as usize)),
            Not => Item::Boolean(!self.truth(arguments[0])?),
            Boolean => Item::Boolean(self.truth(arguments[0])?),
            Exists => Item::Boolean(self.exists(arguments[0])?),
            Empty => Item::Boolean(!self.exists(arguments[0])?),
            Count => Item::integer(self.item_count(arguments[0])?),
            Contains | StartsWith | EndsWith => self.search_text(function, arguments)?,
            Compare => match self.compare_texts(arguments)? {
                Some(sign) => sign,
                None => return Ok(()),
            },
            DeepEqual => Item::Boolean(self.are_deep_equal(arguments)?),
            Matches | Replace | Tokenize => return self.of_pattern(id, function, arguments[0]),
            Lang => self.lang(arguments[0])?,
            StringLength => {
                let text = self.argument_text(arguments[0])?;
                Item::integer(strings::char_count(self.bytes(text)))
            }
            String => Item::String(self.argument_text(arguments[0])?),
            Concat => self.concat(arguments)?,
            StringJoin => self.string_join(arguments)?,
            NormalizeSpace | NormalizeUnicode | SubstringBefore | SubstringAfter | Translate
            | UpperCase | LowerCase | Substring => self.change_text(function, arguments)?,
            Name | LocalName | NamespaceUri => match self.first(arguments[0])? {
                Some(Item::Node(node)) => Item::String(self.name_of(function, node)?),
                _ => Item::String(Text::EMPTY),
            },
            Number => {
                let number = self.first_number(arguments[0])?;
                Item::double(number.map_or(f64::NAN, |number| number.value()))
            }
            Round if arguments.len() > 1 => match self.rounded_up(arguments)? {
                Some(item) => item,
                None => return Ok(()),
            },
            Floor | Ceiling | Round | Abs => {
                let Some(number) = self.first_number(arguments[0])? else {
                    return Ok(());
                };
                Item::Number(match function {
                    Floor => number.floor(),
                    Ceiling => number.ceiling(),
                    Round => number.round(),
                    _ => number.absolute(),
                })
            }
            Head | Tail | Reverse | Remove | InsertBefore | Subsequence => {
                return self.choose(function, arguments);
            }
            IndexOf => return self.index_of(arguments),
            StringToCodepoints => return self.codepoints(arguments[0]),
            CodepointsToString => self.text_of_codepoints(arguments[0])?,
            EncodeForUri => self.encoded(arguments[0])?,
            CurrentDate
            | CurrentDateTime
            | CurrentTime
            | ImplicitTimezone
            | DateTime
            | RoundHalfToEven
            | FormatNumber
            | FormatDate
            | FormatDateTime
            | FormatTime
            | AdjustDateToTimezone
            | AdjustDateTimeToTimezone
            | AdjustTimeToTimezone => {
                let found = match function {
                    FormatNumber | FormatDate | FormatDateTime | FormatTime => {
                        self.pictured(id, function, arguments[0])?
                    }
                    AdjustDateToTimezone | AdjustDateTimeToTimezone | AdjustTimeToTimezone => {
                        self.adjusted(function, arguments)?
                    }
                    CurrentDate => self.current(Type::Date),
                    CurrentDateTime => self.current(Type::DateTime),
                    CurrentTime => self.current(Type::Time),
                    // UTC.
                    ImplicitTimezone => Moment::of_micros(0).timezone().map(Item::Moment),
                    DateTime => self.date_with_time(arguments)?,
                    _ => self.rounded_to_even(arguments)?,
                };
                match found {
                    Some(item) => item,
                    None => return Ok(()),
                }
            }
            Sum | Avg => match self.total(function, arguments[0])? {
                Some(total) => total,
                None => return Ok(()),
            },
            Data | DistinctValues | Min | Max | Id => {
                return self.of_sequence(function, arguments);
            }
            // The others give a part of a date, a time or a duration.
            _ => {
                let Some(component) = function.component() else { return Ok(()) };
                let Some(item) = self.component(component, arguments[0])? else { return Ok(()) };
                item
            }
        };
        self.push(item);
        Ok(())
    }

    fn item_count(&mut self, id: ExprId) -> Run<usize> {
        if self.program.expr(id).gives_ordered_nodes() {
            let nodes = self.nodes(id)?;
            let count = nodes.len();
            self.give_list(nodes);
            return Ok(count);
        }
        let mark = self.mark();
        self.eval(id)?;
        let count = self.state.stack.len() - mark.stack;
        self.release(mark);
        Ok(count)
    }

    /// The first item of an argument as text, charged as text that is gone through.
    pub(super) fn argument_text(&mut self, id: ExprId) -> Run<Text> {
        let Some(item) = self.first(id)? else {
            return Ok(Text::EMPTY);
        };
        let text = self.text_of(item)?;
        self.budget.charge_text(text.len())?;
        Ok(text)
    }

    fn search_text(&mut self, function: Function, arguments: &[ExprId]) -> Run<Item> {
        let mark = self.mark();
        let text = self.argument_text(arguments[0])?;
        let part = self.argument_text(arguments[1])?;
        let (text, part) = (self.bytes(text), self.bytes(part));
        let is_found = match function {
            Function::Contains => memmem::find(text, part).is_some(),
            Function::StartsWith => text.starts_with(part),
            _ => text.ends_with(part),
        };
        self.release(mark);
        Ok(Item::Boolean(is_found))
    }

    /// `compare()`: -1, 0 or 1; nothing if a text is missing. The one collation that is left is the case-blind one.
    fn compare_texts(&mut self, arguments: &[ExprId]) -> Run<Option<Item>> {
        let mark = self.mark();
        let mut texts = [Text::EMPTY; 2];
        for (text, &argument) in texts.iter_mut().zip(arguments) {
            let Some(item) = self.first(argument)? else {
                self.release(mark);
                return Ok(None);
            };
            *text = self.text_of(item)?;
            self.budget.charge_text(text.len())?;
        }
        let [left, right] = texts.map(|text| self.bytes(text));
        let order = strings::order_of(left, right, arguments.len() > 2) as i64;
        self.release(mark);
        Ok(Some(Item::Number(Number::Integer(order))))
    }

    /// `matches()`, `replace()` and `tokenize()`. Cost: the text, times what the pattern says.
    fn of_pattern(&mut self, id: ExprId, function: Function, argument: ExprId) -> Run<()> {
        let text = self.argument_text(argument)?;
        let program = self.program;
        let Some(pattern) = program.pattern(id) else { return Ok(()) };
        self.budget.charge_text(pattern.cost(text.len()))?;
        match function {
            Function::Matches => {
                let is_match = pattern.is_match(self.bytes(text));
                self.push(Item::Boolean(is_match));
            }
            Function::Replace => {
                let bytes_max = (self.budget.left() as usize).saturating_mul(BYTES_PER_STEP);
                let replaced = pattern.replaced(self.bytes(text), bytes_max);
                let replaced = self.keep(&replaced.ok_or(RunError::OverBudget)?)?;
                self.push(Item::String(replaced));
            }
            _ if text.is_empty() => {}
            _ => {
                let parts = pattern.split(self.bytes(text));
                self.budget.charge(parts.len() as u64)?;
                for (start, end) in parts {
                    self.push(Item::String(text.part(start, end)));
                }
            }
        }
        Ok(())
    }

    fn concat(&mut self, arguments: &[ExprId]) -> Run<Item> {
        let mut texts = Vec::with_capacity(arguments.len());
        for &argument in arguments {
            texts.push(self.argument_text(argument)?);
        }
        let start = self.state.text.len();
        for text in texts {
            self.append(text)?;
        }
        Ok(Item::String(Text::kept(start, self.state.text.len())))
    }

    fn string_join(&mut self, arguments: &[ExprId]) -> Run<Item> {
        let separator = self.argument_text(arguments[1])?;
        let mark = self.state.stack.len();
        self.eval(arguments[0])?;
        for index in mark..self.state.stack.len() {
            let text = self.text_of(self.state.stack[index])?;
            self.state.stack[index] = Item::String(text);
        }
        let start = self.state.text.len();
        for index in mark..self.state.stack.len() {
            self.budget.charge(1)?;
            if index > mark {
                self.append(separator)?;
            }
            if let Item::String(text) = self.state.stack[index] {
                self.append(text)?;
            }
        }
        self.state.stack.truncate(mark);
        Ok(Item::String(Text::kept(start, self.state.text.len())))
    }

    /// Functions that make a text of a text.
    fn change_text(&mut self, function: Function, arguments: &[ExprId]) -> Run<Item> {
        let text = self.argument_text(arguments[0])?;
        let mut others = [Text::EMPTY; 2];
        let mut numbers = [f64::NAN; 2];
        for (index, &argument) in arguments.iter().skip(1).take(2).enumerate() {
            if function == Function::Substring {
                let number = self.first_number(argument)?;
                numbers[index] = number.map_or(f64::NAN, |number| number.value());
            } else {
                others[index] = self.argument_text(argument)?;
            }
        }
        let length = (arguments.len() > 2).then_some(numbers[1]);
        // The one collation that is left is the case-blind one.
        let is_case_blind = arguments.len() > 2;
        let whole = self.bytes(text);
        let bytes = Cow::Borrowed(whole);
        let changed = match function {
            Function::NormalizeSpace => strings::normalized(bytes),
            Function::SubstringBefore => {
                strings::before(bytes, self.bytes(others[0]), is_case_blind)
            }
            Function::SubstringAfter => strings::after(bytes, self.bytes(others[0]), is_case_blind),
            Function::Substring => strings::substring(bytes, numbers[0], length),
            Function::Translate => {
                Cow::Owned(strings::translated(whole, self.bytes(others[0]), self.bytes(others[1])))
            }
            Function::NormalizeUnicode => {
                let form = match arguments.len() {
                    1 => Cow::Borrowed("NFC"),
                    _ => String::from_utf8_lossy(self.bytes(others[0])),
                };
                let normal = strings::in_normal_form(&String::from_utf8_lossy(whole), &form);
                Cow::Owned(normal.into_bytes())
            }
            Function::UpperCase => Fold::Upper.of(whole),
            _ => Fold::Lower.of(whole),
        };
        // A part of the text needs no copy.
        let part = match &changed {
            Cow::Borrowed(b"") => Some(Text::EMPTY),
            Cow::Borrowed(part) => {
                let start = part.as_ptr() as usize - whole.as_ptr() as usize;
                Some(text.part(start, start + part.len()))
            }
            Cow::Owned(_) => None,
        };
        match (part, changed) {
            (Some(part), _) => Ok(Item::String(part)),
            (None, changed) => {
                let changed = changed.into_owned();
                Ok(Item::String(self.keep(&changed)?))
            }
        }
    }

    fn name_of(&mut self, function: Function, node: Node) -> Run<Text> {
        let name = name_of(&self.document, function, node);
        self.keep(&name)
    }

    /// `lang()`: what the nearest `xml:lang` says is the language or a dialect of it.
    fn lang(&mut self, argument: ExprId) -> Run<Item> {
        let wanted = self.argument_text(argument)?;
        let node = match self.focus.map(|focus| focus.item) {
            None => Node::ROOT,
            Some(Item::Node(node)) => node,
            Some(_) => return Ok(Item::Boolean(false)),
        };
        let found = language_of(&self.document, node, &mut self.budget)?;
        let is_same = found.is_some_and(|found| is_same_language(found, self.bytes(wanted)));
        Ok(Item::Boolean(is_same))
    }

    /// `sum()` and `avg()`; the average of nothing is nothing.
    fn total(&mut self, function: Function, argument: ExprId) -> Run<Option<Item>> {
        let mark = self.mark();
        self.eval(argument)?;
        let count = self.state.stack.len() - mark.stack;
        let mut total = Item::integer(0);
        for index in mark.stack..self.state.stack.len() {
            self.budget.charge(1)?;
            let item = match self.state.stack[index] {
                Item::Node(node) => Item::Number(self.node_number(node)?),
                item => item,
            };
            // Dates have no sum, not even one alone.
            let is_first =
                index == mark.stack && matches!(item, Item::Moment(it) if it.kind().is_duration());
            total = if is_first { item } else { self.calculate(Arithmetic::Add, total, item)? };
        }
        self.release(mark);
        if function == Function::Sum {
            return Ok(Some(total));
        }
        if count == 0 {
            return Ok(None);
        }
        self.calculate(Arithmetic::Divide, total, Item::integer(count)).map(Some)
    }

    fn node_number(&mut self, node: Node) -> Run<Number> {
        let mark = self.mark();
        let text = self.node_text(node)?;
        let number = text_number(self.bytes(text));
        self.release(mark);
        Ok(number)
    }

    /// Functions of all items of an argument that put any number on the stack.
    fn of_sequence(&mut self, function: Function, arguments: &[ExprId]) -> Run<()> {
        let mark = self.state.stack.len();
        // The one collation that is left is the case-blind one.
        let is_case_blind = arguments.len() > 1;
        self.eval(arguments[0])?;
        self.budget.charge((self.state.stack.len() - mark) as u64)?;
        self.atomise_stack(mark)?;
        match function {
            Function::Min | Function::Max if self.state.stack.len() > mark => {
                let found = self.extreme(mark, function == Function::Max, is_case_blind)?;
                self.state.stack.truncate(mark);
                self.push(found);
            }
            Function::DistinctValues => self.make_distinct(mark, is_case_blind)?,
            Function::Id => self.make_elements_with_ids(mark)?,
            _ => {}
        }
        Ok(())
    }

    /// `id()`: in the place of texts the elements whose ids are among their words.
    fn make_elements_with_ids(&mut self, mark: usize) -> Run<()> {
        let mut found = self.take_list();
        for index in mark..self.state.stack.len() {
            let text = self.text_of(self.state.stack[index])?;
            self.budget.charge_text(text.len())?;
            let text = self.bytes(text).to_vec();
            let (ids, budget) = (&mut self.state.ids, &mut self.budget);
            add_elements_with_ids(&self.document, ids, &text, budget, &mut found)?;
        }
        put_in_order(&mut found);
        self.state.stack.truncate(mark);
        self.state.stack.extend(found.iter().map(|&node| Item::Node(node)));
        self.give_list(found);
        Ok(())
    }
}
