//! The query of a subscription: which language it is in, read.
//!
//! A text is a bare XPath if the grammar of XPath 1.0 takes it, comments left out, and XQuery otherwise. So a path keeps
//! the semantics of XPath 1.0 wherever it is registered, and what only XQuery can say is XQuery.
//!
//! It does not explain what is wrong with a text.

use super::dissemination::Deliver;
use crate::engine::plans::recognise::{plan_of, plan_of_path};
use crate::engine::plans::shared::PlanSpec;
use crate::language::query::{NODES_MAX, Namespaces, TEXT_BYTES_MAX};
use crate::language::reader::{Kind, Reason, check_nesting, kind_of, read, resolve};
use crate::language::tree;
use crate::language::xquery::{Arithmetic, Expr, Function, Program, without_comments};
use crate::registry::snapshot::NamespaceMap;

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
    XQuery(Program),
}

impl SubscriptionQuery {
    /// Reads a text.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// It is neither, or what it gives cannot be delivered so.
    pub fn read(text: &str, scope: &Scope, deliver: Deliver) -> Result<Self, Refused> {
        let plain = without_comments(text);
        if !begins_as_xquery(&plain) {
            match read(&plain, TEXT_BYTES_MAX, NODES_MAX) {
                Ok(tree) => return Self::xpath(tree, scope, deliver),
                Err(refusal) if is_limit(&refusal.reason) && !has_what_xpath_lacks(text) => {
                    return Err(Refused);
                }
                Err(_) => {}
            }
        }
        let program = Program::parse(text, &scope.bindings).map_err(|_| Refused)?;
        Ok(SubscriptionQuery::XQuery(program))
    }

    fn xpath(tree: tree::Expr, scope: &Scope, deliver: Deliver) -> Result<Self, Refused> {
        check_nesting(&tree).map_err(|_| Refused)?;
        let tree = resolve(tree, &scope.resolver).map_err(|_| Refused)?;
        if deliver == Deliver::Fragment && kind_of(&tree) != Kind::Nodes {
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
    if deliver != Deliver::Fragment {
        return None;
    }
    let program = Program::parse_path(text, &scope.bindings).ok()?;
    let is_path = matches!(program.expr(program.body()), Expr::Path { .. });
    if is_path { plan_of_path(&program) } else { None }
}

/// Whether a text begins as no XPath does. A comment that is still there does not end.
pub(super) fn begins_as_xquery(text: &str) -> bool {
    let text = text.trim_start();
    let after = |word: &str| text.strip_prefix(word);
    let before = |word: &str, next: char| {
        after(word).is_some_and(|rest| rest.trim_start().starts_with(next))
    };
    let is_spaced =
        |word: &str| after(word).is_some_and(|rest| rest.starts_with(char::is_whitespace));
    text.starts_with('<')
        || text.starts_with("(:")
        || ["for", "let", "some", "every"].into_iter().any(|word| before(word, '$'))
        || ["if", "typeswitch"].into_iter().any(|word| before(word, '('))
        || ["declare", "import", "module"].into_iter().any(is_spaced)
        || (is_spaced("xquery")
            && after("xquery").is_some_and(|rest| rest.trim_start().starts_with("version")))
}

fn is_limit(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::TooLong { .. }
            | Reason::TooLarge { .. }
            | Reason::TooDeep { .. }
            | Reason::TooManyPredicates { .. }
    )
}

/// Whether a text that is over the limits of an XPath is XQuery that is no XPath.
fn has_what_xpath_lacks(text: &str) -> bool {
    use Function::*;
    let Ok(program) = Program::parse(text, &[]) else { return false };
    program.exprs.iter().any(|expr| match expr {
        Expr::Sequence(_)
        | Expr::Flwor { .. }
        | Expr::If { .. }
        | Expr::Quantified { .. }
        | Expr::Element(_)
        | Expr::Comparison { is_value: true, .. }
        | Expr::Arithmetic { operator: Arithmetic::DivideWhole, .. } => true,
        Expr::Call(function, _) => matches!(
            function,
            Exists
                | Empty
                | Data
                | Avg
                | Min
                | Max
                | DistinctValues
                | StringJoin
                | EndsWith
                | UpperCase
                | LowerCase
                | Abs
        ),
        _ => false,
    })
}
