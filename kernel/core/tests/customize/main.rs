//! Shared plans against the evaluator of programs: the same subscriptions, one by one.

mod generated;

use generated::{Random, message, subscription};
use pathcast_core::engine::plans::run::ENTRIES_MAX;
use pathcast_core::engine::programs::{Bounds, Results, Scratch};
use pathcast_core::language::xquery::Program;
use pathcast_core::registry::delivery::dissemination::{
    Deliver, Dissemination, NotTaken, Subscription,
};
use pathcast_core::registry::delivery::query::Scope;
use pathcast_core::registry::delivery::worker::{NO_FRAGMENT, Options, Output, Verdict, Worker};
use pathcast_core::xml::parser::{Door, Limits};
use std::collections::BTreeMap;

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
        puts_spans: false,
    }
}

fn subscribe(
    target: &Dissemination,
    id: &str,
    text: &str,
    deliver: Deliver,
) -> Result<(), NotTaken> {
    let subscription = Subscription { id, text, language: None, deliver };
    target.change(|state| state.subscribe(subscription, &Scope::default()))
}

/// Id -> results; none where there is a delivery without a fragment.
fn served(
    worker: &mut Worker,
    target: &Dissemination,
    message: &str,
) -> BTreeMap<String, Vec<String>> {
    let mut out = Output::default();
    worker.serve(target, message.as_bytes(), None, &mut out).expect("a good message");
    assert_eq!(out.verdicts, [], "{message}");
    assert!(out.deliveries.is_sorted_by_key(|d| (d.subscription, d.result)));
    let ids = target.state().ids();
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
    worker.serve(&target, message.as_bytes(), None, &mut out).expect("a good message");
    let undecided: Vec<u32> = out.verdicts.iter().map(|&(number, _)| number).collect();
    assert_eq!((undecided, out.deliveries.len()), (vec![0, 2], 0));
    assert!(out.verdicts.iter().all(|&(_, verdict)| verdict == Verdict::OverBudget));
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
    worker.serve(&target, message.as_bytes(), None, &mut out).expect("a good message");
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
fn gates_are_merged_without_losing_anybody() {
    use pathcast_core::registry::batch::Messages;
    use pathcast_core::registry::delivery::batch::Pool;

    struct One(Vec<u8>);
    impl Messages for One {
        fn len(&self) -> usize {
            1
        }
        fn get(&self, _: usize) -> Option<&[u8]> {
            Some(&self.0)
        }
        fn bytes(&self) -> usize {
            self.0.len()
        }
    }

    let target = Dissemination::default();
    let pool = Pool::new(options(), 1);
    // More than an index keeps beside its base, so that the second batch works on merged gates.
    for round in 0..3 {
        target.change(|state| {
            for number in 0..9000 {
                let id = format!("{round}-{number}");
                let text = format!("/a[@k='{number}']");
                let subscription =
                    Subscription { id: &id, text: &text, language: None, deliver: Deliver::Ids };
                state.subscribe(subscription, &Scope::default()).expect("new");
            }
        });
        let gone = [format!("{round}-7")];
        target.change(|state| state.unsubscribe(gone.iter().map(String::as_str))).expect("known");
        for (value, expected) in [("8", round + 1), ("7", 0), ("x", 0)] {
            let message = One(format!("<a k='{value}'/>").into_bytes());
            let answer = pool.run(&target, &message).expect("nothing interrupts");
            assert_eq!(answer.subscriptions.len(), expected, "round {round}, value {value}");
            let ids = target.state().ids();
            ids.for_each(answer.subscriptions.iter().copied(), |id| assert!(id.ends_with("-8")));
        }
    }
}
