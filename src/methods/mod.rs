//! Pure calculation: the random generator, the seed and the time are arguments.

pub mod analysis;
pub mod asking;
pub mod certificate;
pub mod cluster_naming;
pub mod cluster_quality;
pub mod clustering;
pub mod comparison;
pub mod contract;
pub mod document_check;
pub mod document_coverage;
pub mod document_render;
pub mod expansion;
pub mod filtering;
pub mod issue_form;
pub mod issue_vectors;
pub mod judge;
pub mod ranking_quality;
pub mod relevance;
pub mod report;
pub mod statistics;
pub mod suite_check;
pub mod summary;
pub mod text;
pub mod timeline;
pub mod topics;
pub mod yields;
