//! The figures of a paper, as drawings: pass rates with their spread, the suite by category, code size against pass rate.
//!
//! They are one column (7 inches) wide, in dark blue and grey with one warm accent, and can be told apart in grey print.

mod axis;
mod categories;
mod code_lines;
mod ranking;

pub use categories::categories;
pub use code_lines::code_lines;
pub use ranking::ranking;

use crate::domain::drawing::{Anchor, Colour, Mark, Point};
use crate::domain::visible::visible_line;

/// How wide a line of text is, by its size.
pub type TextWidth<'a> = &'a dyn Fn(&str, f64) -> f64;

const WIDTH: f64 = 504.0;
const SIZE: f64 = 8.0;
const SMALL: f64 = 7.0;
const INK: Colour = Colour(0x22, 0x22, 0x22);
const QUIET: Colour = Colour(0x6b, 0x6b, 0x6b);
const GRID: Colour = Colour(0xe3, 0xe3, 0xe3);
const BLUE: Colour = Colour(0x2f, 0x5d, 0x8a);
const PALE: Colour = Colour(0xd5, 0xe1, 0xec);
const WARM: Colour = Colour(0xc5, 0x5a, 0x11);
/// Names longer than this would push the data aside.
const LONGEST_NAME: f64 = 170.0;

fn text(at: Point, size: f64, anchor: Anchor, fill: Colour, text: &str) -> Mark {
    Mark::Text {
        at,
        size,
        anchor,
        upward: false,
        fill,
        text: text.to_owned(),
    }
}

fn line(from: Point, to: Point, width: f64, stroke: Colour) -> Mark {
    Mark::Line {
        points: vec![from, to],
        width,
        stroke,
    }
}

fn rectangle(left: f64, top: f64, right: f64, bottom: f64, fill: Colour) -> Mark {
    Mark::Area {
        points: vec![(left, top), (right, top), (right, bottom), (left, bottom)],
        fill,
    }
}

/// A name that a stranger gave, harmless and not too long.
fn name(text: &str, width: TextWidth<'_>) -> String {
    let shown = visible_line(text).into_owned();
    if width(&shown, SIZE) <= LONGEST_NAME {
        return shown;
    }
    let mut short = shown;
    while width(&short, SIZE) > LONGEST_NAME - width("…", SIZE) {
        short.pop();
    }
    short + "…"
}

fn widest<'a>(names: impl Iterator<Item = &'a String>, width: TextWidth<'_>) -> f64 {
    names.map(|name| width(name, SIZE)).fold(0.0, f64::max)
}
