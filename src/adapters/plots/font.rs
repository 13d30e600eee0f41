//! Arimo: widths of text, and outlines of letters.

use std::sync::LazyLock;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

static FACE: LazyLock<Face<'static>> = LazyLock::new(|| {
    Face::parse(include_bytes!("arimo-latin.ttf"), 0).expect("the font is part of the program")
});

/// Of a line of text, in the unit of the size.
pub fn text_width(text: &str, size: f64) -> f64 {
    let widths = text.chars().map(|letter| f64::from(advance(glyph(letter))));
    widths.sum::<f64>() * scale(size)
}

/// Gives each letter's outline to the builder that `begin` makes for its distance from the start of the text. Outlines
/// are in units of the font, y upward; [`scale`] turns them into the unit of the size.
pub fn outlines<B: OutlineBuilder>(text: &str, mut each: impl FnMut(f64) -> B) -> Vec<B> {
    let mut at = 0.0;
    text.chars()
        .map(|letter| {
            let glyph = glyph(letter);
            let mut builder = each(at);
            // A blank has no outline.
            let _ = FACE.outline_glyph(glyph, &mut builder);
            at += f64::from(advance(glyph));
            builder
        })
        .collect()
}

pub fn scale(size: f64) -> f64 {
    size / f64::from(FACE.units_per_em())
}

/// Glyph 0 is the box of letters that the font lacks.
fn glyph(letter: char) -> GlyphId {
    FACE.glyph_index(letter).unwrap_or(GlyphId(0))
}

fn advance(glyph: GlyphId) -> u16 {
    FACE.glyph_hor_advance(glyph).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_arial() {
        // Arial's digits are 1139 of 2048 units wide.
        assert!((text_width("0000", 2048.0) - 4.0 * 1139.0).abs() < 1e-9);
        assert_eq!(text_width("", 10.0), 0.0);
        for letter in "±–−×·%Ä".chars() {
            assert_ne!(glyph(letter), GlyphId(0), "{letter} is drawn");
        }
        assert!(text_width("漢", 10.0) > 0.0, "the box has a width");
    }
}
