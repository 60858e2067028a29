//! Properties that hold for every text: the parser, the verifier and the printer return, whatever they
//! are given, and what parses survives printing.
//!
//! The texts are mutants of the filetests and of the smaller files of the corpus: cut off anywhere, or
//! with tokens dropped, repeated, swapped or replaced. The same texts are made on every run;
//! `WARPWRIGHT_FULL=1` makes more of them.

mod common;

use common::{ptx_files, read, round_trip, test_data};
use warpwright_ptx::{parse, verify};

/// Larger files are mutated no better, only slower.
const LARGEST: usize = 16_000;

/// Parses, and if that succeeds verifies and prints.
fn exercise(text: &str) -> Result<(), String> {
    match parse(text) {
        Err(diagnostics) if diagnostics.is_empty() => Err("refused without a reason".to_string()),
        Err(_) => Ok(()),
        Ok(module) => {
            if let Err(diagnostics) = verify(&module)
                && !diagnostics.has_errors()
            {
                return Err("refused without an error".to_string());
            }
            round_trip(&module).map(drop)
        }
    }
}

/// The texts to start from.
fn sources() -> Vec<String> {
    let mut texts: Vec<String> = ["filetests", "corpus/ptx"]
        .iter()
        .flat_map(|folder| ptx_files(&test_data().join(folder)))
        .map(|path| read(&path))
        .filter(|text| text.len() <= LARGEST)
        .collect();
    texts.sort_by_key(String::len);
    texts
}

fn effort() -> usize {
    if std::env::var_os("WARPWRIGHT_FULL").is_some() { 20 } else { 1 }
}

#[test]
fn truncated_texts() {
    let texts = sources();
    // A small, a middling and a larger one.
    for text in [&texts[texts.len() / 4], &texts[texts.len() / 2], &texts[texts.len() * 3 / 5]] {
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            if let Err(problem) = exercise(&text[..end]) {
                panic!("{problem}: the first {end} bytes of\n{text}");
            }
        }
    }
}

#[test]
fn mutated_tokens() {
    let mut random = Random(7);
    let texts = sources();
    let words: Vec<&str> = texts.iter().take(200).flat_map(|text| tokens(text)).collect();
    for text in &texts {
        let original = tokens(text);
        for _ in 0..40 * effort() {
            let mutant = mutate(&original, &words, &mut random).concat();
            if let Err(problem) = exercise(&mutant) {
                panic!("{problem}:\n{mutant}");
            }
        }
    }
}

#[test]
fn arbitrary_characters() {
    let mut random = Random(11);
    let alphabet: Vec<char> = "\0\t\n \"%$.,:;{}()[]<>@!|&^~?=+-*/\\#'`01.9afxuULXeE_é🦀".chars().collect();
    for _ in 0..20_000 * effort() {
        let length = random.below(60);
        let body: String = (0..length).map(|_| alphabet[random.below(alphabet.len())]).collect();
        let in_body =
            format!(".version 8.0\n.target sm_90\n.entry k()\n{{\n.reg .b32 a;\n{body}\nret;\n}}\n");
        for text in [&body, &in_body] {
            if let Err(problem) = exercise(text) {
                panic!("{problem}:\n{text}");
            }
        }
    }
}

/// The text in pieces: words, white space, single characters. Joined again they are the text.
fn tokens(text: &str) -> Vec<&str> {
    let class = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '$' | '%' => 1,
        c if c.is_whitespace() => 2,
        _ => 0,
    };
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut before = 0;
    for (at, c) in text.char_indices() {
        if at > start && (class(c) != before || before == 0) {
            pieces.push(&text[start..at]);
            start = at;
        }
        before = class(c);
    }
    pieces.push(&text[start..]);
    pieces
}

/// The pieces with up to four changes.
fn mutate<'a>(original: &[&'a str], words: &[&'a str], random: &mut Random) -> Vec<&'a str> {
    let mut pieces = original.to_vec();
    for _ in 0..=random.below(4) {
        if pieces.is_empty() {
            break;
        }
        let at = random.below(pieces.len());
        let other = random.below(pieces.len());
        match random.below(5) {
            0 => drop(pieces.remove(at)),
            1 => pieces.insert(at, pieces[other]),
            2 => pieces.swap(at, other),
            3 => pieces[at] = words[random.below(words.len())],
            _ => pieces.truncate(at + 1),
        }
    }
    pieces
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}
