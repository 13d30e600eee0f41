//! Comparison of two source trees on the boundaries of the document's features.
//!
//! [`source`] is what is read from a tree, [`partition`] groups it by the document's features, [`attribution`] says
//! from which clause a thing follows, [`differences`] lists what one side has and the other has not or has otherwise,
//! [`readings`] which functions to read beside each other, and [`judged`] says how well that meets what people found.

pub mod aliases;
pub mod attribution;
mod bundle;
mod calls;
pub mod differences;
mod effects;
pub mod judged;
pub mod likeness;
mod limits;
pub mod partition;
mod python;
mod python_branches;
mod python_facts;
mod python_tools;
pub mod readings;
mod script;
mod script_facts;
mod search;
pub mod source;
mod syntax;
mod terms;
pub mod tokens;
mod written;
