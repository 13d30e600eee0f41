//! What lies in the folders of a case before its first launch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing of the fixture: a text, or a table for anything else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "a text, or a table with exactly one of text, base64, zeros, link, hard_link, dir, fifo, and times (up to 4294967295) or mode beside it"
)]
pub enum Entry {
    Text(String),
    Made(Made),
}

/// Exactly one of `text`, `base64`, `zeros`, `link`, `hard_link`, `dir`, `fifo`.
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
    if rest.is_empty() || rest.starts_with('/') || rest.contains('\0') || climbs {
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
            + usize::from(self.fifo);
        if n_kinds != 1 {
            return Err(
                "give exactly one of text, base64, zeros, link, hard_link, dir, fifo".to_owned(),
            );
        }
        if let Some(mode) = &self.mode
            && !u32::from_str_radix(mode, 8).is_ok_and(|bits| bits <= 0o7777)
        {
            return Err(format!("mode {mode:?} is not octal, like \"644\""));
        }
        if self.times.is_some() && self.text.is_none() && self.base64.is_none() {
            return Err("times goes with text or base64".to_owned());
        }
        Ok(())
    }
}
