//! Values of expressions (XQuery 1.0, 3).
//!
//! `eval` puts the items of an expression on the stack; who only wants its truth, its first item or
//! its nodes asks for that, which often is less work.

use super::run::{Evaluator, Focus, Keeps, Run};
use super::truth::effective_boolean;
use super::value::{Item, Slot, Text};
use crate::engine::evaluate::document::{Main, Node, Sort};
use crate::engine::evaluate::path_machine::PathMachine;
use crate::language::arithmetic::Arithmetic;
use crate::language::numbers::untyped_number;
use crate::language::types::Type;
use crate::language::xpath::List;
use crate::language::xquery::syntax::{Clause, Expr, ExprId, Number};

/// Asked for each tuple of a FLWOR expression; true ends it.
pub(super) type Each<'f, 'r, 'w> = &'f mut dyn FnMut(&mut Evaluator<'r, 'w>) -> Run<bool>;

impl<'r, 'w> Evaluator<'r, 'w> {
    /// Puts the items of an expression on the stack.
    pub(crate) fn eval(&mut self, id: ExprId) -> Run<()> {
        match self.program.expr(id) {
            Expr::Sequence(list) => {
                for &item in self.program.list(list) {
                    self.eval(item)?;
                }
            }
            Expr::Flwor { clauses, condition, order, body } => {
                return self.eval_flwor(clauses, condition, order, body);
            }
            Expr::If { condition, then, otherwise } => {
                let chosen = if self.truth(condition)? { then } else { otherwise };
                return self.eval(chosen);
            }
            Expr::Quantified { .. }
            | Expr::Or(_)
            | Expr::And(_)
            | Expr::Comparison { is_value: false, .. } => {
                let truth = self.truth(id)?;
                self.push_boolean(truth);
            }
            Expr::InstanceOf { item, occurrence, operand } => {
                let is_instance = self.is_instance(item, occurrence, operand)?;
                self.push_boolean(is_instance);
            }
            Expr::Range { first, last } => self.eval_range(first, last)?,
            Expr::SimpleMap { source, body } => {
                self.mapped(source, Keeps::Results, &mut |evaluator| {
                    evaluator.eval(body)?;
                    Ok(false)
                })?;
            }
            Expr::Comparison { operator, left, right, .. } => {
                if let Some(truth) = self.compare_values(operator, left, right)? {
                    self.push_boolean(truth);
                }
            }
            Expr::Arithmetic { operator, left, right } => {
                let mark = self.mark();
                let (left, right) = (self.first_atom(left)?, self.first_atom(right)?);
                if let (Some(left), Some(right)) = (left, right) {
                    let item = self.calculate(operator, left, right)?;
                    self.release(mark);
                    self.push(item);
                }
            }
            Expr::Negation(operand) => {
                if let Some(number) = self.first_number(operand)? {
                    self.push(Item::Number(number.negated()));
                }
            }
            Expr::Cast { to, operand } => {
                let cast = self.cast(to, operand)?;
                cast.into_iter().for_each(|item| self.push(item));
            }
            Expr::Castable { to, is_optional, operand } => {
                let is_castable = self.is_castable(to, is_optional, operand)?;
                self.push_boolean(is_castable);
            }
            Expr::Union(_) | Expr::Intersection { .. } | Expr::Path { .. } => {
                let nodes = self.nodes(id)?;
                self.budget.charge(nodes.len() as u64)?;
                self.state.stack.extend(nodes.iter().map(|&node| Item::Node(node)));
                self.give_list(nodes);
            }
            Expr::Filter { primary, predicates, .. } => {
                let mark = self.state.stack.len();
                self.eval(primary)?;
                for &predicate in self.program.list(predicates) {
                    self.filter_stack(mark, predicate)?;
                }
            }
            Expr::Variable(slot) => match self.state.slots[slot as usize] {
                Slot::Item(item) => self.push(item),
                Slot::Run { start, end } => {
                    self.budget.charge(u64::from(end - start))?;
                    self.state.stack.extend_from_within(start as usize..end as usize);
                }
            },
            Expr::String(range) => self.push(Item::String(Text::of_program(range))),
            Expr::Number(number) => self.push(Item::Number(number)),
            Expr::Call(function, list) => return self.call(id, function, list),
            Expr::ContextItem => {
                let item = self.focus.map_or(Item::Node(Node::ROOT), |focus| focus.item);
                self.push(item);
            }
            Expr::Element(number) => {
                let item = self.build(number)?;
                self.push(item);
            }
        }
        Ok(())
    }

    /// The first item of an expression, if it has one.
    pub(crate) fn first(&mut self, id: ExprId) -> Run<Option<Item>> {
        match self.program.expr(id) {
            Expr::Path { start, steps } => {
                return Ok(self.first_node(id, start, steps)?.map(Item::Node));
            }
            Expr::Variable(slot) => {
                if let Slot::Item(item) = self.state.slots[slot as usize] {
                    return Ok(Some(item));
                }
            }
            _ => {}
        }
        let stack = self.state.stack.len();
        self.eval(id)?;
        let first = self.state.stack.get(stack).copied();
        self.state.stack.truncate(stack);
        Ok(first)
    }

    /// The first item of an expression as an atomic value.
    pub(crate) fn first_atom(&mut self, id: ExprId) -> Run<Option<Item>> {
        match self.first(id)? {
            Some(item) => Ok(Some(self.atomised(item)?)),
            None => Ok(None),
        }
    }

    /// The first item of an expression as a number.
    pub(crate) fn first_number(&mut self, id: ExprId) -> Run<Option<Number>> {
        let mark = self.mark();
        let Some(atom) = self.first_atom(id)? else {
            return Ok(None);
        };
        let number = self.number_of(atom)?;
        self.release(mark);
        Ok(Some(number))
    }

    /// The value of an item. Of comments and instructions it is a string.
    pub(crate) fn atomised(&mut self, item: Item) -> Run<Item> {
        let Item::Node(node) = item else {
            return Ok(item);
        };
        let text = self.node_text(node)?;
        Ok(match self.document.sort(node) {
            Sort::Main(Main::Markup(_)) => Item::String(text),
            _ => Item::Untyped(text),
        })
    }

    /// Atomises what is on the stack from a place on.
    pub(crate) fn atomise_stack(&mut self, mark: usize) -> Run<()> {
        for index in mark..self.state.stack.len() {
            let item = self.atomised(self.state.stack[index])?;
            self.state.stack[index] = item;
        }
        Ok(())
    }

    /// An atomic value as a number; what is none is NaN.
    pub(crate) fn number_of(&mut self, atom: Item) -> Run<Number> {
        Ok(match atom {
            Item::Number(number) => number,
            Item::Boolean(value) => Number::Double(f64::from(u8::from(value))),
            Item::String(text) | Item::Untyped(text) => {
                self.budget.charge_text(text.len())?;
                Number::Double(untyped_number(self.bytes(text)))
            }
            Item::Moment(_) | Item::Node(_) | Item::Built { .. } => Number::Double(f64::NAN),
        })
    }

    /// The value of an operator between atomic values; NaN where there is none.
    pub(crate) fn calculate(&mut self, operator: Arithmetic, left: Item, right: Item) -> Run<Item> {
        use Arithmetic::{Add, Divide, Multiply, Subtract};
        let found = match (operator, left, right) {
            (Add, Item::Moment(left), Item::Moment(right)) => left.plus(right),
            (Subtract, Item::Moment(left), Item::Moment(right)) => left.minus(right),
            (Divide, Item::Moment(left), Item::Moment(right)) => {
                let ratio = left.ratio(right).map(Number::decimal);
                return Ok(Item::Number(ratio.unwrap_or(Number::Double(f64::NAN))));
            }
            (Multiply, Item::Moment(left), other) | (Multiply, other, Item::Moment(left)) => {
                left.times(self.number_of(other)?.value())
            }
            (Divide, Item::Moment(left), other) => left.over(self.number_of(other)?.value()),
            (_, Item::Moment(_), _) | (_, _, Item::Moment(_)) => None,
            _ => {
                let (left, right) = (self.number_of(left)?, self.number_of(right)?);
                return Ok(Item::Number(Number::calculate(operator, left, right)));
            }
        };
        Ok(found.map_or(Item::double(f64::NAN), Item::Moment))
    }

    /// An item as text.
    pub(crate) fn text_of(&mut self, item: Item) -> Run<Text> {
        match item {
            Item::String(text) | Item::Untyped(text) => Ok(text),
            Item::Node(node) => self.node_text(node),
            Item::Boolean(value) => self.keep(if value { b"true" } else { b"false" }),
            Item::Number(number) => {
                let start = self.state.text.len();
                self.charge_new_text(0)?;
                number.write(&mut self.state.text);
                Ok(Text::kept(start, self.state.text.len()))
            }
            Item::Moment(moment) => {
                let start = self.state.text.len();
                self.charge_new_text(0)?;
                moment.write(&mut self.state.text);
                Ok(Text::kept(start, self.state.text.len()))
            }
            // Nothing reads the value of an element that is built: the parser sees to it.
            Item::Built { .. } => Ok(Text::EMPTY),
        }
    }
}

/// FLWOR and predicates.
impl<'r, 'w> Evaluator<'r, 'w> {
    fn eval_flwor(
        &mut self,
        clauses: List,
        condition: Option<ExprId>,
        order: List,
        body: ExprId,
    ) -> Run<()> {
        let clauses = self.program.clauses(clauses);
        if order.is_empty() {
            self.tuples(clauses, condition, Keeps::Results, &mut |evaluator| {
                evaluator.eval(body)?;
                Ok(false)
            })?;
            return Ok(());
        }
        let mark = self.state.stack.len();
        let tuples = self.ordered(clauses, condition, order)?;
        let results = self.state.stack.len();
        for tuple in tuples.iter() {
            self.restore(clauses, tuple);
            self.eval(body)?;
        }
        self.state.stack.drain(mark..results);
        Ok(())
    }

    /// Asks for every tuple of clauses for which the condition holds; true if the answer was true
    /// once.
    pub(crate) fn tuples(
        &mut self,
        clauses: &'r [Clause],
        condition: Option<ExprId>,
        keeps: Keeps,
        each: Each<'_, 'r, 'w>,
    ) -> Run<bool> {
        let Some((clause, rest)) = clauses.split_first() else {
            let holds = match condition {
                Some(condition) => self.truth(condition)?,
                None => true,
            };
            return if holds { each(self) } else { Ok(false) };
        };
        self.budget.charge(1)?;
        let mark = self.mark();
        let (is_found, end) = match *clause {
            Clause::Let { variable, value } => {
                self.eval(value)?;
                let end = self.bind_all(variable, mark.stack);
                (self.tuples(rest, condition, keeps, each)?, end)
            }
            Clause::For { source, .. } => {
                if self.program.expr(source).gives_ordered_nodes() {
                    let nodes = self.nodes(source)?;
                    let mut is_found = false;
                    for (index, &node) in nodes.iter().enumerate() {
                        let item = (Item::Node(node), index);
                        is_found = self.one_item(item, clauses, condition, keeps, each)?;
                        if is_found {
                            break;
                        }
                    }
                    self.give_list(nodes);
                    return Ok(is_found);
                }
                self.eval(source)?;
                let end = self.state.stack.len();
                let mut is_found = false;
                for index in mark.stack..end {
                    let item = (self.state.stack[index], index - mark.stack);
                    is_found = self.one_item(item, clauses, condition, keeps, each)?;
                    if is_found {
                        break;
                    }
                }
                (is_found, end)
            }
        };
        match keeps {
            Keeps::Nothing => self.release(mark),
            Keeps::Results => drop(self.state.stack.drain(mark.stack..end)),
            Keeps::Variables => {}
        }
        Ok(is_found)
    }

    /// Asks with each item of an expression as the context item; true if the answer was true once.
    pub(crate) fn mapped(
        &mut self,
        source: ExprId,
        keeps: Keeps,
        each: Each<'_, 'r, 'w>,
    ) -> Run<bool> {
        let mark = self.mark();
        self.eval(source)?;
        let end = self.state.stack.len();
        let size = (end - mark.stack) as u32;
        let mut is_found = false;
        for (position, index) in (1..=size).zip(mark.stack..end) {
            self.budget.charge(1)?;
            let inner = self.mark();
            let item = self.state.stack[index];
            let outer = self.focus.replace(Focus { item, position, size });
            let answer = each(self);
            self.focus = outer;
            is_found = answer?;
            if keeps == Keeps::Nothing {
                self.release(inner);
            }
            if is_found {
                break;
            }
        }
        match keeps {
            Keeps::Nothing => self.release(mark),
            Keeps::Results | Keeps::Variables => drop(self.state.stack.drain(mark.stack..end)),
        }
        Ok(is_found)
    }

    /// `first to last`: nothing if one of them cannot be cast to an integer of 64 bits.
    fn eval_range(&mut self, first: ExprId, last: ExprId) -> Run<()> {
        let mut ends = [0; 2];
        for (end, operand) in ends.iter_mut().zip([first, last]) {
            let Some(Item::Number(Number::Integer(value))) = self.cast(Type::Integer, operand)?
            else {
                return Ok(());
            };
            *end = value;
        }
        let [first, last] = ends;
        if first <= last {
            self.budget.charge(last.abs_diff(first).saturating_add(1))?;
            let numbers = (first..=last).map(|value| Item::Number(Number::Integer(value)));
            self.state.stack.extend(numbers);
        }
        Ok(())
    }

    /// Binds a variable to what is on the stack from a place on; gives the end of what stays there.
    fn bind_all(&mut self, variable: u32, start: usize) -> usize {
        let end = self.state.stack.len();
        let slot = if end == start + 1 {
            let item = self.state.stack[start];
            self.state.stack.truncate(start);
            Slot::Item(item)
        } else {
            Slot::Run { start: start as u32, end: end as u32 }
        };
        self.state.slots[variable as usize] = slot;
        self.state.stack.len()
    }

    /// The tuples of one item of the first clause, which is `for`, and its index.
    fn one_item(
        &mut self,
        (item, index): (Item, usize),
        clauses: &'r [Clause],
        condition: Option<ExprId>,
        keeps: Keeps,
        each: Each<'_, 'r, 'w>,
    ) -> Run<bool> {
        let Some((&Clause::For { variable, position, .. }, rest)) = clauses.split_first() else {
            return Ok(false);
        };
        self.budget.charge(1)?;
        self.state.slots[variable as usize] = Slot::Item(item);
        if let Some(position) = position {
            self.state.slots[position as usize] = Slot::Item(Item::integer(index + 1));
        }
        let mark = self.mark();
        let is_found = self.tuples(rest, condition, keeps, each)?;
        if keeps == Keeps::Nothing {
            self.release(mark);
        }
        Ok(is_found)
    }

    /// Keeps the items on the stack from a place on for which a predicate holds.
    fn filter_stack(&mut self, mark: usize, predicate: ExprId) -> Run<()> {
        let size = self.state.stack.len() - mark;
        let mut kept = mark;
        for index in 0..size {
            self.budget.charge(1)?;
            let item = self.state.stack[mark + index];
            let focus = Focus { item, position: index as u32 + 1, size: size as u32 };
            if self.holds(predicate, focus)? {
                self.state.stack[kept] = item;
                kept += 1;
            }
        }
        self.state.stack.truncate(kept);
        Ok(())
    }

    /// Whether a predicate holds for an item: a number is a position.
    pub(crate) fn holds(&mut self, predicate: ExprId, focus: Focus) -> Run<bool> {
        let outer = self.focus.replace(focus);
        let holds = match self.program.expr(predicate) {
            Expr::Number(number) => Ok(number.value() == f64::from(focus.position)),
            Expr::Path { .. }
            | Expr::Union(_)
            | Expr::Intersection { .. }
            | Expr::Or(_)
            | Expr::And(_)
            | Expr::Quantified { .. }
            | Expr::Comparison { is_value: false, .. } => self.truth(predicate),
            _ => self.holds_or_is_position(predicate, focus.position),
        };
        self.focus = outer;
        holds
    }

    fn holds_or_is_position(&mut self, predicate: ExprId, position: u32) -> Run<bool> {
        let mark = self.mark();
        self.eval(predicate)?;
        let holds = match self.state.stack[mark.stack..] {
            [Item::Number(number)] => number.value() == f64::from(position),
            ref items => effective_boolean(items),
        };
        self.release(mark);
        Ok(holds)
    }
}
