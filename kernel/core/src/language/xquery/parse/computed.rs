//! Computed constructors of elements (XQuery 3.1, 3.9.3).
//!
//! `element a {attribute b {e}, text {f}, g}` is `<a b="{e}">{...}{g}</a>`: attributes come first, and each text is a
//! part of the content of its own. Elsewhere there are no computed attributes and texts: no item is one. A name that is
//! no constant stays an expression, with the namespaces that are known at its place.

use super::super::syntax::{
    Attribute, Clause, ComputedName, Declaration, Element, Expr, ExprId, Name, Part,
};
use super::constructors::{Parts, Written};
use super::facts::items;
use super::{Facts, Parser};
use crate::language::functions::Function;
use crate::language::grammar::names::qname_length;
use crate::language::grammar::scan::is_blank;
use crate::language::refusal::{Parsed, Reason, Refusal};
use crate::language::xpath::{List, TextRange};

/// The words before a brace, or a name and a brace.
const WORDS: [&str; 7] =
    ["element", "attribute", "text", "document", "comment", "processing-instruction", "namespace"];

/// The name of a constructor.
enum Naming<'t> {
    Constant(Written<'t>),
    Computed(ComputedName),
}

/// What the content of an element consists of, while it is read.
#[derive(Default)]
struct Content {
    attributes: Vec<Attribute>,
    places: Vec<u32>,
    parts: Parts,
    /// Items that are one part, and where they begin.
    items: Vec<ExprId>,
    place: u32,
}

impl<'t> Parser<'t> {
    /// The word of a computed constructor that comes next: where it stands, and the word.
    pub(super) fn computed_word(&mut self) -> Option<&'static str> {
        if !matches!(self.scanner.peek(), b'a' | b'c'..=b'e' | b'n' | b'p' | b't') {
            return None;
        }
        let rest = self.scanner.rest();
        let word = WORDS.into_iter().find(|word| rest.starts_with(word))?;
        let mark = self.scanner.at;
        let is_word = self.scanner.ncname_here() == Some(word) && !self.scanner.has_local_name();
        let takes_name = !matches!(word, "text" | "document" | "comment");
        let is_here = is_word
            && (self.scanner.peek() == b'{'
                || takes_name && {
                    self.scanner.at += qname_length(self.scanner.rest());
                    self.scanner.peek() == b'{'
                });
        self.scanner.at = mark;
        is_here.then_some(word)
    }

    /// A computed constructor where an expression is expected.
    pub(super) fn computed(&mut self, word: &'static str) -> Parsed<ExprId> {
        let offset = self.scanner.at;
        if word != "element" {
            return Err(Refusal::new(offset, Reason::ComputedConstructor, vec![word.into()]));
        }
        self.count(offset)?;
        self.enter(offset)?;
        self.scanner.skip(word.len());
        let place = self.scanner.place();
        let naming = self.naming(offset)?;
        let number = self.program.elements.len() as u32;
        self.program.elements.push(Element::default());
        self.origins(|origins| origins.elements.push(offset as u32));
        let outer = self.constructor.replace(number);
        let mut facts = Facts { items: items::BUILT, depth: 1, ..Facts::default() };
        let (name, computed) = match naming {
            Naming::Constant(written) => (self.constructed_name(written, false, place)?, None),
            Naming::Computed(computed) => {
                facts = facts.around(self.facts(computed.expr));
                (Name::default(), Some(computed))
            }
        };
        let content = self.computed_content(&mut facts)?;
        let start = self.program.attributes.len() as u32;
        self.program.attributes.extend_from_slice(&content.attributes);
        self.origins(|origins| origins.attributes.extend(&content.places));
        let attributes = List { start, end: self.program.attributes.len() as u32 };
        let content = self.parts(&content.parts);
        self.constructor = outer;
        self.leave();
        self.program.elements[number as usize] =
            Element { name, computed, attributes, namespaces: List::default(), outer, content };
        Ok(self.push(Expr::Element(number), facts, offset))
    }

    /// The name after the word of a constructor: as it is, or in braces as a string or another expression.
    fn naming(&mut self, offset: usize) -> Parsed<Naming<'t>> {
        if self.scanner.peek() != b'{' {
            let start = self.scanner.at;
            self.scanner.at += qname_length(self.scanner.rest());
            let written = Written::of(self.scanner.slice(start, self.scanner.at));
            self.scanner.settle();
            let written =
                written.ok_or_else(|| self.scanner.unexpected(Reason::ExpectedElementName, &[]))?;
            return Ok(Naming::Constant(written));
        }
        self.scanner.skip(1);
        let mark = self.scanner.at;
        if let Some(written) = self.quoted_name() {
            return Ok(Naming::Constant(written));
        }
        self.scanner.at = mark;
        self.enter(offset)?;
        let place = self.scanner.place();
        let expr = self.sequence()?;
        self.leave();
        self.need_value(expr)?;
        if let Some(text) = self.literal_text(expr)
            && Written::of(text.trim_matches(is_blank)).is_none()
        {
            return Err(Refusal::new(place, Reason::NoName, vec![text.into()]));
        }
        self.scanner.expect(b'}', "or an operator")?;
        self.program.may_fail = true;
        Ok(Naming::Computed(ComputedName { expr, scope: self.known_namespaces(offset)? }))
    }

    /// A string that is a name, and the brace behind it.
    fn quoted_name(&mut self) -> Option<Written<'t>> {
        let quote = self.scanner.place();
        if !matches!(self.scanner.byte(), b'"' | b'\'') {
            return None;
        }
        let end = self.scanner.string_end(quote)?;
        let written = Written::of(self.scanner.slice(quote + 1, end - 1).trim_matches(is_blank))?;
        self.scanner.at = end;
        self.scanner.settle();
        self.scanner.take(b'}').then_some(written)
    }

    /// All namespaces that are statically known at a place, in the order of their prefixes.
    fn known_namespaces(&mut self, offset: usize) -> Parsed<List> {
        let known = self.namespaces_here();
        for (_, uri) in known.iter().filter(|(prefix, _)| prefix != "xml") {
            self.check_uri(uri, offset)?;
        }
        if let Some((before, list)) = &self.computed_scope
            && *before == known
        {
            return Ok(*list);
        }
        let start = self.program.declarations.len() as u32;
        for (prefix, uri) in &known {
            let declaration = Declaration { prefix: self.keep(prefix), uri: self.keep(uri) };
            self.program.declarations.push(declaration);
        }
        let list = List { start, end: self.program.declarations.len() as u32 };
        self.computed_scope = Some((known, list));
        Ok(list)
    }

    /// `{...}` of an element.
    fn computed_content(&mut self, facts: &mut Facts) -> Parsed<Content> {
        let mut content = Content::default();
        self.scanner.expect(b'{', "after the name")?;
        if self.scanner.take(b'}') {
            return Ok(content);
        }
        loop {
            let offset = self.scanner.place();
            match self.computed_word() {
                Some("attribute") if content.parts.is_empty() && content.items.is_empty() => {
                    self.computed_attribute(&mut content, facts)?;
                }
                Some("text") => self.computed_text(&mut content, facts)?,
                _ => {
                    let id = self.single()?;
                    let inner = self.facts(id);
                    self.program.may_fail |= inner.may_be_attribute;
                    *facts = facts.around(inner);
                    match self.program.expr(id) {
                        Expr::Element(number) => {
                            self.end_items(&mut content)?;
                            content.parts.push((Part::Element(number), offset as u32));
                        }
                        _ => {
                            if content.items.is_empty() {
                                content.place = offset as u32;
                            }
                            self.append(&mut content.items, id);
                        }
                    }
                }
            }
            if !self.scanner.take(b',') {
                break;
            }
            self.count(offset)?;
        }
        self.end_items(&mut content)?;
        self.scanner.expect(b'}', "or an operator")?;
        Ok(content)
    }

    /// The items so far become one part of the content.
    fn end_items(&mut self, content: &mut Content) -> Parsed<()> {
        let place = content.place;
        let id = match content.items[..] {
            [] => return Ok(()),
            [id] => id,
            ref items => self.sequence_of(items, place as usize),
        };
        self.count(place as usize)?;
        content.items.clear();
        content.parts.push((Part::Enclosed(id), place));
        Ok(())
    }

    /// `attribute name {e}` at the head of an element.
    fn computed_attribute(&mut self, content: &mut Content, facts: &mut Facts) -> Parsed<()> {
        let offset = self.scanner.at;
        self.count(offset)?;
        self.scanner.skip("attribute".len());
        let (name, computed) = match self.naming(offset)? {
            Naming::Constant(written) => (self.attribute_name(written, content, offset)?, None),
            Naming::Computed(computed) => {
                *facts = facts.around(self.facts(computed.expr));
                (Name::default(), Some(computed))
            }
        };
        let mut parts = Parts::new();
        let place = self.scanner.place();
        if let Some(id) = self.braced_value()? {
            *facts = facts.around(self.facts(id));
            parts.push((Part::Enclosed(id), place as u32));
        }
        let parts = self.parts(&parts);
        content.attributes.push(Attribute { name, computed, parts });
        content.places.push(offset as u32);
        Ok(())
    }

    /// A constant name of an attribute, which those before do not have.
    fn attribute_name(
        &mut self,
        written: Written<'t>,
        content: &Content,
        offset: usize,
    ) -> Parsed<Name> {
        if written.is_declaration() {
            return Err(Refusal::new(offset, Reason::XmlnsReserved, Vec::new()));
        }
        let name = self.constructed_name(written, true, offset)?;
        let text =
            |name: &Name| [name.uri, name.local].map(|range: TextRange| self.program.text(range));
        if content.attributes.iter().any(|known| text(&known.name) == text(&name)) {
            let shown = written.to_string();
            return Err(Refusal::new(offset, Reason::AttributeTwice, vec![shown.into()]));
        }
        Ok(name)
    }

    /// `text {e}` in an element: its values with blanks between them, as a part of its own.
    fn computed_text(&mut self, content: &mut Content, facts: &mut Facts) -> Parsed<()> {
        let offset = self.scanner.at;
        self.end_items(content)?;
        self.count(offset)?;
        self.scanner.skip("text".len());
        let Some(value) = self.braced_value()? else { return Ok(()) };
        let inner = self.facts(value);
        let (variable, bound) = self.bind_hidden("text", inner, offset);
        let used = [(); 2].map(|()| self.push(Expr::Variable(variable), bound, offset));
        let condition = self.push_call(Function::Exists, &used[..1], offset)?;
        let blank = self.keep(" ");
        let blank = self.push(Expr::String(blank), Facts::of(items::ATOMS), offset);
        let then = self.push_call(Function::StringJoin, &[used[1], blank], offset)?;
        let otherwise = self.sequence_of(&[], offset);
        let id = self.push_let_if(variable, value, [condition, then, otherwise], offset);
        *facts = facts.around(self.facts(id));
        content.parts.push((Part::Enclosed(id), offset as u32));
        Ok(())
    }

    /// `{e}` of an attribute or a text, whose value is read; none where nothing is between the braces.
    fn braced_value(&mut self) -> Parsed<Option<ExprId>> {
        let offset = self.scanner.place();
        self.scanner.expect(b'{', "after the name")?;
        if self.scanner.take(b'}') {
            return Ok(None);
        }
        self.enter(offset)?;
        let id = self.sequence()?;
        self.leave();
        self.need_value(id)?;
        self.scanner.expect(b'}', "or an operator")?;
        Ok(Some(id))
    }

    /// A variable that no text names, for the value of an expression.
    pub(super) fn bind_hidden(
        &mut self,
        local: &'t str,
        value: Facts,
        offset: usize,
    ) -> (u32, Facts) {
        let variable = self.bind(TextRange::default(), local, value, offset);
        let facts = self.variables.pop().map(|bound| bound.facts).unwrap_or_default();
        (variable, facts)
    }

    /// `let variable := value return if (condition) then ... else ...`
    pub(super) fn push_let_if(
        &mut self,
        variable: u32,
        value: ExprId,
        [condition, then, otherwise]: [ExprId; 3],
        offset: usize,
    ) -> ExprId {
        let own = Facts::of(items::NONE)
            .around(self.facts(condition))
            .giving(self.facts(then))
            .giving(self.facts(otherwise));
        let body = self.push(Expr::If { condition, then, otherwise }, own, offset);
        self.push_lets(&[(variable, value)], body, offset)
    }

    /// `let variable := value, ... return body`
    pub(super) fn push_lets(
        &mut self,
        bound: &[(u32, ExprId)],
        body: ExprId,
        offset: usize,
    ) -> ExprId {
        let start = self.program.clauses.len() as u32;
        let mut facts = Facts::of(items::NONE);
        for &(variable, value) in bound {
            self.program.clauses.push(Clause::Let { variable, value });
            facts = facts.around(self.facts(value).as_let());
        }
        let clauses = List { start, end: self.program.clauses.len() as u32 };
        let facts = facts.giving(self.facts(body));
        let order = List::default();
        self.push(Expr::Flwor { clauses, condition: None, order, body }, facts, offset)
    }
}
