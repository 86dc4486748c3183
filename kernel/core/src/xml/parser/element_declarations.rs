//! Element type declarations (productions 45 to 51). A non-validating processor keeps nothing of
//! them, but their syntax must be right.

use super::chars::skip_space;
use super::doctype::Subset;
use super::refusal::Step;

impl Subset<'_> {
    /// From the byte after `<!ELEMENT` on; gives the byte after the declaration.
    pub(super) fn element_declaration(&mut self, text: &str, at: usize) -> Step<usize> {
        let bytes = text.as_bytes();
        let at = self.space(text, at)?;
        let (_, at) = self.qname(text, at)?;
        let at = self.space(text, at)?;
        let at = if let Some(end) =
            self.keyword(text, at, "EMPTY").or_else(|| self.keyword(text, at, "ANY"))
        {
            end
        } else {
            let inside = skip_space(bytes, self.expect(text, at, b'(')?);
            match self.keyword(text, inside, "#PCDATA") {
                Some(at) => self.mixed(text, at)?,
                None => self.children(text, at)?,
            }
        };
        self.expect(text, skip_space(bytes, at), b'>')
    }

    /// The rest of a mixed model, after `#PCDATA` (production 51).
    fn mixed(&self, text: &str, at: usize) -> Step<usize> {
        let bytes = text.as_bytes();
        let mut at = skip_space(bytes, at);
        let mut has_names = false;
        while bytes.get(at) == Some(&b'|') {
            has_names = true;
            let start = skip_space(bytes, at + 1);
            at = skip_space(bytes, self.qname(text, start)?.1);
        }
        at = self.expect(text, at, b')')?;
        match bytes.get(at) {
            Some(b'*') => Ok(at + 1),
            _ if has_names => Err(self.wrong(text, at, "\"*\"")),
            _ => Ok(at),
        }
    }

    /// A model of element content, from its `(` on (productions 47 to 50).
    fn children(&self, text: &str, start: usize) -> Step<usize> {
        let bytes = text.as_bytes();
        // The separator of each open group, once it is known.
        let mut groups: Vec<Option<u8>> = Vec::new();
        let mut at = start;
        loop {
            // A particle begins here.
            if bytes.get(at) == Some(&b'(') {
                groups.push(None);
                at = skip_space(bytes, at + 1);
                continue;
            }
            at = skip_occurrence(bytes, self.qname(text, at)?.1);
            // After a particle: another one, or the end of the group.
            loop {
                at = skip_space(bytes, at);
                let group = groups.last_mut();
                match (bytes.get(at), group) {
                    (Some(&mark @ (b'|' | b',')), Some(separator))
                        if separator.is_none_or(|known| known == mark) =>
                    {
                        *separator = Some(mark);
                        at = skip_space(bytes, at + 1);
                        break;
                    }
                    (Some(b')'), _) => {
                        groups.pop();
                        at = skip_occurrence(bytes, at + 1);
                        if groups.is_empty() {
                            return Ok(at);
                        }
                    }
                    _ => return Err(self.wrong(text, at, "\",\", \"|\" or \")\"")),
                }
            }
        }
    }
}

fn skip_occurrence(bytes: &[u8], at: usize) -> usize {
    if matches!(bytes.get(at), Some(b'?' | b'*' | b'+')) { at + 1 } else { at }
}
