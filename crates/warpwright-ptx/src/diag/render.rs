//! Rendering of diagnostics with the source lines that they refer to.

use super::{Diagnostic, LineIndex, Severity};
use crate::ir::{Origin, Span};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{
    Annotation, AnnotationKind, Element, Group, Level, Origin as SnippetOrigin, Renderer, Snippet,
};
use std::ops::Range;

/// Marks closer than this, in lines, share a snippet.
const NEAR: u32 = 12;
/// The most lines of one mark that are shown.
const LONGEST: u32 = 6;

/// Renders diagnostics about `text`, with `name` as its name, together with the lines that they refer to. Origins in
/// Rust code are shown as file, line and column. With `color`, the result has ANSI escapes.
pub fn render<'d>(
    diagnostics: impl IntoIterator<Item = &'d Diagnostic>,
    name: &str,
    text: &str,
    color: bool,
) -> String {
    let lines = LineIndex::new(text);
    let renderer = renderer(color);
    let mut out = String::new();
    for diagnostic in diagnostics {
        out.push_str(&renderer.render(&[group(diagnostic, name, &lines)]));
        out.push_str("\n\n");
    }
    out.truncate(out.trim_end_matches('\n').len());
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// A message about places in texts, for tools whose own findings should look like the verifier's.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// The severity.
    pub severity: Severity,
    /// The text in brackets after the severity: a code, or the name of the check.
    pub id: &'a str,
    /// The headline.
    pub title: &'a str,
    /// The places, in one text or several. The first is the main one.
    pub places: Vec<MessagePlace<'a>>,
    /// Further remarks.
    pub notes: Vec<&'a str>,
    /// Advice.
    pub help: Option<&'a str>,
}

/// A marked place in a text.
#[derive(Clone, Copy, Debug)]
pub struct MessagePlace<'a> {
    /// The name of the text. Places with the same name belong to the same text.
    pub name: &'a str,
    /// The text.
    pub lines: &'a LineIndex<'a>,
    /// The marked range.
    pub span: Span,
    /// The label beside the mark.
    pub label: Option<&'a str>,
}

/// Renders a message with the lines that it refers to. With `color`, the result has ANSI escapes. It ends with a
/// newline.
pub fn render_message(message: &Message<'_>, color: bool) -> String {
    let mut group = Group::with_title(level(message.severity).primary_title(message.title).id(message.id));
    let mut texts: Vec<Marks<'_, '_>> = Vec::new();
    for (i, place) in message.places.iter().enumerate() {
        let kind = if i == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        let at = texts.iter().position(|text| text.name == place.name).unwrap_or_else(|| {
            texts.push(Marks { name: place.name, lines: place.lines, marks: Vec::new() });
            texts.len() - 1
        });
        texts[at].add(place.span, kind, place.label);
    }
    for text in texts {
        group = group.elements(text.snippets());
    }
    group = group.elements(message.notes.iter().map(|note| Level::NOTE.message(*note)));
    group = group.elements(message.help.map(|help| Level::HELP.message(help)));
    let mut out = renderer(color).render(&[group]);
    out.truncate(out.trim_end_matches('\n').len());
    out.push('\n');
    out
}

fn renderer(color: bool) -> Renderer {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    renderer.decor_style(DecorStyle::Ascii)
}

fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    }
}

fn group<'a>(diagnostic: &'a Diagnostic, name: &'a str, lines: &LineIndex<'a>) -> Group<'a> {
    let level = level(diagnostic.severity());
    let mut group = Group::with_title(level.primary_title(&diagnostic.message).id(diagnostic.code.text()));
    let mut marks = Marks { name, lines, marks: Vec::new() };
    match diagnostic.origin {
        Origin::Text(span) => marks.add(span, AnnotationKind::Primary, None),
        Origin::Rust(location) => group = group.element(place(location)),
        Origin::Unknown => group = group.element(SnippetOrigin::path(name)),
    }
    let mut elsewhere = Vec::new();
    for (origin, what) in &diagnostic.related {
        match origin {
            Origin::Text(span) => marks.add(*span, AnnotationKind::Context, Some(what.as_str())),
            Origin::Rust(location) => elsewhere.push((Some(*location), what)),
            Origin::Unknown => elsewhere.push((None, what)),
        }
    }
    group = group.elements(marks.snippets());
    for (location, what) in elsewhere {
        group = group.element(Level::NOTE.message(what));
        if let Some(location) = location {
            group = group.element(place(location));
        }
    }
    match &diagnostic.help {
        Some(help) => group.element(Level::HELP.message(help)),
        None => group,
    }
}

fn place<'a>(location: &'static std::panic::Location<'static>) -> SnippetOrigin<'a> {
    SnippetOrigin::path(location.file())
        .line(location.line() as usize)
        .char_column(location.column() as usize)
}

/// Places of the text to be marked.
struct Marks<'a, 'l> {
    name: &'a str,
    lines: &'l LineIndex<'a>,
    marks: Vec<Mark<'a>>,
}

struct Mark<'a> {
    range: Range<usize>,
    /// The lines, from 1, both included.
    lines: (u32, u32),
    kind: AnnotationKind,
    label: Option<&'a str>,
}

impl<'a> Marks<'a, '_> {
    fn add(&mut self, span: Span, kind: AnnotationKind, label: Option<&'a str>) {
        let (start, end) = (self.lines.clamp(span.start), self.lines.clamp(span.end.max(span.start)));
        let first = self.lines.position(start).line;
        let last = self.lines.position(end.saturating_sub(1).max(start)).line;
        let shown = last.min(first + LONGEST - 1);
        let end = if shown < last { self.lines.line(shown).end } else { end as usize };
        self.marks.push(Mark { range: start as usize..end, lines: (first, shown), kind, label });
    }

    /// One snippet for marks that are near each other, since the text may be long and the part in between irrelevant.
    /// The snippet with the primary mark comes first.
    fn snippets(mut self) -> Vec<Element<'a>> {
        self.marks.sort_by_key(|mark| mark.lines.0);
        let mut runs: Vec<Vec<Mark<'a>>> = Vec::new();
        for mark in self.marks {
            match runs.last_mut() {
                Some(run)
                    if run.iter().map(|before| before.lines.1).max().unwrap_or(0) + NEAR >= mark.lines.0 =>
                {
                    run.push(mark);
                }
                _ => runs.push(vec![mark]),
            }
        }
        let primary =
            |run: &Vec<Mark<'_>>| run.iter().any(|mark| matches!(mark.kind, AnnotationKind::Primary));
        runs.sort_by_key(|run| !primary(run));
        let (name, lines) = (self.name, self.lines);
        let snippet = |run: Vec<Mark<'a>>| -> Element<'a> {
            let first = run.iter().map(|mark| mark.lines.0).min().unwrap_or(1);
            let last = run.iter().map(|mark| mark.lines.1).max().unwrap_or(1);
            let start = lines.line(first).start;
            let source = &lines.text()[start..lines.line(last).end];
            let annotations = run.into_iter().map(|mark| -> Annotation<'a> {
                mark.kind.span(mark.range.start - start..mark.range.end - start).label(mark.label)
            });
            Snippet::source(source).path(name).line_start(first as usize).annotations(annotations).into()
        };
        runs.into_iter().map(snippet).collect()
    }
}
