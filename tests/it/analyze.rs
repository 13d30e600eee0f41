//! `pipeline analyze`.

use doc2harness::domain::verdict::Outcome;

use crate::project::Project;
use crate::stored_run::store;

/// Three builds of one model and one of another, on 328 cases of one category.
fn table() -> String {
    let mut text = "candidate,model,build,case,category,scenario,outcome\n".to_owned();
    for (candidate, model, passed) in [
        ("x1", "x", 173),
        ("x2", "x", 174),
        ("x3", "x", 175),
        ("y1", "y", 88),
    ] {
        for case in 0..328 {
            let outcome = if case < passed { "pass" } else { "assertion" };
            text += &format!(
                "{candidate},{model},{candidate},headless/{case},headless,ordinary,{outcome}\n"
            );
        }
    }
    text
}

#[test]
fn a_table_of_verdicts_gives_the_printed_figures() {
    let project = Project::new();
    project.write("v.csv", &table());
    let ran = project.run(&["analyze", "--csv", "v.csv", "--csv-out", "estimates.csv"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let check = |part: &str| {
        assert!(
            ran.stdout.contains(part),
            "{part:?} not in:\n{}",
            ran.stdout
        )
    };
    check("53.05 ± 0.25");
    check("left out: nothing");
    check("26.2"); // The gap between 53.05 and 26.83.
    let estimates = std::fs::read_to_string(project.path("estimates.csv")).expect("was written");
    assert!(estimates.starts_with("statistic,subject,part,value,low,high,n,left_out\n"));
    assert!(
        estimates.contains("strong-weak-gap,,all,0.2621"),
        "{estimates}"
    );

    let json = project.json(&["analyze", "--csv", "v.csv", "--model-of", "y1=x"]);
    assert_eq!(json["models"].as_array().map(Vec::len), Some(1));
    assert_eq!(json["models"][0]["rates"]["overall"]["n_builds"], 4);
    assert!(json["groups"][0]["gap"].is_null(), "one model has no gap");
    // Candidates that agree on an order of difficulty are as consistent as can be.
    assert!(
        json["reliability"]["kr20"]
            .as_f64()
            .is_some_and(|r| r > 0.9)
    );
}

#[test]
fn a_run_leaves_out_what_our_side_broke() {
    let project = Project::new();
    store(&project, "r1", Outcome::Passed);
    let json = project.json(&["analyze", "r1"]);
    assert_eq!(json["n_invalid"], 1);
    let two = &json["candidates"][1]["rates"];
    assert_eq!(two["overall"]["counted"], 2);
    assert_eq!(two["overall"]["passed"], 0);
    assert!(two["groups"]["other"]["rate"].is_null());
    let ran = project.run(&["analyze", "r1"]);
    assert!(
        ran.stdout.contains("left out: 1 invalid verdict"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_broken_table_is_named_with_its_line() {
    let project = Project::new();
    project.write(
        "v.csv",
        "candidate,model,build,case,category,scenario,outcome\na,m,1,x,sports,ordinary,pass\n",
    );
    let check = |arguments: &[&str], code: i32, part: &str| {
        let ran = project.run(arguments);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(
            ran.stderr.contains(part),
            "{part:?} not in:\n{}",
            ran.stderr
        );
    };
    check(&["analyze", "--csv", "v.csv"], 3, "v.csv:2: \"sports\"");
    check(
        &["analyze", "--csv", "absent.csv"],
        2,
        "cannot read absent.csv",
    );
    project.write("w.csv", &table());
    check(
        &["analyze", "--csv", "w.csv", "--model-of", "z=m"],
        2,
        "no candidate is named \"z\"",
    );
}
