//! SentencePiece vocabularies of the byte-pair kind: neighbours merge if their joined text is a token, the best score
//! first.

use super::error::TokenizerError;
use super::joints::Joints;
use super::merge::{Merge, Merger, NO_ID, Symbol};
use super::vocabulary::Vocabulary;

/// What stands for a space.
pub(super) const SPACE: &str = "▁";

/// What a SentencePiece vocabulary needs beside its tokens.
#[derive(Debug)]
pub(super) struct Spm {
    /// A text, and what follows a special token, begins with a space.
    pub(super) space_prefix: bool,
    /// The token of each byte: `<0xXX>`, or the one with that character as its text.
    bytes: Box<[Option<u32>; 256]>,
    unknown: Option<u32>,
    joints: Joints,
}

impl Spm {
    pub(super) fn new(vocabulary: &Vocabulary, space_prefix: bool, unknown: Option<u32>) -> Spm {
        let bytes = std::array::from_fn(|byte| {
            let char = || {
                Some(byte as u8)
                    .filter(u8::is_ascii)
                    .and_then(|b| vocabulary.find(&char::from(b).to_string()))
            };
            vocabulary.find(&format!("<0x{byte:02X}>")).or_else(char)
        });
        let joints = Joints::of(vocabulary.texts());
        Spm { space_prefix, bytes: Box::new(bytes), unknown, joints }
    }

    /// Appends the tokens of a text without special tokens; `first` where it begins a text or follows a
    /// special token.
    pub(super) fn encode(
        &self,
        vocabulary: &Vocabulary,
        text: &str,
        first: bool,
        out: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        let mut escaped = String::with_capacity(text.len() + text.len() / 4);
        if first && self.space_prefix {
            escaped.push_str(SPACE);
        }
        for (i, part) in text.split(' ').enumerate() {
            if i > 0 {
                escaped.push_str(SPACE);
            }
            escaped.push_str(part);
        }
        let mut merger = Merger::default();
        let mut symbols = Vec::new();
        for text in self.joints.parts(&escaped) {
            symbols.clear();
            symbols.extend(text.char_indices().map(|(start, c)| {
                let id = vocabulary.find(&text[start..start + c.len_utf8()]).unwrap_or(NO_ID);
                Symbol { start: start as u32, len: c.len_utf8() as u32, id }
            }));
            merger.merge(&mut symbols, |left, right| pair(vocabulary, text, left, right));
            for symbol in &symbols {
                if symbol.id != NO_ID {
                    out.push(symbol.id);
                    continue;
                }
                let bytes = &text.as_bytes()[symbol.start as usize..(symbol.start + symbol.len) as usize];
                for &byte in bytes {
                    let token = self.bytes[usize::from(byte)].or(self.unknown);
                    out.push(token.ok_or(TokenizerError::Byte { byte })?);
                }
            }
        }
        Ok(())
    }
}

/// The token that two neighbours are, sooner the better it scores.
fn pair(vocabulary: &Vocabulary, text: &str, left: &Symbol, right: &Symbol) -> Merge {
    let end = (right.start + right.len) as usize;
    let start = left.start as usize;
    if end - start > vocabulary.longest() {
        return None;
    }
    let id = vocabulary.find(&text[start..end])?;
    Some((rank(vocabulary.score(id)), id))
}

/// Less for a higher score; the same for both zeros.
fn rank(score: f32) -> u32 {
    let bits = (score + 0.0).to_bits();
    match bits >> 31 {
        0 => !(bits | 1 << 31),
        _ => bits,
    }
}

#[cfg(test)]
mod tests {
    use super::rank;

    #[test]
    fn ranks_are_scores_turned_round() {
        let scores = [f32::INFINITY, 3.5, 1e-30, 0.0, -1e-30, -1.0, -1e9, f32::NEG_INFINITY];
        assert!(scores.windows(2).all(|pair| rank(pair[0]) < rank(pair[1])));
        assert_eq!(rank(0.0), rank(-0.0));
    }
}
