//! Rewriting of templates so that memory is counted.
//!
//! The renderer counts steps, but one step may double a text, and thirty may fill any memory. So a template is
//! rewritten before it is compiled: the result of an operator, a filter, a call, a slice or a literal passes through
//! [`bounds::KEPT`](super::bounds::KEPT), and text between tags is printed like a value, so that the formatter sees all
//! output, including the output that a block or a macro captures.
//!
//! ```text
//!  {% set ns.x = ns.x ~ ns.x %} ──► {% set ns.x = kept(ns.x ~ ns.x) %}{% do kept(ns) %}
//! ```
//!
//! The renderer's parser turns chains (`a ~ b ~ …`, `elif` after `elif`) into a tree whose depth is their length, and
//! later stages traverse it by recursion. So chains have a limit here, which is checked before parsing. The lexer
//! searches for the next tag up to the end of the text, again and again, so the length of templates has a limit too.

use super::bounds;
use minijinja::machinery::ast::{self, CallArg, Expr, Spanned, Stmt};
use minijinja::machinery::{
    CodeGenerator, Instructions, Span, Token, eval, make_string_output, parse, tokenize,
};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, ErrorKind};
use std::collections::BTreeMap;

/// What a template is called in its messages.
const NAME: &str = "chat_template";

/// KiB of the longest template. Those of models have up to some twenty.
const LONGEST: usize = 512;

/// Operators that one tag may have, and blocks or branches that may stand in each other.
const LONGEST_CHAIN: usize = 256;

/// A template that can be run.
pub(super) struct Program<'source> {
    instructions: Instructions<'source>,
    blocks: BTreeMap<&'source str, Instructions<'source>>,
}

impl<'source> Program<'source> {
    /// Compiles a template.
    pub(super) fn new(source: &'source str) -> Result<Program<'source>, Error> {
        if source.len() > LONGEST << 10 {
            let why =
                format!("it has {} bytes, and the longest that is taken has {LONGEST} KiB", source.len());
            return Err(Error::new(ErrorKind::SyntaxError, why));
        }
        chains(source)?;
        let tree = parse(source, NAME, white_space()?)?;
        let tree = rewritten(&tree);
        let mut code = CodeGenerator::new(NAME, source);
        tree.iter().for_each(|statement| code.compile_stmt(statement));
        let (instructions, blocks) = code.finish();
        Ok(Program { instructions, blocks })
    }

    /// The text that it makes of these variables.
    pub(super) fn render(
        &self,
        environment: &'source Environment<'source>,
        root: Value,
    ) -> Result<String, Error> {
        let mut text = String::new();
        let mut out = make_string_output(&mut text);
        eval(environment, &self.instructions, root, &self.blocks, &mut out, AutoEscape::None)?;
        drop(out);
        Ok(text)
    }
}

/// As Hugging Face's renderer has it.
fn white_space() -> Result<SyntaxConfig, Error> {
    SyntaxConfig::builder().lstrip_blocks(true).trim_blocks(true).build()
}

/// What Jinja and Python have, and the renderer has not, or has as something else: a template with one of these is
/// refused before it is used.
const LACKING: [(&str, &str); 4] = [
    (
        "filter",
        "center filesizeformat forceescape pprint random striptags truncate urlencode urlize wordcount wordwrap xmlattr",
    ),
    ("test", "callable"),
    (
        "method",
        "casefold center encode expandtabs format_map index isdecimal isidentifier isprintable istitle ljust rindex \
         rjust swapcase translate zfill",
    ),
    ("function", "cycler joiner lipsum"),
];

/// The class of a token, as far as the following token depends on it.
#[derive(Clone, Copy)]
enum TokenClass<'t> {
    Name(&'t str),
    Dot,
    Pipe,
    Paren,
    Other,
}

/// Refuses what the renderer lacks, by the last three tokens.
fn lacking(tokens: [TokenClass<'_>; 3]) -> Result<(), String> {
    use TokenClass::{Dot, Name, Paren, Pipe};
    let (kind, name) = match tokens {
        [_, Pipe | Name("filter"), Name(name)] => (0, name),
        [_, Name("is"), Name(name)] | [Name("is"), Name("not"), Name(name)] => (1, name),
        [Dot, Name(name), Paren] => (2, name),
        [Pipe | Name("is" | "not"), Name(_), Paren] => return Ok(()),
        [_, Name(name), Paren] => (3, name),
        _ => return Ok(()),
    };
    let (kind, names) = LACKING[kind];
    let is_lacking = names.split(' ').any(|lacking| lacking == name);
    if is_lacking { Err(format!("the {kind} `{name}` is not supported")) } else { Ok(()) }
}

/// Refuses chains that are too long, and what the renderer lacks.
fn chains(source: &str) -> Result<(), Error> {
    let too_long = |line: u16, what: &str| {
        let why = format!("line {line} has {what} than {LONGEST_CHAIN}");
        Err(Error::new(ErrorKind::SyntaxError, why))
    };
    // Of each `if` that is open, how many branches it has.
    let mut branches: Vec<usize> = Vec::new();
    let (mut operators, mut begins) = (0, false);
    let mut seen = [TokenClass::Other; 3];
    for token in tokenize(source, false, white_space()?) {
        // What is no token is the parser's to say.
        let Ok((token, span)) = token else { return Ok(()) };
        seen.rotate_left(1);
        seen[2] = match &token {
            Token::Ident(name) => TokenClass::Name(name),
            Token::Dot => TokenClass::Dot,
            Token::Pipe => TokenClass::Pipe,
            Token::ParenOpen => TokenClass::Paren,
            _ => TokenClass::Other,
        };
        lacking(seen)
            .map_err(|why| Error::new(ErrorKind::SyntaxError, format!("line {}: {why}", span.start_line)))?;
        let word = if begins { token_word(&token) } else { None };
        begins = matches!(token, Token::BlockStart);
        match (token, word) {
            (Token::BlockStart | Token::VariableStart, _) => operators = 0,
            (_, Some("if")) => branches.push(0),
            (_, Some("elif")) => {
                if let Some(branches) = branches.last_mut() {
                    *branches += 1;
                }
            }
            (_, Some("endif")) => drop(branches.pop()),
            (
                Token::TemplateData(_)
                | Token::VariableEnd
                | Token::BlockEnd
                | Token::Str(_)
                | Token::String(_)
                | Token::Int(_)
                | Token::Int128(_)
                | Token::Float(_)
                | Token::Comma
                | Token::Colon
                | Token::Assign
                | Token::BracketClose
                | Token::ParenClose
                | Token::BraceOpen
                | Token::BraceClose,
                _,
            ) => {}
            (Token::Ident(name), _)
                if !matches!(name, "and" | "or" | "not" | "in" | "is" | "if" | "else") => {}
            _ => operators += 1,
        }
        if operators > LONGEST_CHAIN {
            return too_long(span.start_line, "a tag with more operators");
        }
        if branches.iter().sum::<usize>() > LONGEST_CHAIN {
            return too_long(span.start_line, "more branches of `if` around it");
        }
    }
    Ok(())
}

fn token_word<'t>(token: &Token<'t>) -> Option<&'t str> {
    if let Token::Ident(word) = token { Some(word) } else { None }
}

/// A part of a tree, with what counts put in. The tree can only be made anew.
trait Counted {
    fn counted(&self) -> Self;
}

macro_rules! plain {
    ($($ty:ty),*) => {$(
        impl Counted for $ty {
            fn counted(&self) -> Self {
                *self
            }
        }
    )*};
}

plain!(bool, &str, Span);

impl<T: Counted> Counted for Option<T> {
    fn counted(&self) -> Self {
        self.as_ref().map(T::counted)
    }
}

impl<T: Counted> Counted for Vec<T> {
    fn counted(&self) -> Self {
        self.iter().map(T::counted).collect()
    }
}

impl Counted for Vec<Stmt<'_>> {
    fn counted(&self) -> Self {
        self.iter().flat_map(|statement| rewritten(statement)).collect()
    }
}

/// A node with those fields counted, and others as they are said.
macro_rules! node {
    ($variant:ident, $s:ident { $($field:ident),* $(; $($other:ident: $value:expr),*)? }) => {
        Spanned::new(ast::$variant { $($field: $s.$field.counted(),)* $($($other: $value),*)? }, $s.span())
    };
}

/// A statement, with what counts put in, and what is looked at behind it.
fn rewritten<'a>(statement: &Stmt<'a>) -> Vec<Stmt<'a>> {
    let mut checks = Vec::new();
    let new = match statement {
        Stmt::Template(s) => Stmt::Template(node!(Template, s { children })),
        Stmt::EmitExpr(s) => {
            // A call that is printed may be one that only counts where it is printed: `loop(…)`, `super()`.
            let expr = match &s.expr {
                Expr::Call(call) => Expr::Call(call.counted()),
                expr => expr.counted(),
            };
            Stmt::EmitExpr(Spanned::new(ast::EmitExpr { expr }, s.span()))
        }
        Stmt::EmitRaw(s) => {
            let value = Value::from_safe_string(s.raw.to_string());
            let expr = Expr::Const(Spanned::new(ast::Const { value }, s.span()));
            Stmt::EmitExpr(Spanned::new(ast::EmitExpr { expr }, s.span()))
        }
        Stmt::ForLoop(s) => {
            let target = target_of(&s.target);
            Stmt::ForLoop(node!(ForLoop, s { iter, filter_expr, recursive, body, else_body; target: target }))
        }
        Stmt::IfCond(s) => Stmt::IfCond(node!(IfCond, s { expr, true_body, false_body })),
        Stmt::WithBlock(s) => {
            let mut body = Vec::new();
            s.assignments.iter().for_each(|(target, _)| assigned(target, &mut body));
            body.extend(s.body.counted());
            let assignments = s.assignments.iter();
            let assignments = assignments.map(|(target, expr)| (target_of(target), expr.counted())).collect();
            Stmt::WithBlock(Spanned::new(ast::WithBlock { assignments, body }, s.span()))
        }
        Stmt::Set(s) => {
            assigned(&s.target, &mut checks);
            Stmt::Set(node!(Set, s { expr; target: target_of(&s.target) }))
        }
        Stmt::SetBlock(s) => {
            Stmt::SetBlock(node!(SetBlock, s { filter, body; target: target_of(&s.target) }))
        }
        Stmt::AutoEscape(s) => Stmt::AutoEscape(node!(AutoEscape, s { enabled, body })),
        Stmt::FilterBlock(s) => Stmt::FilterBlock(node!(FilterBlock, s { filter, filter_span, body })),
        Stmt::Block(s) => Stmt::Block(node!(Block, s { name, required, body })),
        Stmt::Import(s) => Stmt::Import(node!(Import, s { expr; name: target_of(&s.name) })),
        Stmt::FromImport(s) => {
            let names = s.names.iter();
            let names = names.map(|(name, alias)| (target_of(name), alias.as_ref().map(target_of))).collect();
            Stmt::FromImport(node!(FromImport, s { expr; names: names }))
        }
        Stmt::Extends(s) => Stmt::Extends(node!(Extends, s { name })),
        Stmt::Include(s) => Stmt::Include(node!(Include, s { name, ignore_missing })),
        Stmt::Macro(s) => Stmt::Macro(s.counted()),
        Stmt::CallBlock(s) => Stmt::CallBlock(node!(CallBlock, s { call, call_expr_span, macro_decl })),
        Stmt::Continue(s) => Stmt::Continue(Spanned::new(ast::Continue, s.span())),
        Stmt::Break(s) => Stmt::Break(Spanned::new(ast::Break, s.span())),
        Stmt::Do(s) => Stmt::Do(node!(Do, s { call })),
    };
    let mut statements = vec![new];
    statements.append(&mut checks);
    statements
}

/// What is assigned to. Where that is an attribute of a namespace, the namespace is looked at behind it: it may
/// have become a part of itself.
fn assigned<'a>(target: &Expr<'a>, checks: &mut Vec<Stmt<'a>>) {
    match target {
        Expr::List(list) => list.items.iter().for_each(|item| assigned(item, checks)),
        Expr::GetAttr(attr) => {
            let span = attr.span();
            let call = call(bounds::KEPT, target_of(&attr.expr), span);
            checks.push(Stmt::Do(Spanned::new(ast::Do { call: Spanned::new(call, span) }, span)));
        }
        _ => {}
    }
}

fn target_of<'a>(target: &Expr<'a>) -> Expr<'a> {
    match target {
        Expr::List(s) => {
            let items = s.items.iter().map(target_of).collect();
            Expr::List(Spanned::new(ast::List { items }, s.span()))
        }
        other => other.counted(),
    }
}

impl Counted for Spanned<ast::Macro<'_>> {
    fn counted(&self) -> Self {
        let args = self.args.iter().map(target_of).collect();
        node!(Macro, self { name, defaults, body; args: args })
    }
}

impl Counted for Spanned<ast::Call<'_>> {
    fn counted(&self) -> Self {
        node!(Call, self { expr, args })
    }
}

impl Counted for CallArg<'_> {
    fn counted(&self) -> Self {
        match self {
            CallArg::Pos(expr) => CallArg::Pos(expr.counted()),
            CallArg::Kwarg(name, expr) => CallArg::Kwarg(name, expr.counted()),
            CallArg::PosSplat(expr) => CallArg::PosSplat(expr.counted()),
            CallArg::KwargSplat(expr) => CallArg::KwargSplat(expr.counted()),
        }
    }
}

impl Counted for ast::CompareOp<'_> {
    fn counted(&self) -> Self {
        ast::CompareOp { op: self.op, expr: self.expr.counted() }
    }
}

impl Counted for Expr<'_> {
    fn counted(&self) -> Self {
        match self {
            Expr::Var(s) => Expr::Var(node!(Var, s { id })),
            Expr::Const(s) => Expr::Const(node!(Const, s { ; value: s.value.clone() })),
            Expr::Slice(s) => kept(Expr::Slice(node!(Slice, s { expr, start, stop, step })), s.span()),
            Expr::UnaryOp(s) => {
                let not = matches!(s.op, ast::UnaryOpKind::Not);
                let op = if not { ast::UnaryOpKind::Not } else { ast::UnaryOpKind::Neg };
                Expr::UnaryOp(node!(UnaryOp, s { expr; op: op }))
            }
            Expr::BinOp(s) => match s.op {
                ast::BinOpKind::Add | ast::BinOpKind::Mul | ast::BinOpKind::Concat => {
                    kept(sum_of(s), s.span())
                }
                ast::BinOpKind::Rem => {
                    let expr = Expr::Var(Spanned::new(ast::Var { id: bounds::REMAINDER }, s.span()));
                    let args = vec![CallArg::Pos(s.left.counted()), CallArg::Pos(s.right.counted())];
                    kept(Expr::Call(Spanned::new(ast::Call { expr, args }, s.span())), s.span())
                }
                op => Expr::BinOp(node!(BinOp, s { left, right; op: op })),
            },
            Expr::Compare(s) => Expr::Compare(node!(Compare, s { expr, ops })),
            Expr::IfExpr(s) => Expr::IfExpr(node!(IfExpr, s { test_expr, true_expr, false_expr })),
            Expr::Filter(s) => kept(Expr::Filter(node!(Filter, s { name, expr, args })), s.span()),
            Expr::Test(s) => Expr::Test(node!(Test, s { name, expr, args })),
            Expr::GetAttr(s) => Expr::GetAttr(node!(GetAttr, s { expr, name })),
            Expr::GetItem(s) => Expr::GetItem(node!(GetItem, s { expr, subscript_expr })),
            Expr::Call(s) => kept(Expr::Call(s.counted()), s.span()),
            Expr::List(s) => kept(Expr::List(node!(List, s { items })), s.span()),
            Expr::Tuple(s) => kept(Expr::Tuple(node!(Tuple, s { items })), s.span()),
            Expr::Map(s) => kept(Expr::Map(node!(Map, s { keys, values })), s.span()),
        }
    }
}

/// A sum, a product or texts one behind the other. Of a chain (`a ~ b ~ c`) what is made on the way is gone at once, so
/// that it need only fit.
fn sum_of<'a>(s: &Spanned<ast::BinOp<'a>>) -> Expr<'a> {
    use ast::BinOpKind::{Add, Concat, Mul};
    let left = match &s.left {
        Expr::BinOp(inner) if matches!(inner.op, Add | Concat | Mul) => {
            through(bounds::FITS, sum_of(inner), inner.span())
        }
        // What is constant is not computed by the compiler, which does not count.
        left @ Expr::Const(_) => through(bounds::FITS, left.counted(), left.span()),
        left => left.counted(),
    };
    if !matches!(s.op, Concat) {
        return Expr::BinOp(node!(BinOp, s { right; op: s.op, left: left }));
    }
    let left = match &s.left {
        Expr::BinOp(inner) if matches!(inner.op, Concat) => left,
        of => text_of(of, left),
    };
    let right = text_of(&s.right, s.right.counted());
    Expr::BinOp(Spanned::new(ast::BinOp { op: s.op, left, right }, s.span()))
}

/// The text of what an expression has become, where that is not one for certain.
fn text_of<'a>(expr: &Expr<'a>, new: Expr<'a>) -> Expr<'a> {
    match expr {
        Expr::Const(constant) if constant.value.as_str().is_some() => new,
        _ => through(bounds::TEXT, new, expr.span()),
    }
}

/// The value of an expression, counted.
fn kept<'a>(expr: Expr<'a>, span: Span) -> Expr<'a> {
    through(bounds::KEPT, expr, span)
}

/// The renderer asks more for filters, whose arguments it counts too.
fn through<'a>(name: &'a str, expr: Expr<'a>, span: Span) -> Expr<'a> {
    Expr::Call(Spanned::new(call(name, expr, span), span))
}

fn call<'a>(id: &'a str, arg: Expr<'a>, span: Span) -> ast::Call<'a> {
    ast::Call { expr: Expr::Var(Spanned::new(ast::Var { id }, span)), args: vec![CallArg::Pos(arg)] }
}
