//! The records of the subscriptions of a snapshot, as sections of its file.

use super::format::{FileBuilder, Tag};
use super::parts::PartArrays;
use super::set_version::{SetSum, namespaces_text, write_content};
use super::{Entry, NamespaceMap, QUERY_MODE, mode, mode_of};
use rustc_hash::FxHashMap;

/// What was registered, in the order of the query numbers.
pub(crate) struct RecordColumns {
    id_offsets: Vec<u64>,
    ids: String,
    text_offsets: Vec<u64>,
    texts: String,
    namespace_of: Vec<u32>,
    /// JSON.
    namespaces: Vec<u8>,
    /// As they are digested.
    namespace_texts: Vec<String>,
    modes: Vec<u8>,
    subscriber_offsets: Vec<u64>,
    subscribers: String,
    subscriber_of: Vec<u32>,
    /// The numbers in the order of their ids.
    order: Vec<u32>,
}

impl RecordColumns {
    /// The columns of the records that `fill` pushes; their namespaces are numbered by the list.
    pub(crate) fn of(
        namespaces: &[NamespaceMap],
        fill: impl FnOnce(&mut dyn FnMut(Entry<'_>)),
    ) -> RecordColumns {
        let mut columns = RecordColumns {
            id_offsets: vec![0],
            ids: String::new(),
            text_offsets: vec![0],
            texts: String::new(),
            namespace_of: Vec::new(),
            namespaces: serde_json::to_vec(namespaces).expect("maps of strings are JSON"),
            namespace_texts: namespaces.iter().map(namespaces_text).collect(),
            modes: Vec::new(),
            subscriber_offsets: vec![0],
            subscribers: String::new(),
            subscriber_of: Vec::new(),
            order: Vec::new(),
        };
        let mut numbers = FxHashMap::<Box<str>, u32>::default();
        fill(&mut |record| {
            let number = match numbers.get(record.subscriber) {
                Some(&number) => number,
                None => {
                    columns.subscribers.push_str(record.subscriber);
                    columns.subscriber_offsets.push(columns.subscribers.len() as u64);
                    let number = numbers.len() as u32;
                    numbers.insert(record.subscriber.into(), number);
                    number
                }
            };
            columns.subscriber_of.push(number);
            columns.modes.push(mode(record.deliver, record.language));
            columns.ids.push_str(record.id);
            columns.id_offsets.push(columns.ids.len() as u64);
            columns.texts.push_str(record.text);
            columns.text_offsets.push(columns.texts.len() as u64);
            columns.namespace_of.push(record.namespaces);
        });
        columns.order = columns.order_of_ids();
        columns
    }

    /// Number of queries.
    pub(crate) fn len(&self) -> usize {
        self.namespace_of.len()
    }

    /// Adds the columns to a file.
    pub(crate) fn add_to<'a>(&'a self, file: &mut FileBuilder<'a>) {
        file.section(Tag::IdOffsets, &self.id_offsets)
            .section(Tag::Ids, self.ids.as_bytes())
            .section(Tag::TextOffsets, &self.text_offsets)
            .section(Tag::Texts, self.texts.as_bytes())
            .section(Tag::NamespaceOf, &self.namespace_of)
            .section(Tag::Namespaces, &self.namespaces)
            .section(Tag::IdOrder, &self.order);
        if self.subscribers.is_empty() && self.modes.iter().all(|&mode| mode == QUERY_MODE) {
            return;
        }
        file.section(Tag::SubscriberOffsets, &self.subscriber_offsets)
            .section(Tag::Subscribers, self.subscribers.as_bytes())
            .section(Tag::SubscriberOf, &self.subscriber_of)
            .section(Tag::Modes, &self.modes);
    }

    /// The digests of the subscriptions; `parts` have the steps.
    pub(crate) fn sum(&self, parts: &[PartArrays]) -> SetSum {
        let steps: FxHashMap<_, _> = parts.iter().flat_map(PartArrays::texts_of_steps).collect();
        let (mut sum, mut content) = (SetSum::default(), String::new());
        for number in 0..self.len() as u32 {
            let at = number as usize;
            let (deliver, language) = mode_of(self.modes[at]);
            let namespaces = self.namespace_of[at];
            let entry = Entry {
                id: text_at(&self.id_offsets, &self.ids, number),
                text: text_at(&self.text_offsets, &self.texts, number),
                language,
                namespaces,
                subscriber: text_at(
                    &self.subscriber_offsets,
                    &self.subscribers,
                    self.subscriber_of[at],
                ),
                deliver,
            };
            let steps = steps.get(&number).copied().unwrap_or_default();
            let namespaces = &self.namespace_texts[namespaces as usize];
            write_content(&mut content, &entry, namespaces, steps);
            sum.add(&content);
        }
        sum
    }

    fn id(&self, number: u32) -> &[u8] {
        text_at(&self.id_offsets, &self.ids, number).as_bytes()
    }

    fn order_of_ids(&self) -> Vec<u32> {
        let prefix = |number: u32| {
            let (id, mut bytes) = (self.id(number), [0u8; 8]);
            let count = id.len().min(8);
            bytes[..count].copy_from_slice(&id[..count]);
            u64::from_be_bytes(bytes)
        };
        let mut order: Vec<(u64, u32)> =
            (0..self.len() as u32).map(|number| (prefix(number), number)).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.id(a.1).cmp(self.id(b.1))));
        order.into_iter().map(|(_, number)| number).collect()
    }
}

fn text_at<'t>(offsets: &[u64], texts: &'t str, number: u32) -> &'t str {
    &texts[offsets[number as usize] as usize..offsets[number as usize + 1] as usize]
}
