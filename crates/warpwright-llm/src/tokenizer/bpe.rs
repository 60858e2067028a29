//! Byte-pair vocabularies: merges in the order of the file, inside the words of the pre-tokenizer.

use super::alphabet;
use super::error::TokenizerError;
use super::joints::Joints;
use super::merge::{Merge, Merger, NO_ID, Symbol};
use super::presets::Preset;
use super::split::Splitter;
use super::texts::Hash;
use super::vocabulary::Vocabulary;
use std::collections::HashMap;

/// Merges, and what is merged.
#[derive(Debug)]
pub(super) struct Bpe {
    splitter: Splitter,
    preset: &'static Preset,
    /// By the numbers of both texts: how soon, and the number of the whole.
    merges: HashMap<u64, (u32, u32), Hash>,
    /// The numbers of the byte-level alphabet, by byte.
    bytes: Box<[u32; 256]>,
    /// The tokens that stand for a byte of a text that is no token: `<0xXX>` where tokens are UTF-8, else the
    /// token of that one character, which only ASCII has.
    fallback: Box<[Option<u32>; 256]>,
    /// Where tokens are UTF-8: their words are as long as lines.
    joints: Option<Joints>,
}

impl Bpe {
    /// `merges` are pairs of texts with a space between, the first to be merged first.
    pub(super) fn new<'m>(
        vocabulary: &mut Vocabulary,
        merges: impl ExactSizeIterator<Item = &'m str>,
        preset: &'static Preset,
    ) -> Result<Bpe, TokenizerError> {
        let splitter = Splitter::new(preset.steps).map_err(|rule| TokenizerError::Pattern {
            name: preset.names().next().unwrap_or_default().to_string(),
            rule,
        })?;
        let count = vocabulary.len() as usize + merges.len();
        if count > u32::MAX as usize / 4 {
            return Err(TokenizerError::TooMany { tokens: count });
        }

        let mut table = HashMap::with_capacity_and_hasher(merges.len(), Hash::new());
        let mut whole = String::new();
        for (rank, merge) in merges.enumerate() {
            // A text is not empty, so the space is not its first byte.
            let space = merge.bytes().skip(1).position(|byte| byte == b' ');
            let Some((left, right)) = space.map(|space| (&merge[..=space], &merge[space + 2..])) else {
                continue;
            };
            whole.clear();
            whole.push_str(left);
            whole.push_str(right);
            let pair = pair(vocabulary.number(left), vocabulary.number(right));
            let whole = vocabulary.number(&whole);
            table.entry(pair).or_insert((rank as u32, whole));
        }

        let mut utf8 = [0; 4];
        let bytes = alphabet::CHARS.map(|c| vocabulary.number(c.encode_utf8(&mut utf8)));
        let fallback = std::array::from_fn(|byte| match preset.raw {
            true => vocabulary.find(&format!("<0x{byte:02X}>")),
            false => Some(byte as u8)
                .filter(u8::is_ascii)
                .and_then(|b| vocabulary.find(&char::from(b).to_string())),
        });
        let joints = preset.raw.then(|| Joints::of(vocabulary.texts()));
        let (bytes, fallback) = (Box::new(bytes), Box::new(fallback));
        Ok(Bpe { splitter, preset, merges: table, bytes, fallback, joints })
    }

    /// Appends the tokens of a text without special tokens.
    pub(super) fn encode(&self, vocabulary: &Vocabulary, text: &str, out: &mut Vec<u32>) {
        let escaped;
        let text = match self.preset.escape_spaces {
            true => {
                escaped = text.replace(' ', "▁");
                &escaped
            }
            false => text,
        };
        let mut merger = Merger::default();
        let mut symbols = Vec::new();
        let mut spelled = String::new();
        for word in self.splitter.words(text) {
            if self.preset.ignore_merges {
                spelled.clear();
                match self.preset.raw {
                    true => spelled.push_str(word),
                    false => spelled.extend(word.bytes().map(|byte| alphabet::CHARS[usize::from(byte)])),
                }
                if let Some(id) = vocabulary.find(&spelled) {
                    out.push(id);
                    continue;
                }
            }
            let newlines = self.preset.whole_newlines && word.starts_with('\n');
            if let Some(id) = newlines.then(|| vocabulary.find(word)).flatten() {
                out.push(id);
                continue;
            }
            match &self.joints {
                Some(joints) => joints.parts(word).for_each(|part| {
                    symbols.clear();
                    symbols.extend(part.char_indices().map(|(start, c)| {
                        let char = &part[start..start + c.len_utf8()];
                        let id = vocabulary.find_number(char).unwrap_or(NO_ID);
                        Symbol { start: start as u32, len: char.len() as u32, id }
                    }));
                    self.merge(vocabulary, part, &mut merger, &mut symbols, out);
                }),
                None => {
                    symbols.clear();
                    symbols.extend(word.bytes().enumerate().map(|(start, byte)| Symbol {
                        start: start as u32,
                        len: 1,
                        id: self.bytes[usize::from(byte)],
                    }));
                    self.merge(vocabulary, word, &mut merger, &mut symbols, out);
                }
            }
        }
    }

    fn merge(
        &self,
        vocabulary: &Vocabulary,
        word: &str,
        merger: &mut Merger,
        symbols: &mut Vec<Symbol>,
        out: &mut Vec<u32>,
    ) {
        merger.merge(symbols, |left, right| self.pair(left, right));
        for symbol in symbols.iter() {
            self.emit(vocabulary, word, symbol, out);
        }
    }

    fn pair(&self, left: &Symbol, right: &Symbol) -> Merge {
        self.merges.get(&pair(left.id, right.id)).copied()
    }

    /// The token of a symbol; what is no token goes byte by byte, and what has no token for a byte is lost.
    fn emit(&self, vocabulary: &Vocabulary, word: &str, symbol: &Symbol, out: &mut Vec<u32>) {
        if vocabulary.is_token(symbol.id) {
            return out.push(symbol.id);
        }
        let bytes = &word.as_bytes()[symbol.start as usize..(symbol.start + symbol.len) as usize];
        // Of the byte-level alphabet only printable ASCII is one byte long.
        let whole = |byte: &&u8| self.preset.raw || byte.is_ascii_graphic();
        out.extend(bytes.iter().filter(whole).filter_map(|&byte| self.fallback[usize::from(byte)]));
    }
}

fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}
