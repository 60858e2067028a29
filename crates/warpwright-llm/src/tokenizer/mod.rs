//! Conversion of text to tokens and back, with the vocabulary of a GGUF file.
//!
//! ```text
//!  text ──► special tokens ──► words ──► merges ──► ids         byte-pair vocabularies (`gpt2`, `gemma4`)
//!                   └────────► spaces ─► merges ──► ids         SentencePiece (`llama`)
//! ```
//!
//! The ids are those of llama.cpp, for every text: where its patterns differ from those of the model's own tokenizer,
//! this follows llama.cpp, because its users' models were tested with it. The code does not depend on a model: a
//! model's special rules are a row of a table, selected by the metadata.

use crate::gguf::Gguf;

mod alphabet;
mod bpe;
mod error;
mod joints;
mod merge;
mod partition;
mod pattern;
mod presets;
mod roles;
mod split;
mod spm;
mod stream;
mod texts;
mod unicode;
mod vocabulary;

pub use error::TokenizerError;
pub use stream::TextStream;

use bpe::Bpe;
use partition::{Segment, Specials};
use presets::Preset;
use roles::{Defaults, Roles};
use spm::Spm;
use texts::Pieces;
use vocabulary::{Kind, Vocabulary};

/// A text of this many bytes cannot be encoded at once: with every space written as three bytes its
/// positions must fit 32 bits.
const TOO_LONG: usize = 1 << 30;

/// Bytes of the longest token that is shown as one outside the alphabet.
const LONGEST_SHOWN: usize = 128;

/// How a text is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encode {
    /// Put BOS before and EOS after the text, if the file asks for it.
    pub add_special: bool,
    /// Encode the texts of control tokens, such as `<|im_start|>`, as those tokens; otherwise they are plain text.
    pub parse_special: bool,
}

/// The tokenizer of a model file.
#[derive(Debug)]
pub struct Tokenizer {
    vocabulary: Vocabulary,
    roles: Roles,
    specials: Specials,
    model: Model,
    /// What each token says, as bytes.
    pieces: Pieces,
    warnings: Vec<String>,
}

#[derive(Debug)]
enum Model {
    Bpe(Bpe),
    Spm(Spm),
}

impl Tokenizer {
    /// Reads the vocabulary, the merges and the rules from the metadata.
    ///
    /// # Errors
    ///
    /// A key is missing or of another type, arrays do not match, or the tokenizer or pre-tokenizer is unknown; the
    /// message lists the known ones.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, TokenizerError> {
        let metadata = gguf.metadata();
        let kind = metadata.str("tokenizer.ggml.model")?;
        match kind {
            "gpt2" | "gemma4" => {
                let mut warnings = Vec::new();
                let name = match kind {
                    "gemma4" => Some("gemma4"),
                    _ => metadata.optional::<&str>("tokenizer.ggml.pre")?.filter(|name| !name.is_empty()),
                };
                let preset = match name {
                    Some(name) => preset(name)?,
                    None => {
                        warnings.push(
                            "`tokenizer.ggml.pre` is missing: text is cut as `default` says, which may not be how the \
                             model was trained"
                                .to_string(),
                        );
                        &presets::DEFAULT
                    }
                };
                let mut vocabulary = Vocabulary::load(metadata)?;
                let own = (kind == "gpt2").then_some(11);
                let defaults = Defaults {
                    bos: own.filter(|_| !preset.no_bos),
                    eos: own,
                    unknown: None,
                    add_bos: preset.add_bos,
                    force_bos: preset.force_bos,
                };
                let roles = Roles::load(metadata, &mut vocabulary, defaults)?;
                // Kimi's vocabulary has no merges.
                let merges = match metadata.optional::<Vec<&str>>("tokenizer.ggml.merges")? {
                    None if name == Some("kimi-k2") => Vec::new(),
                    None => metadata.required("tokenizer.ggml.merges")?,
                    Some(merges) => merges,
                };
                let bpe = Bpe::new(&mut vocabulary, merges.into_iter(), preset)?;
                let raw = preset.escape_spaces;
                Ok(Tokenizer::assemble(vocabulary, roles, Model::Bpe(bpe), raw, warnings))
            }
            "llama" => {
                let mut vocabulary = Vocabulary::load(metadata)?;
                let defaults = Defaults {
                    bos: Some(1),
                    eos: Some(2),
                    unknown: Some(0),
                    add_bos: true,
                    force_bos: false,
                };
                let roles = Roles::load(metadata, &mut vocabulary, defaults)?;
                let space_prefix = metadata.optional("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
                let spm = Spm::new(&vocabulary, space_prefix, roles.unknown);
                Ok(Tokenizer::assemble(vocabulary, roles, Model::Spm(spm), true, Vec::new()))
            }
            other => Err(TokenizerError::Model { model: other.to_string() }),
        }
    }

    /// `escaped`: tokens write a space as `▁`, and are not in the byte-level alphabet.
    fn assemble(
        vocabulary: Vocabulary,
        roles: Roles,
        model: Model,
        escaped: bool,
        warnings: Vec<String>,
    ) -> Self {
        let mut pieces = Pieces::with_capacity(vocabulary.len() as usize);
        for id in 0..vocabulary.len() {
            let text = vocabulary.text(id).unwrap_or_default();
            pieces.push_with(|out| spell(text, vocabulary.kind(id), escaped, out));
        }
        let specials = Specials::new(&vocabulary);
        Tokenizer { vocabulary, roles, specials, model, pieces, warnings }
    }

    /// The tokens of a text.
    ///
    /// # Errors
    ///
    /// The file asks for BOS or EOS but names none, a byte of the text has no token, or the text is longer
    /// than 1 GiB.
    pub fn encode(&self, text: &str, options: Encode) -> Result<Vec<u32>, TokenizerError> {
        if text.len() >= TOO_LONG {
            return Err(TokenizerError::TextTooLong { bytes: text.len() });
        }
        let mut out = Vec::with_capacity(text.len() / 3 + 2);
        if options.add_special && self.roles.add_bos {
            out.push(self.roles.bos.ok_or(TokenizerError::NoSpecial {
                flag: "tokenizer.ggml.add_bos_token",
                key: "tokenizer.ggml.bos_token_id",
            })?);
        }
        let mut first = true;
        for part in self.specials.partition(text, options.parse_special) {
            match (part, &self.model) {
                (Segment::Token(id), _) => out.push(id),
                (Segment::Text(text), Model::Bpe(bpe)) => bpe.encode(&self.vocabulary, text, &mut out),
                (Segment::Text(text), Model::Spm(spm)) => {
                    spm.encode(&self.vocabulary, text, first, &mut out)?
                }
            }
            first = matches!(part, Segment::Token(_));
        }
        if options.add_special && self.roles.add_eos {
            out.push(self.roles.eos.ok_or(TokenizerError::NoSpecial {
                flag: "tokenizer.ggml.add_eos_token",
                key: "tokenizer.ggml.eos_token_id",
            })?);
        }
        Ok(out)
    }

    /// The bytes of tokens; they may end inside a character. `special` shows control tokens as their text.
    ///
    /// If the vocabulary puts a space before a text, the space at the start, or after BOS at the start, is removed. An
    /// unknown id adds nothing; [`check`](Self::check) finds it.
    pub fn decode(&self, ids: &[u32], special: bool) -> Vec<u8> {
        let prefixed = matches!(&self.model, Model::Spm(spm) if spm.space_prefix);
        let begin = usize::from(self.roles.bos.is_some() && ids.first().copied() == self.roles.bos);
        let mut out = Vec::new();
        for (i, &id) in ids.iter().enumerate() {
            let piece = self.piece(id, special).unwrap_or_default();
            let piece = match prefixed && i == begin {
                true => piece.strip_prefix(b" ").unwrap_or(piece),
                false => piece,
            };
            out.extend_from_slice(piece);
        }
        out
    }

    /// Checks that every id is a token.
    ///
    /// # Errors
    ///
    /// Names the first id that is not.
    pub fn check(&self, ids: &[u32]) -> Result<(), TokenizerError> {
        match ids.iter().find(|&&id| !self.vocabulary.is_token(id)) {
            Some(&id) => Err(TokenizerError::Id { id, last: self.vocabulary.len() - 1 }),
            None => Ok(()),
        }
    }

    /// The bytes of a token; nothing for a control token unless `special`.
    fn piece(&self, id: u32, special: bool) -> Option<&[u8]> {
        let hidden = !special && self.vocabulary.kind(id).is(Kind::HIDDEN);
        self.pieces.get(id as usize).map(|piece| if hidden { &[] } else { piece })
    }

    /// The bytes of a token; for a control token, those of its text.
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.pieces.get(id as usize)
    }

    /// The text of a token as in the file: in the byte-level alphabet, or with `▁` for a space.
    pub fn token_text(&self, id: u32) -> Option<&str> {
        self.vocabulary.text(id).filter(|_| self.vocabulary.is_token(id))
    }

    /// The token with this text, written as in the file.
    pub fn token(&self, text: &str) -> Option<u32> {
        self.vocabulary.find(text)
    }

    /// Number of tokens; ids are smaller than it.
    pub fn vocab_len(&self) -> u32 {
        self.vocabulary.len()
    }

    /// The BOS token: the beginning of a text.
    pub fn bos(&self) -> Option<u32> {
        self.roles.bos
    }

    /// The EOS token: the end of a text.
    pub fn eos(&self) -> Option<u32> {
        self.roles.eos
    }

    /// The EOT token: the end of a turn of a conversation.
    pub fn eot(&self) -> Option<u32> {
        self.roles.eot
    }

    /// Whether [`encode`](Self::encode) puts BOS before a text when asked to add special tokens.
    pub fn adds_bos(&self) -> bool {
        self.roles.add_bos
    }

    /// Whether [`encode`](Self::encode) puts EOS after a text when asked to add special tokens.
    pub fn adds_eos(&self) -> bool {
        self.roles.add_eos
    }

    /// Whether generation ends with this token: end of text, of a turn, of a message, of a file.
    pub fn is_end(&self, id: u32) -> bool {
        self.roles.ends.contains(&id)
    }

    /// The tokens that end generation, in order.
    pub fn ends(&self) -> impl Iterator<Item = u32> + '_ {
        self.roles.ends.iter().copied()
    }

    /// Whether the token is a control token and not text.
    pub fn is_control(&self, id: u32) -> bool {
        self.vocabulary.kind(id).is(Kind::CONTROL)
    }

    /// Warnings for people: what the file leaves open, and the default that was used.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

fn preset(name: &str) -> Result<&'static Preset, TokenizerError> {
    presets::named(name).ok_or_else(|| TokenizerError::PreTokenizer {
        name: name.to_string(),
        known: presets::names().collect::<Vec<_>>().join(", "),
    })
}

/// Writes what a token says.
fn spell(text: &str, kind: Kind, escaped: bool, out: &mut Vec<u8>) {
    if kind.is(Kind::SPECIAL) {
        out.extend_from_slice(text.as_bytes());
    } else if kind.is(Kind::NORMAL) && escaped {
        out.extend_from_slice(text.replace(spm::SPACE, " ").as_bytes());
    } else if kind.is(Kind::NORMAL) {
        for c in text.chars() {
            match alphabet::byte(c) {
                Some(byte) => out.push(byte),
                // A text outside the alphabet says so, once for each character that is. For a long one that
                // would be its length squared, and no vocabulary has such.
                None if text.len() > LONGEST_SHOWN => {
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes())
                }
                None => {
                    out.extend_from_slice(b"[UNK_BYTE_0x");
                    let mut utf8 = [0; 4];
                    for byte in c.encode_utf8(&mut utf8).bytes() {
                        out.extend_from_slice(format!("{byte:02x}").as_bytes());
                    }
                    out.extend_from_slice(text.as_bytes());
                    out.push(b']');
                }
            }
        }
    } else if kind.is(Kind::BYTE) {
        // `<0xXX>`
        out.extend(text.get(3..5).and_then(|digits| u8::from_str_radix(digits, 16).ok()));
    }
}
