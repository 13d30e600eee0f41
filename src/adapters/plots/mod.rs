//! Drawings as SVG and PNG. Both are the same bytes on every machine: fonts of the system are never looked at.
//!
//! Text of an SVG stays text, in Arimo or a font of the same widths (Arial, Helvetica, Liberation Sans); a PNG has the
//! outlines of Arimo's Latin letters, which are part of this program. Letters that it lacks become a box there.

mod font;
mod png;
mod svg;

pub use font::text_width;
pub use png::{PngError, png};
pub use svg::svg;
