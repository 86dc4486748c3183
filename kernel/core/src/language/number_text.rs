//! Numbers as strings, and rounding (XPath 1.0, 4.2 and 4.4).

/// `string(number)`: the shortest decimal that reads back as the number, never with an exponent.
pub(crate) fn number_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    // Display writes the shortest decimal without an exponent. Adding zero takes the sign of -0.
    format!("{}", value + 0.0)
}

/// `round()`: the nearest whole number, of two the greater; zero keeps the sign of the argument.
pub(crate) fn round(value: f64) -> f64 {
    let below = value.floor();
    // Where the difference is rounded itself, the number is too close to a whole one to matter.
    let rounded = if value - below >= 0.5 { below + 1.0 } else { below };
    if rounded == 0.0 { rounded.copysign(value) } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_without_exponent() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-17.0, "-17"),
            (0.1, "0.1"),
            (-0.5, "-0.5"),
            (1e21, "1000000000000000000000"),
            (1e-7, "0.0000001"),
            (123_456.789, "123456.789"),
            (1.0 / 3.0, "0.3333333333333333"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ];
        for (value, expected) in cases {
            assert_eq!(number_text(value), expected);
        }
        assert_eq!(number_text(f64::MAX).len(), 309);
    }

    #[test]
    fn halves_are_rounded_up_and_zero_keeps_its_sign() {
        let cases = [
            (2.5, 3.0),
            (-2.5, -2.0),
            (0.49999999999999994, 0.0),
            (-0.49999999999999994, -0.0),
            (0.5, 1.0),
            (-0.5, -0.0),
            (-0.0, -0.0),
            (4_503_599_627_370_497.5, 4_503_599_627_370_498.0),
            (9_007_199_254_740_991.0, 9_007_199_254_740_991.0),
            (f64::INFINITY, f64::INFINITY),
            (f64::NEG_INFINITY, f64::NEG_INFINITY),
        ];
        for (value, expected) in cases {
            let rounded = round(value);
            assert_eq!(rounded, expected, "{value}");
            assert_eq!(rounded.is_sign_negative(), expected.is_sign_negative(), "{value}");
        }
        assert!(round(f64::NAN).is_nan());
    }
}
