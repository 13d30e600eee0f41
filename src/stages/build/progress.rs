//! How far the builds are that run side by side: one line of all of them, and notes that say whose they are.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::stages::Context;

/// All builds of this process, by name.
#[derive(Default)]
pub struct Lines {
    shown: Mutex<BTreeMap<String, String>>,
}

/// One of them.
pub struct Line<'a> {
    pub context: &'a Context,
    pub lines: &'a Lines,
    pub name: String,
}

impl Line<'_> {
    pub fn note(&self, text: &str) {
        self.context
            .progress
            .note(&format!("{}: {text}", self.name));
    }

    /// What the build does just now.
    pub fn show(&self, text: &str) {
        self.change(|shown| {
            shown.insert(self.name.clone(), text.to_owned());
        });
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, String>)) {
        let mut shown = self
            .lines
            .shown
            .lock()
            .expect("no holder of this lock panics");
        change(&mut shown);
        let all: Vec<String> = shown
            .iter()
            .map(|(name, text)| format!("{name}: {text}"))
            .collect();
        self.context.progress.detail(&all.join(" · "));
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.change(|shown| {
            shown.remove(&self.name);
        });
    }
}
