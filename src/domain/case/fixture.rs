//! What lies in the folders of a case before its first launch.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::git::Git;

/// Bytes of one file of a fixture; holes count too.
const LIMIT_BYTES: u64 = 256 << 20;

/// One thing of the fixture: a text, or a table for anything else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "a text, or a table with exactly one of text, base64, zeros, link, hard_link, dir, fifo, git, and times (up to 4294967295) or mode beside it"
)]
pub enum Entry {
    Text(String),
    Made(Made),
}

/// Exactly one of `text`, `base64`, `zeros`, `link`, `hard_link`, `dir`, `fifo`, `git`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Made {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Bytes that are no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// A file of so many NUL bytes, made as a hole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zeros: Option<u64>,
    /// `text` or `base64` is written so many times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// The target of a symbolic link, as written into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// A path of the fixture that this is another name of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard_link: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dir: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fifo: bool,
    /// A folder that is a repository with history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<Git>,
    /// Octal permission bits, for example `"755"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

/// A fixture path is relative to the workspace or opens with a place; it never climbs.
pub fn check_fixture_path(path: &str) -> Result<(), String> {
    let rest = ["{outside}/", "{home}/", "{state}/", "{workspace}/"]
        .iter()
        .find_map(|place| path.strip_prefix(place))
        .unwrap_or(path);
    let climbs = rest.split('/').any(|part| part == ".." || part == ".");
    let is_place = ["{outside}", "{home}", "{state}", "{workspace}"].contains(&rest);
    if rest.is_empty() || is_place || rest.starts_with('/') || rest.contains('\0') || climbs {
        Err(format!(
            "fixture path {path:?} leaves its place: write it relative, without `..`"
        ))
    } else {
        Ok(())
    }
}

impl Made {
    pub(super) fn check(&self) -> Result<(), String> {
        let n_kinds = usize::from(self.text.is_some())
            + usize::from(self.base64.is_some())
            + usize::from(self.zeros.is_some())
            + usize::from(self.link.is_some())
            + usize::from(self.hard_link.is_some())
            + usize::from(self.dir)
            + usize::from(self.fifo)
            + usize::from(self.git.is_some());
        if n_kinds != 1 {
            return Err(
                "give exactly one of text, base64, zeros, link, hard_link, dir, fifo, git"
                    .to_owned(),
            );
        }
        if let Some(mode) = &self.mode
            && !u32::from_str_radix(mode, 8).is_ok_and(|bits| bits <= 0o7777)
        {
            return Err(format!("mode {mode:?} is not octal, like \"644\""));
        }
        if let Some(git) = &self.git {
            git.check()?;
            if self.mode.is_some() {
                return Err("mode does not go with git".to_owned());
            }
        }
        if self.times.is_some() && self.text.is_none() && self.base64.is_none() {
            return Err("times goes with text or base64".to_owned());
        }
        let n_once = match (&self.text, &self.base64) {
            (Some(text), _) => text.len(),
            (None, Some(coded)) => STANDARD
                .decode(coded)
                .map_err(|_| "it is no base64".to_owned())?
                .len(),
            (None, None) => 0,
        };
        let n_bytes = (n_once as u64).saturating_mul(self.times.unwrap_or(1).into());
        if n_bytes > LIMIT_BYTES || self.zeros.is_some_and(|n| n > LIMIT_BYTES) {
            return Err(format!(
                "a file of a fixture has at most {LIMIT_BYTES} bytes"
            ));
        }
        Ok(())
    }
}

/// Entries that cannot lie beside each other, and other names of nothing, as path and message.
pub(super) fn conflicts(fixture: &BTreeMap<String, Entry>) -> Vec<(&String, String)> {
    let is_folder =
        |entry: &Entry| matches!(entry, Entry::Made(made) if made.dir || made.git.is_some());
    let mut found = Vec::new();
    for (path, entry) in fixture {
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        for folder in above {
            if fixture.get(folder).is_some_and(|entry| !is_folder(entry)) {
                found.push((path, format!("{folder:?} is no folder of the fixture")));
            }
        }
        if let Entry::Made(Made {
            hard_link: Some(other),
            ..
        }) = entry
            && !fixture.get(other).is_some_and(Entry::is_file)
        {
            found.push((path, format!("{other:?} is no file of the fixture")));
        }
    }
    found
}

impl Entry {
    fn is_file(&self) -> bool {
        match self {
            Self::Text(_) => true,
            Self::Made(made) => {
                made.text.is_some() || made.base64.is_some() || made.zeros.is_some()
            }
        }
    }
}
