//! An adapter: a candidate that puts a shipping harness behind the contract's entry. Its `adapter.toml` says which
//! harness that is, which packages it needs, and what of the contract it can express.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::case::{Category, Fault, Route};

/// The file at the root of the candidate's tree that makes it an adapter.
pub const ADAPTER_FILE: &str = "adapter.toml";

/// `adapter.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adapter {
    /// As its makers call it.
    pub harness: String,
    pub version: String,
    /// Where its packages come from; none for a harness that lies in the tree itself.
    #[serde(default)]
    pub packages: Option<Packages>,
    pub categories: Vec<Category>,
    pub routes: Vec<Route>,
    /// Flags of the contract that its entry obeys, and the values that it can do: none for a flag without a value,
    /// `*` for any. Without `--permission-mode` here only reading tools are asked for.
    #[serde(default)]
    pub flags: BTreeMap<String, Vec<String>>,
    /// Variables `HARNESS_*` that a case may set.
    #[serde(default)]
    pub env: Vec<String>,
    /// Files of the contract that it reads: `AGENTS.md` (in any folder), `.harness/settings.json`.
    #[serde(default)]
    pub files: Vec<String>,
    /// Keys of settings that it obeys, with points between levels: `permissions.deny`.
    #[serde(default)]
    pub settings: Vec<String>,
    /// Faults of the model that it meets within the time limit.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// Its protocol carries arguments as objects: broken ones cannot be sent.
    #[serde(default)]
    pub whole_arguments: bool,
    /// The contract's tools by name.
    #[serde(default)]
    pub tools: BTreeMap<String, ToolForm>,
    /// How the model ends a turn, for a harness that wants a call for it.
    #[serde(default)]
    pub say: Option<SayForm>,
    /// Cases and clauses that it is not asked about for another reason: an id, or a beginning with a final `*`, and why.
    #[serde(default)]
    pub leave_out: BTreeMap<String, String>,
    #[serde(default)]
    pub limits: AdapterLimits,
}

/// A registry's client, and the lock files beside `adapter.toml` that it installs from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Packages {
    /// `package.json` and `package-lock.json`, with integrity hashes.
    Npm,
    /// `requirements.txt` with the hashes of every package, for this version of Python: `3.11`.
    Pip { python: String },
}

/// A tool of the harness that does what a tool of the contract does.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolForm {
    pub name: String,
    /// The contract's arguments and what they are called here; a call with any other cannot be expressed.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
    /// Arguments of the contract that are sent as absolute paths.
    #[serde(default)]
    pub absolute: Vec<String>,
    /// Numbers are multiplied: seconds into milliseconds.
    #[serde(default)]
    pub times: BTreeMap<String, i64>,
    /// Numbers are added to: a harness may count lines from 0.
    #[serde(default)]
    pub plus: BTreeMap<String, i64>,
    /// Arguments with a value of their own, unless the call gives one.
    #[serde(default)]
    pub constants: BTreeMap<String, Value>,
}

/// A call that says something; `{say}` stands for the text.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SayForm {
    pub call: String,
    pub with: BTreeMap<String, String>,
}

/// What a cell of this harness needs beyond `pipeline/evaluate.toml`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdapterLimits {
    #[serde(default)]
    pub memory_mib: Option<u64>,
    #[serde(default)]
    pub pids: Option<u64>,
    #[serde(default)]
    pub tmp_mib: Option<u64>,
    /// A launch has at least so long, whatever its case says.
    #[serde(default)]
    pub time_limit_s: Option<u32>,
}

impl Packages {
    /// The lock files, in the order in which they are digested.
    pub fn files(&self) -> &'static [&'static str] {
        match self {
            Self::Npm => &["package.json", "package-lock.json"],
            Self::Pip { .. } => &["requirements.txt"],
        }
    }
}
