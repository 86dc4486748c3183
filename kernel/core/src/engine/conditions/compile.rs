//! From the normal form to a plan.
//!
//! The main path becomes a short list of checks that climb from an end towards the root. The
//! automaton has already seen names and axes, so a step without predicates needs no check where
//! its element follows from the end: in the run of `/` steps at the end of the path (so many
//! parents up) and in the one at its beginning (so deep). Only a step between two `//` can be bound
//! in several ways; then every step on the way is checked, as sets of elements.

use super::plan::{
    ANY, Arrays, Check, Named, NestedPath, Operation, Plan, Reach, Slice, TestNumber, TextRange,
};
use crate::engine::ask::Ask;
use crate::language::comparison::Comparison;
use crate::language::numbers::{Notation, number};
use crate::language::query::anchoring::counts_siblings;
use crate::language::query::ast::{Axis, Condition, Constant, NameTest, Operator, Stage, Step};
use rustc_hash::FxHasher;
use std::hash::Hasher;

impl Plan {
    /// Compiles a query in normal form. Cost: linear in its size; recursion as deep as its nested
    /// paths are nested.
    pub fn compile(steps: &[Step<'_>]) -> Plan {
        let mut compiler = Compiler::default();
        let checks = compiler.main_path(steps);
        let main = append(&mut compiler.arrays.checks, checks);
        compiler.arrays.into_plan(main)
    }
}

#[derive(Default)]
struct Compiler {
    arrays: Arrays,
    /// Keys of the nested paths to come, the next one last.
    keys: Vec<TextRange>,
}

impl Compiler {
    fn main_path(&mut self, steps: &[Step<'_>]) -> Vec<Check> {
        let mut checks = Vec::new();
        let leading = steps.iter().take_while(|step| step.axis == Axis::Child).count();
        let tail = steps.iter().rposition(|step| step.axis != Axis::Child).unwrap_or(0);
        let has_conditions = |at: &usize| !steps[*at].stages.is_empty();

        let mut bound = steps.len().saturating_sub(1);
        for at in (tail..steps.len()).rev().filter(has_conditions) {
            checks.push(self.check(&steps[at], Reach::Up((bound - at) as u32)));
            bound = at;
        }
        if (leading..tail).any(|at| has_conditions(&at)) {
            if bound > tail {
                checks.push(bare(Reach::Up((bound - tail) as u32)));
            }
            for at in (leading..tail).rev() {
                checks.push(self.check(&steps[at], climb(steps[at + 1].axis)));
            }
            bound = leading;
            if leading > 0 {
                bound = leading - 1;
                checks.push(self.check(&steps[bound], Reach::ToDepth(bound as u32)));
            }
        } else {
            bound = steps.len();
        }
        for at in (0..leading.min(tail).min(bound)).rev().filter(has_conditions) {
            checks.push(self.check(&steps[at], Reach::ToDepthOrSelf(at as u32)));
        }
        checks
    }

    /// A nested path, with the nested paths inside it; the number it gets.
    fn nested_path(&mut self, steps: &[Step<'_>]) -> u32 {
        if self.keys.is_empty() {
            let mut keys = Vec::new();
            write_path_key(steps, &mut self.arrays.text, &mut keys);
            keys.reverse();
            self.keys = keys;
        }
        let key = self.keys.pop().unwrap_or(TextRange { start: 0, end: 0 });
        let mut hasher = FxHasher::default();
        hasher.write(&self.arrays.text.as_bytes()[key.start as usize..key.end as usize]);
        let key_hash = hasher.finish();

        let mut checks = Vec::with_capacity(steps.len());
        for at in (0..steps.len()).rev() {
            let reach = steps.get(at + 1).map_or(Reach::Everywhere, |next| climb(next.axis));
            checks.push(self.check(&steps[at], reach));
        }
        let checks = append(&mut self.arrays.checks, checks);
        let axis = steps.first().map_or(Axis::DescendantOrSelf, |step| step.axis);
        self.arrays.nested.push(NestedPath { checks, axis, key, key_hash });
        (self.arrays.nested.len() - 1) as u32
    }

    fn check(&mut self, step: &Step<'_>, reach: Reach) -> Check {
        let test = self.arrays.add_test(Named::Element, &step.test);
        let by_siblings = counts_siblings(step);
        let mut operations = Vec::new();
        for stage in &step.stages {
            self.stage(stage, step.axis, test, by_siblings, &mut operations);
        }
        let operations = append(&mut self.arrays.operations, operations);
        Check { reach, test, operations, by_siblings }
    }

    fn stage(
        &mut self,
        stage: &Stage<'_>,
        axis: Axis,
        test: TestNumber,
        by_siblings: bool,
        operations: &mut Vec<Operation>,
    ) {
        if axis == Axis::DescendantOrSelf {
            // `//.` is a step to the element itself, which is the first of one.
            let holds = stage.positions.iter().all(|&(op, at)| op.holds(1.0, at));
            if !holds {
                operations.push(Operation::Never);
            }
        } else if !stage.positions.is_empty() {
            let positions = append(&mut self.arrays.positions, stage.positions.clone());
            operations.push(match (by_siblings, test) {
                (true, _) => Operation::Position(positions),
                (false, ANY) => Operation::OrdinalOfAny(positions),
                (false, _) => Operation::OrdinalOfName(positions),
            });
        }
        let from = operations.len();
        for condition in &stage.conditions {
            let operation = self.condition(condition);
            operations.push(operation);
        }
        // Cheap ones first; the order within a stage does not change what passes.
        operations[from..].sort_by_key(|operation| match operation {
            Operation::Attribute(..) => 0,
            Operation::Text(_) => 1,
            Operation::Value(_) => 2,
            _ => 3,
        });
    }

    fn condition(&mut self, condition: &Condition<'_>) -> Operation {
        let ask = ask_of(condition.compare()).map(|text| self.arrays.add_text(text));
        match condition {
            Condition::Attribute { test, .. } => {
                Operation::Attribute(self.arrays.add_test(Named::Attribute, test), ask)
            }
            Condition::Text(_) => Operation::Text(ask),
            Condition::Value(..) => Operation::Value(ask),
            Condition::Nested(steps) => Operation::Nested(self.nested_path(steps)),
        }
    }
}

/// What a comparison asks of a value; that there is one if there is no comparison.
pub(crate) fn ask_of<'c>(compare: Option<(Operator, &'c Constant<'_>)>) -> Ask<&'c str> {
    let Some((operator, constant)) = compare else { return Ask::Exists };
    match (operator, constant) {
        (
            Operator::Compare(comparison @ (Comparison::Eq | Comparison::Ne)),
            Constant::String(literal),
        ) => Ask::Text(comparison, literal),
        (Operator::StartsWith, Constant::String(literal)) => Ask::StartsWith(literal),
        (Operator::Contains, Constant::String(literal)) => Ask::Contains(literal),
        (Operator::Compare(comparison), Constant::String(literal)) => {
            Ask::Number(comparison, number(literal.as_bytes()))
        }
        (Operator::Compare(comparison), Constant::Number(constant)) => {
            Ask::Number(comparison, *constant)
        }
        (Operator::Compare(comparison), Constant::Double(constant)) => {
            Ask::Cast(comparison, *constant)
        }
        (Operator::Compare(comparison), Constant::Moment(kind, bound)) => {
            Ask::Moment(Notation::of_moments(*kind), comparison, *bound)
        }
        (Operator::Compare(_), Constant::Strings(values)) => Ask::OneOf(values.text()),
        (Operator::Compare(_), Constant::Doubles(values)) => Ask::CastOneOf(values.text()),
        (Operator::StartsWith | Operator::Contains, _) => {
            unreachable!("functions compare strings")
        }
    }
}

/// The way from the elements of a step back to those of the step before.
fn climb(axis: Axis) -> Reach {
    match axis {
        Axis::Child => Reach::Parent,
        Axis::Descendant => Reach::Ancestors,
        Axis::DescendantOrSelf => Reach::AncestorsOrSelf,
    }
}

fn bare(reach: Reach) -> Check {
    Check { reach, test: ANY, operations: Slice::default(), by_siblings: false }
}

fn append<T>(array: &mut Vec<T>, entries: Vec<T>) -> Slice {
    let start = array.len() as u32;
    array.extend(entries);
    Slice { start, end: array.len() as u32 }
}

/// A text that is the same for two nested paths exactly if they are the same.
pub(crate) fn path_key(steps: &[Step<'_>]) -> String {
    let (mut key, mut keys) = (String::new(), Vec::new());
    write_path_key(steps, &mut key, &mut keys);
    key.truncate(keys[0].end as usize);
    key
}

/// Writes what tells a nested path from every other one and, into `keys`, where it stands; the same
/// for the nested paths inside it, in the order in which they are compiled. Texts carry their
/// length, so nothing in them can be taken for structure.
fn write_path_key(steps: &[Step<'_>], key: &mut String, keys: &mut Vec<TextRange>) {
    let number = keys.len();
    let start = key.len() as u32;
    keys.push(TextRange { start, end: start });
    for step in steps.iter().rev() {
        key.push(match step.axis {
            Axis::Child => '/',
            Axis::Descendant => '~',
            Axis::DescendantOrSelf => '.',
        });
        write_test_key(&step.test, key);
        for stage in &step.stages {
            key.push('[');
            for (operator, position) in &stage.positions {
                key.push('p');
                write_comparison_key(
                    Operator::Compare(*operator),
                    &Constant::Number(*position),
                    key,
                );
            }
            for condition in &stage.conditions {
                write_condition_key(condition, key, keys);
            }
        }
    }
    key.push(';');
    keys[number].end = key.len() as u32;
}

fn write_condition_key(condition: &Condition<'_>, key: &mut String, keys: &mut Vec<TextRange>) {
    let compare = match condition {
        Condition::Attribute { test, compare } => {
            key.push('@');
            write_test_key(test, key);
            compare.as_ref().map(|(operator, constant)| (*operator, constant))
        }
        Condition::Text(compare) => {
            key.push('t');
            compare.as_ref().map(|(operator, constant)| (*operator, constant))
        }
        Condition::Value(operator, constant) => {
            key.push('v');
            Some((*operator, constant))
        }
        Condition::Nested(steps) => {
            key.push('(');
            return write_path_key(steps, key, keys);
        }
    };
    match compare {
        None => key.push('e'),
        Some((operator, constant)) => write_comparison_key(operator, constant, key),
    }
}

fn write_test_key(test: &NameTest<'_>, key: &mut String) {
    match test {
        NameTest::Any => key.push('*'),
        NameTest::Name { uri, local } => {
            key.push('n');
            write_text_key(uri, key);
            write_text_key(local, key);
        }
        NameTest::AnyIn { uri } => {
            key.push('u');
            write_text_key(uri, key);
        }
        NameTest::AnyNamespace { local } => {
            key.push('l');
            write_text_key(local, key);
        }
    }
}

fn write_comparison_key(operator: Operator, constant: &Constant<'_>, key: &mut String) {
    key.push(match operator {
        Operator::Compare(Comparison::Eq) => '=',
        Operator::Compare(Comparison::Ne) => '!',
        Operator::Compare(Comparison::Lt) => '<',
        Operator::Compare(Comparison::Le) => '{',
        Operator::Compare(Comparison::Gt) => '>',
        Operator::Compare(Comparison::Ge) => '}',
        Operator::StartsWith => '^',
        Operator::Contains => '$',
    });
    match constant {
        // Most numbers are small integers, whose last bits are zero.
        Constant::Number(number) => write_number_key(number.to_bits().swap_bytes(), key),
        Constant::Double(number) => {
            key.push('x');
            write_number_key(number.to_bits().swap_bytes(), key);
        }
        Constant::Moment(kind, bound) => {
            key.push('m');
            write_number_key(*kind as u64, key);
            write_number_key(bound.to_bits().swap_bytes(), key);
        }
        Constant::Strings(values) => {
            key.push('o');
            write_text_key(values.text(), key);
        }
        Constant::Doubles(values) => {
            key.push('c');
            write_text_key(values.text(), key);
        }
        Constant::String(literal) => {
            key.push('s');
            write_text_key(literal, key);
        }
    }
}

fn write_text_key(text: &str, key: &mut String) {
    write_number_key(text.len() as u64, key);
    key.push_str(text);
}

/// Five bits a character, the last ones first, and one bit that says whether others follow.
fn write_number_key(mut number: u64, key: &mut String) {
    while number >= 32 {
        key.push(char::from(b'P' + (number & 31) as u8));
        number >>= 5;
    }
    key.push(char::from(b'0' + number as u8));
}
