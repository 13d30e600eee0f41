//! How long it takes from a decision to the next issue, with 21,083 issues loaded: `cargo bench --bench reading`.
//!
//! `review serve` runs as it does for a reviewer, over HTTP; 2,000 issues are decided on before, so that the order is
//! learned. Timed is what a key does: the decision is sent, is on the disk, and the page of the next issue is there in
//! full. Beside each, in turn, the smallest answer of the same server, a style sheet: what the connection costs alone.

mod corpus;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/it/project.rs"]
mod project;
#[allow(dead_code, unused_imports, reason = "the tests use more of it")]
#[path = "../tests/it/review_page.rs"]
mod review_page;

use std::fmt::Write;
use std::time::{Duration, Instant};

use doc2harness::storage::documents;
use project::{Project, repository};
use review_page::{Server, ready};
use serde_json::json;

const N_DECIDED: usize = 2_000;
const N_TIMED: usize = 300;

fn main() {
    let document = documents::read(&repository().join("data/document")).expect("it is valid");
    let clauses: Vec<String> = document
        .clauses()
        .map(|clause| format!("{} {}", clause.meaning, clause.behaviour))
        .collect();
    let project = Project::new();
    let (mut issues, mut said) = (String::new(), String::new());
    for (idx, (issue, phenomenon)) in corpus::corpus(&clauses).into_iter().enumerate() {
        let (repository, number) = (&issue.key.repository, issue.key.number);
        let line = json!({
            "repository": repository, "number": number, "title": issue.title, "body": issue.body, "html_url": "",
        });
        writeln!(issues, "{line}").expect("a string takes it");
        if idx % 10 == 0 && idx / 10 < N_DECIDED {
            let verb = if phenomenon.is_some() {
                "approve"
            } else {
                "reject"
            };
            writeln!(said, "{verb} {repository}#{number} made up").expect("a string takes it");
        }
    }
    project.write("issues.jsonl", &issues);
    project.write("said.txt", &said);
    project.json(&["collect", "--from", "issues.jsonl"]);
    project.json(&["rank"]);
    project.json(&["review", "read", "--say", "said.txt", "--by", "ben"]);

    let began = Instant::now();
    let server = Server::start(&project, &["--by", "ana"]);
    let ana = server.visitor("ana");
    let mut page = ana.get("/read");
    println!("first page after {:.2} s", began.elapsed().as_secs_f64());
    ready(&ana);
    println!(
        "all issues read in after {:.2} s",
        began.elapsed().as_secs_f64()
    );

    let (mut next, mut alone) = (Vec::new(), Vec::new());
    for turn in 0..N_TIMED {
        let verb = if turn % 3 == 0 { "approve" } else { "reject" };
        let began = Instant::now();
        let answer = ana.press(&page, verb, "");
        assert_eq!(answer.status, 303, "{}", answer.body);
        let to = answer
            .head
            .lines()
            .find_map(|line| line.strip_prefix("location: "));
        page = ana.get(to.expect("a place to go to"));
        next.push(began.elapsed());
        assert_eq!(page.status, 200, "{}", page.body);
        let began = Instant::now();
        ana.get("/style.css");
        alone.push(began.elapsed());
    }
    println!("{N_TIMED} decisions, {} issues", issues.lines().count());
    told("to the next issue", next);
    told("a style sheet", alone);
}

fn told(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let ms = |share: f64| {
        let place = (share * (times.len() - 1) as f64).round() as usize;
        1e3 * times[place].as_secs_f64()
    };
    println!(
        "{what:<20} median {:>7.1} ms, p95 {:>7.1} ms, most {:>7.1} ms",
        ms(0.5),
        ms(0.95),
        ms(1.0)
    );
}
