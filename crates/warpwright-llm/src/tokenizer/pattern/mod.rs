//! Patterns that cut text into words: a small regular-expression machine over [codes](super::unicode).
//!
//! Matching is leftmost, and prefers the first alternative and the longest repetition, as the pre-tokenizers of model
//! files require. Runs of one set, which make up nearly all of such patterns, are matched in one step and backtracked
//! one code point at a time, so a long run costs no memory. Positions are counted in code points, not bytes.

mod parse;
mod set;

use parse::{MANY, Node, nullable, parse};
use set::Set;

/// A text as a pattern sees it.
pub(super) struct Codes<'a> {
    /// One code per code point.
    pub(super) codes: &'a [u8],
    /// The code points; may be empty where no pattern [needs them](Pattern::needs_chars).
    pub(super) chars: &'a [char],
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    ops: Vec<Op>,
    sets: Vec<Set>,
    /// Codes that a match can begin with.
    first: Box<[bool; 256]>,
    /// The set that the pattern begins with a run of, where it has one way to begin: a start that fails
    /// in such a run fails in all of it.
    run: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Takes `min` to `max` members of a set, as many as can be.
    Run {
        set: usize,
        min: u32,
        max: u32,
    },
    /// Goes on at the first; at the second if that fails.
    Split(usize, usize),
    Jump(usize),
    /// What follows, up to its `Match`, holds here (or does not); goes on at `next`.
    Look {
        negative: bool,
        next: usize,
    },
    End,
    Match,
}

/// Where to go on when a way fails: `op` at `at`, then at one less, down to `low`.
#[derive(Clone, Copy, Debug)]
struct Way {
    op: usize,
    at: usize,
    low: usize,
}

/// Memory that matches use again.
#[derive(Default)]
pub(super) struct Ways(Vec<Way>);

impl Pattern {
    /// Compiles a pattern; the error names the rule that its text breaks.
    pub(super) fn new(text: &str) -> Result<Pattern, &'static str> {
        let node = parse(text)?;
        if nullable(&node) {
            return Err("a pattern that may be empty");
        }
        let mut first = Box::new([false; 256]);
        begin(&node, &mut first);
        let mut pattern = Pattern { ops: Vec::new(), sets: Vec::new(), first, run: None };
        pattern.compile(&node);
        pattern.ops.push(Op::Match);
        if let Op::Run { set, min: 1.., max: MANY } = pattern.ops[0] {
            pattern.run = Some(set);
        }
        Ok(pattern)
    }

    /// Whether matching looks at code points, not their codes alone.
    pub(super) fn needs_chars(&self) -> bool {
        self.sets.iter().any(Set::has_ranges)
    }

    /// The first match in `from..end`; what lies beyond `end` is not seen.
    pub(super) fn find(
        &self,
        text: &Codes<'_>,
        from: usize,
        end: usize,
        ways: &mut Ways,
    ) -> Option<(usize, usize)> {
        let mut start = from;
        while start < end {
            if self.first[text.codes[start] as usize] {
                if let Some(last) = self.run(text, 0, start, end, ways) {
                    return Some((start, last));
                }
                if let Some(set) = self.run {
                    start = self.take(text, set, start, end, MANY).max(start + 1);
                    continue;
                }
            }
            start += 1;
        }
        None
    }

    fn holds(&self, text: &Codes<'_>, set: usize, at: usize) -> bool {
        self.sets[set].contains(text.codes[at], || text.chars[at])
    }

    /// The end of the run of members of `set` from `at`, of at most `max`.
    fn take(&self, text: &Codes<'_>, set: usize, at: usize, end: usize, max: u32) -> usize {
        let limit = end.min(at.saturating_add(max as usize));
        (at..limit).find(|&at| !self.holds(text, set, at)).unwrap_or(limit)
    }

    /// Runs from `op` at `at`; where the match ends.
    fn run(&self, text: &Codes<'_>, op: usize, at: usize, end: usize, ways: &mut Ways) -> Option<usize> {
        let floor = ways.0.len();
        let (mut op, mut at) = (op, at);
        loop {
            let holds = match self.ops[op] {
                Op::Run { set, min, max } => {
                    let low = at.saturating_add(min as usize);
                    at = self.take(text, set, at, end, max);
                    op += 1;
                    if at > low {
                        ways.0.push(Way { op, at: at - 1, low });
                    }
                    at >= low
                }
                Op::Split(first, second) => {
                    ways.0.push(Way { op: second, at, low: at });
                    op = first;
                    true
                }
                Op::Jump(to) => {
                    op = to;
                    true
                }
                Op::Look { negative, next } => {
                    let found = self.run(text, op + 1, at, end, ways).is_some();
                    op = next;
                    found != negative
                }
                Op::End => {
                    op += 1;
                    at == end
                }
                Op::Match => {
                    ways.0.truncate(floor);
                    return Some(at);
                }
            };
            if !holds {
                if ways.0.len() == floor {
                    return None;
                }
                let way = ways.0.last_mut()?;
                (op, at) = (way.op, way.at);
                if way.at > way.low {
                    way.at -= 1;
                } else {
                    ways.0.pop();
                }
            }
        }
    }

    fn compile(&mut self, node: &Node) {
        match node {
            Node::Set(set) => self.push_run(set, 1, 1),
            Node::Sequence(nodes) => nodes.iter().for_each(|node| self.compile(node)),
            Node::Either(ways) => {
                let mut jumps = Vec::new();
                for (i, way) in ways.iter().enumerate() {
                    if i + 1 == ways.len() {
                        self.compile(way);
                        continue;
                    }
                    let split = self.hole();
                    self.compile(way);
                    jumps.push(self.hole());
                    self.ops[split] = Op::Split(split + 1, self.ops.len());
                }
                for jump in jumps {
                    self.ops[jump] = Op::Jump(self.ops.len());
                }
            }
            Node::Repeat { node, min, max } => {
                if let Node::Set(set) = &**node {
                    return self.push_run(set, *min, *max);
                }
                (0..*min).for_each(|_| self.compile(node));
                if *max == MANY {
                    let split = self.hole();
                    self.compile(node);
                    self.ops.push(Op::Jump(split));
                    self.ops[split] = Op::Split(split + 1, self.ops.len());
                } else {
                    let splits: Vec<usize> = (*min..*max)
                        .map(|_| {
                            let split = self.hole();
                            self.compile(node);
                            split
                        })
                        .collect();
                    for split in splits {
                        self.ops[split] = Op::Split(split + 1, self.ops.len());
                    }
                }
            }
            Node::Look { node, negative } => {
                let look = self.hole();
                self.compile(node);
                self.ops.push(Op::Match);
                self.ops[look] = Op::Look { negative: *negative, next: self.ops.len() };
            }
            Node::End => self.ops.push(Op::End),
        }
    }

    fn push_run(&mut self, set: &Set, min: u32, max: u32) {
        let index = self.sets.iter().position(|known| known == set).unwrap_or_else(|| {
            self.sets.push(set.clone());
            self.sets.len() - 1
        });
        self.ops.push(Op::Run { set: index, min, max });
    }

    /// A place for an op that is known later.
    fn hole(&mut self) -> usize {
        self.ops.push(Op::Match);
        self.ops.len() - 1
    }
}

/// Adds the codes that a match of `node` can begin with.
fn begin(node: &Node, first: &mut [bool; 256]) {
    match node {
        Node::Set(set) => {
            let codes = set.codes();
            first.iter_mut().zip(codes).for_each(|(first, code)| *first |= code);
        }
        Node::Sequence(nodes) => {
            for node in nodes {
                begin(node, first);
                if !nullable(node) {
                    break;
                }
            }
        }
        Node::Either(ways) => ways.iter().for_each(|way| begin(way, first)),
        Node::Repeat { node, .. } => begin(node, first),
        Node::Look { .. } | Node::End => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::unicode::code;

    /// The words that a pattern finds.
    fn words(pattern: &str, text: &str) -> Vec<String> {
        let pattern = Pattern::new(pattern).expect("a pattern of the test");
        let chars: Vec<char> = text.chars().collect();
        let codes: Vec<u8> = chars.iter().map(|&c| code(c)).collect();
        let codes = Codes { codes: &codes, chars: &chars };
        let mut found = Vec::new();
        let mut from = 0;
        while let Some((start, end)) = pattern.find(&codes, from, chars.len(), &mut Ways::default()) {
            found.push(chars[start..end].iter().collect());
            from = end;
        }
        found
    }

    #[test]
    fn the_first_alternative_wins_and_repetition_is_greedy() {
        assert_eq!(words("ab|abc|c+", "abcccab"), ["ab", "ccc", "ab"]);
        assert_eq!(words("a{2,3}", "aaaaaaa"), ["aaa", "aaa"]);
        assert_eq!(words("x(?:ab){1,2}b?", "xababbxab"), ["xababb", "xab"]);
        assert_eq!(words("x(?:ab)+a", "xababab xaba"), ["xababa", "xaba"]);
    }

    #[test]
    fn a_run_gives_back_what_the_rest_needs() {
        assert_eq!(words(r"\s*[\r\n]+", "  \n \n  x"), ["  \n \n"]);
        assert_eq!(words(r"\s+(?!\S)|\s+", "a   b c  "), ["  ", " ", " ", "  "]);
        assert_eq!(words("[ab]*[bc]+", "abbaccb abab"), ["abbaccb", "abab"]);
    }

    #[test]
    fn lookahead_and_end_take_nothing() {
        assert_eq!(words("a(?=b)", "abacab"), ["a", "a"]);
        assert_eq!(words(r"\s+$", "a  b  "), ["  "]);
        assert_eq!(words(r"\s+$", "a    b "), [" "]);
    }

    #[test]
    fn classes_take_properties_ranges_and_negation() {
        assert_eq!(words(r"[^\r\n\p{L}\p{N}]?\p{L}+", "¡hola señor ١"), ["¡hola", " señor"]);
        assert_eq!(words(r"[一-龥]+", "ab中文！中"), ["中文", "中"]);
        assert_eq!(words(r"[\p{L}&&[^\p{Han}]]+", "ab中é文x"), ["ab", "é", "x"]);
        assert_eq!(words(r"[\p{L}&&[^a-z]]+", "aBÉc"), ["BÉ"]);
        assert_eq!(words(r"[!-/:-@\[-`{-~]+", "a[b]-_c"), ["[", "]-_"]);
        // White space is white space and no code point, as where llama.cpp reads such a class.
        assert_eq!(words("[　-。]+", "　。"), ["。"]);
        assert_eq!(words(r"\d+", "1٣2"), ["1", "2"]);
    }

    #[test]
    fn what_could_run_forever_or_mean_nothing_is_refused() {
        for pattern in ["(?:a*)*", "a?", "(a", "a)", "[a", r"\q", r"\p{Zs}", "[b-a]", "a{2", "(?=a)"] {
            assert!(Pattern::new(pattern).is_err(), "{pattern}");
        }
    }
}
