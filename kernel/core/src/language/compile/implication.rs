//! What comparisons of one value with constants say together: can they hold, what do they imply?
//!
//! A value is a string, read as a number where XPath 1.0 does (3.4), or cast to one as XQuery does. A cast reads every
//! number of XPath as XPath does, and further texts. Every answer is sound: what is said to be impossible is
//! impossible, what is said to be implied is implied.

use super::spine::Compare;
use crate::language::comparison::Comparison;
use crate::language::numbers::{Notation, is_blank, number};
use crate::language::query::{Constant, Operator};
use crate::language::values::Values;

/// Whether a whole number from `least` on passes all comparisons: from 1 on for a position, from 0 on for a count.
pub fn can_be_count(known: &[(Comparison, f64)], least: f64) -> bool {
    if known.is_empty() {
        return true;
    }
    let mut interval = Interval::default();
    for &(operator, constant) in known {
        interval = interval.cut(operator, constant);
    }
    if interval.low < least {
        interval = interval.cut(Comparison::Ge, least);
    }
    let first = if interval.low_open { interval.low.floor() } else { interval.low.ceil() };
    let skipped = usize::from(interval.low_open);
    // Every excluded number can cost one candidate, no more.
    (0..=interval.holes.len()).any(|at| interval.has(first + (at + skipped) as f64))
}

/// Whether every whole number from `least` on compares as asked.
pub fn is_any_count(operator: Comparison, constant: f64, least: f64) -> bool {
    match operator {
        Comparison::Gt | Comparison::Ge => operator.holds(least, constant),
        Comparison::Ne => constant.fract() != 0.0 || constant < least,
        _ => false,
    }
}

/// Numbers between two bounds but for some; NaN is never among them.
#[derive(Clone, Debug)]
struct Interval {
    low: f64,
    /// The bound itself is outside.
    low_open: bool,
    high: f64,
    high_open: bool,
    /// Numbers that are excluded.
    holes: Vec<f64>,
}

impl Default for Interval {
    fn default() -> Self {
        let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        Interval { low, low_open: false, high, high_open: false, holes: Vec::new() }
    }
}

impl Interval {
    fn has(&self, number: f64) -> bool {
        let above = number > self.low || (number == self.low && !self.low_open);
        let below = number < self.high || (number == self.high && !self.high_open);
        above && below && !self.holes.contains(&number)
    }

    fn is_empty(&self) -> bool {
        if self.low == self.high { !self.has(self.low) } else { self.low > self.high }
    }

    /// The part that compares with a constant as asked.
    fn cut(&self, operator: Comparison, constant: f64) -> Interval {
        let mut cut = self.clone();
        if operator == Comparison::Ne {
            cut.holes.push(constant);
            return cut;
        }
        if matches!(operator, Comparison::Eq | Comparison::Ge | Comparison::Gt) {
            let is_open = operator == Comparison::Gt;
            if constant > cut.low || (constant == cut.low && is_open) {
                (cut.low, cut.low_open) = (constant, is_open);
            }
        }
        if matches!(operator, Comparison::Eq | Comparison::Le | Comparison::Lt) {
            let is_open = operator == Comparison::Lt;
            if constant < cut.high || (constant == cut.high && is_open) {
                (cut.high, cut.high_open) = (constant, is_open);
            }
        }
        cut
    }
}

/// What is known of a value that exists.
#[derive(Clone, Debug, Default)]
pub struct Facts<'t> {
    known: Vec<Compare<'t>>,
    /// The string that it is, if that is known.
    exact: Option<String>,
    /// The numbers that it may be, if it must be a number; else those it may be if it is one.
    interval: Interval,
    /// It must be a number.
    is_number: bool,
    /// The same of the number that it is cast to; a part of it is `interval`.
    cast: Interval,
    /// It must be cast to a number.
    is_cast: bool,
    /// What it begins with.
    prefix: String,
}

impl<'t> Facts<'t> {
    /// The facts of a value that passes some comparisons; none if no value can.
    pub fn of(known: impl IntoIterator<Item = (Operator, Constant<'t>)>) -> Option<Facts<'t>> {
        let mut facts = Facts::default();
        for (operator, constant) in known {
            // An order compares numbers, and a text that is none has no order.
            let constant = match (operator, constant) {
                (Operator::Compare(comparison), Constant::String(text))
                    if !matches!(comparison, Comparison::Eq | Comparison::Ne) =>
                {
                    let value = number(text.as_bytes());
                    if value.is_nan() {
                        return None;
                    }
                    Constant::Number(value)
                }
                (_, constant) => constant,
            };
            facts.known.push((operator, constant));
        }
        for (operator, constant) in &facts.known {
            match (operator, constant) {
                (Operator::StartsWith, Constant::String(start)) => {
                    let is_longer = start.len() > facts.prefix.len();
                    let (longer, shorter) = if is_longer {
                        (&**start, &*facts.prefix)
                    } else {
                        (&*facts.prefix, &**start)
                    };
                    if !longer.starts_with(shorter) {
                        return None;
                    }
                    if is_longer {
                        facts.prefix = start.clone().into_owned();
                    }
                }
                (Operator::Compare(Comparison::Eq), Constant::String(text)) => {
                    facts.exact = Some(text.clone().into_owned());
                }
                (&Operator::Compare(comparison), &Constant::Number(value)) => {
                    facts.interval = facts.interval.cut(comparison, value);
                    facts.is_number |= comparison != Comparison::Ne;
                }
                (&Operator::Compare(comparison), &Constant::Double(value)) => {
                    // What is a number is cast to that number.
                    facts.interval = facts.interval.cut(comparison, value);
                    facts.cast = facts.cast.cut(comparison, value);
                    facts.is_cast |= comparison != Comparison::Ne;
                }
                (_, Constant::Numbers(values) | Constant::Doubles(values)) => {
                    let (least, most) = values.range();
                    let is_cast = constant.is_cast();
                    for (comparison, bound) in [(Comparison::Ge, least), (Comparison::Le, most)] {
                        facts.interval = facts.interval.cut(comparison, bound);
                        if is_cast {
                            facts.cast = facts.cast.cut(comparison, bound);
                        }
                    }
                    facts.is_number |= !is_cast;
                    facts.is_cast |= is_cast;
                }
                _ => {}
            }
        }
        let is_other = |exact: &String| !facts.known.iter().all(|compare| holds(exact, compare));
        if facts.exact.as_ref().is_some_and(is_other) {
            return None;
        }
        if facts.among().is_some_and(|mut strings| strings.next().is_none()) {
            return None;
        }
        let can_be = |must_be: bool, interval: &Interval, notation| {
            !must_be || (!interval.is_empty() && facts.can_be_number(notation))
        };
        let is_possible = can_be(facts.is_number, &facts.interval, Notation::XPath)
            && can_be(facts.is_cast, &facts.cast, Notation::Double);
        is_possible.then_some(facts)
    }

    /// Whether another comparison follows.
    pub fn imply(&self, wanted: &(Operator, Constant<'t>)) -> bool {
        if self.known.contains(wanted) {
            return true;
        }
        if let Some(exact) = &self.exact {
            return holds(exact, wanted);
        }
        if self.among().is_some_and(|mut strings| strings.all(|text| holds(text, wanted))) {
            return true;
        }
        let (operator, constant, notation) = match wanted {
            (Operator::StartsWith, Constant::String(text)) => {
                return self.prefix.starts_with(&**text);
            }
            (Operator::Contains, Constant::String(text)) => {
                let has = |known: &Compare<'t>| {
                    matches!(known, (Operator::Contains, Constant::String(part))
                        if part.contains(&**text))
                };
                return self.prefix.contains(&**text) || self.known.iter().any(has);
            }
            (Operator::Compare(Comparison::Eq), Constant::String(_)) => return false,
            (_, Constant::Numbers(values)) => return self.is_one_of(values, Notation::XPath),
            (_, Constant::Doubles(values)) => return self.is_one_of(values, Notation::Double),
            (Operator::Compare(Comparison::Ne), Constant::String(text)) => {
                return !self.known.iter().all(|compare| holds(text, compare));
            }
            (Operator::Compare(comparison), Constant::String(text)) => {
                (*comparison, number(text.as_bytes()), Notation::XPath)
            }
            (Operator::Compare(comparison), Constant::Number(value)) => {
                (*comparison, *value, Notation::XPath)
            }
            (Operator::Compare(comparison), Constant::Double(value)) => {
                (*comparison, *value, Notation::Double)
            }
            (Operator::Compare(comparison), Constant::Moment(kind, bound)) => {
                let of_type = self.known.iter().filter_map(|known| match known {
                    (Operator::Compare(known), Constant::Moment(of, bound)) if of == kind => {
                        Some((*known, *bound))
                    }
                    _ => None,
                });
                let mut is_known = false;
                let interval = of_type.fold(Interval::default(), |interval, (known, bound)| {
                    is_known = true;
                    interval.cut(known, bound)
                });
                return is_known && interval.cut(comparison.opposite(), *bound).is_empty();
            }
            (operator, Constant::Texts(fold, values)) => {
                // A pattern follows from no other one.
                let is_less = |known: &Compare<'t>| {
                    matches!(known, (way, Constant::Texts(of, less))
                        if way == operator && of == fold && values.has_all(less))
                };
                return self.known.iter().any(is_less);
            }
            _ => return false,
        };
        let (interval, is_number) = self.numbers(notation);
        let inside = interval.cut(operator.opposite(), constant);
        if operator == Comparison::Ne {
            // What is no number differs from every number.
            return inside.is_empty() || !self.can_be_number(notation);
        }
        is_number && inside.is_empty()
    }

    /// The strings that it may be, if it must be one of a set.
    fn among(&self) -> Option<impl Iterator<Item = &str>> {
        let values = self.known.iter().find_map(|(_, constant)| match constant {
            Constant::Strings(values) => Some(values),
            _ => None,
        })?;
        Some(values.iter().filter(|text| self.known.iter().all(|compare| holds(text, compare))))
    }

    /// The numbers that it may be, read so, and whether it must be one of them.
    fn numbers(&self, notation: Notation) -> (&Interval, bool) {
        match notation {
            // What must be a number is cast to that number.
            Notation::Double if !self.is_number => (&self.cast, self.is_cast),
            _ => (&self.interval, self.is_number),
        }
    }

    /// Whether it must be one of some numbers.
    fn is_one_of(&self, values: &Values<'_>, notation: Notation) -> bool {
        let (interval, is_number) = self.numbers(notation);
        let is_less = |constant: &Constant<'_>| match constant {
            Constant::Numbers(known) => values.has_all(known),
            Constant::Doubles(known) => notation == Notation::Double && values.has_all(known),
            _ => false,
        };
        self.known.iter().any(|(_, constant)| is_less(constant))
            || (is_number && interval.low == interval.high && values.has_number(interval.low))
    }

    /// Whether a value that has these parts can be a number; true where that is not clear.
    fn can_be_number(&self, notation: Notation) -> bool {
        let is_part = |text: &str| text.bytes().all(|byte| notation.has(byte));
        let begins = match notation {
            Notation::XPath => begins_number(self.prefix.as_bytes()),
            _ => is_part(&self.prefix),
        };
        begins
            && self.known.iter().all(|known| match known {
                (Operator::Contains, Constant::String(part)) => is_part(part),
                _ => true,
            })
    }
}

/// Whether a string compares with a constant as asked.
pub fn holds(value: &str, (operator, constant): &(Operator, Constant<'_>)) -> bool {
    match (operator, constant) {
        (operator, Constant::Texts(fold, texts)) => {
            let given = texts.text().as_bytes();
            operator.test().is_some_and(|test| test.holds(*fold, given, value.as_bytes()))
        }
        (Operator::Compare(Comparison::Eq), Constant::String(text)) => value == text,
        (Operator::Compare(Comparison::Ne), Constant::String(text)) => value != text,
        (Operator::StartsWith, Constant::String(text)) => value.starts_with(&**text),
        (Operator::Contains, Constant::String(text)) => value.contains(&**text),
        (Operator::Compare(comparison), Constant::String(text)) => {
            comparison.holds(number(value.as_bytes()), number(text.as_bytes()))
        }
        (Operator::Compare(comparison), Constant::Number(wanted)) => {
            comparison.holds(number(value.as_bytes()), *wanted)
        }
        (Operator::Compare(comparison), Constant::Double(wanted)) => {
            comparison.holds(Notation::Double.read(value.as_bytes()), *wanted)
        }
        (Operator::Compare(comparison), Constant::Moment(kind, wanted)) => {
            comparison.holds(Notation::of_moments(*kind).read(value.as_bytes()), *wanted)
        }
        (_, Constant::Strings(values)) => values.has(value.as_bytes()),
        (_, Constant::Numbers(values)) => values.has_number(Notation::XPath.read(value.as_bytes())),
        (_, Constant::Doubles(values)) => {
            values.has_number(Notation::Double.read(value.as_bytes()))
        }
        _ => false,
    }
}

/// Whether a text can be the beginning of a number.
fn begins_number(text: &[u8]) -> bool {
    let skipped = |text: &[u8], is_kept: &dyn Fn(u8) -> bool| {
        text.iter().position(|&byte| !is_kept(byte)).unwrap_or(text.len())
    };
    let text = &text[skipped(text, &is_blank)..];
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let whole = skipped(text, &|byte| byte.is_ascii_digit());
    let (mut digits, mut rest) = (whole, &text[whole..]);
    if let Some(after) = rest.strip_prefix(b".") {
        let decimals = skipped(after, &|byte| byte.is_ascii_digit());
        digits += decimals;
        rest = &after[decimals..];
    }
    rest.is_empty() || (digits > 0 && rest.iter().all(|&byte| is_blank(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [&str; 31] = [
        "", " ", "x", "3", " 3 ", "3.0", "+3", "3e0", "30e-1", "+3x", "5", "5.", "+5", "0.5e1",
        "-5", "4", "4e0", "1e3", "1000", "INF", "-INF", "+INF", "NaN", "0", "-0", "+0", "1e999",
        "e", "INFx", "0x3", "3 3",
    ];

    fn all_compares() -> Vec<Compare<'static>> {
        let mut compares = Vec::new();
        for operator in Comparison::ALL {
            for number in [3.0, 5.0, -5.0, 0.0, 4.0] {
                compares.push((Operator::Compare(operator), Constant::Number(number)));
                compares.push((Operator::Compare(operator), Constant::Double(number)));
            }
            for text in ["3", "+3", "3e0", "x", "INF", ""] {
                compares.push((Operator::Compare(operator), Constant::String(text.into())));
            }
        }
        for texts in
            [&["3", "+3"][..], &["3", "+3", "x"], &["x", ""], &["3e0", "+3", "5"], &["5", "4"]]
        {
            let values = Values::of(texts.iter().copied()).expect("not empty");
            compares.push((Operator::Compare(Comparison::Eq), Constant::Strings(values)));
        }
        for numbers in [&[3.0, 5.0][..], &[3.0, 4.0, 5.0], &[0.0, -5.0]] {
            let values = Values::of_numbers(numbers.iter().copied()).expect("finite");
            compares.push((Operator::Compare(Comparison::Eq), Constant::Numbers(values.clone())));
            compares.push((Operator::Compare(Comparison::Eq), Constant::Doubles(values)));
        }
        for text in ["+", "e", "3", "IN", "x", "-"] {
            compares.push((Operator::StartsWith, Constant::String(text.into())));
            compares.push((Operator::Contains, Constant::String(text.into())));
        }
        compares
    }

    /// The values among [`VALUES`] that pass.
    fn passing(compare: &Compare<'_>) -> u64 {
        let bits = VALUES.iter().enumerate();
        bits.fold(0, |bits, (at, value)| bits | u64::from(holds(value, compare)) << at)
    }

    #[test]
    fn what_is_implied_holds_and_what_is_impossible_has_no_value() {
        let compares = all_compares();
        let passing: Vec<u64> = compares.iter().map(passing).collect();
        let (mut implied, mut impossible) = (0, 0);
        for (first, one) in compares.iter().enumerate() {
            for (second, other) in compares.iter().enumerate().skip(first) {
                let left = passing[first] & passing[second];
                let Some(facts) = Facts::of([one.clone(), other.clone()]) else {
                    assert_eq!(left, 0, "{one:?} {other:?}");
                    impossible += 1;
                    continue;
                };
                for (wanted, holding) in compares.iter().zip(&passing) {
                    if facts.imply(wanted) {
                        assert_eq!(left & !holding, 0, "{one:?} {other:?} imply {wanted:?}");
                        implied += 1;
                    }
                }
            }
        }
        assert!(implied > 10_000 && impossible > 400, "{implied} {impossible}");
    }

    #[test]
    fn casts_follow_from_numbers_of_xpath_and_from_narrower_casts() {
        let compare = |comparison, constant| (Operator::Compare(comparison), constant);
        let (number, double) = (Constant::Number, Constant::Double);
        use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
        let strings = |texts: &[&str]| {
            Constant::Strings(Values::of(texts.iter().copied()).expect("not empty"))
        };
        let doubles = |numbers: &[f64]| {
            Constant::Doubles(Values::of_numbers(numbers.iter().copied()).expect("finite"))
        };
        let numbers = |numbers: &[f64]| {
            Constant::Numbers(Values::of_numbers(numbers.iter().copied()).expect("finite"))
        };
        let begins = (Operator::StartsWith, Constant::String("AB".into()));
        for (known, wanted, follows) in [
            (compare(Eq, strings(&["A", "B"])), compare(Eq, strings(&["A", "B", "C"])), true),
            (compare(Eq, strings(&["A", "B", "C"])), compare(Eq, strings(&["A", "B"])), false),
            (compare(Eq, Constant::String("A".into())), compare(Eq, strings(&["A", "B"])), true),
            (compare(Eq, strings(&["A", "B"])), compare(Eq, Constant::String("A".into())), false),
            (compare(Eq, strings(&["A", "B"])), compare(Ne, Constant::String("C".into())), true),
            (compare(Eq, strings(&["ABC", "ABD"])), begins.clone(), true),
            (compare(Eq, strings(&["3", "+3"])), compare(Eq, double(3.0)), true),
            (compare(Eq, strings(&["3", "4"])), compare(Eq, doubles(&[4.0, 3.0, 5.0])), true),
            (compare(Eq, doubles(&[4.0, 3.0])), compare(Eq, doubles(&[4.0, 3.0, 5.0])), true),
            (compare(Eq, numbers(&[4.0, 3.0])), compare(Eq, numbers(&[4.0, 3.0, 5.0])), true),
            (compare(Eq, numbers(&[4.0, 3.0])), compare(Eq, doubles(&[4.0, 3.0, 5.0])), true),
            (compare(Eq, doubles(&[4.0, 3.0])), compare(Eq, numbers(&[4.0, 3.0, 5.0])), false),
            (compare(Eq, number(3.0)), compare(Eq, numbers(&[4.0, 3.0])), true),
            (compare(Eq, double(3.0)), compare(Eq, numbers(&[4.0, 3.0])), false),
            (compare(Eq, numbers(&[4.0, 3.0])), compare(Gt, double(2.0)), true),
            (compare(Eq, strings(&["3", "4"])), compare(Eq, numbers(&[4.0, 3.0])), true),
            (compare(Eq, strings(&["3", "+4"])), compare(Eq, numbers(&[4.0, 3.0])), false),
            (compare(Eq, doubles(&[4.0, 3.0])), compare(Gt, double(2.0)), true),
            (compare(Eq, doubles(&[4.0, 3.0])), compare(Eq, double(3.0)), false),
            (compare(Eq, number(3.0)), compare(Eq, doubles(&[4.0, 3.0])), true),
            (compare(Eq, number(3.0)), compare(Eq, double(3.0)), true),
            (compare(Eq, double(3.0)), compare(Eq, number(3.0)), false),
            (compare(Gt, number(3.0)), compare(Ge, double(3.0)), true),
            (compare(Gt, double(5.0)), compare(Gt, double(3.0)), true),
            (compare(Gt, double(3.0)), compare(Gt, double(5.0)), false),
            (compare(Le, double(3.0)), compare(Lt, double(5.0)), true),
            (compare(Eq, double(3.0)), compare(Ne, double(5.0)), true),
            (compare(Eq, double(3.0)), compare(Ne, number(5.0)), true),
            (compare(Ne, double(3.0)), compare(Ne, number(3.0)), true),
            (compare(Ne, number(3.0)), compare(Ne, double(3.0)), false),
            (compare(Eq, Constant::String("+3".into())), compare(Eq, double(3.0)), true),
            (compare(Eq, Constant::String("+3".into())), compare(Eq, number(3.0)), false),
            (compare(Eq, Constant::String("x".into())), compare(Ne, double(3.0)), true),
            ((Operator::StartsWith, Constant::String("x".into())), compare(Ne, double(3.0)), true),
        ] {
            let facts = Facts::of([known.clone()]).expect("it can hold");
            assert_eq!(facts.imply(&wanted), follows, "{known:?} {wanted:?}");
        }
        assert!(Facts::of([compare(Lt, double(3.0)), compare(Gt, double(3.0))]).is_none());
        assert!(Facts::of([compare(Eq, double(3.0)), compare(Eq, number(5.0))]).is_none());
        assert!(Facts::of([compare(Ne, double(3.0)), compare(Eq, number(3.0))]).is_none());
    }
}
