//! The core functions (XPath 1.0, 4).

use super::budget::{Budget, Within};
use super::document::{Document, Main, Node, Sort, XML_URI};
use super::evaluator::{Evaluator, Text};
use super::ids::Ids;
use super::path_machine::{Context, PathMachine, put_in_order};
use crate::language::functions::Function;
use crate::language::number_text::round;
use crate::language::numbers::is_blank;
use crate::language::strings;
use crate::language::xpath::ast::{ExprId, Kind, List};
use crate::xml::names::hash_name;
use crate::xml::tree::MarkupKind;
use memchr::memmem;
use std::borrow::Cow;

impl<'a> Evaluator<'a> {
    fn argument(&self, list: List, index: usize) -> Option<ExprId> {
        self.arena.list(list).get(index).copied()
    }

    /// An argument that the parser has made sure of.
    fn string_argument(&mut self, list: List, index: usize, context: Context) -> Within<Text<'a>> {
        match self.argument(list, index) {
            Some(id) => self.string(id, context),
            None => self.string_value(context.node),
        }
    }

    /// As [`Evaluator::string_argument`], charged as text that is gone through.
    fn text_argument(&mut self, list: List, index: usize, context: Context) -> Within<Text<'a>> {
        let text = self.string_argument(list, index, context)?;
        self.budget.charge_text(text.len())?;
        Ok(text)
    }

    fn number_argument(&mut self, list: List, index: usize, context: Context) -> Within<f64> {
        match self.argument(list, index) {
            Some(id) => self.number(id, context),
            None => self.number_of_node(context.node),
        }
    }

    /// Functions that give a boolean.
    pub(crate) fn call_boolean(
        &mut self,
        function: Function,
        list: List,
        context: Context,
    ) -> Within<bool> {
        self.budget.charge(1)?;
        match function {
            Function::True => Ok(true),
            Function::Boolean | Function::Not => {
                let Some(id) = self.argument(list, 0) else { return Ok(false) };
                Ok(self.boolean(id, context)? == (function == Function::Boolean))
            }
            Function::Contains => {
                let text = self.text_argument(list, 0, context)?;
                let part = self.text_argument(list, 1, context)?;
                Ok(memmem::find(&text, &part).is_some())
            }
            Function::StartsWith => {
                let text = self.string_argument(list, 0, context)?;
                let part = self.text_argument(list, 1, context)?;
                Ok(text.starts_with(&part))
            }
            Function::Lang => {
                let wanted = self.text_argument(list, 0, context)?;
                self.is_in_language(context.node, &wanted)
            }
            _ => Ok(false),
        }
    }

    /// Functions that give a number.
    pub(crate) fn call_number(
        &mut self,
        function: Function,
        list: List,
        context: Context,
    ) -> Within<f64> {
        self.budget.charge(1)?;
        match function {
            Function::Position => Ok(f64::from(context.position)),
            Function::Last => Ok(f64::from(context.size)),
            Function::Count => {
                let Some(id) = self.argument(list, 0) else { return Ok(0.0) };
                let nodes = self.nodes(id, context)?;
                let count = nodes.len();
                self.give_list(nodes);
                Ok(count as f64)
            }
            Function::Sum => {
                let Some(id) = self.argument(list, 0) else { return Ok(0.0) };
                let nodes = self.nodes(id, context)?;
                let mut sum = 0.0;
                for &node in &nodes {
                    self.budget.charge(1)?;
                    sum += self.number_of_node(node)?;
                }
                self.give_list(nodes);
                Ok(sum)
            }
            Function::Number => self.number_argument(list, 0, context),
            Function::StringLength => {
                let text = self.text_argument(list, 0, context)?;
                Ok(strings::char_count(&text) as f64)
            }
            Function::Floor => Ok(self.number_argument(list, 0, context)?.floor()),
            Function::Ceiling => Ok(self.number_argument(list, 0, context)?.ceil()),
            Function::Round => Ok(round(self.number_argument(list, 0, context)?)),
            _ => Ok(f64::NAN),
        }
    }

    /// Functions that give a string.
    pub(crate) fn call_string(
        &mut self,
        function: Function,
        list: List,
        context: Context,
    ) -> Within<Text<'a>> {
        self.budget.charge(1)?;
        match function {
            Function::String => self.string_argument(list, 0, context),
            Function::Concat => {
                let mut all = Vec::new();
                for index in 0..list.len() {
                    let text = self.text_argument(list, index, context)?;
                    all.extend_from_slice(&text);
                }
                Ok(Cow::Owned(all))
            }
            Function::NormalizeSpace => {
                Ok(strings::normalized(self.text_argument(list, 0, context)?))
            }
            Function::Substring => {
                let text = self.text_argument(list, 0, context)?;
                let start = self.number_argument(list, 1, context)?;
                let length = match self.argument(list, 2) {
                    Some(id) => Some(self.number(id, context)?),
                    None => None,
                };
                Ok(strings::substring(text, start, length))
            }
            Function::SubstringBefore | Function::SubstringAfter => {
                let text = self.text_argument(list, 0, context)?;
                let mark = self.text_argument(list, 1, context)?;
                Ok(match function {
                    Function::SubstringBefore => strings::before(text, &mark, false),
                    _ => strings::after(text, &mark, false),
                })
            }
            Function::Translate => {
                let text = self.text_argument(list, 0, context)?;
                let from = self.text_argument(list, 1, context)?;
                let to = self.text_argument(list, 2, context)?;
                Ok(Cow::Owned(strings::translated(&text, &from, &to)))
            }
            Function::LocalName | Function::Name | Function::NamespaceUri => {
                let node = match self.argument(list, 0) {
                    Some(id) => self.first(id, context)?,
                    None => Some(context.node),
                };
                Ok(node.map_or(Cow::Borrowed(&b""[..]), |node| {
                    name_of(&self.document, function, node)
                }))
            }
            _ => Ok(Cow::Borrowed(b"")),
        }
    }

    /// `lang()`: whether the nearest `xml:lang` says that it is the language or a dialect of it.
    fn is_in_language(&mut self, node: Node, wanted: &[u8]) -> Within<bool> {
        let found = language_of(&self.document, node, &mut self.budget)?;
        Ok(found.is_some_and(|found| is_same_language(found, wanted)))
    }

    /// `id()`: the elements whose ids are among the words of the argument; of a node-set, of the
    /// string-values of all its nodes.
    pub(crate) fn call_id(&mut self, list: List, context: Context) -> Within<Vec<Node>> {
        self.budget.charge(1)?;
        let mut found = self.take_list();
        let Some(id) = self.argument(list, 0) else { return Ok(found) };
        if self.arena.kind(id) == Kind::Nodes {
            let nodes = self.nodes(id, context)?;
            for &node in &nodes {
                self.budget.charge(1)?;
                let text = self.string_value(node)?;
                self.add_elements_with_ids(&text, &mut found)?;
            }
            self.give_list(nodes);
        } else {
            let text = self.string(id, context)?;
            self.budget.charge_text(text.len())?;
            self.add_elements_with_ids(&text, &mut found)?;
        }
        put_in_order(&mut found);
        Ok(found)
    }

    fn add_elements_with_ids(&mut self, text: &[u8], found: &mut Vec<Node>) -> Within<()> {
        let (ids, budget) = (&mut self.state.ids, &mut self.budget);
        add_elements_with_ids(&self.document, ids, text, budget, found)
    }
}

/// Adds the elements whose ids are among the words of a text.
pub(crate) fn add_elements_with_ids(
    document: &Document<'_>,
    ids: &mut Ids,
    text: &[u8],
    budget: &mut Budget,
    found: &mut Vec<Node>,
) -> Within<()> {
    for word in text.split(|&byte| is_blank(byte)).filter(|word| !word.is_empty()) {
        budget.charge(1)?;
        if let Some(element) = ids.element(document, word) {
            found.push(Node::at(document.element_position(element)));
        }
    }
    Ok(())
}

/// What the nearest `xml:lang` says, at a node or above it.
pub(crate) fn language_of<'a>(
    document: &Document<'a>,
    node: Node,
    budget: &mut Budget,
) -> Within<Option<&'a [u8]>> {
    // Where no message has had the name yet, the walk is taken nevertheless: its steps must not
    // depend on the messages before.
    let hash = hash_name(XML_URI, "lang");
    let name = document.names.find(hash, XML_URI.as_bytes(), b"lang");
    let mut at = Some(node.position());
    while let Some(position) = at {
        budget.charge(1)?;
        if let Some(element) = document.element(position) {
            for attribute in document.attributes(element) {
                if Some(document.tree.attribute_name[attribute as usize]) == name {
                    let span = document.tree.attribute_value[attribute as usize];
                    return Ok(Some(document.bytes(span)));
                }
            }
        }
        at = document.parent(position);
    }
    Ok(None)
}

/// `de` covers `de` and `de-AT`; case does not count (XPath 1.0, 4.3).
pub(crate) fn is_same_language(found: &[u8], wanted: &[u8]) -> bool {
    let (start, rest) = found.split_at_checked(wanted.len()).unwrap_or((b"", b"?"));
    start.eq_ignore_ascii_case(wanted) && (rest.is_empty() || rest[0] == b'-')
}

/// What a function of names says of a node.
pub(crate) fn name_of<'a>(document: &Document<'a>, function: Function, node: Node) -> Text<'a> {
    let tree = document.tree;
    let (name, prefix) = match document.sort(node) {
        Sort::Main(Main::Element(element)) => {
            (tree.name[element as usize], tree.prefix.get(element as usize))
        }
        Sort::Attribute(attribute) => {
            let attribute = attribute as usize;
            (tree.attribute_name[attribute], tree.attribute_prefix.get(attribute))
        }
        other => return Cow::Borrowed(name_without_namespace(document, function, other)),
    };
    let local = document.names.local(name).as_bytes();
    match (function, prefix.map(|&prefix| document.bytes(prefix))) {
        (Function::NamespaceUri, _) => Cow::Borrowed(document.names.uri(name).as_bytes()),
        (Function::Name, Some(prefix)) if !prefix.is_empty() => {
            Cow::Owned([prefix, b":", local].concat())
        }
        _ => Cow::Borrowed(local),
    }
}

/// Names of nodes that are in no namespace: instructions have their target, namespace nodes
/// their prefix.
fn name_without_namespace<'a>(document: &Document<'a>, function: Function, sort: Sort) -> &'a [u8] {
    if function == Function::NamespaceUri {
        return b"";
    }
    match sort {
        Sort::Namespace(declaration) => document.declared_prefix(declaration),
        Sort::XmlNamespace => b"xml",
        Sort::Main(Main::Markup(markup)) => match document.tree.markup_kind[markup as usize] {
            MarkupKind::Instruction => document.bytes(document.tree.markup_target[markup as usize]),
            MarkupKind::Comment => b"",
        },
        _ => b"",
    }
}
