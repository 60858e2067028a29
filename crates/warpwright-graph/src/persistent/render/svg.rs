//! A picture: blocks from top to bottom, time from left to right.
//!
//! Programs find their way by classes and data: items are `rect.item` with `data-item`, `data-block`, `data-instance` and
//! the colour of their family of steps; barriers are `line.barrier` with `data-phase`.

use super::report::ScheduleReport;
use crate::render::dot::{COLOURS, colour};
use crate::render::table::size;
use std::fmt::{self, Write};

/// Around all.
const MARGIN: f64 = 24.0;
/// Room for a heading, for the numbers of blocks, and for the legend.
const HEADING: f64 = 44.0;
const NUMBERS: f64 = 44.0;
const LEGEND: f64 = 40.0;
/// The height of all blocks together, at most and at least, and of one at most.
const TALLEST: f64 = 900.0;
const ROW: f64 = 16.0;
/// The width of a phase, in the mean, and of all at most.
const PHASE: f64 = 48.0;
const WIDEST: f64 = 6000.0;
const NARROWEST: f64 = 720.0;

/// A text as XML has it.
struct Escaped<'a>(&'a str);

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

pub(super) fn render(report: &ScheduleReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_picture(&mut text, report);
    text
}

fn write_picture(text: &mut String, report: &ScheduleReport) -> fmt::Result {
    let blocks = report.blocks.len().max(1) as f64;
    let row = (TALLEST / blocks).min(ROW);
    let inner = (PHASE * report.phases.len() as f64).clamp(NARROWEST, WIDEST);
    let scale = inner / report.totals.cost.max(1) as f64;
    let (left, top) = (MARGIN + NUMBERS, MARGIN + HEADING);
    let (width, height) = (left + inner + NUMBERS + MARGIN, top + row * blocks + LEGEND + MARGIN);
    writeln!(
        text,
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace">
<style>
text {{ fill: #1d2430; font-size: 10px; }}
.heading {{ font-size: 15px; font-weight: bold; }}
.item {{ stroke: #5b6470; stroke-width: 0.4; }}
.barrier {{ stroke: #a02c4a; stroke-width: 0.8; }}
.idle {{ fill: #f4f4f4; }}
</style>
<rect width="{width:.0}" height="{height:.0}" fill="#ffffff"/>
<rect class="idle" x="{left:.1}" y="{top:.1}" width="{inner:.1}" height="{:.1}"/>"##,
        row * blocks
    )?;
    let totals = &report.totals;
    let heading = format!(
        "{} blocks, {}: {} barriers a token, {:.0}% idle",
        report.blocks.len(),
        report.assignment,
        totals.barriers,
        100.0 * totals.idle
    );
    writeln!(
        text,
        r#"<text class="heading" x="{MARGIN}" y="{:.1}">{}</text>"#,
        MARGIN + 14.0,
        Escaped(&heading)
    )?;
    let moved =
        format!("{} moved; a round of tiles costs {} more", size(totals.bytes), size(report.round_bytes));
    writeln!(text, r#"<text x="{MARGIN}" y="{:.1}">{}</text>"#, MARGIN + 30.0, Escaped(&moved))?;
    // As many numbers as there is room for.
    let every = (12.0 / row).ceil().max(1.0) as usize;
    for (i, block) in report.blocks.iter().enumerate().step_by(every) {
        let y = top + row * i as f64 + row / 2.0 + 3.5;
        writeln!(text, r#"<text x="{:.1}" y="{y:.1}" text-anchor="end">{i}</text>"#, left - 6.0)?;
        let idle = 100.0 * block.idle;
        writeln!(text, r#"<text x="{:.1}" y="{y:.1}">{idle:.0}%</text>"#, left + inner + 6.0)?;
    }
    for (i, item) in report.items.iter().enumerate() {
        let Some(instance) = report.instances.get(item.instance) else { continue };
        let (x, y) = (left + scale * item.from as f64, top + row * f64::from(item.block));
        let length = scale * (item.to - item.from) as f64;
        let (block, of, fill) = (item.block, item.instance, colour(&instance.family));
        write!(text, r#"<rect class="item" data-item="{i}" data-block="{block}" data-instance="{of}" "#)?;
        write!(text, r#"x="{x:.2}" y="{y:.2}" width="{length:.2}" height="{row:.2}" fill="{fill}">"#)?;
        let what = format!(
            "{} {}: tiles {}..{} of {}",
            instance.does,
            instance.makes.join(", "),
            item.first,
            item.end,
            instance.tiles
        );
        writeln!(text, "<title>{}</title></rect>", Escaped(&what))?;
    }
    for (phase, time) in report.phases.iter().enumerate() {
        let (x, bottom) = (left + scale * time.to as f64, top + row * blocks);
        write!(text, r#"<line class="barrier" data-phase="{phase}" x1="{x:.2}" y1="{:.1}" "#, top - 4.0)?;
        writeln!(text, r#"x2="{x:.2}" y2="{:.1}"/>"#, bottom + 4.0)?;
    }
    let (mut x, y) = (left, height - MARGIN);
    for (family, colour) in COLOURS {
        writeln!(text, r#"<rect x="{x:.1}" y="{:.1}" width="10" height="10" fill="{colour}"/>"#, y - 9.0)?;
        writeln!(text, r#"<text x="{:.1}" y="{y:.1}">{family}</text>"#, x + 15.0)?;
        x += 15.0 + family.len() as f64 * 6.1 + 18.0;
    }
    writeln!(text, "</svg>")
}
