//! A report in real Chromium, opened from disk: from the matrix to a failure, and on to what its case does. A picture of
//! each view goes to `target/pictures/`.

use doc2harness::domain::verdict::Reason;

use crate::chromium::{Browser, asked};
use crate::project::Project;
use crate::report_reasons::store;

#[test]
fn a_report_leads_from_the_matrix_to_the_failure_and_the_case() {
    if !asked() {
        return;
    }
    let project = Project::new();
    store(&project);
    project.json(&["report", "r"]);
    let page = project.path("data/runs/r/report/report.html");
    let address = format!("file://{}", page.display());
    let mut browser = Browser::start();
    browser.open(&address);
    browser.picture("report-light");
    browser.dark(true);
    browser.picture("report-dark");
    browser.dark(false);

    // The filter obeys: its script is the one that the policy of the page allows.
    let n_shown = "String(document.querySelectorAll('#failures article:not([hidden])').length)";
    assert_eq!(browser.text(n_shown), Reason::ALL.len().to_string());
    browser.key("/");
    browser.write("nothing of the kind");
    browser.until("document.querySelector('#filter output').textContent === '0 of 1 cases'");
    browser.value("document.querySelector('#filter [type=reset]').click()");
    browser.until("document.querySelector('#filter output').textContent === '1 of 1 cases'");
    browser.value(
        "(() => { const outcome = document.forms.filter.elements.outcome; outcome.value = 'timeout'; \
         outcome.dispatchEvent(new Event('input', { bubbles: true })); })()",
    );
    browser.until(&format!("{n_shown} === '1'"));

    // A failure that the filter hides is shown by the link to it.
    browser.value("document.querySelector('#matrix td:nth-of-type(2) a').click()");
    browser.until("location.hash === '#f1' && !document.getElementById('f1').hidden");
    let in_view = |id: &str| {
        format!(
            "(() => {{ const box = document.getElementById('{id}').getBoundingClientRect(); \
             return box.top < innerHeight && box.bottom > 0; }})()"
        )
    };
    browser.until(&in_view("f1"));
    browser.picture("report-failure");
    browser.value("document.querySelector('#f1 details summary').click()");
    browser.until("document.querySelector('#f1 details').open");
    browser.picture("report-evidence");
    browser.value("[...document.querySelectorAll('#f1 a')].find((a) => a.hash === '#c0').click()");
    browser.until(&format!("location.hash === '#c0' && {}", in_view("c0")));
    browser.value("[...document.querySelectorAll('#f1 a')].find((a) => a.hash === '#c1').click()");
    browser.until(&format!("location.hash === '#c1' && {}", in_view("c1")));
    assert!(
        browser
            .text("document.getElementById('c1').innerText")
            .contains("Who writes such a rule relies on it for secrets.")
    );
    browser.picture("report-case");

    let counts =
        "[document.querySelectorAll('h1').length, document.querySelectorAll('main').length].join()";
    assert_eq!(browser.text(counts), "1,1");
    browser.size(390, 844);
    browser.until("document.documentElement.scrollWidth <= innerWidth");
    browser.picture("report-small");
    assert_eq!(browser.faults("file://"), [""; 0]);
}
