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

/// Four models of two builds on 40 cases in two categories, two cases a family; nobody passes the hardest four. The
/// reference passes all but one of those, an adapter one of them.
fn cohort() -> String {
    let mut text =
        "candidate,model,build,case,category,scenario,outcome,family,controls\n".to_owned();
    let mut row = |candidate: &str, model: &str, case: usize, passed: bool| {
        let category = ["headless", "permissions"][case % 2];
        let scenario = if case.is_multiple_of(5) {
            "boundary"
        } else {
            "ordinary"
        };
        let outcome = if passed { "pass" } else { "assertion" };
        let (seed, controls) = (case / 2, case % 3);
        text += &format!(
            "{candidate},{model},{candidate},{category}/{case:02},{category},{scenario},{outcome},seed/{seed},{controls}\n"
        );
    };
    for (model, skill) in [("a", 34usize), ("b", 25), ("c", 16), ("d", 9)] {
        for build in 1..=2usize {
            for case in 0..40 {
                let lucky = (case * 11 + build * 7 + skill) % 9 == 0;
                let passed = case < 36 && (case < skill) != lucky;
                row(&format!("{model}{build}"), model, case, passed);
            }
        }
    }
    for case in 0..40 {
        row("reference", "reference", case, case != 39);
        row("adapters/real", "real", case, case == 36);
    }
    text
}

#[test]
fn witnesses_are_in_no_rate_and_tell_the_floor_apart() {
    let project = Project::new();
    project.write("v.csv", &cohort());
    let json = project.json(&["analyze", "--csv", "v.csv"]);
    assert_eq!(
        json["witnesses"],
        serde_json::json!(["adapters/real", "reference"])
    );
    assert_eq!(json["candidates"].as_array().map(Vec::len), Some(8));
    let compared = project.run(&["analyze", "--csv", "v.csv", "--compare", "reference", "d*"]);
    assert_eq!(compared.code, 2, "{}", compared.stderr);
    assert!(
        compared.stderr.contains("reference is a witness"),
        "{}",
        compared.stderr
    );
    let diagnosis = |case: &str| {
        let floor = json["floor"].as_array().expect("a list");
        let found = floor.iter().find(|floor| floor["case"] == case);
        found.map(|floor| floor["diagnosis"].clone())
    };
    assert_eq!(diagnosis("headless/36"), Some("nobody-can".into()));
    assert_eq!(diagnosis("permissions/37"), Some("only-reference".into()));
    assert_eq!(diagnosis("permissions/39"), Some("too-strict".into()));
    assert_eq!(json["independence"]["n_families"], 20);
    let share = json["coverage"][0]["share"]
        .as_f64()
        .expect("controls are known");
    assert!((share - 26.0 / 40.0).abs() < 1e-12, "{share}");

    let ran = project.run(&["analyze", "--csv", "v.csv", "--witness", "d*"]);
    let check = |part: &str| {
        assert!(
            ran.stdout.contains(part),
            "{part:?} not in:\n{}",
            ran.stdout
        );
    };
    check("witnesses, in no rate: adapters/real, d1, d2, reference");
    check("permissions/39: 6 assertion");
    check("2000 draws over families and builds, seed 1");
}

#[test]
fn two_candidates_are_compared_on_the_same_cases() {
    let project = Project::new();
    project.write("v.csv", &cohort());
    let paired = |a: &str, b: &str| {
        project.json(&["analyze", "--csv", "v.csv", "--compare", a, b])["paired"].clone()
    };
    let models = paired("a", "d");
    assert!(
        models["p_families"].as_f64().is_some_and(|p| p < 0.01),
        "{models}"
    );
    assert!(models["p_cases"].is_null());
    assert!(
        models["interval"]["low"]
            .as_f64()
            .is_some_and(|low| low > 0.0)
    );
    let candidates = paired("a1", "a2");
    let number = |name: &str| candidates[name].as_f64().expect(name);
    assert_eq!(number("n_cases"), 40.0);
    let difference = (number("only_a") - number("only_b")) / 40.0;
    assert!((number("difference") - difference).abs() < 1e-12);
    let ran = project.run(&["analyze", "--csv", "v.csv", "--compare", "a1", "zz"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("no model is named \"zz\""),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("one of: a, a1, a2"), "{}", ran.stderr);
}

#[test]
fn the_same_input_in_another_order_gives_the_same_bytes() {
    let project = Project::new();
    let table = cohort();
    let mut lines: Vec<&str> = table.lines().skip(1).collect();
    lines.reverse();
    lines.rotate_left(77);
    let turned = format!(
        "{}\n{}\n",
        table.lines().next().expect("a header"),
        lines.join("\n")
    );
    project.write("v.csv", &table);
    let first = project.run(&["--json", "analyze", "--csv", "v.csv"]);
    project.write("v.csv", &turned);
    let second = project.run(&["--json", "analyze", "--csv", "v.csv"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert_eq!(first.stdout, second.stdout);
}

#[test]
fn settings_that_mean_nothing_are_named() {
    let project = Project::new();
    project.write("v.csv", &cohort());
    let settings = std::fs::read_to_string(project.path("pipeline/analyze.toml")).expect("reads");
    project.write(
        "pipeline/analyze.toml",
        &settings.replace("draws = 2000", "draws = 20"),
    );
    let ran = project.run(&["analyze", "--csv", "v.csv"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("analyze.toml: fewer than 100 draws"),
        "{}",
        ran.stderr
    );
}

const FACTS: &str = "candidate,code_lines,modules,functions,largest_module,dedicated
a1,9000,20,400,1800,permissions headless
a2,9500,22,410,1700,permissions
b1,7000,25,300,900,headless
b2,7400,24,310,950,
c1,6000,30,250,500,startup
c2,5500,31,240,450,startup
d1,3000,12,100,700,
";

#[test]
fn architecture_is_read_beside_the_verdicts() {
    let project = Project::new();
    project.write("v.csv", &cohort());
    project.write("f.csv", FACTS);
    let arguments = ["analyze", "--csv", "v.csv", "--facts", "f.csv"];
    let found = project.json(&arguments)["architecture"].clone();
    assert_eq!(
        (&found["n_candidates"], &found["left_out"]),
        (&7.into(), &1.into())
    );
    assert_eq!(found["models"][0]["code_lines"], 9250.0);
    assert_eq!(found["models"][0]["lines_per_module"], 9250.0 / 21.0);
    assert_eq!(found["dedicated"]["permissions"], 2);
    let r = found["lines_of_models"]["r"].as_f64().expect("four models");
    assert!(r > 0.9, "{r}");
    let range = &found["modules"]["leave_one_out"];
    assert!(
        range["low"].as_f64() <= found["modules"]["r"].as_f64(),
        "{found}"
    );

    project.write(
        "f.csv",
        "candidate,code_lines,modules,functions,largest_module\na1,1,1,1,2\n",
    );
    let ran = project.run(&arguments);
    assert_eq!(ran.code, 3);
    assert!(
        ran.stderr.contains("f.csv:2: the largest module"),
        "{}",
        ran.stderr
    );
}

#[test]
fn figures_are_the_same_bytes_each_time() {
    let project = Project::new();
    project.write("v.csv", &cohort().replace("a1,a,", "a1,<a> & \u{202e}b,"));
    project.write("f.csv", FACTS);
    let draw = |folder: &str| {
        let ran = project.run(&[
            "analyze",
            "--csv",
            "v.csv",
            "--facts",
            "f.csv",
            "--model-of",
            "a2=<a> & \u{202e}b",
            "--figures",
            folder,
        ]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let mut files: Vec<_> = std::fs::read_dir(project.path(folder))
            .expect("was made")
            .map(|entry| entry.expect("reads").path())
            .collect();
        files.sort();
        let of = |path: &std::path::PathBuf| {
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            (name, std::fs::read(path).expect("reads"))
        };
        files.iter().map(of).collect::<Vec<_>>()
    };
    let first = draw("one");
    let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "categories.png",
        "categories.svg",
        "code-lines.png",
        "code-lines.svg",
        "ranking.png",
        "ranking.svg",
    ];
    assert_eq!(names, expected);
    assert_eq!(first, draw("two"));
    for (name, bytes) in &first {
        if name.ends_with(".png") {
            assert!(
                bytes.starts_with(b"\x89PNG") && bytes.len() > 5000,
                "{name}"
            );
        } else {
            let text = String::from_utf8(bytes.clone()).expect("text");
            assert!(
                text.starts_with("<svg") && text.ends_with("</svg>\n"),
                "{name}"
            );
            assert!(
                !text.contains('\u{202e}') && !text.contains("<a>"),
                "{name}"
            );
        }
    }
}
