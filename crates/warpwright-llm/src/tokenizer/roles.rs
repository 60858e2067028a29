//! The roles of single tokens: the beginning and the end of a text, and the end of generation.
//!
//! Files name some of these tokens by id. Others are found by their text only, and files mark some as normal that a
//! model uses as control tokens. The rules and their exceptions are llama.cpp's.

use super::error::TokenizerError;
use super::vocabulary::{Kind, Vocabulary};
use crate::gguf::Metadata;
use std::collections::BTreeSet;

/// The tokens with a role of their own.
#[derive(Debug, Default)]
pub(super) struct Roles {
    pub(super) bos: Option<u32>,
    pub(super) eos: Option<u32>,
    pub(super) eot: Option<u32>,
    pub(super) unknown: Option<u32>,
    pub(super) add_bos: bool,
    pub(super) add_eos: bool,
    /// All that end generation.
    pub(super) ends: BTreeSet<u32>,
}

/// A role that a key names, or else a text.
struct Known {
    key: &'static str,
    /// Separated by spaces.
    texts: &'static str,
}

const EOT: Known = Known {
    key: "tokenizer.ggml.eot_token_id",
    texts: "<|eot_id|> <|im_end|> <|end|> <end_of_turn> <|endoftext|> <|end_of_text|> <EOT> _<EOT> \
         [EOT] <｜end▁of▁sentence｜> <end_of_utterance>",
};
const EOM: Known = Known { key: "tokenizer.ggml.eom_token_id", texts: "<|eom_id|>" };

/// Tokens of fill-in-the-middle: where the text before and after goes, and the middle.
const FILL: [Known; 3] = [
    Known {
        key: "tokenizer.ggml.fim_pre_token_id",
        texts: "<|fim_prefix|> <fim-prefix> <fim_prefix> <｜fim▁begin｜> <PRE> ▁<PRE> <|code_prefix|> \
         <|prefix|>",
    },
    Known {
        key: "tokenizer.ggml.fim_suf_token_id",
        texts: "<|fim_suffix|> <fim-suffix> <fim_suffix> <｜fim▁hole｜> <SUF> ▁<SUF> <|code_suffix|> \
         <|suffix|>",
    },
    Known {
        key: "tokenizer.ggml.fim_mid_token_id",
        texts: "<|fim_middle|> <fim-middle> <fim_middle> <｜fim▁end｜> <MID> ▁<MID> <|code_middle|> \
         <|middle|>",
    },
];
/// The older keys of the same.
const FILL_BEFORE: [&str; 3] =
    ["tokenizer.ggml.prefix_token_id", "tokenizer.ggml.suffix_token_id", "tokenizer.ggml.middle_token_id"];

/// Tokens of fill-in-the-middle that end generation: padding, the next repository, the next file.
const FILL_ENDS: [Known; 3] = [
    Known { key: "tokenizer.ggml.fim_pad_token_id", texts: "<|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD]" },
    Known {
        key: "tokenizer.ggml.fim_rep_token_id",
        texts: "<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>",
    },
    Known { key: "tokenizer.ggml.fim_sep_token_id", texts: "<|file_sep|>" },
];

/// Texts that end generation whatever the file says.
const ENDS: &str = "<|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|flush|> <|calls|> <end_of_turn> \
     <|endoftext|> </s> <|eom_id|> <EOT> _<EOT> [EOT] [EOS] <|end_of_text|> \
     <end_of_utterance> <eos> <turn|> <|tool_response> <｜end▁of▁sentence｜> [e~[";

/// Texts that are shown, although files call them control tokens.
const SHOWN: [&str; 4] = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

/// What holds where the file is silent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defaults {
    pub(super) bos: Option<u32>,
    pub(super) eos: Option<u32>,
    pub(super) unknown: Option<u32>,
    pub(super) add_bos: bool,
    /// A text begins with BOS whatever the file says.
    pub(super) force_bos: bool,
}

impl Roles {
    /// Finds the roles, and corrects the kinds of their tokens.
    pub(super) fn load(
        metadata: &Metadata,
        vocabulary: &mut Vocabulary,
        defaults: Defaults,
    ) -> Result<Roles, TokenizerError> {
        // An id that no token has is as good as none.
        let id = |key: &str,
                  default: Option<u32>,
                  vocabulary: &Vocabulary|
         -> Result<Option<u32>, TokenizerError> {
            let named = metadata.optional::<u32>(key)?;
            let known = |id: &u32| vocabulary.is_token(*id);
            Ok(named.filter(known).or(default.filter(known)))
        };
        // Of several texts the first is the one, and becomes a control token.
        let find =
            |role: &Known, older: Option<&str>, vocabulary: &mut Vocabulary| -> Result<_, TokenizerError> {
                let mut found = id(role.key, None, vocabulary)?;
                if let Some(older) = older {
                    found = id(older, found, vocabulary)?;
                }
                Ok(found.or_else(|| {
                    let found = role.texts.split(' ').find_map(|text| vocabulary.find(text))?;
                    vocabulary.kind_mut(found)?.set(Kind::CONTROL, true);
                    Some(found)
                }))
            };

        let eot = find(&EOT, None, vocabulary)?;
        let eom = find(&EOM, None, vocabulary)?;
        for (role, older) in FILL.iter().zip(FILL_BEFORE) {
            find(role, Some(older), vocabulary)?;
        }
        let mut ends = BTreeSet::new();
        for role in &FILL_ENDS {
            ends.extend(find(role, None, vocabulary)?);
        }
        let mut roles = Roles {
            bos: id("tokenizer.ggml.bos_token_id", defaults.bos, vocabulary)?,
            eos: id("tokenizer.ggml.eos_token_id", defaults.eos, vocabulary)?,
            eot,
            unknown: id("tokenizer.ggml.unknown_token_id", defaults.unknown, vocabulary)?,
            add_bos: metadata.optional("tokenizer.ggml.add_bos_token")?.unwrap_or(defaults.add_bos)
                || defaults.force_bos,
            add_eos: metadata.optional("tokenizer.ggml.add_eos_token")?.unwrap_or(false),
            ends,
        };
        roles.find_ends(vocabulary, eom);
        strip_around(metadata, vocabulary)?;
        Ok(roles)
    }

    fn find_ends(&mut self, vocabulary: &mut Vocabulary, eom: Option<u32>) {
        for text in ENDS.split(' ') {
            if let Some(id) = vocabulary.find(text) {
                self.ends.insert(id);
                if let Some(kind) = vocabulary.kind_mut(id) {
                    kind.set(Kind::CONTROL, true);
                }
            }
        }
        for text in SHOWN {
            if let Some(kind) = vocabulary.find(text).and_then(|id| vocabulary.kind_mut(id)) {
                *kind = Kind::USER_DEFINED;
            }
        }
        self.ends.extend([self.eos, self.eot, eom].into_iter().flatten());

        let ends = |roles: &Roles, text: &str| vocabulary.find(text).filter(|id| roles.ends.contains(id));
        // A model that returns and calls ends a message, not its turn, with `<|end|>`.
        let calls = ends(self, "<|call|>").or(ends(self, "<|calls|>")).is_some();
        let returns = ends(self, "<|return|>").or(ends(self, "<|flush|>")).is_some();
        let end = ends(self, "<|end|>").filter(|_| calls && returns);
        // Where another token ends a turn, `</s>` is text.
        let other = ends(self, "<|tool_response>").or(ends(self, "<|plamo:eos|>")).is_some();
        let normal = ends(self, "</s>").filter(|_| other);
        for (id, kind) in [(end, Kind::USER_DEFINED), (normal, Kind::NORMAL)] {
            if let Some(id) = id {
                self.ends.remove(&id);
                if let Some(of) = vocabulary.kind_mut(id) {
                    *of = kind;
                }
            }
        }
    }
}

/// Files do not say which tokens take the white space around them along; some models are known for it.
fn strip_around(metadata: &Metadata, vocabulary: &mut Vocabulary) -> Result<(), TokenizerError> {
    let text = |key| metadata.optional::<&str>(key).map(Option::unwrap_or_default);
    let pre = text("tokenizer.ggml.pre")?;
    let architecture = text("general.architecture")?;
    let name = text("general.name")?.to_ascii_lowercase();
    let any = |text: &str, parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let mut set = |token: &str, kind, on| {
        if let Some(of) = vocabulary.find(token).and_then(|id| vocabulary.kind_mut(id)) {
            of.set(kind, on);
        }
    };
    if any(pre, &["jina-v2-de", "jina-v2-es", "jina-v2-code"])
        || any(architecture, &["nomic-bert-moe", "jina-bert-v3"])
    {
        set("<mask>", Kind::LEFT_STRIP, true);
    } else if any(&name, &["phi-3", "phi3"]) {
        let special: Vec<u32> = vocabulary.of(Kind::SPECIAL).collect();
        for id in special.into_iter().chain(vocabulary.find("</s>")) {
            if let Some(of) = vocabulary.kind_mut(id) {
                of.set(Kind::RIGHT_STRIP, true);
            }
        }
        for token in ["<unk>", "<s>", "<|endoftext|>"] {
            if let Some(of) = vocabulary.find(token).and_then(|id| vocabulary.kind_mut(id)) {
                of.set(Kind::RIGHT_STRIP, false);
            }
        }
    } else if name.contains("modern-bert") {
        set("[MASK]", Kind::LEFT_STRIP, true);
    }
    Ok(())
}
