//! Rooflines: operations a second over operations for each byte, both by their logarithms. The roofs are the bandwidth of
//! a copy and the rate of the tensor cores at the clock that was measured.

use super::Report;
use crate::stages::Stage;
use std::fmt::Write;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 560.0;
const MARGIN: f64 = 70.0;

/// The stages that are drawn, and their colours: of Okabe and Ito's palette.
const DRAWN: [(Stage, &str); 4] = [
    (Stage::Gemv, "#0072b2"),
    (Stage::Attention, "#d55e00"),
    (Stage::FlashAttention, "#009e73"),
    (Stage::Gemm, "#cc79a7"),
];

struct Point<'a> {
    name: &'a str,
    colour: &'a str,
    /// Operations for each byte.
    intensity: f64,
    /// Operations a second.
    rate: f64,
}

/// Decades from the first to the last that hold all values.
struct Axis {
    first: i32,
    last: i32,
    start: f64,
    length: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64> + Clone, start: f64, length: f64) -> Self {
        let decades = values.filter(|value| *value > 0.0).map(f64::log10);
        let first = decades.clone().fold(f64::INFINITY, f64::min).floor() as i32;
        let last = decades.fold(f64::NEG_INFINITY, f64::max).ceil() as i32;
        Axis { first, last: last.max(first + 1), start, length }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first);
        self.start + share * self.length
    }

    fn ends(&self) -> (f64, f64) {
        (10f64.powi(self.first), 10f64.powi(self.last))
    }
}

pub(super) fn svg(report: &Report) -> Option<String> {
    let (bandwidth, peak) = (report.copy_bandwidth()?, report.tensor_rate()?);
    let points = DRAWN.iter().flat_map(|&(stage, colour)| {
        report.figures(stage).filter_map(move |figure| {
            let intensity = figure.operations? as f64 / figure.bytes? as f64;
            Some(Point { name: &figure.name, colour, intensity, rate: figure.rate()? })
        })
    });
    let points: Vec<_> = points.collect();
    if points.is_empty() {
        return None;
    }
    let ridge = peak / bandwidth;
    let x = points.iter().map(|point| point.intensity).chain([ridge]);
    let x = Axis::new(x, MARGIN, WIDTH - 2.0 * MARGIN);
    let y = points.iter().map(|point| point.rate).chain([peak]);
    let y = Axis::new(y, HEIGHT - MARGIN, 2.0 * MARGIN - HEIGHT);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = draw(&mut out, report, (&x, &y), (bandwidth, peak), &points);
    Some(out)
}

fn draw(
    out: &mut String,
    report: &Report,
    (x, y): (&Axis, &Axis),
    (bandwidth, peak): (f64, f64),
    points: &[Point<'_>],
) -> std::fmt::Result {
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">"#
    )?;
    writeln!(out, r##"<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>"##)?;
    let title = format!("{}, {}", report.device.name, report.date);
    writeln!(out, r#"<text x="{MARGIN}" y="30" font-size="16">{}</text>"#, escaped(&title))?;
    let (left, right) = x.ends();
    let (bottom, top) = y.ends();
    for decade in x.first..=x.last {
        let (at, low, high) = (x.place(10f64.powi(decade)), y.place(bottom), y.place(top));
        line(out, (at, low), (at, high), "#dddddd", 1.0)?;
        writeln!(out, r#"<text x="{at:.1}" y="{:.1}" text-anchor="middle">10^{decade}</text>"#, low + 18.0)?;
    }
    for decade in y.first..=y.last {
        let (at, low, high) = (y.place(10f64.powi(decade)), x.place(left), x.place(right));
        line(out, (low, at), (high, at), "#dddddd", 1.0)?;
        writeln!(
            out,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="end">10^{decade}</text>"#,
            low - 6.0,
            at + 4.0
        )?;
    }
    let (middle, below) = (WIDTH / 2.0, HEIGHT - 18.0);
    writeln!(out, r#"<text x="{middle}" y="{below}" text-anchor="middle">operations for each byte</text>"#)?;
    writeln!(out, r#"<text x="{MARGIN}" y="52">operations a second</text>"#)?;
    let ridge = peak / bandwidth;
    // The slope begins where the drawing does, at its left or at its bottom.
    let begin = left.max(bottom / bandwidth).min(ridge);
    let corner = (x.place(ridge), y.place(peak));
    line(out, (x.place(begin), y.place(begin * bandwidth)), corner, "#000000", 2.0)?;
    line(out, corner, (x.place(right.max(ridge)), corner.1), "#000000", 2.0)?;
    let roofs = format!("copy {:.0} GB/s, mma {:.0} Tflop/s", bandwidth / 1e9, peak / 1e12);
    writeln!(out, r#"<text x="{:.1}" y="52" text-anchor="end">{roofs}</text>"#, WIDTH - MARGIN)?;
    for Point { name, colour, intensity, rate } in points {
        let (at, height) = (x.place(*intensity), y.place(*rate));
        writeln!(
            out,
            r#"<circle cx="{at:.1}" cy="{height:.1}" r="4" fill="{colour}" fill-opacity="0.7"><title>{}: {:.2} Tflop/s</title></circle>"#,
            escaped(name),
            rate / 1e12
        )?;
    }
    for (i, (stage, colour)) in DRAWN.iter().enumerate() {
        let height = HEIGHT - MARGIN - 12.0 - 18.0 * i as f64;
        let at = WIDTH - MARGIN - 180.0;
        writeln!(out, r#"<circle cx="{at}" cy="{height}" r="4" fill="{colour}"/>"#)?;
        writeln!(out, r#"<text x="{}" y="{}">{}</text>"#, at + 10.0, height + 4.0, stage.description())?;
    }
    writeln!(out, "</svg>")
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) -> std::fmt::Result {
    writeln!(
        out,
        r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" stroke="{colour}" stroke-width="{width}"/>"#,
        from.0, from.1, to.0, to.1
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
