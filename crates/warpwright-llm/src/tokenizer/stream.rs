//! Conversion of tokens to text, one by one.

use super::Tokenizer;

/// Turns tokens into text one by one, in whole characters: a token may end inside a character.
///
/// What is not UTF-8 becomes U+FFFD, as in [`String::from_utf8_lossy`].
///
/// ```text
///  push(id) → "Hel"   push(id) → ""   push(id) → "é"   …   finish() → what is left
/// ```
#[derive(Debug)]
pub struct TextStream<'t> {
    tokenizer: &'t Tokenizer,
    special: bool,
    /// Bytes of a character that is not whole yet.
    held: Vec<u8>,
    text: String,
}

impl<'t> TextStream<'t> {
    /// A stream that begins in the middle of a text: the first token keeps its leading space. `special` shows control
    /// tokens.
    pub fn new(tokenizer: &'t Tokenizer, special: bool) -> Self {
        TextStream { tokenizer, special, held: Vec::new(), text: String::new() }
    }

    /// The characters that this token completes; empty for an unknown id.
    pub fn push(&mut self, id: u32) -> &str {
        self.text.clear();
        if let Some(bytes) = self.tokenizer.piece(id, self.special) {
            self.held.extend_from_slice(bytes);
        }
        let mut done = 0;
        for chunk in self.held.utf8_chunks() {
            self.text.push_str(chunk.valid());
            done += chunk.valid().len();
            let invalid = chunk.invalid();
            let last = done + invalid.len() == self.held.len();
            if last && may_go_on(invalid) {
                break;
            }
            if !invalid.is_empty() {
                self.text.push(char::REPLACEMENT_CHARACTER);
                done += invalid.len();
            }
        }
        self.held.drain(..done);
        &self.text
    }

    /// The rest: U+FFFD if a character was never completed.
    pub fn finish(&mut self) -> &str {
        self.text.clear();
        if !self.held.is_empty() {
            self.held.clear();
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        &self.text
    }
}

/// Whether these bytes are the beginning of a character, and not a mistake.
fn may_go_on(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(wrong) if wrong.valid_up_to() == 0 && wrong.error_len().is_none())
}
