//! Pictures of numbers, dates and times: literals, read once.

use super::super::syntax::{ExprId, Picture};
use super::Parser;
use crate::language::functions::Function;
use crate::language::moment_pictures::{MomentPicture, MomentPictureFault};
use crate::language::number_pictures::{NumberPicture, NumberPictureFault};
use crate::language::refusal::{Parsed, Reason, Refusal};

impl Parser<'_> {
    /// The picture that a call has.
    pub(super) fn picture(
        &mut self,
        function: Function,
        arguments: &[ExprId],
        offset: usize,
    ) -> Parsed<Option<Picture>> {
        use Function::{FormatDate, FormatDateTime, FormatNumber, FormatTime};
        if !matches!(function, FormatDate | FormatDateTime | FormatNumber | FormatTime) {
            return Ok(None);
        }
        let refused = |reason, details| Err(Refusal::new(offset, reason, details));
        let Some(text) = self.literal_text(arguments[1]) else {
            return refused(Reason::ComputedPicture, vec![function.name().into()]);
        };
        let Some(of) = function.moments() else {
            return match NumberPicture::read(text) {
                Ok(picture) => Ok(Some(Picture::Number(Box::new(picture)))),
                Err(NumberPictureFault::Syntax) => {
                    refused(Reason::NumberPicture, vec![text.into()])
                }
                Err(NumberPictureFault::Exponent) => {
                    refused(Reason::NumberExponent, vec![text.into()])
                }
            };
        };
        match MomentPicture::read(of, text) {
            Ok(picture) => Ok(Some(Picture::Moment(picture))),
            Err(MomentPictureFault::Syntax) => refused(Reason::MomentPicture, vec![text.into()]),
            Err(MomentPictureFault::Absent(letter)) => {
                let details = vec![letter.to_string().into(), of.name().into()];
                refused(Reason::MomentPart, details)
            }
            Err(MomentPictureFault::Unsupported(part)) => {
                refused(Reason::PicturePart, vec![part.into()])
            }
        }
    }
}
