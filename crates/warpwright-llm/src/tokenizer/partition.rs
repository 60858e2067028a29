//! Finds the special tokens in a text; the text between them is encoded.
//!
//! Longer tokens are found first, and among equally long ones those with the lower id, each from left to right: a token
//! is not found if it overlaps an earlier match.

use super::vocabulary::{Kind, Vocabulary};

/// A special token in a text, or the text between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segment<'t> {
    Token(u32),
    /// Never empty.
    Text(&'t str),
}

/// The special tokens of a vocabulary, ready to be found.
#[derive(Debug, Default)]
pub(super) struct Specials {
    /// In the order of their texts.
    sorted: Vec<Special>,
    /// First bytes of those texts.
    first: Vec<bool>,
}

#[derive(Debug)]
struct Special {
    text: Box<str>,
    id: u32,
    kind: Kind,
}

/// A place where a token's text is.
struct Hit<'s> {
    start: usize,
    end: usize,
    special: &'s Special,
}

impl Specials {
    pub(super) fn new(vocabulary: &Vocabulary) -> Specials {
        let special = |id| {
            let text = vocabulary.text(id)?;
            Some(Special { text: text.into(), id, kind: vocabulary.kind(id) })
        };
        let mut sorted: Vec<Special> = vocabulary.of(Kind::SPECIAL).filter_map(special).collect();
        sorted.sort_by(|a, b| a.text.cmp(&b.text));
        let mut first = vec![false; 256];
        for special in &sorted {
            first[usize::from(special.text.as_bytes().first().copied().unwrap_or_default())] = true;
        }
        Specials { sorted, first }
    }

    /// The parts of a text. Control tokens are looked for only where `parse` says so, user-defined ones
    /// always.
    pub(super) fn partition<'t>(&self, text: &'t str, parse: bool) -> Vec<Segment<'t>> {
        let mut hits = self.hits(text.as_bytes(), parse);
        if hits.is_empty() {
            return if text.is_empty() { Vec::new() } else { vec![Segment::Text(text)] };
        }
        hits.sort_by_key(|hit| (std::cmp::Reverse(hit.end - hit.start), hit.special.id, hit.start));

        // Bytes that a token, or the white space around it, has taken.
        let mut taken = vec![false; text.len()];
        let mut tokens: Vec<(usize, usize, u32)> = Vec::new();
        for Hit { mut start, mut end, special } in hits {
            if taken[start..end].contains(&true) {
                continue;
            }
            let space = |at: usize| !taken[at] && matches!(text.as_bytes()[at], b'\t'..=b'\r' | b' ');
            if special.kind.is(Kind::LEFT_STRIP) {
                while start > 0 && space(start - 1) {
                    start -= 1;
                }
            }
            if special.kind.is(Kind::RIGHT_STRIP) {
                while end < text.len() && space(end) {
                    end += 1;
                }
            }
            taken[start..end].fill(true);
            tokens.push((start, end, special.id));
        }

        tokens.sort_unstable();
        let mut parts = Vec::with_capacity(tokens.len() * 2 + 1);
        let mut done = 0;
        for (start, end, id) in tokens {
            if start > done {
                parts.push(Segment::Text(&text[done..start]));
            }
            parts.push(Segment::Token(id));
            done = end;
        }
        if done < text.len() {
            parts.push(Segment::Text(&text[done..]));
        }
        parts
    }

    /// Every place of every special token.
    fn hits(&self, text: &[u8], parse: bool) -> Vec<Hit<'_>> {
        let mut hits = Vec::new();
        for (start, _) in text.iter().enumerate().filter(|&(_, &byte)| self.first[usize::from(byte)]) {
            // Those whose texts agree with the first bytes from here, one byte more at a time.
            let mut agree = &self.sorted[..];
            let mut len = 0;
            while !agree.is_empty() {
                let ended = agree.iter().take_while(|special| special.text.len() == len).count();
                let found = agree[..ended].iter().filter(|special| parse || !special.kind.is(Kind::HIDDEN));
                hits.extend(found.map(|special| Hit { start, end: start + len, special }));
                agree = &agree[ended..];
                let Some(&byte) = text.get(start + len) else { break };
                let low = agree.partition_point(|special| special.text.as_bytes()[len] < byte);
                let high = agree.partition_point(|special| special.text.as_bytes()[len] <= byte);
                agree = &agree[low..high];
                len += 1;
            }
        }
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Segment::{Text, Token};

    fn specials(tokens: &[(&str, Kind)]) -> Specials {
        let mut sorted: Vec<Special> = tokens
            .iter()
            .enumerate()
            .map(|(id, &(text, kind))| Special { text: text.into(), id: id as u32, kind })
            .collect();
        sorted.sort_by(|a, b| a.text.cmp(&b.text));
        let mut first = vec![false; 256];
        tokens.iter().for_each(|(text, _)| first[usize::from(text.as_bytes()[0])] = true);
        Specials { sorted, first }
    }

    #[test]
    fn control_tokens_are_found_on_request_and_user_defined_ones_always() {
        let specials = specials(&[("<s>", Kind::CONTROL), ("  ", Kind::USER_DEFINED)]);
        assert_eq!(specials.partition("a<s>  b", true), [Text("a"), Token(0), Token(1), Text("b")]);
        assert_eq!(specials.partition("a<s>  b", false), [Text("a<s>"), Token(1), Text("b")]);
        assert_eq!(specials.partition("", true), []);
    }

    #[test]
    fn longer_tokens_come_first_then_the_leftmost() {
        let specials = specials(&[("<a>", Kind::CONTROL), ("b<a", Kind::CONTROL), ("<a><a>", Kind::CONTROL)]);
        assert_eq!(specials.partition("<a><a><a>", true), [Token(2), Token(0)]);
        assert_eq!(specials.partition("b<a><a>", true), [Text("b"), Token(2)]);
        // As long as each other: the lower id takes its place, and the other is text.
        assert_eq!(specials.partition("b<a>", true), [Text("b"), Token(0)]);
    }

    #[test]
    fn white_space_goes_with_the_token_that_strips_it() {
        let mut left = Kind::CONTROL;
        left.set(Kind::LEFT_STRIP, true);
        let mut right = Kind::CONTROL;
        right.set(Kind::RIGHT_STRIP, true);
        let specials = specials(&[("<l>", left), ("<rr>", right)]);
        assert_eq!(specials.partition("a \n<l> b", true), [Text("a"), Token(0), Text(" b")]);
        assert_eq!(specials.partition("a <rr>\t\n <l>", true), [Text("a "), Token(1), Token(0)]);
        // A space that is not ASCII stays.
        assert_eq!(specials.partition("<rr>\u{a0}", true), [Token(1), Text("\u{a0}")]);
    }
}
