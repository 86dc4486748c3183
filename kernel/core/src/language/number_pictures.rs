//! Numbers as a picture shows them (XQuery and XPath Functions and Operators 3.1, 4.7), in the default decimal format.
//!
//! A decimal or a double is the shortest decimal that stands for it; halves are rounded to the even digit. Pictures with
//! an exponent are refused by name.

/// Why a text is no picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberPictureFault {
    /// FODF1310
    Syntax,
    /// An exponent.
    Exponent,
}

/// How numbers are written, negative ones too.
#[derive(Clone, Debug)]
pub(crate) struct NumberPicture {
    positive: Part,
    negative: Option<Part>,
}

/// One half of a picture.
#[derive(Clone, Debug, Default)]
struct Part {
    prefix: String,
    suffix: String,
    /// Digits by which the point moves: of percent two, of per mille three.
    shift: usize,
    whole_min: usize,
    fraction_min: usize,
    fraction_max: usize,
    /// Digits of the whole part that stand after each comma.
    whole_groups: Vec<usize>,
    /// The digits of each group, if there are commas between all of them.
    group: Option<usize>,
    /// Digits of the fraction that stand before each comma.
    fraction_groups: Vec<usize>,
}

impl NumberPicture {
    /// Reads a picture.
    pub(crate) fn read(text: &str) -> Result<NumberPicture, NumberPictureFault> {
        let mut parts = text.split(';').map(Part::read);
        let positive = parts.next().ok_or(NumberPictureFault::Syntax)??;
        let negative = parts.next().transpose()?;
        match parts.next() {
            None => Ok(NumberPicture { positive, negative }),
            Some(_) => Err(NumberPictureFault::Syntax),
        }
    }

    /// Writes a number, whose digits are `digits` if it is finite.
    pub(crate) fn write(&self, is_negative: bool, digits: Digits<'_>) -> String {
        if digits == Digits::NaN {
            return "NaN".to_owned();
        }
        let (sign, part) = match (is_negative, &self.negative) {
            (true, Some(negative)) => ("", negative),
            (true, None) => ("-", &self.positive),
            (false, _) => ("", &self.positive),
        };
        let shown = match digits {
            Digits::Finite(digits) => part.digits(digits),
            _ => "Infinity".to_owned(),
        };
        [sign, &part.prefix, &shown, &part.suffix].concat()
    }
}

/// The absolute value of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digits<'d> {
    NaN,
    Infinite,
    /// Digits, with a point among them or without.
    Finite(&'d str),
}

impl Part {
    fn read(text: &str) -> Result<Part, NumberPictureFault> {
        let syntax = Err(NumberPictureFault::Syntax);
        let is_active = |c: char| matches!(c, '.' | ',' | '#' | '0'..='9');
        let Some(start) = text.find(is_active) else { return syntax };
        let end = text.rfind(is_active).map_or(start, |at| at + 1);
        let (prefix, suffix) = (&text[..start], &text[end..]);
        let inside = &text[start..end];
        if inside.matches('e').count() == 1 && inside.chars().all(|c| is_active(c) || c == 'e') {
            return Err(NumberPictureFault::Exponent);
        }
        let marks = prefix.chars().chain(suffix.chars());
        let shift = match marks.filter(|c| matches!(c, '%' | '\u{2030}')).collect::<Vec<_>>()[..] {
            [] => 0,
            ['%'] => 2,
            ['\u{2030}'] => 3,
            _ => return syntax,
        };
        let (whole, fraction) = inside.split_once('.').unwrap_or((inside, ""));
        let has_point = whole.len() < inside.len();
        let is_wrong = !inside.chars().all(is_active)
            || fraction.contains('.')
            || inside.contains(",,")
            || whole.ends_with(',')
            || fraction.starts_with(',')
            || (has_point && fraction.ends_with(','))
            || !inside.contains(|c: char| c == '#' || c.is_ascii_digit())
            || whole.trim_start_matches(['#', ',']).contains('#')
            || fraction.trim_end_matches(['#', ',']).contains('#');
        if is_wrong {
            return syntax;
        }
        let places = |text: &str| text.bytes().filter(|&byte| byte != b',').count();
        let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
        let commas =
            |text: &str| -> Vec<usize> { text.match_indices(',').map(|(at, _)| at).collect() };
        let whole_groups: Vec<usize> =
            commas(whole).into_iter().rev().map(|at| places(&whole[at..])).collect();
        let fraction_groups = commas(fraction).into_iter().map(|at| places(&fraction[..at]));
        let (mut whole_min, fraction_max) = (digits(whole), places(fraction));
        let mut fraction_min = digits(fraction);
        if whole_min == 0 && fraction_max == 0 {
            whole_min = 1;
        }
        if whole_min == 0 && fraction_min == 0 {
            fraction_min = 1;
        }
        let size = places(whole);
        let group = whole_groups.first().copied().filter(|&group| {
            // A comma may not begin the whole part of a picture that ends there.
            let every = (1..).map(|n| n * group).take_while(|&at| at < size.max(1));
            every.eq(whole_groups.iter().copied().filter(|&at| at < size))
                && whole_groups.iter().all(|at| at % group == 0)
        });
        Ok(Part {
            prefix: prefix.to_owned(),
            suffix: suffix.to_owned(),
            shift,
            whole_min,
            fraction_min,
            fraction_max,
            whole_groups,
            group,
            fraction_groups: fraction_groups.collect(),
        })
    }

    /// The digits of a number, rounded and in groups.
    fn digits(&self, written: &str) -> String {
        let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
        let mut all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let mut point = whole.len() + self.shift;
        all.resize(all.len().max(point), b'0');
        let end = point + self.fraction_max;
        if all.len() > end {
            let rest = all.split_off(end);
            let is_odd = all.last().is_some_and(|last| last % 2 == 1);
            let is_up = match rest[0] {
                b'5' => rest[1..].iter().any(|&digit| digit != b'0') || is_odd,
                digit => digit > b'5',
            };
            if is_up && add_one(&mut all) {
                point += 1;
            }
        }
        let fraction_end = all.len() - all.iter().rev().take_while(|&&digit| digit == b'0').count();
        let fraction_end = fraction_end.max(point);
        let mut fraction = all[point..fraction_end].to_vec();
        fraction.resize(fraction.len().max(self.fraction_min), b'0');
        let zeros = all[..point].iter().take_while(|&&digit| digit == b'0').count();
        let whole = &all[zeros..point];
        let missing = self.whole_min.saturating_sub(whole.len());
        let size = whole.len() + missing;
        let mut out = String::new();
        let padded = std::iter::repeat_n(&b'0', missing).chain(whole);
        for (at, &digit) in padded.enumerate() {
            let after = size - at;
            if at > 0 && self.has_comma(after) {
                out.push(',');
            }
            out.push(char::from(digit));
        }
        if !fraction.is_empty() {
            out.push('.');
        }
        for (at, &digit) in fraction.iter().enumerate() {
            if self.fraction_groups.contains(&at) {
                out.push(',');
            }
            out.push(char::from(digit));
        }
        out
    }

    /// Whether a comma stands before so many digits of the whole part.
    fn has_comma(&self, digits: usize) -> bool {
        match self.group {
            Some(group) => digits.is_multiple_of(group),
            None => self.whole_groups.contains(&digits),
        }
    }
}

/// Adds one to a number of digits; whether it has one more now.
fn add_one(digits: &mut Vec<u8>) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return false;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_those_of_the_standard() {
        for (digits, is_negative, picture, expected) in [
            ("12345.6", false, "#,###.00", "12,345.60"),
            ("12345678.9", false, "9,999.99", "12,345,678.90"),
            ("123.9", false, "9999", "0124"),
            ("0.14", false, "01%", "14%"),
            ("0.14", false, "001\u{2030}", "140\u{2030}"),
            ("6", true, "000", "-006"),
            ("12", true, "0;(0)", "(12)"),
            ("0.5", false, "#.00", ".50"),
            ("0.5", false, "0", "0"),
            ("1.5", false, "0", "2"),
            ("2.5", false, "0", "2"),
            ("0.05", false, "#.#", ".0"),
            ("0", false, "#", "0"),
            ("999.995", false, "#,##0.00", "1,000.00"),
            ("1234567", false, "#,##,000", "12,34,567"),
            ("1234567.8912", false, "0.##,##", "1234567.89,12"),
            ("12", false, "USD 0.0 net", "USD 12.0 net"),
        ] {
            let picture = NumberPicture::read(picture).expect(picture);
            assert_eq!(picture.write(is_negative, Digits::Finite(digits)), expected);
        }
        for wrong in
            ["", "x", "0.0.0", "0,.0", "0,,0", "0#", "0.#0", "%0%", "0x0", "0;0;0", ",", "0,"]
        {
            let found = NumberPicture::read(wrong).err();
            assert_eq!(found, Some(NumberPictureFault::Syntax), "{wrong}");
        }
        assert_eq!(NumberPicture::read("0.0e0").err(), Some(NumberPictureFault::Exponent));
    }
}
