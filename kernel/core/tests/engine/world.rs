//! Random queries and messages, a model that matches label paths one query at a time, and short
//! ways to register and match.

use pathcast_core::engine::options::Options;
use pathcast_core::language::compile::Evaluated;
use pathcast_core::language::query::{Namespaces, compile};
use pathcast_core::language::reader::read_canonical;
use pathcast_core::registry::batch::Messages;
use pathcast_core::registry::delivery::batch::Pool;
use pathcast_core::registry::delivery::dissemination::{Dissemination, NotTaken};
use pathcast_core::registry::snapshot::{NamespaceMap, QueryRecord, Snapshot};
use pathcast_core::xml::parser::Limits;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A small generator of numbers (SplitMix64): tests replay from their seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    pub fn query(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..1 + self.below(5) {
            text.push_str(if self.below(3) == 0 { "//" } else { "/" });
            text.push_str(["a", "b", "c", "d", "*"][self.below(5) as usize]);
        }
        text
    }

    pub fn message(&mut self) -> String {
        let mut text = String::new();
        self.element(0, &mut text);
        text
    }

    fn element(&mut self, depth: u64, text: &mut String) {
        let name = ["a", "b", "c", "e"][self.below(4) as usize];
        text.push_str(&format!("<{name} n='{}'>", self.below(4)));
        for _ in 0..self.below(4).saturating_sub(depth / 3) {
            self.element(depth + 1, text);
        }
        text.push_str(&format!("</{name}>"));
    }
}

/// Whether a linear path matches a label path, step by step from the end.
pub fn matches(query: &str, path: &[String]) -> bool {
    let Some(slash) = query.rfind('/') else {
        return path.is_empty();
    };
    let (test, rest) = (&query[slash + 1..], &query[..slash]);
    let Some((last, above)) = path.split_last() else {
        return false;
    };
    if test != "*" && test != last {
        return false;
    }
    match rest.strip_suffix('/') {
        Some(rest) => (0..=above.len()).any(|depth| matches(rest, &above[..depth])),
        None => matches(rest, above),
    }
}

/// The label paths of a message of [`Random::message`].
pub fn label_paths(message: &str) -> BTreeSet<Vec<String>> {
    let (mut open, mut paths) = (Vec::new(), BTreeSet::new());
    for tag in message.split('<').skip(1) {
        if tag.starts_with('/') {
            open.pop();
        } else {
            open.push(tag[..1].to_owned());
            paths.insert(open.clone());
        }
    }
    paths
}

pub struct Batch(pub Vec<String>);

impl Messages for Batch {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn get(&self, at: usize) -> Option<&[u8]> {
        Some(self.0[at].as_bytes())
    }
    fn bytes(&self) -> usize {
        // Above the bound of what the calling thread does itself, so that threads are used.
        usize::MAX
    }
}

/// Registers a query of one path.
pub fn register(index: &Dissemination, id: &str, text: &str) -> bool {
    register_all(index, id, &[text], None).is_ok()
}

/// Registers a query of several paths and perhaps an expression.
pub fn register_all(
    index: &Dissemination,
    id: &str,
    paths: &[&str],
    expression: Option<&str>,
) -> Result<(), NotTaken> {
    let paths: Vec<_> = paths
        .iter()
        .map(|text| compile(text, Namespaces::NONE).expect("a query in the usual notation"))
        .collect();
    let paths: Vec<_> = paths.iter().map(Vec::as_slice).collect();
    let evaluated = |text| Evaluated::of(&read_canonical(text).expect(text)).expect(text);
    let expression = expression.map(evaluated);
    index.change(|state| {
        let namespaces = state.namespace_number(&NamespaceMap::new());
        let record = QueryRecord { id, text: id, namespaces };
        state.register(record, &paths, expression.as_ref())
    })
}

pub const STEPS_MAX: u64 = 1_000_000;

pub fn pool(cache_bytes_max: usize, threads: usize) -> Pool {
    pool_with(cache_bytes_max, threads, STEPS_MAX)
}

pub fn pool_with(cache_bytes_max: usize, threads: usize, steps_max: u64) -> Pool {
    let options = Options {
        limits: Limits::default(),
        cache_bytes_max,
        steps_max,
        message_steps_max: 100_000_000,
    };
    Pool::new(options.into(), threads)
}

/// Ids per message, looked up in the index as it is now; and those of the queries that could not
/// be decided.
pub type Sets = Vec<BTreeSet<String>>;

pub fn answers_and_verdicts(pool: &Pool, index: &Dissemination, batch: &Batch) -> (Sets, Sets) {
    let answer = pool.match_batch(index.into(), batch).expect("nothing interrupts");
    let ids = index.state().entries();
    assert!(answer.undecided.is_sorted_by(|a, b| a < b), "verdicts ascend, each once");
    assert_eq!(answer.stats.verdicts, answer.undecided.len() as u64);
    let mut undecided = vec![BTreeSet::new(); batch.0.len()];
    for &(row, number, _) in &answer.undecided {
        ids.for_each(std::iter::once(number), |id| {
            undecided[row].insert(id.to_owned());
        });
    }
    (answers(pool, index, batch), undecided)
}

/// Ids per message, looked up in the index as it is now.
pub fn answers(pool: &Pool, index: &Dissemination, batch: &Batch) -> Vec<BTreeSet<String>> {
    let answer = pool.match_batch(index.into(), batch).expect("nothing interrupts");
    assert_eq!(answer.ends.len(), batch.0.len());
    assert!(answer.refusals.is_empty(), "{:?}", answer.refusals);
    let ids = index.state().entries();
    let mut start = 0;
    let sets = answer.ends.iter().map(|&end| {
        let numbers = &answer.numbers[std::mem::replace(&mut start, end)..end];
        assert!(numbers.is_sorted_by(|a, b| a < b), "numbers ascend, each once");
        let mut set = BTreeSet::new();
        ids.for_each(numbers.iter().copied(), |id| {
            set.insert(id.to_owned());
        });
        set
    });
    sets.collect()
}

/// The queries of an index as a snapshot; nothing interrupts.
pub fn frozen(index: &Dissemination) -> Arc<Snapshot> {
    index.freeze().expect("nothing interrupts")
}
