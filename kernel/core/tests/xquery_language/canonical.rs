//! Canonical XML of a fragment, enough to compare results: by Canonical XML 1.0 but for white space
//! in tags, which the tree does not keep.

use pathcast_core::xml::names::NameTable;
use pathcast_core::xml::parser::{Door, Limits};
use pathcast_core::xml::tree::{MarkupKind, Message, Span};
use std::collections::BTreeMap;

type Scope = BTreeMap<String, String>;

/// The canonical form of what can stand between two tags.
pub fn canonical(fragment: &[u8]) -> String {
    let mut wrapped = b"<w>".to_vec();
    wrapped.extend_from_slice(fragment);
    wrapped.extend_from_slice(b"</w>");
    let mut door = Door::new(Limits::default());
    door.keep_full_tree(true);
    let shown = String::from_utf8_lossy(fragment).into_owned();
    let parsed = door.parse(&wrapped, None).unwrap_or_else(|error| panic!("{error}: {shown}"));
    let mut form = Form { message: parsed.message, names: parsed.names, out: String::new() };
    form.element(0, &Scope::new());
    form.out
}

struct Form<'f> {
    message: Message<'f>,
    names: &'f NameTable,
    out: String,
}

impl Form<'_> {
    fn text(&self, span: Span) -> String {
        String::from_utf8_lossy(self.message.bytes(span)).into_owned()
    }

    fn element(&mut self, element: usize, outer: &Scope) {
        let tree = self.message.tree;
        let mut scope = outer.clone();
        for at in tree.declaration_start[element]..tree.declaration_start[element + 1] {
            let prefix = self.text(tree.declaration_prefix[at as usize]);
            scope.insert(prefix, self.text(tree.declaration_uri[at as usize]));
        }
        scope.retain(|_, uri| !uri.is_empty());
        let local = self.names.local(tree.name[element]);
        let name = qualified(&self.text(tree.prefix[element]), local);
        self.out.push_str(&format!("<{name}"));
        for (prefix, uri) in &scope {
            if outer.get(prefix) != Some(uri) {
                self.out.push_str(&format!(" xmlns:{prefix}={uri:?}"));
            }
        }
        if outer.contains_key("") && !scope.contains_key("") {
            self.out.push_str(" xmlns=\"\"");
        }
        let mut attributes = Vec::new();
        for at in tree.attribute_start[element]..tree.attribute_start[element + 1] {
            let at = at as usize;
            let (uri, local) = (
                self.names.uri(tree.attribute_name[at]),
                self.names.local(tree.attribute_name[at]),
            );
            let name = qualified(&self.text(tree.attribute_prefix[at]), local);
            attributes.push((uri, local, name, self.text(tree.attribute_value[at])));
        }
        attributes.sort();
        for (_, _, name, value) in attributes {
            self.out.push_str(&format!(" {name}={value:?}"));
        }
        self.out.push('>');
        self.children(element, &scope);
        self.out.push_str(&format!("</{name}>"));
    }

    fn children(&mut self, element: usize, scope: &Scope) {
        let tree = self.message.tree;
        let (mut child, mut text) = (element + 1, tree.text_start[element]);
        let mut markup = tree.markup_start[element];
        loop {
            let has_child = child < tree.element_end[element] as usize;
            let texts = if has_child { tree.text_start[child] } else { tree.text_end[element] };
            let markups =
                if has_child { tree.markup_start[child] } else { tree.markup_end[element] };
            while markup < markups {
                let before = tree.markup_texts_before[markup as usize];
                self.texts(&mut text, before);
                let content = self.text(tree.markup_content[markup as usize]);
                let target = self.text(tree.markup_target[markup as usize]);
                match tree.markup_kind[markup as usize] {
                    MarkupKind::Comment => self.out.push_str(&format!("<!--{content}-->")),
                    MarkupKind::Instruction => {
                        self.out.push_str(&format!("<?{target} {content}?>"));
                    }
                }
                markup += 1;
            }
            self.texts(&mut text, texts);
            if !has_child {
                return;
            }
            self.element(child, scope);
            text = tree.text_end[child];
            markup = tree.markup_end[child];
            child = tree.element_end[child] as usize;
        }
    }

    fn texts(&mut self, text: &mut u32, end: u32) {
        while *text < end {
            let value = self.text(self.message.tree.text_value[*text as usize]);
            self.out.push_str(&value.replace('&', "&amp;").replace('<', "&lt;"));
            *text += 1;
        }
    }
}

fn qualified(prefix: &str, local: &str) -> String {
    if prefix.is_empty() { local.to_owned() } else { format!("{prefix}:{local}") }
}
