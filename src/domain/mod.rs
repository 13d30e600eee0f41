//! Nouns and their invariants: no I/O, no clock; nothing fails but parsing.

pub mod adapter;
pub mod candidate;
pub mod case;
pub mod certificate;
pub mod chat;
pub mod clause;
pub mod decision;
pub mod difference;
pub mod digest;
pub mod document;
pub mod draft;
pub mod drawing;
pub mod evidence;
pub mod expect;
pub mod inventory;
pub mod issue;
pub mod mining;
pub mod place;
pub mod results;
pub mod secret;
pub mod shard;
pub mod source_facts;
pub mod suite;
pub mod verdict;
pub mod visible;
pub mod vocabulary;
