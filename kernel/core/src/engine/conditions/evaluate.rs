//! Whether a plan holds.
//!
//! Sets of elements climb from the ends towards the root: `cur` holds the elements that the step at
//! hand can be bound to so that everything after it is satisfied. Each element enters a set once,
//! and ancestors are walked only as far as no one has walked before, so one step costs at most the
//! elements of the message, and usually a handful.

use super::nested_sets::AnchorSet;
use super::plan::{ANY, Check, Named, Operation, Plan, Reach, Slice, Test, TestNumber, TextRange};
use super::post_processor::PostProcessor;
use crate::engine::ask::Ask;
use crate::language::comparison::Comparison;
use crate::language::numbers::Notation;
use crate::language::query::ast::Axis;
use crate::language::values;
use crate::xml::names::{NameId, NameTable};
use crate::xml::tree::{Message, NONE, Span};

/// Ends up to which forced bindings are checked one by one: shared ancestors may be checked again,
/// but the first end that holds is enough.
const FEW_ENDS: usize = 8;

impl Plan {
    /// Whether the query selects something in the message.
    ///
    /// Args:
    ///     message: The message.
    ///     names: The table that the ids of the message belong to.
    ///     ends: The elements, in document order and without duplicates, at which the names and
    ///         axes of the main path end, conditions ignored.
    ///     post: Scratch memory, told of the message by [`PostProcessor::begin_message`].
    ///
    /// Cost: at most the size of the query times that of the message; usually a probe per name
    /// and the few elements that the conditions are about.
    pub fn holds(
        &self,
        message: Message<'_>,
        names: &NameTable,
        ends: &[u32],
        post: &mut PostProcessor,
    ) -> bool {
        post.steps += 1;
        if ends.is_empty() || !post.presence.may_hold(self.needs, message, names) {
            return false;
        }
        if self.is_unconditional() {
            return true;
        }
        let mut evaluation = Evaluation { plan: self, message, names, post };
        if !evaluation.resolve_names() {
            return false;
        }
        if self.has_ordinals() {
            evaluation.post.index.count_siblings(message.tree);
        }
        let first = self.check(self.main().start);
        let is_at_end = self.main().len() == 1 && first.reach == Reach::Up(0);
        if self.is_direct() && is_at_end {
            ends.iter().any(|&end| evaluation.element_passes(&first, end))
        } else if self.is_direct() && ends.len() <= FEW_ENDS {
            ends.iter().any(|&end| evaluation.end_passes(end))
        } else {
            evaluation.some_end_passes(ends)
        }
    }
}

/// Stands for an id where a test is not about one name.
const PATTERN: NameId = NameId::MAX;

/// Which names pass a test.
#[derive(Clone, Copy)]
enum Wanted {
    Every,
    One(NameId),
    Pattern(Test),
}

struct Evaluation<'a> {
    plan: &'a Plan,
    message: Message<'a>,
    names: &'a NameTable,
    post: &'a mut PostProcessor,
}

impl<'a> Evaluation<'a> {
    /// Finds the ids of the plan's names. False if one does not occur in the message: every
    /// condition must hold, so the plan cannot (the store check of NP-Filter, by names).
    fn resolve_names(&mut self) -> bool {
        let post = &mut *self.post;
        post.index.find_names(self.message.tree, self.names);
        post.resolved.clear();
        for number in 0..self.plan.test_count() {
            let (named, test) = self.plan.test(number);
            let Test::Name { hash, uri, local } = test else {
                post.resolved.push(PATTERN);
                continue;
            };
            let (uri, local) = (self.plan.text(uri), self.plan.text(local));
            let occurs = self.names.find(hash, uri, local).filter(|&id| match named {
                Named::Element => post.index.has_element(id),
                Named::Attribute => post.index.has_attribute(id),
            });
            match occurs {
                Some(id) => post.resolved.push(id),
                None => return false,
            }
        }
        true
    }

    fn wanted(&self, test: TestNumber) -> Wanted {
        if test == ANY {
            return Wanted::Every;
        }
        match self.post.resolved[test as usize] {
            PATTERN => Wanted::Pattern(self.plan.test(test).1),
            id => Wanted::One(id),
        }
    }

    fn name_passes(&self, wanted: Wanted, name: NameId) -> bool {
        match wanted {
            Wanted::Every => true,
            Wanted::One(id) => name == id,
            Wanted::Pattern(Test::AnyIn { uri }) => {
                self.names.uri(name).as_bytes() == self.plan.text(uri)
            }
            Wanted::Pattern(Test::AnyNamespace { local } | Test::Name { local, .. }) => {
                self.names.local(name).as_bytes() == self.plan.text(local)
            }
        }
    }

    /// One end of a direct plan.
    fn end_passes(&mut self, end: u32) -> bool {
        let tree = self.message.tree;
        let mut element = end;
        for number in self.plan.main().numbers() {
            let check = self.plan.check(number);
            match check.reach {
                Reach::Up(parents) => {
                    for _ in 0..parents {
                        element = tree.parent[element as usize];
                    }
                }
                Reach::ToDepth(depth) | Reach::ToDepthOrSelf(depth) => {
                    while tree.depth[element as usize] > depth {
                        element = tree.parent[element as usize];
                    }
                }
                _ => unreachable!("a direct plan has forced bindings only"),
            }
            if !self.element_passes(&check, element) {
                return false;
            }
        }
        true
    }

    /// All conditions of a check, each of which one element decides.
    #[inline]
    fn element_passes(&mut self, check: &Check, element: u32) -> bool {
        self.post.steps += u64::from(check.operations.len());
        let mut operations = check.operations.numbers();
        operations.all(|number| self.passes(self.plan.operation(number), element))
    }

    /// The main path by sets.
    fn some_end_passes(&mut self, ends: &[u32]) -> bool {
        self.post.work.clear();
        self.post.work.extend_from_slice(ends);
        self.post.steps += ends.len() as u64;
        let checks = self.plan.main();
        for number in checks.numbers() {
            let check = self.plan.check(number);
            self.climb(0, check.reach, check.test);
            self.filter(0, &check, number + 1 == checks.end);
            if self.post.work.is_empty() {
                return false;
            }
        }
        true
    }

    /// The elements at which a nested path holds.
    fn anchors(&mut self, number: u32) -> AnchorSet {
        let path = self.plan.nested(number);
        let key = self.plan.text(path.key);
        if let Some(known) = self.post.sets.find(path.key_hash, key) {
            return known;
        }
        let base = self.post.work.len();
        for number in path.checks.numbers() {
            let check = self.plan.check(number);
            if check.reach == Reach::Everywhere {
                self.everywhere(check.test);
            } else {
                self.climb(base, check.reach, check.test);
            }
            self.filter(base, &check, false);
            if self.post.work.len() == base {
                break;
            }
        }
        let reach = match path.axis {
            Axis::Child => Reach::Parent,
            Axis::Descendant => Reach::Ancestors,
            Axis::DescendantOrSelf => Reach::AncestorsOrSelf,
        };
        self.climb(base, reach, ANY);
        let post = &mut *self.post;
        let elements = self.message.tree.len();
        let set = post.sets.insert(path.key_hash, key, &mut post.work[base..], elements);
        post.work.truncate(base);
        set
    }

    /// Lists every element of the message that passes the test.
    fn everywhere(&mut self, test: TestNumber) {
        let tree = self.message.tree;
        match self.wanted(test) {
            Wanted::Every => self.post.work.extend(0..tree.len() as u32),
            Wanted::One(id) => self.post.work.extend(self.post.index.elements(id)),
            pattern => {
                for (element, &name) in tree.name.iter().enumerate() {
                    if self.name_passes(pattern, name) {
                        self.post.work.push(element as u32);
                    }
                }
            }
        }
    }

    /// Replaces the list from `base` on by what is reached from it, each element once.
    fn climb(&mut self, base: usize, reach: Reach, test: TestNumber) {
        let tree = self.message.tree;
        match reach {
            Reach::Up(parents) => {
                for _ in 0..parents {
                    self.climb(base, Reach::Parent, ANY);
                }
                return;
            }
            Reach::Everywhere => return,
            _ => {}
        }
        self.post.marks.begin(tree.len());
        let wanted = self.wanted(test);
        let end = self.post.work.len();
        self.post.steps += (end - base) as u64;
        for at in base..end {
            let start = self.post.work[at];
            match reach {
                Reach::Parent => {
                    let parent = tree.parent[start as usize];
                    if parent != NONE
                        && self.post.marks.add(parent)
                        && self.name_passes(wanted, tree.name[parent as usize])
                    {
                        self.post.work.push(parent);
                    }
                }
                Reach::ToDepth(depth) => {
                    if tree.depth[start as usize] > depth {
                        self.climb_to(start, depth);
                    }
                }
                Reach::ToDepthOrSelf(depth) => self.climb_to(start, depth),
                Reach::AncestorsOrSelf => self.climb_all(start, wanted),
                _ => self.climb_all(tree.parent[start as usize], wanted),
            }
        }
        let reached = self.post.work.len() - end;
        self.post.steps += reached as u64;
        self.post.work.copy_within(end.., base);
        self.post.work.truncate(base + reached);
    }

    /// Adds an element and its ancestors, up to the first that has been walked already.
    fn climb_all(&mut self, from: u32, wanted: Wanted) {
        let tree = self.message.tree;
        let mut element = from;
        while element != NONE && self.post.marks.add(element) {
            if self.name_passes(wanted, tree.name[element as usize]) {
                self.post.work.push(element);
            }
            element = tree.parent[element as usize];
        }
    }

    /// Adds the ancestor (or the element itself) at a depth, unless it has been reached already.
    fn climb_to(&mut self, from: u32, depth: u32) {
        let tree = self.message.tree;
        let mut element = from;
        while self.post.marks.add(element) {
            if tree.depth[element as usize] <= depth {
                self.post.work.push(element);
                return;
            }
            element = tree.parent[element as usize];
        }
    }

    /// Keeps in the list from `base` on what passes a check; with `is_last`, one is enough.
    fn filter(&mut self, base: usize, check: &Check, is_last: bool) {
        if check.by_siblings {
            return self.filter_by_siblings(base, check);
        }
        for number in check.operations.numbers() {
            let is_one_enough = is_last && number + 1 == check.operations.end;
            self.retain(base, self.plan.operation(number), is_one_enough);
            if self.post.work.len() == base {
                return;
            }
        }
    }

    /// The same where positions count what other predicates have left: all children of the parents
    /// concerned go through the predicates, parent by parent.
    fn filter_by_siblings(&mut self, base: usize, check: &Check) {
        let tree = self.message.tree;
        let wanted = self.wanted(check.test);
        let end = self.post.work.len();
        self.post.marks.begin(tree.len());
        for at in base..end {
            let parent = tree.parent[self.post.work[at] as usize];
            if parent == NONE {
                // The root has no siblings and is reached once.
                self.post.work.push(0);
            } else if self.post.marks.add(parent) {
                let mut child = parent + 1;
                while child < tree.element_end[parent as usize] {
                    if self.name_passes(wanted, tree.name[child as usize]) {
                        self.post.work.push(child);
                    }
                    child = tree.element_end[child as usize];
                }
            }
        }
        self.post.steps += (self.post.work.len() - base) as u64;
        for number in check.operations.numbers() {
            match self.plan.operation(number) {
                Operation::Position(positions) => self.retain_positions(end, positions),
                operation => self.retain(end, operation, false),
            }
        }
        self.post.marks.begin(tree.len());
        for at in end..self.post.work.len() {
            let element = self.post.work[at];
            self.post.marks.add(element);
        }
        self.post.work.truncate(end);
        let mut kept = base;
        for at in base..end {
            let element = self.post.work[at];
            if self.post.marks.contains(element) {
                self.post.work[kept] = element;
                kept += 1;
            }
        }
        self.post.work.truncate(kept);
    }

    fn retain_positions(&mut self, base: usize, positions: Slice) {
        let tree = self.message.tree;
        let (mut kept, mut group, mut position) = (base, None, 0);
        for at in base..self.post.work.len() {
            let element = self.post.work[at];
            let parent = tree.parent[element as usize];
            position = if group == Some(parent) { position + 1 } else { 1 };
            group = Some(parent);
            if self.position_passes(positions, position) {
                self.post.work[kept] = element;
                kept += 1;
            }
        }
        self.post.work.truncate(kept);
    }

    fn retain(&mut self, base: usize, operation: Operation, is_one_enough: bool) {
        let set = match operation {
            Operation::Nested(number) => Some(self.anchors(number)),
            _ => None,
        };
        let mut kept = base;
        self.post.steps += (self.post.work.len() - base) as u64;
        for at in base..self.post.work.len() {
            let element = self.post.work[at];
            let passes = match set {
                Some(set) => self.post.sets.contains(set, element),
                None => self.passes(operation, element),
            };
            if passes {
                self.post.work[kept] = element;
                kept += 1;
                if is_one_enough {
                    break;
                }
            }
        }
        self.post.work.truncate(kept);
    }

    fn position_passes(&self, positions: Slice, position: u32) -> bool {
        let position = f64::from(position);
        positions.numbers().all(|number| {
            let (comparison, constant) = self.plan.position(number);
            comparison.holds(position, constant)
        })
    }

    /// A condition that one element decides.
    fn passes(&mut self, operation: Operation, element: u32) -> bool {
        match operation {
            Operation::OrdinalOfAny(positions) => {
                self.position_passes(positions, self.post.index.ordinal_of_any(element))
            }
            Operation::OrdinalOfName(positions) => {
                self.position_passes(positions, self.post.index.ordinal_of_name(element))
            }
            Operation::Attribute(test, compare) => self.attribute_passes(element, test, compare),
            Operation::Text(compare) => self.text_passes(element, compare),
            Operation::Value(compare) => self.value_passes(element, compare),
            Operation::Never => false,
            Operation::Position(_) | Operation::Nested(_) => {
                unreachable!("decided for lists, not for one element")
            }
        }
    }

    /// One value. Cost: at most its length.
    #[inline]
    fn span_passes(&self, span: Span, ask: Ask<TextRange>) -> bool {
        self.with_text(ask).holds(self.message.bytes(span))
    }

    #[inline]
    fn with_text(&self, ask: Ask<TextRange>) -> Ask<&'a [u8]> {
        let plan = self.plan;
        ask.map(|range| plan.text(range))
    }

    #[inline]
    fn attribute_passes(&mut self, element: u32, test: TestNumber, ask: Ask<TextRange>) -> bool {
        let tree = self.message.tree;
        let start = tree.attribute_start[element as usize] as usize;
        let end = tree.attribute_start[element as usize + 1] as usize;
        let wanted = self.wanted(test);
        if !matches!(wanted, Wanted::One(_)) {
            self.post.steps += (end - start) as u64;
        }
        let accepts = |at: usize| self.span_passes(tree.attribute_value[at], ask);
        match wanted {
            // An expanded name occurs once in an element.
            Wanted::One(id) => tree.attribute_name[start..end]
                .iter()
                .position(|&name| name == id)
                .is_some_and(|at| accepts(start + at)),
            wanted => (start..end)
                .any(|at| self.name_passes(wanted, tree.attribute_name[at]) && accepts(at)),
        }
    }

    /// Some text node child. Walks from child element to child element, so that text deeper down
    /// is stepped over.
    fn text_passes(&self, element: u32, ask: Ask<TextRange>) -> bool {
        let tree = self.message.tree;
        let accepts = |texts: std::ops::Range<u32>| {
            tree.text_value[texts.start as usize..texts.end as usize]
                .iter()
                .any(|&span| self.span_passes(span, ask))
        };
        let mut from = tree.text_start[element as usize];
        let end = tree.text_end[element as usize];
        let mut child = element + 1;
        while from < end && child < tree.element_end[element as usize] {
            if accepts(from..tree.text_start[child as usize]) {
                return true;
            }
            from = tree.text_end[child as usize];
            child = tree.element_end[child as usize];
        }
        accepts(from..end)
    }

    fn value_passes(&mut self, element: u32, ask: Ask<TextRange>) -> bool {
        let tree = self.message.tree;
        let start = tree.text_start[element as usize];
        let end = tree.text_end[element as usize];
        match self.with_text(ask) {
            Ask::Exists => true,
            Ask::Text(Comparison::Eq, literal) => self.value_is(start, end, literal),
            Ask::Text(Comparison::Ne, literal) => !self.value_is(start, end, literal),
            Ask::StartsWith(literal) => self.value_starts_with(start, end, literal),
            Ask::Contains(literal) => {
                let spans = &tree.text_value[start as usize..end as usize];
                if let [span] = spans {
                    return self.span_passes(*span, ask);
                }
                self.post.texts.contains(self.message, start..end, literal)
            }
            Ask::CastOneOf(set) => {
                let number = self.post.numbers.of_texts(self.message, start..end, Notation::Double);
                values::has_number(set, number)
            }
            ask => match ask.numeric() {
                Some((notation, comparison, constant)) => {
                    let value = self.post.numbers.of_texts(self.message, start..end, notation);
                    comparison.holds(value, constant)
                }
                None => ask.holds(self.post.texts.value(self.message, start..end)),
            },
        }
    }

    /// Compares piece by piece. Cost: at most the length of the literal.
    fn value_starts_with(&self, start: u32, end: u32, literal: &[u8]) -> bool {
        let mut rest = literal;
        for &span in &self.message.tree.text_value[start as usize..end as usize] {
            let piece = self.message.bytes(span);
            if piece.len() >= rest.len() {
                return piece.starts_with(rest);
            }
            match rest.strip_prefix(piece) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        rest.is_empty()
    }

    /// Compares piece by piece. Cost: at most the length of the literal.
    fn value_is(&self, start: u32, end: u32, literal: &[u8]) -> bool {
        let mut rest = literal;
        for &span in &self.message.tree.text_value[start as usize..end as usize] {
            match rest.strip_prefix(self.message.bytes(span)) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Arrays;
    use super::*;
    use crate::language::query::ast::NameTest;
    use crate::xml::parser::{Door, Limits};

    /// The plan of `/*` with one condition on its element.
    fn plan_of(ask: Ask<&str>, operation: fn(TestNumber, Ask<TextRange>) -> Operation) -> Plan {
        let mut arrays = Arrays::default();
        let x = NameTest::Name { uri: "".into(), local: "x".into() };
        let test = arrays.add_test(Named::Attribute, &x);
        let ask = ask.map(|text| arrays.add_text(text));
        arrays.operations.push(operation(test, ask));
        let operations = Slice { start: 0, end: 1 };
        arrays.checks.push(Check {
            reach: Reach::Up(0),
            test: ANY,
            operations,
            by_siblings: false,
        });
        arrays.into_plan(Slice { start: 0, end: 1 })
    }

    #[test]
    fn each_way_of_comparing_is_that_of_the_value_wherever_it_lies() {
        let comparisons = || Comparison::ALL.into_iter();
        let sets = [Ask::OneOf("1\u{0}10\u{0}9x\u{0}"), Ask::CastOneOf("10\u{0}100\u{0}")];
        let asks: Vec<Ask<&str>> = [Ask::Exists, Ask::StartsWith("10"), Ask::Contains("0")]
            .into_iter()
            .chain(sets)
            .chain(comparisons().map(|comparison| Ask::Text(comparison, "10")))
            .chain(comparisons().map(|comparison| Ask::Number(comparison, 10.0)))
            .chain(comparisons().map(|comparison| Ask::Cast(comparison, 10.0)))
            .collect();
        let (mut door, mut post) = (Door::new(Limits::default()), PostProcessor::default());
        for pieces in [["10", ""], ["1", "0"], ["1", "e1"], ["+1", "1"], ["9", "x"], ["1", "00"]] {
            let value = pieces.concat();
            let source = format!("<a x='{value}'>{}<b>{}</b></a>", pieces[0], pieces[1]);
            let parsed = door.parse(source.as_bytes(), None).expect("it is well formed");
            let mut holds = |plan: Plan| {
                post.begin_message();
                plan.holds(parsed.message, parsed.names, &[0], &mut post)
            };
            for &ask in &asks {
                let of_attribute = holds(plan_of(ask, Operation::Attribute));
                assert_eq!(of_attribute, ask.holds(value.as_bytes()), "{ask:?} of {value}");
                let of_text = holds(plan_of(ask, |_, ask| Operation::Text(ask)));
                assert_eq!(of_text, ask.holds(pieces[0].as_bytes()), "{ask:?} of {}", pieces[0]);
                let of_value = holds(plan_of(ask, |_, ask| Operation::Value(ask)));
                assert_eq!(of_value, ask.holds(value.as_bytes()), "{ask:?} of {pieces:?}");
            }
        }
    }
}
