//! What can be said of a syntax tree before any message: names, types, static errors.
//!
//! Prefixes become namespace URIs, the papers' ways to say "the message" the document node, paths that only
//! parentheses kept apart one path. XPath 1.0 has four types, and as there are no variables, the type of every
//! expression is known: what needs a node-set and gets something else is refused here.
//!
//! Source: XPath 1.0, sections 1 (types), 2.3 (expanded names), 3.2, 3.3, 4.1 (node-sets required).

use super::kind_of;
use super::refusal::{NodeSetUse, Reason, Refusal, UriFault};
use crate::language::query::{Namespaces, UriBinding, is_collapsed};
use crate::language::tree::{Expr, NameTest, NodeTest, Operator, Predicate, Step};
use crate::language::xpath::{Axis, Kind, functions};

/// The one variable there is: the message, as papers write it.
const MESSAGE_VARIABLE: &str = "msg";

/// The expression with names resolved and types checked.
///
/// Its name tests have URIs and no prefixes (but for `*:name`); variables and `doc()` are gone. Linear in the tree; it
/// recurses as deep as the tree nests.
pub fn resolve(mut expr: Expr, namespaces: &Namespaces) -> Result<Expr, Refusal> {
    Resolver { namespaces }.expression(&mut expr)?;
    Ok(expr)
}

type Resolved = Result<(), Refusal>;

struct Resolver<'n> {
    namespaces: &'n Namespaces,
}

impl Resolver<'_> {
    fn expression(&self, expr: &mut Expr) -> Resolved {
        match expr {
            Expr::Path { steps, .. } => self.steps(steps),
            Expr::PathFrom { start, steps, .. } => {
                self.node_set(start, NodeSetUse::Path)?;
                self.steps(steps)?;
                join(expr);
                Ok(())
            }
            Expr::Filter { primary, predicates, .. } => {
                self.node_set(primary, NodeSetUse::Filter)?;
                self.predicates(predicates)
            }
            Expr::Call { .. } => self.call(expr),
            Expr::Variable { name, offset } => {
                if name != MESSAGE_VARIABLE {
                    let name = std::mem::take(name);
                    return Err(Refusal { reason: Reason::NoVariable { name }, offset: *offset });
                }
                *expr = Expr::Path { is_absolute: true, steps: Vec::new(), offset: *offset };
                Ok(())
            }
            Expr::Number { value, offset } if value.is_infinite() => {
                // Too many digits for a double; infinity has no literal.
                let offset = *offset;
                *expr = Expr::Binary {
                    operators: vec![Operator::Div],
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
                    true => self.node_set(operand, NodeSetUse::Union),
                    false => self.expression(operand),
                })
            }
            Expr::Literal { .. } | Expr::Number { .. } => Ok(()),
        }
    }

    fn node_set(&self, expr: &mut Expr, needed_by: NodeSetUse) -> Resolved {
        let offset = expr.offset();
        self.expression(expr)?;
        match kind_of(expr) {
            Kind::Nodes => Ok(()),
            found => Err(Refusal { reason: Reason::NoNodeSet { needed_by, found }, offset }),
        }
    }

    fn call(&self, expr: &mut Expr) -> Resolved {
        let Expr::Call { name, arguments, offset } = expr else { return Ok(()) };
        match functions::find(name) {
            Some(function) if function.takes_nodes => arguments
                .iter_mut()
                .try_for_each(|each| self.node_set(each, NodeSetUse::Function(function.name))),
            Some(_) => arguments.iter_mut().try_for_each(|each| self.expression(each)),
            None if matches!(arguments[..], [Expr::Literal { .. }, ..]) => {
                *expr = Expr::Path { is_absolute: true, steps: Vec::new(), offset: *offset };
                Ok(())
            }
            None => {
                let name = std::mem::take(name);
                Err(Refusal { reason: Reason::ComputedDocument { name }, offset: *offset })
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
        let reason = match self.uri(test, axis) {
            Ok(uri) => match fault_of(&uri) {
                None => {
                    test.prefix = None;
                    test.uri = Some(uri);
                    return Ok(());
                }
                Some(fault) => Reason::BadUri { fault },
            },
            Err(reason) => reason,
        };
        Err(Refusal { reason, offset: test.offset })
    }

    /// The namespace URI of a name test.
    fn uri(&self, test: &mut NameTest, axis: Axis) -> Result<String, Reason> {
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
            UriBinding::Unwritable => Err(Reason::BadUri { fault: UriFault::Unwritable }),
            UriBinding::None => Err(Reason::NoPrefix {
                prefix: test.prefix.clone().unwrap_or_default(),
                local: test.local.clone(),
            }),
        }
    }
}

/// What is wrong with a URI, for a name test.
fn fault_of(uri: &str) -> Option<UriFault> {
    if !is_collapsed(uri) {
        return Some(UriFault::Blanks);
    }
    uri.contains(['{', '}']).then_some(UriFault::Braces)
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
