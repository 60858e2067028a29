//! The tokens of a file: their texts, kinds and scores.
//!
//! The vocabulary does not depend on how a text is cut or merged. Texts that merges name but that are not tokens come
//! after the tokens, so that every text has one number.

use super::error::TokenizerError;
use super::texts::Texts;
use crate::gguf::Metadata;

/// What a token is: a set, since a token that looks like a control token becomes one on top of what the
/// file calls it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kind(u8);

impl Kind {
    pub(super) const UNKNOWN: Kind = Kind(1);
    pub(super) const NORMAL: Kind = Kind(2);
    pub(super) const CONTROL: Kind = Kind(4);
    pub(super) const USER_DEFINED: Kind = Kind(8);
    pub(super) const BYTE: Kind = Kind(16);
    /// White space before it belongs to it.
    pub(super) const LEFT_STRIP: Kind = Kind(32);
    /// White space after it belongs to it.
    pub(super) const RIGHT_STRIP: Kind = Kind(64);
    /// Shown only on request.
    pub(super) const HIDDEN: Kind = Kind(Self::UNKNOWN.0 | Self::CONTROL.0);
    /// Found in a text before anything else.
    pub(super) const SPECIAL: Kind = Kind(Self::HIDDEN.0 | Self::USER_DEFINED.0);

    /// What `tokenizer.ggml.token_type` calls it; unused and undefined tokens are of no kind.
    fn of(token_type: i32) -> Kind {
        match token_type {
            1 => Kind::NORMAL,
            2 => Kind::UNKNOWN,
            3 => Kind::CONTROL,
            4 => Kind::USER_DEFINED,
            6 => Kind::BYTE,
            _ => Kind::default(),
        }
    }

    /// Whether it is any of `kinds`.
    pub(super) fn is(self, kinds: Kind) -> bool {
        self.0 & kinds.0 != 0
    }

    pub(super) fn set(&mut self, kind: Kind, on: bool) {
        match on {
            true => self.0 |= kind.0,
            false => self.0 &= !kind.0,
        }
    }
}

/// The tokens.
#[derive(Debug)]
pub(super) struct Vocabulary {
    texts: Texts,
    kinds: Vec<Kind>,
    scores: Vec<f32>,
    longest: usize,
}

const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const SCORES: &str = "tokenizer.ggml.scores";

impl Vocabulary {
    pub(super) fn load(metadata: &Metadata) -> Result<Vocabulary, TokenizerError> {
        let tokens = metadata.strings(TOKENS)?;
        let count = tokens.len();
        if count == 0 {
            return Err(TokenizerError::Empty);
        }
        if count > u32::MAX as usize / 4 {
            return Err(TokenizerError::TooMany { tokens: count });
        }
        let enough = |key, entries| match entries < count {
            true => Err(TokenizerError::Entries { key, entries, tokens: count }),
            false => Ok(()),
        };

        let mut texts = Texts::with_capacity(count + 256);
        let mut longest = 0;
        for (id, token) in tokens.enumerate() {
            longest = longest.max(token.len());
            match token {
                "" => texts.push(&format!("[EMPTY_{id}]")),
                token => texts.push(token),
            };
        }

        let types: Option<Vec<i32>> = metadata.optional(TYPES)?;
        let kinds = match types {
            Some(types) => {
                enough(TYPES, types.len())?;
                types[..count].iter().map(|&ty| Kind::of(ty)).collect()
            }
            None => vec![Kind::NORMAL; count],
        };

        let scores = match metadata.optional::<Vec<f32>>(SCORES) {
            Ok(scores) => scores.unwrap_or_default(),
            // Integers are scores too.
            Err(wrong) => match metadata.i32s(SCORES) {
                Ok(scores) => scores.into_iter().map(|score| score as f32).collect(),
                Err(_) => return Err(wrong.into()),
            },
        };
        if metadata.get(SCORES).is_some() {
            enough(SCORES, scores.len())?;
        }
        Ok(Vocabulary { texts, kinds, scores, longest })
    }

    /// How many tokens there are.
    pub(super) fn len(&self) -> u32 {
        self.kinds.len() as u32
    }

    /// The length in bytes of the longest token's text.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// The token with this text.
    pub(super) fn find(&self, text: &str) -> Option<u32> {
        self.texts.find(text).filter(|&id| self.is_token(id))
    }

    /// Whether this numbers a token, and not a text that only merges name.
    pub(super) fn is_token(&self, id: u32) -> bool {
        id < self.len()
    }

    /// The number of a text; a new one for what is no token.
    pub(super) fn number(&mut self, text: &str) -> u32 {
        self.texts.find_or_push(text)
    }

    /// The number of a text that a token or a merge has.
    pub(super) fn find_number(&self, text: &str) -> Option<u32> {
        self.texts.find(text)
    }

    /// The text that has this number.
    pub(super) fn text(&self, number: u32) -> Option<&str> {
        self.texts.get(number)
    }

    /// The texts of all tokens and merges.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        (0..self.texts.len() as u32).filter_map(|number| self.texts.get(number))
    }

    pub(super) fn kind(&self, id: u32) -> Kind {
        self.kinds.get(id as usize).copied().unwrap_or_default()
    }

    pub(super) fn kind_mut(&mut self, id: u32) -> Option<&mut Kind> {
        self.kinds.get_mut(id as usize)
    }

    /// 0 where the file has no scores.
    pub(super) fn score(&self, id: u32) -> f32 {
        self.scores.get(id as usize).copied().unwrap_or(0.0)
    }

    /// The tokens of any of these kinds, in order.
    pub(super) fn of(&self, kinds: Kind) -> impl Iterator<Item = u32> + '_ {
        (0..self.len()).filter(move |&id| self.kind(id).is(kinds))
    }
}
