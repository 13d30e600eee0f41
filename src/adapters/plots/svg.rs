//! A drawing as SVG.

use std::fmt::Write;

use crate::domain::drawing::{Anchor, Colour, Drawing, Mark, Point};

const FONTS: &str = "Arimo, Arial, Helvetica, 'Liberation Sans', sans-serif";

/// Lengths are points; coordinates have two decimals.
pub fn svg(drawing: &Drawing) -> String {
    let (width, height) = (number(drawing.width), number(drawing.height));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}pt\" height=\"{height}pt\" viewBox=\"0 0 {width} \
         {height}\" role=\"img\" font-family=\"{FONTS}\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" \
         fill=\"#fff\"/>\n",
        escaped(&drawing.title)
    );
    for mark in &drawing.marks {
        text += &element(mark);
        text.push('\n');
    }
    text + "</svg>\n"
}

fn element(mark: &Mark) -> String {
    match mark {
        Mark::Area { points, fill } => {
            format!(
                "<polygon points=\"{}\" fill=\"{}\"/>",
                list(points),
                hex(*fill)
            )
        }
        Mark::Line {
            points,
            width,
            stroke,
        } => format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>",
            list(points),
            hex(*stroke),
            number(*width)
        ),
        Mark::Dot { at, radius, fill } => format!(
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"/>",
            number(at.0),
            number(at.1),
            number(*radius),
            hex(*fill)
        ),
        Mark::Text {
            at,
            size,
            anchor,
            upward,
            fill,
            text,
        } => {
            let (x, y) = (number(at.0), number(at.1));
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let turned = if *upward {
                format!(" transform=\"rotate(-90 {x} {y})\"")
            } else {
                String::new()
            };
            format!(
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" text-anchor=\"{anchor}\" fill=\"{}\"{turned}>{}</text>",
                number(*size),
                hex(*fill),
                escaped(text)
            )
        }
    }
}

fn list(points: &[Point]) -> String {
    let points = points
        .iter()
        .map(|(x, y)| format!("{},{}", number(*x), number(*y)));
    points.collect::<Vec<_>>().join(" ")
}

/// Without zeros at the end, and without a minus before a zero.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

fn hex(Colour(red, green, blue): Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Also without control characters, which XML does not know.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            _ if letter.is_control() => {
                write!(escaped, "\\u{{{:x}}}", u32::from(letter)).expect("a string takes all");
            }
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_strangers_stays_text() {
        let drawing = Drawing {
            width: 100.0,
            height: 50.5,
            title: "a < b".to_owned(),
            marks: vec![
                Mark::Text {
                    at: (1.0, 2.345),
                    size: 7.0,
                    anchor: Anchor::End,
                    upward: true,
                    fill: Colour(0, 128, 255),
                    text: "<script>\x1b&".to_owned(),
                },
                Mark::Dot {
                    at: (-0.001, 3.0),
                    radius: 1.5,
                    fill: Colour(1, 2, 3),
                },
            ],
        };
        let text = svg(&drawing);
        assert!(text.contains("height=\"50.5pt\""), "{text}");
        assert!(text.contains("<title>a &lt; b</title>"), "{text}");
        assert!(
            text.contains(">&lt;script&gt;\\u{1b}&amp;</text>"),
            "{text}"
        );
        assert!(text.contains("rotate(-90 1 2.35)") || text.contains("rotate(-90 1 2.34)"));
        assert!(text.contains("<circle cx=\"0\" cy=\"3\" r=\"1.5\" fill=\"#010203\"/>"));
    }
}
