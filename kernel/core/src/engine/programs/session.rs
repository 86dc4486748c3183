//! Runs over one message, which is prepared for them once.

use super::run::{Evaluator, Run, State};
use super::{Bounds, Results, RunError};
use crate::engine::evaluate;
use crate::engine::evaluate::Value;
use crate::engine::evaluate::budget::BYTES_PER_STEP;
use crate::language::xpath::Expression;
use crate::language::xquery::syntax::Program;
use crate::xml::names::NameTable;
use crate::xml::serializer;
use crate::xml::serializer::{Limit, Namespaces, TooLong, Writer};
use crate::xml::tree::{Message, NodeRef};

/// What runs work with; keeps its memory from message to message.
#[derive(Debug, Default)]
pub struct Scratch {
    xpath: evaluate::Scratch,
    output: serializer::Scratch,
    state: State,
    /// Where a run writes that is asked for no result.
    discarded: Results,
}

impl Scratch {
    /// When the messages were that are run over from here on: microseconds since the beginning of 1970, UTC.
    pub fn at(&mut self, time: i64) {
        self.state.time = time;
    }
}

/// Runs over one message.
///
/// ```
/// use pathcast_core::xml::parser::{Door, Limits};
/// use pathcast_core::language::xquery::Program;
/// use pathcast_core::engine::programs::{Bounds, Results, Scratch, Session};
///
/// let mut door = Door::new(Limits::default());
/// door.keep_source_spans(true);
/// let parsed = door.parse(b"<bib><book><title>TCP/IP</title></book></bib>", None)?;
/// let mut scratch = Scratch::default();
/// let mut session = Session::new(parsed.message, parsed.names, &mut scratch);
///
/// let program = Program::parse("<r>{for $b in //book return $b/title}</r>", &[])?;
/// let bounds = Bounds { steps_max: 1_000, bytes_max: 1_000 };
/// let mut results = Results::default();
/// assert!(session.run(&program, bounds, &mut results)?);
/// assert_eq!(results.bytes, b"<r><title>TCP/IP</title></r>");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Session<'s> {
    xpath: evaluate::Session<'s>,
    writer: Writer<'s>,
    state: &'s mut State,
    discarded: &'s mut Results,
    steps_taken: u64,
}

impl<'s> Session<'s> {
    /// Prepares a message that was parsed with [`crate::xml::parser::Door::keep_source_spans`]. Cost: one
    /// pass over its nodes.
    pub fn new(message: Message<'s>, names: &'s NameTable, scratch: &'s mut Scratch) -> Self {
        let Scratch { xpath, output, state, discarded } = scratch;
        state.ids.begin();
        Session {
            xpath: evaluate::Session::new(message, names, xpath),
            writer: Writer::new(message, names, output),
            state,
            discarded,
            steps_taken: 0,
        }
    }

    /// Steps that the last run has taken, and what it has written: a step for every 64 bytes.
    pub fn steps_taken(&self) -> u64 {
        self.steps_taken
    }

    /// Runs a program: appends its results, says whether the message is delivered. If it is not,
    /// and after an error, nothing has been appended.
    ///
    /// Panics if the program needs a full tree and the message does not have one.
    pub fn run(
        &mut self,
        program: &Program,
        bounds: Bounds,
        out: &mut Results,
    ) -> Result<bool, RunError> {
        let (bytes, ends) = (out.bytes.len(), out.ends.len());
        let mut answer = self.evaluate(program, bounds, out, |evaluator| {
            evaluator.write(program.body(), true)?;
            Ok(evaluator.is_delivered)
        });
        // A computed name around the results is no mistake where there are none.
        if matches!(answer, Err(RunError::Construction(_))) && program.has_computed_frame {
            let steps = self.steps_taken;
            let steps_max = bounds.steps_max.saturating_sub(steps);
            match self.is_delivered(program, Bounds { steps_max, ..bounds }) {
                Ok(true) => {}
                other => answer = other,
            }
            self.steps_taken += steps;
        }
        if answer != Ok(true) {
            out.bytes.truncate(bytes);
            out.ends.truncate(ends);
        }
        answer
    }

    /// The nodes that a program gives, in its order; it must give nothing else
    /// ([`crate::language::xquery::undeliverable_part`]).
    pub(crate) fn run_nodes(
        &mut self,
        program: &Program,
        bounds: Bounds,
    ) -> Result<Vec<NodeRef>, RunError> {
        let (mut discarded, mut nodes) = (std::mem::take(self.discarded), Vec::new());
        let answer = self.evaluate(program, bounds, &mut discarded, |evaluator| {
            evaluator.nodes = Some(Vec::new());
            evaluator.write(program.body(), true)?;
            nodes = evaluator.nodes.take().unwrap_or_default();
            Ok(evaluator.is_delivered)
        });
        debug_assert!(discarded.ends.is_empty(), "something that is no node is a result");
        *self.discarded = discarded;
        self.discarded.clear();
        answer.map(|_| nodes)
    }

    /// The effective boolean value of a program, which decides where no result is wanted. Constants of
    /// the frame say nothing, and a constructor of it is an element if one of its content expressions
    /// gives an item, and nothing otherwise.
    pub fn holds(&mut self, program: &Program, bounds: Bounds) -> Result<bool, RunError> {
        let mut discarded = std::mem::take(self.discarded);
        let answer = self.evaluate(program, bounds, &mut discarded, |evaluator| {
            evaluator.frame_holds(program.body())
        });
        *self.discarded = discarded;
        self.discarded.clear();
        answer
    }

    /// Whether a message is delivered to a program that wants results; none is made.
    pub(crate) fn is_delivered(
        &mut self,
        program: &Program,
        bounds: Bounds,
    ) -> Result<bool, RunError> {
        let mut discarded = std::mem::take(self.discarded);
        let answer = self.evaluate(program, bounds, &mut discarded, |evaluator| {
            evaluator.frame_gives_item(program.body())
        });
        *self.discarded = discarded;
        self.discarded.clear();
        answer
    }

    fn evaluate(
        &mut self,
        program: &Program,
        bounds: Bounds,
        out: &mut Results,
        ask: impl FnOnce(&mut Evaluator<'_, 's>) -> Run<bool>,
    ) -> Result<bool, RunError> {
        let document = self.xpath.document();
        let bytes = out.bytes.len();
        let mut evaluator =
            Evaluator::new(document, program, self.state, &mut self.writer, out, bounds);
        let answer = ask(&mut evaluator);
        self.steps_taken = evaluator.budget.taken() + steps_of(out.bytes.len() - bytes);
        answer
    }

    /// Whether a bare XPath expression selects a node.
    pub(crate) fn selects(
        &mut self,
        expression: &Expression,
        bounds: Bounds,
    ) -> Result<bool, RunError> {
        let value = self.value(expression, bounds)?;
        Ok(matches!(value, Value::Nodes(nodes) if !nodes.is_empty()))
    }

    /// The nodes that a bare XPath expression selects, each a result, in document order; says
    /// whether there are any. An expression that is no node-set selects nothing.
    pub(crate) fn select(
        &mut self,
        expression: &Expression,
        bounds: Bounds,
        out: &mut Results,
    ) -> Result<bool, RunError> {
        let Value::Nodes(nodes) = self.value(expression, bounds)? else {
            return Ok(false);
        };
        let (bytes, ends) = (out.bytes.len(), out.ends.len());
        let limit = Limit::after(&out.bytes, bounds.bytes_max);
        let outer = Namespaces::default();
        let written = nodes.iter().try_for_each(|&node| {
            self.writer.node(&mut out.bytes, node, &outer, limit)?;
            out.ends.push(out.bytes.len());
            Ok::<(), TooLong>(())
        });
        self.steps_taken += steps_of(out.bytes.len() - bytes);
        if let Err(too_long) = written {
            out.bytes.truncate(bytes);
            out.ends.truncate(ends);
            return Err(too_long.into());
        }
        Ok(!nodes.is_empty())
    }

    /// The nodes that a bare XPath expression selects, in document order.
    pub(crate) fn nodes(
        &mut self,
        expression: &Expression,
        bounds: Bounds,
    ) -> Result<Vec<NodeRef>, RunError> {
        match self.value(expression, bounds)? {
            Value::Nodes(nodes) => Ok(nodes),
            _ => Ok(Vec::new()),
        }
    }

    fn value(&mut self, expression: &Expression, bounds: Bounds) -> Result<Value, RunError> {
        let value = self.xpath.evaluate_at(None, expression, bounds.steps_max);
        self.steps_taken = self.xpath.steps_taken();
        Ok(value?)
    }
}

/// Steps that writing takes, which is not stopped by them but counted.
fn steps_of(bytes: usize) -> u64 {
    (bytes / BYTES_PER_STEP) as u64
}
