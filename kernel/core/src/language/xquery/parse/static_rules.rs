//! Static rules, looked at from the top of a program that has been read: which rule is broken first, and where.
//!
//! The parser knows while it reads whether any is; this names it. Three kinds of items are told apart: nodes of
//! the message, atomic values, and elements that are built.

use super::super::Origins;
use super::super::syntax::{Clause, Expr, ExprId, Part, Start};
use super::facts::items::{ATOMS, BUILT, NODES, NONE};
use super::{Parser, TREE_DEPTH_MAX};
use crate::language::functions::Function;
use crate::language::refusal::{Detail, Parsed, Reason, Refusal};
use crate::language::xpath::List;

/// Looks at the body of a program, whose expressions `contents` depend on the message.
pub(super) fn check(parser: &Parser<'_>, body: ExprId, contents: &[ExprId]) -> Parsed<()> {
    let Some(origins) = parser.origins.as_deref() else { return Ok(()) };
    let mut checker = Checker {
        parser,
        origins,
        variables: vec![NONE; parser.program.slots as usize],
        context: NODES,
        depth: 0,
    };
    checker.items(body)?;
    if contents.is_empty() {
        return Err(Refusal::new(0, Reason::Constant, Vec::new()));
    }
    Ok(())
}

struct Checker<'p, 't> {
    parser: &'p Parser<'t>,
    origins: &'p Origins,
    /// Kinds of items, by slot.
    variables: Vec<u8>,
    /// Kinds of items that the context item can be.
    context: u8,
    depth: usize,
}

impl Checker<'_, '_> {
    /// The kinds of items that an expression can give.
    fn items(&mut self, id: ExprId) -> Parsed<u8> {
        self.down(self.origins.expr(id))?;
        let found = self.items_of(id)?;
        self.depth -= 1;
        Ok(found)
    }

    fn down(&mut self, offset: usize) -> Parsed<()> {
        self.depth += 1;
        if self.depth > TREE_DEPTH_MAX {
            return Err(Refusal::new(offset, Reason::TooDeep, vec![TREE_DEPTH_MAX.into()]));
        }
        Ok(())
    }

    fn items_of(&mut self, id: ExprId) -> Parsed<u8> {
        let program = &self.parser.program;
        match program.expr(id) {
            Expr::Path { start, steps } => {
                match start {
                    Start::Root => {}
                    Start::Context => {
                        self.only_nodes(
                            self.context,
                            self.origins.expr(id),
                            Reason::PathFromItem,
                            None,
                        )?;
                    }
                    Start::Expr(start) => self.nodes(start, Reason::PathFromAtoms, None)?,
                }
                for step in program.steps(steps) {
                    self.predicates(step.predicates, NODES)?;
                }
                Ok(NODES)
            }
            Expr::Variable(slot) => Ok(self.variables[slot as usize]),
            Expr::String(_) | Expr::Number(_) => Ok(ATOMS),
            Expr::Comparison { left, right, .. } => {
                self.values(&[left, right])?;
                Ok(ATOMS)
            }
            Expr::Arithmetic { left, right, .. } => {
                self.values(&[left, right])?;
                Ok(ATOMS)
            }
            Expr::Cast { operand, .. } | Expr::Castable { operand, .. } => {
                self.values(&[operand])?;
                Ok(ATOMS)
            }
            Expr::InstanceOf { operand, .. } => {
                self.values(&[operand])?;
                Ok(ATOMS)
            }
            Expr::Range { first, last } => {
                self.values(&[first, last])?;
                Ok(ATOMS)
            }
            Expr::SimpleMap { source, body } => {
                let inner = self.items(source)?;
                let outer = std::mem::replace(&mut self.context, inner);
                let found = self.items(body)?;
                self.context = outer;
                Ok(found)
            }
            Expr::And(list) | Expr::Or(list) => {
                self.values(program.list(list))?;
                Ok(ATOMS)
            }
            Expr::Negation(operand) => {
                self.values(&[operand])?;
                Ok(ATOMS)
            }
            Expr::Call(function, list) => self.call(function, program.list(list)),
            Expr::Element(number) => self.element(number),
            Expr::Sequence(list) => self.together(program.list(list)),
            Expr::Flwor { clauses, condition, order, body } => {
                self.clauses(clauses)?;
                if let Some(condition) = condition {
                    self.values(&[condition])?;
                }
                for key in program.keys(order) {
                    self.values(&[key.key])?;
                }
                self.items(body)
            }
            Expr::Filter { primary, predicates, .. } => {
                let found = self.items(primary)?;
                self.predicates(predicates, found)?;
                Ok(found)
            }
            Expr::Quantified { bindings, condition, .. } => {
                self.clauses(bindings)?;
                self.values(&[condition])?;
                Ok(ATOMS)
            }
            Expr::If { condition, then, otherwise } => {
                self.values(&[condition])?;
                self.together(&[then, otherwise])
            }
            Expr::Union(list) => {
                for &operand in program.list(list) {
                    self.nodes(operand, Reason::SetOfAtoms, Some("union"))?;
                }
                Ok(NODES)
            }
            Expr::Intersection { is_except, left, right } => {
                let word = if is_except { "except" } else { "intersect" };
                for operand in [left, right] {
                    self.nodes(operand, Reason::SetOfAtoms, Some(word))?;
                }
                Ok(NODES)
            }
            Expr::ContextItem => Ok(self.context),
        }
    }

    /// The kinds of items that some expressions give together, whose values are read.
    fn values(&mut self, ids: &[ExprId]) -> Parsed<u8> {
        let mut all = NONE;
        for &id in ids {
            let found = self.items(id)?;
            if found & BUILT != 0 {
                return Err(self.built(id));
            }
            all |= found;
        }
        Ok(all)
    }

    fn built(&self, id: ExprId) -> Box<Refusal> {
        Refusal::new(self.origins.expr(id), Reason::BuiltValue, Vec::new())
    }

    /// Nodes of the message are needed.
    fn nodes(&mut self, id: ExprId, why: Reason, taker: Option<&'static str>) -> Parsed<()> {
        let found = self.items(id)?;
        self.only_nodes(found, self.origins.expr(id), why, taker)
    }

    fn only_nodes(
        &self,
        found: u8,
        offset: usize,
        why: Reason,
        taker: Option<&'static str>,
    ) -> Parsed<()> {
        if found & BUILT != 0 {
            return Err(Refusal::new(offset, Reason::BuiltValue, Vec::new()));
        }
        if found & ATOMS == 0 {
            return Ok(());
        }
        let mut details = vec![Detail::from(usize::from(found & NODES != 0))];
        details.extend(taker.map(Detail::from));
        Err(Refusal::new(offset, why, details))
    }

    fn together(&mut self, ids: &[ExprId]) -> Parsed<u8> {
        ids.iter().try_fold(NONE, |found, &id| Ok(found | self.items(id)?))
    }

    fn predicates(&mut self, predicates: List, context: u8) -> Parsed<()> {
        let outer = std::mem::replace(&mut self.context, context);
        self.values(self.parser.program.list(predicates))?;
        self.context = outer;
        Ok(())
    }

    fn clauses(&mut self, clauses: List) -> Parsed<()> {
        for clause in self.parser.program.clauses(clauses) {
            match *clause {
                Clause::For { variable, position, source } => {
                    self.variables[variable as usize] = self.items(source)?;
                    if let Some(position) = position {
                        self.variables[position as usize] = ATOMS;
                    }
                }
                Clause::Let { variable, value } => {
                    self.variables[variable as usize] = self.items(value)?;
                }
            }
        }
        Ok(())
    }

    fn call(&mut self, function: Function, arguments: &[ExprId]) -> Parsed<u8> {
        use Function::*;
        if function.gives_argument(0) {
            return arguments.iter().enumerate().try_fold(NONE, |found, (at, &argument)| {
                match function.gives_argument(at) {
                    true => Ok(found | self.items(argument)?),
                    false => self.values(&[argument]).map(|_| found),
                }
            });
        }
        match function {
            Count | Exists | Empty => {
                self.together(arguments)?;
            }
            Name | LocalName | NamespaceUri => {
                self.nodes(arguments[0], Reason::NodeOfAtoms, Some(function.name()))?;
            }
            Data | DistinctValues | Min | Max => {
                let found = self.items(arguments[0])?;
                if found & BUILT != 0 {
                    return Err(self.built(arguments[0]));
                }
                return Ok(if found & NODES == 0 { found } else { found & !NODES | ATOMS });
            }
            _ => {
                self.values(arguments)?;
            }
        }
        Ok(if function == Id { NODES } else { ATOMS })
    }

    fn element(&mut self, number: u32) -> Parsed<u8> {
        let program = &self.parser.program;
        let element = program.element(number);
        if let Some(computed) = element.computed {
            self.values(&[computed.expr])?;
        }
        for attribute in program.attributes(element.attributes) {
            if let Some(computed) = attribute.computed {
                self.values(&[computed.expr])?;
            }
            for part in program.parts(attribute.parts) {
                if let Part::Enclosed(id) = *part {
                    self.values(&[id])?;
                }
            }
        }
        for part in program.parts(element.content) {
            match *part {
                Part::Text(_) => {}
                Part::Enclosed(id) => {
                    self.items(id)?;
                }
                Part::Element(inner) => {
                    self.down(self.origins.elements[inner as usize] as usize)?;
                    self.element(inner)?;
                    self.depth -= 1;
                }
            }
        }
        Ok(BUILT)
    }
}
