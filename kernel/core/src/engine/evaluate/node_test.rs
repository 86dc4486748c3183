//! Node tests against the names of a message (XPath 1.0, 2.3).

use super::document::{Document, Main, Node, Sort};
use crate::language::xpath::ast::{Axis, NodeTest, Step, TextRange};
use crate::xml::names::NameId;
use crate::xml::tree::MarkupKind;

/// Type of node that `*` and names select on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Principal {
    Element,
    Attribute,
    Namespace,
}

/// What the test asks for, names looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted<'a> {
    Any,
    /// This name; none if the message cannot have it.
    Name(Option<NameId>),
    AnyIn(&'a str),
    AnyNamespace(&'a str),
    /// A namespace node for this prefix.
    Prefix(&'a str),
    Nothing,
    Node,
    Container,
    Text,
    Element,
    Attribute,
    Comment,
    Instruction(Option<&'a str>),
}

/// The test of one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Test<'a> {
    principal: Principal,
    wanted: Wanted<'a>,
    /// Comments and instructions are visited. Where they cannot pass they are not even stepped over:
    /// an evaluation takes the same steps whether the tree has them or not.
    pub(crate) sees_markup: bool,
}

/// Nodes that can pass, where that allows a shorter way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    Elements,
    Texts,
    All,
}

impl<'a> Test<'a> {
    /// The test of a step, given the number of its name in the message's table.
    ///
    /// `texts` is what the ranges of the test point into.
    pub(crate) fn new(texts: &'a str, step: &Step, known: Option<NameId>) -> Self {
        let text = |range: TextRange| &texts[range.start as usize..range.end as usize];
        let principal = match step.axis {
            Axis::Attribute => Principal::Attribute,
            Axis::Namespace => Principal::Namespace,
            _ => Principal::Element,
        };
        let wanted = match step.test {
            NodeTest::Any => Wanted::Any,
            NodeTest::Name { uri, local, .. } if principal == Principal::Namespace => {
                let is_possible = uri.start == uri.end;
                if is_possible { Wanted::Prefix(text(local)) } else { Wanted::Nothing }
            }
            NodeTest::Name { .. } => Wanted::Name(known),
            NodeTest::AnyIn { uri } => Wanted::AnyIn(text(uri)),
            NodeTest::AnyNamespace { local } => Wanted::AnyNamespace(text(local)),
            NodeTest::Node => Wanted::Node,
            NodeTest::Container => Wanted::Container,
            NodeTest::Text => Wanted::Text,
            NodeTest::Element => Wanted::Element,
            NodeTest::Attribute => Wanted::Attribute,
            NodeTest::Comment => Wanted::Comment,
            NodeTest::Instruction(target) => Wanted::Instruction(target.map(text)),
        };
        Test { principal, wanted, sees_markup: step.test.sees_markup() }
    }

    /// Which nodes need to be visited on axes of elements, texts and markup.
    pub(crate) fn range(&self) -> Range {
        match self.wanted {
            Wanted::Any
            | Wanted::Name(_)
            | Wanted::AnyIn(_)
            | Wanted::AnyNamespace(_)
            | Wanted::Element
            | Wanted::Container => Range::Elements,
            Wanted::Text => Range::Texts,
            _ => Range::All,
        }
    }

    /// Whether an element passes.
    #[inline(always)]
    pub(crate) fn takes_element(&self, document: &Document<'_>, element: u32) -> bool {
        match self.wanted {
            Wanted::Name(known) => Some(document.tree.name[element as usize]) == known,
            Wanted::Any => self.principal == Principal::Element,
            Wanted::Node | Wanted::Container | Wanted::Element => true,
            _ => self.takes_name(document, document.tree.name[element as usize]),
        }
    }

    /// Whether an attribute passes, on the attribute axis.
    #[inline(always)]
    pub(crate) fn takes_attribute(&self, document: &Document<'_>, attribute: u32) -> bool {
        match self.wanted {
            Wanted::Name(known) => Some(document.tree.attribute_name[attribute as usize]) == known,
            Wanted::Any | Wanted::Node | Wanted::Attribute => true,
            _ => self.takes_name(document, document.tree.attribute_name[attribute as usize]),
        }
    }

    fn takes_name(&self, document: &Document<'_>, name: NameId) -> bool {
        match self.wanted {
            Wanted::AnyIn(uri) => document.names.uri(name) == uri,
            Wanted::AnyNamespace(local) => document.names.local(name) == local,
            _ => false,
        }
    }

    /// Whether any node passes.
    pub(crate) fn takes(&self, document: &Document<'_>, node: Node) -> bool {
        if self.wanted == Wanted::Node {
            return true;
        }
        match (document.sort(node), self.principal) {
            (Sort::Main(Main::Element(element)), Principal::Element) => {
                self.takes_element(document, element)
            }
            (Sort::Main(Main::Document), _) => self.wanted == Wanted::Container,
            (Sort::Main(Main::Text(_)), _) => self.wanted == Wanted::Text,
            (Sort::Main(Main::Markup(markup)), _) => self.takes_markup(document, markup),
            (Sort::Attribute(_), _) if self.wanted == Wanted::Attribute => true,
            (Sort::Attribute(attribute), Principal::Attribute) => {
                self.takes_attribute(document, attribute)
            }
            (Sort::Namespace(declaration), Principal::Namespace) => {
                self.takes_prefix(document.declared_prefix(declaration))
            }
            (Sort::XmlNamespace, Principal::Namespace) => self.takes_prefix(b"xml"),
            _ => false,
        }
    }

    fn takes_markup(&self, document: &Document<'_>, markup: u32) -> bool {
        let kind = document.tree.markup_kind[markup as usize];
        match self.wanted {
            Wanted::Comment => kind == MarkupKind::Comment,
            Wanted::Instruction(None) => kind == MarkupKind::Instruction,
            Wanted::Instruction(Some(target)) => {
                let written = document.bytes(document.tree.markup_target[markup as usize]);
                kind == MarkupKind::Instruction && written == target.as_bytes()
            }
            _ => false,
        }
    }

    /// A namespace node has the prefix as its name, in no namespace (XPath 1.0, 5.4).
    fn takes_prefix(&self, prefix: &[u8]) -> bool {
        match self.wanted {
            Wanted::Any => true,
            Wanted::Prefix(wanted) | Wanted::AnyNamespace(wanted) => prefix == wanted.as_bytes(),
            Wanted::AnyIn(uri) => uri.is_empty(),
            _ => false,
        }
    }
}
