//! Snapshots of subscriptions of all kinds: what is opened, and then changed, serves as what is built from all.

use super::generated::{Random, message, subscription};
use super::snapshot_file::{File, Section, sections};
use super::{options, series};
use pathcast_core::language::choice::Language;
use pathcast_core::registry::batch::Arrival;
use pathcast_core::registry::delivery::dissemination::{
    Deliver, Dissemination, Entry, Explained, NotFrozen, Steps,
};
use pathcast_core::registry::delivery::query::Scope;
use pathcast_core::registry::delivery::serving::{NO_FRAGMENT, Output};
use pathcast_core::registry::delivery::worker::Worker;
use pathcast_core::registry::snapshot::Snapshot;
use pathcast_core::registry::snapshot::format::{FormatError, Tag};
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What is of no shared class, and sets.
const OTHERS: [&str; 14] = [
    "//b[count(c) > 1]",
    "/a//b[position() = last()]/@k",
    "//a[not(d)]",
    "//c | //d/b",
    "count(//b) > 2",
    "//p:b[. = '1']",
    "if (count(//b) > 1) then <many>{//b}</many> else <few/>",
    "for $v in //a order by $v/@k return <r>{$v/@k, string($v/b)}</r>",
    "for $v in //b, $w in //c where $v/@k = $w/@k return <pair>{$v/@k}</pair>",
    "for $v in //b where $v/@k = ('1', 'x') return <r>{$v/c}</r>",
    "for $v in //b where $v = (1, 2) return $v",
    "//b",
    "<r>{//p:c}</r>",
    "<r xmlns:p='urn:p' xmlns='urn:q'>{for $v in //b return <i>{$v}</i>}</r>",
];

#[derive(Clone)]
struct Asked {
    text: String,
    language: Option<Language>,
    deliver: Deliver,
    subscriber: String,
    scope: Scope,
    steps: Option<Steps>,
}

fn asked(random: &mut Random) -> Asked {
    let text = match random.below(3) {
        0 => OTHERS[random.below(OTHERS.len())].to_owned(),
        _ => subscription(random),
    };
    let deliver = [Deliver::Fragment, Deliver::Fragment, Deliver::Message, Deliver::Ids];
    let language = [None, None, Some(Language::XPath), Some(Language::XQuery)];
    let namespaces = [("p", "urn:p"), ("p", "urn:q")];
    let namespaces = namespaces[random.below(2)];
    let namespaces = std::iter::once((namespaces.0.to_owned(), namespaces.1.to_owned())).collect();
    let (all, at) = (series(), random.below(16));
    Asked {
        text,
        language: language[random.below(4)],
        deliver: deliver[random.below(4)],
        subscriber: ["", "ann", "bob"][random.below(3)].to_owned(),
        scope: Scope::new(namespaces),
        steps: all.get(at).cloned(),
    }
}

fn subscribe(target: &Dissemination, id: &str, asked: &Asked) -> bool {
    let Asked { text, language, deliver, subscriber, scope, steps } = asked;
    target.change(|state| {
        let namespaces = state.namespace_number(&scope.map);
        let (language, deliver) = (*language, *deliver);
        let entry = Entry { id, text, language, namespaces, subscriber, deliver };
        state.subscribe_stepped(entry, scope, steps.as_ref()).is_ok()
    })
}

fn built(all: &BTreeMap<String, Asked>) -> Dissemination {
    let target = Dissemination::new("{}");
    for (id, asked) in all {
        assert!(subscribe(&target, id, asked), "{}", asked.text);
    }
    target
}

/// Id -> what is delivered of a message, and ids with a verdict.
fn served(target: &Dissemination, message: &str) -> BTreeMap<String, Vec<Option<String>>> {
    let (mut worker, mut out) = (Worker::new(options()), Output::default());
    worker.serve(target, message.as_bytes(), Arrival::default(), &mut out).expect("a good message");
    let ids = target.state().entries();
    let id_of = |number: u32| {
        let mut id = String::new();
        ids.for_each([number].into_iter(), |name| id = name.to_owned());
        id
    };
    let mut found: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
    for delivery in &out.deliveries {
        let result = (delivery.fragment != NO_FRAGMENT).then(|| {
            let fragment = delivery.fragment as usize;
            let start = if fragment == 0 { 0 } else { out.fragments.ends[fragment - 1] };
            let bytes = &out.fragments.bytes[start..out.fragments.ends[fragment]];
            std::str::from_utf8(bytes).expect("UTF-8").to_owned()
        });
        found.entry(id_of(delivery.subscription)).or_default().push(result);
    }
    for (number, verdict) in &out.verdicts {
        found.entry(id_of(*number)).or_default().push(Some(format!("{verdict:?}")));
    }
    let (mut numbers, mut undecided) = (Vec::new(), Vec::new());
    worker
        .match_message(
            target.into(),
            message.as_bytes(),
            Arrival::default(),
            &mut numbers,
            |number, _| {
                undecided.push(number);
            },
        )
        .expect("a good message");
    numbers.append(&mut undecided);
    let mut matched: Vec<String> = numbers.into_iter().map(id_of).collect();
    matched.sort_unstable();
    matched.dedup();
    let delivered: Vec<String> = found.keys().cloned().collect();
    assert_eq!(matched, delivered, "what matches is what is delivered");
    found
}

fn check(
    target: &Dissemination,
    all: &BTreeMap<String, Asked>,
    random: &mut Random,
) -> (usize, usize) {
    let expected = built(all);
    assert_eq!(target.state().len(), all.len());
    let mut results = 0;
    for _ in 0..4 {
        let text = message(random).replace("<d>", "<d><b xmlns='urn:p'>1</b>");
        let got = served(target, &text);
        results += got.len();
        assert_eq!(got, served(&expected, &text), "{text}");
    }
    let mut shared = 0;
    for (id, asked) in all {
        let told = |of: &Dissemination| {
            let state = of.state();
            let (explained, series) = state.explain(id).expect("it is there");
            // What has left is counted until all is built anew.
            let told = match explained {
                Explained::Shared(mut sharing, _) => {
                    sharing.predicates.sort_unstable();
                    format!("{sharing:?}")
                }
                other => format!("{other:?}"),
            };
            let told = (told, series);
            let steps = state.steps(id).map(|steps| (steps.steps, steps.texts));
            let entry = state.find(id, |entry, namespaces| {
                assert_eq!(*namespaces, asked.scope.map);
                format!("{:?}", Entry { namespaces: 0, ..entry })
            });
            (told, steps, entry)
        };
        let got = told(target);
        shared += usize::from(got.0.0.contains("Sharing"));
        assert_eq!(got, told(&expected), "{}", asked.text);
    }
    (results, shared)
}

#[test]
fn an_opened_snapshot_that_changes_serves_as_what_is_built_from_all() {
    let file = File::new("histories");
    let (mut results, mut shared, mut kinds) = (0, 0, [0; 2]);
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let mut all: BTreeMap<String, Asked> = BTreeMap::new();
        let mut target = Dissemination::new("{}");
        let mut next = 0;
        for _ in 0..4 {
            for _ in 0..60 {
                if random.below(3) > 0 || all.is_empty() {
                    let (id, asked) = (format!("s{next}"), asked(&mut random));
                    next += 1;
                    if subscribe(&target, &id, &asked) {
                        kinds[usize::from(asked.steps.is_some())] += 1;
                        all.insert(id, asked);
                    }
                } else {
                    let at = random.below(all.len());
                    let id = all.keys().nth(at).expect("it is there").clone();
                    assert!(target.change(|state| state.unsubscribe([&*id].into_iter())).is_ok());
                    all.remove(&id);
                    if random.below(3) == 0 {
                        // Its id may be used again.
                        let asked = asked(&mut random);
                        if subscribe(&target, &id, &asked) {
                            all.insert(id, asked);
                        }
                    }
                }
            }
            let told = check(&target, &all, &mut random);
            (results, shared) = (results + told.0, shared + told.1);
            let frozen = target.freeze().expect("nothing interrupts");
            check(&target, &all, &mut random);
            let other = built(&all).freeze().expect("nothing interrupts");
            assert_eq!(frozen.file().bytes(Tag::Metadata), other.file().bytes(Tag::Metadata));
            assert!(frozen.file().as_slice() == other.file().as_slice(), "seed {seed}");
            frozen.file().save(&file.0).expect("saved");
            let opened = Arc::new(Snapshot::open(&file.0).expect("opened"));
            assert_eq!(opened.len(), all.len());
            target = Dissemination::from_snapshot(opened);
            check(&target, &all, &mut random);
        }
    }
    assert!(results > 1000 && shared > 500, "{results} results, {shared} shared");
    assert!(kinds.iter().all(|&kind| kind > 100), "{kinds:?}");
}

/// What holds a subscription of each way, two with steps of each of two series, and sets.
fn of_all_ways() -> (Dissemination, BTreeMap<String, Asked>) {
    let mut random = Random::new(5);
    let mut all = BTreeMap::new();
    let target = Dissemination::new("{}");
    for at in 0..80 {
        let (id, asked) = (format!("s{at}"), asked(&mut random));
        if subscribe(&target, &id, &asked) {
            all.insert(id, asked);
        }
    }
    (target, all)
}

/// Changes some bytes of a range.
fn change(bytes: &mut [u8], range: Range<usize>, random: &mut Random) {
    let places = range.len().div_ceil(4);
    let at = |place: usize| range.start + 4 * place..(range.start + 4 * place + 4).min(range.end);
    let (place, other) = (at(random.below(places)), at(random.below(places)));
    match random.below(5) {
        0 => bytes[place.start + random.below(place.len())] ^= 1 << random.below(8),
        1 => bytes[place.start + random.below(place.len())] = random.below(128) as u8,
        2 if place.len() == other.len() => bytes.copy_within(other, place.start),
        3 if place.len() == other.len() => {
            let own: Vec<u8> = bytes[place.clone()].to_vec();
            bytes.copy_within(other.clone(), place.start);
            bytes[other].copy_from_slice(&own);
        }
        _ => {
            let word = [0u32, 1, 2, 7, 1 << 31, u32::MAX][random.below(6)].to_le_bytes();
            bytes[place.clone()].copy_from_slice(&word[..place.len()]);
        }
    }
}

/// Opened, served from, and frozen again: no panic.
fn use_all(opened: Snapshot, messages: &[String]) {
    let registry = Dissemination::from_snapshot(Arc::new(opened));
    for message in messages {
        served(&registry, message);
    }
    let scope = Scope::default();
    let text = "for $v in //b where $v = 'x' return <r>{$v/c}</r>".to_owned();
    let (language, subscriber) = (None, String::new());
    let asked =
        Asked { text, language, deliver: Deliver::Fragment, subscriber, scope, steps: None };
    assert!(subscribe(&registry, "new", &asked));
    served(&registry, &messages[0]);
    let frozen = registry.freeze().map(drop);
    assert!(matches!(frozen, Ok(()) | Err(NotFrozen::Damaged)), "{frozen:?}");
}

/// Sections that lie under a right checksum: refused, or opened without harm. The automaton and its texts have tests of
/// their own.
#[test]
fn sections_that_lie_are_refused_or_opened_without_harm() {
    let (target, _) = of_all_ways();
    let (frozen, file) = (target.freeze().expect("nothing interrupts"), File::new("lies"));
    let whole = frozen.file().as_slice();
    let mut random = Random::new(17);
    let messages: Vec<String> = (0..3).map(|_| message(&mut random)).collect();
    let (mut refused, mut harmless) = (BTreeMap::<u32, usize>::new(), 0);
    let sections: Vec<Section> = sections(whole)
        .into_iter()
        .filter(|Section { tag, content, .. }| {
            let is_automaton = (Tag::SymbolOffsets as u32..=Tag::PlanTexts as u32).contains(tag)
                || (Tag::ExpressionOffsets as u32..=Tag::ExpressionFlags as u32).contains(tag);
            !is_automaton && !content.is_empty()
        })
        .collect();
    for Section { tag, content, .. } in &sections {
        let rounds = if *tag == Tag::SharedPlans as u32 { 400 } else { 20 };
        for round in 0..rounds {
            let mut bytes = whole.to_vec();
            change(&mut bytes, content.clone(), &mut random);
            let is_same = bytes == whole;
            match file.open_signed(bytes) {
                Err(error) => {
                    assert!(matches!(error, FormatError::Damaged(_)), "{tag}: {error:?}");
                    *refused.entry(*tag).or_default() += 1;
                }
                Ok(opened) => {
                    assert!(is_same || *tag != Tag::IdOrder as u32, "another order of the ids");
                    let used = catch_unwind(AssertUnwindSafe(|| use_all(opened, &messages)));
                    assert!(used.is_ok(), "round {round} of section {tag}");
                    harmless += 1;
                }
            }
        }
    }
    let total: usize = refused.values().sum();
    assert!(refused.len() > 12 && total > 400 && harmless > 100, "{refused:?}, {harmless}");
}

#[test]
fn two_series_of_equal_steps_are_refused() {
    let (target, _) = of_all_ways();
    let frozen = target.freeze().expect("nothing interrupts");
    let mut bytes = frozen.file().as_slice().to_vec();
    let all = sections(&bytes);
    let steps: Vec<&Section> = all.iter().filter(|each| each.tag == Tag::Steps as u32).collect();
    let steps: Vec<&&Section> = steps.iter().filter(|each| !each.content.is_empty()).collect();
    let [one, other, ..] = steps[..] else { panic!("there are two series") };
    // Offset and length.
    bytes.copy_within(one.entry.start + 8..one.entry.end, other.entry.start + 8);
    let opened = File::new("equal-steps").open_signed(bytes).map(drop);
    assert!(matches!(opened, Err(FormatError::Damaged(_))), "{opened:?}");
}

/// A text takes the place of another one of its length.
fn with_text(snapshot: &Snapshot, number: usize, text: &str) -> Vec<u8> {
    let mut bytes = snapshot.file().as_slice().to_vec();
    let all = sections(&bytes);
    let section = |tag: Tag| {
        let found = all.iter().find(|each| each.tag == tag as u32).expect("it is there");
        found.content.clone()
    };
    let offset = section(Tag::TextOffsets).start + 8 * number;
    let offset = u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"));
    let start = section(Tag::Texts).start + offset as usize;
    bytes[start..start + text.len()].copy_from_slice(text.as_bytes());
    bytes
}

/// The verdict of one whose text is none, and a registry that is not frozen.
#[test]
fn a_text_that_is_not_what_the_snapshot_says_of_it_is_told_when_it_is_needed() {
    let texts = ["//b[count(c) > 1]", "count(//b) + 1", "for $v in //b where $v/@k = 1 return $v"];
    for (at, text) in texts.into_iter().enumerate() {
        let target = Dissemination::new("{}");
        let (deliver, language) = (Deliver::Fragment, (at == 1).then_some(Language::XQuery));
        let (subscriber, scope) = ("ann".to_owned(), Scope::default());
        let asked =
            Asked { text: text.to_owned(), language, deliver, subscriber, scope, steps: None };
        assert!(subscribe(&target, "s", &asked));
        let frozen = target.freeze().expect("nothing interrupts");
        let wrong = ["]", "'"][at % 2].repeat(text.len());
        let opened = File::new("texts").open_signed(with_text(&frozen, 0, &wrong));
        let registry = Dissemination::from_snapshot(Arc::new(opened.expect("texts are not read")));
        let found = served(&registry, "<a><b k='1'><c/><c/></b></a>");
        let is_shared = at == 2;
        assert_eq!(found["s"] == [Some("Damaged".to_owned())], !is_shared, "{found:?}");
        // Gates are frozen from the automaton, plans are made again from the texts.
        let asked = Asked { text: "//c".to_owned(), ..asked };
        assert!(subscribe(&registry, "new", &asked));
        let frozen = registry.freeze().map(drop);
        assert_eq!(frozen, if is_shared { Err(NotFrozen::Damaged) } else { Ok(()) }, "{text}");
    }
}
