//! What a subtree says, as text, from the columns of a full tree; with what is in scope worked out
//! from the declarations on the way to the root, which is not how the kernel does it.

use pathcast_core::xml::parser::Parsed;
use pathcast_core::xml::serializer::Namespaces;
use pathcast_core::xml::tree::{MarkupKind, NONE, Span};
use std::collections::BTreeMap;

/// Prefix to namespace.
type Scope = BTreeMap<String, String>;

pub fn text<'m>(parsed: &Parsed<'m>, span: Span) -> &'m str {
    std::str::from_utf8(parsed.message.bytes(span)).expect("a value is UTF-8")
}

/// Namespaces in scope at an element, `xml` left out.
fn in_scope(parsed: &Parsed<'_>, element: u32) -> Scope {
    let tree = parsed.message.tree;
    let mut scope = Scope::new();
    let mut at = element;
    while at != NONE {
        let starts = &tree.declaration_start;
        for declaration in starts[at as usize]..starts[at as usize + 1] {
            let prefix = text(parsed, tree.declaration_prefix[declaration as usize]).to_owned();
            let uri = text(parsed, tree.declaration_uri[declaration as usize]).to_owned();
            scope.entry(prefix).or_insert(uri);
        }
        at = tree.parent[at as usize];
    }
    scope.retain(|prefix, uri| prefix != "xml" && !uri.is_empty());
    scope
}

/// The element with all that is in it, an item a line with its depth. `outer` is what it was put
/// into: those of its prefixes that are not the element's own are in scope everywhere.
pub fn element(parsed: &Parsed<'_>, element: u32, outer: &[(&str, &str)]) -> String {
    let tree = parsed.message.tree;
    let mut lines = Lines {
        parsed,
        outer,
        base: tree.depth[element as usize],
        out: String::new(),
        text: tree.text_start[element as usize],
        markup: tree.markup_start[element as usize],
    };
    for next in element..tree.element_end[element as usize] {
        lines.inside(tree.text_start[next as usize], tree.markup_start[next as usize]);
        lines.tag(next);
    }
    lines.inside(tree.text_end[element as usize], tree.markup_end[element as usize]);
    lines.out
}

struct Lines<'l, 'm> {
    parsed: &'l Parsed<'m>,
    outer: &'l [(&'l str, &'l str)],
    base: u32,
    out: String,
    text: u32,
    markup: u32,
}

impl Lines<'_, '_> {
    fn tag(&mut self, element: u32) {
        let (parsed, tree) = (self.parsed, self.parsed.message.tree);
        let at = element as usize;
        let name = tree.name[at];
        self.out.push_str(&format!(
            "{} <{}:{}{{{}}}",
            tree.depth[at] - self.base,
            text(parsed, tree.prefix[at]),
            parsed.names.local(name),
            parsed.names.uri(name),
        ));
        let attributes = tree.attribute_start[at] as usize..tree.attribute_start[at + 1] as usize;
        let mut attributes: Vec<String> = attributes
            .map(|attribute| {
                let name = tree.attribute_name[attribute];
                let prefix = text(parsed, tree.attribute_prefix[attribute]);
                let (uri, local) = (parsed.names.uri(name), parsed.names.local(name));
                let value = text(parsed, tree.attribute_value[attribute]);
                format!(" {prefix}:{local}{{{uri}}}={value:?}")
            })
            .collect();
        attributes.sort();
        self.out.push_str(&attributes.concat());
        let prefixed = self.outer.iter().filter(|(prefix, _)| !prefix.is_empty());
        let mut scope: Scope =
            prefixed.map(|&(prefix, uri)| (prefix.to_owned(), uri.to_owned())).collect();
        scope.extend(in_scope(parsed, element));
        let default = self.outer.iter().find(|(prefix, _)| prefix.is_empty());
        if let Some(&(_, uri)) = default
            && !scope.contains_key("")
            && !self.is_shut(element)
        {
            scope.insert(String::new(), uri.to_owned());
        }
        self.out.push_str(&format!(" {scope:?}>\n"));
    }

    /// Whether an element, or one around it in the subtree, is in no namespace or takes the default
    /// namespace back: that of where it was put does not reach it.
    fn is_shut(&self, element: u32) -> bool {
        let tree = self.parsed.message.tree;
        let mut at = element;
        loop {
            let starts = &tree.declaration_start;
            let takes_back = (starts[at as usize]..starts[at as usize + 1]).any(|declaration| {
                let declaration = declaration as usize;
                tree.declaration_prefix[declaration].len() == 0
                    && tree.declaration_uri[declaration].len() == 0
            });
            if takes_back || self.parsed.names.uri(tree.name[at as usize]).is_empty() {
                return true;
            }
            if tree.depth[at as usize] == self.base {
                return false;
            }
            at = tree.parent[at as usize];
        }
    }

    /// Texts, comments and instructions before these numbers.
    fn inside(&mut self, texts: u32, markups: u32) {
        let tree = self.parsed.message.tree;
        let depth = |element: u32| tree.depth[element as usize] - self.base;
        loop {
            let is_markup = self.markup < markups
                && (self.text >= texts
                    || tree.markup_texts_before[self.markup as usize] <= self.text);
            let line = if is_markup {
                let parent = tree.markup_parent[self.markup as usize];
                let line = format!("{} {}", depth(parent), markup(self.parsed, self.markup));
                self.markup += 1;
                line
            } else if self.text < texts {
                let at = self.text as usize;
                self.text += 1;
                let value = text(self.parsed, tree.text_value[at]);
                format!("{} {value:?}\n", depth(tree.text_parent[at]))
            } else {
                return;
            };
            self.out.push_str(&line);
        }
    }
}

/// A comment or instruction. Carriage returns in it, which only entities can put there, cannot be
/// written so that they come back.
pub fn markup(parsed: &Parsed<'_>, number: u32) -> String {
    let tree = parsed.message.tree;
    let at = number as usize;
    let content = text(parsed, tree.markup_content[at]).replace("\r\n", "\n").replace('\r', "\n");
    match tree.markup_kind[at] {
        MarkupKind::Comment => format!("<!-- {content:?}\n"),
        MarkupKind::Instruction => {
            format!("<? {:?} {content:?}\n", text(parsed, tree.markup_target[at]))
        }
    }
}

/// The namespaces of a list.
pub fn namespaces(declarations: &[(&str, &str)]) -> Namespaces {
    let mut namespaces = Namespaces::default();
    for (prefix, uri) in declarations {
        namespaces.declare(prefix, uri);
    }
    namespaces
}

/// An element that declares them around a fragment.
pub fn wrapped(declarations: &[(&str, &str)], fragment: &[u8]) -> Vec<u8> {
    let mut out = b"<wrapper".to_vec();
    for (prefix, uri) in declarations {
        let colon = if prefix.is_empty() { "" } else { ":" };
        let uri = uri.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
        out.extend_from_slice(format!(" xmlns{colon}{prefix}=\"{uri}\"").as_bytes());
    }
    out.push(b'>');
    out.extend_from_slice(fragment);
    out.extend_from_slice(b"</wrapper>");
    out
}
