//! Tokenizers: ids are llama.cpp's, text comes back as it was, and no vocabulary makes a panic.
//!
//! `data/tokenizers/` has vocabularies of our own and llama.cpp's ids, made by `tools/test-vocabularies/`.
//! `WARPWRIGHT_VOCABULARIES=FOLDER` takes more from there: files `NAME.gguf`, each with texts in `NAME.gguf.inp`,
//! separated by lines `__ggml_vocab_test__`, and a line of ids for each in `NAME.gguf.out`, as llama.cpp keeps
//! them.

use serde_json::Value as Json;
use std::collections::BTreeMap;
use warpwright_llm::gguf::write::GgufWriter;
use warpwright_llm::gguf::{Array, Gguf, Value};
use warpwright_llm::tokenizer::{Encode, TextStream, Tokenizer, TokenizerError};

const PLAIN: Encode = Encode { add_special: false, parse_special: false };
const PARSED: Encode = Encode { add_special: false, parse_special: true };

fn vocabulary(name: &str) -> Gguf {
    let bytes: &'static [u8] = match name {
        "bpe" => include_bytes!("data/tokenizers/bpe.gguf"),
        "raw" => include_bytes!("data/tokenizers/raw.gguf"),
        "spm" => include_bytes!("data/tokenizers/spm.gguf"),
        other => panic!("there is no vocabulary {other}"),
    };
    Gguf::from_static(bytes).expect("a vocabulary of the repository")
}

/// The vocabulary with keys set, or removed where there is no value.
fn variant(name: &str, keys: &[(&str, Option<Value>)]) -> Result<Tokenizer, TokenizerError> {
    let mut writer = GgufWriter::new();
    for (key, value) in vocabulary(name).metadata().iter() {
        writer.set(key, value.clone());
    }
    for (key, value) in keys {
        match value {
            Some(value) => writer.set(*key, value.clone()),
            None => writer.remove(key),
        };
    }
    let bytes = writer.to_bytes().expect("metadata can be written");
    Tokenizer::from_gguf(&Gguf::from_bytes(bytes).expect("what is written can be read"))
}

fn cases() -> Json {
    serde_json::from_str(include_str!("data/tokenizers/cases.json")).expect("the cases are JSON")
}

fn list<'j>(json: &'j Json, key: &str) -> &'j [Json] {
    json[key].as_array().expect("an array")
}

fn ids(json: &[Json]) -> Vec<u32> {
    json.iter().map(|id| id.as_u64().expect("an id") as u32).collect()
}

fn texts(cases: &Json) -> impl Iterator<Item = &str> {
    list(cases, "texts").iter().map(|text| text["text"].as_str().expect("a text"))
}

#[test]
fn ids_are_those_of_llama_cpp() {
    let document = cases();
    let flag = |case: &Json, key: &str| case[key].as_bool().expect("true or false");
    let mut compared = 0;
    for case in list(&document, "cases") {
        let set = case["set"].as_object().expect("keys and values");
        let value = |value: &Json| match value {
            Json::Bool(value) => Some(Value::Bool(*value)),
            Json::Number(value) => Some(Value::U32(value.as_u64().expect("an integer") as u32)),
            Json::String(value) => Some(Value::String(value.clone())),
            _ => None,
        };
        let keys: Vec<_> = set.iter().map(|(key, set)| (key.as_str(), value(set))).collect();
        let name = case["vocabulary"].as_str().expect("a name");
        let tokenizer = variant(name, &keys).unwrap_or_else(|error| panic!("{name} {keys:?}: {error}"));
        assert_eq!(tokenizer.ends().collect::<Vec<_>>(), ids(list(case, "ends")), "{name} {keys:?}");
        let how =
            Encode { add_special: flag(case, "add_special"), parse_special: flag(case, "parse_special") };
        for (text, outcome) in list(&document, "texts").iter().zip(list(case, "outcome")) {
            let wanted = &list(text, "ids")[outcome.as_u64().expect("an index") as usize];
            let text = text["text"].as_str().expect("a text");
            let found = tokenizer.encode(text, how).expect("every byte has a token");
            assert_eq!(found, ids(wanted.as_array().expect("ids")), "{name} {keys:?} {how:?}: {text:?}");
            compared += 1;
        }
    }
    assert!(compared > 5000, "{compared}");
}

#[test]
fn vocabularies_of_a_folder_agree_with_their_lists() {
    let Ok(folder) = std::env::var("WARPWRIGHT_VOCABULARIES") else { return };
    let mut compared = 0;
    for entry in std::fs::read_dir(&folder).expect("the folder can be read") {
        let path = entry.expect("an entry").path();
        let beside = |end: &str| std::fs::read_to_string(format!("{}.{end}", path.display()));
        let (true, Ok(texts), Ok(lists)) =
            (path.extension().is_some_and(|end| end == "gguf"), beside("inp"), beside("out"))
        else {
            continue;
        };
        let gguf = Gguf::open(&path).unwrap_or_else(|error| panic!("{error}"));
        let tokenizer = match Tokenizer::from_gguf(&gguf) {
            Err(TokenizerError::Model { .. }) => continue,
            tokenizer => tokenizer.unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        };
        for (text, wanted) in texts.split("\n__ggml_vocab_test__\n").zip(lists.lines()) {
            let wanted: Vec<u32> = wanted.split_whitespace().map(|id| id.parse().expect("an id")).collect();
            let found = tokenizer.encode(text, PLAIN).expect("every byte has a token");
            assert_eq!(found, wanted, "{}: {text:?}", path.display());
            compared += 1;
        }
    }
    assert!(compared > 0, "{folder} has no vocabulary with lists");
}

/// Text of any characters, many of them next to those that tokenizers look for.
fn arbitrary(state: &mut u64) -> String {
    let mut draw = |below: u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % below
    };
    let count = draw(40);
    let c = |draw: &mut dyn FnMut(u64) -> u64| match draw(4) {
        0 => b" \n\t'sL09.,<|>_"[draw(14) as usize] as char,
        1 => (b' ' + draw(95) as u8) as char,
        2 => char::from_u32(draw(0x3000) as u32).unwrap_or(' '),
        _ => char::from_u32(draw(0x11_0000) as u32).unwrap_or('\u{fffd}'),
    };
    (0..count).map(|_| c(&mut draw)).collect()
}

#[test]
fn text_comes_back_as_it_was() {
    let document = cases();
    let mut state = 1;
    let random: Vec<String> = (0..2000).map(|_| arbitrary(&mut state)).collect();
    let all = || texts(&document).chain(random.iter().map(String::as_str));
    for pre in ["gpt-2", "llama-bpe", "qwen2", "deepseek-llm", "bloom", "tekken", "superbpe", "afmoe"] {
        let tokenizer = variant("bpe", &[("tokenizer.ggml.pre", Some(pre.into()))]).expect("a known name");
        for text in all() {
            let ids = tokenizer.encode(text, PARSED).expect("every byte has a token");
            assert_eq!(tokenizer.decode(&ids, true), text.as_bytes(), "{pre}: {text:?} {ids:?}");
        }
    }
    // A space cannot be told from what stands for one, nor from the one that is put after a special token.
    let lossless = |text: &&str| !["▁", "<tool>", "</tool>", "     "].iter().any(|part| text.contains(part));
    for name in ["raw", "spm"] {
        let tokenizer =
            variant(name, &[("tokenizer.ggml.pre", Some("sarvam-moe".into()))]).expect("a known name");
        for text in all().filter(lossless) {
            for add_special in [false, true] {
                let how = Encode { add_special, parse_special: false };
                let ids = tokenizer.encode(text, how).expect("every byte has a token");
                assert_eq!(tokenizer.decode(&ids, false), text.as_bytes(), "{name}: {text:?} {ids:?}");
            }
        }
    }
}

#[test]
fn a_stream_gives_whole_characters_and_all_of_them() {
    let tokenizer = variant("bpe", &[("tokenizer.ggml.pre", Some("gpt-2".into()))]).expect("a known name");
    let mut state = 7;
    for round in 0..500 {
        let text = arbitrary(&mut state);
        let mut ids = tokenizer.encode(&text, PLAIN).expect("every byte has a token");
        if round % 2 == 1 {
            // Tokens in any order: not UTF-8 any more.
            ids.reverse();
        }
        let mut stream = TextStream::new(&tokenizer, false);
        let mut streamed = String::new();
        for &id in &ids {
            streamed.push_str(stream.push(id));
        }
        streamed.push_str(stream.finish());
        assert_eq!(streamed, String::from_utf8_lossy(&tokenizer.decode(&ids, false)), "{text:?} {ids:?}");
    }
}

#[test]
fn a_character_is_held_back_until_it_is_whole_and_no_longer() {
    let tokenizer = variant("bpe", &[("tokenizer.ggml.pre", Some("gpt-2".into()))]).expect("a known name");
    let byte = |byte: u8| {
        (0..tokenizer.vocab_len())
            .find(|&id| tokenizer.token_bytes(id) == Some(&[byte]))
            .expect("every byte is a token")
    };
    let mut stream = TextStream::new(&tokenizer, false);
    let mut push = |b: u8| stream.push(byte(b)).to_string();
    // 😀, then a beginning that a letter breaks off, then a byte that begins nothing.
    let pushed: Vec<String> = [0xf0, 0x9f, 0x98, 0x80, 0xe2, 0x82, b'a', 0xff, b'b'].map(&mut push).to_vec();
    assert_eq!(pushed, ["", "", "", "😀", "", "", "\u{fffd}a", "\u{fffd}", "b"]);
    assert_eq!(push(0xc3), "");
    assert_eq!(stream.finish(), "\u{fffd}");
    assert_eq!(stream.finish(), "");
}

#[test]
fn control_tokens_are_hidden_unless_asked_for() {
    let tokenizer = Tokenizer::from_gguf(&vocabulary("bpe")).expect("a vocabulary");
    let ids = tokenizer.encode("<|im_start|>hi<|im_end|><tool>", PARSED).expect("every byte has a token");
    assert_eq!(tokenizer.decode(&ids, false), b"hi<tool>");
    assert_eq!(tokenizer.decode(&ids, true), b"<|im_start|>hi<|im_end|><tool>");
    let end = tokenizer.token("<|im_end|>").expect("a token");
    assert!(tokenizer.is_end(end) && tokenizer.is_control(end));
    assert_eq!(tokenizer.eot(), Some(end));
    // What stands outside the alphabet says so.
    let outside = tokenizer.token("▁outside").expect("a token");
    assert_eq!(tokenizer.token_bytes(outside), Some(&b"[UNK_BYTE_0xe29681\xe2\x96\x81outside]outside"[..]));
}

#[test]
fn a_long_token_outside_the_alphabet_takes_no_more_than_it_is_long() {
    let long = "▁".repeat(100_000);
    let tokens = Value::from([long.as_str(), "a"].as_slice());
    let merges = Value::Array(Array::strings([]));
    let keys = [("tokenizer.ggml.tokens", tokens), ("tokenizer.ggml.merges", merges)];
    let tokenizer = small("gpt2", &keys).expect("a vocabulary");
    assert_eq!(tokenizer.token_bytes(0), Some(long.as_bytes()));
}

#[test]
fn a_missing_pre_tokenizer_is_the_default_and_an_unknown_one_an_error() {
    let missing = variant("bpe", &[]).expect("the default");
    let default = variant("bpe", &[("tokenizer.ggml.pre", Some("default".into()))]).expect("the default");
    assert_eq!((missing.warnings().len(), default.warnings().len()), (1, 0));
    let ids = |tokenizer: &Tokenizer| tokenizer.encode("a 12345 b", PLAIN).expect("every byte has a token");
    assert_eq!(ids(&missing), ids(&default));
    let unknown = variant("bpe", &[("tokenizer.ggml.pre", Some("klingon".into()))]);
    assert!(matches!(unknown, Err(TokenizerError::PreTokenizer { name, .. }) if name == "klingon"));
}

/// A vocabulary from nothing.
fn small(model: &str, keys: &[(&str, Value)]) -> Result<Tokenizer, TokenizerError> {
    let mut writer = GgufWriter::new();
    writer.set("tokenizer.ggml.model", model);
    for (key, value) in keys {
        writer.set(*key, value.clone());
    }
    let bytes = writer.to_bytes().expect("metadata can be written");
    Tokenizer::from_gguf(&Gguf::from_bytes(bytes).expect("what is written can be read"))
}

fn strings(texts: &[&str]) -> Value {
    texts.to_vec().into()
}

const TOKENS: &str = "tokenizer.ggml.tokens";
const MERGES: &str = "tokenizer.ggml.merges";
const TYPES: &str = "tokenizer.ggml.token_type";
const SCORES: &str = "tokenizer.ggml.scores";
const PRE: &str = "tokenizer.ggml.pre";

#[test]
fn what_a_file_lacks_is_named() {
    for model in ["bert", "t5", "rwkv", "plamo2", "none", ""] {
        let refused = small(model, &[(TOKENS, strings(&["a"]))]);
        assert!(matches!(refused, Err(TokenizerError::Model { model: named }) if named == model));
    }
    let tokens = (TOKENS, strings(&["a", "b"]));
    assert!(matches!(small("llama", &[]), Err(TokenizerError::Gguf(_))));
    assert!(matches!(small("llama", &[(TOKENS, strings(&[]))]), Err(TokenizerError::Empty)));
    assert!(matches!(small("gpt2", std::slice::from_ref(&tokens)), Err(TokenizerError::Gguf(_))));
    assert!(matches!(
        small("llama", &[tokens.clone(), (SCORES, vec![0f32].into())]),
        Err(TokenizerError::Entries { key: SCORES, entries: 1, tokens: 2 })
    ));
    assert!(matches!(
        small("llama", &[tokens.clone(), (TYPES, vec![1i32].into())]),
        Err(TokenizerError::Entries { key: TYPES, entries: 1, tokens: 2 })
    ));
    assert!(matches!(small("llama", &[(TOKENS, 3u32.into())]), Err(TokenizerError::Gguf(_))));
}

#[test]
fn strange_vocabularies_encode_what_they_can() {
    // Texts twice, an empty one, merges of nothing, twice, and of what is no token.
    let tokens = ["a", "b", "ab", "ab", "", "Ġ", "abab", "\u{fffd}", "中"];
    let merges = ["", "a", " ", "a b", "b a", "a b", "ab ab", "x y", "xy z", "a  b", "Ġ Ġ"];
    let keys = [(TOKENS, strings(&tokens)), (MERGES, strings(&merges)), (PRE, "gpt-2".into())];
    let tokenizer = small("gpt2", &keys).expect("a vocabulary");
    // Of two tokens with one text the later is found; what has no token is lost.
    assert_eq!(tokenizer.encode("abababxyz\u{0}中", PLAIN).expect("ids"), [6, 3]);
    assert_eq!(tokenizer.encode("a  b", PLAIN).expect("ids"), [0, 5, 5, 1]);
    assert_eq!(tokenizer.decode(&[4, 999, 0], true), b"[EMPTY_4]a");
    assert!(matches!(tokenizer.check(&[0, 9]), Err(TokenizerError::Id { id: 9, last: 8 })));
    // There is no id 11, and no other BOS.
    assert_eq!((tokenizer.bos(), tokenizer.eos()), (None, None));

    // SentencePiece without bytes: what is unknown is the unknown token, or an error where there is none.
    let keys = [
        (TOKENS, strings(&["<unk>", "x", "▁", "xx"])),
        (SCORES, vec![f32::NAN, -1.0, 0.0, f32::INFINITY].into()),
    ];
    let tokenizer = small("llama", &keys).expect("a vocabulary");
    assert_eq!(tokenizer.encode("xx\u{0}é", PLAIN).expect("ids"), [2, 3, 0, 0, 0]);
    let none = small("llama", &[(TOKENS, strings(&["x"])), ("tokenizer.ggml.unknown_token_id", 7u32.into())]);
    let none = none.expect("a vocabulary");
    assert_eq!(none.encode("x", Encode::default()).expect("ids of the space and the x").last(), Some(&0));
}

#[test]
fn a_token_that_is_asked_for_and_not_named_is_an_error() {
    let tokens = (TOKENS, strings(&["a"]));
    let merges = (MERGES, strings(&[]));
    let keys = [tokens, merges, (PRE, "gpt-2".into()), ("tokenizer.ggml.add_bos_token", true.into())];
    let tokenizer = small("gpt2", &keys).expect("a vocabulary");
    assert!(tokenizer.encode("a", PLAIN).is_ok());
    let added = tokenizer.encode("a", Encode { add_special: true, parse_special: false });
    assert!(matches!(added, Err(TokenizerError::NoSpecial { key: "tokenizer.ggml.bos_token_id", .. })));
}

#[test]
fn long_runs_of_anything_are_encoded() {
    let tokenizers: BTreeMap<&str, Tokenizer> =
        ["gpt-2", "llama-bpe", "deepseek-llm", "jais-2", "tekken", "superbpe", "tiny_aya", "exaone-moe"]
            .into_iter()
            .map(|pre| (pre, variant("bpe", &[(PRE, Some(pre.into()))]).expect("a known name")))
            .chain([
                ("spm", variant("spm", &[]).expect("a vocabulary")),
                ("raw", variant("raw", &[(PRE, Some("gemma4".into()))]).expect("a known name")),
            ])
            .collect();
    for unit in [" ", "a", "A", "é", "7", "!", "\n", "\n ", "中", "\u{301}", "ab", "'"] {
        for end in ["", "x", "中"] {
            let text = unit.repeat(20_000) + end;
            for (name, tokenizer) in &tokenizers {
                let ids = tokenizer.encode(&text, PLAIN).expect("every byte has a token");
                let back = tokenizer.decode(&ids, false) == text.as_bytes();
                // SentencePiece puts a space after a special token, and five spaces are one here.
                assert!(back || (*name == "spm" && unit == " "), "{name}: {unit:?}");
            }
        }
    }
}
