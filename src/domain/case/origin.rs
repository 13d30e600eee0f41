//! Where a case came from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which method found the case, and from what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    pub method: Method,
    /// The phenomenon that people reported, for `issues`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phenomenon: Option<String>,
    /// `owner/name#number` of issues, or `package@version:path:line` of source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The seed's case id, for `expansion`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
    /// The one variable that was changed, for `expansion`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<Variable>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    Issues,
    Comparison,
    Expansion,
    /// Written from the document alone.
    Document,
}

/// The four variables of single-variable expansion.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Variable {
    Tool,
    InputForm,
    ErroneousParameter,
    ReturnSite,
}

impl Variable {
    pub const ALL: [Self; 4] = [
        Self::Tool,
        Self::InputForm,
        Self::ErroneousParameter,
        Self::ReturnSite,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::InputForm => "input-form",
            Self::ErroneousParameter => "erroneous-parameter",
            Self::ReturnSite => "return-site",
        }
    }
}
