//! Random documents and queries over few names and values, so that they meet often.

use crate::document::Document;
use crate::oracle::{DATES, PATTERNS};
use pathcast_core::language::comparison::Comparison;
use pathcast_core::language::folding::Fold;
use pathcast_core::language::query::ast::{
    Axis, Condition, Constant, NameTest, Operator, Stage, Step,
};
use pathcast_core::language::types::Type;
use pathcast_core::language::values::Values;

/// SplitMix64: the same sequence for the same seed, everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const LOCALS: [&str; 4] = ["a", "b", "c", "d"];
const URIS: [&str; 3] = ["", "", "urn:u"];
const VALUES: [&str; 24] = [
    "0",
    "-0",
    "1",
    "2",
    "3",
    "10",
    "-1",
    "2.5",
    " 2 ",
    "",
    "x",
    "y",
    "xy",
    "1e1",
    "0.5",
    "+1",
    "INF",
    "-INF",
    "NaN",
    "0x1",
    "1970-01-01",
    " 1970-01-02Z ",
    "1970-01-01-14:00",
    "9999-12-31+14:00",
];
const TEXTS: [&str; 14] =
    ["1", "2", "3", "x", "y", "xy", " ", "\n ", "2.", "-", "+", "e1", "INF", "1E0"];

/// A document of up to `elements_max` elements; shapes vary from chains to flat lists.
pub fn document(random: &mut Random, elements_max: usize) -> Document {
    let mut document = Document::default();
    let names = 1 + random.below(LOCALS.len());
    let depth_bias = random.pick(&[0, 20, 50, 80, 97]);
    let text_bias = random.pick(&[0, 30, 60]);
    let attribute_bias = random.pick(&[10, 40, 70]);
    let elements = 1 + random.below(elements_max);
    let mut last = None;
    for number in 0..elements {
        let parent = match last {
            None => None,
            Some(last) if random.chance(depth_bias) => Some(last),
            Some(_) => Some(random.below(number)),
        };
        if let Some(parent) = parent
            && random.chance(text_bias)
        {
            document.text(parent, random.pick(&TEXTS));
        }
        let local = LOCALS[random.below(names)];
        let element = document.element(parent, random.pick(&URIS), local);
        for attribute in ["x", "y", "z"] {
            if random.chance(attribute_bias) {
                let uri = if random.chance(20) { "urn:u" } else { "" };
                let value = random.pick(&VALUES).to_owned();
                document.nodes[element].attributes.push((uri, attribute, value));
            }
        }
        for _ in 0..2 {
            if random.chance(text_bias) {
                document.text(element, random.pick(&TEXTS));
            }
        }
        last = Some(element);
    }
    document
}

/// A query in normal form (wildcard runs are left as they come).
pub fn query(random: &mut Random) -> Vec<Step<'static>> {
    let conditions = random.pick(&[15, 35, 60]);
    path(random, 6, 3, conditions)
}

fn path(
    random: &mut Random,
    steps_max: usize,
    nesting: usize,
    conditions: usize,
) -> Vec<Step<'static>> {
    let length = 1 + random.below(steps_max);
    let descendants = random.pick(&[0, 30, 70, 100]);
    (0..length)
        .map(|at| {
            let mut axis = if random.chance(descendants) { Axis::Descendant } else { Axis::Child };
            let mut test = element_test(random);
            if at + 1 == length && random.chance(10) {
                axis = Axis::DescendantOrSelf;
                test = NameTest::Any;
            }
            let mut stages = Vec::new();
            if random.chance(conditions) {
                for number in 0..random.pick(&[1, 1, 1, 2, 3]) {
                    let may_count = axis != Axis::DescendantOrSelf;
                    if number == 0 || may_count {
                        stages.push(stage(random, nesting, conditions, may_count, number > 0));
                    }
                }
            }
            Step { axis, test, stages }
        })
        .collect()
}

fn stage(
    random: &mut Random,
    nesting: usize,
    conditions: usize,
    may_count: bool,
    must_count: bool,
) -> Stage<'static> {
    let positions = if must_count || (may_count && random.chance(35)) {
        (0..random.pick(&[1, 1, 1, 2])).map(|_| (comparison(random), position(random))).collect()
    } else {
        vec![]
    };
    let count =
        if positions.is_empty() { random.pick(&[1, 1, 2]) } else { random.pick(&[0, 0, 1]) };
    let conditions = (0..count).map(|_| condition(random, nesting, conditions)).collect();
    Stage { positions, conditions }
}

fn position(random: &mut Random) -> f64 {
    random.pick(&[1.0, 1.0, 2.0, 2.0, 3.0, 0.0, 1.5, -1.0])
}

fn condition(random: &mut Random, nesting: usize, conditions: usize) -> Condition<'static> {
    match random.below(if nesting > 0 { 10 } else { 7 }) {
        0 if random.chance(20) => {
            let (_, bound) = random.pick(&DATES);
            let operator = random.pick(&[Comparison::Eq, Comparison::Lt, Comparison::Ge]);
            let compare = (Operator::Compare(operator), Constant::Moment(Type::Date, bound));
            Condition::Attribute { test: attribute_test(random), compare: Some(compare) }
        }
        0..=3 => Condition::Attribute { test: attribute_test(random), compare: compare(random) },
        4 => Condition::Text(compare(random)),
        5 | 6 => {
            let (operator, constant) = comparison_with_constant(random);
            Condition::Value(operator, constant)
        }
        _ => Condition::Nested(path(random, 3, nesting - 1, conditions)),
    }
}

fn compare(random: &mut Random) -> Option<(Operator, Constant<'static>)> {
    if random.chance(35) { None } else { Some(comparison_with_constant(random)) }
}

fn comparison_with_constant(random: &mut Random) -> (Operator, Constant<'static>) {
    if random.chance(20) {
        return texts(random);
    }
    if !random.chance(20) {
        return (Operator::Compare(comparison(random)), constant(random));
    }
    let count = 2 + random.below(3);
    let set = if random.chance(50) {
        let from = random.below(7);
        let texts = ["1", "2", "x", "xy", "", " 2 ", "12", "x1", "10", "a"];
        Values::of(texts[from..].iter().copied().take(count)).map(Constant::Strings)
    } else {
        let from = random.below(4);
        let numbers = [1.0, 2.0, 2.5, 10.0, -1.0, 0.0, 12.0];
        let made = if random.chance(50) { Constant::Numbers } else { Constant::Doubles };
        Values::of_numbers(numbers[from..].iter().copied().take(count)).map(made)
    };
    (Operator::Compare(Comparison::Eq), set.expect("there are some"))
}

/// A test of texts that are folded, or of several texts, or of patterns.
fn texts(random: &mut Random) -> (Operator, Constant<'static>) {
    let of = |texts: &[&'static str]| Values::of(texts.iter().copied()).expect("there are some");
    if random.chance(40) {
        let from = random.below(PATTERNS.len());
        let patterns = PATTERNS[from..].iter().take(random.pick(&[1, 1, 2]));
        let patterns: Vec<&str> = patterns.map(|(pattern, _)| *pattern).collect();
        return (Operator::Matches, Constant::Texts(Fold::None, of(&patterns)));
    }
    let fold = random.pick(&[Fold::Lower, Fold::Upper, Fold::Ascii]);
    let operator =
        random.pick(&[Operator::Compare(Comparison::Eq), Operator::StartsWith, Operator::Contains]);
    let from = random.below(6);
    let texts = &["x", "X", "1", "x1", "XY", "12", "X1", "2"][from..from + random.pick(&[1, 1, 2])];
    (operator, Constant::Texts(fold, of(texts)))
}

fn comparison(random: &mut Random) -> Comparison {
    use Comparison::*;
    random.pick(&[Eq, Eq, Ne, Lt, Le, Gt, Ge])
}

fn constant(random: &mut Random) -> Constant<'static> {
    if random.chance(50) {
        let number = random.pick(&[1.0, 2.0, 2.5, 10.0, -1.0, 0.0, 12.0]);
        if random.chance(50) { Constant::Number(number) } else { Constant::Double(number) }
    } else {
        Constant::String(random.pick(&["1", "2", "x", "xy", "", " 2 ", "12", "x1"]).into())
    }
}

fn element_test(random: &mut Random) -> NameTest<'static> {
    let local = random.pick(&["a", "a", "b", "b", "c", "d"]).into();
    match random.below(12) {
        0..=2 => NameTest::Any,
        3 => NameTest::AnyIn { uri: random.pick(&["", "urn:u"]).into() },
        4 => NameTest::AnyNamespace { local },
        5 => NameTest::Name { uri: "urn:u".into(), local },
        _ => NameTest::Name { uri: "".into(), local },
    }
}

fn attribute_test(random: &mut Random) -> NameTest<'static> {
    let local = random.pick(&["x", "y", "z"]).into();
    match random.below(10) {
        0 => NameTest::Any,
        1 => NameTest::AnyIn { uri: random.pick(&["", "urn:u"]).into() },
        2 => NameTest::AnyNamespace { local },
        3 => NameTest::Name { uri: "urn:u".into(), local },
        _ => NameTest::Name { uri: "".into(), local },
    }
}
