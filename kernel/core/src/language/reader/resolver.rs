//! What can be said of a syntax tree before any message: names, types, static errors.
//!
//! Prefixes become namespace URIs, the papers' ways to say "the message" the document node, paths that only
//! parentheses kept apart one path. XPath 1.0 has four types, and as there are no variables, the type of every
//! expression is known: what needs a node-set and gets something else is refused here.
//!
//! Source: XPath 1.0, sections 1 (types), 2.3 (expanded names), 3.2, 3.3, 4.1 (node-sets required).

use super::kind_of;
use crate::language::arithmetic::Arithmetic;
use crate::language::functions::find_in_xpath;
use crate::language::query::{Namespaces, UriBinding, is_collapsed};
use crate::language::refusal::{Detail, Parsed, Reason, Refusal};
use crate::language::tree::{Expr, NameTest, NodeTest, Operator, Predicate, Step};
use crate::language::xpath::{Axis, Kind};

/// The one variable there is: the message, as papers write it.
const MESSAGE_VARIABLE: &str = "msg";

/// The expression with names resolved and types checked.
///
/// Its name tests have URIs and no prefixes (but for `*:name`); variables and `doc()` are gone. Linear in the tree; it
/// recurses as deep as the tree nests.
pub fn resolve(mut expr: Expr, namespaces: &Namespaces) -> Parsed<Expr> {
    Resolver { namespaces }.expression(&mut expr)?;
    Ok(expr)
}

type Resolved = Parsed<()>;

struct Resolver<'n> {
    namespaces: &'n Namespaces,
}

impl Resolver<'_> {
    fn expression(&self, expr: &mut Expr) -> Resolved {
        match expr {
            Expr::Path { steps, .. } => self.steps(steps),
            Expr::PathFrom { start, steps, .. } => {
                self.node_set(start, "path", "")?;
                self.steps(steps)?;
                join(expr);
                Ok(())
            }
            Expr::Filter { primary, predicates, .. } => {
                self.node_set(primary, "filter", "")?;
                self.predicates(predicates)
            }
            Expr::Call { .. } => self.call(expr),
            Expr::Variable { name, offset } => {
                if name != MESSAGE_VARIABLE {
                    let details = vec![std::mem::take(name).into()];
                    return Err(Refusal::new(*offset as usize, Reason::NoVariable, details));
                }
                *expr = Expr::Path { is_absolute: true, steps: Vec::new(), offset: *offset };
                Ok(())
            }
            Expr::Number { value, offset } if value.is_infinite() => {
                // Too many digits for a double; infinity has no literal.
                let offset = *offset;
                *expr = Expr::Binary {
                    operators: vec![Operator::Calculate(Arithmetic::Divide)],
                    operands: [1.0, 0.0].map(|value| Expr::Number { value, offset }).into(),
                    offset,
                    operator_offset: offset,
                };
                Ok(())
            }
            Expr::Unary { operand, .. } => self.expression(operand),
            Expr::Binary { operators, operands, .. } => {
                let is_union = operators[0] == Operator::Union;
                operands.iter_mut().try_for_each(|operand| match is_union {
                    true => self.node_set(operand, "union", ""),
                    false => self.expression(operand),
                })
            }
            Expr::Literal { .. } | Expr::Number { .. } => Ok(()),
        }
    }

    /// An expression that something needs to be a node-set, perhaps a function.
    fn node_set(&self, expr: &mut Expr, needed_by: &str, function: &str) -> Resolved {
        let offset = expr.offset() as usize;
        self.expression(expr)?;
        let found = match kind_of(expr) {
            Kind::Nodes => return Ok(()),
            Kind::Boolean => "boolean",
            Kind::Number => "number",
            Kind::String => "string",
        };
        let details = [needed_by, function, found].map(Detail::from).to_vec();
        Err(Refusal::new(offset, Reason::NoNodeSet, details))
    }

    fn call(&self, expr: &mut Expr) -> Resolved {
        let Expr::Call { name, arguments, offset } = expr else { return Ok(()) };
        match find_in_xpath(name) {
            Some(found) if found.function.takes_nodes() => arguments
                .iter_mut()
                .try_for_each(|each| self.node_set(each, "function", found.name)),
            Some(_) => arguments.iter_mut().try_for_each(|each| self.expression(each)),
            None if matches!(arguments[..], [Expr::Literal { .. }, ..]) => {
                *expr = Expr::Path { is_absolute: true, steps: Vec::new(), offset: *offset };
                Ok(())
            }
            None => {
                let details = vec![(*name).into()];
                Err(Refusal::new(*offset as usize, Reason::ComputedDocument, details))
            }
        }
    }

    // Steps.

    fn steps(&self, steps: &mut [Step]) -> Resolved {
        for step in steps {
            if let NodeTest::Name(test) = &mut step.test {
                self.name_test(test, step.axis)?;
            }
            self.predicates(&mut step.predicates)?;
        }
        Ok(())
    }

    fn predicates(&self, predicates: &mut [Predicate]) -> Resolved {
        predicates.iter_mut().try_for_each(|each| self.expression(&mut each.expr))
    }

    fn name_test(&self, test: &mut NameTest, axis: Axis) -> Resolved {
        let is_any = test.local == "*" && test.prefix.is_none() && test.uri.is_none();
        if is_any || test.prefix.as_deref() == Some("*") {
            return Ok(());
        }
        let uri = self.uri(test, axis)?;
        if let Some(fault) = fault_of(&uri) {
            return Err(bad_uri(test, fault));
        }
        test.prefix = None;
        test.uri = Some(uri);
        Ok(())
    }

    /// The namespace URI of a name test.
    fn uri(&self, test: &mut NameTest, axis: Axis) -> Parsed<String> {
        if let Some(uri) = test.uri.take() {
            return Ok(uri);
        }
        let binding = match &test.prefix {
            Some(prefix) => self.namespaces.binding(prefix),
            None if matches!(axis, Axis::Attribute | Axis::Namespace) => UriBinding::Uri(""),
            None => self.namespaces.binding(""),
        };
        match binding {
            UriBinding::Uri(uri) => Ok(uri.to_owned()),
            UriBinding::Unwritable => Err(bad_uri(test, "unwritable")),
            UriBinding::None => {
                let prefix = test.prefix.as_deref().unwrap_or_default();
                let details = [prefix, &test.local].map(Detail::from).to_vec();
                Err(Refusal::new(test.offset as usize, Reason::NoPrefix, details))
            }
        }
    }
}

/// The refusal of the URI of a name test.
fn bad_uri(test: &NameTest, fault: &str) -> Box<Refusal> {
    Refusal::new(test.offset as usize, Reason::BadUri, vec![fault.into()])
}

/// What is wrong with a URI, for a name test.
fn fault_of(uri: &str) -> Option<&'static str> {
    if !is_collapsed(uri) {
        return Some("blanks");
    }
    uri.contains(['{', '}']).then_some("braces")
}

/// Makes a path that begins at a path one path.
fn join(expr: &mut Expr) {
    let Expr::PathFrom { start, steps, .. } = expr else { return };
    if let Expr::Path { steps: first, .. } | Expr::PathFrom { steps: first, .. } = &mut **start {
        first.append(steps);
        let joined = std::mem::replace(&mut **start, Expr::Number { value: 0.0, offset: 0 });
        *expr = joined;
    }
}
