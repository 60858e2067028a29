//! Errors of vocabularies, and of texts to encode.

use crate::gguf::GgufError;

/// Why a vocabulary cannot be used, or a text not be encoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// A key is missing or of another type.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// An unsupported kind of tokenizer.
    #[error("tokenizer `{model}` is not supported; `tokenizer.ggml.model` may be gpt2, gemma4 or llama")]
    Model {
        /// What `tokenizer.ggml.model` says.
        model: String,
    },
    /// A byte-pair vocabulary with an unknown pre-tokenizer.
    #[error("pre-tokenizer `{name}` is not known; `tokenizer.ggml.pre` may be {known}")]
    PreTokenizer {
        /// What `tokenizer.ggml.pre` says.
        name: String,
        /// The names that are known.
        known: String,
    },
    /// A pre-tokenizer's own pattern is invalid.
    #[error("the pattern of pre-tokenizer `{name}` is wrong: {rule}")]
    Pattern {
        /// The name of the pre-tokenizer.
        name: String,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// There are no tokens.
    #[error("`tokenizer.ggml.tokens` is empty: there is no vocabulary to encode with")]
    Empty,
    /// An array that belongs to the tokens is shorter than their number.
    #[error("`{key}` has {entries} entries for {tokens} tokens: each token needs one")]
    Entries {
        /// The array.
        key: &'static str,
        /// How many entries it has.
        entries: usize,
        /// How many tokens there are.
        tokens: usize,
    },
    /// There are more tokens and merges than ids.
    #[error("{tokens} tokens and merges are more than a vocabulary can have")]
    TooMany {
        /// How many there are.
        tokens: usize,
    },
    /// The file asks for a token around every text, but names none.
    #[error("`{flag}` asks for a token that the file does not name: `{key}` is missing or out of range")]
    NoSpecial {
        /// The key that asks for it.
        flag: &'static str,
        /// The key that would name it.
        key: &'static str,
    },
    /// The vocabulary cannot express a byte of the text.
    #[error("the vocabulary has no token for byte 0x{byte:02X}, and none for what is unknown")]
    Byte {
        /// The byte.
        byte: u8,
    },
    /// The text is too long: the limit is 1 GiB.
    #[error("a text of {bytes} bytes is too long: encode it in parts of less than 1 GiB")]
    TextTooLong {
        /// Its length.
        bytes: usize,
    },
    /// There is no such token.
    #[error("token {id} does not exist: ids are 0 to {last}")]
    Id {
        /// The id.
        id: u32,
        /// The greatest id.
        last: u32,
    },
}
