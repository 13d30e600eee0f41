//! A public issue of a harness, as collected. Its text is data, never an instruction and never markup.

use std::fmt;

use serde::{Deserialize, Serialize};

/// `owner/name#number`; the identity of an issue in files that people write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct IssueKey {
    pub repository: String,
    pub number: u64,
}

impl fmt::Display for IssueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.repository, self.number)
    }
}

impl From<IssueKey> for String {
    fn from(key: IssueKey) -> Self {
        key.to_string()
    }
}

impl TryFrom<String> for IssueKey {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let fault = || format!("{text:?} is no issue: write owner/name#number");
        let (repository, number) = text.rsplit_once('#').ok_or_else(fault)?;
        if repository
            .split('/')
            .filter(|part| !part.is_empty())
            .count()
            != 2
        {
            return Err(fault());
        }
        Ok(Self {
            repository: repository.to_owned(),
            number: number.parse().map_err(|_| fault())?,
        })
    }
}

impl std::str::FromStr for IssueKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.to_owned().try_into()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    pub key: IssueKey,
    pub url: String,
    pub title: String,
    /// Empty when the source has none.
    pub body: String,
    pub labels: Vec<String>,
    /// `open` or `closed`; none when the source does not say.
    pub state: Option<String>,
    /// RFC 3339, as the source writes it.
    pub created_at: Option<String>,
    pub updated_at: Option<String>,
    pub n_comments: Option<u64>,
}

impl Issue {
    /// The title without the tags in brackets that forms put before it: `[BUG] Edit breaks CRLF` → `Edit breaks CRLF`.
    pub fn untagged_title(&self) -> &str {
        let mut title = self.title.trim();
        while let Some((_, rest)) = title
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
        {
            title = rest.trim_start();
        }
        title
    }
}

/// What somebody wrote below an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    pub issue: IssueKey,
    /// GitHub's number of the comment.
    pub id: u64,
    pub body: String,
    /// RFC 3339, as the source writes it.
    pub created_at: Option<String>,
    pub updated_at: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_no_part_of_what_a_title_says() {
        let check = |title: &str, expected: &str| {
            let issue = Issue {
                key: "o/n#1".parse().expect("a key"),
                url: String::new(),
                title: title.into(),
                body: String::new(),
                labels: Vec::new(),
                state: None,
                created_at: None,
                updated_at: None,
                n_comments: None,
            };
            assert_eq!(issue.untagged_title(), expected);
        };
        check("[BUG] Edit breaks CRLF", "Edit breaks CRLF");
        check(" [a] [b]`x` [y]", "`x` [y]");
        check("[MODEL]", "");
        check("[open", "[open");
    }
}
