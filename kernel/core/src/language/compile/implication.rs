//! What comparisons of one value with constants say together: can they hold, what do they imply?
//!
//! A value is a string, read as a number where XPath 1.0 does (3.4). Every answer is sound: what is said to be
//! impossible is impossible, what is said to be implied is implied.

use super::spine::Compare;
use crate::language::comparison::Comparison;
use crate::language::numbers::{is_blank, number};
use crate::language::query::{Constant, Operator};

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
                _ => {}
            }
        }
        let is_other = |exact: &String| !facts.known.iter().all(|compare| holds(exact, compare));
        if facts.exact.as_ref().is_some_and(is_other) {
            return None;
        }
        let is_possible = !facts.is_number || (!facts.interval.is_empty() && facts.can_be_number());
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
        let (operator, constant) = match wanted {
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
            (Operator::Compare(Comparison::Ne), Constant::String(text)) => {
                return !self.known.iter().all(|compare| holds(text, compare));
            }
            (Operator::Compare(comparison), Constant::String(text)) => {
                (*comparison, number(text.as_bytes()))
            }
            (Operator::Compare(comparison), Constant::Number(value)) => (*comparison, *value),
            _ => return false,
        };
        let inside = self.interval.cut(operator.opposite(), constant);
        if operator == Comparison::Ne {
            // What is no number differs from every number.
            return inside.is_empty() || !self.can_be_number();
        }
        self.is_number && inside.is_empty()
    }

    /// Whether a value that has these parts can be a number; true where that is not clear.
    fn can_be_number(&self) -> bool {
        let is_part = |byte: &u8| byte.is_ascii_digit() || is_blank(*byte) || b"-.".contains(byte);
        begins_number(self.prefix.as_bytes())
            && self.known.iter().all(|known| match known {
                (Operator::Contains, Constant::String(part)) => part.as_bytes().iter().all(is_part),
                _ => true,
            })
    }
}

/// Whether a string compares with a constant as asked.
pub fn holds(value: &str, (operator, constant): &(Operator, Constant<'_>)) -> bool {
    match (operator, constant) {
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
