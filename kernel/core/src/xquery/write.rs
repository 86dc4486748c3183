//! Results: the items of the body written as they come, constructors as they are met (XQuery 1.0,
//! 3.7.1).
//!
//! An element that a variable holds is written down as events and written out where it is used; no
//! element is ever a tree. Both ways go through the same few calls: a tag, an attribute, a text, a
//! node, the end of an element.

use super::RunError;
use super::run::{Evaluator, Keeps, Run};
use super::syntax::{Declaration, Expr, ExprId, Name, Part};
use super::value::{Event, Item, Text};
use crate::output::{write_attribute_value, write_text};
use crate::xpath::document::{Main, Node, Sort};
use crate::xpath::{TextRange, node_ref};

/// An element under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The constructor.
    element: u32,
    /// Its start tag has not been ended.
    is_tag_open: bool,
    /// It has content, so that no attribute may come.
    has_content: bool,
    /// The item before, of the same enclosed expression, is an atomic value.
    is_after_atomic: bool,
    /// Where its copied attributes begin.
    copied_start: u32,
    /// It declares namespaces: a scope is its own.
    has_scope: bool,
}

impl<'r, 'w> Evaluator<'r, 'w> {
    /// Writes the items of an expression: into the element under way, or as results. In the frame,
    /// it notes whether a content expression gives an item.
    pub fn write(&mut self, id: ExprId, is_frame: bool) -> Run<()> {
        match self.program.expr(id) {
            Expr::Sequence(list) => {
                for &item in self.program.list(list) {
                    self.write(item, is_frame)?;
                }
                Ok(())
            }
            Expr::Element(number) => {
                self.items_put += 1;
                if self.frame_open() {
                    self.note_element();
                    return self.element(number, is_frame);
                }
                self.element(number, is_frame)?;
                self.end_result();
                Ok(())
            }
            Expr::String(_) | Expr::Number(_) => self.write_items(id),
            _ => {
                let before = self.items_put;
                self.write_value(id)?;
                self.is_delivered |= is_frame && self.items_put > before;
                Ok(())
            }
        }
    }

    fn write_value(&mut self, id: ExprId) -> Run<()> {
        match self.program.expr(id) {
            Expr::Flwor { clauses, condition, order, body } => {
                let clauses = self.program.clauses(clauses);
                if order.is_empty() {
                    self.tuples(clauses, condition, Keeps::Nothing, &mut |evaluator| {
                        evaluator.write(body, false)?;
                        Ok(false)
                    })?;
                    return Ok(());
                }
                let mark = self.mark();
                let tuples = self.ordered(clauses, condition, order)?;
                for tuple in tuples.iter() {
                    self.restore(clauses, tuple);
                    self.write(body, false)?;
                }
                self.release(mark);
                Ok(())
            }
            Expr::If { condition, then, otherwise } => {
                let chosen = if self.truth(condition)? { then } else { otherwise };
                self.write(chosen, false)
            }
            Expr::Path { .. } | Expr::Union(_) => {
                let nodes = self.nodes(id)?;
                for &node in &nodes {
                    self.put(Item::Node(node))?;
                }
                self.give_list(nodes);
                Ok(())
            }
            _ => self.write_items(id),
        }
    }

    fn write_items(&mut self, id: ExprId) -> Run<()> {
        let mark = self.mark();
        self.eval(id)?;
        for index in mark.stack..self.state.stack.len() {
            self.put(self.state.stack[index])?;
        }
        self.release(mark);
        Ok(())
    }

    /// Whether an element is under way.
    fn frame_open(&self) -> bool {
        !self.state.frames.is_empty()
    }

    fn end_result(&mut self) {
        self.out.ends.push(self.out.bytes.len());
    }

    /// Writes an item.
    fn put(&mut self, item: Item) -> Run<()> {
        self.budget.charge(1)?;
        self.items_put += 1;
        if self.frame_open() {
            return self.put_content(item);
        }
        match item {
            Item::Node(node) => self.write_node(node)?,
            Item::Built { start, end } => self.replay(start, end)?,
            atom => {
                let mark = self.mark();
                let text = self.text_of(atom)?;
                self.write_text(text)?;
                self.release(mark);
            }
        }
        self.end_result();
        Ok(())
    }

    fn put_content(&mut self, item: Item) -> Run<()> {
        let is_atomic = !matches!(item, Item::Node(_) | Item::Built { .. });
        let was_atomic = match self.state.frames.last_mut() {
            Some(frame) => std::mem::replace(&mut frame.is_after_atomic, is_atomic),
            None => false,
        };
        match item {
            Item::Node(node) => match self.document.sort(node) {
                Sort::Attribute(attribute) => self.copy_attribute(attribute),
                Sort::Main(Main::Text(text)) => {
                    self.text(Text::of_span(self.document.tree.text_value[text as usize]))
                }
                _ => self.node(node),
            },
            Item::Built { start, end } => {
                self.note_content();
                self.replay(start, end)
            }
            atom => {
                if was_atomic {
                    self.text(Text::SPACE)?;
                }
                let mark = self.mark();
                let text = self.text_of(atom)?;
                self.text(text)?;
                self.release(mark);
                Ok(())
            }
        }
    }

    /// An element comes into the one under way.
    fn note_element(&mut self) {
        if let Some(frame) = self.state.frames.last_mut() {
            frame.has_content = true;
            frame.is_after_atomic = false;
        }
    }

    fn note_content(&mut self) {
        if let Some(frame) = self.state.frames.last_mut() {
            frame.has_content = true;
        }
    }
}

/// Constructors.
impl Evaluator<'_, '_> {
    /// Evaluates a constructor into events, for a variable or a count.
    pub fn build(&mut self, number: u32) -> Run<Item> {
        let start = self.state.events.len() as u32;
        self.recording += 1;
        let built = self.element(number, false);
        self.recording -= 1;
        built?;
        Ok(Item::Built { start, end: self.state.events.len() as u32 })
    }

    /// Evaluates a constructor into what is under way.
    fn element(&mut self, number: u32, is_frame: bool) -> Run<()> {
        self.budget.charge(1)?;
        let program = self.program;
        let element = program.element(number);
        self.start_element(number)?;
        for at in element.attributes.start..element.attributes.end {
            self.attribute_of(at)?;
        }
        for &part in program.parts(element.content) {
            match part {
                Part::Text(range) => self.text(Text::of_program(range))?,
                Part::Element(nested) => {
                    self.note_element();
                    self.element(nested, is_frame)?;
                }
                Part::Enclosed(id) => {
                    if let Some(frame) = self.state.frames.last_mut() {
                        frame.is_after_atomic = false;
                    }
                    self.write(id, is_frame)?;
                }
            }
        }
        self.end_element()
    }

    /// Evaluates an attribute of the constructor under way.
    fn attribute_of(&mut self, at: u32) -> Run<()> {
        let program = self.program;
        let parts = program.parts(program.attributes[at as usize].parts);
        let mark = self.mark();
        let value = match *parts {
            [] => Text::EMPTY,
            [Part::Text(range)] => Text::of_program(range),
            _ => self.attribute_value(parts)?,
        };
        self.attribute(at, value)?;
        self.release(mark);
        Ok(())
    }

    fn attribute_value(&mut self, parts: &[Part]) -> Run<Text> {
        let mut texts: Vec<Text> = Vec::new();
        for part in parts {
            match *part {
                Part::Text(range) => texts.push(Text::of_program(range)),
                Part::Enclosed(id) => {
                    let mark = self.state.stack.len();
                    self.eval(id)?;
                    for index in mark..self.state.stack.len() {
                        self.budget.charge(1)?;
                        if index > mark {
                            texts.push(Text::SPACE);
                        }
                        let text = self.text_of(self.state.stack[index])?;
                        texts.push(text);
                    }
                    self.state.stack.truncate(mark);
                }
                Part::Element(_) => {}
            }
        }
        if let [text] = texts[..] {
            return Ok(text);
        }
        let start = self.state.text.len();
        for text in texts {
            self.append(text)?;
        }
        Ok(Text::kept(start, self.state.text.len()))
    }

    /// An attribute of the message becomes one of the element under way.
    fn copy_attribute(&mut self, attribute: u32) -> Run<()> {
        let Some(&frame) = self.state.frames.last() else {
            return Ok(());
        };
        if frame.has_content {
            return Err(RunError::Construction("XQTY0024"));
        }
        let (tree, names) = (self.document.tree, self.document.names);
        let name = tree.attribute_name[attribute as usize];
        let (uri, local) = (names.uri(name), names.local(name));
        let program = self.program;
        let own = program.attributes(program.element(frame.element).attributes);
        let is_own = own.iter().any(|attribute| {
            program.text(attribute.name.local) == local && program.text(attribute.name.uri) == uri
        });
        let copied = &self.state.copied[frame.copied_start as usize..];
        self.budget.charge((copied.len() / 16) as u64)?;
        let is_copied = copied.iter().any(|&other| tree.attribute_name[other as usize] == name);
        if is_own || is_copied {
            return Err(RunError::Construction("XQDY0025"));
        }
        self.state.copied.push(attribute);
        self.copied_attribute(attribute)
    }

    /// Events into what is under way.
    fn replay(&mut self, start: u32, end: u32) -> Run<()> {
        self.budget.charge(u64::from(end - start))?;
        if self.recording > 0 {
            self.state.events.extend_from_within(start as usize..end as usize);
            return Ok(());
        }
        for index in start as usize..end as usize {
            match self.state.events[index] {
                Event::Start(number) => self.start_element(number)?,
                Event::Attribute(at, value) => self.attribute(at, value)?,
                Event::CopiedAttribute(attribute) => self.copied_attribute(attribute)?,
                Event::Text(text) => self.text(text)?,
                Event::Node(node) => self.node(node)?,
                Event::End => self.end_element()?,
            }
        }
        Ok(())
    }
}

/// The few calls: events, or bytes.
impl Evaluator<'_, '_> {
    fn start_element(&mut self, number: u32) -> Run<()> {
        let is_recording = self.recording > 0;
        let has_scope = if is_recording {
            self.state.events.push(Event::Start(number));
            false
        } else {
            self.end_tag()?;
            self.out.bytes.push(b'<');
            self.write_name(self.program.element(number).name);
            let before = self.state.scopes.len();
            self.declare_namespaces(number);
            self.state.scopes.len() > before
        };
        self.state.frames.push(Frame {
            element: number,
            is_tag_open: !is_recording,
            has_content: false,
            is_after_atomic: false,
            copied_start: self.state.copied.len() as u32,
            has_scope,
        });
        Ok(())
    }

    fn attribute(&mut self, at: u32, value: Text) -> Run<()> {
        if self.recording > 0 {
            self.state.events.push(Event::Attribute(at, value));
            return Ok(());
        }
        self.limit.check_room(&self.out.bytes, value.len())?;
        self.out.bytes.push(b' ');
        self.write_name(self.program.attributes[at as usize].name);
        self.out.bytes.extend_from_slice(b"=\"");
        let mut bytes = std::mem::take(&mut self.out.bytes);
        write_attribute_value(&mut bytes, self.bytes(value));
        self.out.bytes = bytes;
        self.out.bytes.push(b'"');
        Ok(self.limit.check(&self.out.bytes)?)
    }

    fn copied_attribute(&mut self, attribute: u32) -> Run<()> {
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

    fn text(&mut self, text: Text) -> Run<()> {
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

    fn node(&mut self, node: Node) -> Run<()> {
        self.note_content();
        if self.recording > 0 {
            self.state.events.push(Event::Node(node));
            return Ok(());
        }
        self.end_tag()?;
        self.write_node(node)
    }

    fn end_element(&mut self) -> Run<()> {
        let Some(frame) = self.state.frames.pop() else {
            return Ok(());
        };
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
            self.write_name(self.program.element(frame.element).name);
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

    fn write_text(&mut self, text: Text) -> Run<()> {
        self.limit.check_room(&self.out.bytes, text.len())?;
        let mut bytes = std::mem::take(&mut self.out.bytes);
        write_text(&mut bytes, self.bytes(text));
        self.out.bytes = bytes;
        Ok(self.limit.check(&self.out.bytes)?)
    }

    fn write_node(&mut self, node: Node) -> Run<()> {
        let node = node_ref(&self.document, node);
        if let Some(scope) = self.state.scopes.last() {
            self.writer.node(&mut self.out.bytes, node, scope, self.limit)?;
        }
        Ok(())
    }

    fn write_name(&mut self, name: Name) {
        if name.prefix.start < name.prefix.end {
            self.out.bytes.extend_from_slice(self.program.text(name.prefix).as_bytes());
            self.out.bytes.push(b':');
        }
        self.out.bytes.extend_from_slice(self.program.text(name.local).as_bytes());
    }

    /// Declares what a constructor declares, and what its names need.
    fn declare_namespaces(&mut self, number: u32) {
        let program = self.program;
        let element = program.element(number);
        let mut has_scope = false;
        for declaration in program.declarations(element.namespaces) {
            let Declaration { prefix, uri } = *declaration;
            if uri.start == uri.end {
                self.declare(prefix, uri, &mut has_scope);
            }
        }
        for declaration in program.declarations(element.in_scope) {
            self.declare(declaration.prefix, declaration.uri, &mut has_scope);
        }
        self.declare(element.name.prefix, element.name.uri, &mut has_scope);
        for attribute in program.attributes(element.attributes) {
            if attribute.name.prefix.start < attribute.name.prefix.end {
                self.declare(attribute.name.prefix, attribute.name.uri, &mut has_scope);
            }
        }
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
