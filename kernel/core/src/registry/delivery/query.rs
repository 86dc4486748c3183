//! The query of a subscription: which language it is in, read.
//!
//! It does not explain what is wrong with a text.

use super::dissemination::Deliver;
use crate::engine::plans::recognise::{plan_of, plan_of_path};
use crate::engine::plans::shared::PlanSpec;
use crate::language::choice::{Language, Reading, without_comments};
use crate::language::query::Namespaces;
use crate::language::reader::{Kind, kind_of, read_query, resolve_query};
use crate::language::tree;
use crate::language::xquery::{Expr, Program};
use crate::registry::snapshot::NamespaceMap;
use std::sync::Arc;

/// Namespace bindings in the forms that the readers take.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Prefix to URI; "" is the default element namespace.
    pub map: NamespaceMap,
    pub(super) bindings: Vec<(String, String)>,
    pub(super) resolver: Namespaces,
}

impl Scope {
    /// The bindings of a map.
    pub fn new(map: NamespaceMap) -> Self {
        let bindings = map.iter().map(|(prefix, uri)| (prefix.clone(), uri.clone())).collect();
        let resolver = Namespaces::new(map.clone());
        Scope { map, bindings, resolver }
    }

    /// The bindings as the compiler of the usual notation asks for them.
    pub fn resolver(&self) -> &Namespaces {
        &self.resolver
    }
}

/// The text is no query, or one that cannot be delivered so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// The query of a subscription.
#[derive(Debug)]
pub enum SubscriptionQuery {
    /// A bare XPath, names resolved.
    XPath(tree::Expr),
    /// A program.
    XQuery(Arc<Program>),
}

impl SubscriptionQuery {
    /// Reads a text in the language that was chosen, or in that of the text.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// It is not of this language, or what it gives cannot be delivered so.
    pub fn read(
        text: &str,
        language: Option<Language>,
        scope: &Scope,
        deliver: Deliver,
    ) -> Result<Self, Refused> {
        let tree = match language.map_or_else(|| Reading::of(text), Reading::Unread) {
            Reading::XQuery(program) if scope.bindings.is_empty() => {
                return Ok(SubscriptionQuery::XQuery(program));
            }
            Reading::XQuery(_) | Reading::Unread(Language::XQuery) => {
                let program = Program::parse(text, &scope.bindings).map_err(|_| Refused)?;
                return Ok(SubscriptionQuery::XQuery(Arc::new(program)));
            }
            Reading::XPath(tree) => resolve_query(tree, &scope.resolver),
            Reading::Unread(Language::XPath) => {
                read_query(&without_comments(text), &scope.resolver)
            }
        };
        let tree = tree.map_err(|_| Refused)?;
        if !deliver.is_condition() && kind_of(&tree) != Kind::Nodes {
            return Err(Refused);
        }
        Ok(SubscriptionQuery::XPath(tree))
    }

    /// The plan of a query of the shared class; none if it is not of it.
    pub(super) fn shared_plan(
        &self,
        text: &str,
        scope: &Scope,
        deliver: Deliver,
    ) -> Option<PlanSpec> {
        match self {
            SubscriptionQuery::XQuery(program) => plan_of(program, deliver),
            SubscriptionQuery::XPath(_) => shared_plan_of_path(text, scope, deliver),
        }
    }

    /// Whether its plan is one of the shared plans.
    pub fn is_shared(&self, text: &str, scope: &Scope, deliver: Deliver) -> bool {
        self.shared_plan(text, scope, deliver).is_some()
    }
}

/// The plan of a bare path whose nodes are delivered; none if it is not of the shared class.
pub(super) fn shared_plan_of_path(text: &str, scope: &Scope, deliver: Deliver) -> Option<PlanSpec> {
    if deliver.is_condition() {
        return None;
    }
    let program = Program::parse_path(&without_comments(text), &scope.bindings)?;
    let is_path = matches!(program.expr(program.body()), Expr::Path { .. });
    if is_path { plan_of_path(&program, deliver) } else { None }
}
