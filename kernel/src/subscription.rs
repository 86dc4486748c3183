//! The compiler of subscriptions, as Python sees it: text in, data out.

use crate::dissemination::{deliver_of, language_of};
use crate::query::paths_of;
use pathcast_core::language::choice::without_comments;
use pathcast_core::language::compile::{CostClass, compile_gate, compile_query, cost_of_evaluated};
use pathcast_core::language::gates::gate_of;
use pathcast_core::language::xquery::undeliverable_part;
use pathcast_core::registry::delivery::query::{Scope, SubscriptionQuery};
use pathcast_core::registry::snapshot::NamespaceMap;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A subscription in the language that was chosen, or in that of its text, as (kind, way, cost, alternatives,
/// conjunctions, expression, reasons); None if its text is refused.
///
/// The way is "shared", "gated", "selecting" or "filtering", as `Dissemination.explain` tells it. A reason is
/// (clause, offset in characters).
#[pyfunction]
#[pyo3(signature = (text, namespaces, deliver, language=None))]
pub fn compile_subscription<'py>(
    py: Python<'py>,
    text: &str,
    namespaces: NamespaceMap,
    deliver: &str,
    language: Option<&str>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let (scope, deliver) = (Scope::new(namespaces), deliver_of(deliver)?);
    let language = language_of(language)?;
    let is_condition = deliver.is_condition();
    let Ok(query) = SubscriptionQuery::read(text, language, &scope, deliver) else {
        return Ok(None);
    };
    let is_shared = query.is_shared(text, &scope, deliver);
    let gate;
    let (kind, own_way, compiled) = match &query {
        SubscriptionQuery::XQuery(program) => {
            if undeliverable_part(program, deliver.delivered()).is_some() {
                return Ok(None);
            }
            gate = gate_of(program, is_condition);
            let compiled = compile_gate(&gate, is_condition);
            ("xquery", if compiled.is_exact() { "filtering" } else { "gated" }, compiled)
        }
        SubscriptionQuery::XPath(tree) => {
            let Ok(compiled) = compile_query(tree) else { return Ok(None) };
            ("xpath", if is_condition { "filtering" } else { "selecting" }, compiled)
        }
    };
    let way = if is_shared { "shared" } else { own_way };
    let is_evaluated = !is_shared && (own_way != "filtering" || compiled.expression.is_some());
    let paths = &compiled.alternatives;
    let cost = if is_evaluated { cost_of_evaluated(paths) } else { CostClass::Indexed };
    let (alternatives, conjunctions) = paths_of(&compiled);
    let plain = without_comments(text);
    let reasons = compiled.reasons().into_iter().map(|why| {
        let before = plain.get(..why.offset as usize).unwrap_or_default();
        (why.text, before.chars().count())
    });
    let reasons: Vec<_> = reasons.collect();
    let expression = compiled.expression.as_ref().map(|expression| &expression.text);
    let found = (kind, way, cost.name(), alternatives, conjunctions, expression, reasons);
    found.into_pyobject(py).map(Some)
}
