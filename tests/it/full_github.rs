//! Whole repositories on a server that answers like GitHub: as many issues as the method's authors collected, or few.

use std::time::Duration;

use serde_json::{Value, json};

use crate::fake_github::{FakeGitHub, Response, issue, pull_request};

/// Name, number, issues, pull requests.
pub type Repository = (&'static str, u64, u64, u64);

pub const FULL: &[Repository] = &[
    ("anthropics/claude-code", 11, 9_868, 1_200),
    ("anomalyco/opencode", 12, 5_438, 4_100),
    ("google-gemini/gemini-cli", 13, 4_831, 6_300),
    ("MoonshotAI/kimi-code", 14, 946, 400),
];
pub const SMALL: &[Repository] = &[("o/one", 21, 420, 190), ("o/two", 22, 130, 60)];

/// Pull requests are spread evenly among the numbers.
fn row(&(name, _, n_issues, n_pulls): &Repository, number: u64) -> Value {
    let before = |number: u64| number * n_pulls / (n_issues + n_pulls);
    if before(number) > before(number - 1) {
        return pull_request(name, number);
    }
    let mut row = issue(name, number);
    row["body"] = json!("The tool reads a link that leaves the workspace. ".repeat(40));
    row
}

/// Lists as GitHub gives them: the first page by name, the others by number and cursor. Every 40th request meets a
/// fault that passes, and every 7th page repeats the last row of the one before.
pub fn server(
    repositories: &'static [Repository],
    latency: Duration,
    with_faults: bool,
) -> FakeGitHub {
    FakeGitHub::start(move |request, n_before, base| {
        if with_faults && n_before % 40 == 39 {
            return match n_before / 40 % 3 {
                0 => Response::new(502, &json!(null)),
                1 => Response::new(200, &json!([issue("o/x", 1)])).cut(),
                _ => Response::new(403, &json!({"message": "secondary rate limit"}))
                    .header("retry-after", "0"),
            };
        }
        let target = request.target.as_str();
        let repository = repositories
            .iter()
            .find(|(name, id, ..)| {
                target.starts_with(&format!("/repos/{name}/issues?"))
                    || target.starts_with(&format!("/repositories/{id}/issues?"))
            })
            .unwrap_or_else(|| panic!("asked for {target}"));
        let total = repository.2 + repository.3;
        let after: u64 = target
            .split_once("after=")
            .and_then(|(_, rest)| rest.split('&').next()?.parse().ok())
            .unwrap_or(0);
        if target.contains("since=") {
            return Response::new(200, &json!([])).header("etag", "W/\"s\"");
        }
        let first = match after / 100 % 7 {
            6 if after > 0 => after,
            _ => after + 1,
        };
        let last = (after + 100).min(total);
        let rows: Vec<Value> = (first..=last)
            .map(|number| row(repository, number))
            .collect();
        let response = Response::new(200, &json!(rows))
            .header("date", "Tue, 01 Dec 2026 10:00:00 GMT")
            .header("etag", &format!("W/\"{after}\""))
            .delayed(latency);
        if last == total {
            return response;
        }
        let id = repository.1;
        response.next(&format!(
            "{base}/repositories/{id}/issues?after={last}&per_page=100"
        ))
    })
}
