//! What the evaluator asks of trees.

use crate::cases::table;
use pathcast_core::engine::evaluate::Scratch;
use pathcast_core::language::xpath::Expression;
use pathcast_core::xml::parser::{Door, Limits};

fn full_door() -> Door {
    let mut door = Door::new(Limits::default());
    door.keep_full_tree(true);
    door
}

/// An expression that does not ask for a full tree must have the same value, in the same number of
/// steps, without: otherwise a verdict would depend on the other queries.
#[test]
fn value_and_steps_do_not_depend_on_what_else_the_tree_keeps() {
    let (mut full, mut plain) = (full_door(), Door::new(Limits::default()));
    let mut scratch = Scratch::default();
    let mut compared = 0;
    for group in table().group {
        let full = full.parse(group.message.as_bytes(), None).expect(&group.name);
        let plain = plain.parse(group.message.as_bytes(), None).expect(&group.name);
        for (text, _) in &group.cases {
            let expression = Expression::parse(text).expect(text);
            if expression.needs_full_tree() {
                continue;
            }
            let with = expression.evaluate(full.message, full.names, &mut scratch, u64::MAX);
            let steps = scratch.steps_taken();
            let without = expression.evaluate(plain.message, plain.names, &mut scratch, u64::MAX);
            let (with, without) = (format!("{with:?}"), format!("{without:?}"));
            assert_eq!(with, without, "{text}");
            assert_eq!(steps, scratch.steps_taken(), "{text}");
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared} expressions need no full tree");
}

/// Missing one of these, the engine would evaluate it on a tree without comments.
#[test]
fn expressions_say_what_they_need() {
    let full = [
        "//comment()",
        "//node()",
        "count(//a/node()) > 1",
        "//a/following::node()[1]",
        "//processing-instruction('x')",
        "name(//a) = 'p:a'",
        "//a[name() = 'b']",
        "//namespace::x",
        "//a[id('x')]",
        "//a/descendant-or-self::node()[2]/b",
        "//a/..//.",
        "boolean(child::node())",
    ];
    let plain = [
        "//a/b[2]//c",
        "//a//@b",
        "//a//text()",
        "/descendant-or-self::node()/child::a",
        "/descendant::node()//b",
        "//a/following::node()[@x]/b",
        "//a/parent::node()/ancestor::node()",
        "local-name(//a) = 'b' and namespace-uri(//a) = 'u'",
        "//a[. = 'x']/..",
        "string(/) = 'x'",
        "//@*[self::node() = 'x']",
        "//a[lang('en')]",
    ];
    for text in full {
        assert!(Expression::parse(text).expect(text).needs_full_tree(), "{text}");
    }
    for text in plain {
        assert!(!Expression::parse(text).expect(text).needs_full_tree(), "{text}");
    }
}

/// One scratch serves many messages: nothing of one may be left for the next.
#[test]
fn a_scratch_forgets_the_message_before() {
    let mut door = full_door();
    let mut scratch = Scratch::default();
    let groups = table().group;
    let expression = Expression::parse("count(//*[.//*[position() = last()]] | //@* | //text())")
        .expect("an expression");
    let mut alone = Vec::new();
    for group in &groups {
        let parsed = door.parse(group.message.as_bytes(), None).expect(&group.name);
        let mut fresh = Scratch::default();
        alone.push(expression.evaluate(parsed.message, parsed.names, &mut fresh, u64::MAX));
    }
    for (group, alone) in groups.iter().zip(alone).rev() {
        let parsed = door.parse(group.message.as_bytes(), None).expect(&group.name);
        let shared = expression.evaluate(parsed.message, parsed.names, &mut scratch, u64::MAX);
        assert_eq!(shared, alone, "{}", group.name);
    }
}

/// The columns must fit together whichever text they come from: document, entity, declaration.
#[test]
fn markup_and_prefixes_are_kept_from_entities_and_declarations() {
    let message = "<!DOCTYPE p:r [\
        <!ENTITY e '<p:a xmlns:q=\"u:q\" q:x=\"1\"><?in one\ntwo?></p:a>'>\
        <!ATTLIST p:r xmlns:p CDATA 'u:p' p:y CDATA '2'>]>\
        <p:r>&e;<!--a\r\nb--></p:r>";
    let mut door = full_door();
    let parsed = door.parse(message.as_bytes(), None).expect("a message");
    let mut scratch = Scratch::default();
    for text in [
        "name(/*) = 'p:r'",
        "name(/*/@*) = 'p:y'",
        "name(/*/*) = 'p:a'",
        "name(/*/*/@*) = 'q:x'",
        "//processing-instruction() = 'one\ntwo'",
        "//comment() = 'a\nb'",
        "/*/*/namespace::q = 'u:q'",
        "count(/*/*/namespace::*) = 3",
        "count(/*/namespace::*) = 2",
    ] {
        let expression = Expression::parse(text).expect(text);
        let verdict = expression.holds(parsed.message, parsed.names, &mut scratch, 1_000);
        assert_eq!(verdict, Ok(true), "{text}");
    }
}
