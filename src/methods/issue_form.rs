//! Issues out of the JSON that sources give: GitHub's REST objects, and rows of `gh issue list --json`.
//!
//! The text of an issue is copied and never interpreted.

use serde_json::Value;

use crate::domain::issue::{Issue, IssueKey};

/// What a row of a source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    Issue(Box<Issue>),
    /// GitHub lists pull requests among issues; they are counted and left out.
    PullRequest(IssueKey),
}

/// Reads one object. `repository` is that of rows which do not name theirs.
///
/// The error says what is wrong with which field.
pub fn row(value: &Value, repository: Option<&str>) -> Result<Row, String> {
    let Value::Object(object) = value else {
        return Err("not a JSON object".to_owned());
    };
    let field = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| object.get(*name).filter(|value| !value.is_null()))
    };
    let text = |names: &[&str]| match field(names) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{} is no text", names[0])),
    };
    let number = match field(&["number"]) {
        None => return Err("number is missing".to_owned()),
        Some(value) => value
            .as_u64()
            .filter(|number| *number > 0 && i64::try_from(*number).is_ok())
            .ok_or_else(|| format!("number is {value}, not a positive integer"))?,
    };
    let link = text(&["html_url"])?.or(text(&["url"])?);
    let own = own_repository(object, link.as_deref())?;
    let repository = own
        .as_deref()
        .or(repository)
        .ok_or("names no repository: repository, repository_url or html_url")?;
    let key = IssueKey {
        repository: repository.to_owned(),
        number,
    };
    let is_pull_link = |link: &String| link.contains(&format!("/pull/{number}"));
    if field(&["pull_request"]).is_some() || link.as_ref().is_some_and(is_pull_link) {
        return Ok(Row::PullRequest(key));
    }
    let n_comments = match field(&["comments"]) {
        None => None,
        Some(Value::Array(comments)) => Some(comments.len() as u64),
        Some(value) => Some(
            value
                .as_u64()
                .ok_or("comments is neither a number nor a list")?,
        ),
    };
    let url = link
        .filter(|link| is_web_address(link) && link.contains("/issues/"))
        .unwrap_or_else(|| format!("https://github.com/{repository}/issues/{number}"));
    Ok(Row::Issue(Box::new(Issue {
        url,
        title: text(&["title"])?.ok_or("title is missing")?,
        body: text(&["body"])?.unwrap_or_default(),
        labels: labels(field(&["labels"]))?,
        state: text(&["state"])?.map(|state| state.to_lowercase()),
        created_at: text(&["created_at", "createdAt"])?,
        updated_at: text(&["updated_at", "updatedAt"])?,
        n_comments,
        key,
    })))
}

/// The repository that a row itself names, from the plainest field to the least.
fn own_repository(
    object: &serde_json::Map<String, Value>,
    link: Option<&str>,
) -> Result<Option<String>, String> {
    let named = match object.get("repository") {
        Some(Value::String(name)) => Some(name.clone()),
        Some(Value::Object(repository)) => ["full_name", "nameWithOwner"]
            .iter()
            .find_map(|key| repository.get(*key)?.as_str().map(str::to_owned)),
        _ => None,
    };
    let from_link = || {
        let api = object.get("repository_url").and_then(Value::as_str);
        let rest = match api {
            Some(url) => url.split_once("/repos/").map(|(_, rest)| rest),
            None => link.and_then(|url| url.split_once("://")?.1.split_once('/').map(|at| at.1)),
        }?;
        let rest = rest.strip_prefix("repos/").unwrap_or(rest);
        let mut parts = rest.split('/');
        Some(format!("{}/{}", parts.next()?, parts.next()?))
    };
    let Some(name) = named.or_else(from_link) else {
        return Ok(None);
    };
    if is_repository(&name) {
        Ok(Some(name))
    } else {
        Err(format!("repository {name:?} is not owner/name"))
    }
}

/// `owner/name`, in the letters that GitHub allows.
fn is_repository(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    name.split_once('/')
        .is_some_and(|(owner, rest)| is_part(owner) && is_part(rest))
}

/// An address for people that can be shown as a link.
fn is_web_address(link: &str) -> bool {
    let after_scheme = ["https://", "http://"]
        .iter()
        .find_map(|scheme| link.strip_prefix(scheme));
    after_scheme.is_some_and(|rest| {
        !rest.starts_with("api.")
            && rest
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'"')
    })
}

fn labels(value: Option<&Value>) -> Result<Vec<String>, String> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    value
        .as_array()
        .ok_or("labels is no list")?
        .iter()
        .map(|label| {
            label
                .as_str()
                .or_else(|| label.get("name")?.as_str())
                .map(str::to_owned)
                .ok_or_else(|| "a label has no name".to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_forms_give_the_same_issue() {
        let rest = json!({
            "number": 7, "title": "T", "body": "B", "state": "open", "comments": 2, "user": null,
            "labels": [{"name": "bug"}], "created_at": "2026-01-01T00:00:00Z",
            "html_url": "https://github.com/o/n/issues/7",
            "repository_url": "https://api.github.com/repos/o/n",
        });
        let gh = json!({
            "number": 7, "title": "T", "body": "B", "state": "OPEN", "comments": [{}, {}],
            "labels": [{"name": "bug"}], "createdAt": "2026-01-01T00:00:00Z", "author": null,
        });
        let from_rest = row(&rest, None).expect("reads");
        assert_eq!(from_rest, row(&gh, Some("o/n")).expect("reads"));
        let Row::Issue(issue) = from_rest else {
            panic!("an issue")
        };
        assert_eq!(issue.key.to_string(), "o/n#7");
        assert_eq!(issue.n_comments, Some(2));
    }

    #[test]
    fn pull_requests_are_told_apart() {
        let check = |more: Value, pull: bool| {
            let mut value = json!({"number": 7, "title": "T", "repository": "o/n"});
            let object = value.as_object_mut().expect("an object");
            object.extend(more.as_object().expect("an object").clone());
            let found = row(&value, None).expect("reads");
            assert_eq!(matches!(found, Row::PullRequest(_)), pull, "{value}");
        };
        check(json!({"pull_request": {"url": "x"}}), true);
        check(json!({"pull_request": null}), false);
        check(json!({"url": "https://github.com/o/n/pull/7"}), true);
        check(
            json!({"html_url": "https://github.com/o/n/issues/7"}),
            false,
        );
    }

    #[test]
    fn a_broken_row_is_named_by_its_field() {
        let check = |value: Value, expected: &str| {
            let message = row(&value, None).expect_err("must fail");
            assert!(message.contains(expected), "{message}");
        };
        check(json!([]), "not a JSON object");
        check(
            json!({"title": "T", "repository": "o/n"}),
            "number is missing",
        );
        check(
            json!({"number": -1, "title": "T", "repository": "o/n"}),
            "number is -1",
        );
        check(json!({"number": 1, "title": "T"}), "names no repository");
        check(
            json!({"number": 1, "title": "T", "repository": "n"}),
            "not owner/name",
        );
        check(
            json!({"number": 1, "title": "T", "repository": "o/n\u{1b}[2J"}),
            "not owner/name",
        );
        check(
            json!({"number": 1, "title": null, "repository": "o/n"}),
            "title is missing",
        );
        check(
            json!({"number": 1, "title": "T", "repository": "o/n", "body": 3}),
            "body is no text",
        );
        check(
            json!({"number": 1, "title": "T", "repository": "o/n", "labels": [1]}),
            "label has no name",
        );
    }

    #[test]
    fn an_address_that_is_none_is_not_taken_over() {
        let check = |url: &str, expected: &str| {
            let value = json!({"number": 1, "title": "T", "repository": "o/n", "html_url": url});
            let Row::Issue(issue) = row(&value, None).expect("reads") else {
                panic!("an issue")
            };
            assert_eq!(issue.url, expected);
        };
        let made = "https://github.com/o/n/issues/1";
        check(
            "https://git.example/o/n/issues/1",
            "https://git.example/o/n/issues/1",
        );
        check("https://api.github.com/repos/o/n/issues/1", made);
        check("javascript:alert(1)//issues/", made);
        check("https://x/issues/1\u{1b}[2J", made);
    }

    #[test]
    fn a_null_body_is_an_empty_one() {
        let value = json!({"number": 1, "title": "T", "repository": "o/n", "body": null});
        let Row::Issue(issue) = row(&value, None).expect("reads") else {
            panic!("an issue")
        };
        assert_eq!((issue.body.as_str(), issue.labels.len()), ("", 0));
    }
}
