//! Primaries, predicates, calls (XQuery 1.0, 3.1 and 3.2.2).

use super::super::casts;
use super::super::syntax::{Expr, ExprId, Number};
use super::facts::{self as kinds, items, reads};
use super::names::{FUNCTIONS, SCHEMA};
use super::{Facts, Parser};
use crate::language::functions::{self, Function};
use crate::language::grammar::Grammar;
use crate::language::grammar::names::Written;
use crate::language::grammar::scan::number_length;
use crate::language::pattern_text::PatternFault;
use crate::language::patterns::{COMPILED_BYTES_MAX, PATTERN_BYTES_MAX, Pattern};
use crate::language::refusal::{Detail, Parsed, Reason, Refusal};
use crate::language::types::Type;
use crate::language::xpath::{List, TextRange};
use crate::xml::parser::is_ncname_start;

/// Digits of an integer, as many as XQuery 1.0 asks for at least.
const INTEGER_DIGITS_MAX: usize = 18;

/// What the predicates of one step or filter say together.
pub(super) struct PredicateFacts {
    pub(crate) facts: Facts,
    pub(crate) is_positional: bool,
    pub(crate) nth: Option<u32>,
}

/// The name before a parenthesis.
enum Called<'w> {
    /// The local name of a function of the standard library.
    Function(&'w str),
    /// A type, to which the argument is cast.
    Type(Type),
    /// The namespace and the local name of a function that the prolog may declare.
    Declared(TextRange, &'w str),
}

/// Primaries, predicates, calls.
impl Parser<'_> {
    /// Expressions in square brackets, of items of some kinds.
    pub(super) fn predicates_of(&mut self, context: u8) -> Parsed<(List, PredicateFacts)> {
        let outer = std::mem::replace(&mut self.context, context);
        self.predicates += 1;
        self.loops += 1;
        let mut ids = Vec::new();
        let mut found = PredicateFacts { facts: Facts::default(), is_positional: false, nth: None };
        self.predicates(0, |parser, id, _| {
            parser.need_value(id)?;
            let facts = parser.facts(id);
            found.is_positional |= facts.is_positional();
            found.facts = found.facts.around(facts.as_predicate());
            if ids.is_empty()
                && let Expr::Number(Number::Integer(nth)) = parser.program.expr(id)
            {
                found.nth = u32::try_from(nth).ok().filter(|&nth| nth > 0);
            }
            ids.push(id);
            Ok(())
        })?;
        self.loops -= 1;
        self.predicates -= 1;
        self.context = outer;
        Ok((self.list(&ids), found))
    }

    pub(super) fn filter(&mut self, primary: ExprId, offset: usize) -> Parsed<ExprId> {
        let inner = self.facts(primary);
        let (predicates, found) = self.predicates_of(inner.items)?;
        let facts = Facts::of(items::NONE).giving(inner).around(found.facts);
        let is_positional = found.is_positional;
        let id = self.push(Expr::Filter { primary, predicates, is_positional }, facts, offset);
        self.keep_value(id);
        Ok(id)
    }

    pub(super) fn primary(&mut self) -> Parsed<ExprId> {
        let atoms = Facts::of(items::ATOMS);
        let byte = self.scanner.peek();
        let offset = self.scanner.at;
        match (byte, self.scanner.byte_after(1)) {
            (b'$', _) => self.variable(),
            (b'"' | b'\'', _) => {
                self.count(offset)?;
                let text = self.literal()?.unwrap_or_default();
                self.scanner.settle();
                let text = self.keep(&text);
                Ok(self.push(Expr::String(text), atoms, offset))
            }
            (b'0'..=b'9', _) | (b'.', b'0'..=b'9') => self.number(),
            (b'.', _) => {
                self.count(offset)?;
                self.scanner.skip(1);
                Ok(self.context_item(offset))
            }
            (b'(', b'#') => Err(Refusal::new(offset, Reason::Pragma, Vec::new())),
            (b'(', _) => self.parenthesised(),
            (b'<', b'<' | b'=') => Err(self.scanner.unexpected(Reason::ExpectedExpression, &[])),
            (b'<', _) => self.constructor(),
            _ => match self.computed_word() {
                Some(word) => self.computed(word),
                None => self.call(None),
            },
        }
    }

    /// `.`
    fn context_item(&mut self, offset: usize) -> ExprId {
        if self.predicates == 0 {
            return self.message(offset);
        }
        let facts = Facts {
            reads: reads::CONTEXT,
            may_be_number: self.context & items::ATOMS != 0,
            may_be_attribute: self.context & items::NODES != 0,
            ..Facts::of(self.context)
        };
        self.push(Expr::ContextItem, facts, offset)
    }

    fn number(&mut self) -> Parsed<ExprId> {
        let start = self.scanner.at;
        self.count(start)?;
        self.scanner.at += number_length(self.scanner.rest());
        if self.scanner.rest().starts_with(is_ncname_start) {
            return Err(Refusal::new(self.scanner.at, Reason::NumberIntoName, Vec::new()));
        }
        let text = self.scanner.slice(start, self.scanner.at);
        let value = || text.parse().unwrap_or(f64::NAN);
        let number = if text.contains(['e', 'E']) {
            Number::Double(value())
        } else if text.contains('.') {
            // What has no room in a decimal is a double when it is computed with.
            if self.is_explaining() { Number::Decimal(value()) } else { Number::decimal(value()) }
        } else {
            let significant = text.trim_start_matches('0');
            if significant.len() > INTEGER_DIGITS_MAX {
                let details = vec![INTEGER_DIGITS_MAX.into()];
                return Err(Refusal::new(start, Reason::IntegerDigits, details));
            }
            Number::Integer(significant.parse().unwrap_or(0))
        };
        self.scanner.settle();
        Ok(self.push_number(number, start))
    }

    fn push_number(&mut self, number: Number, offset: usize) -> ExprId {
        let facts = Facts { may_be_number: true, ..Facts::of(items::ATOMS) };
        self.push(Expr::Number(number), facts, offset)
    }

    /// What stands between parentheses.
    pub(super) fn in_parentheses(&mut self, offset: usize) -> Parsed<ExprId> {
        if self.scanner.peek() != b')' {
            return self.sequence();
        }
        self.count(offset)?;
        Ok(self.sequence_of(&[], offset))
    }

    /// A function call; `first` is an argument that stands before it and `=>`.
    pub(super) fn call(&mut self, first: Option<ExprId>) -> Parsed<ExprId> {
        let offset = self.scanner.place();
        let Some(written) = self.written_name() else {
            return Err(self.scanner.unexpected(Reason::ExpectedExpression, &[]));
        };
        let end = self.scanner.at;
        match self.scanner.peek() {
            b'(' => {}
            b'{' => return Err(no_call(offset, self.scanner.slice(offset, end))),
            _ => {
                self.scanner.at = offset;
                return Err(self.scanner.unexpected(Reason::ExpectedExpression, &[]));
            }
        }
        let name = match self.function_name(written, offset, end)? {
            Called::Function(name) => name,
            Called::Type(to) => return self.cast_call(to, first, offset),
            Called::Declared(uri, name) => {
                return self.declared_call((uri, name), first, (offset, end));
            }
        };
        let is_message = matches!(name, "doc" | "document");
        let signature = functions::find(name);
        if !is_message && signature.is_none() {
            return Err(no_function(self.scanner.slice(offset, end), name, true, offset));
        }
        self.count(offset)?;
        self.scanner.settle();
        let mut arguments = self.arguments(first)?;
        let given = arguments.len();
        let wrong = |reason| Refusal::new(offset, reason, vec![name.into(), given.into()]);
        let Some(signature) = signature else {
            if given != 1 {
                return Err(wrong(Reason::ArgumentCount));
            }
            if !matches!(self.program.expr(arguments[0]), Expr::String(_)) {
                return Err(Refusal::new(offset, Reason::ComputedDocument, vec![name.into()]));
            }
            return Ok(self.message(offset));
        };
        let function = signature.function;
        if !(signature.arguments_min..=signature.arguments_max).contains(&given) {
            let is_refused = functions::is_refused_with(function, given);
            return Err(wrong(if is_refused { Reason::Arguments } else { Reason::ArgumentCount }));
        }
        if arguments.is_empty() && function.has_context_default() {
            arguments.push(self.context_item(offset));
        }
        self.collation(function, &mut arguments, offset)?;
        if let Some(written_out) = self.shorthand(function, &arguments, offset)? {
            return Ok(written_out);
        }
        let pattern = self.text_arguments(function, &mut arguments, offset)?;
        let picture = self.picture(function, &arguments, offset)?;
        let id = self.push_call(function, &arguments, offset)?;
        self.program.patterns.extend(pattern.map(|pattern| (id, pattern)));
        self.program.pictures.extend(picture.map(|picture| (id, picture)));
        Ok(id)
    }

    /// Reads the arguments of functions of text that are known before any message.
    fn text_arguments(
        &mut self,
        function: Function,
        arguments: &mut Vec<ExprId>,
        offset: usize,
    ) -> Parsed<Option<Pattern>> {
        use Function::{Matches, NormalizeSpace, Replace, StringJoin, Tokenize};
        match (function, arguments.len()) {
            (StringJoin, 1) => {
                let none = self.keep("");
                arguments.push(self.push(Expr::String(none), Facts::of(items::ATOMS), offset));
                Ok(None)
            }
            (Tokenize, 1) => {
                if !matches!(self.program.expr(arguments[0]), Expr::Call(NormalizeSpace, _)) {
                    arguments[0] = self.push_call(NormalizeSpace, &[arguments[0]], offset)?;
                }
                self.pattern(" ", "", Some(""), offset).map(Some)
            }
            (Matches | Replace | Tokenize, _) => {
                let literal = |&id: &ExprId| self.literal_text(id).map(str::to_owned);
                let texts: Option<Vec<String>> = arguments[1..].iter().map(literal).collect();
                let Some(texts) = texts else {
                    let details = vec![function.name().into()];
                    return Err(Refusal::new(offset, Reason::ComputedPattern, details));
                };
                let (replacement, rest) = match function {
                    Replace => (Some(&*texts[1]), &texts[2..]),
                    Tokenize => (Some(""), &texts[1..]),
                    _ => (None, &texts[1..]),
                };
                let flags = rest.first().map_or("", String::as_str);
                self.pattern(&texts[0], flags, replacement, offset).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Compiles a pattern; together, those of a text have at most [`COMPILED_BYTES_MAX`] bytes.
    pub(super) fn pattern(
        &mut self,
        text: &str,
        flags: &str,
        replacement: Option<&str>,
        offset: usize,
    ) -> Parsed<Pattern> {
        let bytes_max = COMPILED_BYTES_MAX - self.pattern_bytes;
        let pattern = Pattern::read(text, flags, replacement, bytes_max).map_err(|fault| {
            let details: Vec<Detail> = match fault {
                PatternFault::Flags => vec![flags.into()],
                PatternFault::Replacement => vec![replacement.unwrap_or_default().into()],
                PatternFault::TooLarge => vec![text.into(), PATTERN_BYTES_MAX.into()],
                _ => vec![text.into()],
            };
            Refusal::new(offset, reason_of(fault), details)
        })?;
        self.pattern_bytes += pattern.compiled_bytes();
        Ok(pattern)
    }

    /// The characters of a literal string.
    pub(super) fn literal_text(&self, id: ExprId) -> Option<&str> {
        match self.program.expr(id) {
            Expr::String(text) => Some(self.program.text(text)),
            _ => None,
        }
    }

    /// The local name of a function of the standard library.
    fn function_name<'w>(
        &mut self,
        written: Written<'w>,
        offset: usize,
        end: usize,
    ) -> Parsed<Called<'w>> {
        let (uri, name) = match self.expanded(written, offset)? {
            (Some(uri), name) => (uri, name),
            (None, name) => return Ok(Called::Function(name)),
        };
        match self.program.text(uri) {
            FUNCTIONS => Ok(Called::Function(name)),
            SCHEMA => self.schema_type(name, offset, end).map(Called::Type),
            _ => Ok(Called::Declared(uri, name)),
        }
    }

    /// The namespace that a name says, if it says one, and its local part; `*` for all.
    pub(super) fn expanded<'w>(
        &mut self,
        written: Written<'w>,
        offset: usize,
    ) -> Parsed<(Option<TextRange>, &'w str)> {
        let (uri, name) = match written {
            Written::Plain(name) => return Ok((None, name)),
            Written::Prefixed(prefix, name) => (self.prefixed(prefix, offset)?, name),
            Written::AnyIn(prefix) => (self.prefixed(prefix, offset)?, "*"),
            Written::Braced(uri, name) => (self.braced(uri, offset)?, name.unwrap_or("*")),
        };
        Ok((Some(uri), name))
    }

    /// The type of a name of XML Schema.
    pub(super) fn schema_type(&self, name: &str, offset: usize, end: usize) -> Parsed<Type> {
        Type::of_name(name).ok_or_else(|| {
            let details = [self.scanner.slice(offset, end), name].map(Detail::from).to_vec();
            Refusal::new(offset, Reason::SchemaType, details)
        })
    }

    /// `(e)` after the name of a type.
    fn cast_call(&mut self, to: Type, first: Option<ExprId>, offset: usize) -> Parsed<ExprId> {
        self.count(offset)?;
        self.scanner.settle();
        match self.arguments(first)?[..] {
            [operand] => self.push_cast(to, operand, offset),
            ref arguments => {
                let name = format!("xs:{}", to.name());
                let details = vec![name.into(), arguments.len().into()];
                Err(Refusal::new(offset, Reason::ArgumentCount, details))
            }
        }
    }

    pub(super) fn push_cast(&mut self, to: Type, operand: ExprId, offset: usize) -> Parsed<ExprId> {
        self.need_value(operand)?;
        if let Expr::String(text) = self.program.expr(operand) {
            let text = self.program.text(text);
            if casts::text_as(to, text.as_bytes()).is_none() {
                let details = [text, to.name()].map(Detail::from).to_vec();
                return Err(Refusal::new(offset, Reason::NotCastable, details));
            }
        }
        let own = Facts { may_be_number: to.is_number(), ..Facts::of(items::ATOMS) };
        let facts = own.around(self.facts(operand));
        Ok(self.push(Expr::Cast { to, operand }, facts, offset))
    }

    pub(super) fn push_call(
        &mut self,
        function: Function,
        arguments: &[ExprId],
        offset: usize,
    ) -> Parsed<ExprId> {
        let own = match function {
            Function::Position | Function::Last if self.predicates == 0 => {
                return Ok(self.push_number(Number::Integer(1), offset));
            }
            Function::Position | Function::Last => reads::PLACE,
            Function::Lang if self.predicates > 0 => reads::CONTEXT,
            _ => 0,
        };
        // Outside predicates, the language is that of the message.
        let is_of_message =
            function == Function::Id || (function == Function::Lang && self.predicates == 0);
        let (items, may_be_number) = kinds::result_of(function);
        let mut facts = Facts { reads: own, may_be_number, is_of_message, ..Facts::of(items) };
        for (at, &argument) in arguments.iter().enumerate() {
            let inner = self.facts(argument);
            if function.gives_argument(at) {
                facts = facts.giving(inner);
                continue;
            }
            facts = facts.around(inner);
            match function {
                Function::Count | Function::Exists | Function::Empty => {}
                Function::Name | Function::LocalName | Function::NamespaceUri => {
                    self.need_nodes(argument)?;
                }
                _ => self.need_value(argument)?,
            }
        }
        let list = self.list(arguments);
        Ok(self.push(Expr::Call(function, list), facts, offset))
    }
}

fn reason_of(fault: PatternFault) -> Reason {
    match fault {
        PatternFault::Syntax => Reason::Pattern,
        PatternFault::Flags => Reason::PatternFlags,
        PatternFault::BackReference => Reason::BackReference,
        PatternFault::Block => Reason::PatternBlock,
        PatternFault::TooLarge => Reason::PatternTooLarge,
        PatternFault::MatchesEmpty => Reason::PatternMatchesEmpty,
        PatternFault::Replacement => Reason::Replacement,
    }
}

/// The refusal of a name before a brace.
#[cold]
fn no_call(offset: usize, written: &str) -> Box<Refusal> {
    let reason = match written {
        "ordered" | "unordered" | "validate" | "try" | "map" | "array" => Reason::Block,
        _ => Reason::FoundBeforeBrace,
    };
    Refusal::new(offset, reason, vec![written.into()])
}

/// The refusal of a function that there is not; one of the standard library may be refused by its name.
#[cold]
pub(super) fn no_function(
    written: &str,
    name: &str,
    is_standard: bool,
    offset: usize,
) -> Box<Refusal> {
    let reason = match name {
        _ if !is_standard => Reason::NoFunction,
        "typeswitch" | "switch" | "function" => Reason::FunctionWord,
        _ if functions::is_refused(name) => Reason::Function,
        _ => Reason::NoFunction,
    };
    let details = match reason {
        Reason::NoFunction => [written, name].map(Detail::from).to_vec(),
        _ => vec![name.into()],
    };
    Refusal::new(offset, reason, details)
}
