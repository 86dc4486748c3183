//! The few calls that results come down to: a tag, an attribute, a text, a node, the end of an
//! element. Each becomes bytes, or, in an element that a variable will hold, an event.

use super::run::{Evaluator, Run};
use super::value::{Event, Text};
use crate::engine::evaluate::document::Node;
use crate::engine::evaluate::node_ref;
use crate::language::xpath::TextRange;
use crate::language::xquery::syntax::{ComputedName, Declaration, Name};
use crate::xml::serializer::{write_attribute_value, write_text};
use hashbrown::HashSet;

/// An element under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The constructor.
    pub(crate) element: u32,
    /// Its name as written, if it is computed.
    name: Text,
    /// Its start tag has not been ended.
    is_tag_open: bool,
    /// It has content, so that no attribute may come.
    pub(crate) has_content: bool,
    /// The item before, of the same enclosed expression, is an atomic value.
    pub(crate) is_after_atomic: bool,
    /// Where its attributes with computed names begin.
    pub(crate) named_start: u32,
    /// Where its copied attributes begin.
    pub(crate) copied_start: u32,
    /// It declares namespaces: a scope is its own.
    has_scope: bool,
}

impl Evaluator<'_, '_> {
    pub(super) fn note_content(&mut self) {
        if let Some(frame) = self.state.frames.last_mut() {
            frame.has_content = true;
        }
    }

    /// Begins an element; its name is as written, where it is computed.
    pub(super) fn start_element(&mut self, number: u32, name: Text) -> Run<()> {
        let is_recording = self.recording > 0;
        let has_scope = if is_recording {
            self.note_name(name);
            self.state.events.push(Event::Start(number));
            false
        } else {
            self.end_tag()?;
            self.out.bytes.push(b'<');
            self.write_name_of(self.program.element(number).name, name)?;
            let before = self.state.scopes.len();
            self.declare_namespaces(number, name)?;
            self.state.scopes.len() > before
        };
        self.state.frames.push(Frame {
            element: number,
            name,
            is_tag_open: !is_recording,
            has_content: false,
            is_after_atomic: false,
            named_start: self.state.named.len() as u32,
            copied_start: self.state.copied.len() as u32,
            has_scope,
        });
        Ok(())
    }

    pub(super) fn attribute(&mut self, at: u32, name: Text, value: Text) -> Run<()> {
        if self.recording > 0 {
            self.note_name(name);
            self.state.events.push(Event::Attribute(at, value));
            return Ok(());
        }
        self.limit.check_room(&self.out.bytes, value.len())?;
        let attribute = self.program.attributes[at as usize];
        if let Some(computed) = attribute.computed {
            self.declare_name_of_attribute(computed, name)?;
        }
        self.out.bytes.push(b' ');
        self.write_name_of(attribute.name, name)?;
        self.out.bytes.extend_from_slice(b"=\"");
        let mut bytes = std::mem::take(&mut self.out.bytes);
        write_attribute_value(&mut bytes, self.bytes(value));
        self.out.bytes = bytes;
        self.out.bytes.push(b'"');
        Ok(self.limit.check(&self.out.bytes)?)
    }

    pub(super) fn copied_attribute(&mut self, attribute: u32) -> Run<()> {
        if self.recording > 0 {
            self.state.events.push(Event::CopiedAttribute(attribute));
            return Ok(());
        }
        let name = self.document.tree.attribute_name[attribute as usize];
        let has_namespace = !self.document.names.uri(name).is_empty();
        if let Some(frame) = self.state.frames.last_mut()
            && has_namespace
            && !frame.has_scope
        {
            frame.has_scope = true;
            let inner = self.state.scopes.last().cloned().unwrap_or_default();
            self.state.scopes.push(inner);
        }
        if let Some(scope) = self.state.scopes.last_mut() {
            self.writer.attribute(&mut self.out.bytes, attribute, scope, self.limit)?;
        }
        Ok(())
    }

    pub(super) fn text(&mut self, text: Text) -> Run<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.note_content();
        if self.recording > 0 {
            self.budget.charge(1)?;
            self.state.events.push(Event::Text(text));
            return Ok(());
        }
        self.end_tag()?;
        self.write_text(text)
    }

    pub(super) fn node(&mut self, node: Node) -> Run<()> {
        self.note_content();
        if self.recording > 0 {
            self.state.events.push(Event::Node(node));
            return Ok(());
        }
        self.end_tag()?;
        self.write_node(node)
    }

    pub(super) fn end_element(&mut self) -> Run<()> {
        let Some(frame) = self.state.frames.pop() else {
            return Ok(());
        };
        self.state.named.truncate(frame.named_start as usize);
        self.state.copied.truncate(frame.copied_start as usize);
        if self.recording > 0 {
            self.state.events.push(Event::End);
            return Ok(());
        }
        if frame.has_scope {
            self.state.scopes.pop();
        }
        if frame.is_tag_open {
            self.out.bytes.extend_from_slice(b"/>");
        } else {
            self.out.bytes.extend_from_slice(b"</");
            self.write_name_of(self.program.element(frame.element).name, frame.name)?;
            self.out.bytes.push(b'>');
        }
        Ok(self.limit.check(&self.out.bytes)?)
    }

    /// Ends the start tag of the element under way.
    fn end_tag(&mut self) -> Run<()> {
        if let Some(frame) = self.state.frames.last_mut()
            && frame.is_tag_open
        {
            frame.is_tag_open = false;
            self.out.bytes.push(b'>');
            self.limit.check(&self.out.bytes)?;
        }
        Ok(())
    }

    pub(super) fn write_text(&mut self, text: Text) -> Run<()> {
        self.limit.check_room(&self.out.bytes, text.len())?;
        let mut bytes = std::mem::take(&mut self.out.bytes);
        write_text(&mut bytes, self.bytes(text));
        self.out.bytes = bytes;
        Ok(self.limit.check(&self.out.bytes)?)
    }

    pub(super) fn write_node(&mut self, node: Node) -> Run<()> {
        let node = node_ref(&self.document, node);
        if let Some(scope) = self.state.scopes.last() {
            self.writer.node(&mut self.out.bytes, node, scope, self.limit)?;
        }
        Ok(())
    }

    fn note_name(&mut self, name: Text) {
        if !name.is_empty() {
            self.state.events.push(Event::Name(name));
        }
    }

    /// Writes a constant name, or the computed one if there is one.
    fn write_name_of(&mut self, constant: Name, computed: Text) -> Run<()> {
        if computed.is_empty() {
            self.write_name(constant);
            return Ok(());
        }
        self.limit.check_room(&self.out.bytes, computed.len())?;
        let mut bytes = std::mem::take(&mut self.out.bytes);
        bytes.extend_from_slice(self.bytes(computed));
        self.out.bytes = bytes;
        Ok(())
    }

    fn write_name(&mut self, name: Name) {
        if name.prefix.start < name.prefix.end {
            self.out.bytes.extend_from_slice(self.program.text(name.prefix).as_bytes());
            self.out.bytes.push(b':');
        }
        self.out.bytes.extend_from_slice(self.program.text(name.local).as_bytes());
    }

    /// Declares what a constructor declares, what those around it do, and what its names need.
    fn declare_namespaces(&mut self, number: u32, name: Text) -> Run<()> {
        let program = self.program;
        let element = program.element(number);
        let mut has_scope = false;
        let own = program.declarations(element.namespaces);
        self.charge_declarations(own.len())?;
        for declaration in own {
            self.declare(declaration.prefix, declaration.uri, &mut has_scope);
        }
        // Where a constructor stands in another, what that declares is in scope; where a variable
        // brought it, it may not be.
        let around = self.state.frames.last().map(|frame| frame.element);
        if element.outer.is_some() && element.outer != around {
            self.declare_around(number, &mut has_scope)?;
        }
        let Name { prefix, uri, .. } = element.name;
        let (prefix, uri) = match element.computed {
            None => (prefix, uri),
            Some(computed) => self.namespace_of(computed, name, false).unwrap_or_default(),
        };
        self.declare(prefix, uri, &mut has_scope);
        for attribute in program.attributes(element.attributes) {
            if attribute.name.prefix.start < attribute.name.prefix.end {
                self.declare(attribute.name.prefix, attribute.name.uri, &mut has_scope);
            }
        }
        Ok(())
    }

    /// Declares what the prefix of a computed name of an attribute means.
    fn declare_name_of_attribute(&mut self, computed: ComputedName, name: Text) -> Run<()> {
        let (prefix, uri) = self.namespace_of(computed, name, true).unwrap_or_default();
        if prefix.start == prefix.end {
            return Ok(());
        }
        let mut has_scope = self.state.frames.last().is_some_and(|frame| frame.has_scope);
        self.declare(prefix, uri, &mut has_scope);
        if let Some(frame) = self.state.frames.last_mut() {
            frame.has_scope = has_scope;
        }
        Ok(self.limit.check(&self.out.bytes)?)
    }

    /// Declares what the constructors around one declare, unless it is overridden or taken back.
    fn declare_around(&mut self, number: u32, has_scope: &mut bool) -> Run<()> {
        let program = self.program;
        let mut overridden: HashSet<&str> = HashSet::default();
        let mut at = Some(number);
        while let Some(constructor) = at {
            let element = program.element(constructor);
            let declarations = program.declarations(element.namespaces);
            self.charge_declarations(1 + declarations.len())?;
            for &Declaration { prefix, uri } in declarations {
                let is_new = overridden.insert(program.text(prefix));
                if is_new && constructor != number && uri.start < uri.end {
                    self.declare(prefix, uri, has_scope);
                }
            }
            at = element.outer;
        }
        Ok(())
    }

    /// Every declaration is looked up among those in scope.
    fn charge_declarations(&mut self, count: usize) -> Run<()> {
        Ok(self.budget.charge(count.saturating_mul(count) as u64 / 16)?)
    }

    /// Has a prefix mean a namespace in the element whose tag is open.
    fn declare(&mut self, prefix: TextRange, uri: TextRange, has_scope: &mut bool) {
        let (prefix, uri) = (self.program.text(prefix), self.program.text(uri));
        let Some(scope) = self.state.scopes.last() else {
            return;
        };
        if prefix == "xml" || scope.uri(prefix).unwrap_or("") == uri {
            return;
        }
        if !*has_scope {
            let inner = scope.clone();
            self.state.scopes.push(inner);
            *has_scope = true;
        }
        if let Some(scope) = self.state.scopes.last_mut() {
            scope.declare(prefix, uri);
        }
        let bytes = &mut self.out.bytes;
        bytes.extend_from_slice(b" xmlns");
        if !prefix.is_empty() {
            bytes.push(b':');
            bytes.extend_from_slice(prefix.as_bytes());
        }
        bytes.extend_from_slice(b"=\"");
        write_attribute_value(bytes, uri.as_bytes());
        bytes.push(b'"');
    }
}
