//! A history of registrations, removals and freezes is run against a model that keeps the queries
//! in a map and matches label paths one query at a time.

use crate::world::{Batch, Random, answers, frozen, label_paths, matches, pool, register};
use pathcast_core::engine::interrupt::watched;
use pathcast_core::language::query::{Namespaces, compile};
use pathcast_core::registry::delivery::dissemination::{Dissemination, NotFrozen};
use pathcast_core::registry::snapshot::{NamespaceMap, QueryRecord};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[test]
fn histories_answer_like_a_map_of_queries() {
    let mut interruptions = 0;
    for seed in 0..60 {
        let mut random = Random(seed);
        let index = Dissemination::default();
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
                        index.change(|state| state.unsubscribe(gone.iter().map(|id| id.as_str())));
                    assert_eq!(removed, Ok(()));
                    gone.into_iter().for_each(|id| drop(model.remove(id)));
                }
                7 => {
                    // Interrupted at one look or another, or never.
                    let looks = Cell::new(random.below(12));
                    let ask = move || looks.replace(looks.get().saturating_sub(1)) == 1;
                    match watched(Duration::ZERO, ask, || index.freeze()) {
                        Ok(snapshot) => {
                            assert_eq!(snapshot.len(), model.len(), "seed {seed}")
                        }
                        Err(error) => {
                            assert_eq!(error, NotFrozen::Interrupted);
                            interruptions += 1;
                        }
                    }
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
    assert!(interruptions > 20, "only {interruptions} freezes were interrupted");
}

/// A query that comes or leaves while a merge runs would be lost, or answered after it has left, if the merge
/// kept to what was there when it began.
#[test]
fn what_changes_during_a_merge_is_kept() {
    let index = Dissemination::default();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let merges = scope.spawn(|| {
            let mut merges = 0;
            while !is_done.load(Ordering::Relaxed) {
                frozen(&index);
                merges += 1;
            }
            merges
        });
        let mut random = Random(11);
        let mut model: BTreeMap<String, String> = BTreeMap::new();
        let pools = [pool(1 << 24, 1), pool(0, 1), pool(1 << 24, 2)];
        for step in 0..400 {
            for _ in 0..random.below(40) {
                let (id, text) = (format!("q{}", random.below(400)), random.query());
                assert_eq!(register(&index, &id, &text), !model.contains_key(&id), "{step}");
                model.entry(id).or_insert(text);
            }
            let gone: Vec<String> =
                model.keys().filter(|_| random.below(12) == 0).cloned().collect();
            let removed = index.change(|state| state.unsubscribe(gone.iter().map(String::as_str)));
            assert_eq!(removed, Ok(()));
            gone.iter().for_each(|id| drop(model.remove(id)));
            let message = random.message();
            let paths = label_paths(&message);
            let satisfied =
                model.iter().filter(|(_, query)| paths.iter().any(|path| matches(query, path)));
            let expected: BTreeSet<String> = satisfied.map(|(id, _)| id.clone()).collect();
            let _numbers = index.pin_numbers();
            let pool = &pools[step % pools.len()];
            assert_eq!(answers(pool, &index, &Batch(vec![message])), [expected], "step {step}");
            assert_eq!(index.state().len(), model.len());
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(merges.join().expect("it merges") > 10, "hardly ever was something merged");
    });
}

/// Neither new nor removed queries may pile up, though nobody freezes.
#[test]
fn what_has_changed_is_merged_in_the_background() {
    let index = Arc::new(Dissemination::default());
    let register_many = |round: u32| {
        for at in 0..20_000 {
            assert!(register(&index, &format!("{round}.{at}"), &format!("/a/b{at}")));
        }
    };
    let is_merged = || {
        let state = index.state();
        state.memory() < 1 << 14 && state.entries().len() == state.len()
    };
    let wait_for_merge = || {
        assert!(!is_merged());
        let patience = Instant::now();
        loop {
            index.settle();
            if is_merged() {
                break;
            }
            assert!(patience.elapsed() < Duration::from_secs(60), "nothing is merged");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    register_many(0);
    wait_for_merge();
    register_many(1);
    wait_for_merge();
    let ids: Vec<String> = (0..20_000).map(|at| format!("0.{at}")).collect();
    index
        .change(|state| state.unsubscribe(ids.iter().map(String::as_str)))
        .expect("they are there");
    wait_for_merge();
    assert_eq!(index.state().len(), 20_000);
}

/// A map of its own for every query: registration must not compare it with all others.
#[test]
fn equal_namespaces_have_one_number() {
    let index = Dissemination::default();
    let map = |at: u32| NamespaceMap::from([("p".to_owned(), format!("urn:{at}"))]);
    let number = |at| index.change(|state| state.namespace_number(&map(at)));
    let numbers: Vec<u32> = (0..500).map(number).collect();
    assert_eq!(numbers, (0..500).collect::<Vec<_>>());
    assert_eq!((0..500).map(number).collect::<Vec<_>>(), numbers);
    let none = Namespaces::default();
    let path = compile("/a", &none).expect("a path");
    for &namespaces in &numbers {
        let record = QueryRecord { id: &format!("q{namespaces}"), text: "/a", namespaces };
        assert!(index.change(|state| state.register(record, &[&path], None)).is_ok());
    }
    frozen(&index);
    for at in (0..500).rev() {
        let found = index.state().find(&format!("q{at}"), |record, _| record.namespaces);
        assert_eq!(Some(number(at)), found, "the map of a frozen query is known");
    }
    assert_eq!(number(500), 500);
}

#[test]
fn removing_is_all_or_none() {
    let index = Dissemination::default();
    assert!(register(&index, "q1", "/a") && register(&index, "q2", "/b"));
    let removed = index.change(|state| state.unsubscribe(["q1", "q9"].into_iter()));
    assert_eq!(removed, Err(1));
    assert_eq!(index.state().len(), 2);
}

#[test]
fn equal_sets_of_queries_freeze_to_equal_bytes() {
    let texts = ["/a/b", "//b[@n='1']", "/a//*", "/a/*//b", "//b[@n='1']", "/a/b[c][@n>2]"];
    let freeze = |order: &[usize]| {
        let index = Dissemination::default();
        for &at in order {
            assert!(register(&index, &format!("q{at}"), texts[at]));
        }
        frozen(&index)
    };
    let snapshot = freeze(&[0, 1, 2, 3, 4, 5]);
    assert_eq!(snapshot.file().as_slice(), freeze(&[5, 3, 1, 4, 2, 0]).file().as_slice());
    assert_eq!(snapshot.number_of("q4").map(|n| snapshot.entry(n).text), Some("q4"));
}

#[test]
fn predicates_answer_alike_in_all_ways_of_running() {
    let texts =
        ["//b[@n='1']", "//a[@n>1]/b", "/a[b][c]", "//c[2]", "//a//@n", "/a[.//b[@n=3]]//c"];
    for seed in 0..40 {
        let mut random = Random(seed);
        let index = Dissemination::default();
        for (at, text) in texts.iter().enumerate() {
            register(&index, &format!("old{at}"), text);
            register(&index, &format!("same{at}"), text);
        }
        frozen(&index);
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
        frozen(&index);
        assert_eq!(answers(&pool(1 << 24, 1), &index, &batch), expected, "seed {seed}");
    }
}
