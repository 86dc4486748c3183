//! Collations: that of code points, and the one to which the letters of ASCII are the same in both cases (XQuery and XPath
//! Functions and Operators 3.1, 5.3).

use super::super::syntax::{Expr, ExprId};
use super::facts::items;
use super::{Facts, Parser};
use crate::language::functions::Function;
use crate::language::refusal::{Parsed, Reason, Refusal};

const CODEPOINT: &str = "http://www.w3.org/2005/xpath-functions/collation/codepoint";
const CASE_BLIND: &str =
    "http://www.w3.org/2005/xpath-functions/collation/html-ascii-case-insensitive";
/// The letters that the case-blind collation reads as small ones, and these.
pub(crate) const CAPITAL_LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
pub(crate) const SMALL_LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";

impl Parser<'_> {
    /// Takes the collation from the arguments of a call. The case-blind one stays where the function knows it.
    pub(super) fn collation(
        &mut self,
        function: Function,
        arguments: &mut Vec<ExprId>,
        offset: usize,
    ) -> Parsed<()> {
        use Function::{
            Compare, Contains, ContainsToken, DeepEqual, DistinctValues, EndsWith, IndexOf, Max,
            Min, StartsWith, SubstringAfter, SubstringBefore,
        };
        let place = match function {
            DistinctValues | Max | Min => 1,
            Compare | Contains | ContainsToken | DeepEqual | EndsWith | IndexOf | StartsWith
            | SubstringAfter | SubstringBefore => 2,
            _ => return Ok(()),
        };
        let Some(&written) = arguments.get(place) else { return Ok(()) };
        let refused = |reason| Err(Refusal::new(offset, reason, vec![function.name().into()]));
        let Some(uri) = self.literal_text(written).map(str::to_owned) else {
            return refused(Reason::ComputedCollation);
        };
        match (uri.as_str(), function) {
            (CODEPOINT, _) => arguments.truncate(place),
            (CASE_BLIND, Contains | StartsWith | EndsWith | ContainsToken) => {
                arguments.truncate(place);
                for argument in arguments {
                    *argument = self.in_lower_case(function, *argument, offset)?;
                }
            }
            (CASE_BLIND, _) => {}
            _ => return Err(Refusal::new(offset, Reason::NoCollation, vec![uri.into()])),
        }
        Ok(())
    }

    /// `collation` of a key of `order by`: whether it is the case-blind one.
    pub(super) fn order_collation(&mut self) -> Parsed<bool> {
        let offset = self.scanner.place();
        if !self.scanner.take_word("collation") {
            return Ok(false);
        }
        let Some(uri) = self.literal()? else {
            return Err(self.scanner.unexpected(Reason::ExpectedUri, &[]));
        };
        self.scanner.settle();
        match &*uri {
            CODEPOINT => Ok(false),
            CASE_BLIND => Ok(true),
            _ => Err(Refusal::new(offset, Reason::NoCollation, vec![(&*uri).into()])),
        }
    }

    /// A text, or for [`Function::ContainsToken`] each of some texts, with small letters for the capital ones of ASCII.
    fn in_lower_case(&mut self, function: Function, id: ExprId, offset: usize) -> Parsed<ExprId> {
        if let Some(text) = self.literal_text(id).map(str::to_ascii_lowercase) {
            let text = self.keep(&text);
            return Ok(self.push(Expr::String(text), Facts::of(items::ATOMS), offset));
        }
        let [capital, small] = [CAPITAL_LETTERS, SMALL_LETTERS].map(|letters| {
            let text = self.keep(letters);
            self.push(Expr::String(text), Facts::of(items::ATOMS), offset)
        });
        if function != Function::ContainsToken {
            return self.push_call(Function::Translate, &[id, capital, small], offset);
        }
        self.mapped_to(id, offset, |parser, item| {
            parser.push_call(Function::Translate, &[item, capital, small], offset)
        })
    }
}
