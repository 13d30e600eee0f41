//! What a case is called and where it belongs.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The path of a case below `cases/` without `.toml`, with `/` between its parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CaseId(String);

impl CaseId {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part; controls are named by it.
    pub fn name(&self) -> &str {
        self.0
            .rsplit('/')
            .next()
            .expect("rsplit yields at least one part")
    }
}

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    Permissions,
    FileOperations,
    SessionState,
    Headless,
    DirectDrive,
    InteractiveTerminal,
    ArtifactChecks,
    Startup,
    ExtensionDiscovery,
}

impl Category {
    pub const ALL: [Self; 9] = [
        Self::Permissions,
        Self::FileOperations,
        Self::SessionState,
        Self::Headless,
        Self::DirectDrive,
        Self::InteractiveTerminal,
        Self::ArtifactChecks,
        Self::Startup,
        Self::ExtensionDiscovery,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permissions => "permissions",
            Self::FileOperations => "file-operations",
            Self::SessionState => "session-state",
            Self::Headless => "headless",
            Self::DirectDrive => "direct-drive",
            Self::InteractiveTerminal => "interactive-terminal",
            Self::ArtifactChecks => "artifact-checks",
            Self::Startup => "startup",
            Self::ExtensionDiscovery => "extension-discovery",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What kind of vacuous pass a control unmasks.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ControlClass {
    /// The tool's result does reach the channel.
    Channel,
    /// The same input works through a route that the clause does not constrain.
    SameForm,
    /// The same form of input works when its target is allowed.
    Reverse,
}
