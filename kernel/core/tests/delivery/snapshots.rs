//! Snapshots of subscriptions of all kinds: what is opened, and then changed, serves as what is built from all.

use super::generated::{Random, message, subscription};
use super::{options, series};
use pathcast_core::language::choice::Language;
use pathcast_core::registry::delivery::dissemination::{
    Deliver, Dissemination, Entry, Explained, Steps,
};
use pathcast_core::registry::delivery::query::Scope;
use pathcast_core::registry::delivery::serving::{NO_FRAGMENT, Output};
use pathcast_core::registry::delivery::worker::Worker;
use pathcast_core::registry::snapshot::Snapshot;
use pathcast_core::registry::snapshot::format::{FormatError, Tag};
use std::collections::BTreeMap;
use std::path::PathBuf;
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
    worker.serve(target, message.as_bytes(), None, 0, &mut out).expect("a good message");
    let ids = target.state().ids();
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
        .match_message(target.into(), message.as_bytes(), (None, 0), &mut numbers, |number, _| {
            undecided.push(number);
        })
        .expect("a good message");
    numbers.append(&mut undecided);
    let mut matched: Vec<String> = numbers.into_iter().map(id_of).collect();
    matched.sort_unstable();
    matched.dedup();
    let delivered: Vec<String> = found.keys().cloned().collect();
    assert_eq!(matched, delivered, "what matches is what is delivered");
    found
}

/// A file that goes with its value.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        let name = format!("pathcast-{}-{name}.snapshot", std::process::id());
        File(std::env::temp_dir().join(name))
    }

    fn open(&self) -> Result<Snapshot, FormatError> {
        Snapshot::open(&self.0)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
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
            let opened = Arc::new(file.open().expect("opened"));
            assert_eq!(opened.len(), all.len());
            target = Dissemination::from_snapshot(opened);
            check(&target, &all, &mut random);
        }
    }
    assert!(results > 1000 && shared > 500, "{results} results, {shared} shared");
    assert!(kinds.iter().all(|&kind| kind > 100), "{kinds:?}");
}

/// Makes the checksums those of the content, as somebody would who wants to be believed.
fn sign(bytes: &mut [u8]) {
    let body = crc32fast::hash(&bytes[64..]);
    bytes[32..36].copy_from_slice(&body.to_le_bytes());
    let header = crc32fast::hash(&bytes[..36]);
    bytes[36..40].copy_from_slice(&header.to_le_bytes());
}

/// Sections of subscriptions that lie under a right checksum: refused, or opened without harm.
#[test]
fn sections_that_lie_are_refused_or_opened_without_harm() {
    let mut random = Random::new(5);
    let mut all = BTreeMap::new();
    let target = Dissemination::new("{}");
    for at in 0..40 {
        let (id, asked) = (format!("s{at}"), asked(&mut random));
        if subscribe(&target, &id, &asked) {
            all.insert(id, asked);
        }
    }
    let frozen = target.freeze().expect("nothing interrupts");
    let (whole, file) = (frozen.file().as_slice(), File::new("lies"));
    let count = u32::from_le_bytes(whole[16..20].try_into().expect("four bytes")) as usize;
    let (mut refused, mut harmless, mut seen) = (0, 0, 0);
    for entry in 0..count {
        let word = |at: usize, bytes: &[u8]| {
            u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
        };
        let at = 64 + entry * 24;
        let (tag, start, length) = (word(at, whole), word(at + 8, whole), word(at + 16, whole));
        if tag < Tag::SubscriberOffsets as u32 {
            continue;
        }
        seen += 1;
        let (start, length) = (start as usize, length as usize);
        for place in (start..start + length).step_by(4).take(3000) {
            let mut bytes = whole.to_vec();
            let value = [0u32, 1, 2, 7, u32::MAX, 1 << 31][random.below(6)].to_le_bytes();
            let end = (place + 4).min(start + length);
            bytes[place..end].copy_from_slice(&value[..end - place]);
            sign(&mut bytes);
            std::fs::write(&file.0, &bytes).expect("written");
            match file.open() {
                Err(error) => {
                    assert!(matches!(error, FormatError::Damaged(_)), "{tag}: {error:?}");
                    refused += 1;
                }
                Ok(opened) => {
                    let registry = Dissemination::from_snapshot(Arc::new(opened));
                    assert_eq!(registry.state().len(), all.len());
                    harmless += 1;
                }
            }
        }
    }
    assert!(seen > 8 && refused > 500 && harmless > 100, "{seen}: {refused}, {harmless}");
}
