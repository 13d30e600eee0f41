//! What a line of an issue is, told from its text: a frame of a stack trace, a line of a log, a row of a table of
//! versions, or none of these.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// Where, not what. The message of an error is no frame.
    Trace,
    /// A moment or a level below that of an error comes first. Lines of errors stand where they stand: people search
    /// for them.
    Log,
    /// A program or system with its version.
    Version,
    Other,
}

impl LineKind {
    pub fn of(line: &str) -> Self {
        let line = line.trim();
        if is_frame(line) {
            Self::Trace
        } else if is_log(line) {
            Self::Log
        } else if is_version(line) {
            Self::Version
        } else {
            Self::Other
        }
    }
}

/// A frame of a stack trace of JavaScript, Java, Python, Go or Rust, or the line that opens one.
fn is_frame(line: &str) -> bool {
    let numbered = |rest: &str| {
        rest.rsplit(':')
            .next()
            .is_some_and(|end| end.trim_end_matches(')').parse::<u32>().is_ok())
    };
    if let Some(rest) = line.strip_prefix("at ") {
        return numbered(rest) || rest.ends_with(')');
    }
    if let Some(rest) = line.strip_prefix("File \"") {
        return rest.contains("\", line ");
    }
    let opens = [
        "Traceback (most recent call last)",
        "stack backtrace:",
        "Stack trace:",
    ]
    .iter()
    .any(|start| line.starts_with(start))
        || (line.starts_with("goroutine ") && line.ends_with(':'));
    let is_go = line.starts_with('/') && line.contains(".go:");
    let is_rust = line
        .split_once(": ")
        .is_some_and(|(n, rest)| n.parse::<u32>().is_ok() && rest.starts_with("0x"));
    opens || is_go || is_rust
}

fn is_log(line: &str) -> bool {
    const LEVELS: [&str; 8] = [
        "TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "VERBOSE", "LOG",
    ];
    let Some((first, rest)) = line.split_once(char::is_whitespace) else {
        return false;
    };
    let first = first.trim_matches(['[', ']', '(', ')', ':', '|']);
    !rest.trim().is_empty() && (LEVELS.contains(&first) || is_moment(first))
}

/// `2025-10-01T12:30:00.123Z`, `2025-10-01` or `12:30:00`.
fn is_moment(word: &str) -> bool {
    let shape: String = word
        .chars()
        .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
        .collect();
    shape.starts_with("0000-00-00")
        || shape.starts_with("0000/00/00")
        || shape.starts_with("00:00:00")
}

/// `Node: v20.1`, `- **OS**: macOS 15`, `| Claude Code | 2.0.37 |`.
fn is_version(line: &str) -> bool {
    let cells: Vec<&str> = match line.strip_prefix('|') {
        Some(row) => row.trim_end_matches('|').split('|').collect(),
        None => line.splitn(2, [':', '：']).collect(),
    };
    let [label, value] = cells[..] else {
        return false;
    };
    let plain = |text: &str| text.replace(['*', '`', '_'], " ").trim().to_lowercase();
    let label = plain(label.trim_start_matches(['-', ' ']));
    let value = plain(value);
    let n_words = |text: &str| text.split_whitespace().count();
    if !(1..=4).contains(&n_words(&label)) || !(1..=6).contains(&n_words(&value)) {
        return false;
    }
    let is_named = label
        .split_whitespace()
        .any(|word| WHAT_HAS_A_VERSION.contains(&word))
        || label == "operating system";
    let starts_with_version = value
        .split_whitespace()
        .next()
        .is_some_and(is_version_number);
    is_named || (starts_with_version && n_words(&value) <= 2)
}

/// At least two numbers: `v1.2`, `20.1.0-rc.1`, `v1.2.3,`.
fn is_version_number(word: &str) -> bool {
    let mut parts = word.trim_start_matches('v').split('.');
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    parts.next().is_some_and(is_number)
        && parts
            .next()
            .is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()))
}

/// Labels of the forms of harnesses, in lower case.
const WHAT_HAS_A_VERSION: &[&str] = &[
    "os",
    "platform",
    "version",
    "versions",
    "terminal",
    "shell",
    "node",
    "node.js",
    "npm",
    "bun",
    "python",
    "arch",
    "architecture",
    "kernel",
    "browser",
    "版本",
    "系统",
    "バージョン",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_known_by_their_text() {
        let check =
            |line: &str, expected: LineKind| assert_eq!(LineKind::of(line), expected, "{line}");
        for line in [
            "    at f (/a/b.js:1:2)",
            "at com.a.B.c(B.java:12)",
            "File \"/a.py\", line 3, in g",
            "  4: 0x55 - main",
            "/usr/lib/go/x.go:12 +0x1",
            "Traceback (most recent call last):",
            "goroutine 1 [running]:",
        ] {
            check(line, LineKind::Trace);
        }
        for line in [
            "2025-10-01T12:30:00.123Z starting",
            "[12:30:00] read file",
            "[DEBUG] hooks loaded",
            "WARN: no settings",
        ] {
            check(line, LineKind::Log);
        }
        for line in [
            "Node: v20.1",
            "- **OS**: macOS 15",
            "| Claude Code | 2.0.37 |",
            "CLI Version: 0.1.7",
            "版本：1.2",
            "ripgrep: 14.1.0",
        ] {
            check(line, LineKind::Version);
        }
        for line in [
            "at noon it fails: 3 times",
            "TypeError: x is not a function",
            "ERROR deny rule was not applied",
            "Expected: the edit is refused",
            "Ratio: 2.5 of all the calls",
            "INFO",
            "| a | b | c |",
            "",
        ] {
            check(line, LineKind::Other);
        }
    }
}
