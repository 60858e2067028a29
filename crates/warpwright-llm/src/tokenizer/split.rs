//! Cuts text into words; merges do not cross their borders.

use super::pattern::{Codes, Pattern, Ways};
use super::presets::Step;
use super::unicode::{Class, code};

/// The steps of a pre-tokenizer, compiled.
#[derive(Debug)]
pub(super) struct Splitter {
    cuts: Vec<Cut>,
}

#[derive(Debug)]
enum Cut {
    Pattern(Pattern),
    NumberGroups,
    Thousands,
}

impl Splitter {
    /// Compiles the steps; the error names the rule that a pattern breaks.
    pub(super) fn new(steps: &[Step]) -> Result<Splitter, &'static str> {
        let cuts = steps.iter().map(|step| {
            Ok(match step {
                Step::Pattern(text) => Cut::Pattern(Pattern::new(text)?),
                Step::NumberGroups => Cut::NumberGroups,
                Step::Thousands => Cut::Thousands,
            })
        });
        Ok(Splitter { cuts: cuts.collect::<Result<_, _>>()? })
    }

    /// The words of a text, in order; together they are the text.
    pub(super) fn words<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let ascii = text.is_ascii();
        let codes: Vec<u8> = if ascii { text.into() } else { text.chars().map(code).collect() };
        let needs_chars = self.cuts.iter().any(|cut| matches!(cut, Cut::Pattern(p) if p.needs_chars()));
        let chars: Vec<char> = if needs_chars { text.chars().collect() } else { Vec::new() };
        let seen = Codes { codes: &codes, chars: &chars };

        let mut ways = Ways::default();
        let mut ends = vec![codes.len()];
        for cut in &self.cuts {
            let mut finer = Vec::with_capacity(ends.len());
            let mut start = 0;
            for end in ends {
                cut.cut(&seen, start, end, &mut ways, &mut finer);
                start = end;
            }
            ends = finer;
        }

        let mut rest = text;
        let mut start = 0;
        ends.into_iter().map(move |end| {
            let bytes = match ascii {
                true => end - start,
                false => rest.chars().take(end - start).map(char::len_utf8).sum(),
            };
            start = end;
            let (word, after) = rest.split_at(bytes);
            rest = after;
            word
        })
    }
}

impl Cut {
    /// Appends the ends of the words in `start..end`; the last is `end`, and none is empty.
    fn cut(&self, text: &Codes<'_>, start: usize, end: usize, ways: &mut Ways, ends: &mut Vec<usize>) {
        let mut done = start;
        let mut word = |until: usize| {
            if until > done {
                ends.push(until);
                done = until;
            }
        };
        match self {
            Cut::Pattern(pattern) => {
                let mut from = start;
                while let Some((first, last)) = pattern.find(text, from, end, ways) {
                    word(first);
                    word(last);
                    from = last;
                }
            }
            Cut::NumberGroups => runs(text, start, end, is_number, |first, last| {
                let lead = match (last - first) % 3 {
                    0 => 3,
                    lead => lead,
                };
                (first + lead..=last).step_by(3).for_each(&mut word);
            }),
            Cut::Thousands => runs(
                text,
                start,
                end,
                |code| code.is_ascii_digit(),
                |first, last| {
                    (first + (last - first) % 3..last).step_by(3).for_each(&mut word);
                },
            ),
        }
        word(end);
    }
}

fn is_number(code: u8) -> bool {
    code.is_ascii_digit() || code == Class::Number.code()
}

/// The longest runs of codes that satisfy `of`, in order.
fn runs(
    text: &Codes<'_>,
    start: usize,
    end: usize,
    of: impl Fn(u8) -> bool,
    mut each: impl FnMut(usize, usize),
) {
    let mut at = start;
    while at < end {
        let run = text.codes[at..end].iter().take_while(|&&code| of(code)).count();
        if run > 0 {
            each(at, at + run);
        }
        at += run.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::presets::{PRESETS, named};

    fn words<'t>(preset: &str, text: &'t str) -> Vec<&'t str> {
        let preset = named(preset).expect("a known name");
        Splitter::new(preset.steps).expect("its patterns").words(text).collect()
    }

    #[test]
    fn words_are_those_of_the_models_pattern() {
        assert_eq!(
            words("gpt-2", "Don't stop  now 123\n\n x"),
            ["Don", "'t", " stop", " ", " now", " 123", "\n\n", " x"]
        );
        assert_eq!(
            words("llama-bpe", "DON'T 12345 (ok)\r\n\n y"),
            ["DON", "'T", " ", "123", "45", " (", "ok", ")\r\n\n", " y"]
        );
        assert_eq!(words("qwen2", "a1234"), ["a", "1", "2", "3", "4"]);
        assert_eq!(words("qwen2", "कि"), ["क", "ि"]);
        assert_eq!(words("qwen35", "कि"), ["कि"]);
        assert_eq!(words("gpt-4o", "HTTPServer's"), ["HTTPServer's"]);
        assert_eq!(words("gpt-4o", "camelCase"), ["camel", "Case"]);
        assert_eq!(words("kimi-k2", "中文abc中"), ["中文", "abc", "中"]);
        assert_eq!(words("deepseek-v3", "x1234年です。"), ["x", "123", "4", "年です", "。"]);
        assert_eq!(words("falcon", "a...b 12345"), ["a", "...", "b", " ", "123", "45"]);
        assert_eq!(words("bloom", "One, (two)"), ["One", ", (", "two", ")"]);
        assert_eq!(words("gemma4", "a b\n\nc"), ["a b", "\n\n", "c"]);
    }

    #[test]
    fn numbers_are_grouped_from_the_right() {
        assert_eq!(words("superbpe", "ab1234567 12"), ["ab", "1", "234", "567", " ", "12"]);
        assert_eq!(words("superbpe", "123456"), ["123", "456"]);
        // The first group takes the text before it along: so does llama.cpp.
        assert_eq!(words("tiny_aya", "1234567"), ["1", "234", "567"]);
        assert_eq!(words("afmoe", "\n\n123456"), ["\n\n", "123", "456"]);
    }

    #[test]
    fn words_are_never_empty_and_make_up_the_text() {
        let text = "Ünïcode 中文かな 한글 \u{0}\u{1c}\u{85}\u{a0} 🏳️‍🌈 12345٣٤٥٦ IT'S 'tis \r\n\r\n\t x  \u{3000} <sentinel:12>IMGIMGABZ ";
        for preset in PRESETS {
            for name in preset.names() {
                let words = words(name, text);
                assert_eq!(words.concat(), text, "{name}");
                assert!(words.iter().all(|word| !word.is_empty()), "{name}");
            }
        }
    }
}
