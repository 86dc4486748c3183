//! Which of many queries are covered by another one, without comparing all pairs.
//!
//! A query can cover another only if the other offers every name, and every constant of an equality, that it asks for.
//! Each query is filed under the rarest of these; a query is compared with what is filed under something that it
//! offers. Queries that cover something are tried first from then on, so that thousands of thresholds on one price
//! (`[@price > 1]`, `[@price > 2]`, ...) take one comparison each. The number of comparisons is bounded, and what was
//! left out is counted. It finds one query that covers, not all.

use super::Path;
use crate::language::comparison::Comparison;
use crate::language::compile::Pattern;
use crate::language::numbers::Notation;
use crate::language::query::{Condition, Constant, NameTest, Operator, Step};
use crate::language::values::Values;
use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Characters of a prefix that queries are filed under.
const PREFIX_MAX: usize = 64;

/// A name or constant: a hash of it, and its kind in the lowest bits. Different ones that share a token cost a
/// comparison.
pub type Token = u64;

/// Bits of a [`Token`] that tell its kind: 0 is a name, [`EQUALITY`] or [`BEGINNING`].
const KIND: Token = 3;
/// Kind of the constant of an equality.
const EQUALITY: Token = 1;
/// Kind of the beginning of a string.
const BEGINNING: Token = 2;

/// Whether a token is a name.
pub fn is_name(token: Token) -> bool {
    token & KIND == 0
}

/// Whether a token is the beginning of a string.
pub fn is_beginning(token: Token) -> bool {
    token & KIND == BEGINNING
}

/// A query as what is compared: satisfied if one of its paths is there.
pub struct Alternatives {
    /// One or more.
    pub paths: Vec<Path>,
    /// False if more must hold than one of the paths: it can be covered, but covers nothing.
    pub is_exact: bool,
}

/// What [`coverings`] has found.
#[derive(Debug, Default)]
pub struct Coverings {
    /// Number of a query, and of one that covers it. Two that cover each other, which are equal, may both be here.
    pub covered_by: Vec<(usize, usize)>,
    /// Comparisons of two queries that were made.
    pub comparisons: usize,
    /// Pairs, at most, that were not compared because of the bounds.
    pub left_out: usize,
}

/// Finds for each query another one that covers it, if there is one; equal ones cover each other.
///
/// Makes at most `comparisons_max` comparisons, at most `candidates_max` for one query, and none once `stops()` is
/// true.
///
/// Cost: some microseconds a comparison.
pub fn coverings(
    queries: &[Alternatives],
    comparisons_max: usize,
    candidates_max: usize,
    stops: impl Fn() -> bool,
) -> Coverings {
    let entries: Vec<Entry<'_>> = queries.iter().map(Entry::of).collect();
    let mut filed = filed(&entries);
    let mut found = Coverings::default();
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.can_match) {
        let bound = candidates_max.min(comparisons_max - found.comparisons);
        let (mut made, mut beside, mut general) = (0, 0, None);
        // What asks for nothing is filed under no token.
        let keys = std::iter::once(None).chain(entry.offered[0].iter().copied().map(Some));
        for key in keys {
            let Some(drawer) = filed.get_mut(&key) else { continue };
            beside += drawer.len();
            if general.is_some() {
                continue;
            }
            let mut place = 0;
            while place < drawer.len() && made < bound && !stops() {
                let other = drawer[place];
                if other != at && entries[other].may_cover(entry) {
                    made += 1;
                    if entries[other].covers(entry) {
                        // What has covered one query likely covers the next one, too.
                        drawer[..=place].rotate_right(1);
                        general = Some(other);
                        break;
                    }
                }
                place += 1;
            }
        }
        found.comparisons += made;
        match general {
            Some(general) => found.covered_by.push((at, general)),
            None if made == bound => found.left_out += beside.saturating_sub(1 + made),
            None => {}
        }
    }
    found
}

struct Entry<'q> {
    patterns: Vec<Pattern<'q, 'static>>,
    wanted: Vec<Vec<Token>>,
    offered: Vec<Vec<Token>>,
    is_exact: bool,
    can_match: bool,
}

impl<'q> Entry<'q> {
    fn of(query: &'q Alternatives) -> Self {
        Entry {
            patterns: query.paths.iter().map(|path| Pattern::new(path.steps())).collect(),
            wanted: query.paths.iter().map(Path::wanted).collect(),
            offered: query.paths.iter().map(Path::offered).collect(),
            is_exact: query.is_exact,
            can_match: query.paths.iter().any(Path::can_match),
        }
    }

    /// Whether names and constants leave it open that another query is covered.
    fn may_cover(&self, special: &Entry<'_>) -> bool {
        let is_among = |wanted: &[Token], offered: &[Token]| {
            wanted.iter().all(|token| offered.binary_search(token).is_ok())
        };
        special.offered.iter().all(|offered| self.wanted.iter().any(|each| is_among(each, offered)))
    }

    fn covers(&self, special: &Entry<'_>) -> bool {
        special.patterns.iter().all(|each| self.patterns.iter().any(|mine| mine.covers(each)))
    }
}

/// The queries that can cover, each under the token that fewest ask for; what asks for the least is the likeliest to
/// cover.
fn filed(entries: &[Entry<'_>]) -> HashMap<Option<Token>, Vec<usize>> {
    let mut asked: HashMap<Token, usize> = HashMap::new();
    for token in entries.iter().flat_map(|entry| entry.wanted.iter().flatten()) {
        *asked.entry(*token).or_default() += 1;
    }
    let mut by_size: Vec<usize> = (0..entries.len()).collect();
    by_size.sort_by_key(|&at| entries[at].wanted.iter().map(Vec::len).sum::<usize>());
    let mut filed: HashMap<Option<Token>, Vec<usize>> = HashMap::new();
    for at in by_size.into_iter().filter(|&at| entries[at].is_exact && entries[at].can_match) {
        let rarest =
            |tokens: &Vec<Token>| tokens.iter().copied().min_by_key(|token| (asked[token], *token));
        let mut keys: Vec<Option<Token>> = entries[at].wanted.iter().map(rarest).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            filed.entry(key).or_default().push(at);
        }
    }
    filed
}

impl Path {
    /// The tokens that a path covered by it must offer, ascending.
    pub fn wanted(&self) -> Vec<Token> {
        let mut tokens = Vec::new();
        for_each_step(self.steps(), &mut |step| {
            tokens.extend(name_tokens(false, &step.test).next());
            for condition in step.conditions() {
                if let Condition::Attribute { test, .. } = condition {
                    tokens.extend(name_tokens(true, test).next());
                }
                match condition.compare() {
                    // Dates follow from texts and from orders, which offer no token for them.
                    // Nor do foldings.
                    Some((_, Constant::Moment(..) | Constant::Texts(..))) => {}
                    Some((Operator::Compare(Comparison::Eq), constant)) => {
                        tokens.extend(equality(constant));
                    }
                    Some((Operator::StartsWith, Constant::String(text))) => {
                        tokens.push(beginnings(text).last().unwrap_or(BEGINNING));
                    }
                    _ => {}
                }
            }
        });
        in_order(tokens)
    }

    /// The tokens that it offers to paths that may cover it, ascending.
    pub fn offered(&self) -> Vec<Token> {
        let mut tokens = Vec::new();
        for_each_step(self.steps(), &mut |step| {
            tokens.extend(name_tokens(false, &step.test));
            for condition in step.conditions() {
                if let Condition::Attribute { test, .. } = condition {
                    tokens.extend(name_tokens(true, test));
                }
                let Some((operator, constant)) = condition.compare() else { continue };
                if matches!(constant, Constant::Moment(..) | Constant::Texts(..)) {
                    continue;
                }
                use Comparison::{Eq, Ge, Le};
                // Two orders can say together that a value is a constant.
                if matches!(operator, Operator::Compare(Eq | Le | Ge)) {
                    tokens.extend(equality(constant));
                    if let Constant::String(text) = constant {
                        tokens.extend(equality(&Constant::Double(
                            Notation::Double.read(text.as_bytes()),
                        )));
                    }
                }
                if let Constant::Strings(values) = constant {
                    tokens.extend(offered_by_all(values));
                }
                if let Constant::Numbers(values) | Constant::Doubles(values) = constant {
                    let (least, most) = values.range();
                    tokens.extend([least, most].map(Constant::Double).iter().filter_map(equality));
                }
                if let (Operator::Compare(Eq) | Operator::StartsWith, Constant::String(text)) =
                    (operator, constant)
                {
                    tokens.extend(beginnings(text));
                }
            }
        });
        in_order(tokens)
    }
}

/// All steps of a path and of its nested paths.
fn for_each_step<'s>(steps: &'s [Step<'static>], visit: &mut impl FnMut(&'s Step<'static>)) {
    for step in steps {
        visit(step);
        for condition in step.conditions() {
            if let Condition::Nested(nested) = condition {
                for_each_step(nested, visit);
            }
        }
    }
}

fn in_order(mut tokens: Vec<Token>) -> Vec<Token> {
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

/// The name that a test asks for, and those that ask for less of it.
fn name_tokens(is_attribute: bool, test: &NameTest<'_>) -> impl Iterator<Item = Token> {
    let token = |kind: u64, uri: &str, local: &str| {
        let seed = kind << 8 | u64::from(is_attribute);
        xxh3_64_with_seed(local.as_bytes(), xxh3_64_with_seed(uri.as_bytes(), seed)) & !KIND
    };
    let (in_uri, named) = (|uri: &str| token(1, uri, ""), |local: &str| token(2, "", local));
    let tokens = match test {
        NameTest::Any => [None; 3],
        NameTest::Name { uri, local } => {
            [Some(token(0, uri, local)), Some(in_uri(uri)), Some(named(local))]
        }
        NameTest::AnyIn { uri } => [Some(in_uri(uri)), None, None],
        NameTest::AnyNamespace { local } => [Some(named(local)), None, None],
    };
    tokens.into_iter().flatten()
}

/// The token of an equality; none for a set, which several constants and smaller sets are covered by.
fn equality(constant: &Constant<'_>) -> Option<Token> {
    let hash = match constant {
        // A number follows from both ways of reading it. Nobody asks for those of dates.
        Constant::Number(value) | Constant::Double(value) | Constant::Moment(_, value) => {
            xxh3_64_with_seed(&(value + 0.0).to_bits().to_le_bytes(), 1)
        }
        Constant::String(text) => xxh3_64_with_seed(text.as_bytes(), 2),
        Constant::Strings(_)
        | Constant::Numbers(_)
        | Constant::Doubles(_)
        | Constant::Texts(..) => return None,
    };
    Some(hash & !KIND | EQUALITY)
}

/// What follows from each of some strings: what they begin with, and the number that they all are.
fn offered_by_all(values: &Values<'_>) -> Vec<Token> {
    let mut texts = values.iter();
    let Some(first) = texts.next() else { return Vec::new() };
    let number_of = |text: &str| Notation::Double.read(text.as_bytes());
    let (mut common, mut number) = (first, Some(number_of(first)));
    for text in texts {
        let both = common.char_indices().zip(text.chars());
        let length = both.take_while(|((_, one), other)| one == other).count();
        let end = common.char_indices().nth(length).map_or(common.len(), |(end, _)| end);
        common = &common[..end];
        number = number.filter(|&number| number_of(text) == number);
        if common.is_empty() && number.is_none() {
            break;
        }
    }
    let number = number.and_then(|number| equality(&Constant::Double(number)));
    beginnings(common).chain(number).collect()
}

/// The beginnings of a string, from one character on.
fn beginnings(text: &str) -> impl Iterator<Item = Token> {
    let ends = text.char_indices().map(|(at, character)| at + character.len_utf8());
    ends.take(PREFIX_MAX)
        .map(|end| xxh3_64_with_seed(&text.as_bytes()[..end], 3) & !KIND | BEGINNING)
}
