//! Where results go: JSON for programs on stdout, or words for people.

use std::io::Write;

use serde::Serialize;
use serde_json::json;

use crate::stages::{Failure, Result};

pub struct Output {
    json: bool,
}

impl Output {
    pub(super) fn new(json: bool) -> Self {
        Self { json }
    }

    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints `summary` as JSON when asked, else what `words` makes of it. Data: it goes to stdout.
    pub fn result<T: Serialize>(
        &self,
        summary: &T,
        words: impl FnOnce(&T) -> String,
    ) -> Result<()> {
        let text = if self.json {
            serde_json::to_string_pretty(summary)?
        } else {
            words(summary)
        };
        print(&text)
    }

    pub(super) fn failure(&self, word: &str, message: &str, hints: &[String]) {
        if self.json {
            let value = json!({ "error": { "kind": word, "message": message, "hints": hints } });
            // Stderr says it too, for whoever cannot be told here.
            let _ = print(&format!("{value:#}"));
        }
        let mut stderr = anstream::stderr().lock();
        let red = anstyle::AnsiColor::Red.on_default().bold();
        // Nobody is left to tell when stderr is closed.
        let _ = writeln!(stderr, "{red}error{red:#}: {message}");
        for hint in hints {
            let _ = writeln!(stderr, "  try: {hint}");
        }
    }
}

/// Prints data on stdout, with one newline at its end. A reader who has gone is no fault.
pub fn print(text: &str) -> Result<()> {
    let mut stdout = anstream::stdout().lock();
    match writeln!(stdout, "{}", text.trim_end()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::environment(
            format!("cannot write to standard output: {error}"),
        )),
        _ => Ok(()),
    }
}

/// A table for people: no borders, two blanks between columns.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table
        .load_preset(comfy_table::presets::NOTHING)
        .set_header(header.to_vec());
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}
