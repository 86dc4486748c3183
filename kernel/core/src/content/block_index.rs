//! The predicate index of one block: which of its plans hold, found from the values.
//!
//! The plans whose paths end together are grouped by the place of their *access condition*, the one
//! conjunct that is looked up; the rest of a plan is checked only where that holds. A plan whose access
//! condition is all of it is *exact*: it needs no check and is kept as the words of its queries.
//!
//! Source: paper 003, section 5: predicates sorted by selectivity, evaluated after the structure.

use super::atoms::{Ask, AtomId, Atoms, KINDS, Kind, Order, SubjectId, kind_of};
use super::program::{Conjunct, Need, Place};
use crate::nfa::{PlanId, QueryNumber};
use std::ops::Range;

/// What holds at the places where an access condition does.
#[derive(Debug)]
pub enum Payload {
    /// Exact plans: words of query numbers.
    Words {
        /// Which words.
        at: Box<[u32]>,
        /// Their bits.
        bits: Box<[u64]>,
    },
    /// Plans to be checked.
    Plans(Box<[PlanId]>),
}

/// The plans of one place.
#[derive(Debug)]
pub struct Group {
    /// Number of the group among all of its automaton.
    pub number: u32,
    /// Where the access conditions are looked at.
    pub place: Place,
    /// Kinds of values in `table`, a bit each.
    pub kinds: u8,
    table: Table,
    /// Comparisons with thresholds.
    pub ranges: Box<[Thresholds]>,
    /// Atoms that are tried one by one.
    pub tried: Box<[(AtomId, Range<u32>)]>,
    /// Nested paths.
    pub nested: NestedGroup,
    /// What the ranges of all of these are about.
    pub payload: Payload,
}

/// Thresholds of one subject, on one side.
#[derive(Debug)]
pub struct Thresholds {
    /// Number of this list among all of its automaton.
    pub number: u32,
    /// What is compared.
    pub subject: SubjectId,
    /// Whether what is greater satisfies more of them.
    pub is_above: bool,
    /// (threshold, whether it is enough to be equal), those satisfied first first.
    limits: Box<[(f64, bool)]>,
    /// Where the payload of each begins; one more than limits.
    starts: Box<[u32]>,
}

/// The nested paths of a group, by words.
#[derive(Debug, Default)]
pub struct NestedGroup {
    /// Words with a nested path of the group.
    pub words: Box<[u32]>,
    /// Which bits of them.
    pub masks: Box<[u64]>,
    /// Per word, how many nested paths come before it.
    before: Box<[u32]>,
    /// Where the payload of each begins; one more than nested paths.
    starts: Box<[u32]>,
}

/// Plans of a block that need no look-up, and groups.
#[derive(Debug, Default)]
pub struct BlockIndex {
    /// By place; exact ones and others apart.
    pub groups: Box<[Group]>,
    /// Plans that hold wherever their path ends and are no plain queries.
    pub unconditional: Box<[PlanId]>,
    /// Plans that are no conjunctions.
    pub complex: Box<[PlanId]>,
    /// Places at which nested paths are asked for.
    pub nested_places: Box<[Place]>,
    /// Bytes held.
    pub memory: usize,
}

impl Group {
    /// What an atom leads to.
    #[inline]
    pub fn find(&self, atom: AtomId) -> Option<Range<u32>> {
        self.table.find(atom)
    }

    /// Whether its plans need no check.
    pub fn is_exact(&self) -> bool {
        matches!(self.payload, Payload::Words { .. })
    }
}

impl Thresholds {
    /// How many are satisfied.
    #[inline]
    pub fn satisfied(&self, low: f64, high: f64) -> usize {
        if self.is_above {
            self.limits.partition_point(|&(at, equal)| at < high || (equal && at == high))
        } else {
            self.limits.partition_point(|&(at, equal)| at > low || (equal && at == low))
        }
    }

    /// The payload of the thresholds of a range.
    pub fn payload(&self, numbers: Range<usize>) -> Range<u32> {
        self.starts[numbers.start]..self.starts[numbers.end]
    }
}

impl NestedGroup {
    /// Calls `f` with the payload of every nested path that is in a word.
    #[inline]
    pub fn each(&self, word: usize, mut hits: u64, mut f: impl FnMut(Range<u32>)) {
        while hits != 0 {
            let bit = hits & hits.wrapping_neg();
            hits ^= bit;
            let rank = self.before[word] + (self.masks[word] & (bit - 1)).count_ones();
            f(self.starts[rank as usize]..self.starts[rank as usize + 1]);
        }
    }
}

/// A hash table of atoms that is never changed.
#[derive(Debug, Default)]
struct Table {
    slots: Box<[(AtomId, u32, u32)]>,
    shift: u32,
}

const FREE: AtomId = AtomId::MAX;

impl Table {
    fn new(entries: &[(AtomId, Range<u32>)]) -> Table {
        if entries.is_empty() {
            return Table::default();
        }
        let size = (entries.len() * 2).next_power_of_two();
        let mut table =
            Table { slots: vec![(FREE, 0, 0); size].into(), shift: 32 - size.trailing_zeros() };
        for (atom, range) in entries {
            let mut at = table.home(*atom);
            while table.slots[at].0 != FREE {
                at = (at + 1) & (size - 1);
            }
            table.slots[at] = (*atom, range.start, range.end);
        }
        table
    }

    #[inline]
    fn home(&self, atom: AtomId) -> usize {
        // A table has two slots at least, so the shift is below 32.
        (atom.wrapping_mul(0x9e37_79b9) >> self.shift) as usize
    }

    #[inline]
    fn find(&self, atom: AtomId) -> Option<Range<u32>> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.home(atom);
        loop {
            let (known, start, end) = self.slots[at];
            if known == atom {
                return Some(start..end);
            }
            if known == FREE {
                return None;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }
}

/// How an access condition is looked up; the order is that of the payload.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Access {
    Found(AtomId),
    Above(SubjectId, f64, bool),
    Below(SubjectId, f64, bool),
    Tried(AtomId),
    Nested(QueryNumber),
}

/// One plan on its way into a group.
#[derive(Debug)]
struct Entry {
    place: Place,
    is_exact: bool,
    access: Access,
    plan: PlanId,
    numbers: Range<QueryNumber>,
}

/// What an automaton has numbered.
#[derive(Debug, Default)]
pub struct Counts {
    /// Groups.
    pub groups: u32,
    /// Lists of thresholds.
    pub thresholds: u32,
}

/// Gathers the plans of one block.
#[derive(Debug, Default)]
pub struct BlockIndexBuilder {
    entries: Vec<Entry>,
    unconditional: Vec<PlanId>,
    complex: Vec<PlanId>,
    nested_places: Vec<Place>,
}

impl BlockIndexBuilder {
    /// Adds a plan that is no conjunction.
    pub fn add_complex(&mut self, plan: PlanId) {
        self.complex.push(plan);
    }

    /// Adds a plan that always holds.
    pub fn add_unconditional(&mut self, plan: PlanId) {
        self.unconditional.push(plan);
    }

    /// Adds a conjunction. `numbers` are the queries that it decides alone; empty if what follows from
    /// it has to be looked at.
    pub fn add(
        &mut self,
        plan: PlanId,
        conjuncts: &[Conjunct],
        access: usize,
        numbers: &[Range<QueryNumber>],
        atoms: &Atoms,
    ) {
        for conjunct in conjuncts {
            if matches!(conjunct.need, Need::Nested(_)) {
                self.nested_places.push(conjunct.place);
            }
        }
        let Conjunct { place, need } = conjuncts[access];
        let access = match need {
            Need::Nested(number) => Access::Nested(number),
            Need::Atom(id) => {
                let atom = atoms.get(id);
                match atom.ask {
                    Ask::Ordered(order, limit) => {
                        let is_equal_enough = matches!(order, Order::AtMost | Order::AtLeast);
                        match order {
                            Order::Above | Order::AtLeast => {
                                Access::Above(atom.subject, limit, is_equal_enough)
                            }
                            _ => Access::Below(atom.subject, limit, is_equal_enough),
                        }
                    }
                    _ if atom.ask.is_found() => Access::Found(id),
                    _ => Access::Tried(id),
                }
            }
        };
        if conjuncts.len() > 1 || numbers.is_empty() {
            self.entries.push(Entry { place, is_exact: false, access, plan, numbers: 0..0 });
            return;
        }
        for numbers in numbers {
            let numbers = numbers.clone();
            self.entries.push(Entry { place, is_exact: true, access, plan, numbers });
        }
    }

    /// The index. `counts` are the groups and the lists of thresholds of the automaton so far.
    pub fn build(mut self, atoms: &Atoms, offset: QueryNumber, counts: &mut Counts) -> BlockIndex {
        self.entries.sort_unstable_by(|a, b| {
            (a.place, a.is_exact)
                .cmp(&(b.place, b.is_exact))
                .then_with(|| compare_access(a.access, b.access))
                .then_with(|| (a.plan, a.numbers.start).cmp(&(b.plan, b.numbers.start)))
        });
        let mut memory =
            size_of::<BlockIndex>() + 4 * (self.unconditional.len() + self.complex.len());
        let groups = self
            .entries
            .chunk_by(|a, b| (a.place, a.is_exact) == (b.place, b.is_exact))
            .map(|entries| build_group(entries, atoms, offset, counts, &mut memory))
            .collect();
        self.nested_places.sort_unstable();
        self.nested_places.dedup();
        BlockIndex {
            groups,
            unconditional: self.unconditional.into(),
            complex: self.complex.into(),
            nested_places: self.nested_places.into(),
            memory,
        }
    }
}

fn compare_access(a: Access, b: Access) -> std::cmp::Ordering {
    // Satisfied first first: low limits for what lies above, high ones for what lies below; of
    // equal ones those that take the limit itself.
    match (a, b) {
        (Access::Above(a, x, p), Access::Above(b, y, q)) => {
            a.cmp(&b).then_with(|| x.total_cmp(&y)).then_with(|| q.cmp(&p))
        }
        (Access::Below(a, x, p), Access::Below(b, y, q)) => {
            a.cmp(&b).then_with(|| y.total_cmp(&x)).then_with(|| q.cmp(&p))
        }
        // Of different kinds, or of kinds without numbers: these compare without exception.
        _ => a.partial_cmp(&b).expect("limits are compared above"),
    }
}

fn build_group(
    entries: &[Entry],
    atoms: &Atoms,
    offset: QueryNumber,
    counts: &mut Counts,
    memory: &mut usize,
) -> Group {
    let first = &entries[0];
    let mut payload = PayloadBuilder::default();
    let (mut found, mut tried) = (Vec::new(), Vec::new());
    let mut ranges: Vec<ThresholdsBuilder> = Vec::new();
    let mut nested = NestedGroupBuilder::default();
    let mut kinds = 0;
    for same in entries.chunk_by(|a, b| compare_access(a.access, b.access).is_eq()) {
        let start = payload.len();
        payload.add(same, offset);
        let range = start..payload.len();
        match same[0].access {
            Access::Found(atom) => {
                kinds |= 1 << kind_of(atoms.get(atom).subject) as u8;
                found.push((atom, range));
            }
            Access::Tried(atom) => tried.push((atom, range)),
            Access::Nested(number) => nested.add(number, range),
            Access::Above(subject, limit, is_equal_enough)
            | Access::Below(subject, limit, is_equal_enough) => {
                let is_above = matches!(same[0].access, Access::Above(..));
                if ranges.last().is_none_or(|r| (r.subject, r.is_above) != (subject, is_above)) {
                    ranges.push(ThresholdsBuilder {
                        subject,
                        is_above,
                        limits: Vec::new(),
                        starts: vec![range.start],
                    });
                }
                let list = ranges.last_mut().expect("just pushed");
                list.limits.push((limit, is_equal_enough));
                list.starts.push(range.end);
            }
        }
    }
    let ranges: Box<[Thresholds]> = ranges
        .into_iter()
        .map(|list| {
            counts.thresholds += 1;
            *memory += size_of::<Thresholds>() + 20 * list.limits.len();
            Thresholds {
                number: counts.thresholds - 1,
                subject: list.subject,
                is_above: list.is_above,
                limits: list.limits.into(),
                starts: list.starts.into(),
            }
        })
        .collect();
    counts.groups += 1;
    let group = Group {
        number: counts.groups - 1,
        place: first.place,
        kinds,
        table: Table::new(&found),
        ranges,
        tried: tried.into(),
        nested: nested.build(),
        payload: payload.build(first.is_exact),
    };
    *memory += size_of::<Group>()
        + 12 * group.table.slots.len()
        + 12 * group.tried.len()
        + 16 * group.nested.words.len()
        + 4 * group.nested.starts.len()
        + group.payload.memory();
    group
}

struct ThresholdsBuilder {
    subject: SubjectId,
    is_above: bool,
    limits: Vec<(f64, bool)>,
    starts: Vec<u32>,
}

impl Payload {
    fn memory(&self) -> usize {
        match self {
            Payload::Words { at, .. } => 12 * at.len(),
            Payload::Plans(plans) => 4 * plans.len(),
        }
    }
}

#[derive(Default)]
struct PayloadBuilder {
    at: Vec<u32>,
    bits: Vec<u64>,
    plans: Vec<PlanId>,
}

impl PayloadBuilder {
    fn len(&self) -> u32 {
        (self.at.len() + self.plans.len()) as u32
    }

    /// Adds the plans of one access condition.
    fn add(&mut self, entries: &[Entry], offset: QueryNumber) {
        if !entries[0].is_exact {
            self.plans.extend(entries.iter().map(|entry| entry.plan));
            self.plans.dedup();
            return;
        }
        let start = self.at.len();
        let mut numbers: Vec<QueryNumber> = entries
            .iter()
            .flat_map(|entry| entry.numbers.clone())
            .map(|number| number + offset)
            .collect();
        numbers.sort_unstable();
        for number in numbers {
            let (word, bit) = (number / 64, 1 << (number % 64));
            if self.at.len() > start && self.at.last() == Some(&word) {
                *self.bits.last_mut().expect("as long as `at`") |= bit;
            } else {
                self.at.push(word);
                self.bits.push(bit);
            }
        }
    }

    fn build(self, is_exact: bool) -> Payload {
        if is_exact {
            Payload::Words { at: self.at.into(), bits: self.bits.into() }
        } else {
            Payload::Plans(self.plans.into())
        }
    }
}

#[derive(Default)]
struct NestedGroupBuilder {
    words: Vec<u32>,
    masks: Vec<u64>,
    before: Vec<u32>,
    starts: Vec<u32>,
}

impl NestedGroupBuilder {
    /// Adds a nested path; they come in ascending order.
    fn add(&mut self, number: QueryNumber, payload: Range<u32>) {
        let (word, bit) = (number / 64, 1 << (number % 64));
        if self.words.last() == Some(&word) {
            *self.masks.last_mut().expect("as long as `words`") |= bit;
        } else {
            self.words.push(word);
            self.masks.push(bit);
            self.before.push(self.starts.len().saturating_sub(1) as u32);
        }
        if self.starts.is_empty() {
            self.starts.push(payload.start);
        }
        self.starts.push(payload.end);
    }

    fn build(self) -> NestedGroup {
        NestedGroup {
            words: self.words.into(),
            masks: self.masks.into(),
            before: self.before.into(),
            starts: self.starts.into(),
        }
    }
}

/// The kinds of a set.
pub fn kinds_in(set: u8) -> impl Iterator<Item = Kind> {
    KINDS.into_iter().filter(move |&kind| set >> kind as u8 & 1 == 1)
}
