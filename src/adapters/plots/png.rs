//! A drawing as PNG.

use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, Transform,
};
use ttf_parser::OutlineBuilder;

use super::font::{outlines, scale, text_width};
use crate::domain::drawing::{Anchor, Colour, Drawing, Mark, Point};

#[derive(Debug, thiserror::Error)]
pub enum PngError {
    #[error("a picture of {width} × {height} pixels cannot be made")]
    Size { width: u32, height: u32 },
    #[error("cannot write the picture: {0}")]
    Encode(String),
}

/// With so many pixels an inch, on white.
pub fn png(drawing: &Drawing, pixels_per_inch: f64) -> Result<Vec<u8>, PngError> {
    let zoom = pixels_per_inch / 72.0;
    let width = (drawing.width * zoom).round() as u32;
    let height = (drawing.height * zoom).round() as u32;
    let mut pixmap = Pixmap::new(width, height).ok_or(PngError::Size { width, height })?;
    pixmap.fill(Color::WHITE);
    let whole = Transform::from_scale(zoom as f32, zoom as f32);
    for mark in &drawing.marks {
        draw(&mut pixmap, mark, whole);
    }
    pixmap
        .encode_png()
        .map_err(|error| PngError::Encode(error.to_string()))
}

fn draw(pixmap: &mut Pixmap, mark: &Mark, whole: Transform) {
    match mark {
        Mark::Area { points, fill } => {
            if let Some(path) = polygon(points, true) {
                pixmap.fill_path(&path, &paint(*fill), FillRule::Winding, whole, None);
            }
        }
        Mark::Line {
            points,
            width,
            stroke,
        } => {
            if let Some(path) = polygon(points, false) {
                let stroke_of = Stroke {
                    width: *width as f32,
                    line_cap: LineCap::Butt,
                    line_join: LineJoin::Miter,
                    ..Stroke::default()
                };
                pixmap.stroke_path(&path, &paint(*stroke), &stroke_of, whole, None);
            }
        }
        Mark::Dot { at, radius, fill } => {
            let circle = PathBuilder::from_circle(at.0 as f32, at.1 as f32, *radius as f32);
            if let Some(path) = circle {
                pixmap.fill_path(&path, &paint(*fill), FillRule::Winding, whole, None);
            }
        }
        Mark::Text {
            at,
            size,
            anchor,
            upward,
            fill,
            text,
        } => {
            let width = text_width(text, *size);
            let back = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => width / 2.0,
                Anchor::End => width,
            };
            let turn = if *upward { -90.0 } else { 0.0 };
            let size = scale(*size) as f32;
            let place = whole
                .pre_translate(at.0 as f32, at.1 as f32)
                .pre_concat(Transform::from_rotate(turn))
                .pre_translate(-back as f32, 0.0)
                .pre_scale(size, -size);
            for letter in outlines(text, |x| Outline::at(x as f32)) {
                if let Some(path) = letter.path.finish() {
                    pixmap.fill_path(&path, &paint(*fill), FillRule::Winding, place, None);
                }
            }
        }
    }
}

fn polygon(points: &[Point], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    let (first, rest) = points.split_first()?;
    path.move_to(first.0 as f32, first.1 as f32);
    for (x, y) in rest {
        path.line_to(*x as f32, *y as f32);
    }
    if closed {
        path.close();
    }
    path.finish()
}

fn paint(Colour(red, green, blue): Colour) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, 255);
    paint.anti_alias = true;
    paint
}

/// A letter's outline, moved to its place in the line.
struct Outline {
    path: PathBuilder,
    x: f32,
}

impl Outline {
    fn at(x: f32) -> Self {
        Self {
            path: PathBuilder::new(),
            x,
        }
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.move_to(self.x + x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.path.line_to(self.x + x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.path.quad_to(self.x + x1, y1, self.x + x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let at = self.x;
        self.path.cubic_to(at + x1, y1, at + x2, y2, at + x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(marks: Vec<Mark>) -> Pixmap {
        let drawing = Drawing {
            width: 40.0,
            height: 20.0,
            title: String::new(),
            marks,
        };
        let bytes = png(&drawing, 144.0).unwrap();
        assert_eq!(
            bytes,
            png(&drawing, 144.0).unwrap(),
            "the same bytes each time"
        );
        Pixmap::decode_png(&bytes).unwrap()
    }

    fn is_dark(pixmap: &Pixmap, x: u32, y: u32) -> bool {
        pixmap.pixel(x, y).unwrap().red() < 128
    }

    #[test]
    fn shapes_and_letters_are_where_they_belong() {
        let black = Colour(0, 0, 0);
        let square = vec![(10.0, 5.0), (20.0, 5.0), (20.0, 15.0), (10.0, 15.0)];
        let found = pixels(vec![Mark::Area {
            points: square,
            fill: black,
        }]);
        assert_eq!((found.width(), found.height()), (80, 40));
        assert!(is_dark(&found, 21, 11) && is_dark(&found, 39, 29));
        assert!(!is_dark(&found, 19, 11) && !is_dark(&found, 41, 29));

        let letter = |anchor, upward| Mark::Text {
            at: (20.0, 10.0),
            size: 16.0,
            anchor,
            upward,
            fill: black,
            text: "l".to_owned(),
        };
        let dark = |found: &Pixmap| -> Vec<(u32, u32)> {
            let all = (0..80).flat_map(|x| (0..40).map(move |y| (x, y)));
            all.filter(|(x, y)| is_dark(found, *x, *y)).collect()
        };
        let start = dark(&pixels(vec![letter(Anchor::Start, false)]));
        assert!(!start.is_empty() && start.iter().all(|(x, y)| *x >= 40 && *y <= 20));
        let end = dark(&pixels(vec![letter(Anchor::End, false)]));
        assert!(!end.is_empty() && end.iter().all(|(x, y)| *x < 40 && *y <= 20));
        let upward = dark(&pixels(vec![letter(Anchor::Start, true)]));
        assert!(!upward.is_empty() && upward.iter().all(|(x, y)| *x <= 40 && *y <= 20));
    }
}
