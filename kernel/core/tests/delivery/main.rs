//! Shared plans against the evaluator of programs: the same subscriptions, one by one.

mod generated;
#[path = "../engine/snapshot_file.rs"]
mod snapshot_file;
mod snapshots;

use generated::{Random, message, subscription};
use pathcast_core::engine::plans::run::ENTRIES_MAX;
use pathcast_core::engine::programs::{Bounds, Results, Scratch};
use pathcast_core::engine::verdicts::Verdict;
use pathcast_core::language::choice::Language;
use pathcast_core::language::edits::{Edit, EditStep};
use pathcast_core::language::xquery::Program;
use pathcast_core::registry::batch::Arrival;
use pathcast_core::registry::delivery::dissemination::{
    Deliver, Dissemination, Entry, NotTaken, Steps,
};
use pathcast_core::registry::delivery::links::Restructurings;
use pathcast_core::registry::delivery::query::Scope;
use pathcast_core::registry::delivery::serving::{NO_FRAGMENT, Options, Output};
use pathcast_core::registry::delivery::worker::Worker;
use pathcast_core::xml::parser::{Door, Limits};
use pathcast_core::xml::places::NodeKind;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn options() -> Options {
    Options {
        limits: Limits::default(),
        cache_bytes_max: 1 << 24,
        steps_max: 1_000_000,
        message_steps_max: 100_000_000,
        result_bytes_max: 1 << 20,
        message_result_bytes_max: 1 << 26,
        result_ratio_max: 1000,
        entries_max: ENTRIES_MAX,
    }
}

fn subscribe(
    target: &Dissemination,
    id: &str,
    text: &str,
    deliver: Deliver,
) -> Result<(), NotTaken> {
    target.change(|state| {
        let scope = Scope::default();
        let namespaces = state.namespace_number(&scope.map);
        let entry = Entry { id, text, language: None, namespaces, subscriber: "", deliver };
        state.subscribe(entry, &scope)
    })
}

/// Id -> results; none where there is a delivery without a fragment.
fn served(
    worker: &mut Worker,
    target: &Dissemination,
    message: &str,
) -> BTreeMap<String, Vec<String>> {
    let mut out = Output::default();
    worker.serve(target, message.as_bytes(), Arrival::default(), &mut out).expect("a good message");
    assert_eq!(out.verdicts, [], "{message}");
    assert!(out.deliveries.is_sorted_by_key(|d| (d.subscription, d.result)));
    let ids = target.state().entries();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for delivery in &out.deliveries {
        let mut id = String::new();
        ids.for_each([delivery.subscription].into_iter(), |name| id = name.to_owned());
        let results = found.entry(id).or_default();
        if delivery.fragment == NO_FRAGMENT {
            continue;
        }
        assert_eq!(results.len(), delivery.result as usize);
        let fragment = delivery.fragment as usize;
        let start = if fragment == 0 { 0 } else { out.fragments.ends[fragment - 1] };
        let bytes = &out.fragments.bytes[start..out.fragments.ends[fragment]];
        results.push(std::str::from_utf8(bytes).expect("UTF-8").to_owned());
    }
    found
}

/// What the evaluator gives for one text; none if nothing is delivered.
fn evaluated(text: &str, message: &str) -> Option<Vec<String>> {
    let program = Program::parse(text, &[]).expect(text);
    let mut door = Door::new(Limits::default());
    door.keep_source_spans(true);
    door.keep_full_tree(true);
    let parsed = door.parse(message.as_bytes(), None).expect("a good message");
    let (mut scratch, mut out) = (Scratch::default(), Results::default());
    let bounds = Bounds { steps_max: 1_000_000, bytes_max: 1 << 20 };
    let delivered = program.run(parsed.message, parsed.names, &mut scratch, bounds, &mut out);
    if !delivered.expect(text) {
        return None;
    }
    let mut start = 0;
    let results = out.ends.iter().map(|&end| {
        let bytes = &out.bytes[std::mem::replace(&mut start, end)..end];
        std::str::from_utf8(bytes).expect("UTF-8").to_owned()
    });
    Some(results.collect())
}

/// `<a></a>` and `<a/>` are the same.
fn normal(results: &[String]) -> Vec<String> {
    let shorten = |text: &String| {
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find("></") {
            let end = at + rest[at..].find("></").map_or(0, |_| 1);
            let close = rest[end..].find('>').map_or(rest.len(), |len| end + len + 1);
            let name = &rest[end + 2..close - 1];
            let open = rest[..at].rfind('<').map_or("", |start| &rest[start + 1..at]);
            let is_start = !open.contains('>') && !open.ends_with('/');
            if is_start && open.split([' ', '\n']).next() == Some(name) {
                out.push_str(&rest[..at]);
                out.push_str("/>");
            } else {
                out.push_str(&rest[..close]);
            }
            rest = &rest[close..];
        }
        out + rest
    };
    results.iter().map(shorten).collect()
}

fn check(
    target: &Dissemination,
    worker: &mut Worker,
    texts: &BTreeMap<String, String>,
    message: &str,
) -> usize {
    let found = served(worker, target, message);
    let mut delivered = 0;
    for (id, text) in texts {
        let expected = evaluated(text, message).map(|results| normal(&results));
        let got = found.get(id).map(|results| normal(results));
        assert_eq!(got, expected, "{text}\n{message}");
        delivered += usize::from(expected.is_some());
    }
    assert!(found.keys().all(|id| texts.contains_key(id)), "somebody who has left was served");
    delivered
}

#[test]
fn a_text_is_read_in_the_language_that_was_chosen() {
    let target = Dissemination::default();
    let chosen = |id: &str, text: &str, language: &str, deliver: Deliver| {
        let language = Some(Language::named(language).expect("a language"));
        target.change(|state| {
            let scope = Scope::default();
            let namespaces = state.namespace_number(&scope.map);
            let entry = Entry { id, text, language, namespaces, subscriber: "", deliver };
            state.subscribe(entry, &scope)
        })
    };
    let text = "//a[@day > '2026-01-01']";
    for (number, deliver) in [Deliver::Fragment, Deliver::Message, Deliver::Ids].iter().enumerate()
    {
        for language in ["xpath1", "xquery"] {
            let id = format!("{language} {number}");
            assert_eq!(chosen(&id, text, language, *deliver), Ok(()));
        }
    }
    for refused in ["//a[b eq 1]", "(//a, //b)", "<r>{//a}</r>", "//element()"] {
        let found = chosen("refused", refused, "xpath1", Deliver::Fragment);
        assert_eq!(found, Err(NotTaken::Refused), "{refused}");
    }
    assert_eq!(chosen("s", "//a[. = 'AT&T']", "xquery", Deliver::Fragment), Err(NotTaken::Refused));
    let mut worker = Worker::new(options());
    let found = served(&mut worker, &target, "<r><a day='2025-01-01'/><a day='2026-02-01'/></r>");
    let names: Vec<&str> = found.keys().map(|name| name.as_ref()).collect();
    assert_eq!(names, ["xquery 0", "xquery 1", "xquery 2"]);
}

#[test]
fn shared_plans_give_what_the_evaluator_gives() {
    let mut delivered = 0;
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let target = Dissemination::default();
        let mut texts = BTreeMap::new();
        for number in 0..60 {
            let (id, text) = (format!("s{number}"), subscription(&mut random));
            assert_eq!(subscribe(&target, &id, &text, Deliver::Fragment), Ok(()), "{text}");
            texts.insert(id, text);
        }
        assert_eq!(target.state().shared_len(), texts.len(), "all of them are of the shared class");
        let mut worker = Worker::new(options());
        for _ in 0..4 {
            delivered += check(&target, &mut worker, &texts, &message(&mut random));
        }
    }
    assert!(delivered > 500, "{delivered} deliveries prove little");
}

#[test]
fn subscriptions_come_and_go_without_disturbing_others() {
    for (seed, cache_bytes_max) in [(1, 1 << 24), (2, 1 << 24), (3, 0), (4, 1 << 12)] {
        let mut random = Random::new(seed);
        let target = Dissemination::default();
        let mut worker = Worker::new(Options { cache_bytes_max, ..options() });
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for step in 0..300 {
            if random.below(3) > 0 || texts.is_empty() {
                let (id, text) = (format!("s{step}"), subscription(&mut random));
                subscribe(&target, &id, &text, Deliver::Fragment).expect("a new id");
                texts.insert(id, text);
            } else {
                let at = random.below(texts.len());
                let id = texts.keys().nth(at).expect("one of them").clone();
                target.change(|state| state.unsubscribe([&*id].into_iter())).expect("it is there");
                texts.remove(&id);
            }
            match random.below(40) {
                0 => target.rebuild().expect("nothing interrupts"),
                1 => target.merge_gates().expect("nothing interrupts"),
                _ => {}
            }
            if step % 10 == 0 {
                check(&target, &mut worker, &texts, &message(&mut random));
            }
        }
        let ids: Vec<String> = texts.keys().cloned().collect();
        let all = ids.iter().map(String::as_str);
        target.change(|state| state.unsubscribe(all)).expect("they are there");
        texts.clear();
        check(&target, &mut worker, &texts, &message(&mut random));
        assert_eq!(target.state().shared_len(), 0);
    }
}

/// Series of which some begin alike.
fn series() -> Vec<Steps> {
    let step = |edit, path: &str, name: &str| EditStep {
        edit,
        path: path.to_owned(),
        name: name.to_owned(),
        namespaces: Vec::new(),
    };
    let (drop, rename) = (step(Edit::Drop, "//d", ""), step(Edit::Rename, "//b[2]", "c"));
    let unwrap = step(Edit::Unwrap, "//a//c | //b/@x/..", "");
    [
        vec![drop.clone()],
        vec![drop.clone(), rename.clone()],
        vec![drop, unwrap.clone(), rename.clone()],
        vec![rename, unwrap],
    ]
    .map(|steps: Vec<EditStep>| Steps {
        texts: steps.iter().map(|step| step.to_string().into()).collect(),
        steps: steps.into(),
    })
    .into()
}

#[test]
fn subscriptions_with_steps_are_served_with_the_message_after_them() {
    let series = series();
    let mut restructurings = Restructurings::new(options());
    let all: Vec<_> = series.iter().map(|steps| Arc::clone(&steps.steps)).collect();
    restructurings.set(&all).expect("paths that select nodes");
    let (mut delivered, mut changed) = (0, 0);
    for seed in 0..3 {
        let mut random = Random::new(seed);
        let target = Dissemination::default();
        let mut worker = Worker::new(options());
        let mut there: BTreeMap<String, (String, usize)> = BTreeMap::new();
        for step in 0..300 {
            if random.below(3) > 0 || there.is_empty() {
                let (id, text) = (format!("s{step}"), subscription(&mut random));
                let at = random.below(series.len() + 1);
                let scope = Scope::default();
                let (language, deliver) = (None, Deliver::Fragment);
                let (text, steps) = (&*text, series.get(at));
                target
                    .change(|state| {
                        let namespaces = state.namespace_number(&scope.map);
                        let subscriber = "";
                        let id = &id;
                        let new = Entry { id, text, language, namespaces, subscriber, deliver };
                        state.subscribe_stepped(new, &scope, steps)
                    })
                    .expect("a new id");
                there.insert(id, (text.to_owned(), at));
            } else {
                let at = random.below(there.len());
                let id = there.keys().nth(at).expect("one of them").clone();
                target.change(|state| state.unsubscribe([&*id].into_iter())).expect("it is there");
                there.remove(&id);
            }
            match random.below(40) {
                0 => target.rebuild().expect("nothing interrupts"),
                1 => target.merge_gates().expect("nothing interrupts"),
                _ => {}
            }
            if step % 10 > 0 {
                continue;
            }
            let message = message(&mut random);
            let made = restructurings.apply(message.as_bytes(), 0, &[0, 1, 2, 3]);
            let mut after: Vec<String> = made
                .into_iter()
                .map(|made| match made.expect("it can be done") {
                    Some(text) => String::from_utf8(text).expect("UTF-8"),
                    None => message.clone(),
                })
                .collect();
            changed += after.iter().filter(|text| **text != message).count();
            after.push(message.clone());
            let found = served(&mut worker, &target, &message);
            for (id, (text, at)) in &there {
                let expected = evaluated(text, &after[*at]).map(|results| normal(&results));
                let got = found.get(id).map(|results| normal(results));
                assert_eq!(got, expected, "{text} after {at}\n{message}");
                delivered += usize::from(expected.is_some());
                let steps = target.state().steps(id).map(|steps| steps.texts);
                assert_eq!(steps, series.get(*at).map(|steps| steps.texts.clone()));
            }
        }
    }
    assert!(delivered > 300 && changed > 30, "{delivered} deliveries, {changed} changes");
}

#[test]
fn nobody_is_taken_out_if_somebody_is_unknown() {
    let target = Dissemination::default();
    subscribe(&target, "a", "<r>{for $x in //a return $x}</r>", Deliver::Fragment).expect("new");
    assert_eq!(target.change(|state| state.unsubscribe(["a", "b"].into_iter())), Err(1));
    assert_eq!(target.state().len(), 1);
    let again = subscribe(&target, "a", "//b", Deliver::Fragment);
    assert_eq!(again, Err(NotTaken::Duplicate));
    target.change(|state| state.unsubscribe(["a", "a"].into_iter())).expect("twice is once");
    assert!(target.state().is_empty());
}

#[test]
fn a_message_that_leads_from_everywhere_to_everywhere_is_given_up_for_those_concerned() {
    let target = Dissemination::default();
    let text = "<r>{for $x in //* where $x//a = 'no' return $x//*}</r>";
    subscribe(&target, "wide", text, Deliver::Fragment).expect("new");
    subscribe(&target, "other", "<r>{for $x in /z return $x}</r>", Deliver::Fragment).expect("new");
    let message = format!("{}x{}", "<a>".repeat(100), "</a>".repeat(100));
    let mut worker = Worker::new(Options { entries_max: 1000, ..options() });
    let mut out = Output::default();
    let wide = "<r>{for $x in //* where $x//a return $x//*}</r>";
    subscribe(&target, "wider", wide, Deliver::Fragment).expect("new");
    worker
        .serve(&target, message.as_bytes(), Arrival::default(), &mut out)
        .expect("a good message");
    let undecided: Vec<u32> = out.verdicts.iter().map(|&(number, _)| number).collect();
    assert_eq!((undecided, out.deliveries.len()), (vec![0, 2], 0));
    assert!(out.verdicts.iter().all(|(_, verdict)| *verdict == Verdict::OverBudget));
    // The next message is not disturbed.
    let found = served(&mut worker, &target, "<z/>");
    assert_eq!(found.into_keys().collect::<Vec<_>>(), ["other"]);
}

#[test]
fn results_that_are_too_long_are_a_verdict_of_their_own() {
    let target = Dissemination::default();
    let text = "<r>{for $x in //* return $x}</r>";
    subscribe(&target, "long", text, Deliver::Fragment).expect("new");
    subscribe(&target, "short", "<r>{for $x in //b return $x}</r>", Deliver::Fragment)
        .expect("new");
    let message = format!("{}<b/>{}", "<a>".repeat(90), "</a>".repeat(90));
    let mut worker = Worker::new(Options { result_bytes_max: 5000, ..options() });
    let mut out = Output::default();
    worker
        .serve(&target, message.as_bytes(), Arrival::default(), &mut out)
        .expect("a good message");
    assert_eq!(out.verdicts, [(0, Verdict::TooLong { bytes_max: 5000 })]);
    assert_eq!(out.deliveries.len(), 1);
    assert_eq!(out.fragments.bytes, b"<r><b/></r>");
}

#[test]
fn what_is_delivered_is_a_fragment_the_message_or_the_fact() {
    let target = Dissemination::default();
    let flwr = "<r>{for $x in //b return $x}</r>";
    for (id, text, deliver) in [
        ("fact", flwr, Deliver::Ids),
        ("fragment", flwr, Deliver::Fragment),
        ("message", flwr, Deliver::Message),
        ("nodes", "//b", Deliver::Fragment),
        ("path", "//b", Deliver::Message),
    ] {
        subscribe(&target, id, text, deliver).expect("new");
    }
    let program = "<n>{if (count(//b) > 1) then 'many' else ()}</n>";
    subscribe(&target, "program", program, Deliver::Fragment).expect("new");
    let message = "<a><b>1</b><b/></a>";
    let found = served(&mut Worker::new(options()), &target, message);
    let expected = [
        ("fact", vec![]),
        ("fragment", vec!["<r><b>1</b><b/></r>"]),
        ("message", vec![message]),
        ("nodes", vec!["<b>1</b>", "<b/>"]),
        ("path", vec![message]),
        ("program", vec!["<n>many</n>"]),
    ];
    let found: Vec<(&str, Vec<&str>)> = found
        .iter()
        .map(|(id, results)| (&**id, results.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(found, expected);
    let mut worker = Worker::new(options());
    assert!(
        !served(&mut worker, &target, "<a><b/></a>").contains_key("program"),
        "one is not many"
    );
    target.change(|state| state.unsubscribe(["program", "path"].into_iter())).expect("known");
    let left: Vec<String> = served(&mut worker, &target, message).into_keys().collect();
    assert_eq!(left, ["fact", "fragment", "message", "nodes"]);
}

#[test]
fn places_are_of_nodes_and_in_no_fragment() {
    let target = Dissemination::default();
    for (id, text) in [
        ("gated", "for $b in //b order by $b descending return $b/@n"),
        ("selected", "//b[last()]"),
        ("shared", "//b"),
    ] {
        subscribe(&target, id, text, Deliver::Nodes).expect("new");
    }
    subscribe(&target, "text", "//b", Deliver::Fragment).expect("new");
    for refused in ["count(//b)", "<r>{//b}</r>", "for $b in //b return (1, $b)", "data(//b)"] {
        let found = subscribe(&target, "refused", refused, Deliver::Nodes);
        assert_eq!(found, Err(NotTaken::Refused), "{refused}");
    }
    let message = b"<a><b n='1'>1</b><b n='&#50;'>2</b></a>";
    let (mut worker, mut out) = (Worker::new(options()), Output::default());
    worker.serve(&target, message, Arrival::default(), &mut out).expect("a good message");
    let piece = |span: &Option<Range<u32>>| {
        span.clone().map(|span| &message[span.start as usize..span.end as usize])
    };
    let mut found: Vec<_> = out
        .places
        .iter()
        .map(|each| (each.subscription, each.result, each.place.kind, piece(&each.place.span)))
        .collect();
    found.sort_unstable_by_key(|each| (each.0, each.1));
    let (first, second) = (&message[3..17], &message[17..35]);
    assert_eq!(
        found,
        [
            (0, 0, NodeKind::Attribute, None),
            (0, 1, NodeKind::Attribute, Some(&b"1"[..])),
            (1, 0, NodeKind::Element, Some(second)),
            (2, 0, NodeKind::Element, Some(first)),
            (2, 1, NodeKind::Element, Some(second)),
        ]
    );
    assert_eq!(out.deliveries.len(), 7);
    let fragments = out.deliveries.iter().filter(|each| each.fragment != NO_FRAGMENT);
    assert!(fragments.map(|each| each.subscription).eq([3, 3]));
}

/// A filter query of the gates: who wants to know whether `@k` has this value.
fn ask(target: &Dissemination, id: &str, value: usize) {
    let text = format!("/a[@k='{value}']");
    subscribe(target, id, &text, Deliver::Ids).expect("new");
}

/// The ids whose query a message with this value satisfies.
fn asked(target: &Dissemination, worker: &mut Worker, value: usize) -> Vec<String> {
    served(worker, target, &format!("<a k='{value}'/>")).into_keys().collect()
}

#[test]
fn gates_are_merged_without_losing_anybody() {
    let target = Dissemination::default();
    let mut worker = Worker::new(options());
    for round in 0..3 {
        (0..900).for_each(|value| ask(&target, &format!("{round}-{value}"), value));
        let gone = [format!("{round}-7")];
        target.change(|state| state.unsubscribe(gone.iter().map(String::as_str))).expect("known");
        for merges in [false, true] {
            if merges {
                target.merge_gates().expect("nothing interrupts");
            }
            let expected: Vec<String> = (0..=round).map(|round| format!("{round}-8")).collect();
            assert_eq!(asked(&target, &mut worker, 8), expected);
            assert_eq!(asked(&target, &mut worker, 7), [""; 0]);
        }
        let first = format!("{round}-9");
        target.change(|state| state.unsubscribe([&*first].into_iter())).expect("known");
        assert_eq!(asked(&target, &mut worker, 9), [""; 0], "its gate has a new number");
    }
}

/// Whoever comes or leaves while everything is built anew would be lost, or served after he has left, if that
/// worked on what was there when it began.
#[test]
fn what_changes_while_all_is_built_anew_is_kept() {
    let target = Arc::new(Dissemination::default());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let builds = scope.spawn(|| {
            let mut builds = 0;
            while !is_done.load(Ordering::Relaxed) {
                let built = if builds % 2 == 0 {
                    target.rebuild()
                } else {
                    target.merge_gates().map_err(Into::into)
                };
                built.expect("nothing interrupts");
                builds += 1;
            }
            builds
        });
        let mut random = Random::new(7);
        let mut worker = Worker::new(options());
        let (mut gated, mut shared) = (BTreeMap::new(), BTreeMap::new());
        for step in 0..600 {
            let id = format!("s{}", random.below(60));
            match random.below(4) {
                0 | 1 if target.state().number(&id).is_none() => {
                    if random.below(2) == 0 {
                        let value = random.below(5);
                        ask(&target, &id, value);
                        gated.insert(id, value);
                    } else {
                        let text = subscription(&mut random);
                        subscribe(&target, &id, &text, Deliver::Fragment).expect("new");
                        shared.insert(id, text);
                    }
                }
                2 if target.state().number(&id).is_some() => {
                    target.change(|state| state.unsubscribe([&*id].into_iter())).expect("known");
                    gated.remove(&id);
                    shared.remove(&id);
                }
                _ => {
                    let value = random.below(5);
                    let expected: Vec<&String> = gated
                        .iter()
                        .filter(|(_, asked)| **asked == value)
                        .map(|(id, _)| id)
                        .collect();
                    let _numbers = target.pin_numbers();
                    let found = served(&mut worker, &target, &format!("<z><a k='{value}'/></z>"));
                    assert!(found.keys().all(|id| shared.contains_key(id)), "step {step}");
                    let found = asked(&target, &mut worker, value);
                    assert!(
                        expected.into_iter().eq(found.iter().filter(|id| gated.contains_key(*id)))
                    );
                    if random.below(3) == 0 {
                        let message = message(&mut random);
                        let found = served(&mut worker, &target, &message);
                        for (id, text) in &shared {
                            let expected =
                                evaluated(text, &message).map(|results| normal(&results));
                            assert_eq!(found.get(id).map(|results| normal(results)), expected);
                        }
                    }
                }
            }
            let state = target.state();
            assert_eq!(state.len(), gated.len() + shared.len());
            for (id, text) in &shared {
                assert_eq!(state.find(id, |entry, _| entry.text == text), Some(true));
            }
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(builds.join().expect("it builds") > 10, "it was hardly ever built anew");
    });
}

/// Subscriptions that leave must not stay in memory for ever.
#[test]
fn what_subscriptions_leave_behind_goes_in_the_background() {
    let target = Arc::new(Dissemination::default());
    let mut most = 0;
    for round in 0..120 {
        let ids: Vec<String> = (0..1000).map(|at| format!("{round}.{at}")).collect();
        ids.iter().enumerate().for_each(|(at, id)| ask(&target, id, at));
        most = most.max(target.state().entries().len());
        target.change(|state| state.unsubscribe(ids.iter().map(String::as_str))).expect("known");
        target.settle();
    }
    let patience = Instant::now();
    while target.state().entries().len() > 20_000 {
        target.settle();
        assert!(patience.elapsed() < Duration::from_secs(60), "{most} numbers, and they stay");
        std::thread::sleep(Duration::from_millis(5));
    }
}
