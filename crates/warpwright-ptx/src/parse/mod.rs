//! The parser: PTX text as a [`Module`].
//!
//! The text becomes tokens, and the tokens become a module; names are resolved along the way. Everything that is
//! accepted is understood: no instruction or directive is passed through as text. After an error the parser continues
//! with the next statement, so one run reports all errors. Time and memory are linear in the length of the text, and
//! nesting is limited.

mod directive;
mod expr;
mod function;
mod instruction;
mod lexer;
mod scope;
mod section;

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::*;
use lexer::{Kind, Lexed, Token};
use std::collections::{HashMap, HashSet};

/// How deeply braces and parentheses may nest.
const MAX_NESTING: usize = 128;

/// Parses PTX text. Returns all errors, each with its span.
pub fn parse(text: &str) -> Result<Module, Diagnostics> {
    let Ok(length) = u32::try_from(text.len()) else {
        let message = format!("the text is {} bytes long; the limit is {}", text.len(), u32::MAX);
        return Err(vec![Diagnostic::new(Code::TooLarge, Origin::Unknown, message)].into());
    };
    let mut parser = Parser::new(text, length);
    let module = parser.module();
    match module {
        Some(module) if parser.diagnostics.is_empty() => Ok(module),
        _ => Err(parser.diagnostics.into()),
    }
}

/// A module-scope name.
#[derive(Clone)]
struct GlobalName {
    name: Name,
    function: bool,
    /// Declared with a value or a body, so that a second time is an error.
    defined: bool,
    /// Of an array, the bytes of one scalar, which subscripts count.
    scalar: Option<u32>,
}

struct Parser<'s> {
    text: &'s str,
    tokens: Vec<Token>,
    at: usize,
    comments: Vec<lexer::RawComment>,
    next_comment: usize,
    diagnostics: Vec<Diagnostic>,
    globals: HashMap<&'s str, GlobalName>,
    /// Labels that sections define.
    section_labels: HashSet<&'s str>,
    nesting: usize,
    version: Version,
    /// Whether the target flushes subnormal numbers.
    flushes: bool,
    buffers: instruction::Buffers<'s>,
}

impl<'s> Parser<'s> {
    fn new(text: &'s str, length: u32) -> Self {
        let Lexed { tokens, comments, diagnostics } = lexer::lex(text, length);
        Parser {
            text,
            tokens,
            at: 0,
            comments,
            next_comment: 0,
            diagnostics,
            globals: HashMap::new(),
            section_labels: HashSet::new(),
            nesting: 0,
            version: Version::NEWEST,
            flushes: false,
            buffers: instruction::Buffers::default(),
        }
    }

    fn token(&self) -> Token {
        self.tokens[self.at]
    }

    fn kind(&self) -> Kind {
        self.tokens[self.at].kind
    }

    fn kind_after(&self, n: usize) -> Kind {
        self.tokens[(self.at + n).min(self.tokens.len() - 1)].kind
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span()
    }

    /// Span of the token before the current one.
    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span()
    }

    fn str(&self, token: Token) -> &'s str {
        &self.text[token.span().range()]
    }

    /// Text of the current token.
    fn word(&self) -> &'s str {
        self.str(self.token())
    }

    /// Text of a `.word`, without the dot.
    fn dot_word(&self) -> &'s str {
        &self.word()[1..]
    }

    fn is_dot(&self, word: &str) -> bool {
        self.kind() == Kind::Dot && self.dot_word() == word
    }

    fn advance(&mut self) -> Token {
        let token = self.tokens[self.at];
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.advance();
        }
        found
    }

    fn eat_dot(&mut self, word: &str) -> bool {
        let found = self.is_dot(word);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Option<Token> {
        if self.kind() == kind {
            return Some(self.advance());
        }
        self.unexpected(&format!("`{}`", kind.text()), context)
    }

    /// Reports the current token.
    #[cold]
    fn unexpected<T>(&mut self, wanted: &str, context: &str) -> Option<T> {
        let token = self.token();
        let found = match token.kind {
            Kind::End => "the end of the text".to_string(),
            _ => format!("`{}`", shorten(self.str(token))),
        };
        self.error(Code::Syntax, token.span(), format!("expected {wanted} {context}, found {found}"))
    }

    #[cold]
    fn error<T>(&mut self, code: Code, span: Span, message: impl Into<String>) -> Option<T> {
        self.diagnostics.push(Diagnostic::new(code, span, message));
        None
    }

    fn ident(&mut self, context: &str) -> Option<&'s str> {
        if self.kind() != Kind::Ident {
            return self.unexpected("a name", context);
        }
        let word = self.word();
        self.advance();
        Some(word)
    }

    /// One or more of what `item` reads, with commas between them.
    fn separated<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut list = vec![item(self)?];
        while self.eat(Kind::Comma) {
            list.push(item(self)?);
        }
        Some(list)
    }

    /// Parses `open`, which is the current token, then items by `item` separated by commas, if any, then `close`.
    fn enclosed<T>(
        &mut self,
        close: Kind,
        context: &str,
        item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.advance();
        if self.eat(close) {
            return Some(Vec::new());
        }
        let list = self.separated(item)?;
        self.expect(close, context)?;
        Some(list)
    }

    /// Enters a construct that can nest.
    fn nest(&mut self) -> Option<()> {
        if self.nesting >= MAX_NESTING {
            let span = self.span();
            return self.too_deep(span);
        }
        self.nesting += 1;
        Some(())
    }

    #[cold]
    fn too_deep<T>(&mut self, span: Span) -> Option<T> {
        self.error(Code::Nesting, span, format!("nested more than {MAX_NESTING} levels deep"))
    }

    fn unnest(&mut self) {
        self.nesting -= 1;
    }

    /// Comments before the current token that were not handed out yet.
    fn take_comments(&mut self, mut sink: impl FnMut(Comment)) {
        // A comment ends the line, or begins one: nothing after it trails what came before.
        let mut line_ended = false;
        while let Some(raw) = self.comments.get(self.next_comment)
            && raw.before <= self.at
        {
            self.next_comment += 1;
            let trailing = raw.before == self.at && raw.same_line && !line_ended;
            line_ended = !raw.block || !trailing;
            let text = self.text[raw.span.range()].trim_end_matches('\r').to_string();
            sink(Comment { text, block: raw.block, trailing });
        }
    }

    /// Recovers from an error in the statement that begins at `start`: skips to its end, past `;`, or up to a `}`
    /// that closes the surrounding block. A block that opens on the way is skipped as a whole.
    fn recover(&mut self, start: usize) {
        // `.loc` has no `;`: it ends with its line.
        let ends_with_line = self.tokens[start].kind == Kind::Dot && self.str(self.tokens[start]) == ".loc";
        self.at = start;
        let (mut blocks, mut vectors) = (0usize, 0usize);
        loop {
            match self.kind() {
                Kind::End => return,
                Kind::Semicolon if blocks == 0 => {
                    self.advance();
                    return;
                }
                // What is left open in a statement ends with it.
                Kind::Semicolon => vectors = 0,
                Kind::LeftBrace => {
                    let before = self.tokens[self.at.saturating_sub(1)].kind;
                    if matches!(before, Kind::Comma | Kind::Dot) { vectors += 1 } else { blocks += 1 }
                }
                Kind::RightBrace if vectors > 0 => vectors -= 1,
                Kind::RightBrace if blocks > 0 => blocks -= 1,
                Kind::RightBrace => return,
                _ if self.at > start && blocks == 0 && self.begins_line() => {
                    let declares = self.is_dot("reg") || self.is_dot("loc") || self.is_dot("pragma");
                    if declares || ends_with_line {
                        return;
                    }
                }
                _ => {}
            }
            self.advance();
        }
    }

    /// Whether a line ends before the current token.
    fn begins_line(&self) -> bool {
        let between = self.last_span().end as usize..self.span().start as usize;
        self.text.as_bytes()[between].contains(&b'\n')
    }

    fn module(&mut self) -> Option<Module> {
        let mut preamble = Vec::new();
        self.take_comments(|comment| preamble.push(comment));
        for comment in &mut preamble {
            comment.trailing = false;
        }
        let start = self.span();
        let mut module = self.header()?;
        module.origin = start.to(self.last_span()).into();
        module.preamble = preamble;
        loop {
            let items = &mut module.items;
            self.take_comments(|comment| items.push(ItemKind::Comment(comment).into()));
            if self.kind() == Kind::End {
                break;
            }
            let start = self.at;
            let before = self.diagnostics.len();
            if self.item(&mut module.items).is_none() {
                debug_assert!(self.diagnostics.len() > before);
                self.recover_item(start);
            }
        }
        Some(module)
    }

    /// Whether the current token is a directive that begins an item, and is none of a function's.
    fn begins_item(&self) -> bool {
        let word = if self.kind() == Kind::Dot { self.dot_word() } else { "" };
        let linkage = matches!(word, "visible" | "extern" | "weak" | "common");
        let space = matches!(word, "global" | "const" | "shared" | "tex");
        linkage || space || matches!(word, "entry" | "func" | "file" | "section" | "alias")
    }

    /// After an error in the item that begins at `start`: skips past its end, which is a `;` or a
    /// body in braces, or up to a directive that begins another item.
    fn recover_item(&mut self, start: usize) {
        self.nesting = 0;
        self.at = start;
        let mut depth = 0usize;
        loop {
            match self.kind() {
                Kind::End => return,
                Kind::LeftBrace => depth += 1,
                Kind::RightBrace => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        self.advance();
                        // After the braces of an initial value, unlike those of a body.
                        self.eat(Kind::Semicolon);
                        return;
                    }
                }
                Kind::Semicolon if depth == 0 => {
                    self.advance();
                    return;
                }
                Kind::Dot if depth == 0 && self.at > start => match self.dot_word() {
                    "visible" | "extern" | "weak" | "common" | "file" | "section" | "alias" => return,
                    // A linkage before it has begun the item already.
                    "entry" | "func" if self.tokens[self.at - 1].kind != Kind::Dot => return,
                    _ => {}
                },
                _ => {}
            }
            self.advance();
        }
    }

    fn header(&mut self) -> Option<Module> {
        if !self.is_dot("version") {
            let span = self.span();
            return self.error(Code::Header, span, "a module begins with `.version major.minor`");
        }
        self.advance();
        let version = self.version()?;
        self.version = version;
        if !self.is_dot("target") {
            let span = self.span();
            return self.error(Code::Header, span, "`.version` is followed by `.target sm_NN`");
        }
        self.advance();
        let target = self.target()?;
        self.flushes = target.arch.flushes();
        let mut module = Module::new(version, target);
        module.address_size = None;
        if self.eat_dot("address_size") {
            let span = self.span();
            module.address_size = match self.unsigned("after `.address_size`")? {
                32 => Some(AddressSize::Bits32),
                64 => Some(AddressSize::Bits64),
                other => {
                    let message = format!("`.address_size` is 32 or 64, not {other}");
                    return self.error(Code::Header, span, message);
                }
            };
        }
        Some(module)
    }

    fn version(&mut self) -> Option<Version> {
        let token = self.token();
        let parsed = self
            .str(token)
            .split_once('.')
            .and_then(|(major, minor)| Some(Version::new(major.parse().ok()?, minor.parse().ok()?)));
        self.advance();
        match parsed {
            Some(version) if version > Version::NEWEST => self.error(
                Code::Header,
                token.span(),
                format!("PTX version {version} is newer than {}, the newest that is known", Version::NEWEST),
            ),
            Some(version) if version < Version::OLDEST => self.error(
                Code::Header,
                token.span(),
                format!("PTX version {version} is older than {}, the oldest that is read", Version::OLDEST),
            ),
            Some(version) => Some(version),
            None => self.error(Code::Header, token.span(), "`.version` is followed by a number such as 8.0"),
        }
    }

    fn target(&mut self) -> Option<Target> {
        let mut arch = None;
        let mut options = Vec::new();
        self.separated(|parser| {
            let span = parser.span();
            let word = parser.ident("after `.target`")?;
            if let Some(option) = TargetOption::ALL.into_iter().find(|option| option.name() == word) {
                options.push(option);
                return Some(());
            }
            match Arch::of_module(word) {
                Ok(found) if arch.is_none() => arch = Some(found),
                Ok(_) => return parser.error(Code::Header, span, "`.target` names two architectures"),
                Err(unknown) => return parser.error(Code::Header, span, unknown.to_string()),
            }
            Some(())
        })?;
        let span = self.last_span();
        arch.map(|arch| Target { arch, options })
            .or_else(|| self.error(Code::Header, span, "`.target` names no architecture"))
    }
}

/// The beginning of a token that may be very long.
fn shorten(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}
