//! What is fuzzed: each function takes bytes, must come back, and checks what must hold of any input.
//!
//! The targets of `kernel/fuzz` and the test beside this file call the same functions, so that a
//! finding of the one is a test of the other.

#[path = "../push/oracle.rs"]
#[allow(dead_code)]
mod oracle;

use pathcast_core::engine::evaluate::Scratch;
use pathcast_core::engine::options::Options;
use pathcast_core::engine::programs;
use pathcast_core::engine::programs::{Bounds, Results, Session};
use pathcast_core::files::records::{Cut, Cutter, Fault, NameTest, Place, Rows, Survey, tag_end};
use pathcast_core::language::compile::{CompiledQuery, Evaluated, compile_query};
use pathcast_core::language::edits::{Edit, EditStep};
use pathcast_core::language::paths::Conjunction;
use pathcast_core::language::paths::before_steps::Effect;
use pathcast_core::language::query::{
    Declined, Namespaces, TEXT_BYTES_MAX, canonical_text, compile,
};
use pathcast_core::language::reader::{read_canonical, read_query};
use pathcast_core::language::xpath::Expression;
use pathcast_core::language::xquery::Program;
use pathcast_core::registry::batch::Arrival;
use pathcast_core::registry::delivery::dissemination::{Dissemination, State};
use pathcast_core::registry::delivery::worker::{Target, Worker};
use pathcast_core::registry::snapshot::{NamespaceMap, QueryRecord};
use pathcast_core::xml::parser::{Door, Limits};

/// Steps of one evaluation: enough for small messages, and soon over for the others.
const STEPS_MAX: u64 = 20_000;

/// Messages longer than this find nothing that short ones do not, and take longer.
const MESSAGE_BYTES_MAX: usize = 1 << 14;

fn text_of(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok().filter(|text| text.len() <= TEXT_BYTES_MAX)
}

fn canonical(text: &str, namespaces: &Namespaces) -> Result<String, Declined> {
    let mut out = String::new();
    canonical_text(&compile(text, namespaces)?, &mut out);
    Ok(out)
}

/// A query is taken or declined; what is taken has a canonical text that gives itself again.
pub fn query_text(data: &[u8]) {
    let Some(text) = text_of(data) else { return };
    let namespaces = Namespaces::new([("", "urn:d"), ("p", "urn:p"), ("q", "urn:q")]);
    for namespaces in [Namespaces::NONE, &namespaces] {
        let Ok(first) = canonical(text, namespaces) else { continue };
        if first.len() <= TEXT_BYTES_MAX {
            let again = canonical(&first, Namespaces::NONE);
            assert_eq!(again.as_deref(), Ok(&*first), "{text:?}");
        }
    }
}

/// An entry of a routing table is read or refused; it is read from its own text again, and what is made of its paths
/// covers them and is in normal form. Whether it was read.
pub fn entry_text(data: &[u8]) -> bool {
    let Some(text) = text_of(data) else { return false };
    let Ok(Some(entry)) = Conjunction::read(text) else { return false };
    let read_again = |entry: &Conjunction| {
        if entry.text().len() <= TEXT_BYTES_MAX {
            assert_eq!(
                Conjunction::read(entry.text()).as_ref(),
                Ok(&Some(entry.clone())),
                "{text:?}"
            );
        }
    };
    read_again(&entry);
    for path in entry.paths() {
        let mut made = path.linear_paths();
        made.extend([path.structure(), path.existing(), path.begun(2)]);
        made.extend([path.cut(2), path.any_parent(), path.without_parents(), path.last_name()]);
        made.push(path.in_powers());
        for wide in &made {
            assert!(wide.covers(path), "{wide} {path}");
        }
        for path in made {
            read_again(&Conjunction::of([path]));
        }
    }
    let step = |edit, path: &str, name: &str| EditStep {
        edit,
        path: path.to_owned(),
        name: name.to_owned(),
        namespaces: Vec::new(),
    };
    for steps in [
        vec![],
        vec![step(Edit::Rename, "//c", "b"), step(Edit::Drop, "/a/b", "")],
        vec![step(Edit::Unwrap, "//c", ""), step(Edit::Drop, "//b", "")],
    ] {
        let before = Effect::of(&steps).before(entry.paths());
        assert!(before.covers(&entry), "{before} {entry}");
        read_again(&before);
    }
    true
}

/// An expression is read or refused with a place in it, and what is stored of a query is read again.
pub fn expression_text(data: &[u8]) {
    let Some(text) = text_of(data) else { return };
    if let Ok(tree) = read_query(text, Namespaces::NONE)
        && let Ok(CompiledQuery { expression: Some(stored), .. }) = compile_query(&tree)
    {
        let again = read_canonical(&stored.text).expect("what is stored is canonical");
        assert_eq!(Evaluated::of(&again), Ok(stored), "{text:?}");
    }
    if let Ok(expression) = Expression::parse(text) {
        let mut door = Door::new(Limits::default());
        door.keep_full_tree(true);
        let parsed = door.parse(b"<a x='1'><!--c--><b>2</b></a>", None).expect("well-formed");
        let _ = expression.holds(parsed.message, parsed.names, &mut Scratch::default(), STEPS_MAX);
    }
}

/// A file of records gives the same rows in one range and in three, and each range ends at the place that a
/// survey of it says.
pub fn record_ranges(data: &[u8]) {
    let [levels, first, second, file @ ..] = data else { return };
    if file.len() > MESSAGE_BYTES_MAX {
        return;
    }
    let levels = *levels as usize % 3;
    let cut = Cut {
        path: vec![NameTest::default(); levels + 1],
        limits: Limits { message_bytes_max: 1 << 12, ..Limits::default() },
        context_bytes_max: 1 << 10,
        head: Vec::new(),
        has_doctype: false,
    };
    let tag_at = |&at: &u64| {
        let tag = &file[at as usize..];
        tag[..tag_end(tag).unwrap_or(tag.len())].to_vec()
    };
    let cut_range = |place: &Place, start: usize, until: usize, rows: &mut FileRows| {
        let tags: Vec<_> = place.tags.iter().map(tag_at).collect();
        let mut cutter = Cutter::new(&cut, place, &tags, start as u64, until as u64);
        let mut at = start;
        loop {
            at += cutter.feed(&file[at..]);
            if at == file.len() {
                cutter.finish();
            }
            rows.add(cutter.take());
            if at == file.len() {
                return cutter.after().cloned();
            }
        }
    };
    let place_in = |byte: u8, from: usize| from + (file.len() - from) * byte as usize / 256;
    let first = place_in(*first, 0);
    let second = place_in(*second, first);
    let (mut whole, mut parts) = (FileRows::default(), FileRows::default());
    cut_range(&Place::root(), 0, file.len(), &mut whole);
    let mut place = Some(Place::root());
    for (start, until) in [(0, first), (first, second), (second, file.len())] {
        let Some(here) = place else { break };
        let after = cut_range(&here, start, until, &mut parts);
        let mut survey = Survey::new(levels, start as u64);
        survey.feed(&file[start..until]);
        place = here.after(&survey.outcomes()[here.state as usize], levels);
        assert_eq!(after, place);
    }
    assert_eq!(parts, whole);
}

/// All rows of a file, however they were handed on.
#[derive(Debug, Default, PartialEq)]
struct FileRows {
    rows: Vec<(u64, u64, Vec<u8>)>,
    faults: Vec<(u64, Fault)>,
}

impl FileRows {
    fn add(&mut self, rows: Rows) {
        let mut from = 0;
        for (row, &end) in rows.ends.iter().enumerate() {
            self.rows.push((rows.offsets[row], rows.sizes[row], rows.values[from..end].to_vec()));
            from = end;
        }
        let faults = rows.faults.into_iter();
        self.faults.extend(faults.map(|(row, fault)| (rows.offsets[row], fault)));
    }
}

/// A message is let in or refused, and the tree is the same whether markup is kept or not.
pub fn message_bytes(data: &[u8]) {
    if data.len() > MESSAGE_BYTES_MAX {
        return;
    }
    let (mut slim, mut full) = doors();
    match (slim.parse(data, None), full.parse(data, None)) {
        (Ok(slim), Ok(full)) => {
            let (slim, full) = (slim.message.tree, full.message.tree);
            assert_eq!(slim.parent, full.parent);
            assert_eq!(slim.element_end, full.element_end);
            assert_eq!(slim.attribute_start, full.attribute_start);
            assert_eq!(slim.text_parent, full.text_parent);
            assert_eq!(slim.text_start, full.text_start);
            assert!(slim.element_end[0] as usize == slim.len());
        }
        (Err(slim), Err(full)) => {
            assert_eq!(
                (slim.line, slim.column, slim.offset),
                (full.line, full.column, full.offset)
            );
            assert!(slim.line > 0 && slim.column > 0 && slim.offset <= data.len() as u64);
        }
        (slim, full) => panic!("let in: {} without markup, {} with", slim.is_ok(), full.is_ok()),
    }
}

/// A message is to the push parser what it is to the door, wherever it is cut into blocks.
pub fn message_blocks(data: &[u8]) {
    if data.len() > MESSAGE_BYTES_MAX {
        return;
    }
    let seed =
        data.iter().fold(1u64, |seed, &byte| seed.wrapping_mul(0x100_0000_01B3) ^ u64::from(byte));
    let mut both = oracle::Both::new(Limits::default());
    both.check_some_cuts(data, None, &mut oracle::Random(seed | 1), 2);
}

/// An expression, an empty line, a message: the answer and what it costs are always the same.
pub fn evaluation(data: &[u8]) {
    let Some((head, message)) = divided(data) else { return };
    let Ok(expression) = Expression::parse(head) else { return };
    let (mut slim, mut full) = doors();
    let (Ok(slim), Ok(full)) = (slim.parse(message, None), full.parse(message, None)) else {
        return;
    };
    let mut scratch = Scratch::default();
    let mut answers = Vec::new();
    for parsed in [&full, &full, &slim] {
        if parsed.message.tree.is_full || !expression.needs_full_tree() {
            let holds =
                expression.holds(parsed.message, parsed.names, &mut scratch, STEPS_MAX).ok();
            answers.push((holds, scratch.steps_taken()));
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?} for {head:?}");
    let (holds, steps) = answers[0];
    if holds.is_some() {
        // With just the steps it took, it comes to the same end; with one less, it does not.
        let again = expression.holds(full.message, full.names, &mut scratch, steps);
        assert_eq!(again.ok(), holds);
        if steps > 0 {
            let less = expression.holds(full.message, full.names, &mut scratch, steps - 1);
            assert!(less.is_err(), "{head:?} took {steps} steps and was content with less");
        }
    }
}

/// A program, an empty line, a message: the results and what they cost are always the same, every
/// result is XML, and whether there is one is known without writing it.
pub fn program(data: &[u8]) {
    let Some((head, message)) = divided(data) else { return };
    let namespaces = [("p".to_owned(), "urn:p".to_owned())];
    let Ok(program) = Program::parse(head, &namespaces) else { return };
    let (mut slim, mut full) = doors();
    slim.keep_source_spans(true);
    full.keep_source_spans(true);
    let (Ok(slim), Ok(full)) = (slim.parse(message, None), full.parse(message, None)) else {
        return;
    };
    let bounds = Bounds { steps_max: STEPS_MAX, bytes_max: MESSAGE_BYTES_MAX };
    let mut scratch = programs::Scratch::default();
    let mut answers = Vec::new();
    for parsed in [&full, &full, &slim] {
        if parsed.message.tree.is_full || !program.needs_full_tree() {
            let mut session = Session::new(parsed.message, parsed.names, &mut scratch);
            let mut results = Results::default();
            let answer = session.run(&program, bounds, &mut results);
            answers.push((answer, session.steps_taken(), results.bytes, results.ends));
            if let Ok(is_delivered) = answer {
                // A condition that holds gives an item, but not every item is true.
                let holds = session.holds(&program, bounds);
                assert!(holds == Ok(is_delivered) || holds == Ok(false), "{head:?}");
            }
        }
    }
    let (answer, steps, bytes, ends) = &answers[0];
    for (other, other_steps, other_bytes, other_ends) in &answers[1..] {
        assert_eq!((other, other_steps), (answer, steps), "{head:?}");
        // Prefixes that a tree without them does not know may be others that mean the same.
        assert_eq!(other_ends.len(), ends.len(), "{head:?}");
        assert_eq!(other_bytes.is_empty(), bytes.is_empty(), "{head:?}");
    }
    assert_eq!(answers[1].2, *bytes, "{head:?}");
    let mut start = 0;
    for &end in ends {
        let result = [b"<w>", &bytes[start..end], b"</w>"].concat();
        let mut door = Door::new(Limits::default());
        let shown = result.escape_ascii();
        assert!(door.parse(&result, None).is_ok(), "{shown} for {head:?}");
        start = end;
    }
}

/// Queries, a line each, an empty line, a message: however they are held and run, the answers are
/// those of the evaluator.
pub fn engine(data: &[u8]) {
    let Some((head, message)) = divided(data) else { return };
    let (_, mut full) = doors();
    let Ok(parsed) = full.parse(message, None) else { return };
    let index = Dissemination::default();
    let mut expected = Vec::new();
    let mut count = 0;
    for text in head.lines().take(12) {
        let expression = Expression::parse(text);
        let holds = expression.as_ref().map(|expression| {
            expression.holds(parsed.message, parsed.names, &mut Scratch::default(), STEPS_MAX)
        });
        if !index.change(|state| register(state, count, text)) {
            continue;
        }
        if let Ok(Ok(holds)) = holds {
            expected.push((count.to_string(), holds));
        }
        count += 1;
        if count == 4 {
            // The first queries become the base, the others stay in the delta.
            index.freeze().expect("nothing interrupts");
        }
    }
    let live = found((&index).into(), &index, message, 1 << 20);
    for (id, holds) in &expected {
        assert_eq!(live.contains(id), *holds, "query {id} of {head:?}");
    }
    assert_eq!(found((&index).into(), &index, message, 0), live, "by the plain NFA, {head:?}");
    let snapshot = index.freeze().expect("nothing interrupts");
    assert_eq!(found((&*snapshot).into(), &index, message, 1 << 20), live, "frozen, {head:?}");
}

fn register(state: &mut State, number: usize, text: &str) -> bool {
    let namespaces = state.namespace_number(&NamespaceMap::new());
    let record = QueryRecord { id: &number.to_string(), text, namespaces };
    if let Ok(steps) = compile(text, Namespaces::NONE) {
        return state.register(record, &[&steps], None).is_ok();
    }
    let any = compile("/*", Namespaces::NONE).expect("a query");
    let Ok(expression) = read_canonical(text) else { return false };
    let Ok(evaluated) = Evaluated::of(&expression) else { return false };
    state.register(record, &[&any], Some(&evaluated)).is_ok()
}

/// Ids of the queries that a message satisfies; asked twice, with cold and with warm caches.
fn found(
    target: Target<'_>,
    index: &Dissemination,
    message: &[u8],
    cache_bytes_max: usize,
) -> Vec<String> {
    let limits = Limits::default();
    let options =
        Options { limits, cache_bytes_max, steps_max: STEPS_MAX, message_steps_max: STEPS_MAX };
    let mut worker = Worker::new(options.into());
    let mut answers = Vec::new();
    for _ in 0..2 {
        let mut numbers = Vec::new();
        let undecided = |_, _| ();
        let matched =
            worker.match_message(target, message, Arrival::default(), &mut numbers, undecided);
        matched.expect("let in before");
        let mut ids = Vec::new();
        index.state().entries().for_each(numbers.into_iter(), |id| ids.push(id.to_owned()));
        ids.sort();
        answers.push(ids);
    }
    assert_eq!(answers[0], answers[1], "cold and warm");
    answers.swap_remove(0)
}

fn doors() -> (Door, Door) {
    let (slim, mut full) = (Door::new(Limits::default()), Door::new(Limits::default()));
    full.keep_full_tree(true);
    (slim, full)
}

/// Text up to the first empty line, and the message after it.
fn divided(data: &[u8]) -> Option<(&str, &[u8])> {
    let at = data.windows(2).position(|pair| pair == b"\n\n")?;
    let message = &data[at + 2..];
    (message.len() <= MESSAGE_BYTES_MAX).then_some((text_of(&data[..at])?, message))
}
