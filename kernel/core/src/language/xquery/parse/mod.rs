//! XQuery as a [grammar](crate::language::grammar): text to program (XQuery 1.0, 3 and 4).
//!
//! No strings are made but those that the program keeps. Names, variables, functions and kinds of items are settled where they are
//! read; what the parser gives needs no second look.

mod collations;
mod computed;
mod constructors;
mod declared;
mod facts;
mod grammar;
mod names;
mod operators;
mod paths;
mod pictures;
mod primaries;
mod shorthands;
mod static_rules;

use super::origins::Origins;
use super::syntax::{Clause, Element, Expr, ExprId, OrderKey, Part, Program};
use super::{Delivered, undeliverable_part};
use crate::language::functions::Function;
use crate::language::grammar::names::qname_length;
use crate::language::grammar::scan::{self, Lexis, comment_end, no_character};
use crate::language::grammar::{Grammar, Scanner};
use crate::language::numbers::is_blank;
use crate::language::refusal::{Parsed, Reason, Refusal};
use crate::language::values::{VALUE_BYTES_MAX, VALUES_MAX};
use crate::language::xpath::analyse::needs_markup;
use crate::language::xpath::{List, TextRange};
pub(crate) use collations::{CAPITAL_LETTERS, SMALL_LETTERS};
use declared::Declarations;
use facts::{Facts, items, reads};
use names::{Binding, Variable};

/// Bytes of a text.
const TEXT_BYTES_MAX: usize = 32 * 1024;
/// Syntax nodes.
const NODES_MAX: usize = 2048;
/// Predicates of one step or filter.
const PREDICATES_MAX: usize = 64;
/// Parentheses, predicates, calls, constructors, FLWORs, conditionals and quantifiers within one
/// another.
const DEPTH_MAX: usize = 64;
/// Depth of the syntax tree, operators counted too.
const TREE_DEPTH_MAX: usize = 128;

/// Parses a text; what a refusal says of it is not the whole truth.
pub(super) fn parse(text: &str, namespaces: &[(String, String)], lexis: Lexis) -> Parsed<Program> {
    let mut parser = Parser::new(text, namespaces, lexis, None);
    let (body, contents) = parser.program()?;
    let mut program = parser.program;
    program.contents = contents;
    program.body = body;
    program.needs_full_tree = needs_full_tree(&program);
    Ok(program)
}

/// Parses a text for analysis: steps stay as they were written, and everything has its place. A refusal is the first
/// one from the left; those that static rules make come after all others.
pub(super) fn parse_with_origins(
    text: &str,
    namespaces: &[(String, String)],
    delivered: Option<Delivered>,
) -> Parsed<(Program, Origins)> {
    let mut parser = Parser::new(text, namespaces, Lexis::XQuery, Some(Box::default()));
    let (body, contents) = match parser.program() {
        Ok(found) => found,
        Err(refusal) => return Err(parser.scanner.first_fault(refusal)),
    };
    static_rules::check(&parser, body, &contents)?;
    let mut program = parser.program;
    program.contents = contents;
    program.body = body;
    let origins = parser.origins.map(|origins| *origins).unwrap_or_default();
    match delivered.and_then(|delivered| undeliverable_part(&program, delivered)) {
        Some((part, reason)) => Err(Refusal::new(origins.expr(part), reason, Vec::new())),
        None => Ok((program, origins)),
    }
}

/// Whether comments, instructions, prefixes or declared ids can matter.
fn needs_full_tree(program: &Program) -> bool {
    let is_call = |expr: &Expr| matches!(expr, Expr::Call(Function::Name | Function::Id, _));
    needs_markup(&program.steps) || program.exprs.iter().any(is_call)
}

struct Parser<'t> {
    scanner: Scanner<'t>,
    program: Program,
    /// Where its parts stand; there where refusals are explained.
    origins: Option<Box<Origins>>,
    /// One entry per expression.
    facts: Vec<Facts>,
    namespaces: &'t [(String, String)],
    /// Prefixes bound by the prolog and by the constructors around this place.
    bindings: Vec<Binding<'t>>,
    /// The constructor around this place.
    constructor: Option<u32>,
    variables: Vec<Variable<'t>>,
    /// Kinds of items that the context item can be.
    context: u8,
    /// Predicates around this place.
    predicates: u32,
    /// `for` clauses, quantifiers and predicates around this place.
    loops: u32,
    nodes: usize,
    /// Literals of sequences.
    values: usize,
    /// Bytes of compiled patterns.
    pattern_bytes: usize,
    depth: usize,
    /// The namespaces that the last computed name knew, and where they are.
    computed_scope: Option<(Vec<(String, String)>, List)>,
    /// Functions and variables of the prolog.
    declared: Declarations<'t>,
}

/// Whether a text is within the limits of texts but for the values of its lists: the literals that stand between a
/// parenthesis or a comma and another, which are counted apart.
fn is_long_by_values(text: &str) -> bool {
    let bytes = value_bytes(text);
    bytes <= VALUE_BYTES_MAX && text.len() - bytes <= TEXT_BYTES_MAX
}

/// Bytes of literals after a parenthesis or a comma and before another, commas and blanks beside them included.
fn value_bytes(text: &str) -> usize {
    let bytes = text.as_bytes();
    let blanks = |at: usize| at + bytes[at..].iter().take_while(|&&byte| is_blank(byte)).count();
    let (mut at, mut found) = (0, 0);
    while at < bytes.len() {
        if !matches!(bytes[at], b'(' | b',') {
            // What looks like a list within a string is none.
            at += literal_length(&bytes[at..]).max(1);
            continue;
        }
        if bytes[at..].starts_with(b"(:") {
            at = comment_end(text, at).unwrap_or(bytes.len());
            continue;
        }
        let start = blanks(at + 1);
        let length = literal_length(&bytes[start..]);
        let end = blanks(start + length);
        if length > 0 && matches!(bytes.get(end), Some(b',' | b')')) {
            found += end - at;
            at = end;
        } else {
            at += 1;
        }
    }
    found
}

/// Length of the string or number that a text begins with.
fn literal_length(text: &[u8]) -> usize {
    match text.first() {
        Some(quote @ (b'"' | b'\'')) => {
            let mut length = 0;
            // A quote within the string is written twice.
            while text.get(length) == Some(quote) {
                let inside = memchr::memchr(*quote, &text[length + 1..]);
                length = inside.map_or(text.len(), |inside| length + inside + 2);
            }
            length
        }
        Some(b'-' | b'.' | b'0'..=b'9') => {
            let is_part = |byte: &u8| byte.is_ascii_digit() || b"-+.eE".contains(byte);
            text.iter().take_while(|byte| is_part(byte)).count()
        }
        _ => 0,
    }
}

impl<'t> Parser<'t> {
    fn new(
        text: &'t str,
        namespaces: &'t [(String, String)],
        lexis: Lexis,
        origins: Option<Box<Origins>>,
    ) -> Self {
        let guess = text.len() / 16 + 4;
        let program = Program {
            exprs: Vec::with_capacity(guess),
            steps: Vec::with_capacity(guess / 2 + 2),
            text: String::with_capacity(text.len() / 2),
            ..Program::default()
        };
        Parser {
            scanner: Scanner::new(text, lexis, origins.is_some()),
            program,
            origins,
            facts: Vec::with_capacity(guess),
            namespaces,
            bindings: Vec::new(),
            constructor: None,
            variables: Vec::new(),
            context: items::NODES,
            predicates: 0,
            loops: 0,
            nodes: 0,
            values: 0,
            pattern_bytes: 0,
            depth: 0,
            computed_scope: None,
            declared: Declarations::default(),
        }
    }

    /// A whole module: its body, and what of it decides on delivery.
    fn program(&mut self) -> Parsed<(ExprId, Vec<ExprId>)> {
        let text = self.scanner.rest();
        if text.len() > TEXT_BYTES_MAX && !is_long_by_values(text) {
            let details = vec![text.len().into(), TEXT_BYTES_MAX.into()];
            return Err(Refusal::new(0, Reason::TooLong, details));
        }
        if let Some(offset) = no_character(text) {
            return Err(Refusal::new(offset, Reason::NoCharacter, Vec::new()));
        }
        self.scanner.settle();
        self.prolog()?;
        let body = self.sequence()?;
        if !self.scanner.is_at_end() {
            return Err(self.scanner.unexpected(Reason::ExpectedEnd, &[]));
        }
        let contents = self.contents(body);
        let is_sound =
            usize::from(self.facts(body).depth) <= TREE_DEPTH_MAX && !contents.is_empty();
        self.keep_rule(is_sound)?;
        Ok((body, contents))
    }

    /// Whether refusals are explained; static rules are then looked at when all has been read.
    fn is_explaining(&self) -> bool {
        self.origins.is_some()
    }

    /// Writes down where something stands, where that is asked.
    fn origins(&mut self, write: impl FnOnce(&mut Origins)) {
        if let Some(origins) = &mut self.origins {
            write(origins);
        }
    }

    /// A static rule has been looked at.
    fn keep_rule(&self, is_kept: bool) -> Parsed<()> {
        if is_kept || self.is_explaining() || self.declared.is_skimming() {
            return Ok(());
        }
        // Which rule, and where: see `static_rules`.
        Err(Refusal::new(self.scanner.at, Reason::BuiltValue, Vec::new()))
    }

    fn push(&mut self, expr: Expr, facts: Facts, offset: usize) -> ExprId {
        self.program.exprs.push(expr);
        self.facts.push(facts);
        if let Some(origins) = &mut self.origins {
            origins.exprs.push(offset as u32);
        }
        self.program.exprs.len() as ExprId - 1
    }

    fn facts(&self, id: ExprId) -> Facts {
        self.facts[id as usize]
    }

    fn list(&mut self, ids: &[ExprId]) -> List {
        let start = self.program.lists.len() as u32;
        self.program.lists.extend_from_slice(ids);
        List { start, end: self.program.lists.len() as u32 }
    }

    fn keep(&mut self, text: &str) -> TextRange {
        let start = self.program.text.len() as u32;
        self.program.text.push_str(text);
        TextRange { start, end: self.program.text.len() as u32 }
    }

    fn count(&mut self, offset: usize) -> Parsed<()> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(Refusal::new(offset, Reason::TooLarge, vec![NODES_MAX.into()]));
        }
        Ok(())
    }

    fn enter(&mut self, offset: usize) -> Parsed<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Refusal::new(offset, Reason::TooDeep, vec![DEPTH_MAX.into()]));
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    /// The value of an expression is read: it cannot be an element that is built.
    fn need_value(&self, id: ExprId) -> Parsed<()> {
        self.keep_rule(self.facts(id).items & items::BUILT == 0)
    }

    fn need_nodes(&self, id: ExprId) -> Parsed<()> {
        self.keep_rule(self.facts(id).items & !items::NODES == 0)
    }

    /// The expressions of the frame that depend on the message, ascending: what decides on delivery.
    fn contents(&mut self, body: ExprId) -> Vec<ExprId> {
        let mut contents = Vec::new();
        let mut waiting = vec![Part::Enclosed(body)];
        while let Some(part) = waiting.pop() {
            match part {
                Part::Text(_) => {}
                Part::Element(element) => {
                    let program = &self.program;
                    let Element { computed, attributes, content, .. } = *program.element(element);
                    let is_computed = computed.is_some()
                        || program.attributes(attributes).iter().any(|it| it.computed.is_some());
                    waiting.extend_from_slice(program.parts(content));
                    self.program.has_computed_frame |= is_computed;
                }
                Part::Enclosed(id) => match self.program.expr(id) {
                    Expr::Element(element) => waiting.push(Part::Element(element)),
                    Expr::Sequence(list) => {
                        waiting
                            .extend(self.program.list(list).iter().map(|&id| Part::Enclosed(id)));
                    }
                    _ if self.facts(id).is_of_message => contents.push(id),
                    _ => {}
                },
            }
        }
        contents.sort_unstable();
        contents
    }
}

/// Sequences, FLWOR, quantifiers, conditionals.
impl<'t> Parser<'t> {
    /// `a, b, ...`
    fn sequence(&mut self) -> Parsed<ExprId> {
        let offset = self.scanner.place();
        let first = self.single()?;
        if self.scanner.peek() != b',' {
            return Ok(first);
        }
        let mut items = Vec::new();
        self.append(&mut items, first);
        self.values += usize::from(self.program.is_literal(first));
        while self.scanner.peek() == b',' {
            let (at, nodes) = (self.scanner.at, self.nodes);
            self.count(at)?;
            self.scanner.skip(1);
            let item = self.single()?;
            self.append(&mut items, item);
            if self.program.is_literal(item) {
                // A list is one condition, however many values it has.
                self.nodes = nodes;
                self.values += 1;
                if self.values > VALUES_MAX {
                    let details = vec![VALUES_MAX.into()];
                    return Err(Refusal::new(at, Reason::TooManyValues, details));
                }
            }
        }
        if let [item] = items[..] {
            return Ok(item);
        }
        Ok(self.sequence_of(&items, offset))
    }

    fn sequence_of(&mut self, items: &[ExprId], offset: usize) -> ExprId {
        let mut facts = Facts::of(items::NONE);
        for &item in items {
            facts = facts.giving(self.facts(item));
        }
        let list = self.list(items);
        let set = if items.len() > 1 { self.program.set_of(items) } else { None };
        let id = self.push(Expr::Sequence(list), facts, offset);
        self.program.sets.extend(set.map(|set| (id, set)));
        id
    }

    /// Sequences do not nest.
    fn append(&self, items: &mut Vec<ExprId>, id: ExprId) {
        match self.program.expr(id) {
            Expr::Sequence(list) => items.extend_from_slice(self.program.list(list)),
            _ => items.push(id),
        }
    }

    /// An expression without a comma.
    fn single(&mut self) -> Parsed<ExprId> {
        if matches!(self.scanner.peek(), b'f' | b'l' | b's' | b'e' | b'i') {
            let mark = self.scanner.at;
            let word = self.scanner.ncname().filter(|_| !self.scanner.has_local_name());
            let next = self.scanner.peek();
            self.scanner.at = mark;
            match (word, next) {
                (Some("for" | "let"), b'$') => return self.flwor(),
                (Some(word @ ("some" | "every")), b'$') => return self.quantified(word == "every"),
                (Some("if"), b'(' | b'{') => return self.conditional(),
                _ => {}
            }
        }
        if self.is_explaining() {
            self.refuse_expression()?;
        }
        self.expression(1)
    }

    /// Refuses an expression of XQuery that begins with a word, by its name.
    #[cold]
    fn refuse_expression(&mut self) -> Parsed<()> {
        let Some((offset, word)) = self.scanner.name_token() else { return Ok(()) };
        let after = offset + word.len();
        let refused = |reason, details| Err(Refusal::new(offset, reason, details));
        match word {
            "for" => {
                let rest = self.scanner.text_at(self.scanner.after_blanks(after)?);
                if rest.starts_with("tumbling") || rest.starts_with("sliding ") {
                    return refused(Reason::Window, Vec::new());
                }
            }
            "typeswitch" | "switch" | "try" => {
                let rest = self.scanner.text_at(self.scanner.after_blanks(after)?);
                if rest.starts_with(['(', '{']) {
                    return refused(Reason::Construct, vec![word.into()]);
                }
            }
            "validate" => {
                let rest = self.scanner.text_at(after);
                let name = rest.trim_start_matches(scan::is_blank);
                let length = qname_length(name);
                let is_constructor = name.len() < rest.len()
                    && length > 0
                    && name[length..].trim_start_matches(scan::is_blank).starts_with('{');
                if is_constructor {
                    return refused(Reason::Construct, vec![word.into()]);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether `for` or `let` and a variable are here.
    fn binding_word(&mut self) -> Option<bool> {
        let mark = self.scanner.at;
        let word = self.scanner.ncname().filter(|_| !self.scanner.has_local_name());
        let is_variable = self.scanner.peek() == b'$';
        self.scanner.at = mark;
        match word {
            Some("for") if is_variable => Some(true),
            Some("let") if is_variable => Some(false),
            _ => None,
        }
    }

    fn flwor(&mut self) -> Parsed<ExprId> {
        let offset = self.scanner.place();
        self.enter(offset)?;
        let (outer, loops) = (self.variables.len(), self.loops);
        let mut clauses = Vec::new();
        let mut facts = Facts::of(items::NONE);
        while let Some(is_for) = self.binding_word() {
            self.scanner.ncname();
            self.scanner.settle();
            loop {
                let clause = if is_for { self.for_clause(true)? } else { self.let_clause()? };
                let inner = match clause {
                    Clause::For { source, .. } => self.facts(source),
                    Clause::Let { value, .. } => self.facts(value).as_let(),
                };
                facts = facts.around(inner);
                facts.is_costly |= is_for;
                clauses.push(clause);
                if !self.scanner.take(b',') {
                    break;
                }
            }
        }
        let mut condition = None;
        if self.scanner.take_word("where") {
            let id = self.single()?;
            self.need_value(id)?;
            facts = facts.around(self.facts(id));
            condition = Some(id);
        }
        let (keys, places) = self.order(&mut facts)?;
        if self.is_explaining() {
            self.refuse_clause(if keys.is_empty() { "where" } else { "order by" })?;
        }
        self.scanner.expect_word("return", "or another clause")?;
        let body = self.single()?;
        facts = facts.giving(self.facts(body));
        self.variables.truncate(outer);
        self.loops = loops;
        self.leave();
        let start = self.program.clauses.len() as u32;
        self.program.clauses.extend_from_slice(&clauses);
        let clauses = List { start, end: self.program.clauses.len() as u32 };
        let start = self.program.keys.len() as u32;
        self.program.keys.extend_from_slice(&keys);
        self.origins(|origins| origins.keys.extend(places));
        let order = List { start, end: self.program.keys.len() as u32 };
        Ok(self.push(Expr::Flwor { clauses, condition, order, body }, facts, offset))
    }

    /// Refuses a clause that is not evaluated, or that comes too late, by its name.
    #[cold]
    fn refuse_clause(&mut self, before: &'static str) -> Parsed<()> {
        let Some((offset, word)) = self.scanner.name_token() else { return Ok(()) };
        let is_clause = match word {
            "group" | "count" | "window" | "where" | "order" | "stable" => true,
            "for" | "let" => {
                let after = self.scanner.after_blanks(offset + word.len())?;
                self.scanner.text_at(after).starts_with('$')
            }
            _ => false,
        };
        if is_clause {
            let details = vec![word.into(), before.into()];
            return Err(Refusal::new(offset, Reason::Clause, details));
        }
        Ok(())
    }

    /// `$v at $i in source`
    fn for_clause(&mut self, has_position: bool) -> Parsed<Clause> {
        let offset = self.scanner.place();
        let (uri, local) = self.bound_name()?;
        let mut place = None;
        if has_position && self.scanner.take_word("at") {
            let at = self.scanner.place();
            let (position_uri, position) = self.bound_name()?;
            if position == local && self.program.text(position_uri) == self.program.text(uri) {
                let name = self.shown(uri, local);
                return Err(Refusal::new(at, Reason::BoundTwice, vec![name.into()]));
            }
            place = Some((position_uri, position, at));
        }
        self.in_after(uri, local)?;
        let source = self.single()?;
        self.loops += 1;
        let facts = self.facts(source);
        let variable = self.bind(uri, local, facts, offset);
        let number = Facts { may_be_number: true, ..Facts::of(items::ATOMS) };
        let position = place.map(|(uri, local, at)| self.bind(uri, local, number, at));
        Ok(Clause::For { variable, position, source })
    }

    /// `in` after a variable.
    fn in_after(&mut self, uri: TextRange, local: &'t str) -> Parsed<()> {
        if self.scanner.take_word("in") {
            Ok(())
        } else {
            Err(self.nothing_after("in", uri, local))
        }
    }

    #[cold]
    fn nothing_after(&self, symbol: &str, uri: TextRange, local: &str) -> Box<Refusal> {
        let name = self.shown(uri, local);
        self.scanner.unexpected(Reason::ExpectedAfterVariable, &[symbol, &name])
    }

    fn let_clause(&mut self) -> Parsed<Clause> {
        let offset = self.scanner.place();
        let (uri, local) = self.bound_name()?;
        self.scanner.peek();
        if !self.scanner.take_here(":=") {
            return Err(self.nothing_after(":=", uri, local));
        }
        self.scanner.settle();
        let value = self.single()?;
        let facts = self.facts(value);
        let variable = self.bind(uri, local, facts, offset);
        Ok(Clause::Let { variable, value })
    }

    /// `stable order by key ascending empty least, ...`; and where the keys begin.
    fn order(&mut self, facts: &mut Facts) -> Parsed<(Vec<OrderKey>, Vec<u32>)> {
        let is_stable = self.scanner.take_word("stable");
        if is_stable && !self.scanner.is_word("order") {
            return Err(self.scanner.unexpected(Reason::ExpectedOrderBy, &[]));
        }
        if !self.scanner.take_word("order") {
            return Ok((Vec::new(), Vec::new()));
        }
        self.scanner.expect_word("by", "after order")?;
        let (mut keys, mut places) = (Vec::new(), Vec::new());
        loop {
            let offset = self.scanner.place();
            self.count(offset)?;
            let key = self.single()?;
            self.need_value(key)?;
            *facts = facts.around(self.facts(key));
            let is_descending = self.scanner.take_word("descending");
            if !is_descending {
                self.scanner.take_word("ascending");
            }
            let mut is_empty_least = true;
            if self.scanner.take_word("empty") {
                is_empty_least = !self.scanner.take_word("greatest");
                if is_empty_least {
                    self.scanner.expect_word("least", "or greatest")?;
                }
            }
            let is_case_blind = self.order_collation()?;
            keys.push(OrderKey { key, is_descending, is_empty_least, is_case_blind });
            places.push(offset as u32);
            if !self.scanner.take(b',') {
                return Ok((keys, places));
            }
        }
    }

    fn quantified(&mut self, is_every: bool) -> Parsed<ExprId> {
        let offset = self.scanner.place();
        self.enter(offset)?;
        self.count(offset)?;
        let (outer, loops) = (self.variables.len(), self.loops);
        self.scanner.ncname();
        self.scanner.settle();
        let mut bindings = Vec::new();
        let mut facts = Facts { is_costly: true, ..Facts::of(items::ATOMS) };
        loop {
            let clause = self.for_clause(false)?;
            if let Clause::For { source, .. } = clause {
                facts = facts.around(self.facts(source));
            }
            bindings.push(clause);
            if !self.scanner.take(b',') {
                break;
            }
        }
        self.scanner.expect_word("satisfies", "or a comma")?;
        let condition = self.single()?;
        self.need_value(condition)?;
        facts = facts.around(self.facts(condition));
        self.variables.truncate(outer);
        self.loops = loops;
        self.leave();
        let start = self.program.clauses.len() as u32;
        self.program.clauses.extend_from_slice(&bindings);
        let bindings = List { start, end: self.program.clauses.len() as u32 };
        Ok(self.push(Expr::Quantified { is_every, bindings, condition }, facts, offset))
    }

    fn conditional(&mut self) -> Parsed<ExprId> {
        let offset = self.scanner.place();
        self.enter(offset)?;
        self.count(offset)?;
        self.scanner.ncname();
        self.scanner.settle();
        self.scanner.expect(b'(', "after if")?;
        let condition = self.sequence()?;
        self.need_value(condition)?;
        self.scanner.expect(b')', "after the condition")?;
        self.scanner.expect_word("then", "after the condition")?;
        let then = self.single()?;
        self.scanner.expect_word("else", "(which is never left out)")?;
        let otherwise = self.single()?;
        self.leave();
        let facts = Facts::of(items::NONE)
            .around(self.facts(condition))
            .giving(self.facts(then))
            .giving(self.facts(otherwise));
        Ok(self.push(Expr::If { condition, then, otherwise }, facts, offset))
    }
}
