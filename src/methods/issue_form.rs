//! Issues and comments out of the JSON that sources give: GitHub's REST objects, rows of `gh issue list --json`, events
//! of GH Archive, and what `pipeline collect --export` writes. Export is here too, since it is the same form.
//!
//! The text of an issue is copied and never interpreted.

use serde_json::{Map, Value, json};

use crate::domain::issue::{Comment, Issue, IssueKey};

/// What a row of a source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    Issue(Box<Issue>),
    /// GitHub lists pull requests among issues; they are counted and left out.
    PullRequest(IssueKey),
    Comment(Comment),
    /// An issue that was deleted, or moved to another repository.
    Gone {
        key: IssueKey,
        moved_to: Option<IssueKey>,
    },
}

impl Row {
    pub fn key_mut(&mut self) -> &mut IssueKey {
        match self {
            Self::Issue(issue) => &mut issue.key,
            Self::PullRequest(key) | Self::Gone { key, .. } => key,
            Self::Comment(comment) => &mut comment.issue,
        }
    }
}

/// Reads one object: mostly one row; an event can hold two, or none that concerns issues. `repository` is that of rows
/// which do not name theirs.
///
/// The error says what is wrong with which field.
pub fn rows(value: &Value, repository: Option<&str>) -> Result<Vec<Row>, String> {
    let Value::Object(object) = value else {
        return Err("not a JSON object".to_owned());
    };
    if let (Some(kind), Some(Value::Object(payload))) = (object.get("type"), object.get("payload"))
    {
        return event(object, kind, payload);
    }
    if object.contains_key("issue_url") {
        return Ok(vec![Row::Comment(comment(object)?)]);
    }
    Ok(vec![issue(object, repository)?])
}

/// An event of GH Archive. What it says of the issue is the state right after it.
fn event(
    event: &Map<String, Value>,
    kind: &Value,
    payload: &Map<String, Value>,
) -> Result<Vec<Row>, String> {
    let repository = event
        .get("repo")
        .and_then(|repo| repo.get("name")?.as_str())
        .ok_or("the event names no repository: repo.name")?;
    // Events of before 2015 have the number only.
    let Some(Value::Object(about)) = payload.get("issue") else {
        return Ok(Vec::new());
    };
    let mut rows = Vec::new();
    match kind.as_str() {
        Some("IssuesEvent") => rows.push(issue(about, Some(repository))?),
        Some("IssueCommentEvent") => {
            rows.push(issue(about, Some(repository))?);
            if let Some(Value::Object(said)) = payload.get("comment") {
                rows.push(Row::Comment(comment(said)?));
            }
        }
        _ => {}
    }
    Ok(rows)
}

fn comment(object: &Map<String, Value>) -> Result<Comment, String> {
    let address = object.get("issue_url").and_then(Value::as_str);
    let parts: Vec<&str> = address
        .and_then(|url| url.split_once("/repos/"))
        .map(|(_, rest)| rest.split('/').collect())
        .unwrap_or_default();
    let [owner, name, "issues", number] = parts[..] else {
        return Err("issue_url is no address of an issue".to_owned());
    };
    let repository = format!("{owner}/{name}");
    if !is_repository(&repository) {
        return Err(format!("repository {repository:?} is not owner/name"));
    }
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    Ok(Comment {
        issue: IssueKey {
            repository,
            number: positive("issue_url", number.parse().ok())?,
        },
        id: positive("id", object.get("id").and_then(Value::as_u64))?,
        body: text("body").unwrap_or_default(),
        created_at: text("created_at"),
        updated_at: text("updated_at"),
    })
}

/// A number that the database can hold.
fn positive(field: &str, number: Option<u64>) -> Result<u64, String> {
    number
        .filter(|number| *number > 0 && i64::try_from(*number).is_ok())
        .ok_or_else(|| format!("{field} has no positive integer"))
}

fn issue(object: &Map<String, Value>, repository: Option<&str>) -> Result<Row, String> {
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
    if object.get("gone") == Some(&Value::Bool(true)) {
        let moved_to = text(&["moved_to"])?.map(|key| key.parse()).transpose()?;
        return Ok(Row::Gone { key, moved_to });
    }
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
    object: &Map<String, Value>,
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

/// The object of a row as [`rows`] reads it again.
pub fn export(row: &Row) -> Value {
    match row {
        Row::Issue(issue) => {
            let labels: Vec<Value> = issue
                .labels
                .iter()
                .map(|name| json!({ "name": name }))
                .collect();
            json!({
                "repository": issue.key.repository,
                "number": issue.key.number,
                "title": issue.title,
                "body": issue.body,
                "labels": labels,
                "state": issue.state,
                "created_at": issue.created_at,
                "updated_at": issue.updated_at,
                "comments": issue.n_comments,
                "html_url": issue.url,
            })
        }
        Row::PullRequest(key) => json!({
            "repository": key.repository,
            "number": key.number,
            "pull_request": {},
        }),
        Row::Comment(comment) => json!({
            "issue_url": format!(
                "https://api.github.com/repos/{}/issues/{}",
                comment.issue.repository, comment.issue.number
            ),
            "id": comment.id,
            "body": comment.body,
            "created_at": comment.created_at,
            "updated_at": comment.updated_at,
        }),
        Row::Gone { key, moved_to } => json!({
            "repository": key.repository,
            "number": key.number,
            "gone": true,
            "moved_to": moved_to.as_ref().map(ToString::to_string),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: &Value, repository: Option<&str>) -> Result<Row, String> {
        let mut rows = rows(value, repository)?;
        assert_eq!(rows.len(), 1, "{value}");
        Ok(rows.remove(0))
    }

    #[test]
    fn what_is_exported_is_read_again() {
        let key: IssueKey = "o/n#7".parse().expect("a key");
        let issue = Issue {
            url: "https://github.com/o/n/issues/7".into(),
            title: "T \u{1b}[2J".into(),
            body: "a\nb".into(),
            labels: vec!["bug".into()],
            state: Some("open".into()),
            created_at: Some("2026-01-01T00:00:00Z".into()),
            updated_at: None,
            n_comments: Some(0),
            key: key.clone(),
        };
        let comment = Comment {
            issue: key.clone(),
            id: 9,
            body: "c".into(),
            created_at: None,
            updated_at: Some("2026-01-01T00:00:00Z".into()),
        };
        let gone = Row::Gone {
            key: key.clone(),
            moved_to: Some("x/y#3".parse().expect("a key")),
        };
        for sent in [
            Row::Issue(Box::new(issue)),
            Row::PullRequest(key),
            Row::Comment(comment),
            gone,
        ] {
            assert_eq!(row(&export(&sent), None).expect("reads"), sent);
        }
    }

    #[test]
    fn an_event_holds_the_issue_and_the_comment() {
        let about =
            json!({"number": 7, "title": "T", "html_url": "https://github.com/o/n/issues/7"});
        let said =
            json!({"id": 5, "body": "c", "issue_url": "https://api.github.com/repos/o/n/issues/7"});
        let event = |kind: &str, payload: Value| json!({"type": kind, "repo": {"name": "o/n"}, "payload": payload});
        let check = |kind: &str, payload: Value, n_expected: usize| {
            let found = rows(&event(kind, payload), None).expect("reads");
            assert_eq!(found.len(), n_expected, "{kind}");
        };
        check("IssuesEvent", json!({"issue": about}), 1);
        check(
            "IssueCommentEvent",
            json!({"issue": about, "comment": said}),
            2,
        );
        check("IssuesEvent", json!({"issue": 7}), 0);
        check("PushEvent", json!({"commits": []}), 0);
        let nameless = json!({"type": "IssuesEvent", "payload": {"issue": about}});
        assert!(
            rows(&nameless, None)
                .expect_err("fails")
                .contains("repo.name")
        );
    }

    #[test]
    fn a_comment_belongs_to_the_issue_of_its_address() {
        let check = |address: &str, expected: Result<&str, &str>| {
            let value = json!({"id": 5, "body": null, "issue_url": address});
            match (row(&value, None), expected) {
                (Ok(Row::Comment(comment)), Ok(key)) => assert_eq!(comment.issue.to_string(), key),
                (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
                (found, _) => panic!("{found:?}"),
            }
        };
        check("https://api.github.com/repos/o/n/issues/7", Ok("o/n#7"));
        check(
            "https://api.github.com/repos/o/n/pulls/7",
            Err("no address"),
        );
        check("https://api.github.com/repos/o/n/issues/x", Err("positive"));
        check(
            "https://api.github.com/repos/o/n m/issues/7",
            Err("not owner/name"),
        );
    }

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
