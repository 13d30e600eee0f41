//! Comparison of two source trees on the boundaries of the document's features.
//!
//! [`python`] reads what a source handles, [`partition`] places it in modules, [`differences`] lists module by
//! module what one side has and the other lacks, [`derivation`] traces each difference to a clause.

pub mod aliases;
pub mod derivation;
pub mod differences;
pub mod partition;
pub mod python;
mod python_facts;
mod python_tools;
pub mod terms;
