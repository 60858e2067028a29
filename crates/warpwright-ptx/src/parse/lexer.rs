//! Text to tokens.

use crate::diag::{Code, Diagnostic};
use crate::ir::Span;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $text:literal),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Kind { $($(#[$doc])* $kind),* }

        impl Kind {
            /// How a message names it.
            pub(super) fn text(self) -> &'static str {
                match self { $(Kind::$kind => $text),* }
            }
        }
    };
}

kinds! {
    /// A name, `%` included.
    Ident "name",
    /// `.word`, `.a::b`.
    Dot ".word",
    Number "number",
    String "string",
    LeftBrace "{",
    RightBrace "}",
    LeftParen "(",
    RightParen ")",
    LeftBracket "[",
    RightBracket "]",
    Less "<",
    Greater ">",
    LessEqual "<=",
    GreaterEqual ">=",
    ShiftLeft "<<",
    ShiftRight ">>",
    EqualEqual "==",
    NotEqual "!=",
    AndAnd "&&",
    OrOr "||",
    Comma ",",
    Semicolon ";",
    Colon ":",
    Question "?",
    Equal "=",
    Plus "+",
    Minus "-",
    Star "*",
    Slash "/",
    Percent "%",
    Bang "!",
    Tilde "~",
    Amp "&",
    Pipe "|",
    Caret "^",
    At "@",
    End "end of the text",
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    start: u32,
    end: u32,
}

impl Token {
    pub(super) fn span(self) -> Span {
        Span::new(self.start, self.end)
    }
}

/// A comment and where it stands among the tokens.
pub(super) struct RawComment {
    /// The text between the delimiters.
    pub(super) span: Span,
    pub(super) block: bool,
    /// Index of the token that follows.
    pub(super) before: usize,
    /// No line ends between the token before and the comment.
    pub(super) same_line: bool,
}

pub(super) struct Lexed {
    pub(super) tokens: Vec<Token>,
    pub(super) comments: Vec<RawComment>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

const NAME: u8 = 1;
const DIGIT: u8 = 2;
const SPACE: u8 = 4;

/// Character classes of the bytes.
const CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        let byte = i as u8;
        table[i] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => NAME,
            b'0'..=b'9' => NAME | DIGIT,
            b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c => SPACE,
            _ => 0,
        };
        i += 1;
    }
    table
};

fn is(byte: u8, class: u8) -> bool {
    CLASS[usize::from(byte)] & class != 0
}

pub(super) fn lex(text: &str, length: u32) -> Lexed {
    let mut lexer = Lexer {
        text,
        bytes: text.as_bytes(),
        at: 0,
        line_ended: true,
        out: Lexed {
            tokens: Vec::with_capacity(text.len() / 4 + 1),
            comments: Vec::new(),
            diagnostics: Vec::new(),
        },
    };
    lexer.run();
    lexer.out.tokens.push(Token { kind: Kind::End, start: length, end: length });
    lexer.out
}

struct Lexer<'s> {
    text: &'s str,
    bytes: &'s [u8],
    at: usize,
    /// A line ended since the last token.
    line_ended: bool,
    out: Lexed,
}

impl Lexer<'_> {
    fn byte(&self, offset: usize) -> u8 {
        self.bytes.get(self.at + offset).copied().unwrap_or(0)
    }

    fn run(&mut self) {
        while self.at < self.bytes.len() {
            let byte = self.bytes[self.at];
            if is(byte, SPACE) {
                self.line_ended |= byte == b'\n';
                self.at += 1;
                continue;
            }
            let start = self.at;
            let kind = match byte {
                b'/' if self.byte(1) == b'/' => {
                    self.line_comment();
                    continue;
                }
                b'/' if self.byte(1) == b'*' => {
                    self.block_comment();
                    continue;
                }
                b'"' => self.string(),
                b'.' if is(self.byte(1), NAME) => self.dot(),
                b'%' if is(self.byte(1), NAME) => {
                    self.at += 1;
                    self.name()
                }
                _ if is(byte, DIGIT) => self.number(),
                _ if is(byte, NAME) => self.name(),
                _ => self.punctuation(byte),
            };
            if let Some(kind) = kind {
                self.out.tokens.push(Token { kind, start: start as u32, end: self.at as u32 });
                self.line_ended = false;
            }
        }
    }

    fn name(&mut self) -> Option<Kind> {
        while is(self.byte(0), NAME) {
            self.at += 1;
        }
        Some(Kind::Ident)
    }

    fn dot(&mut self) -> Option<Kind> {
        self.at += 1;
        loop {
            while is(self.byte(0), NAME) {
                self.at += 1;
            }
            if self.byte(0) == b':' && self.byte(1) == b':' && is(self.byte(2), NAME) {
                self.at += 2;
            } else {
                return Some(Kind::Dot);
            }
        }
    }

    fn number(&mut self) -> Option<Kind> {
        // `0x…`, `0f…`, `0d…`, `0b…` hold letters and digits only.
        let prefixed = self.byte(0) == b'0' && matches!(self.byte(1) | 0x20, b'x' | b'f' | b'd' | b'b');
        if prefixed {
            self.name();
            return Some(Kind::Number);
        }
        let digits = |lexer: &mut Self| {
            while is(lexer.byte(0), DIGIT) {
                lexer.at += 1;
            }
        };
        digits(self);
        if self.byte(0) == b'.' && !is(self.byte(1), NAME) {
            self.at += 1;
        } else if self.byte(0) == b'.' && (is(self.byte(1), DIGIT) || self.byte(1) | 0x20 == b'e') {
            self.at += 1;
            digits(self);
        }
        if self.byte(0) | 0x20 == b'e' {
            let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
            if is(self.byte(1 + sign), DIGIT) {
                self.at += 1 + sign;
                digits(self);
            }
        }
        // A suffix, or what makes the number malformed.
        self.name();
        Some(Kind::Number)
    }

    fn string(&mut self) -> Option<Kind> {
        let start = self.at;
        self.at += 1;
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b'"' => {
                    self.at += 1;
                    return Some(Kind::String);
                }
                b'\\' => self.at += 2,
                b'\n' => break,
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.bytes.len());
        self.error(start, "the string does not end on its line");
        Some(Kind::String)
    }

    fn line_comment(&mut self) {
        let start = self.at + 2;
        let rest = &self.bytes[start..];
        let length = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        self.at = start + length;
        self.comment(start, self.at, false);
    }

    fn block_comment(&mut self) {
        let start = self.at + 2;
        match self.text[start..].find("*/") {
            Some(length) => {
                self.at = start + length + 2;
                self.comment(start, start + length, true);
            }
            None => {
                self.error(self.at, "the comment does not end");
                self.at = self.bytes.len();
            }
        }
    }

    fn comment(&mut self, start: usize, end: usize, block: bool) {
        self.out.comments.push(RawComment {
            span: Span::new(start as u32, end as u32),
            block,
            before: self.out.tokens.len(),
            same_line: !self.line_ended,
        });
        self.line_ended |= block && self.bytes[start..end].contains(&b'\n');
    }

    fn punctuation(&mut self, byte: u8) -> Option<Kind> {
        let next = self.byte(1);
        let (kind, length) = match (byte, next) {
            (b'<', b'<') => (Kind::ShiftLeft, 2),
            (b'>', b'>') => (Kind::ShiftRight, 2),
            (b'<', b'=') => (Kind::LessEqual, 2),
            (b'>', b'=') => (Kind::GreaterEqual, 2),
            (b'=', b'=') => (Kind::EqualEqual, 2),
            (b'!', b'=') => (Kind::NotEqual, 2),
            (b'&', b'&') => (Kind::AndAnd, 2),
            (b'|', b'|') => (Kind::OrOr, 2),
            (b'{', _) => (Kind::LeftBrace, 1),
            (b'}', _) => (Kind::RightBrace, 1),
            (b'(', _) => (Kind::LeftParen, 1),
            (b')', _) => (Kind::RightParen, 1),
            (b'[', _) => (Kind::LeftBracket, 1),
            (b']', _) => (Kind::RightBracket, 1),
            (b'<', _) => (Kind::Less, 1),
            (b'>', _) => (Kind::Greater, 1),
            (b',', _) => (Kind::Comma, 1),
            (b';', _) => (Kind::Semicolon, 1),
            (b':', _) => (Kind::Colon, 1),
            (b'?', _) => (Kind::Question, 1),
            (b'=', _) => (Kind::Equal, 1),
            (b'+', _) => (Kind::Plus, 1),
            (b'-', _) => (Kind::Minus, 1),
            (b'*', _) => (Kind::Star, 1),
            (b'/', _) => (Kind::Slash, 1),
            (b'%', _) => (Kind::Percent, 1),
            (b'!', _) => (Kind::Bang, 1),
            (b'~', _) => (Kind::Tilde, 1),
            (b'&', _) => (Kind::Amp, 1),
            (b'|', _) => (Kind::Pipe, 1),
            (b'^', _) => (Kind::Caret, 1),
            (b'@', _) => (Kind::At, 1),
            _ => {
                let start = self.at;
                let character = self.text[start..].chars().next().unwrap_or('\0');
                self.at += character.len_utf8().max(1);
                // A run of characters that are no PTX is one error.
                while self.at < self.bytes.len() && self.bytes[self.at] >= 0x80 {
                    self.at += 1;
                }
                self.error(start, &format!("the character {character:?} has no meaning in PTX"));
                return None;
            }
        };
        self.at += length;
        Some(kind)
    }

    #[cold]
    fn error(&mut self, start: usize, message: &str) {
        let span = Span::new(start as u32, self.at.min(self.bytes.len()).max(start) as u32);
        self.out.diagnostics.push(Diagnostic::new(Code::Syntax, span, message));
    }
}
