//! `pipeline collect` from a server that answers like GitHub.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fake_github::{FakeGitHub, Response, issue, pull_request};
use crate::project::{Project, Ran, ran};

const LIST: &str = "/repositories/7/issues";

/// A project whose collection does not sleep before it tries again.
fn project() -> Project {
    let project = Project::new();
    project.write(
        "pipeline/collect.toml",
        "[patience]\nconcurrency = 1\nmax_retries = 2\nretry_base_s = 0.0\nrate_limit_s = 0\nmax_wait_s = 5\n",
    );
    project
}

fn collect(project: &Project, server: &FakeGitHub) -> Ran {
    project.run(&[
        "--json",
        "collect",
        "--repository",
        "o/n",
        "--api-url",
        &server.url,
    ])
}

fn done(ran: &Ran) -> Value {
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    ran.json()
}

fn counts(n_issues: u64, n_pull_requests: u64) -> Value {
    json!({"o/n": {"n_issues": n_issues, "n_pull_requests": n_pull_requests}})
}

fn page(numbers: std::ops::RangeInclusive<u64>) -> Response {
    let rows: Vec<Value> = numbers.map(|number| issue("o/n", number)).collect();
    Response::new(200, &json!(rows))
}

#[test]
fn links_are_followed_and_a_second_run_asks_for_what_is_new() {
    let server = FakeGitHub::start(|request, _, base| {
        if request.target.contains("since=") {
            assert!(request.target.contains("sort=created&direction=asc"));
            return page(4..=4).header("etag", "W/\"b\"");
        }
        match request.target.as_str() {
            target if target.starts_with("/repos/o/n/issues?state=all") => {
                let rows = [issue("o/n", 1), pull_request("o/n", 2), issue("o/n", 3)];
                Response::new(200, &json!(rows))
                    .header("date", "Tue, 01 Dec 2026 10:00:00 GMT")
                    .next(&format!("{base}{LIST}?after=Y3Vy&per_page=100"))
            }
            target if target == format!("{LIST}?after=Y3Vy&per_page=100") => page(4..=5),
            target => panic!("asked for {target}"),
        }
    });
    let project = project();
    let first = done(&collect(&project, &server));
    assert_eq!(first["n_new"], 4);
    assert_eq!(first["n_pull_requests"], 1);
    assert_eq!(first["repositories"], counts(4, 1));
    let second = done(&collect(&project, &server));
    assert_eq!(second["n_new"], 0);
    assert_eq!(second["unchanged"], true);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    // Ten minutes before the first pass began, by the server's clock.
    let target = &requests[2].target;
    assert!(target.ends_with("&since=2026-12-01T09:50:00Z"), "{target}");
    // Raw pages are kept and can be collected again.
    let again = Project::new();
    let raw = project.path("data/raw/github");
    let from_raw = again.json(&["collect", "--from", raw.to_str().expect("UTF-8")]);
    assert_eq!(from_raw["repositories"], first["repositories"]);
}

#[test]
fn an_etag_is_sent_and_not_modified_means_nothing_changed() {
    let server = FakeGitHub::start(|request, n_before, _| {
        if n_before == 0 {
            return page(1..=2).header("etag", "W/\"a\"");
        }
        match request.header("if-none-match") {
            Some("W/\"b\"") => Response::new(304, &json!(null)),
            _ => page(1..=2).header("etag", "W/\"b\""),
        }
    });
    let project = project();
    for _ in 0..4 {
        done(&collect(&project, &server));
    }
    let requests = server.requests();
    let sent: Vec<Option<&str>> = requests
        .iter()
        .map(|request| request.header("if-none-match"))
        .collect();
    // The second run asks for what is new since the first: another address, another ETag.
    assert_eq!(sent, [None, None, Some("W/\"b\""), Some("W/\"b\"")]);
}

#[test]
fn numbered_pages_that_end_are_left_for_cursors() {
    let server = FakeGitHub::start(|request, n_before, base| {
        let target = request.target.as_str();
        if target.contains("page=2&") {
            let message = "Pagination with the page parameter is not supported for large datasets, \
                           please use cursor based pagination (after/before)";
            return Response::new(422, &json!({ "message": message }));
        }
        if target.contains("after=") {
            return page(3..=4);
        }
        let next = if n_before == 0 {
            format!("{base}{LIST}?page=2&per_page=100")
        } else {
            format!("{base}{LIST}?after=Y3Vy&per_page=100")
        };
        page(1..=2).next(&next)
    });
    let summary = done(&collect(&project(), &server));
    assert_eq!(
        (&summary["n_new"], &summary["n_same"]),
        (&json!(4), &json!(2))
    );
    assert_eq!(summary["repositories"], counts(4, 0));
}

#[test]
fn a_renamed_repository_is_followed_and_keeps_its_new_name() {
    let server = FakeGitHub::start(|request, _, base| {
        if request.target.starts_with("/repos/o/n/") {
            let to = format!("{base}{LIST}?state=all");
            return Response::new(301, &json!({"message": "Moved"})).header("location", &to);
        }
        let rows: Vec<Value> = (1..=3).map(|number| issue("new/name", number)).collect();
        Response::new(200, &json!(rows))
    });
    let summary = done(&collect(&project(), &server));
    assert_eq!(
        summary["repositories"],
        json!({"new/name": {"n_issues": 3, "n_pull_requests": 0}})
    );
}

#[test]
fn neither_a_redirect_nor_a_link_leads_to_another_host() {
    for elsewhere in [
        Response::new(301, &json!(null)).header("location", "http://127.0.0.2:9/x"),
        page(1..=1).next("http://127.0.0.2:9/x"),
    ] {
        let server = FakeGitHub::start(move |_, _, _| elsewhere.clone());
        let ran = collect(&project(), &server);
        assert_eq!(ran.code, 4, "{}", ran.stderr);
        assert!(ran.stderr.contains("not on the host"), "{}", ran.stderr);
    }
}

#[test]
fn a_limited_rate_is_waited_for() {
    let server = FakeGitHub::start(|_, n_before, _| match n_before {
        0 => Response::new(403, &json!({"message": "secondary rate limit"}))
            .header("retry-after", "1"),
        1 => Response::new(429, &json!({"message": "API rate limit exceeded"}))
            .header("x-ratelimit-remaining", "0")
            .header("x-ratelimit-reset", "5")
            .header("date", "Tue, 01 Dec 2026 10:00:00 GMT"),
        _ => page(1..=2),
    });
    let began = Instant::now();
    let ran = collect(&project(), &server);
    assert_eq!(done(&ran)["n_new"], 2);
    // One second was asked for, then one for a reset that is past.
    assert!(began.elapsed() >= Duration::from_secs(2));
    assert!(ran.stderr.contains("waits 1 s"), "{}", ran.stderr);
}

#[test]
fn a_wait_that_is_too_long_ends_the_run_and_says_so() {
    let server = FakeGitHub::start(|_, _, _| {
        Response::new(403, &json!({"message": "rate limit"})).header("retry-after", "3600")
    });
    let ran = collect(&project(), &server);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("goes on where it stopped"),
        "{}",
        ran.stderr
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_page_that_breaks_off_is_asked_for_again() {
    let server = FakeGitHub::start(|_, n_before, _| match n_before {
        0 => page(1..=3).cut(),
        1 => Response::new(502, &json!(null)),
        _ => page(1..=3),
    });
    let summary = done(&collect(&project(), &server));
    assert_eq!(summary["n_new"], 3);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_list_that_goes_round_in_circles_is_left() {
    let server =
        FakeGitHub::start(|_, _, base| page(1..=2).next(&format!("{base}{LIST}?after=same")));
    let project = project();
    let ran = collect(&project, &server);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("round in circles"), "{}", ran.stderr);
    assert_eq!(server.requests().len(), 2);
}

/// Three pages by cursor.
fn three_pages(target: &str, base: &str) -> Response {
    let link = |after: &str| format!("{base}{LIST}?after={after}");
    match target {
        target if target.contains("after=two") => page(3..=4).next(&link("three")),
        target if target.contains("after=three") => page(5..=6),
        _ => page(1..=2).next(&link("two")),
    }
}

#[test]
fn a_run_that_is_killed_between_pages_goes_on_there() {
    let server = FakeGitHub::start(|request, n_before, base| {
        let response = three_pages(&request.target, base);
        if n_before == 1 {
            response.delayed(Duration::from_secs(60))
        } else {
            response
        }
    });
    let project = project();
    let arguments = ["collect", "--repository", "o/n", "--api-url", &server.url];
    let mut child = project
        .command(&arguments)
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("starts");
    let began = Instant::now();
    // The second page is asked for while the first is being stored.
    let is_stored = || {
        let connection =
            rusqlite::Connection::open(project.path("data/db/pipeline.sqlite")).ok()?;
        let sql = "SELECT next_url FROM collect_lists";
        connection
            .query_row(sql, [], |row| row.get::<_, Option<String>>(0))
            .ok()?
    };
    while server.requests().len() < 2 || is_stored().is_none() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "no first page, or no second request"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("is killed");
    child.wait().expect("ends");

    let ran = collect(&project, &server);
    let summary = done(&ran);
    assert!(
        ran.stderr.contains("goes on where it stopped"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        (&summary["n_new"], &summary["n_same"]),
        (&json!(4), &json!(0))
    );
    assert_eq!(summary["repositories"], counts(6, 0));
    let firsts = server
        .requests()
        .iter()
        .filter(|request| request.target.starts_with("/repos/"))
        .count();
    assert_eq!(firsts, 1, "the first page is not asked for again");
}

#[test]
fn a_stored_address_that_went_stale_begins_the_list_anew() {
    let server = FakeGitHub::start(|request, n_before, base| match n_before {
        1..=3 => Response::new(500, &json!(null)),
        4 => Response::new(404, &json!({"message": "Not Found"})),
        _ => three_pages(&request.target, base),
    });
    let project = project();
    let ran = collect(&project, &server);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let summary = done(&collect(&project, &server));
    assert_eq!(summary["repositories"], counts(6, 0));
    assert_eq!(
        (&summary["n_new"], &summary["n_same"]),
        (&json!(4), &json!(2))
    );
}

#[test]
fn a_repository_that_is_not_there_is_named() {
    let server = FakeGitHub::start(|_, _, _| Response::new(404, &json!({"message": "Not Found"})));
    let ran = collect(&project(), &server);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("/repos/o/n/issues"), "{}", ran.stderr);
}

#[test]
fn broken_rows_are_named_and_the_others_kept() {
    let server = FakeGitHub::start(|_, _, _| {
        let broken = json!({"number": 2, "repository_url": "https://api.github.com/repos/o/n"});
        let foreign = issue("other/name", 3);
        Response::new(
            200,
            &json!([issue("o/n", 1), broken, foreign, issue("o/n", 4)]),
        )
    });
    let ran = collect(&project(), &server);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    let summary = ran.json();
    assert_eq!(summary["repositories"], counts(2, 0));
    let broken: Vec<&str> = summary["broken"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(broken[0].ends_with("row 2: title is missing"), "{broken:?}");
    assert!(
        broken[1].contains("row 3: belongs to other/name"),
        "{broken:?}"
    );
}

#[test]
fn the_token_goes_to_the_server_and_nowhere_else() {
    let secret = "ghp_verySecret0123456789";
    let server = FakeGitHub::start(|_, n_before, base| match n_before {
        0 => page(1..=2).next(&format!("{base}{LIST}?after=x")),
        _ => Response::new(401, &json!({"message": "Bad credentials"})),
    });
    let project = project();
    let arguments = ["collect", "--repository", "o/n", "--api-url", &server.url];
    let found = ran(project.command(&arguments).env("GH_TOKEN", secret));
    assert_eq!(found.code, 4, "{}", found.stderr);
    assert!(
        found.stderr.contains("refuses the token"),
        "{}",
        found.stderr
    );
    assert!(!found.stderr.contains(secret) && !found.stdout.contains(secret));
    for request in server.requests() {
        let expected = format!("Bearer {secret}");
        assert_eq!(request.header("authorization"), Some(expected.as_str()));
    }
    for file in ["data/db/pipeline.sqlite", "data/db/pipeline.sqlite-wal"] {
        if let Ok(bytes) = std::fs::read(project.path(file)) {
            assert!(
                !bytes
                    .windows(secret.len())
                    .any(|part| part == secret.as_bytes())
            );
        }
    }
    // A name, so that the address is not this machine's as far as the program can know.
    let arguments = [
        "collect",
        "--repository",
        "o/n",
        "--api-url",
        "http://example.invalid",
    ];
    let clear = ran(project.command(&arguments).env("GITHUB_TOKEN", secret));
    assert_eq!(clear.code, 2, "{}", clear.stderr);
    assert!(clear.stderr.contains("not encrypted"), "{}", clear.stderr);
}
