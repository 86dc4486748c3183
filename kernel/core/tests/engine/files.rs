//! Snapshot files: the way out and back, and files that lie.

use crate::snapshot_file::{File, Section, sections};
use crate::world::{Batch, Random, answers, frozen, pool, register, register_all};
use pathcast_core::engine::nfa::Nfa;
use pathcast_core::registry::delivery::dissemination::Dissemination;
use pathcast_core::registry::snapshot::Snapshot;
use pathcast_core::registry::snapshot::format::{FORMAT, FormatError, Tag};
use std::sync::Arc;

fn sample() -> Dissemination {
    let index = Dissemination::default();
    assert!(register(&index, "path", "/a//b"));
    assert!(register(&index, "predicate", "//b[@n='1'][c]"));
    for (id, paths, expression) in [
        ("union", &["/a/b", "/a/c", "//e[@n=2]"][..], None),
        ("same union", &["/a/b", "/a/c", "//e[@n=2]"], None),
        ("other union", &["/a/b", "//e[@n=2]"], None),
        ("exact", &["/a"], Some("(count(/child::a/child::b) > 1)")),
        ("exact union", &["/a/b", "/c[b]"], Some("boolean(/child::a/child::comment())")),
    ] {
        assert_eq!(register_all(&index, id, paths, expression), Ok(()));
    }
    index
}

fn messages() -> Batch {
    let mut random = Random(3);
    let mut messages: Vec<String> = (0..30).map(|_| random.message()).collect();
    messages.push("<a n='1'><b n='1'><c/></b><!--x--><b/><c/><e n='2'/></a>".into());
    Batch(messages)
}

#[test]
fn a_saved_snapshot_answers_and_grows_like_the_index() {
    let index = sample();
    let file = File::new("round-trip");
    let expected = answers(&pool(1 << 24, 1), &index, &messages());
    frozen(&index).file().save(&file.0).expect("saved");
    let opened = Arc::new(Snapshot::open(&file.0).expect("opened"));
    assert_eq!(opened.nfa().expression_count(), 2);
    assert!(opened.nfa().needs_full_tree());
    let again = Dissemination::from_snapshot(Arc::clone(&opened));
    assert_eq!(answers(&pool(1 << 24, 1), &again, &messages()), expected);
    // What is merged is read back from the arrays; nothing of it may be lost on the way.
    assert!(register(&again, "passing", "/a/c"));
    frozen(&again);
    assert_eq!(answers(&pool(0, 1), &again, &messages()).len(), expected.len());
    assert_eq!(again.change(|state| state.unsubscribe(["passing"].into_iter())), Ok(()));
    assert_eq!(frozen(&again).file().as_slice(), opened.file().as_slice());
}

#[test]
fn a_file_of_another_format_says_so() {
    let file = File::new("format");
    let mut bytes = frozen(&sample()).file().as_slice().to_vec();
    for format in [FORMAT - 1, FORMAT + 1] {
        bytes[8..12].copy_from_slice(&format.to_le_bytes());
        let found = file.open_signed(bytes.clone()).map(drop);
        assert!(matches!(found, Err(FormatError::Version(v)) if v == format), "{found:?}");
    }
}

/// Records that lie under a right checksum, which no accident makes: refused, or read without harm.
#[test]
fn records_that_lie_do_no_harm() {
    let snapshot = frozen(&sample());
    let whole = snapshot.file().as_slice();
    let (batch, file) = (messages(), File::new("lies"));
    let mut random = Random(11);
    let (mut refused, mut harmless) = (0, 0);
    for tag in [
        Tag::SymbolOffsets,
        Tag::StateSymbol,
        Tag::StateRecords,
        Tag::EndRecords,
        Tag::RangeRecords,
        Tag::PlanRecords,
        Tag::PlanOffsets,
        Tag::IdOrder,
        Tag::ExpressionOffsets,
        Tag::ExpressionFlags,
    ] {
        let section = snapshot.file().bytes(tag);
        let start = section.as_ptr() as usize - whole.as_ptr() as usize;
        assert!(section.len() >= 4, "{tag:?} is used");
        for at in (start..start + section.len()).step_by(4) {
            let mut bytes = whole.to_vec();
            let value = [0, 1, 2, 7, u32::MAX, u32::MAX - 1, 1 << 31][random.below(7) as usize];
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            match file.open_signed(bytes) {
                Err(error) => {
                    assert!(matches!(error, FormatError::Damaged(_)), "{tag:?}: {error:?}");
                    refused += 1;
                }
                // Texts cut elsewhere are other texts; whether they are queries is seen when they
                // are needed.
                Ok(_) if matches!(tag, Tag::PlanOffsets | Tag::ExpressionOffsets) => {}
                Ok(opened) => {
                    let index = Dissemination::from_snapshot(Arc::new(opened));
                    assert!(register(&index, "new", "/a/b"));
                    frozen(&index);
                    // Plans at states where their paths do not lead, and expressions that need more
                    // than they say, break what evaluation takes for granted; the kernel says so
                    // when it comes to them.
                    let keeps_plans_whole = !matches!(
                        tag,
                        Tag::StateSymbol
                            | Tag::StateRecords
                            | Tag::EndRecords
                            | Tag::ExpressionFlags
                    );
                    if keeps_plans_whole {
                        answers(&pool(1 << 24, 1), &index, &batch);
                        answers(&pool(0, 1), &index, &batch);
                    }
                    harmless += 1;
                }
            }
        }
    }
    assert!(refused > 50 && harmless > 20, "{refused} refused, {harmless} harmless");
}

#[test]
fn sections_that_are_missing_or_cut_are_refused() {
    let whole = frozen(&sample()).file().as_slice().to_vec();
    let file = File::new("cut");
    for Section { tag, entry, content } in sections(&whole) {
        let length = content.len() as u64;
        if tag == Tag::Metadata as u32 || length == 0 {
            continue;
        }
        for shorter in [0, length - 1, length - 4] {
            let mut bytes = whole.clone();
            bytes[entry.start + 16..entry.end].copy_from_slice(&shorter.to_le_bytes());
            let found = file.open_signed(bytes).map(drop);
            assert!(found.is_err(), "section {tag} cut from {length} to {shorter}");
        }
    }
}
