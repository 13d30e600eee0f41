//! Rows and files turned into domain types and back. The database can be deleted: it is rebuilt from
//! `data/raw/`, `reviews/` and `cases/`.

pub mod builds;
pub mod candidates;
pub mod certificate;
pub mod clusters;
pub mod comments;
pub mod csv_table;
pub mod database;
pub mod differences;
pub mod documents;
pub mod drafts;
pub mod github_passes;
pub mod inventory;
pub mod issue_files;
pub mod issues;
pub mod judged;
pub mod judged_differences;
pub mod migrations;
pub mod plans;
pub mod ranking;
pub mod raw_pages;
pub mod reviews;
pub mod runs;
pub mod samples;
pub mod settings;
pub mod shards;
pub mod source_facts;
pub mod source_tree;
pub mod stage_log;
pub mod suite;
pub mod variants;
pub mod verdict_table;
pub mod vocabulary;
