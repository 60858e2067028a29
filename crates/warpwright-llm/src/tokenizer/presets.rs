//! The pre-tokenizers of byte-pair vocabularies, by their names in `tokenizer.ggml.pre`.
//!
//! Each is data: the steps that cut text into words, and other settings that depend on the name. They are those of
//! llama.cpp and cut like it, also where its patterns differ from the model's own.

/// One way to cut every word that the steps before it made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Each match is a word; so is what lies between two.
    Pattern(&'static str),
    /// Digits are grouped by threes from the right; the first group of a number takes along the text before
    /// it.
    NumberGroups,
    /// A number ends a word wherever a multiple of three ASCII digits is left of it.
    Thousands,
}
use Step::{NumberGroups, Pattern, Thousands};

/// What a pre-tokenizer's name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preset {
    /// Separated by spaces.
    names: &'static str,
    pub(super) steps: &'static [Step],
    /// A word that is a token is that token, whatever the merges say.
    pub(super) ignore_merges: bool,
    /// A text begins with BOS unless the file says otherwise.
    pub(super) add_bos: bool,
    /// ... and whatever the file says.
    pub(super) force_bos: bool,
    /// There is no BOS unless the file names one.
    pub(super) no_bos: bool,
    /// Spaces become `▁`.
    pub(super) escape_spaces: bool,
    /// Tokens are UTF-8, not the byte-level alphabet; a byte on its own is `<0xXX>`.
    pub(super) raw: bool,
    /// A run of newlines that is a token is that token.
    pub(super) whole_newlines: bool,
}

impl Preset {
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.names.split(' ')
    }
}

const fn preset(names: &'static str, steps: &'static [Step]) -> Preset {
    Preset {
        names,
        steps,
        ignore_merges: false,
        add_bos: false,
        force_bos: false,
        no_bos: false,
        escape_spaces: false,
        raw: false,
        whole_newlines: false,
    }
}

/// English contractions in either case.
macro_rules! contraction {
    () => {
        "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
    };
}
/// Punctuation and white space, as the patterns since GPT-4's end.
macro_rules! ending {
    () => {
        concat!(r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+", spaces!())
    };
}
/// A run of white space leaves its last to the word after it.
macro_rules! spaces {
    () => {
        r"|\s+(?!\S)|\s+"
    };
}
macro_rules! slash_ending {
    () => {
        concat!(r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+", spaces!())
    };
}
/// Words by case: what is not ASCII counts as either.
macro_rules! by_case {
    ($letter:literal, $after:expr) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?[",
            $letter,
            "&&[^a-z]]*[",
            $letter,
            "&&[^A-Z]]+",
            $after,
            r"|[^\r\n\p{L}\p{N}]?[",
            $letter,
            "&&[^a-z]]+[",
            $letter,
            "&&[^A-Z]]*",
            $after,
        )
    };
}
macro_rules! contraction_after {
    () => {
        concat!("(?:", contraction!(), ")?")
    };
}

const GPT2: Step = Pattern(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+");
const DIGIT: Step = Pattern(r"\p{N}");
const NEWLINES: Step = Pattern(r"[^\n]+|\n+");
const LLAMA3: Step = Pattern(concat!(contraction!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}", ending!()));
const QWEN2: Step = Pattern(concat!(contraction!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}", ending!()));
/// Sentence marks of many scripts, and a bar and a parenthesis that the class was not meant to have.
const SENTENCE: Step = Pattern(r" ?[^(\s|.,!?…。，、।۔،)]+");
/// A mark with a word, a word with its marks, punctuation: DeepSeek's last step.
const DEEPSEEK: Step = Pattern(concat!(
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+",
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+",
    spaces!()
));
/// Letters that have case, as DeepSeek lists them.
const CASED: &str = concat!(
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕ",
    "ἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u{1f7d}ᾀ-ᾴᾶ-ᾼ\u{1fbe}ῂ-ῄῆ-ῌῐ-\u{1fd3}ῖ-\u{1fdb}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u{2126}ℨ",
    "\u{212a}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
);
const HAN_AND_HANGUL: Step = Pattern("[一-龥ࠀ-一가-\u{d7ff}]+");
const HAN_AND_KANA: Step = Pattern("[一-龥぀-ゟ゠-ヿ]+");
/// A word of letters and marks, with its contraction.
macro_rules! marked_word {
    () => {
        concat!(r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+", contraction_after!())
    };
}

/// Where the file names none.
pub(super) const DEFAULT: Preset =
    preset("default", &[Pattern(r"[\p{P}$+<=>^~|]+"), GPT2, Pattern(r"\p{N}+"), Pattern("[0-9][0-9][0-9]")]);

/// All of them.
pub(super) const PRESETS: &[Preset] = &[
    DEFAULT,
    Preset {
        ignore_merges: true,
        add_bos: true,
        ..preset("llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", &[LLAMA3])
    },
    preset("dbrx smaug-bpe", &[LLAMA3]),
    Preset { no_bos: true, ..preset("chatglm-bpe", &[LLAMA3]) },
    Preset { no_bos: true, ignore_merges: true, ..preset("glm4 glm5", &[LLAMA3]) },
    preset(
        "jais-2",
        &[Pattern(concat!(
            contraction!(),
            r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
            r"|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)",
            r"|\s{4}(?!\S)|\s{1,2}(?!\S)|\s"
        ))],
    ),
    preset(
        "gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert \
             jina-v1-en jina-v2-code roberta-bpe mpt olmo jais exaone4 trillion granite-docling",
        &[GPT2],
    ),
    preset("starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", &[DIGIT, GPT2]),
    preset("falcon", &[Pattern(r"[\p{P}$+<=>^~|`]+"), GPT2, Pattern("[0-9][0-9][0-9]")]),
    preset("qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2", &[QWEN2]),
    preset(
        "qwen35",
        &[Pattern(concat!(
            contraction!(),
            r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+",
            spaces!()
        ))],
    ),
    preset("ufakzeka", &[Pattern(concat!(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}", ending!()))]),
    preset("laguna", &[NEWLINES, QWEN2]),
    Preset {
        ignore_merges: true,
        ..preset(
            "minicpm5",
            &[
                Pattern(r"\p{N}{1,3}"),
                Pattern(concat!(contraction!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+", ending!())),
            ],
        )
    },
    preset(
        "bailingmoe bailingmoe2 llada-moe",
        &[Pattern(concat!(
            r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]",
            spaces!()
        ))],
    ),
    preset(
        "seed-coder",
        &[Pattern(concat!(
            contraction!(),
            r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+",
            spaces!()
        ))],
    ),
    preset(
        "exaone-moe",
        &[Pattern(concat!(
            contraction!(),
            r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]",
            spaces!()
        ))],
    ),
    preset(
        "deepseek-llm",
        &[
            Pattern("[\r\n]"),
            Pattern(CASED),
            Pattern(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"),
            Pattern(r"\s+$"),
            HAN_AND_HANGUL,
            Pattern(r"\p{N}+"),
        ],
    ),
    preset(
        "deepseek-coder",
        &[Pattern("[\r\n]"), Pattern(r"\s?\p{L}+"), Pattern(r"\s?\p{P}+"), HAN_AND_HANGUL, DIGIT],
    ),
    preset("deepseek-v3 hunyuan-dense joyai-llm hy_v4", &[Pattern(r"\p{N}{1,3}"), HAN_AND_KANA, DEEPSEEK]),
    preset(
        "spark2_5",
        &[
            Pattern(r"\p{N}{1,3}"),
            HAN_AND_KANA,
            Pattern(concat!(
                "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+",
                r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]",
                spaces!()
            )),
            DIGIT,
        ],
    ),
    preset(
        "afmoe",
        &[
            NumberGroups,
            Pattern(
                "[一-鿿㐀-䶿豈-\u{faff}぀-ゟ゠-ヿ･-ﾟ⼀-\u{2fdf}เ-\u{e7f}຀-\u{eff}ក-\u{17ff}က-႟ꩠ-ꩿꧠ-\u{a9ff}가-\u{d7af}ᄀ-ᇿ]+",
            ),
            DEEPSEEK,
        ],
    ),
    Preset {
        ignore_merges: true,
        ..preset(
            "youtu",
            &[
                Pattern("[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+"),
                Pattern(concat!(marked_word!(), r"|\p{N}", slash_ending!())),
            ],
        )
    },
    preset(
        "tiny_aya cohere2moe",
        &[NumberGroups, Pattern(concat!(marked_word!(), r"|\p{N}{1,3}", slash_ending!()))],
    ),
    preset("poro-chat bloom gpt3-finnish", &[SENTENCE]),
    preset("viking", &[SENTENCE, DIGIT]),
    Preset {
        ignore_merges: true,
        add_bos: true,
        ..preset("tekken", &[Pattern(concat!(by_case!(r"\p{L}", ""), r"|\p{N}", slash_ending!()))])
    },
    preset(
        "gpt-4o llama4 kanana2 talkie minimax-m2",
        &[Pattern(concat!(by_case!(r"\p{L}", contraction_after!()), r"|\p{N}{1,3}", slash_ending!()))],
    ),
    Preset {
        ignore_merges: true,
        ..preset(
            "granite-embed-multi-97m",
            &[Pattern(concat!(
                by_case!(r"\p{L}\p{M}", contraction_after!()),
                r"|\p{N}{1,3}",
                slash_ending!()
            ))],
        )
    },
    Preset {
        add_bos: true,
        ..preset(
            "chameleon",
            &[
                Pattern("<sentinel:[0-9]+>"),
                Pattern("IMGIMG[A-I]{1,4}Z"),
                Pattern("[\t\n]|    |  "),
                DIGIT,
                Pattern(r"[\p{P}!-/:-@\[-`{-~]"),
                GPT2,
            ],
        )
    },
    preset(
        "kimi-k2",
        &[Pattern(concat!(
            r"\p{Han}+|[^\r\n\p{L}\p{N}]?[\p{L}&&[^\p{Han}]]+",
            contraction_after!(),
            r"|\p{N}{1,3}",
            ending!()
        ))],
    ),
    preset("superbpe", &[Pattern(r"\p{N}+"), Thousands]),
    Preset {
        escape_spaces: true,
        raw: true,
        whole_newlines: true,
        force_bos: true,
        ..preset("gemma4 granite-embed-multi-311m", &[NEWLINES])
    },
    Preset { escape_spaces: true, raw: true, ..preset("sarvam-moe", &[NEWLINES]) },
    Preset { raw: true, ..preset("whitespace", &[Pattern(r"[^\s]+")]) },
];

/// The pre-tokenizer of that name.
pub(super) fn named(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.names().any(|own| own == name))
}

/// Every name that is known.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().flat_map(Preset::names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::split::Splitter;
    use std::collections::HashSet;

    #[test]
    fn every_preset_compiles_and_every_name_is_one_presets() {
        let mut seen = HashSet::new();
        for preset in PRESETS {
            Splitter::new(preset.steps).unwrap_or_else(|why| panic!("{:?}: {why}", preset.names));
            assert!(preset.names().all(|name| seen.insert(name)), "{:?}", preset.names);
        }
    }
}
