//! Results: the items of the body written as they come, constructors as they are met (XQuery 1.0,
//! 3.7.1).
//!
//! An element that a variable holds is written down as events and written out where it is used; no
//! element is ever a tree. Both ways go through the same few calls: a tag, an attribute, a text, a
//! node, the end of an element.

use super::RunError;
use super::run::{Evaluator, Keeps, Run};
use super::value::{Event, Item, Text};
use crate::engine::evaluate::document::{Main, Sort};
use crate::engine::evaluate::node_ref;
use crate::engine::evaluate::path_machine::PathMachine;
use crate::language::strings;
use crate::language::xquery::syntax::{Expr, ExprId, Part};
use std::borrow::Cow;

impl<'r, 'w> Evaluator<'r, 'w> {
    /// Writes the items of an expression: into the element under way, or as results. In the frame,
    /// it notes whether a content expression gives an item.
    pub(crate) fn write(&mut self, id: ExprId, is_frame: bool) -> Run<()> {
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
            _ => {
                let before = self.items_put;
                self.write_value(id)?;
                self.is_delivered |=
                    is_frame && self.items_put > before && self.program.is_content(id);
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
            Expr::SimpleMap { source, body } => {
                self.mapped(source, Keeps::Nothing, &mut |evaluator| {
                    evaluator.write(body, false)?;
                    Ok(false)
                })?;
                Ok(())
            }
            Expr::Path { .. } | Expr::Union(_) | Expr::Intersection { .. } => {
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
        if let (Item::Node(node), Some(nodes)) = (item, &mut self.nodes) {
            nodes.push(node_ref(&self.document, node));
            return Ok(());
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
}

/// Constructors.
impl Evaluator<'_, '_> {
    /// Evaluates a constructor into events, for a variable or a count.
    pub(crate) fn build(&mut self, number: u32) -> Run<Item> {
        let is_apart = self.recording > 0;
        if is_apart {
            self.state.events.push(Event::Apart(0));
        }
        let start = self.state.events.len() as u32;
        // What goes into it has not come to a result yet, and may never.
        let items_put = self.items_put;
        self.recording += 1;
        let built = self.element(number, false);
        self.recording -= 1;
        self.items_put = items_put;
        built?;
        let end = self.state.events.len() as u32;
        if is_apart {
            self.state.events[start as usize - 1] = Event::Apart(end - start);
        }
        Ok(Item::Built { start, end })
    }

    /// Evaluates a constructor into what is under way.
    fn element(&mut self, number: u32, is_frame: bool) -> Run<()> {
        self.budget.charge(1)?;
        let program = self.program;
        let element = program.element(number);
        let mark = self.mark();
        let name = match element.computed {
            None => Text::EMPTY,
            Some(computed) => self.computed_name(computed, false)?,
        };
        self.start_element(number, name)?;
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
        self.end_element()?;
        if element.computed.is_some() {
            self.release(mark);
        }
        Ok(())
    }

    /// Evaluates an attribute of the constructor under way.
    fn attribute_of(&mut self, at: u32) -> Run<()> {
        let program = self.program;
        let attribute = &program.attributes[at as usize];
        let parts = program.parts(attribute.parts);
        let mark = self.mark();
        let name = self.name_of_attribute(at)?;
        let value = match *parts {
            [] => Text::EMPTY,
            [Part::Text(range)] => Text::of_program(range),
            _ => self.attribute_value(parts)?,
        };
        let value = match program.is_id(attribute) || self.bytes(name) == b"xml:id" {
            true => self.normalised(value)?,
            false => value,
        };
        self.attribute(at, name, value)?;
        // The name is asked for until the element ends.
        if name.is_empty() {
            self.release(mark);
        }
        Ok(())
    }

    /// A value of `xml:id`, as one word.
    fn normalised(&mut self, value: Text) -> Run<Text> {
        let word = strings::normalized(Cow::Borrowed(self.bytes(value))).into_owned();
        self.keep(&word)
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
        let own = program.element(frame.element).attributes;
        let is_own = self.has_attribute(&frame, own, (uri, local))?;
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
        let mut name = Text::EMPTY;
        let mut index = start as usize;
        while index < end as usize {
            let event = self.state.events[index];
            index += 1;
            match event {
                Event::Apart(count) => index += count as usize,
                event if self.recording > 0 => self.state.events.push(event),
                Event::Name(computed) => name = computed,
                Event::Start(number) => {
                    self.start_element(number, std::mem::replace(&mut name, Text::EMPTY))?;
                }
                Event::Attribute(at, value) => {
                    self.attribute(at, std::mem::replace(&mut name, Text::EMPTY), value)?;
                }
                Event::CopiedAttribute(attribute) => self.copied_attribute(attribute)?,
                Event::Text(text) => self.text(text)?,
                Event::Node(node) => self.node(node)?,
                Event::End => self.end_element()?,
            }
        }
        Ok(())
    }
}
