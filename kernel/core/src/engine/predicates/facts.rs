//! What is known about the values of one message: which atoms each element satisfies, computed for an
//! element when first asked for and at most once.

use super::atoms::{
    ANY_ATTRIBUTE, AtomId, Atoms, KINDS, Kind, NO_SUBJECT, ORDINAL_OF_ANY, ORDINAL_OF_NAME,
    SubjectId, TEXT, VALUE, kind_of,
};
use super::contained::Occurrences;
use crate::engine::conditions::PostProcessor;
use crate::language::folding::Fold;
use crate::language::numbers::Notation;
use crate::xml::names::NameTable;
use crate::xml::tree::Message;
use std::ops::Range;

/// Where the atoms of one element stand in the list, if the stamp is that of now.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    stamp: u32,
    start: u32,
    end: u32,
}

/// Memory for the facts of a message; reused from message to message.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    stamp: u32,
    /// Per kind of value, per element.
    entries: [Vec<Entry>; KINDS.len()],
    list: Vec<AtomId>,
    /// Where the texts stand that long string-values are asked to contain, by folding, once that is known; none of those
    /// that are too often there.
    occurring: [Option<Option<Occurrences>>; Fold::ALL.len()],
    /// Bytes of long string-values that were searched by themselves.
    searched: usize,
    /// Text compared since somebody asked, in steps.
    read: u64,
}

/// Atoms that are kept: when there are more all are forgotten, which costs time and never an answer.
const LIST_MAX: usize = 1 << 24;
/// Bytes from which on a string-value of several text nodes is long.
const LONG: usize = 512;
/// Bytes of text that cost a step.
const BYTES_A_STEP: usize = 64;

/// The facts of one message, with what they are computed from.
#[derive(Debug)]
pub(crate) struct Look<'m, 'w> {
    /// The message.
    pub(crate) message: Message<'m>,
    /// Its names.
    pub(crate) names: &'m NameTable,
    /// Ordinals and numbers of string-values.
    pub(crate) post: &'w mut PostProcessor,
    /// The atoms.
    pub(crate) atoms: &'w mut Atoms,
    /// What is known.
    pub(crate) facts: &'w mut Facts,
}

impl Facts {
    /// Forgets everything: a new message, or new atoms.
    pub(crate) fn begin(&mut self) {
        self.list.clear();
        self.occurring = Default::default();
        self.searched = 0;
        if self.stamp == u32::MAX {
            self.entries.iter_mut().for_each(Vec::clear);
            self.stamp = 0;
        }
        self.stamp += 1;
    }

    /// Steps that comparing text has taken since the last time.
    pub(crate) fn take_read(&mut self) -> u64 {
        std::mem::take(&mut self.read)
    }
}

impl Look<'_, '_> {
    /// The atoms of a kind that an element satisfies, of those that are found by their value.
    #[inline]
    pub(crate) fn satisfied(&mut self, element: u32, kind: Kind) -> Range<u32> {
        let entries = &self.facts.entries[kind as usize];
        match entries.get(element as usize) {
            Some(entry) if entry.stamp == self.facts.stamp => entry.start..entry.end,
            _ => self.find_satisfied(element, kind),
        }
    }

    /// The atoms that [`Look::satisfied`] has found.
    #[inline]
    pub(crate) fn atoms_at(&self, range: Range<u32>) -> &[AtomId] {
        &self.facts.list[range.start as usize..range.end as usize]
    }

    fn find_satisfied(&mut self, element: u32, kind: Kind) -> Range<u32> {
        let tree = self.message.tree;
        if self.facts.list.len() > LIST_MAX {
            self.facts.begin();
        }
        let mut list = std::mem::take(&mut self.facts.list);
        let start = list.len();
        match kind {
            Kind::Attribute => {
                let asks_for_any = self.atoms.is_asked(ANY_ATTRIBUTE);
                for at in tree.attributes(element) {
                    let value = self.message.bytes(tree.attribute_value[at]);
                    let subject = self.atoms.subject_of(tree.attribute_name[at]);
                    if subject != NO_SUBJECT {
                        self.atoms.satisfied(subject, value, &mut self.post.patterns, &mut list);
                    }
                    if asks_for_any {
                        self.atoms.satisfied(
                            ANY_ATTRIBUTE,
                            value,
                            &mut self.post.patterns,
                            &mut list,
                        );
                    }
                }
                if asks_for_any {
                    self.atoms.keep_distinct(&mut list, start);
                }
            }
            Kind::Text => {
                tree.each_text(element, |text| {
                    let value = self.message.bytes(tree.text_value[text as usize]);
                    self.atoms.satisfied(TEXT, value, &mut self.post.patterns, &mut list);
                });
                self.atoms.keep_distinct(&mut list, start);
            }
            Kind::Value => self.find_satisfied_by_value(element, &mut list),
            Kind::Ordinal => {
                for subject in [ORDINAL_OF_ANY, ORDINAL_OF_NAME] {
                    let ordinal = f64::from(self.ordinal(subject, element));
                    self.atoms.satisfied_by_number(subject, |_| ordinal, &mut list);
                }
            }
        }
        let range = start as u32..list.len() as u32;
        self.atoms.count(&list[start..]);
        self.facts.read += self.atoms.take_searched() + self.post.patterns.take_steps();
        self.facts.list = list;
        let stamp = self.facts.stamp;
        let entries = &mut self.facts.entries[kind as usize];
        if entries.len() < tree.len() {
            entries.resize(tree.len(), Entry::default());
        }
        entries[element as usize] = Entry { stamp, start: range.start, end: range.end };
        range
    }

    fn find_satisfied_by_value(&mut self, element: u32, list: &mut Vec<AtomId>) {
        let tree = self.message.tree;
        let texts = tree.texts(element);
        let spans = &tree.text_value[texts.start as usize..texts.end as usize];
        if let [] | [_] = spans {
            let value = spans.first().map_or(&b""[..], |&span| self.message.bytes(span));
            return self.atoms.satisfied(VALUE, value, &mut self.post.patterns, list);
        }
        let start = list.len();
        let value = self.post.texts.value(self.message, texts.clone());
        let length = value.len();
        // Values that are parts of one another are searched in one pass over all text, but for as many as cost one.
        let is_alone = length <= LONG || {
            self.facts.searched = self.facts.searched.saturating_add(length);
            self.facts.searched <= self.message.source.len()
        };
        self.atoms.satisfied_by_text(VALUE, value, is_alone, list);
        self.facts.read += (length.min(self.atoms.compared_bytes(VALUE)) / BYTES_A_STEP) as u64;
        let (message, values) = (self.message, &mut self.post.texts);
        let read = |notation| values.number(message, texts.clone(), notation);
        self.atoms.satisfied_by_number(VALUE, read, list);
        if !is_alone {
            self.find_contained(texts.clone(), list);
        }
        let value = self.post.texts.value(self.message, texts);
        self.atoms.keep_matching(VALUE, value, &mut self.post.patterns, start, list);
    }

    /// Adds the atoms whose texts a long string-value contains.
    fn find_contained(&mut self, texts: Range<u32>, list: &mut Vec<AtomId>) {
        for fold in Fold::ALL {
            if !self.atoms.searches(VALUE, fold) {
                continue;
            }
            let (text, starts) = self.post.texts.folded(self.message, fold);
            let [start, end] = [texts.start, texts.end].map(|at| starts[at as usize] as usize);
            let occurring = self.facts.occurring[fold as usize]
                .get_or_insert_with(|| self.atoms.find_all(VALUE, fold, text));
            self.atoms.satisfied_within(VALUE, fold, (text, occurring), start..end, list);
        }
    }

    fn ordinal(&mut self, subject: SubjectId, element: u32) -> u32 {
        self.post.index.find_names(self.message.tree, self.names);
        self.post.index.count_siblings(self.message.tree);
        match subject {
            ORDINAL_OF_ANY => self.post.index.ordinal_of_any(element),
            _ => self.post.index.ordinal_of_name(element),
        }
    }

    /// Whether an element satisfies an atom.
    #[inline]
    pub(crate) fn holds(&mut self, atom: AtomId, element: u32) -> bool {
        let subject = self.atoms.get(atom).subject;
        if kind_of(subject) == Kind::Attribute {
            return self.attribute_holds(atom, subject, element);
        }
        self.value_holds(atom, subject, element)
    }

    fn attribute_holds(&mut self, atom: AtomId, subject: SubjectId, element: u32) -> bool {
        let (message, tree) = (self.message, self.message.tree);
        let ask = &self.atoms.get(atom).ask;
        tree.attributes(element).any(|at| {
            let is_it = subject == ANY_ATTRIBUTE
                || self.atoms.subject_of(tree.attribute_name[at]) == subject;
            is_it && self.post.ask_holds(ask, message.bytes(tree.attribute_value[at]))
        })
    }

    fn value_holds(&mut self, atom: AtomId, subject: SubjectId, element: u32) -> bool {
        let message = self.message;
        match subject {
            TEXT => self.post.text_holds(message, element, &self.atoms.get(atom).ask),
            VALUE => self.post.value_holds(message, element, &self.atoms.get(atom).ask),
            _ => {
                let ordinal = f64::from(self.ordinal(subject, element));
                self.atoms.get(atom).ask.holds_number(ordinal)
            }
        }
    }

    /// The values of the attributes of a name, or of all.
    #[inline]
    fn attributes(&self, subject: SubjectId, element: u32) -> impl Iterator<Item = &[u8]> {
        let (message, tree) = (self.message, self.message.tree);
        let is_it = move |at: &usize| {
            subject == ANY_ATTRIBUTE || self.atoms.subject_of(tree.attribute_name[*at]) == subject
        };
        tree.attributes(element)
            .filter(is_it)
            .map(move |at| message.bytes(tree.attribute_value[at]))
    }

    /// The least and the greatest number among the values of a subject at an element.
    pub(crate) fn numbers(
        &mut self,
        subject: SubjectId,
        notation: Notation,
        element: u32,
    ) -> Option<(f64, f64)> {
        let message = self.message;
        let mut range: Option<(f64, f64)> = None;
        let mut add = |value: f64| {
            if !value.is_nan() {
                let (low, high) = range.unwrap_or((value, value));
                range = Some((low.min(value), high.max(value)));
            }
        };
        match subject {
            TEXT => message.tree.each_text(element, |text| {
                let span = message.tree.text_value[text as usize];
                add(notation.read(message.bytes(span)));
            }),
            VALUE => add(self.post.texts.number(message, message.tree.texts(element), notation)),
            ORDINAL_OF_ANY | ORDINAL_OF_NAME => add(f64::from(self.ordinal(subject, element))),
            _ => self.attributes(subject, element).for_each(|value| add(notation.read(value))),
        }
        range
    }
}

#[cfg(test)]
mod tests {
    use super::super::atoms::is_found;
    use super::*;
    use crate::engine::ask::Ask;
    use crate::language::comparison::Comparison;
    use crate::language::folding::TextTest;
    use crate::xml::parser::{Door, Limits};

    #[test]
    fn an_atom_is_satisfied_by_the_values_that_its_ask_says() {
        let comparisons = || Comparison::ALL.into_iter();
        let sets = [
            Ask::OneOf("1\u{0}10\u{0}"),
            Ask::OneOf("10\u{0}x\u{0}"),
            Ask::NumberOf(Notation::Double, "10\u{0}2\u{0}"),
            Ask::NumberOf(Notation::XPath, "10\u{0}2\u{0}"),
        ];
        let texts = [
            Ask::Texts(TextTest::Is, Fold::Lower, "1e1\u{0}9x\u{0}"),
            Ask::Texts(TextTest::Begins, Fold::Upper, "1E\u{0}9\u{0}"),
            Ask::Texts(TextTest::Has, Fold::Upper, "E\u{0}X\u{0}"),
            Ask::Texts(TextTest::Has, Fold::None, "00\u{0}+\u{0}"),
            Ask::Texts(TextTest::Matches, Fold::None, "^1.$\u{0}"),
            Ask::Texts(TextTest::Matches, Fold::None, "(?i)^[0-9]X\u{0}"),
            Ask::Texts(TextTest::Matches, Fold::None, "0{2}\u{0}^9\u{0}"),
        ];
        let asks: Vec<Ask> = [Ask::Exists, Ask::StartsWith("10"), Ask::Contains("0")]
            .into_iter()
            .chain(sets)
            .chain(texts)
            .chain(comparisons().map(|comparison| Ask::Text(comparison, "10")))
            .chain(comparisons().map(|comparison| Ask::Number(comparison, 10.0)))
            .chain(comparisons().map(|comparison| Ask::Cast(comparison, 10.0)))
            .map(|ask| ask.map(|text| Box::from(text.as_bytes())))
            .collect();
        let mut atoms = Atoms::default();
        let x = atoms.attribute("", "x");
        let subjects = [x, ANY_ATTRIBUTE, TEXT, VALUE, ORDINAL_OF_ANY];
        let (mut door, mut post) = (Door::new(Limits::default()), PostProcessor::default());
        let mut facts = Facts::default();
        let long = "E1".repeat(LONG);
        for pieces in [
            ["x", &long],
            [&long, "00"],
            ["10", ""],
            ["1", "0"],
            ["1", "e1"],
            ["+1", "1"],
            ["9", "x"],
            ["1", "00"],
        ] {
            let value = pieces.concat();
            let source = format!("<a x='{value}'>{}<b>{}</b></a>", pieces[0], pieces[1]);
            let parsed = door.parse(source.as_bytes(), None).expect("it is well formed");
            post.begin_message();
            facts.begin();
            for subject in subjects {
                for ask in &asks {
                    let atom = atoms.intern(subject, ask.borrowed());
                    let asked = match subject {
                        TEXT => pieces[0],
                        ORDINAL_OF_ANY if matches!(ask, Ask::Number(..) | Ask::Cast(..)) => "1",
                        ORDINAL_OF_ANY => continue,
                        _ => &value,
                    };
                    atoms.learn_names(parsed.names);
                    let mut look = Look {
                        message: parsed.message,
                        names: parsed.names,
                        post: &mut post,
                        atoms: &mut atoms,
                        facts: &mut facts,
                    };
                    let expected = ask.holds(asked.as_bytes());
                    assert_eq!(look.holds(atom, 0), expected, "{ask:?} of {asked}");
                    for searched in [0, usize::MAX] {
                        look.facts.begin();
                        look.facts.searched = searched;
                        let found = look.satisfied(0, kind_of(subject));
                        let finds = look.atoms_at(found).contains(&atom);
                        assert_eq!(finds, expected && is_found(ask), "{ask:?} finds {asked}");
                    }
                }
            }
        }
        assert_eq!(atoms.len(), subjects.len() * asks.len(), "equal atoms are one");
    }
}
