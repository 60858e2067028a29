//! `tests/mutants/understood.md`: the disagreements that are understood.
//!
//! A heading `## accepted: PATTERN` is about mutants that we accept and `ptxas` refuses, a heading
//! `## refused: CODE: PATTERN` about those that we refuse with that code and `ptxas` accepts. The pattern
//! is matched against `target version instruction`, with `*` for any text. The paragraph below says why.

use crate::run::{read, root};

/// The list.
pub(super) struct Understood {
    entries: Vec<Entry>,
}

struct Entry {
    /// The code that we refuse it with; `None` if we accept it.
    code: Option<String>,
    pattern: String,
}

impl Understood {
    pub(super) fn load() -> Result<Self, String> {
        Self::parse(&read(&root().join("tests/mutants/understood.md"))?)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut entries = Vec::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let Some(heading) = line.strip_prefix("## ") else { continue };
            while lines.next_if(|line| line.trim().is_empty()).is_some() {}
            if lines.peek().is_none_or(|line| line.starts_with('#')) {
                return Err(format!("understood.md: `{heading}` gives no reason"));
            }
            let unquoted = |pattern: &str| pattern.trim().trim_matches('`').to_string();
            entries.push(match heading.split_once(": ") {
                Some(("accepted", pattern)) => Entry { code: None, pattern: unquoted(pattern) },
                Some(("refused", rest)) => {
                    let (code, pattern) = rest
                        .split_once(": ")
                        .ok_or_else(|| format!("understood.md: `{heading}` names no code"))?;
                    Entry { code: Some(code.to_string()), pattern: unquoted(pattern) }
                }
                _ => return Err(format!("understood.md: `{heading}` is neither `accepted` nor `refused`")),
            });
        }
        Ok(Understood { entries })
    }

    /// Whether a disagreement is on the list. `codes` are ours; all must be explained.
    pub(super) fn explains(&self, label: &str, codes: &[&str]) -> bool {
        let explained = |code: Option<&str>| {
            self.entries.iter().any(|entry| entry.code.as_deref() == code && matches(&entry.pattern, label))
        };
        match codes {
            [] => explained(None),
            codes => codes.iter().all(|code| explained(Some(code))),
        }
    }
}

/// Whether `text` fits a pattern in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::{Understood, matches};

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(matches("*ld.*.relaxed*", "sm_90 8.0 ld.global.relaxed.gpu.u32 r1, [d1];"));
        assert!(matches("exact", "exact"));
        assert!(!matches("exact", "exactly"));
        assert!(!matches("a*a", "a"));
    }

    #[test]
    fn every_code_must_be_explained() {
        let text = "# Title\n\n## refused: E0012: `*add*`\n\nBecause.\n\n## accepted: `*sub*`\n\nBecause.\n";
        let list = Understood::parse(text).expect("well-formed");
        assert!(list.explains("sm_90 8.0 add;", &["E0012"]));
        assert!(!list.explains("sm_90 8.0 add;", &["E0012", "E0013"]));
        assert!(list.explains("sm_90 8.0 sub;", &[]));
        assert!(!list.explains("sm_90 8.0 add;", &[]));
    }

    #[test]
    fn an_entry_has_a_reason() {
        assert!(Understood::parse("## accepted: *\n\n## accepted: a\n\nwhy\n").is_err());
    }
}
