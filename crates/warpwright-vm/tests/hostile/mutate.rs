//! Changes to PTX that leave most of it standing, so that the verifier often accepts what comes of it.

/// Numbers that look random and are the same for the same seed (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end.max(1) as u64) as usize
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }
}

/// Numbers at which something ends.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "3",
    "7",
    "16",
    "31",
    "32",
    "33",
    "64",
    "255",
    "256",
    "1023",
    "4095",
    "65535",
    "65536",
    "2147483647",
    "-2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
];

const TYPES: &[&str] = &[
    ".b8", ".u8", ".s8", ".b16", ".u16", ".s16", ".f16", ".bf16", ".f16x2", ".bf16x2", ".b32", ".u32",
    ".s32", ".f32", ".b64", ".u64", ".s64", ".f64", ".b128", ".pred",
];

const SPACES: &[&str] = &[".global", ".shared", ".local", ".const", ".param", ".shared::cta", ""];

/// Some changes to the lines that are instructions.
pub(crate) fn mutate(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    let instructions: Vec<usize> = (0..lines.len())
        .filter(|&i| lines[i].trim_end().ends_with(';') && !lines[i].trim_start().starts_with('.'))
        .collect();
    if instructions.is_empty() {
        return text.to_string();
    }
    for _ in 0..1 + random.below(4) {
        let [at, other] = [0; 2].map(|_| instructions[random.below(instructions.len())]);
        match random.below(12) {
            0 => lines[at].clear(),
            1 => lines[at] = format!("{}\n{}", lines[at], lines[other]),
            2 => lines.swap(at, other),
            3 | 4 => operand(&mut lines, at, other, random),
            5 => exchange(&mut lines[at], TYPES, TYPES, random),
            6 => exchange(&mut lines[at], &SPACES[..6], SPACES, random),
            7 => guard(&mut lines, at, other, random),
            8 => digit(&mut lines[at], random),
            _ => number(&mut lines[at], random),
        }
    }
    lines.join("\n")
}

/// An operand of another instruction.
fn operand(lines: &mut [String], at: usize, other: usize, random: &mut Random) {
    let words = |line: &str| line.split_inclusive([' ', ',']).map(str::to_string).collect::<Vec<_>>();
    let donor = words(&lines[other]);
    let mut here = words(&lines[at]);
    if here.len() > 1 && donor.len() > 1 {
        let place = 1 + random.below(here.len() - 1);
        here[place] = donor[1 + random.below(donor.len() - 1)].clone();
        lines[at] = here.concat();
    }
}

/// A word of a list in place of one of another list.
fn exchange(line: &mut String, from: &[&str], to: &[&str], random: &mut Random) {
    let places: Vec<(usize, &str)> = (from.iter())
        .flat_map(|word| line.match_indices(word).map(|(at, _)| (at, *word)).collect::<Vec<_>>())
        .collect();
    if !places.is_empty() {
        let (at, word) = places[random.below(places.len())];
        line.replace_range(at..at + word.len(), random.pick(to));
    }
}

/// The guard of another instruction, the opposite one, or none.
fn guard(lines: &mut [String], at: usize, other: usize, random: &mut Random) {
    let split = |line: &str| match line.trim_start().strip_prefix('@') {
        Some(rest) => {
            let (guard, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            (Some(guard.to_string()), rest.to_string())
        }
        None => (None, line.to_string()),
    };
    let (own, rest) = split(&lines[at]);
    let guard = match (own, split(&lines[other]).0) {
        (Some(own), _) if random.below(2) == 0 => {
            Some(own.strip_prefix('!').map_or_else(|| format!("!{own}"), str::to_string))
        }
        (_, theirs) => theirs,
    };
    lines[at] = guard.map_or_else(|| rest.clone(), |guard| format!("@{guard} {rest}"));
}

/// A number in place of a digit: other registers, other offsets.
fn digit(line: &mut String, random: &mut Random) {
    let digits: Vec<usize> =
        line.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(i, _)| i).collect();
    if !digits.is_empty() {
        let place = digits[random.below(digits.len())];
        line.replace_range(place..=place, &random.below(12).to_string());
    }
}

/// A number at which something ends, in place of one that stands by itself.
fn number(line: &mut String, random: &mut Random) {
    let bytes = line.as_bytes();
    let is_word = |i: usize| bytes.get(i).is_some_and(|b| b.is_ascii_alphanumeric() || b"_.%$".contains(b));
    let mut numbers = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        while is_word(at) {
            at += 1;
        }
        if at > start && bytes[start].is_ascii_digit() {
            numbers.push(start..at);
        }
        at += 1;
    }
    if numbers.is_empty() {
        digit(line, random);
    } else {
        let place = numbers.swap_remove(random.below(numbers.len()));
        line.replace_range(place, random.pick(NUMBERS));
    }
}
