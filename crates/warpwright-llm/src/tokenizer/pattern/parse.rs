//! Parser from the text of a pattern to its tree.
//!
//! The syntax is the subset of regular expressions that pre-tokenizers need: alternatives, groups (they capture
//! nothing), greedy repetition, lookahead, the end `$`, classes with ranges, negation and `&&[…]`;
//! `\s \S \d \p{L} \p{M} \p{N} \p{P} \p{S} \p{Han}`. `\d` is an ASCII digit.

use super::set::Set;
use crate::tokenizer::unicode::Class;

#[derive(Clone, Debug)]
pub(super) enum Node {
    Set(Box<Set>),
    Sequence(Vec<Node>),
    Either(Vec<Node>),
    Repeat { node: Box<Node>, min: u32, max: u32 },
    Look { node: Box<Node>, negative: bool },
    End,
}

/// No upper bound of a repetition.
pub(super) const MANY: u32 = u32::MAX;

/// Ideographs as llama.cpp counts them: whole blocks.
const HAN: [(char, char); 9] = [
    ('\u{3400}', '\u{4dbf}'),
    ('\u{4e00}', '\u{9fff}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{20000}', '\u{2a6df}'),
    ('\u{2a700}', '\u{2b73f}'),
    ('\u{2b740}', '\u{2b81f}'),
    ('\u{2b820}', '\u{2ceaf}'),
    ('\u{2ceb0}', '\u{2ebef}'),
    ('\u{2f800}', '\u{2fa1f}'),
];

pub(super) struct Parser<'a> {
    rest: std::str::Chars<'a>,
}

type Parsed<T> = Result<T, &'static str>;

/// Reads a whole pattern; the error says which rule it breaks.
pub(super) fn parse(pattern: &str) -> Parsed<Node> {
    let mut parser = Parser { rest: pattern.chars() };
    let node = parser.either()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err("a parenthesis that nothing opened"),
    }
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn eat(&mut self, text: &str) -> bool {
        match self.rest.as_str().strip_prefix(text) {
            Some(rest) => {
                self.rest = rest.chars();
                true
            }
            None => false,
        }
    }

    fn next(&mut self) -> Parsed<char> {
        self.rest.next().ok_or("the pattern ends too early")
    }

    fn either(&mut self) -> Parsed<Node> {
        let mut ways = vec![self.sequence()?];
        while self.eat("|") {
            ways.push(self.sequence()?);
        }
        Ok(match ways.len() {
            1 => ways.remove(0),
            _ => Node::Either(ways),
        })
    }

    fn sequence(&mut self) -> Parsed<Node> {
        let mut nodes = Vec::new();
        while !matches!(self.peek(), None | Some('|' | ')')) {
            let atom = self.atom()?;
            nodes.push(self.repeated(atom)?);
        }
        Ok(match nodes.len() {
            1 => nodes.remove(0),
            _ => Node::Sequence(nodes),
        })
    }

    fn repeated(&mut self, node: Node) -> Parsed<Node> {
        let (min, max) = match self.peek() {
            Some('*') => (0, MANY),
            Some('+') => (1, MANY),
            Some('?') => (0, 1),
            Some('{') => {
                self.next()?;
                let min = self.number()?;
                let max = if self.eat(",") { self.number()? } else { min };
                if self.peek() != Some('}') {
                    return Err("a repetition is {n} or {m,n}");
                }
                (min, max)
            }
            _ => return Ok(node),
        };
        self.next()?;
        if max == MANY && nullable(&node) {
            return Err("an endless repetition of what may be empty");
        }
        Ok(Node::Repeat { node: Box::new(node), min, max })
    }

    fn number(&mut self) -> Parsed<u32> {
        let mut number = 0u32;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            number = number.saturating_mul(10).saturating_add(digit);
            self.next()?;
        }
        Ok(number)
    }

    fn atom(&mut self) -> Parsed<Node> {
        match self.next()? {
            '(' => {
                let look = match () {
                    () if self.eat("?=") => Some(false),
                    () if self.eat("?!") => Some(true),
                    () => {
                        self.eat("?:");
                        None
                    }
                };
                let node = self.either()?;
                if !self.eat(")") {
                    return Err("a parenthesis stays open");
                }
                Ok(match look {
                    Some(negative) => Node::Look { node: Box::new(node), negative },
                    None => node,
                })
            }
            '[' => Ok(Node::Set(Box::new(self.class()?))),
            '$' => Ok(Node::End),
            '\\' => {
                let mut set = Set::empty();
                self.escape(&mut set)?;
                Ok(Node::Set(Box::new(set)))
            }
            c => {
                let mut set = Set::empty();
                set.add(c, c);
                Ok(Node::Set(Box::new(set)))
            }
        }
    }

    /// After `\`: adds what it stands for, and is that one character where it is one.
    fn escape(&mut self, set: &mut Set) -> Parsed<Option<char>> {
        let c = match self.next()? {
            's' => {
                set.add_class(Class::Space);
                return Ok(None);
            }
            'S' => {
                let mut spaces = Set::empty();
                spaces.add_class(Class::Space);
                *set = spaces.negated();
                return Ok(None);
            }
            'd' => {
                set.add('0', '9');
                return Ok(None);
            }
            'p' => {
                self.property(set)?;
                return Ok(None);
            }
            'r' => '\r',
            'n' => '\n',
            't' => '\t',
            c if c.is_ascii_alphanumeric() => return Err("an escape that no pattern here uses"),
            c => c,
        };
        set.add(c, c);
        Ok(Some(c))
    }

    fn property(&mut self, set: &mut Set) -> Parsed<()> {
        let class = match () {
            () if self.eat("{L}") => Class::Letter,
            () if self.eat("{M}") => Class::Mark,
            () if self.eat("{N}") => Class::Number,
            () if self.eat("{P}") => Class::Punctuation,
            () if self.eat("{S}") => Class::Symbol,
            () if self.eat("{Han}") => {
                HAN.iter().for_each(|&(first, last)| set.add(first, last));
                return Ok(());
            }
            () => return Err("a property that no pattern here uses"),
        };
        set.add_class(class);
        Ok(())
    }

    /// After `[`, up to and with `]`.
    fn class(&mut self) -> Parsed<Set> {
        let negated = self.eat("^");
        let mut set = Set::empty();
        let mut other = None;
        while !self.eat("]") {
            if self.eat("&&[") {
                other = Some(self.class()?);
                continue;
            }
            let first = match self.next()? {
                '\\' => match self.escape(&mut set)? {
                    Some(c) => c,
                    None => continue,
                },
                c => c,
            };
            let ranged = self.peek() == Some('-') && !self.rest.as_str().starts_with("-]");
            let last = if ranged {
                self.next()?;
                match self.next()? {
                    '\\' => self.escape(&mut set)?.ok_or("a range ends in a class")?,
                    c => c,
                }
            } else {
                first
            };
            if last < first {
                return Err("a range that runs backwards");
            }
            set.add(first, last);
        }
        let set = if negated { set.negated() } else { set };
        match other {
            Some(other) => set.and(other).ok_or("an intersection of a class with ranges"),
            None => Ok(set),
        }
    }
}

/// Whether the node matches without taking a code point.
pub(super) fn nullable(node: &Node) -> bool {
    match node {
        Node::Set(_) => false,
        Node::Sequence(nodes) => nodes.iter().all(nullable),
        Node::Either(ways) => ways.iter().any(nullable),
        Node::Repeat { node, min, .. } => *min == 0 || nullable(node),
        Node::Look { .. } | Node::End => true,
    }
}
