//! Text to syntax tree (XQuery 1.0, 3 and 4).
//!
//! Recursive descent over the text itself: no list of tokens, no strings but those the tree keeps.
//! Operators are read by climbing their precedence, so that the call stack grows with what
//! [`DEPTH_MAX`] bounds. Names, variables, functions and kinds of items are settled where they are
//! read; what the parser gives needs no second look.

mod constructors;
mod facts;
mod names;
mod operators;
mod paths;
mod primaries;
mod scan;

use super::Declined;
use super::functions::Function;
use super::syntax::{Clause, Expr, ExprId, OrderKey, Program};
use crate::language::xpath::analyse::needs_markup;
use crate::language::xpath::{List, TextRange};
use facts::{Facts, items, reads};
use names::{Binding, Variable};
use scan::{Parsed, Scanner};

/// Bytes of a text.
const TEXT_BYTES_MAX: usize = 32 * 1024;
/// Syntax nodes.
const NODES_MAX: u32 = 2048;
/// Parentheses, predicates, calls, constructors, FLWORs, conditionals and quantifiers within one
/// another.
const DEPTH_MAX: u32 = 64;
/// Depth of the syntax tree, operators counted too.
const TREE_DEPTH_MAX: u16 = 128;

/// What a text is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    XQuery,
    /// A path that means the same in XPath 1.0.
    XPath,
}

/// Parses a text.
pub(super) fn parse(
    text: &str,
    namespaces: &[(String, String)],
    language: Language,
) -> Parsed<Program> {
    let mut parser = Parser::new(text, namespaces, language);
    if text.len() > TEXT_BYTES_MAX {
        return Err(parser.scanner.declined("the text is too long"));
    }
    if let Some(offset) = no_character(text) {
        return Err(Declined { offset, reason: "this is no character of XML" });
    }
    parser.prolog()?;
    let body = parser.sequence()?;
    if !parser.scanner.is_at_end() {
        return Err(parser.scanner.declined("expected an operator or the end"));
    }
    if parser.facts(body).depth > TREE_DEPTH_MAX {
        return Err(parser.scanner.declined("nests too deep"));
    }
    let contents = parser.contents(body);
    if contents.is_empty() {
        return Err(parser.scanner.declined("every message would give the same result"));
    }
    let mut program = parser.program;
    program.contents = contents;
    program.body = body;
    program.needs_full_tree = needs_full_tree(&program);
    Ok(program)
}

/// Whether comments, instructions, prefixes or declared ids can matter.
fn needs_full_tree(program: &Program) -> bool {
    let is_call = |expr: &Expr| matches!(expr, Expr::Call(Function::Name | Function::Id, _));
    needs_markup(&program.steps) || program.exprs.iter().any(is_call)
}

/// Offset of the first character that XML does not have.
fn no_character(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    // 0xEF begins U+FFFE and U+FFFF, among others that are looked at again.
    let is_odd = |byte: u8| (byte < 0x20 && !matches!(byte, 9 | 10 | 13)) | (byte == 0xEF);
    if !bytes.iter().fold(false, |found, &byte| found | is_odd(byte)) {
        return None;
    }
    let is_bad = |c: char| {
        (c < ' ' && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{FFFE}' | '\u{FFFF}')
    };
    text.find(is_bad)
}

struct Parser<'t> {
    scanner: Scanner<'t>,
    program: Program,
    /// One entry per expression.
    facts: Vec<Facts>,
    namespaces: &'t [(String, String)],
    language: Language,
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
    nodes: u32,
    depth: u32,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, namespaces: &'t [(String, String)], language: Language) -> Self {
        let guess = text.len() / 16 + 4;
        let program = Program {
            exprs: Vec::with_capacity(guess),
            steps: Vec::with_capacity(guess / 2 + 2),
            text: String::with_capacity(text.len() / 2),
            ..Program::default()
        };
        Parser {
            scanner: Scanner::new(text),
            program,
            facts: Vec::with_capacity(guess),
            namespaces,
            language,
            bindings: Vec::new(),
            constructor: None,
            variables: Vec::new(),
            context: items::NODES,
            predicates: 0,
            loops: 0,
            nodes: 0,
            depth: 0,
        }
    }

    fn push(&mut self, expr: Expr, facts: Facts) -> ExprId {
        self.program.exprs.push(expr);
        self.facts.push(facts);
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

    fn count(&mut self) -> Parsed<()> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(self.scanner.declined("has too many syntax nodes"));
        }
        Ok(())
    }

    fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.scanner.declined("nests too deep"));
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    /// The value of an expression is read: it cannot be an element that is built.
    fn need_value(&self, id: ExprId) -> Parsed<()> {
        if self.facts(id).items & items::BUILT != 0 {
            return Err(self.scanner.declined("the value of a constructed element"));
        }
        Ok(())
    }

    fn need_nodes(&self, id: ExprId) -> Parsed<()> {
        if self.facts(id).items & !items::NODES != 0 {
            return Err(self.scanner.declined("nodes of the message are needed here"));
        }
        Ok(())
    }

    /// The expressions of the frame that depend on the message, ascending: what decides on delivery.
    fn contents(&self, body: ExprId) -> Vec<ExprId> {
        use super::syntax::Part;
        let mut contents = Vec::new();
        let mut waiting = vec![Part::Enclosed(body)];
        while let Some(part) = waiting.pop() {
            match part {
                Part::Text(_) => {}
                Part::Element(element) => {
                    let content = self.program.element(element).content;
                    waiting.extend_from_slice(self.program.parts(content));
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
impl Parser<'_> {
    /// `a, b, ...`
    fn sequence(&mut self) -> Parsed<ExprId> {
        let first = self.single()?;
        if self.scanner.peek() != b',' {
            return Ok(first);
        }
        let mut items = Vec::new();
        self.append(&mut items, first);
        while self.scanner.take(b',') {
            self.count()?;
            let item = self.single()?;
            self.append(&mut items, item);
        }
        if let [item] = items[..] {
            return Ok(item);
        }
        Ok(self.sequence_of(&items))
    }

    fn sequence_of(&mut self, items: &[ExprId]) -> ExprId {
        let mut facts = Facts::of(items::NONE);
        for &item in items {
            facts = facts.giving(self.facts(item));
        }
        let list = self.list(items);
        self.push(Expr::Sequence(list), facts)
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
            let word = self.scanner.ncname();
            let next = self.scanner.peek();
            self.scanner.at = mark;
            match (word, next) {
                (Some("for" | "let"), b'$') => return self.flwor(),
                (Some(word @ ("some" | "every")), b'$') => return self.quantified(word == "every"),
                (Some("if"), b'(') => return self.conditional(),
                _ => {}
            }
        }
        self.expression(1)
    }

    fn flwor(&mut self) -> Parsed<ExprId> {
        self.enter()?;
        let (outer, loops) = (self.variables.len(), self.loops);
        let mut clauses = Vec::new();
        let mut facts = Facts::of(items::NONE);
        loop {
            let mark = self.scanner.at;
            let word = self.scanner.ncname();
            let is_for = word == Some("for");
            if !(is_for || word == Some("let")) || self.scanner.peek() != b'$' {
                self.scanner.at = mark;
                break;
            }
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
        let keys = self.order(&mut facts)?;
        self.scanner.expect_word("return", "expected return or another clause")?;
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
        let order = List { start, end: self.program.keys.len() as u32 };
        Ok(self.push(Expr::Flwor { clauses, condition, order, body }, facts))
    }

    /// `$v at $i in source`
    fn for_clause(&mut self, has_position: bool) -> Parsed<Clause> {
        let (uri, local) = self.bound_name()?;
        let mut place = None;
        if has_position && self.scanner.take_word("at") {
            let (position_uri, position) = self.bound_name()?;
            if position == local && self.program.text(position_uri) == self.program.text(uri) {
                return Err(self.scanner.declined("bound twice in one clause"));
            }
            place = Some((position_uri, position));
        }
        self.scanner.expect_word("in", "expected in")?;
        let source = self.single()?;
        self.loops += 1;
        let facts = self.facts(source);
        let variable = self.bind(uri, local, facts);
        let number = Facts { may_be_number: true, ..Facts::of(items::ATOMS) };
        let position = place.map(|(uri, local)| self.bind(uri, local, number));
        Ok(Clause::For { variable, position, source })
    }

    fn let_clause(&mut self) -> Parsed<Clause> {
        let (uri, local) = self.bound_name()?;
        self.scanner.peek();
        if !self.scanner.take_here(":=") {
            return Err(self.scanner.declined("expected :="));
        }
        let value = self.single()?;
        let facts = self.facts(value);
        let variable = self.bind(uri, local, facts);
        Ok(Clause::Let { variable, value })
    }

    /// `stable order by key ascending empty least, ...`
    fn order(&mut self, facts: &mut Facts) -> Parsed<Vec<OrderKey>> {
        let is_stable = self.scanner.take_word("stable");
        if !self.scanner.take_word("order") {
            if is_stable {
                return Err(self.scanner.declined("expected order by"));
            }
            return Ok(Vec::new());
        }
        self.scanner.expect_word("by", "expected by")?;
        let mut keys = Vec::new();
        loop {
            self.count()?;
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
                    self.scanner.expect_word("least", "expected least or greatest")?;
                }
            }
            keys.push(OrderKey::new(key, is_descending, is_empty_least));
            if !self.scanner.take(b',') {
                return Ok(keys);
            }
        }
    }

    fn quantified(&mut self, is_every: bool) -> Parsed<ExprId> {
        self.enter()?;
        self.count()?;
        let (outer, loops) = (self.variables.len(), self.loops);
        self.scanner.ncname();
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
        self.scanner.expect_word("satisfies", "expected satisfies or a comma")?;
        let condition = self.single()?;
        self.need_value(condition)?;
        facts = facts.around(self.facts(condition));
        self.variables.truncate(outer);
        self.loops = loops;
        self.leave();
        let start = self.program.clauses.len() as u32;
        self.program.clauses.extend_from_slice(&bindings);
        let bindings = List { start, end: self.program.clauses.len() as u32 };
        Ok(self.push(Expr::Quantified { is_every, bindings, condition }, facts))
    }

    fn conditional(&mut self) -> Parsed<ExprId> {
        self.enter()?;
        self.count()?;
        self.scanner.ncname();
        self.scanner.expect(b'(', "expected (")?;
        let condition = self.sequence()?;
        self.need_value(condition)?;
        self.scanner.expect(b')', "expected )")?;
        self.scanner.expect_word("then", "expected then")?;
        let then = self.single()?;
        self.scanner.expect_word("else", "expected else")?;
        let otherwise = self.single()?;
        self.leave();
        let facts = Facts::of(items::NONE)
            .around(self.facts(condition))
            .giving(self.facts(then))
            .giving(self.facts(otherwise));
        Ok(self.push(Expr::If { condition, then, otherwise }, facts))
    }
}
