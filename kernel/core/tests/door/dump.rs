//! A tree as text: `(element @attribute="value" "text" (child))`, names as `{uri}local`.

use pathcast_core::xml::names::NameId;
use pathcast_core::xml::parser::Parsed;
use pathcast_core::xml::tree::{NONE, Span};

pub fn dump(parsed: &Parsed<'_>) -> String {
    let tree = parsed.message.tree;
    let mut out = String::new();
    // Open elements, and the text node that comes next.
    let mut open: Vec<usize> = Vec::new();
    let mut text = 0;
    for element in 0..tree.len() {
        close(parsed, &mut out, &mut open, &mut text, Some(element));
        let separator = if out.is_empty() { "(" } else { " (" };
        out.push_str(separator);
        out.push_str(&name(parsed, tree.name[element]));
        let attributes = tree.attribute_start[element]..tree.attribute_start[element + 1];
        for at in attributes.map(|at| at as usize) {
            let value = quoted(parsed, tree.attribute_value[at]);
            out.push_str(&format!(" @{}={value}", name(parsed, tree.attribute_name[at])));
        }
        open.push(element);
    }
    close(parsed, &mut out, &mut open, &mut text, None);
    out
}

/// Writes the texts before `next` and ends the elements that end before it.
fn close(
    parsed: &Parsed<'_>,
    out: &mut String,
    open: &mut Vec<usize>,
    text: &mut usize,
    next: Option<usize>,
) {
    let tree = parsed.message.tree;
    while let Some(&element) = open.last() {
        let has_ended = next.is_none_or(|next| tree.element_end[element] as usize <= next);
        let before = match next {
            Some(next) if !has_ended => tree.text_start[next],
            _ => tree.text_end[element],
        };
        while *text < before as usize {
            assert_eq!(tree.text_parent[*text] as usize, element, "parent of text {text}");
            out.push(' ');
            out.push_str(&quoted(parsed, tree.text_value[*text]));
            *text += 1;
        }
        if !has_ended {
            return;
        }
        out.push(')');
        open.pop();
    }
}

fn name(parsed: &Parsed<'_>, id: NameId) -> String {
    match parsed.names.uri(id) {
        "" => parsed.names.local(id).to_owned(),
        uri => format!("{{{uri}}}{}", parsed.names.local(id)),
    }
}

fn quoted(parsed: &Parsed<'_>, span: Span) -> String {
    let text = std::str::from_utf8(parsed.message.bytes(span)).expect("a value is UTF-8");
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// What every tree must hold to, whatever the message.
pub fn check_columns(parsed: &Parsed<'_>) {
    let tree = parsed.message.tree;
    let elements = tree.len();
    assert!(elements > 0, "a message has a root element");
    for column in [&tree.parent, &tree.depth, &tree.element_end, &tree.text_start, &tree.text_end] {
        assert_eq!(column.len(), elements);
    }
    assert_eq!(tree.attribute_start.len(), elements + 1);
    assert_eq!(tree.attribute_start[elements] as usize, tree.attribute_name.len());
    assert_eq!(tree.attribute_name.len(), tree.attribute_value.len());
    assert_eq!(tree.text_parent.len(), tree.text_value.len());
    assert_eq!(tree.element_end[0] as usize, elements);
    assert_eq!(tree.text_end[0] as usize, tree.text_value.len());
    for element in 1..elements {
        let parent = tree.parent[element] as usize;
        assert!(parent < element && element < tree.element_end[parent] as usize);
        assert!(tree.element_end[element] <= tree.element_end[parent]);
        assert_eq!(tree.depth[element], tree.depth[parent] + 1);
        assert!(tree.text_start[element] >= tree.text_start[parent]);
        assert!(tree.text_end[element] <= tree.text_end[parent]);
    }
    for span in tree.attribute_value.iter().chain(&tree.text_value) {
        assert!(std::str::from_utf8(parsed.message.bytes(*span)).is_ok());
    }
    assert!(tree.text_value.iter().all(|span| span.len() > 0), "no text node is empty");
    if tree.is_full {
        check_full_columns(parsed);
    } else {
        assert!(tree.markup_kind.is_empty() && tree.prefix.is_empty(), "nothing else is kept");
        assert!(tree.attribute_prefix.is_empty() && tree.declaration_start.is_empty());
    }
}

/// What the columns must hold to that are only kept when asked for.
fn check_full_columns(parsed: &Parsed<'_>) {
    let tree = parsed.message.tree;
    let (elements, markups) = (tree.len(), tree.markup_kind.len());
    for column in [&tree.markup_start, &tree.markup_end] {
        assert_eq!(column.len(), elements);
        assert!(column.iter().all(|&at| at as usize <= markups));
    }
    assert!(tree.markup_start.is_sorted() && tree.markup_texts_before.is_sorted());
    assert_eq!(tree.markup_parent.len(), markups);
    assert_eq!(tree.markup_texts_before.len(), markups);
    assert_eq!(tree.markup_target.len(), markups);
    assert_eq!(tree.markup_content.len(), markups);
    assert_eq!(tree.prefix.len(), elements);
    assert_eq!(tree.attribute_prefix.len(), tree.attribute_name.len());
    assert_eq!(tree.declaration_start.len(), elements + 1);
    assert!(tree.declaration_start.is_sorted());
    assert_eq!(tree.declaration_start[elements] as usize, tree.declaration_uri.len());
    assert_eq!(tree.declaration_prefix.len(), tree.declaration_uri.len());
    assert!(tree.id_attribute.is_sorted_by(|a, b| a < b));
    for (markup, &parent) in tree.markup_parent.iter().enumerate() {
        let is_inside = |element: usize| {
            (tree.markup_start[element]..tree.markup_end[element]).contains(&(markup as u32))
        };
        match parent {
            NONE => assert!(!is_inside(0), "outside the root element"),
            parent => assert!(is_inside(parent as usize)),
        }
    }
    let spans = [&tree.markup_target, &tree.markup_content, &tree.prefix, &tree.attribute_prefix];
    let declared = [&tree.declaration_prefix, &tree.declaration_uri];
    for span in spans.into_iter().chain(declared).flatten() {
        assert!(std::str::from_utf8(parsed.message.bytes(*span)).is_ok());
    }
    for (&prefix, &name) in tree.prefix.iter().zip(&tree.name) {
        // A prefix without a namespace is refused; elements without one may have a default.
        let is_bound = prefix.len() == 0 || !parsed.names.uri(name).is_empty();
        assert!(is_bound, "{}", parsed.names.local(name));
    }
}
