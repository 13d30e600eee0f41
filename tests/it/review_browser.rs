//! `review serve` in real Chromium: the keyboard, end to end, and a picture of each view in `target/pictures/`.

use crate::chromium::{Browser, asked};
use crate::review_page::{Server, clustered, ready, sample, variant};

const KEY: &str = "(document.querySelector('[name=on]') || {}).value";

#[test]
fn a_reviewer_reads_with_keys_alone() {
    if !asked() {
        return;
    }
    let project = sample();
    let server = Server::start(&project, &["--by", "ana"]);
    ready(&server.visitor("ana"));
    let ours = format!("http://127.0.0.1:{}", server.port);
    let mut browser = Browser::start();
    browser.open(&format!("{ours}/?token={}", server.tokens[0].1));
    assert_eq!(browser.text("location.pathname + location.search"), "/read");
    browser.picture("reading-light");
    browser.dark(true);
    browser.picture("reading-dark");
    browser.dark(false);

    let bar = "String(document.querySelector('.bar').getBoundingClientRect().bottom)";
    let bottom = browser.text(bar);
    let decided = |browser: &mut Browser, key: &str, said: &str| {
        let on = browser.text(KEY);
        browser.key(key);
        browser.until(&format!(
            "document.getElementById('done').textContent.includes({said:?}) && {KEY} !== {on:?}"
        ));
        on
    };
    decided(&mut browser, "a", "saved as relevant");
    assert_eq!(browser.text(bar), bottom, "the bar stays where it is");
    decided(&mut browser, "2", "saved as not relevant");
    let third = decided(&mut browser, "u", "saved as unsure");
    // Undo goes back to the issue, which then waits again; redo decides on it again.
    let waits = format!("{KEY} === {third:?} && !document.querySelector('.decided')");
    browser.key("z");
    browser.until(&waits);
    browser.key("y");
    browser.until("document.querySelector('.decided') !== null");
    browser.key("z");
    browser.until(&waits);

    // Letters in the box are text; Esc leaves it, the draft stays.
    browser.key("n");
    browser.until("document.activeElement.id === 'why'");
    browser.write("axuz");
    browser.key("a");
    browser.key("Escape");
    browser.until("document.activeElement.id !== 'why'");
    browser.key("j");
    browser.until(&format!("{KEY} !== {third:?}"));
    browser.key("k");
    browser.until(&format!(
        "{KEY} === {third:?} && document.getElementById('why').value === 'axuza'"
    ));
    browser.key("n");
    browser.key("Ctrl+Enter");
    browser.until("document.getElementById('done').textContent.includes('note') && document.getElementById('why').value === ''");
    assert!(
        browser
            .text("document.querySelector('aside').innerText")
            .contains("axuza")
    );

    // The keys that are told are the keys that act.
    browser.key("?");
    browser.until("document.getElementById('keys').open");
    let told = browser.text("document.querySelector('#keys dl').innerText");
    for key in [
        "Relevant",
        "Not relevant",
        "Unsure",
        "Undo",
        "Next",
        "Reading",
        "Progress",
    ] {
        assert!(told.contains(key), "{key}: {told}");
    }
    browser.picture("keys");
    browser.key("Escape");
    browser.until("!document.getElementById('keys').open");

    browser.key("h");
    browser.until("document.body.classList.contains('unmarked')");
    browser.key("h");
    browser.key("g");
    browser.key("i");
    browser.until("location.pathname === '/issues'");
    browser.picture("issues");
    browser.key("/");
    browser.write("symlink");
    browser.key("Enter");
    browser.until("location.search.includes('symlink')");

    // Keys without Ctrl can be turned off; then buttons act.
    browser.open(&format!("{ours}/read"));
    let here = browser.text(KEY);
    browser.value("document.getElementById('letters').click()");
    browser.key("a");
    browser.value("document.querySelector('button[value=reject]').click()");
    browser.until("document.getElementById('done').textContent.includes('not relevant')");
    let last = std::fs::read_to_string(project.path("reviews/issues.jsonl")).expect("reads");
    let last = last.lines().last().expect("a line");
    assert!(
        last.contains("\"reject\"") && last.contains(&here),
        "{last}"
    );

    for (name, width, height) in [("reading-small", 390, 844), ("reading-low", 1280, 640)] {
        browser.size(width, height);
        browser.open(&format!("{ours}/read"));
        assert_eq!(
            browser.value("document.documentElement.scrollWidth <= innerWidth"),
            Some(true.into()),
            "{name}: nothing goes off sideways"
        );
        browser.picture(name);
    }
    browser.size(1280, 900);
    browser.open(&format!("{ours}/progress"));
    browser.picture("progress");
    // A second reviewer votes on what this one has voted on.
    let votes = std::fs::read_to_string(project.path("reviews/issues.jsonl")).expect("reads");
    let mut said = String::new();
    for line in votes.lines() {
        let vote: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let on = vote["on"].as_str().expect("a subject");
        let key = on.trim_start_matches("issue:");
        said += &format!("reject {key} no test shows it\n");
    }
    project.write("said.txt", &said);
    project.json(&["review", "read", "--say", "said.txt", "--by", "ben"]);
    browser.open(&format!("{ours}/agreement"));
    browser.until("document.querySelector('main').innerText.includes('kappa')");
    browser.picture("agreement-light");
    browser.dark(true);
    browser.picture("agreement-dark");
    browser.dark(false);
    for page in [
        "/read",
        "/issues",
        "/clusters",
        "/cases",
        "/agreement",
        "/progress",
    ] {
        browser.open(&format!("{ours}{page}"));
        let counts = "[document.querySelectorAll('h1').length, document.querySelectorAll('main').length, document.querySelectorAll('[aria-live]').length].join()";
        assert_eq!(browser.text(counts), "1,1,1", "{page}");
        let unnamed = "[...document.querySelectorAll('button, a, input:not([type=hidden]), select, textarea')].filter((e) => !(e.textContent.trim() || (e.labels && e.labels.length) || e.getAttribute('aria-label'))).map((e) => e.outerHTML).join()";
        assert_eq!(browser.text(unnamed), "", "{page}: everything has a name");
    }
    assert_eq!(browser.faults(&ours), [""; 0]);
}

#[test]
fn a_case_is_approved_with_keys_alone() {
    if !asked() {
        return;
    }
    let project = variant();
    let server = Server::start(&project, &["--by", "ana"]);
    let ours = format!("http://127.0.0.1:{}", server.port);
    let mut browser = Browser::start();
    browser.open(&format!("{ours}/?token={}", server.tokens[0].1));
    browser.key("g");
    browser.key("p");
    browser.until("location.pathname === '/cases'");
    browser.picture("cases");
    browser.key("j");
    browser.until("location.pathname === '/case'");
    browser.picture("case-light");
    browser.dark(true);
    browser.picture("case-dark");
    browser.dark(false);
    // Without a reason the box asks for one, and nothing is sent.
    browser.key("a");
    browser.until("document.activeElement.id === 'why'");
    browser.write("it tells two apart");
    browser.key("Escape");
    browser.key("a");
    browser.until("location.pathname === '/cases' && document.getElementById('done').textContent.includes('approved')");
    assert!(project.path("cases/headless/v.toml").exists());
    assert_eq!(browser.faults(&ours), [""; 0]);
}

#[test]
fn clusters_are_parted_and_merged_in_the_page() {
    if !asked() {
        return;
    }
    let project = clustered();
    let server = Server::start(&project, &["--by", "ana"]);
    let ours = format!("http://127.0.0.1:{}", server.port);
    let mut browser = Browser::start();
    browser.open(&format!("{ours}/?token={}", server.tokens[0].1));
    browser.key("g");
    browser.key("c");
    browser.until("location.pathname === '/clusters'");
    browser.picture("clusters");
    let n = "document.querySelectorAll('tbody tr').length";
    let before = browser.value(n);
    browser.value("document.querySelector('tbody a').click()");
    browser.until(
        "location.pathname === '/cluster' && document.documentElement.dataset.ready === 'yes'",
    );
    browser.picture("cluster");
    browser.value("document.querySelectorAll('[name=member]')[1].click()");
    browser.key("n");
    browser.write("another phenomenon");
    browser.key("Escape");
    browser.key("p");
    browser.until("document.getElementById('done').textContent.includes('clusters now')");
    let number = |value: Option<serde_json::Value>| value.and_then(|n| n.as_u64());
    let count = |browser: &mut Browser| {
        browser.open(&format!("{ours}/clusters"));
        number(browser.value(n))
    };
    let before = number(before);
    assert_eq!(count(&mut browser), before.map(|n| n + 1));

    // Another name, taken back and given again; then the parting is taken back too.
    browser.value("document.querySelector('tbody a').click()");
    browser.until("location.pathname === '/cluster'");
    let title = "document.querySelector('h1').textContent";
    let old = browser.text(title);
    browser.key("t");
    browser.value("document.querySelector('[name=name]').select()");
    browser.write("Rules are skipped");
    browser.key("Enter");
    browser.until(&format!("{title} === 'Rules are skipped'"));
    browser.picture("cluster-renamed");
    browser.key("z");
    browser.until(&format!("{title} === {old:?}"));
    browser.key("y");
    browser.until(&format!("{title} === 'Rules are skipped'"));
    browser.key("z");
    browser.until(&format!("{title} === {old:?}"));
    // The parting was several lines, the name one.
    browser.key("z");
    browser.until("document.getElementById('done').textContent.includes('lines are saved')");
    assert_eq!(count(&mut browser), before);
    assert_eq!(browser.faults(&ours), [""; 0]);
}

#[test]
fn a_case_is_run_with_a_key_and_its_end_is_shown() {
    if !asked() {
        return;
    }
    let project = crate::evaluate::project();
    let issues = r#"{"repository":"o/n","number":1,"title":"Edit denied","body":"","html_url":""}"#;
    project.write("issues.jsonl", issues);
    project.json(&["collect", "--from", "issues.jsonl"]);
    project.json(&["rank"]);
    let server = Server::start(&project, &["--by", "ana"]);
    let ours = format!("http://127.0.0.1:{}", server.port);
    let mut browser = Browser::start();
    browser.open(&format!("{ours}/?token={}", server.tokens[0].1));
    browser.open(&format!("{ours}/case?id=file-operations/link"));
    browser.key("r");
    browser.until(
        "location.pathname === '/case/run' && document.querySelector('h2.yes-text') !== null",
    );
    browser.picture("run-light");
    browser.dark(true);
    browser.picture("run-dark");
    browser.key("k");
    browser.until("location.pathname === '/case'");
    assert_eq!(browser.faults(&ours), [""; 0]);
}
