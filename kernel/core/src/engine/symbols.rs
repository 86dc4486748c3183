//! The alphabet of the shared NFA: one symbol per distinct name test of the queries.
//!
//! A message name can satisfy up to four name tests (`*`, `name`, `Q{uri}*`, `*:name`); the three
//! that depend on the name are its [`Class`]. Names that no query mentions share the class of all
//! zeros, so they cost the automaton nothing.

use crate::language::query::ast::NameTest;
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::fmt::Write as _;
use std::hash::Hasher;

/// Number of a symbol.
pub(crate) type Symbol = u32;

/// The epsilon-transition to a `//`-child state; also "no such symbol" in a [`Class`].
pub(crate) const EPSILON: Symbol = 0;
/// The wildcard.
pub(crate) const STAR: Symbol = 1;
/// Number of the first symbol that stands for a name test other than `*`.
pub(crate) const FIRST_NAME: Symbol = 2;

/// The name tests that a message name satisfies besides `*`; [`EPSILON`] where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Class {
    /// `name` or `Q{uri}name`
    pub(crate) exact: Symbol,
    /// `Q{uri}*`
    pub(crate) in_namespace: Symbol,
    /// `*:name`
    pub(crate) any_namespace: Symbol,
}

/// Name tests in canonical notation, numbered in order of arrival from [`FIRST_NAME`].
#[derive(Debug, Clone, Default)]
pub struct SymbolTable {
    text: String,
    ends: Vec<u32>,
    index: HashTable<Symbol>,
    /// Whether any symbol is a namespace wildcard; spares two look-ups a name.
    has_namespace_wildcards: bool,
}

impl SymbolTable {
    /// Number of symbols, epsilon and wildcard counted.
    pub(crate) fn len(&self) -> usize {
        FIRST_NAME as usize + self.ends.len()
    }

    /// Canonical notation of a symbol from [`FIRST_NAME`] on.
    pub(crate) fn notation(&self, symbol: Symbol) -> &str {
        let at = (symbol - FIRST_NAME) as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start as usize..self.ends[at] as usize]
    }

    /// The symbol of a name test, new or known. `buffer` is scratch space.
    pub(crate) fn intern_test(&mut self, test: &NameTest<'_>, buffer: &mut String) -> Symbol {
        if let NameTest::Name { uri, local } = test
            && uri.is_empty()
        {
            return self.intern(local);
        }
        if *test == NameTest::Any {
            return STAR;
        }
        buffer.clear();
        write_test(test, buffer);
        self.intern(buffer)
    }

    /// The symbol of a name test in canonical notation, new or known.
    pub(crate) fn intern(&mut self, notation: &str) -> Symbol {
        if let Some(symbol) = self.find(notation) {
            return symbol;
        }
        let symbol = self.len() as Symbol;
        self.text.push_str(notation);
        self.ends.push(self.text.len() as u32);
        self.has_namespace_wildcards |= is_namespace_wildcard(notation);
        let (text, ends) = (&self.text, &self.ends);
        self.index.insert_unique(hash(notation), symbol, |&symbol| {
            let at = (symbol - FIRST_NAME) as usize;
            let start = if at == 0 { 0 } else { ends[at - 1] };
            hash(&text[start as usize..ends[at] as usize])
        });
        symbol
    }

    /// The symbol of a name test in canonical notation, if some query uses it.
    pub(crate) fn find(&self, notation: &str) -> Option<Symbol> {
        self.index.find(hash(notation), |&symbol| self.notation(symbol) == notation).copied()
    }

    /// Which name tests an expanded name satisfies.
    pub(crate) fn class(&self, uri: &str, local: &str, buffer: &mut String) -> Class {
        let mut class = Class::default();
        let mut look_up = |table: &Self, parts: &[&str]| {
            buffer.clear();
            buffer.extend(parts.iter().copied());
            table.find(buffer).unwrap_or(EPSILON)
        };
        class.exact = if uri.is_empty() {
            self.find(local).unwrap_or(EPSILON)
        } else {
            look_up(self, &["Q{", uri, "}", local])
        };
        if self.has_namespace_wildcards {
            class.in_namespace = look_up(self, &["Q{", uri, "}*"]);
            class.any_namespace = look_up(self, &["*:", local]);
        }
        class
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * 4 + self.index.capacity() * 5
    }
}

/// Writes a name test in canonical notation.
pub(crate) fn write_test(test: &NameTest<'_>, out: &mut String) {
    let written = match test {
        NameTest::Any => write!(out, "*"),
        NameTest::Name { uri, local } if uri.is_empty() => write!(out, "{local}"),
        NameTest::Name { uri, local } => write!(out, "Q{{{uri}}}{local}"),
        NameTest::AnyIn { uri } => write!(out, "Q{{{uri}}}*"),
        NameTest::AnyNamespace { local } => write!(out, "*:{local}"),
    };
    written.expect("writing to a String does not fail");
}

fn is_namespace_wildcard(notation: &str) -> bool {
    notation.starts_with("*:") || notation.ends_with("}*")
}

fn hash(notation: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(notation.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_satisfies_its_exact_and_wildcard_tests() {
        let mut table = SymbolTable::default();
        let exact = table.intern("Q{u}a");
        let in_namespace = table.intern("Q{u}*");
        let any_namespace = table.intern("*:a");
        let plain = table.intern("a");
        let mut buffer = String::new();
        assert_eq!(
            table.class("u", "a", &mut buffer),
            Class { exact, in_namespace, any_namespace }
        );
        assert_eq!(
            table.class("", "a", &mut buffer),
            Class { exact: plain, in_namespace: EPSILON, any_namespace }
        );
        assert_eq!(table.class("v", "b", &mut buffer), Class::default());
    }
}
