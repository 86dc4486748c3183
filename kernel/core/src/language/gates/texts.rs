//! What must be there for a condition on a text to be true: what it is, begins with, contains, or matches, as it is or
//! folded.
//!
//! A function of one text reads the first of several nodes, and the empty text where there is none. The gate asks for
//! some node that passes, and asks no text that the empty one passes. `string()`, `xs:string()` and `data()` around a
//! text change nothing of that.

use super::formula::{Formula, call};
use super::necessary::{Item, Necessary, Scope, bound_text, unbound};
use super::steps::{binary, compared, context_node, literal, number};
use crate::language::comparison::Comparison;
use crate::language::folding::{Fold, TextTest};
use crate::language::pattern_literals::Required;
use crate::language::patterns::Pattern;
use crate::language::tree::{Expr as Condition, Operator};
use crate::language::types::Type;
use crate::language::values::Values;
use crate::language::xquery::{
    CAPITAL_LETTERS, Expr, ExprId, Function, Number, Program, SMALL_LETTERS, ValueSet,
};

impl Necessary<'_> {
    /// A pattern matches the string value of an expression.
    pub(super) fn matched(
        &mut self,
        whole: ExprId,
        pattern: &Pattern,
        scope: Scope<'_>,
        context: Item,
    ) -> Formula {
        if pattern.matches_empty() {
            return Formula::Unknown;
        }
        let given = |required: &Required| Asked {
            test: required.test,
            texts: required.texts.clone(),
            is_all: required.is_all,
        };
        match pattern.required() {
            Some(required) if required.is_all => {
                self.tested(whole, given(required), scope, context)
            }
            _ if pattern.is_small() && self.is_plain(whole) => {
                let texts = vec![pattern.text().to_owned()];
                let asked = Asked { test: TextTest::Matches, texts, is_all: true };
                self.tested(whole, asked, scope, context)
            }
            Some(required) if required.fold == Fold::None => {
                self.tested(whole, given(required), scope, context)
            }
            Some(required) if self.is_plain(whole) => {
                let Some(values) = Values::of(required.texts.iter().map(String::as_str)) else {
                    return Formula::Unknown;
                };
                self.passing(whole, (required.test, required.fold), &values, false, scope, context)
            }
            _ => self.gives_unknown(whole, scope, context),
        }
    }

    /// Whether a text is read from nodes as it is.
    fn is_plain(&self, id: ExprId) -> bool {
        !matches!(self.program.expr(text_in(self.program, id)), Expr::Call(..))
    }

    /// The string value of an expression passes a test with one of some texts.
    pub(super) fn tested(
        &mut self,
        whole: ExprId,
        Asked { mut test, mut texts, mut is_all }: Asked,
        scope: Scope<'_>,
        context: Item,
    ) -> Formula {
        let program = self.program;
        let (fold, mut inner) = fold_of(program, whole).unwrap_or((Fold::None, whole));
        if let ([only], Fold::None) = (&texts[..], fold)
            && test != TextTest::Matches
        {
            let (name, part) = match test {
                TextTest::Begins => ("starts-with", literal(only)),
                TextTest::Is => ("=", literal(only)),
                _ => ("contains", literal(only)),
            };
            let asks = |value| match test {
                TextTest::Is => compared(value, Comparison::Eq, part.clone()),
                _ => call(name, vec![value, part.clone()]),
            };
            if only.is_empty() {
                return Formula::Unknown;
            }
            return self.of_text(whole, scope, context, is_all, &asks);
        }
        inner = text_in(program, inner);
        if let Expr::Call(function, arguments) = program.expr(inner) {
            let &[argument] = program.list(arguments) else {
                return self.gives_unknown(whole, scope, context);
            };
            if function != Function::NormalizeSpace || test == TextTest::Matches {
                return self.gives_unknown(whole, scope, context);
            }
            // Words stay as they are.
            texts.iter_mut().for_each(|text| *text = longest_word(text));
            (test, is_all, inner) = (TextTest::Has, false, text_in(program, argument));
        }
        if texts.iter().any(String::is_empty) {
            return Formula::Unknown;
        }
        match Values::of(texts.iter().map(String::as_str)) {
            Some(values) => self.passing(inner, (test, fold), &values, is_all, scope, context),
            None => Formula::Unknown,
        }
    }

    /// Some node of an expression, folded, passes a test with one of some texts.
    fn passing(
        &mut self,
        nodes: ExprId,
        (test, fold): (TextTest, Fold),
        values: &Values<'_>,
        is_all: bool,
        scope: Scope<'_>,
        context: Item,
    ) -> Formula {
        if !self.has_room(values.text().len()) {
            return self.gives_unknown(nodes, scope, context);
        }
        // Of several nodes the first is meant.
        let nodes = text_in(self.program, nodes);
        let is_exact = is_all && self.is_one(nodes, scope, context);
        let operands = vec![context_node(), literal(values.text())];
        let condition = binary(Operator::Texts(test, fold), operands);
        self.some_node(nodes, &condition, is_exact, scope, context)
    }

    /// Some node of an expression satisfies a condition.
    fn some_node(
        &mut self,
        nodes: ExprId,
        condition: &Condition,
        is_exact: bool,
        scope: Scope<'_>,
        context: Item,
    ) -> Formula {
        self.each(nodes, scope, context, &|_, item| match item {
            Item::Node { variable, .. } => {
                Formula::Atom { variable, condition: condition.clone(), is_exact }
            }
            _ => Formula::Unknown,
        })
    }

    /// A condition that no empty string fulfils, on the string value of an expression.
    fn of_text(
        &mut self,
        mut id: ExprId,
        scope: Scope<'_>,
        context: Item,
        is_all: bool,
        condition: &dyn Fn(Condition) -> Condition,
    ) -> Formula {
        let program = self.program;
        // Of several nodes the first is meant.
        let is_exact = is_all && self.is_one(text_in(program, id), scope, context);
        let mut calls = Vec::new();
        id = text_in(program, id);
        while let Expr::Call(function, arguments) = program.expr(id)
            && let Some(name) = name_of_text_function(function)
            && let [first, rest @ ..] = program.list(arguments)
            && !is_case_blind(function, rest)
        {
            calls.push((name, rest));
            id = text_in(program, *first);
        }
        let mut value = context_node();
        for (name, rest) in calls.into_iter().rev() {
            let mut arguments = vec![value];
            for &argument in rest {
                arguments.push(match program.expr(argument) {
                    Expr::String(text) => literal(program.text(text)),
                    Expr::Number(value) => number(value.value()),
                    _ => return self.gives_unknown(id, scope, context),
                });
            }
            value = call(name, arguments);
        }
        let condition = condition(value);
        self.some_node(id, &condition, is_exact, scope, context)
    }

    /// `some $word in ("a", "b") satisfies contains(path, $word)` and the like: one of several texts.
    pub(super) fn keywords(
        &mut self,
        variable: u32,
        source: ExprId,
        condition: ExprId,
        scope: Scope<'_>,
        context: Item,
    ) -> Option<Formula> {
        let program = self.program;
        let Expr::Call(function, arguments) = program.expr(condition) else { return None };
        let &[whole, part] = program.list(arguments) else { return None };
        let is_of_texts =
            matches!(function, Function::Contains | Function::StartsWith | Function::EndsWith);
        if !is_of_texts || program.expr(part) != Expr::Variable(variable) {
            return None;
        }
        let texts = constant_texts(program, source, scope)?;
        Some(self.tested(whole, test_of(function, &texts), scope, context))
    }

    /// Some text is one of those that an expression is: `lower-case(path) = ("a", "b")`, `normalize-space(path) = "a"`,
    /// `compare(path, "a") = 0` and the like. A value comparison reads the first of the texts, which are in order here.
    pub(super) fn text_compared(
        &mut self,
        is_value: bool,
        [left, right]: [ExprId; 2],
        scope: Scope<'_>,
        context: Item,
    ) -> Option<Formula> {
        let program = self.program;
        [(left, right), (right, left)].into_iter().find_map(|(side, given)| {
            let Expr::Call(function, arguments) = program.expr(side) else { return None };
            if function == Function::Compare {
                let is_same = program.expr(given) == Expr::Number(Number::Integer(0));
                if !is_same {
                    return None;
                }
                return self.same_texts(program.list(arguments), scope, context);
            }
            if fold_of(program, side).is_none() {
                name_of_text_function(function)?;
            }
            let texts = constant_texts(program, given, scope)?;
            let is_all = !is_value || texts.len() == 1;
            let asked = Asked { test: TextTest::Is, texts, is_all };
            Some(self.tested(side, asked, scope, context))
        })
    }

    /// `compare()` of a text with a constant one is 0; the collation that is left is the case-blind one.
    fn same_texts(
        &mut self,
        arguments: &[ExprId],
        scope: Scope<'_>,
        context: Item,
    ) -> Option<Formula> {
        let program = self.program;
        let &[left, right, ref collation @ ..] = arguments else { return None };
        let (whole, text) =
            [(left, right), (right, left)].into_iter().find_map(|(side, given)| {
                constant_text(program, given, scope).map(|text| (side, text))
            })?;
        if collation.is_empty() {
            let asked = Asked { test: TextTest::Is, texts: vec![text], is_all: true };
            return Some(self.tested(whole, asked, scope, context));
        }
        let text = text.to_ascii_lowercase();
        match Values::of([text.as_str()]) {
            Some(values) if self.is_plain(whole) && !text.is_empty() => {
                let asked = (TextTest::Is, Fold::Ascii);
                Some(self.passing(whole, asked, &values, true, scope, context))
            }
            _ => Some(self.gives_unknown(whole, scope, context)),
        }
    }
}

/// What is asked of a text.
pub(super) struct Asked {
    test: TextTest,
    texts: Vec<String>,
    /// That is all that is asked.
    is_all: bool,
}

/// What a function asks, given some texts.
pub(super) fn test_of(function: Function, texts: &[String]) -> Asked {
    let test = if function == Function::StartsWith { TextTest::Begins } else { TextTest::Has };
    Asked { test, texts: texts.to_vec(), is_all: function != Function::EndsWith }
}

/// The string that an expression is, whatever the message is.
pub(super) fn constant_text(program: &Program, id: ExprId, scope: Scope<'_>) -> Option<String> {
    let text = match program.expr(unbound(program, id, scope)) {
        Expr::String(text) => text,
        Expr::Variable(slot) => bound_text(slot, scope)?,
        _ => return None,
    };
    Some(program.text(text).to_owned())
}

/// The strings that an expression is a list of, whatever the message is.
fn constant_texts(program: &Program, id: ExprId, scope: Scope<'_>) -> Option<Vec<String>> {
    match program.set(unbound(program, id, scope)) {
        Some(ValueSet { strings: Some(strings), numbers: None }) => {
            Some(strings.iter().map(str::to_owned).collect())
        }
        Some(_) => None,
        None => Some(vec![constant_text(program, id, scope)?]),
    }
}

/// How an expression folds a text, and the text.
fn fold_of(program: &Program, id: ExprId) -> Option<(Fold, ExprId)> {
    let Expr::Call(function, arguments) = program.expr(text_in(program, id)) else {
        return None;
    };
    match (function, program.list(arguments)) {
        (Function::LowerCase, &[whole]) => Some((Fold::Lower, whole)),
        (Function::UpperCase, &[whole]) => Some((Fold::Upper, whole)),
        (Function::Translate, &[whole, from, to]) => {
            let is = |id, wanted| matches!(program.expr(id), Expr::String(text) if program.text(text) == wanted);
            let is_ascii = is(from, CAPITAL_LETTERS) && is(to, SMALL_LETTERS);
            is_ascii.then_some((Fold::Ascii, whole))
        }
        _ => None,
    }
}

/// An expression without what only takes its text: `string()`, `xs:string()`, `data()`.
fn text_in(program: &Program, mut id: ExprId) -> ExprId {
    loop {
        id = match program.expr(id) {
            Expr::Cast { to: Type::String, operand } => operand,
            Expr::Call(Function::String | Function::Data, arguments) => {
                match *program.list(arguments) {
                    [argument] => argument,
                    _ => return id,
                }
            }
            _ => return id,
        };
    }
}

/// The longest word of a text; empty if there is none.
fn longest_word(text: &str) -> String {
    let words = text.split([' ', '\t', '\n', '\r']);
    words.max_by_key(|word| word.len()).unwrap_or_default().to_owned()
}

/// Whether a function cuts a text by the case-blind collation, which XPath 1.0 does not have.
fn is_case_blind(function: Function, rest: &[ExprId]) -> bool {
    rest.len() > 1 && matches!(function, Function::SubstringBefore | Function::SubstringAfter)
}

/// The name of a function from one string or node to a string that XPath has too, with the same value.
fn name_of_text_function(function: Function) -> Option<&'static str> {
    Some(match function {
        Function::String => "string",
        Function::NormalizeSpace => "normalize-space",
        Function::Substring => "substring",
        Function::SubstringBefore => "substring-before",
        Function::SubstringAfter => "substring-after",
        Function::Translate => "translate",
        Function::Name => "name",
        Function::LocalName => "local-name",
        Function::NamespaceUri => "namespace-uri",
        _ => return None,
    })
}
