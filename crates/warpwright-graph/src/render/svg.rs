//! A picture: the graph's nodes on the left, the steps on the right.
//!
//! Programs find their way by classes and data: `g.node` and `g.step` have `data-index`; `path.edge` has
//! `data-side` (`before`, `after`), `data-from`, `data-to` and `data-tensor`; inputs are `g.input`, and their edges
//! `path.given` with `data-to`.

use super::edges::edges;
use super::layers::{Arranged, Point, Rect, Way, arrange};
use super::report::{PlanReport, StepReport};
use super::table::{dims, size};
use std::fmt::{self, Write};

/// Width of a letter, as part of its height.
const LETTER: f64 = 0.602;
/// Heights of letters.
const LARGE: f64 = 12.0;
const SMALL: f64 = 10.0;
/// Around all, between the two halves, and within boxes.
const MARGIN: f64 = 24.0;
const BETWEEN: f64 = 64.0;
const PADDING: f64 = 8.0;
/// Room for a heading.
const HEADING: f64 = 44.0;
/// Letters of a line, about.
const WRAP: usize = 46;

/// Families with their colours.
pub(crate) const COLOURS: [(&str, &str); 8] = [
    ("rows", "#e8e3d3"),
    ("mat_mul", "#c9defa"),
    ("norm", "#d8efd0"),
    ("rope", "#fbe3bd"),
    ("attention", "#f6cfd6"),
    ("elementwise", "#e3d8f3"),
    ("sampling", "#cdeeea"),
    ("state", "#e4e4e4"),
];

/// The colour of a family's boxes.
pub(crate) fn colour(family: &str) -> &'static str {
    COLOURS.iter().find(|(name, _)| *name == family).map_or("#ffffff", |&(_, colour)| colour)
}

/// A text as XML has it.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                // Not allowed in XML, however written.
                letter if letter.is_control() => f.write_str("\u{fffd}")?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// How a line of a box looks.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    Title,
    Plain,
    Fusions,
    Kernel,
}

impl Style {
    fn height(self) -> f64 {
        if self == Style::Title { LARGE } else { SMALL }
    }
}

/// A box.
struct Panel {
    class: &'static str,
    index: usize,
    fill: &'static str,
    lines: Vec<(Style, String)>,
}

impl Panel {
    fn size(&self) -> [f64; 2] {
        let width = |(style, line): &(Style, String)| line.chars().count() as f64 * style.height() * LETTER;
        let widest = self.lines.iter().map(width).fold(40.0, f64::max);
        let heights: f64 = self.lines.iter().map(|(style, _)| style.height() + 4.0).sum();
        [widest.ceil() + 2.0 * PADDING, heights + 2.0 * PADDING - 4.0]
    }
}

/// Parts of a text in lines, joined again by `between`.
fn wrapped<'a>(parts: impl Iterator<Item = &'a str>, between: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.chars().count() + between.len() + part.chars().count() <= WRAP => {
                line.push_str(between);
                line.push_str(part);
            }
            Some(line) => {
                line.push_str(between.trim_end());
                lines.push(part.into());
            }
            None => lines.push(part.into()),
        }
    }
    lines
}

fn step_panel(report: &PlanReport, index: usize, step: &StepReport) -> Panel {
    let mut lines = vec![(Style::Title, format!("{index}  {}", step.op))];
    let mut add = |style, texts: Vec<String>| lines.extend(texts.into_iter().map(|text| (style, text)));
    add(Style::Plain, wrapped(step.nodes.iter().map(String::as_str), " + "));
    if !step.fusions.is_empty() {
        add(Style::Fusions, wrapped(step.fusions.iter().map(String::as_str), ", "));
    }
    for launch in step.launches.iter().filter_map(|&launch| report.launches.get(launch)) {
        add(Style::Kernel, wrapped(launch.kernel.split('_'), "_"));
        let (grid, block, bytes) = (dims(launch.grid), dims(launch.block), size(launch.bytes));
        add(Style::Plain, vec![format!("{grid} blocks of {block}, {bytes}")]);
    }
    for copy in &step.copies {
        add(Style::Plain, vec![format!("copy {} to {}", copy.from, copy.to)]);
    }
    if step.overridden {
        add(Style::Plain, vec!["the dispatcher's own".into()]);
    }
    Panel { class: "step", index, fill: colour(&step.family), lines }
}

/// Half of the picture: inputs, and boxes that read and make tensors.
struct Half<'a> {
    side: &'static str,
    inputs: Vec<&'a str>,
    panels: Vec<Panel>,
    boxes: Vec<(&'a [String], &'a [String])>,
}

impl Half<'_> {
    fn write(&self, text: &mut String, at: Point) -> Result<[f64; 2], fmt::Error> {
        let inputs = self.inputs.iter().enumerate().map(|(index, &name)| {
            let lines = vec![(Style::Plain, name.into())];
            Panel { class: "input", index, fill: "#ffffff", lines }
        });
        let first = self.inputs.len();
        let inputs: Vec<Panel> = inputs.collect();
        let panels = || inputs.iter().chain(&self.panels);
        let between = edges(&self.boxes);
        let given: Vec<(usize, usize)> = self
            .inputs
            .iter()
            .enumerate()
            .flat_map(|(i, input)| {
                let reads =
                    |boxed: &(usize, &(&[String], &[String]))| boxed.1.0.iter().any(|name| name == input);
                self.boxes.iter().enumerate().filter(reads).map(move |(to, _)| (i, to)).collect::<Vec<_>>()
            })
            .collect();
        let arrows: Vec<(usize, usize)> = (between.iter().map(|edge| (first + edge.from, first + edge.to)))
            .chain(given.iter().map(|&(from, to)| (from, first + to)))
            .collect();
        let sizes: Vec<[f64; 2]> = panels().map(Panel::size).collect();
        let Arranged { boxes, ways, size } = arrange(&sizes, &arrows);
        writeln!(text, r#"<g transform="translate({} {})">"#, at.x, at.y)?;
        for (way, edge) in ways.iter().zip(&between) {
            let (side, from, to, tensor) = (self.side, edge.from, edge.to, Escaped(edge.tensor));
            write!(text, r#"<path class="edge" data-side="{side}" data-from="{from}" data-to="{to}" "#)?;
            write!(text, r#"data-tensor="{tensor}" d="{}"><title>{tensor}</title></path>"#, Line(way))?;
            writeln!(text)?;
        }
        for (way, (_, to)) in ways[between.len()..].iter().zip(&given) {
            writeln!(text, r#"<path class="given" data-to="{to}" d="{}"/>"#, Line(way))?;
        }
        for (panel, place) in panels().zip(&boxes) {
            write_panel(text, panel, place)?;
        }
        writeln!(text, "</g>")?;
        Ok(size)
    }
}

/// The way of an arrow, as a path has it.
struct Line<'a>(&'a Way);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Way::Curve([a, b]) => {
                let middle = (a.y + b.y) / 2.0;
                let (ax, ay, bx, by) = (a.x, a.y, b.x, b.y);
                write!(f, "M{ax:.1} {ay:.1}C{ax:.1} {middle:.1} {bx:.1} {middle:.1} {bx:.1} {by:.1}")
            }
            Way::Lane(points) => {
                for (i, point) in points.iter().enumerate() {
                    write!(f, "{}{:.1} {:.1}", if i == 0 { "M" } else { "L" }, point.x, point.y)?;
                }
                Ok(())
            }
        }
    }
}

fn write_panel(text: &mut String, panel: &Panel, place: &Rect) -> fmt::Result {
    let Panel { class, index, fill, lines } = panel;
    let (Point { x, y }, [width, height]) = (place.at, place.size);
    writeln!(text, r#"<g class="{class}" data-index="{index}">"#)?;
    let round = if *class == "input" { height / 2.0 } else { 5.0 };
    write!(text, r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" "#)?;
    writeln!(text, r#"rx="{round}" fill="{fill}"/>"#)?;
    let mut baseline = y + PADDING;
    for (style, line) in lines {
        let class = match style {
            Style::Title => "title",
            Style::Plain => "plain",
            Style::Fusions => "fusions",
            Style::Kernel => "kernel",
        };
        baseline += style.height();
        let left = x + PADDING;
        let line = Escaped(line);
        writeln!(text, r#"<text class="{class}" x="{left:.1}" y="{:.1}">{line}</text>"#, baseline - 1.5)?;
        baseline += 4.0;
    }
    writeln!(text, "</g>")
}

pub(super) fn render(report: &PlanReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_picture(&mut text, report);
    text
}

fn write_picture(text: &mut String, report: &PlanReport) -> fmt::Result {
    let inputs = || report.tensors.iter().filter(|tensor| tensor.role == "input").map(|tensor| &*tensor.name);
    let ty = |name: &String| report.tensors.iter().find(|tensor| tensor.name == *name).map(|t| &*t.ty);
    let nodes = report.before.iter().enumerate().map(|(index, node)| {
        let family = report.steps.get(node.step).map_or("", |step| &step.family);
        let made = node.writes.first().and_then(ty).unwrap_or("");
        let lines = vec![
            (Style::Title, node.name.clone()),
            (Style::Plain, format!("{} → step {}", node.op, node.step)),
            (Style::Kernel, made.into()),
        ];
        Panel { class: "node", index, fill: colour(family), lines }
    });
    let before = Half {
        side: "before",
        inputs: inputs().collect(),
        panels: nodes.collect(),
        boxes: report.before.iter().map(|node| (&node.reads[..], &node.writes[..])).collect(),
    };
    let steps = report.steps.iter().enumerate().map(|(i, step)| step_panel(report, i, step));
    let after = Half {
        side: "after",
        inputs: inputs().collect(),
        panels: steps.collect(),
        boxes: report.steps.iter().map(|step| (&step.reads[..], &step.writes[..])).collect(),
    };
    let top = MARGIN + HEADING;
    let mut halves = String::new();
    let left = before.write(&mut halves, Point { x: MARGIN, y: top })?;
    let middle = MARGIN + left[0].max(240.0) + BETWEEN;
    let right = after.write(&mut halves, Point { x: middle, y: top })?;
    let width = middle + right[0].max(420.0) + MARGIN;
    let height = top + left[1].max(right[1]) + MARGIN + 28.0;

    writeln!(
        text,
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace">
<style>
rect {{ stroke: #5b6470; stroke-width: 1; }}
text {{ fill: #1d2430; }}
.heading {{ font-size: 15px; font-weight: bold; }}
.title {{ font-size: {LARGE}px; font-weight: bold; }}
.plain {{ font-size: {SMALL}px; }}
.fusions {{ font-size: {SMALL}px; fill: #a02c4a; }}
.kernel {{ font-size: {SMALL}px; fill: #5b6470; }}
.edge, .given {{ fill: none; stroke: #5b6470; stroke-width: 1.2; marker-end: url(#arrow); }}
.given {{ stroke-dasharray: 4 3; }}
</style>
<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#5b6470"/></marker></defs>
<rect width="{width:.0}" height="{height:.0}" fill="#ffffff" style="stroke: none"/>"##
    )?;
    let totals = &report.totals;
    let heading = |x: f64, y: f64, class: &str, line: &str| {
        format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", Escaped(line))
    };
    let moved = size(totals.bytes);
    let lines = [
        (MARGIN, "heading", 14.0, format!("before: {} nodes", totals.nodes)),
        (middle, "heading", 14.0, format!("after: {} steps, {} launches", totals.steps, totals.launches)),
        (middle, "plain", 29.0, format!("{moved} moved, {} of memory", size(totals.arena_bytes))),
    ];
    for (x, class, y, line) in lines {
        writeln!(text, "{}", heading(x, MARGIN + y, class, &line))?;
    }
    text.push_str(&halves);
    let mut x = MARGIN;
    for (family, colour) in COLOURS {
        let y = height - MARGIN;
        writeln!(text, r#"<rect x="{x:.1}" y="{:.1}" width="10" height="10" fill="{colour}"/>"#, y - 9.0)?;
        writeln!(text, "{}", heading(x + 15.0, y, "plain", family))?;
        x += 15.0 + family.len() as f64 * SMALL * LETTER + 18.0;
    }
    writeln!(text, "</svg>")
}
