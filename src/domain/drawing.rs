//! A drawing for print: shapes and lines of text, placed in points (1/72 inch) from the upper left corner.

#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    pub width: f64,
    pub height: f64,
    /// What it shows, for readers who do not see it.
    pub title: String,
    /// Later ones lie on earlier ones.
    pub marks: Vec<Mark>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// A closed polygon.
    Area { points: Vec<Point>, fill: Colour },
    Line {
        points: Vec<Point>,
        width: f64,
        stroke: Colour,
    },
    Dot {
        at: Point,
        radius: f64,
        fill: Colour,
    },
    Text {
        at: Point,
        size: f64,
        anchor: Anchor,
        /// Reads upward, turned by a quarter to the left.
        upward: bool,
        fill: Colour,
        text: String,
    },
}

/// x to the right, y downward.
pub type Point = (f64, f64);

/// Which end of a line of text is at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// Red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);
