//! The engine as a whole: whatever way an automaton is held and run, the answers are the same.
//!
//! A history of registrations, removals and freezes is run against a model that keeps the queries in
//! a map and matches label paths one query at a time.

use pathcast_core::batch::{Messages, Pool};
use pathcast_core::door::Limits;
use pathcast_core::index::{Index, Unknown};
use pathcast_core::matcher::{Options, Target, View};
use pathcast_core::query::{Namespaces, compile};
use pathcast_core::snapshot::{NamespaceMap, QueryRecord};
use std::collections::{BTreeMap, BTreeSet};

/// A small generator of numbers (SplitMix64): tests replay from their seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn query(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..1 + self.below(5) {
            text.push_str(if self.below(3) == 0 { "//" } else { "/" });
            text.push_str(["a", "b", "c", "d", "*"][self.below(5) as usize]);
        }
        text
    }

    fn message(&mut self) -> String {
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
fn matches(query: &str, path: &[String]) -> bool {
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
fn label_paths(message: &str) -> BTreeSet<Vec<String>> {
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

struct Batch(Vec<String>);

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

struct Live<'i>(&'i Index);

impl Target for Live<'_> {
    fn with<T>(&self, f: impl FnOnce(View<'_>) -> T) -> T {
        f(View::of_index(&self.0.state()))
    }
}

fn register(index: &Index, id: &str, text: &str) -> bool {
    let steps = compile(text, Namespaces::NONE).expect("a query in the usual notation");
    index.change(|state| {
        let namespaces = state.namespace_number(&NamespaceMap::new());
        let record = QueryRecord { id, text, namespaces };
        state.register(record, &steps).is_ok()
    })
}

fn pool(cache_bytes_max: usize, threads: usize) -> Pool {
    Pool::new(Options { limits: Limits::default(), cache_bytes_max }, threads)
}

/// Ids per message, looked up in the index as it is now.
fn answers(pool: &Pool, index: &Index, batch: &Batch) -> Vec<BTreeSet<String>> {
    let answer = pool.run(&Live(index), batch, || false).expect("nothing gives up");
    assert_eq!(answer.ends.len(), batch.0.len());
    assert!(answer.refusals.is_empty(), "{:?}", answer.refusals);
    let ids = index.state().ids();
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

#[test]
fn histories_answer_like_a_map_of_queries() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let index = Index::default();
        let mut model: BTreeMap<String, String> = BTreeMap::new();
        // A cache that fits, one that overflows in every message, none, and several threads.
        let pools = [pool(1 << 24, 1), pool(3_000, 1), pool(0, 1), pool(1 << 24, 3)];
        for step in 0..30 {
            match random.below(10) {
                0..5 => {
                    for _ in 0..random.below(20) {
                        let (id, text) = (format!("q{}", random.below(300)), random.query());
                        let is_new = !model.contains_key(&id);
                        assert_eq!(register(&index, &id, &text), is_new, "seed {seed}");
                        model.entry(id).or_insert(text);
                    }
                }
                5..7 => {
                    let ids: Vec<String> = model.keys().cloned().collect();
                    let gone: Vec<&String> = ids.iter().filter(|_| random.below(4) == 0).collect();
                    let removed =
                        index.change(|state| state.remove(gone.iter().map(|id| id.as_str())));
                    assert_eq!(removed, Ok(()));
                    gone.into_iter().for_each(|id| drop(model.remove(id)));
                }
                7 => {
                    let snapshot = index.freeze();
                    assert_eq!(snapshot.len(), model.len(), "seed {seed} step {step}");
                }
                _ => {
                    let batch = Batch((0..5).map(|_| random.message()).collect());
                    let expected: Vec<BTreeSet<String>> = batch
                        .0
                        .iter()
                        .map(|message| {
                            let paths = label_paths(message);
                            let satisfied = model
                                .iter()
                                .filter(|(_, query)| paths.iter().any(|p| matches(query, p)));
                            satisfied.map(|(id, _)| id.clone()).collect()
                        })
                        .collect();
                    for (at, pool) in pools.iter().enumerate() {
                        let found = answers(pool, &index, &batch);
                        assert_eq!(found, expected, "seed {seed} step {step} pool {at}");
                    }
                }
            }
        }
        assert_eq!(index.state().len(), model.len());
    }
}

#[test]
fn removing_is_all_or_none() {
    let index = Index::default();
    assert!(register(&index, "q1", "/a") && register(&index, "q2", "/b"));
    let removed = index.change(|state| state.remove(["q1", "q9"].into_iter()));
    assert_eq!(removed, Err(Unknown(1)));
    assert_eq!(index.state().len(), 2);
}

#[test]
fn equal_sets_of_queries_freeze_to_equal_bytes() {
    let texts = ["/a/b", "//b[@n='1']", "/a//*", "/a/*//b", "//b[@n='1']", "/a/b[c][@n>2]"];
    let freeze = |order: &[usize]| {
        let index = Index::default();
        for &at in order {
            assert!(register(&index, &format!("q{at}"), texts[at]));
        }
        index.freeze()
    };
    let snapshot = freeze(&[0, 1, 2, 3, 4, 5]);
    assert_eq!(snapshot.file().as_slice(), freeze(&[5, 3, 1, 4, 2, 0]).file().as_slice());
    assert_eq!(snapshot.number_of("q4").map(|n| snapshot.query(n).text), Some("//b[@n='1']"));
}

#[test]
fn predicates_answer_alike_in_all_ways_of_running() {
    let texts =
        ["//b[@n='1']", "//a[@n>1]/b", "/a[b][c]", "//c[2]", "//a//@n", "/a[.//b[@n=3]]//c"];
    for seed in 0..40 {
        let mut random = Random(seed);
        let index = Index::default();
        for (at, text) in texts.iter().enumerate() {
            register(&index, &format!("old{at}"), text);
            register(&index, &format!("same{at}"), text);
        }
        index.freeze();
        for (at, text) in texts.iter().enumerate() {
            register(&index, &format!("new{at}"), text);
        }
        let batch = Batch((0..20).map(|_| random.message()).collect());
        let expected = answers(&pool(0, 1), &index, &batch);
        for (cache, threads) in [(1 << 24, 1), (4_000, 1), (1 << 24, 2)] {
            assert_eq!(answers(&pool(cache, threads), &index, &batch), expected, "seed {seed}");
        }
        for set in &expected {
            for at in 0..texts.len() {
                let sharing =
                    ["old", "same", "new"].map(|kind| set.contains(&format!("{kind}{at}")));
                assert!(sharing == [true; 3] || sharing == [false; 3], "seed {seed}: {sharing:?}");
            }
        }
        index.freeze();
        assert_eq!(answers(&pool(1 << 24, 1), &index, &batch), expected, "seed {seed}");
    }
}
