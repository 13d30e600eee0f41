//! Where things of a project lie. Only `cli`, `web` and `stages` know paths.

use std::path::{Path, PathBuf};

/// A checkout of the project, or any folder laid out like it.
#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
}

impl Project {
    /// The folder itself, or the nearest one above it, that holds `pipeline/` and `data/document/`.
    pub fn find(start: &Path) -> Option<Self> {
        start
            .ancestors()
            .find(|dir| dir.join("pipeline").is_dir() && dir.join("data/document").is_dir())
            .map(|dir| Self {
                root: dir.to_path_buf(),
            })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The settings file of a stage.
    pub fn settings(&self, stage: &str) -> PathBuf {
        self.root.join("pipeline").join(format!("{stage}.toml"))
    }

    pub fn document(&self) -> PathBuf {
        self.root.join("data/document")
    }

    pub fn inventory(&self) -> PathBuf {
        self.root.join("data/inventory")
    }

    pub fn cases(&self) -> PathBuf {
        self.root.join("cases")
    }

    /// What readers said about differences of sources.
    pub fn judged_differences(&self) -> PathBuf {
        self.root.join("data/comparison-judged.jsonl")
    }

    /// Variants that wait for a reviewer, laid out like `cases/`.
    pub fn variants(&self) -> PathBuf {
        self.root.join("data/variants")
    }

    /// Drafts of models that were refused, with the reason.
    pub fn drafts(&self) -> PathBuf {
        self.root.join("data/drafts")
    }

    pub fn reviews(&self) -> PathBuf {
        self.root.join("reviews")
    }

    pub fn skeleton(&self) -> PathBuf {
        self.root.join("skeleton")
    }

    pub fn candidates(&self) -> PathBuf {
        self.root.join("candidates")
    }

    pub fn database(&self) -> PathBuf {
        self.root.join("data/db/pipeline.sqlite")
    }

    /// Collected pages and files as they came; never edited.
    pub fn raw(&self) -> PathBuf {
        self.root.join("data/raw")
    }

    pub fn runs(&self) -> PathBuf {
        self.root.join("data/runs")
    }

    /// Plans of runs on many machines.
    pub fn plans(&self) -> PathBuf {
        self.root.join("data/plans")
    }

    /// What the machines that run a plan leave.
    pub fn shards(&self) -> PathBuf {
        self.root.join("data/shards")
    }

    /// Installed copies of candidates, by digest.
    pub fn frozen(&self) -> PathBuf {
        self.root.join("data/frozen")
    }

    /// Packages of shipping harnesses, by digest of their lock files.
    pub fn packages(&self) -> PathBuf {
        self.root.join("data/packages")
    }

    pub fn builds(&self) -> PathBuf {
        self.root.join("data/builds")
    }

    /// The table of models, and what it is made of.
    pub fn leaderboard(&self) -> PathBuf {
        self.root.join("data/leaderboard")
    }

    /// A path as people should see it: below the root it is relative.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root)
            .unwrap_or(path)
            .display()
            .to_string()
    }
}
