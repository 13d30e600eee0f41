//! Cases as a reader sees them: told in words, compared with their controls, and looked over for what is doubtful.

pub mod difference;
pub mod lint;
pub mod markup;
pub mod sentences;
pub mod story;
