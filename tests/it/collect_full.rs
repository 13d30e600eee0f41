//! `pipeline collect` at full size: four repositories with 21,083 issues among pull requests, on a server that answers
//! like GitHub, with its faults; and the collector killed again and again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fake_github::{FakeGitHub, Response, comment, issue, pull_request};
use crate::full_github::{FULL, Repository, SMALL, server};
use crate::project::{Project, ran};

fn project(concurrency: usize) -> Project {
    let project = Project::new();
    project.write(
        "pipeline/collect.toml",
        &format!(
            "[patience]\nconcurrency = {concurrency}\nmax_retries = 3\nretry_base_s = 0.0\nrate_limit_s = 0\n\
             max_wait_s = 5\n"
        ),
    );
    project
}

fn arguments<'a>(repositories: &[Repository], server: &'a FakeGitHub) -> Vec<&'a str> {
    let mut arguments = vec![
        "--json",
        "collect",
        "--api-url",
        &server.url,
        "--repository",
    ];
    arguments.extend(repositories.iter().map(|(name, ..)| *name));
    arguments
}

fn expected(repositories: &[Repository]) -> Value {
    repositories
        .iter()
        .map(|&(name, _, n_issues, n_pull_requests)| {
            let count = json!({"n_issues": n_issues, "n_pull_requests": n_pull_requests});
            (name.to_owned(), count)
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn all_of_four_repositories_come_in_with_all_faults_and_little_memory() {
    let server = server(FULL, Duration::ZERO, true);
    let project = project(4);
    let arguments = arguments(FULL, &server);
    let mut child = project
        .command(&arguments)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("starts");
    let mut stdout = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().expect("piped"), &mut stdout)
        .expect("reads");
    let (code, peak_mib) = ended(child);
    assert_eq!(code, 0, "{stdout}");
    let summary: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(summary["repositories"], expected(FULL));
    assert_eq!(summary["n_new"], 21_083);
    assert!(summary["n_same"].as_u64() > Some(20), "{summary}");
    assert!(peak_mib <= 150, "{peak_mib} MiB");

    let again = project.json(&arguments[1..]);
    assert_eq!(again["unchanged"], true);
    assert_eq!(again["n_pages"], FULL.len());
}

#[test]
fn what_was_exported_and_the_raw_pages_bring_the_same_back() {
    let server = server(SMALL, Duration::ZERO, true);
    let project = project(1);
    let collected = project.json(&arguments(SMALL, &server)[1..]);
    project.run(&["collect", "--export", "all.jsonl.gz"]);
    let export = |project: &Project, name: &str| {
        project.run(&["collect", "--export", name]);
        std::fs::read(project.path(name)).expect("reads")
    };
    let exported = export(&project, "all.jsonl");
    let nowhere = project.run(&["collect", "--export", "no/all.jsonl"]);
    assert_eq!(nowhere.code, 2, "{}", nowhere.stderr);
    assert!(
        nowhere.stderr.contains("there is no folder no"),
        "{}",
        nowhere.stderr
    );
    for from in ["all.jsonl.gz", "data/raw/github"] {
        let fresh = Project::new();
        let from = project.path(from);
        let summary = fresh.json(&["collect", "--from", from.to_str().expect("UTF-8")]);
        assert_eq!(summary["repositories"], collected["repositories"]);
        assert!(
            export(&fresh, "all.jsonl") == exported,
            "{}",
            from.display()
        );
    }
}

/// Exit code and largest resident set in MiB.
fn ended(child: std::process::Child) -> (i32, i64) {
    let mut status = 0;
    // SAFETY: both places are ours, and the child was not waited for.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert!(libc::wait4(child.id() as i32, &mut status, 0, &mut usage) > 0);
        usage
    };
    (libc::WEXITSTATUS(status), usage.ru_maxrss / 1024)
}

#[test]
fn a_collector_that_is_killed_fifty_times_loses_and_doubles_nothing() {
    let server = server(SMALL, Duration::from_millis(15), false);
    let project = project(2);
    let arguments = arguments(SMALL, &server);
    // A linear congruence: the instants are the same in every run.
    let mut state = 20_261_201_u64;
    for _ in 0..50 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let mut child = project
            .command(&arguments)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("starts");
        std::thread::sleep(Duration::from_millis(state >> 33 & 127));
        child.kill().expect("is killed");
        child.wait().expect("ends");
    }
    let summary = project.json(&arguments[1..]);
    assert_eq!(summary["repositories"], expected(SMALL));
    // Pages under way when it was killed are asked for again, none that were stored.
    let asked = server.requests().len();
    assert!(
        asked < 9 + 4 * 50,
        "{asked} requests for 9 pages and 51 starts"
    );
    let unpacked = std::fs::read_dir(project.path("data/raw/github/o/one"))
        .expect("reads")
        .filter(|entry| {
            let entry = entry.as_ref().expect("reads");
            entry.path().extension().is_none_or(|end| end != "gz")
        })
        .count();
    assert_eq!(unpacked, 0, "a half page is left");
}

#[test]
fn a_date_ends_the_collection_and_the_next_one_goes_on_from_there() {
    let dated = |number: u64| {
        let mut row = issue("o/n", number);
        let day = format!("2026-11-{number:02}T00:00:00Z");
        row["created_at"] = json!(day);
        row["updated_at"] = json!(day);
        row
    };
    let server = FakeGitHub::start(move |request, _, base| {
        if request.target.contains("since=") {
            return Response::new(200, &json!([dated(4), dated(5), dated(6)]));
        }
        let (rows, next) = match request.target.split_once("after=") {
            None => ([dated(1), dated(2)], Some(2)),
            Some((_, "2")) => ([dated(3), dated(4)], Some(4)),
            Some(_) => panic!("a page after the date"),
        };
        let response =
            Response::new(200, &json!(rows)).header("date", "Tue, 01 Dec 2026 10:00:00 GMT");
        match next {
            Some(next) => response.next(&format!("{base}/repositories/7/issues?after={next}")),
            None => response,
        }
    });
    let project = project(1);
    let collect = ["collect", "--api-url", &server.url, "--repository", "o/n"];
    let until = project.json(&[&collect[..], &["--as-of", "2026-11-03T12:00:00Z"]].concat());
    assert_eq!((&until["n_new"], &until["n_later"]), (&json!(3), &json!(1)));
    let rest = project.json(&collect);
    assert_eq!(rest["n_new"], 3);
    let asked = server.requests().last().expect("asked").target.clone();
    assert!(asked.ends_with("since=2026-11-03T11:50:00Z"), "{asked}");
}

#[test]
fn comments_come_by_one_list_and_only_those_on_issues_stay() {
    let server = FakeGitHub::start(|request, _, base| {
        let target = request.target.as_str();
        if target.contains("/comments?sort=updated") {
            let rows = json!([
                comment("o/n", 1, 51, "on an issue"),
                comment("o/n", 2, 52, "on a pull request")
            ]);
            return Response::new(200, &rows)
                .next(&format!("{base}/repositories/7/issues/comments?after=x"));
        }
        if target.contains("/comments?after=x") {
            return Response::new(200, &json!([comment("o/n", 1, 53, "later")]));
        }
        Response::new(200, &json!([issue("o/n", 1), pull_request("o/n", 2)]))
    });
    let project = project(2);
    let collect = [
        "collect",
        "--api-url",
        &server.url,
        "--repository",
        "o/n",
        "--comments",
    ];
    let summary = project.json(&collect);
    assert_eq!(summary["repositories"]["o/n"]["n_issues"], 1);
    project.run(&["collect", "--export", "all.jsonl"]);
    let text = std::fs::read_to_string(project.path("all.jsonl")).expect("reads");
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let bodies: Vec<&str> = rows
        .iter()
        .filter(|row| row.get("issue_url").is_some())
        .filter_map(|row| row["body"].as_str())
        .collect();
    assert_eq!(bodies, ["on an issue", "later"]);
}

#[test]
fn what_was_deleted_or_moved_is_taken_out_and_does_not_come_back() {
    let gone = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let now = gone.clone();
    let server = FakeGitHub::start(move |request, _, base| {
        let is_gone = now.load(std::sync::atomic::Ordering::SeqCst);
        match request.target.as_str() {
            "/repos/o/n/issues/2" => {
                Response::new(410, &json!({"message": "This issue was deleted"}))
            }
            "/repos/o/n/issues/3" => Response::new(301, &json!({"message": "Moved"}))
                .header("location", &format!("{base}/repositories/9/issues/33")),
            "/repositories/9/issues/33" => Response::new(200, &issue("x/y", 33)),
            target if target.contains("/issues?") && !is_gone => {
                let rows: Vec<Value> = (1..=4).map(|number| issue("o/n", number)).collect();
                Response::new(200, &json!(rows))
            }
            target if target.contains("/issues?") => {
                assert!(!target.contains("since="), "{target}");
                Response::new(200, &json!([issue("o/n", 1), issue("o/n", 4)]))
            }
            target => panic!("asked for {target}"),
        }
    });
    let project = project(1);
    let collect = ["collect", "--api-url", &server.url, "--repository", "o/n"];
    assert_eq!(project.json(&collect)["n_new"], 4);
    gone.store(true, std::sync::atomic::Ordering::SeqCst);
    let summary = project.json(&[&collect[..], &["--reconcile"]].concat());
    assert_eq!(summary["n_gone"], 2);
    assert_eq!(summary["repositories"]["o/n"]["n_issues"], 2);
    // The pages that still have them are read again.
    let raw = project.path("data/raw/github");
    let raw = raw.to_str().expect("UTF-8");
    assert_eq!(project.json(&["collect", "--from", raw])["n_new"], 0);
    let fresh = Project::new();
    let rebuilt = fresh.json(&["collect", "--from", raw]);
    assert_eq!(rebuilt["repositories"], summary["repositories"]);
    project.run(&["collect", "--export", "all.jsonl"]);
    let text = std::fs::read_to_string(project.path("all.jsonl")).expect("reads");
    assert!(text.contains("\"moved_to\":\"x/y#33\""), "{text}");
}

#[test]
fn a_row_that_slipped_between_numbered_pages_is_found_by_reconciling() {
    // The first issue goes while the list is read, so that those behind it move up: 3 is on neither page.
    let server = FakeGitHub::start(|request, n_before, base| {
        let rows = |numbers: &[u64]| {
            let rows = numbers.iter().map(|number| issue("o/n", *number));
            Response::new(200, &rows.collect())
        };
        match request.target.as_str() {
            "/repos/o/n/issues/1" => Response::new(404, &json!({"message": "Not Found"})),
            target if target.contains("page=2&") => rows(&[4, 5]),
            _ if n_before == 0 => {
                rows(&[1, 2]).next(&format!("{base}/repositories/7/issues?page=2&per_page=2"))
            }
            _ => rows(&[2, 3]).next(&format!("{base}/repositories/7/issues?page=2&per_page=2")),
        }
    });
    let project = project(1);
    let collect = ["collect", "--api-url", &server.url, "--repository", "o/n"];
    assert_eq!(project.json(&collect)["n_new"], 4);
    let summary = project.json(&[&collect[..], &["--reconcile"]].concat());
    assert_eq!(
        (&summary["n_new"], &summary["n_gone"]),
        (&json!(1), &json!(1))
    );
    project.run(&["collect", "--export", "all.jsonl"]);
    let text = std::fs::read_to_string(project.path("all.jsonl")).expect("reads");
    for number in 2..=5 {
        assert!(
            text.contains(&format!("issues/{number}\"")),
            "{number}: {text}"
        );
    }
}

#[test]
fn one_repository_asked_for_by_two_names_is_one() {
    let server = FakeGitHub::start(|request, n_before, base| {
        let next = format!("{base}/repositories/7/issues?after=2");
        // It is renamed after the first collection.
        let name = if n_before < 2 { "o/old" } else { "o/new" };
        match request.target.as_str() {
            target if target.contains("after=2") => Response::new(200, &json!([issue(name, 3)])),
            _ => Response::new(200, &json!([issue(name, 1), issue(name, 2)])).next(&next),
        }
    });
    let project = project(1);
    for name in ["o/old", "o/new"] {
        project.json(&["collect", "--api-url", &server.url, "--repository", name]);
    }
    let status = project.json(&["collect", "--api-url", &server.url, "--repository", "o/new"]);
    let expected = json!({"o/new": {"n_issues": 3, "n_pull_requests": 0}});
    assert_eq!(status["repositories"], expected);
}

#[test]
fn ctrl_c_says_what_is_kept_and_how_to_go_on() {
    let server = server(SMALL, Duration::from_secs(30), false);
    let project = project(1);
    let mut child = project
        .command(&arguments(SMALL, &server))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("starts");
    while server.requests().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: the child was not waited for, so the number is its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let mut stderr = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().expect("piped"), &mut stderr)
        .expect("reads");
    assert_eq!(child.wait().expect("ends").code(), Some(130), "{stderr}");
    assert!(stderr.contains("go on with: pipeline collect"), "{stderr}");
}

#[test]
fn a_server_that_is_not_there_is_told_in_one_line() {
    let project = project(1);
    let arguments = [
        "collect",
        "--api-url",
        "http://127.0.0.1:9",
        "--repository",
        "o/n",
    ];
    let found = ran(&mut project.command(&arguments));
    assert_eq!(found.code, 4, "{}", found.stderr);
    let error = found.stderr.lines().find(|line| line.starts_with("error"));
    let error = error.unwrap_or_else(|| panic!("{}", found.stderr));
    assert_eq!(error.matches("http://").count(), 1, "{error}");
    assert!(error.contains("refused"), "{error}");
}
