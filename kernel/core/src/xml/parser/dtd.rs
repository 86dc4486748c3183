//! What an internal subset has declared, as far as a non-validating processor uses it: general
//! entities, and types and defaults of attributes.

use super::refusal::{Code, Fault, Step};
use crate::xml::tree::Span;
use hashbrown::HashMap;
use std::hash::RandomState;

/// Text -> T, safe against keys made to collide.
pub(super) type ByName<T> = HashMap<Box<str>, T, RandomState>;

/// A general entity, as far as a processor that fetches nothing is concerned.
#[derive(Debug)]
pub(super) enum Entity<'d> {
    /// Its replacement text.
    Internal(&'d str),
    /// External and parsed: skipped.
    External,
    /// External and unparsed.
    Unparsed,
}

/// What a declaration of a general entity says.
#[derive(Debug)]
pub(super) enum EntityValue {
    Internal(String),
    External,
    Unparsed,
}

struct DeclaredEntity {
    name: Box<str>,
    value: EntityValue,
    /// Declared in the subset itself rather than in a parameter entity.
    is_in_subset: bool,
}

/// One attribute of an attribute-list declaration.
pub(super) struct Definition {
    pub(crate) name: Box<str>,
    pub(crate) is_cdata: bool,
    /// Of type ID.
    pub(crate) is_id: bool,
    pub(crate) default: Option<String>,
    /// Where the default lies in the scratch buffer of the message.
    pub(crate) span: Span,
    /// Number among all definitions of the message.
    pub(crate) number: u32,
}

/// The attributes declared for one element type; the first declaration of an attribute counts.
#[derive(Default)]
pub(super) struct AttributeList {
    pub(crate) definitions: Vec<Definition>,
    index: ByName<u32>,
}

impl AttributeList {
    pub(crate) fn find(&self, name: &str) -> Option<&Definition> {
        self.index.get(name).map(|&index| &self.definitions[index as usize])
    }
}

/// The declarations of one message.
pub(super) struct Dtd {
    entities: Vec<DeclaredEntity>,
    entity_index: ByName<usize>,
    lists: ByName<AttributeList>,
    definitions: u32,
    /// A reference to an entity that is not declared is a fault (WFC: Entity Declared), not one
    /// to something that was not read.
    pub(crate) is_complete: bool,
}

impl Default for Dtd {
    fn default() -> Self {
        Dtd {
            entities: Vec::new(),
            entity_index: ByName::default(),
            lists: ByName::default(),
            definitions: 0,
            is_complete: true,
        }
    }
}

impl Dtd {
    /// The entity of a name; `None` when it may be declared where it was not read.
    pub(crate) fn entity(&self, name: &str, at: usize) -> Step<Option<(usize, Entity<'_>)>> {
        self.entity_if(name, at, self.is_complete)
    }

    /// As [`Dtd::entity`], for a place where declarations may still follow.
    pub(crate) fn entity_if(
        &self,
        name: &str,
        at: usize,
        is_complete: bool,
    ) -> Step<Option<(usize, Entity<'_>)>> {
        let found = self.entity_index.get(name).copied();
        let Some(number) =
            found.filter(|&number| self.entities[number].is_in_subset || !is_complete)
        else {
            if is_complete {
                return Err(Fault::new(Code::EntityUndeclared, at).text("name", name));
            }
            return Ok(None);
        };
        let entity = match &self.entities[number].value {
            EntityValue::Internal(text) => Entity::Internal(text),
            EntityValue::External => Entity::External,
            EntityValue::Unparsed => Entity::Unparsed,
        };
        Ok(Some((number, entity)))
    }

    /// Name of an entity.
    pub(crate) fn name(&self, entity: usize) -> &str {
        &self.entities[entity].name
    }

    /// Declares a general entity; the first declaration counts.
    pub(crate) fn declare_entity(&mut self, name: &str, value: EntityValue, is_in_subset: bool) {
        if !self.entity_index.contains_key(name) {
            self.entity_index.insert(name.into(), self.entities.len());
            self.entities.push(DeclaredEntity { name: name.into(), value, is_in_subset });
        }
    }

    /// Declares an attribute; the first declaration counts.
    pub(crate) fn declare_attribute(
        &mut self,
        element: &str,
        name: &str,
        (is_cdata, is_id): (bool, bool),
        default: Option<String>,
    ) {
        let list = self.lists.entry(element.into()).or_default();
        if list.index.contains_key(name) {
            return;
        }
        list.index.insert(name.into(), list.definitions.len() as u32);
        let number = self.definitions;
        self.definitions += 1;
        let span = Span::default();
        let name = name.into();
        list.definitions.push(Definition { name, is_cdata, is_id, default, span, number });
    }

    /// Number of attribute definitions.
    #[inline]
    pub(crate) fn definitions(&self) -> u32 {
        self.definitions
    }

    /// The attributes declared for an element type.
    #[inline(always)]
    pub(crate) fn attribute_list(&self, element: &str) -> Option<&AttributeList> {
        if self.definitions == 0 { None } else { self.lists.get(element) }
    }

    /// Puts the defaults where spans can point to them.
    pub(crate) fn place_defaults(&mut self, scratch: &mut String) {
        for definition in self.lists.values_mut().flat_map(|list| &mut list.definitions) {
            if let Some(default) = &definition.default {
                definition.span = Span::in_scratch(scratch.len() as u32, default.len() as u32);
                scratch.push_str(default);
            }
        }
    }
}
