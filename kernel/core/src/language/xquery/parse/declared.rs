//! Functions and variables that the prolog declares (XQuery 3.1, 4.16 and 4.18): put in where they are called.
//!
//! A text is read once where it is declared, to find its end and the calls in it, and again wherever it is used, with
//! its parameters bound by `let`: no program has functions. A call within itself is refused, so that this ends; every
//! syntax node counts wherever it is put in, so that it stays small.

use super::super::syntax::{Expr, ExprId, ItemTest, Number, Occurrence};
use super::facts::items;
use super::names::{FUNCTIONS, SCHEMA, Variable, XML};
use super::primaries::no_function;
use super::{Facts, Parser};
use crate::language::functions::Function;
use crate::language::grammar::Grammar;
use crate::language::refusal::{Parsed, Reason, Refusal};
use crate::language::types::Type;
use crate::language::xpath::{Kind, List, TextRange};

/// What `as` says.
type Declared = Option<(ItemTest, Occurrence)>;

/// A parameter of a function.
struct Parameter<'t> {
    uri: TextRange,
    local: &'t str,
    declared: Declared,
}

/// A function, or a variable.
struct Declaration<'t> {
    uri: TextRange,
    local: &'t str,
    /// None of a variable.
    parameters: Option<Vec<Parameter<'t>>>,
    declared: Declared,
    /// Where its expression begins.
    body: usize,
    uses: Vec<Use>,
}

/// A function or a variable that an expression uses, and where.
struct Use {
    of: Used,
    offset: usize,
}

enum Used {
    /// A variable, by the number of its declaration.
    Variable(usize),
    /// A function, whose name ends at a place, and how many arguments it is given.
    Function { uri: TextRange, local: (usize, usize), given: usize },
}

/// What the prolog declares.
#[derive(Default)]
pub(super) struct Declarations<'t> {
    all: Vec<Declaration<'t>>,
    /// Uses in the expression that is looked through for its end.
    skimmed: Option<Vec<Use>>,
    /// As many are in scope as variables.
    visible: usize,
    /// Parameters that have been bound.
    bound: usize,
    /// Namespaces that are declared.
    bindings: usize,
}

impl Declarations<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether an expression is looked through, whose calls and parameters are not known.
    pub(super) fn is_skimming(&self) -> bool {
        self.skimmed.is_some()
    }
}

impl<'t> Parser<'t> {
    /// `function name(...) as type {...};` or `variable $name as type := ...;`
    pub(super) fn declare_value(&mut self, offset: usize) -> Parsed<()> {
        let is_function = self.scanner.take_word("function");
        let place;
        let (uri, local, parameters) = if is_function {
            place = self.scanner.place();
            let (uri, local) = self.declared_function_name()?;
            let parameters = self.parameters()?;
            (uri, local, Some(parameters))
        } else {
            self.scanner.take_word("variable");
            place = self.scanner.place();
            let (uri, local) = self.declared_name()?;
            (uri, local, None)
        };
        let declared = self.declared_type()?;
        if self.scanner.is_word("external") {
            let kind = if is_function { "function" } else { "variable" };
            return Err(Refusal::new(offset, Reason::External, vec![kind.into()]));
        }
        let arity = parameters.as_ref().map(Vec::len);
        if self.declared_number(uri, local, arity).is_some() {
            let name = self.shown(uri, local);
            return Err(match arity {
                Some(arity) => {
                    Refusal::new(place, Reason::FunctionTwice, vec![name.into(), arity.into()])
                }
                None => Refusal::new(place, Reason::VariableTwice, vec![name.into()]),
            });
        }
        if is_function {
            self.scanner.expect(b'{', "before the body")?;
        } else {
            self.scanner.peek();
            if !self.scanner.take_here(":=") {
                let name = self.shown(uri, local);
                let reason = Reason::ExpectedAfterVariable;
                return Err(self.scanner.unexpected(reason, &[":=", &name]));
            }
            self.scanner.settle();
        }
        let body = self.scanner.place();
        if is_function && self.scanner.byte() == b'}' {
            return Err(Refusal::new(body, Reason::EmptyBraces, Vec::new()));
        }
        let uses = self.skim(parameters.as_deref().unwrap_or_default(), is_function)?;
        if is_function {
            self.scanner.expect(b'}', "or an operator")?;
        }
        self.scanner.expect(b';', "after the declaration")?;
        let new = Declaration { uri, local, parameters, declared, body, uses };
        self.declared.all.push(new);
        self.declared.visible += 1;
        Ok(())
    }

    fn declared_function_name(&mut self) -> Parsed<(TextRange, &'t str)> {
        let offset = self.scanner.place();
        let Some(written) = self.written_name() else {
            return Err(self.scanner.unexpected(Reason::ExpectedName, &[]));
        };
        let found = self.expanded(written, offset)?;
        self.scanner.settle();
        match found {
            (Some(uri), local) if local != "*" && !self.is_reserved(uri) => Ok((uri, local)),
            _ => Err(Refusal::new(offset, Reason::ReservedFunction, Vec::new())),
        }
    }

    fn is_reserved(&self, uri: TextRange) -> bool {
        let instances = "http://www.w3.org/2001/XMLSchema-instance";
        matches!(self.program.text(uri), "" | FUNCTIONS | SCHEMA | XML) || {
            self.program.text(uri) == instances
        }
    }

    fn parameters(&mut self) -> Parsed<Vec<Parameter<'t>>> {
        self.scanner.expect(b'(', "of the parameters")?;
        let mut found: Vec<Parameter<'t>> = Vec::new();
        if self.scanner.take(b')') {
            return Ok(found);
        }
        loop {
            let offset = self.scanner.place();
            let (uri, local) = self.declared_name()?;
            let name = self.program.text(uri);
            let is_same = |known: &Parameter<'_>| {
                known.local == local && self.program.text(known.uri) == name
            };
            if found.iter().any(is_same) {
                let name = self.shown(uri, local);
                return Err(Refusal::new(offset, Reason::ParameterTwice, vec![name.into()]));
            }
            let declared = self.declared_type()?;
            found.push(Parameter { uri, local, declared });
            if !self.scanner.take(b',') {
                self.scanner.expect(b')', "or a comma")?;
                return Ok(found);
            }
        }
    }

    /// `as type`
    fn declared_type(&mut self) -> Parsed<Declared> {
        if !self.scanner.take_word("as") {
            return Ok(None);
        }
        self.sequence_type().map(Some)
    }

    /// The number of a declaration; of a function with its number of parameters.
    fn declared_number(&self, uri: TextRange, local: &str, arity: Option<usize>) -> Option<usize> {
        let uri = self.program.text(uri);
        self.declared.all.iter().position(|known| {
            known.local == local
                && known.parameters.as_ref().map(Vec::len) == arity
                && self.program.text(known.uri) == uri
        })
    }

    /// Reads an expression for its end and the uses in it; leaves nothing else.
    fn skim(&mut self, parameters: &[Parameter<'t>], is_function: bool) -> Parsed<Vec<Use>> {
        let program = self.program.clone();
        let origins = self.origins.clone();
        let (nodes, values, patterns) = (self.nodes, self.values, self.pattern_bytes);
        self.declared.skimmed = Some(Vec::new());
        let any = Facts { is_of_message: true, ..Facts::of(items::NODES | items::ATOMS) };
        for parameter in parameters {
            let offset = self.scanner.at;
            self.bind(parameter.uri, parameter.local, any, offset);
        }
        if is_function {
            self.sequence()?
        } else {
            self.single()?
        };
        self.variables.clear();
        let uses = self.declared.skimmed.take().unwrap_or_default();
        // Names that uses have are kept.
        let text = std::mem::take(&mut self.program.text);
        self.program = program;
        self.program.text = text;
        self.origins = origins;
        self.facts.clear();
        (self.nodes, self.values, self.pattern_bytes) = (nodes, values, patterns);
        Ok(uses)
    }

    /// Looks at all declarations when the last one has been read: what they use is there, and is not themselves.
    pub(super) fn check_declared(&mut self) -> Parsed<()> {
        self.declared.bindings = self.bindings.len();
        let count = self.declared.all.len();
        let mut graph: Vec<Vec<(usize, usize)>> = Vec::with_capacity(count);
        for declaration in &self.declared.all {
            let mut used = Vec::with_capacity(declaration.uses.len());
            for each in &declaration.uses {
                let number = match each.of {
                    Used::Variable(number) => number,
                    Used::Function { uri, local, given } => {
                        self.called(uri, local, given, each.offset)?
                    }
                };
                used.push((number, each.offset));
            }
            graph.push(used);
        }
        // Depth first: 0 not seen, 1 on the way, 2 done.
        let mut states = vec![0u8; count];
        for start in 0..count {
            let mut way = vec![(start, 0)];
            while let Some(&mut (at, ref mut next)) = way.last_mut() {
                states[at] = states[at].max(1);
                let Some(&(used, offset)) = graph[at].get(*next) else {
                    states[at] = 2;
                    way.pop();
                    continue;
                };
                *next += 1;
                match states[used] {
                    0 => way.push((used, 0)),
                    1 => return Err(self.recursion(used, offset)),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn recursion(&self, used: usize, offset: usize) -> Box<Refusal> {
        let used = &self.declared.all[used];
        let name = match &used.parameters {
            Some(_) => format!("function ({}())", used.local),
            None => format!("variable (${})", used.local),
        };
        Refusal::new(offset, Reason::Recursion, vec![name.into()])
    }

    /// The number of a function that is called by a name between two places.
    fn called(
        &self,
        uri: TextRange,
        (start, end): (usize, usize),
        given: usize,
        offset: usize,
    ) -> Parsed<usize> {
        let local = self.scanner.slice(start, end);
        let found = self.declared_number(uri, local, Some(given));
        found.ok_or_else(|| self.no_declared(uri, local, given, (offset, end)))
    }

    /// The refusal of a call for which there is no declaration.
    #[cold]
    fn no_declared(
        &self,
        uri: TextRange,
        local: &str,
        given: usize,
        (offset, end): (usize, usize),
    ) -> Box<Refusal> {
        let written = self.scanner.slice(offset, end);
        let arities: Vec<String> =
            self.arities(uri, local).map(|arity| arity.to_string()).collect();
        if arities.is_empty() {
            return no_function(written, local, false, offset);
        }
        let details = vec![written.into(), arities.join(" or ").into(), given.into()];
        Refusal::new(offset, Reason::DeclaredArguments, details)
    }

    /// How many parameters the functions of a name have.
    fn arities(&self, uri: TextRange, local: &str) -> impl Iterator<Item = usize> {
        let uri = self.program.text(uri);
        let all = self.declared.all.iter();
        let same =
            all.filter(move |known| known.local == local && self.program.text(known.uri) == uri);
        same.filter_map(|known| known.parameters.as_ref().map(Vec::len))
    }

    /// Variables of the prolog, as they are shown.
    pub(super) fn declared_names(&self) -> impl Iterator<Item = String> {
        let variables = self.declared.all.iter().filter(|known| known.parameters.is_none());
        variables.map(|known| self.shown(known.uri, known.local))
    }

    /// A call of a function of the prolog, whose name stands between two places.
    pub(super) fn declared_call(
        &mut self,
        (uri, local): (TextRange, &str),
        first: Option<ExprId>,
        (offset, end): (usize, usize),
    ) -> Parsed<ExprId> {
        if !self.declared.is_skimming() && self.arities(uri, local).next().is_none() {
            return Err(no_function(self.scanner.slice(offset, end), local, false, offset));
        }
        let local = (end - local.len(), end);
        self.count(offset)?;
        self.scanner.settle();
        let arguments = self.arguments(first)?;
        let given = arguments.len();
        if let Some(uses) = &mut self.declared.skimmed {
            uses.push(Use { of: Used::Function { uri, local, given }, offset });
            return Ok(self.unknown(offset));
        }
        let number = self.called(uri, local, given, offset)?;
        let parameters = self.declared.all[number].parameters.take().unwrap_or_default();
        let mut bound = Vec::with_capacity(given);
        let mut scope = Vec::with_capacity(given);
        for (parameter, argument) in parameters.iter().zip(arguments) {
            let value = self.converted(parameter.declared, argument, offset)?;
            let facts = self.facts(value);
            let slot = self.bind(parameter.uri, parameter.local, facts, offset);
            scope.extend(self.variables.pop());
            bound.push((slot, value));
            // Arguments may speak of other variables with the name of a parameter.
            self.declared.bound += 1;
            let tag = format!("#{}", self.declared.bound);
            self.origins(|origins| origins.variables[slot as usize].0.push_str(&tag));
        }
        self.declared.all[number].parameters = Some(parameters);
        let body = self.put_in(number, scope, offset)?;
        if bound.is_empty() {
            return Ok(body);
        }
        Ok(self.push_lets(&bound, body, offset))
    }

    /// The value of a variable of the prolog, if it is one.
    pub(super) fn declared_variable(
        &mut self,
        uri: TextRange,
        local: &str,
        offset: usize,
    ) -> Parsed<Option<ExprId>> {
        let found = self.declared_number(uri, local, None);
        let Some(number) = found.filter(|&number| number < self.declared.visible) else {
            return Ok(None);
        };
        if let Some(uses) = &mut self.declared.skimmed {
            uses.push(Use { of: Used::Variable(number), offset });
            return Ok(Some(self.unknown(offset)));
        }
        self.put_in(number, Vec::new(), offset).map(Some)
    }

    /// The value of a use in an expression that is looked through.
    fn unknown(&mut self, offset: usize) -> ExprId {
        let any = Facts { is_of_message: true, ..Facts::of(items::NODES | items::ATOMS) };
        self.push(Expr::Sequence(List::default()), any, offset)
    }

    /// The expression of a declaration where it is used; of a function its parameters are in scope.
    fn put_in(&mut self, number: usize, scope: Vec<Variable<'t>>, offset: usize) -> Parsed<ExprId> {
        self.enter(offset)?;
        let Declaration { body, declared, .. } = self.declared.all[number];
        let is_function = self.declared.all[number].parameters.is_some();
        let at = std::mem::replace(&mut self.scanner.at, body);
        let bindings = self.bindings.split_off(self.declared.bindings);
        let variables = std::mem::replace(&mut self.variables, scope);
        let constructor = self.constructor.take();
        let predicates = std::mem::take(&mut self.predicates);
        let context = std::mem::replace(&mut self.context, items::NODES);
        let visible = std::mem::replace(&mut self.declared.visible, number);
        let id = if is_function { self.sequence()? } else { self.single()? };
        self.declared.visible = visible;
        self.context = context;
        self.predicates = predicates;
        self.constructor = constructor;
        self.variables = variables;
        self.bindings.extend(bindings);
        self.scanner.at = at;
        self.leave();
        self.converted(declared, id, offset)
    }

    /// A value as one of a declared type: atomic values are cast; nodes are what they are.
    fn converted(&mut self, declared: Declared, value: ExprId, offset: usize) -> Parsed<ExprId> {
        let Some((item, occurrence)) = declared else { return Ok(value) };
        let to = match item {
            ItemTest::Item | ItemTest::Document | ItemTest::Node(_) => return Ok(value),
            ItemTest::AnyAtomic | ItemTest::Untyped => {
                return self.push_call(Function::Data, &[value], offset);
            }
            ItemTest::Atomic(to) => to,
        };
        if self.is_of_type(value, to) {
            return Ok(value);
        }
        if matches!(occurrence, Occurrence::One | Occurrence::Optional) {
            return self.push_cast(to, value, offset);
        }
        self.need_value(value)?;
        let inner = self.facts(value);
        let item = self.push(Expr::ContextItem, Facts::of(inner.items), offset);
        let body = self.push_cast(to, item, offset)?;
        let facts = Facts { is_costly: true, ..Facts::of(items::NONE).around(inner) };
        let facts = facts.giving(self.facts(body).as_predicate());
        Ok(self.push(Expr::SimpleMap { source: value, body }, facts, offset))
    }

    /// Whether an expression is written as values of a type.
    fn is_of_type(&self, value: ExprId, to: Type) -> bool {
        match self.program.expr(value) {
            Expr::String(_) => to == Type::String,
            Expr::Number(Number::Integer(_)) => matches!(to, Type::Integer | Type::Decimal),
            Expr::Number(Number::Decimal(_)) => to == Type::Decimal,
            Expr::Number(Number::Double(_)) => to == Type::Double,
            Expr::Cast { to: known, .. } => known == to,
            Expr::Comparison { .. }
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Quantified { .. }
            | Expr::Castable { .. }
            | Expr::InstanceOf { .. } => to == Type::Boolean,
            Expr::Call(function, _) => match function.signature().kind {
                Kind::Boolean => to == Type::Boolean,
                Kind::String => to == Type::String,
                _ => false,
            },
            Expr::Sequence(list) => {
                self.program.list(list).iter().all(|&item| self.is_of_type(item, to))
            }
            _ => false,
        }
    }
}
