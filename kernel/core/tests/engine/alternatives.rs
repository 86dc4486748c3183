//! Queries of several alternatives and with an exact expression, however they are held and run.

use crate::world::{
    Batch, Random, Sets, answers, answers_and_verdicts, frozen, label_paths, matches, pool,
    pool_with, register, register_all,
};
use pathcast_core::engine::nfa::Nfa;
use pathcast_core::registry::delivery::dissemination::{Dissemination, NotTaken};
use std::collections::{BTreeMap, BTreeSet};

/// A query of the model: paths of which one must match, and a bound on the number of `b`.
#[derive(Clone, Debug)]
struct Query {
    paths: Vec<String>,
    more_than: Option<u64>,
}

impl Query {
    fn random(random: &mut Random) -> Query {
        let mut paths: Vec<String> = (0..1 + random.below(4)).map(|_| random.query()).collect();
        paths.sort();
        paths.dedup();
        // Few expressions, so that queries of different paths share them.
        let more_than = (random.below(2) == 0).then(|| random.below(4));
        Query { paths, more_than }
    }

    fn expression(&self) -> Option<String> {
        let count = "count(/descendant-or-self::node()/child::b)";
        self.more_than.map(|bound| format!("({count} > {bound})"))
    }

    fn register(&self, index: &Dissemination, id: &str) -> bool {
        let paths: Vec<&str> = self.paths.iter().map(String::as_str).collect();
        register_all(index, id, &paths, self.expression().as_deref()).is_ok()
    }

    fn has_path_in(&self, message: &str) -> bool {
        let labels = label_paths(message);
        self.paths.iter().any(|query| labels.iter().any(|path| matches(query, path)))
    }

    fn holds(&self, message: &str) -> bool {
        let bound =
            self.more_than.is_none_or(|bound| message.matches("<b ").count() as u64 > bound);
        bound && self.has_path_in(message)
    }
}

/// Ids of the queries of which something is true, by message.
fn ids_where(
    model: &BTreeMap<String, Query>,
    batch: &Batch,
    is_true: impl Fn(&Query, &str) -> bool,
) -> Sets {
    let of = |message: &String| {
        let found = model.iter().filter(|(_, query)| is_true(query, message));
        found.map(|(id, _)| id.clone()).collect()
    };
    batch.0.iter().map(of).collect()
}

#[test]
fn histories_of_alternatives_answer_like_a_map_of_queries() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let mut index = Dissemination::default();
        let mut model: BTreeMap<String, Query> = BTreeMap::new();
        for step in 0..30 {
            match random.below(10) {
                0..5 => {
                    for _ in 0..random.below(20) {
                        let id = format!("q{}", random.below(300));
                        let query = match model.values().next() {
                            Some(known) if random.below(4) == 0 => known.clone(),
                            _ => Query::random(&mut random),
                        };
                        assert_eq!(query.register(&index, &id), !model.contains_key(&id));
                        model.entry(id).or_insert(query);
                    }
                }
                5..7 => {
                    let ids: Vec<String> = model.keys().cloned().collect();
                    let gone: Vec<&String> = ids.iter().filter(|_| random.below(4) == 0).collect();
                    let gone_ids = gone.iter().map(|id| id.as_str());
                    assert_eq!(index.change(|state| state.unsubscribe(gone_ids)), Ok(()));
                    gone.into_iter().for_each(|id| drop(model.remove(id)));
                }
                7 => {
                    let snapshot = frozen(&index);
                    assert_eq!(snapshot.len(), model.len(), "seed {seed} step {step}");
                    if random.below(2) == 0 {
                        index = Dissemination::from_snapshot(snapshot);
                    }
                }
                _ => {
                    let batch = Batch((0..5).map(|_| random.message()).collect());
                    check(&index, &model, &batch, &format!("seed {seed} step {step}"));
                }
            }
        }
    }
}

/// Every way of running gives what the model says; with one step, nothing that an expression has to
/// decide is decided.
fn check(index: &Dissemination, model: &BTreeMap<String, Query>, batch: &Batch, place: &str) {
    let expected = ids_where(model, batch, Query::holds);
    let plain = ids_where(model, batch, |query, message| {
        query.more_than.is_none() && query.has_path_in(message)
    });
    let undecided = ids_where(model, batch, |query, message| {
        query.more_than.is_some() && query.has_path_in(message)
    });
    let nothing: Sets = vec![BTreeSet::new(); batch.0.len()];
    for (cache, threads) in [(1 << 24, 1), (3_000, 1), (0, 1), (1 << 24, 3)] {
        let found = answers_and_verdicts(&pool(cache, threads), index, batch);
        assert_eq!(found, (expected.clone(), nothing.clone()), "{place} cache {cache}");
        let found = answers_and_verdicts(&pool_with(cache, threads, 1), index, batch);
        assert_eq!(found, (plain.clone(), undecided.clone()), "{place} cache {cache}, one step");
    }
}

#[test]
fn equal_sets_of_queries_freeze_to_equal_bytes_whatever_their_history() {
    let mut random = Random(7);
    let queries: Vec<Query> = (0..60).map(|_| Query::random(&mut random)).collect();
    let register = |index: &Dissemination, at: usize| {
        assert!(queries[at].register(index, &format!("q{at}")));
    };
    let straight = Dissemination::default();
    (0..60).for_each(|at| register(&straight, at));
    let straight = frozen(&straight);

    let winding = Dissemination::default();
    for at in (0..60).rev() {
        register(&winding, at);
        if at % 7 == 0 {
            frozen(&winding);
        }
        if at % 11 == 0 {
            let other = queries[(at + 1) % 60].clone();
            assert!(other.register(&winding, "passing"));
            frozen(&winding);
            assert_eq!(winding.change(|state| state.unsubscribe(["passing"].into_iter())), Ok(()));
        }
    }
    assert_eq!(frozen(&winding).file().as_slice(), straight.file().as_slice());
}

#[test]
fn an_alternative_that_many_queries_share_is_one_plan() {
    let index = Dissemination::default();
    for at in 0..20 {
        let first = format!("/a[@n='{at}']");
        let paths = [&*first, "/b[@n='1']", "/c"];
        assert_eq!(register_all(&index, &format!("q{at:02}"), &paths, None), Ok(()));
    }
    assert!(register(&index, "own", "/b[@n='1']"));
    let snapshot = frozen(&index);
    assert_eq!(snapshot.nfa().plan_count(), 21, "one of each first, one that all share");
    let batch = Batch(vec!["<b n='1'/>".into(), "<a n='7'/>".into(), "<c/>".into()]);
    let found = answers(&pool(1 << 24, 1), &index, &batch);
    assert_eq!(found.iter().map(BTreeSet::len).collect::<Vec<_>>(), [21, 1, 20]);
    assert!(found[1].contains("q07") && !found[2].contains("own"));
}

#[test]
fn equal_expressions_are_evaluated_once_a_message() {
    let index = Dissemination::default();
    let expression = Some("(count(/child::a/child::b) > 1)");
    for at in 0..10 {
        let path = ["/a/b", "//b", "/a"][at % 3];
        assert_eq!(register_all(&index, &format!("q{at}"), &[path, "/z"], expression), Ok(()));
    }
    let batch = Batch(vec!["<a><b/><b/></a>".into(), "<a><b/></a>".into(), "<c/>".into()]);
    for freeze in [false, true] {
        if freeze {
            frozen(&index);
        }
        let answer =
            pool(1 << 24, 1).match_batch((&index).into(), &batch).expect("nothing interrupts");
        assert_eq!(answer.stats.evaluations, 2, "one for each message that has a candidate");
        assert_eq!(answer.ends, [10, 10, 10]);
    }
}

#[test]
fn what_an_expression_needs_of_the_tree_is_kept_while_a_query_needs_it() {
    let index = Dissemination::default();
    let pool = pool(1 << 24, 1);
    let batch = Batch(vec!["<a><!--x--></a>".into(), "<a/>".into()]);
    assert!(register(&index, "plain", "/a"));
    let both = |first: &[&str], second: &[&str]| -> Sets {
        [first, second].map(|ids| ids.iter().map(|id| (*id).to_owned()).collect()).into()
    };
    assert_eq!(answers(&pool, &index, &batch), both(&["plain"], &["plain"]));
    let expression = Some("boolean(/child::a/child::comment())");
    assert_eq!(register_all(&index, "exact", &["/a"], expression), Ok(()));
    let with_comments = both(&["exact", "plain"], &["plain"]);
    assert_eq!(answers(&pool, &index, &batch), with_comments);
    assert!(frozen(&index).nfa().needs_full_tree());
    assert_eq!(answers(&pool, &index, &batch), with_comments);
    assert_eq!(index.change(|state| state.unsubscribe(["exact"].into_iter())), Ok(()));
    assert!(!frozen(&index).nfa().needs_full_tree());
    assert_eq!(answers(&pool, &index, &batch), both(&["plain"], &["plain"]));
}

#[test]
fn an_id_is_taken_once() {
    let index = Dissemination::default();
    assert_eq!(register_all(&index, "q", &["/a"], None), Ok(()));
    let expression = Some("count(child::a)");
    assert_eq!(register_all(&index, "q", &["/a", "/b[c]"], expression), Err(NotTaken::Duplicate));
    assert_eq!(index.state().len(), 1);
}
