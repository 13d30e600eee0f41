//! `pipeline compare` on two small trees.

use crate::project::Project;

const TARGET: &str = "
READ_LIMIT = 1000


class Params(BaseModel):
    path: str
    line_offset: int = Field(default=1, ge=0)


class ReadFile(CallableTool2[Params]):
    name: str = 'ReadFile'

    def run(self, path):
        if is_binary(path):
            raise ToolError(f'binary file: {path}')
        raise ToolError('the flux capacitor has no charge')


def flags(parser):
    parser.add_argument('--max-steps')
    parser.add_argument('--yolo')
";

const CANDIDATE: &str = "
TOOL = {'name': 'read', 'parameters': {'properties': {
    'path': {'type': 'string'}, 'offset': {'type': 'integer', 'minimum': 1, 'default': 1}}}}


def read_file(path):
    'Read the lines of a file.'
";

fn project() -> Project {
    let project = Project::new();
    project.write("candidates/small/harness_agent/tools.py", CANDIDATE);
    project.write("elsewhere/big/tools/read.py", TARGET);
    project.write(
        "elsewhere/big/tests/test_read.py",
        "raise ToolError('only a test')\n",
    );
    project.write("elsewhere/big/big_agent-1.2.dist-info/METADATA", "");
    project
}

const ARGS: &[&str] = &[
    "compare",
    "--candidate",
    "small",
    "--target",
    "elsewhere/big",
];

#[test]
fn differences_are_traced_to_a_clause_or_said_to_be_not_derivable() {
    let project = project();
    let summary = project.json(ARGS);
    assert_eq!(summary["target"], "big-agent@1.2");
    let find = |what: &str| {
        let all = summary["differences"].as_array().expect("a list");
        let mut found = all
            .iter()
            .filter(|one| one["title"].as_str().expect("a text").contains(what));
        let first = found
            .next()
            .unwrap_or_else(|| panic!("{what}: {summary:#}"));
        assert!(found.next().is_none(), "{what} twice");
        first.clone()
    };
    let binary = find("binary file");
    assert_eq!(binary["side"], "missing");
    assert_eq!(binary["trace"]["clause"], "tools.read.binary");
    assert_eq!(binary["target"]["place"], "tools/read.py:15");
    assert_eq!(binary["module"], "tools.read");
    let flag = find("--max-steps");
    assert_eq!(flag["trace"]["clause"], "flags.limits.max-turns");
    let offset = find("read(offset)");
    assert_eq!(offset["side"], "differs");
    assert_eq!(
        offset["target"]["shown"],
        "ReadFile(line_offset): minimum 0"
    );
    assert_eq!(offset["candidate"]["shown"], "read(offset): minimum 1");
    assert_eq!(offset["candidate"]["place"], "harness_agent/tools.py:3");
    assert!(find("--yolo")["trace"].is_null());
    assert!(find("flux capacitor")["trace"].is_null());
    assert!(!summary.to_string().contains("only a test"));
}

#[test]
fn a_second_comparison_brings_nothing_new() {
    let project = project();
    let first = project.json(ARGS);
    assert_eq!(first["n_new"], first["n_traced"]);
    assert_ne!(first["n_new"], 0);
    let second = project.json(ARGS);
    assert_eq!(second["n_new"], 0);
    assert_eq!(second["differences"], first["differences"]);
}

#[test]
fn what_is_not_there_is_a_fault_of_the_words() {
    let project = project();
    let check = |args: &[&str], expected: &str| {
        let ran = project.run(args);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    };
    check(
        &[
            "compare",
            "--candidate",
            "none",
            "--target",
            "elsewhere/big",
        ],
        "no candidate none",
    );
    check(
        &["compare", "--candidate", "small", "--target", "nowhere"],
        "nowhere is no folder",
    );
    check(
        &["compare", "--candidate", "small", "--target", "pipeline"],
        "holds no file that ends in .py, .ts",
    );
}

#[test]
fn a_table_for_people_names_clause_and_place() {
    let project = project();
    let ran = project.run(ARGS);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let line = ran
        .stdout
        .lines()
        .find(|line| line.starts_with("tools.read.binary"))
        .unwrap_or_else(|| panic!("{}", ran.stdout));
    assert!(line.contains("tools/read.py:15"), "{line}");
    // Both places, where both sides have it.
    let both = ran
        .stdout
        .lines()
        .find(|line| line.contains("ReadFile(line_offset)"));
    let both = both.unwrap_or_else(|| panic!("{}", ran.stdout));
    assert!(both.contains("tools/read.py:7"), "{both}");
    assert!(both.ends_with("harness_agent/tools.py:3"), "{both}");
    assert!(!ran.stdout.contains("--yolo"), "{}", ran.stdout);
    let all = project.run(&[ARGS, &["--all"]].concat());
    assert!(all.stdout.contains("--yolo"), "{}", all.stdout);
}

#[test]
fn the_partition_is_shown_and_corrected_in_a_file_that_is_read_again() {
    let project = project();
    let shown = |project: &Project| {
        let ran = project.run(&[ARGS, &["--partition"]].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let mut lines = ran.stdout.lines();
        let of_run = lines.find(|line| line.ends_with("tools/read.py:13 ReadFile.run"));
        of_run
            .unwrap_or_else(|| panic!("{}", ran.stdout))
            .to_owned()
    };
    let calculated = shown(&project);
    assert!(calculated.contains("tools.read 0."), "{calculated}");
    let clauses = |project: &Project| {
        let summary = project.json(ARGS);
        let all = summary["differences"].as_array().expect("a list").clone();
        let traced = all.into_iter().filter(|one| !one["trace"].is_null());
        let clause = |one: serde_json::Value| one["trace"]["clause"].as_str().map(str::to_owned);
        traced.filter_map(clause).collect::<Vec<String>>()
    };
    assert!(clauses(&project).contains(&"tools.read.binary".to_owned()));
    project.write(
        "pipeline/partition.toml",
        "[[correction]]\nsource = \"big-agent\"\npath = \"tools/*.py\"\nunit = \"ReadFile.run\"\ngroups = []\n",
    );
    let corrected = shown(&project);
    assert!(corrected.contains("outside"), "{corrected}");
    assert!(corrected.contains("corrected"), "{corrected}");
    assert!(!clauses(&project).contains(&"tools.read.binary".to_owned()));
    project.write(
        "pipeline/partition.toml",
        "[[correction]]\npath = \"**\"\ngroups = [\"tools.telepathy\"]\n",
    );
    let ran = project.run(ARGS);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("tools.telepathy is no feature"),
        "{}",
        ran.stderr
    );
}

#[test]
fn text_of_others_cannot_move_the_cursor() {
    let project = project();
    project.write(
        "elsewhere/big/\u{1b}[31mred.py",
        "def read_file():\n    raise ToolError('no such file \u{202e} to read')\n",
    );
    let ran = project.run(&[ARGS, &["--all"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("␛[31mred.py"), "{}", ran.stdout);
    assert!(
        !ran.stdout.contains(['\u{1b}', '\u{202e}']),
        "{:?}",
        ran.stdout
    );
}

#[test]
fn a_mutant_is_compared_with_its_edits_made() {
    let project = project();
    project.write(
        "candidates/mutants/limit.toml",
        "title = \"t\"\nbreaks = [\"tools.read.range\"]\nof = \"small\"\n[[edit]]\n\
         file = \"harness_agent/tools.py\"\nfind = \"'minimum': 1\"\nreplace = \"'minimum': 7\"\n",
    );
    let args = &[
        "compare",
        "--candidate",
        "mutants/limit",
        "--target",
        "elsewhere/big",
    ];
    let summary = project.json(args);
    assert_eq!(summary["candidate"], "mutants/limit");
    assert!(
        summary.to_string().contains("read(offset): minimum 7"),
        "{summary:#}"
    );
}

#[test]
fn a_target_may_be_typescript() {
    let project = project();
    project.write(
        "elsewhere/node/tools/read.ts",
        "// Reads a file.\nexport class ReadFile {\n  run(path) {\n    if (isBinary(path)) {\n      \
         throw new ToolError(`binary file: ${path}`);\n    }\n  }\n}\n",
    );
    let args = &[
        "compare",
        "--candidate",
        "small",
        "--target",
        "elsewhere/node",
    ];
    let summary = project.json(args);
    let all = summary["differences"].as_array().expect("a list");
    let is_there = |one: &&serde_json::Value| one["target"]["place"] == "tools/read.ts:5";
    let binary = all
        .iter()
        .find(is_there)
        .unwrap_or_else(|| panic!("{summary:#}"));
    assert_eq!(binary["trace"]["clause"], "tools.read.binary");
}

const CITING: &str = r#"title = "binary files are not shown"
purpose = "A model is told."
clause = "tools.read.binary"
category = "file-operations"
scenario = "boundary"
origin = { method = "comparison", sources = ["big-agent@1.2:tools/read.py:16", "small@0.1:harness_agent/tools.py:7"] }

[[launch]]
route = "headless"
prompt = "nothing"

[[expect]]
channel = "exit"
equals = 0
"#;

#[test]
fn differences_are_held_against_places_of_cases_and_a_judged_sample() {
    let project = project();
    let judge = [ARGS, &["--judge"]].concat();
    let file = "cases/file-operations/binary.toml";
    project.write(file, &CITING.replace("big-agent", "other-agent"));
    let ran = project.run(&judge);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let expected = "no case cites a place of big-agent@1.2 together with small";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    project.write(file, CITING);
    let ran = project.run(&judge);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let is_waiting = |line: &&str| line.contains("tools.read.binary  tools/read.py:15");
    let n_waiting = ran.stdout.lines().filter(is_waiting).count();
    assert_eq!(n_waiting, 1, "{}", ran.stdout);
    let summary = project.json(&judge);
    let figures = &summary["judged"];
    assert_eq!(figures["n_places"], 1);
    let near = &figures["by_differences"];
    assert_eq!(
        (&near["n_listed"], &near["n_first"]),
        (&1.into(), &1.into())
    );
    assert_eq!(figures["by_functions"]["n_listed"], 1);
    assert_eq!(figures["surest"]["n_judged"], 0);
    let all = summary["differences"].as_array().expect("a list");
    let of_binary = |one: &&serde_json::Value| one["target"]["place"] == "tools/read.py:15";
    let id = all.iter().find(of_binary).expect("is listed")["id"].clone();
    let line =
        serde_json::json!({ "difference": id, "clause": "tools.read.binary", "right": true });
    project.write("data/comparison-judged.jsonl", &format!("{line}\n"));
    let figures = &project.json(&judge)["judged"];
    assert_eq!(figures["surest"]["n_right"], 1);
    assert_eq!(figures["by_lot"]["n_judged"], 1);
    project.write("data/comparison-judged.jsonl", "{}\n");
    let ran = project.run(&judge);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("comparison-judged.jsonl:1"),
        "{}",
        ran.stderr
    );
}

#[test]
fn functions_of_both_sides_are_shown_beside_each_other() {
    let project = project();
    project.write(
        "candidates/small/harness_agent/tools.py",
        "def is_binary(path):\n    'Whether a file is binary: a NUL byte in its content.'\n    return binary(path)\n",
    );
    let ran = project.run(&[ARGS, &["--functions"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut lines = ran.stdout.lines();
    let line = lines.find(|line| line.contains("tools/read.py:13 ReadFile.run"));
    let line = line.unwrap_or_else(|| panic!("{}", ran.stdout));
    assert!(line.contains("tools.read.binary"), "{line}");
    assert!(
        line.contains("harness_agent/tools.py:1 is_binary"),
        "{line}"
    );
}

#[test]
fn a_bundle_is_compared_module_by_module_without_packages_of_others() {
    let project = project();
    project.write(
        "elsewhere/bundle/cli.js",
        "#!/usr/bin/env node\n// node_modules/left/read.js\nfunction read(path) {\n  throw new Error(`binary file of \
         others: ${path}`);\n}\n\n// packages/core/src/tools/read-file.ts\nvar ReadFile = class extends Tool {\n  \
         run(path) {\n    throw new Error(`binary file: ${path}`);\n  }\n};\n// packages/core/src/x.ts\nvar x = 1;\n",
    );
    project.write(
        "elsewhere/bundle/package.json",
        r#"{"name": "@others/harness", "version": "3.1.0"}"#,
    );
    let args = &[
        "compare",
        "--candidate",
        "small",
        "--target",
        "elsewhere/bundle",
    ];
    let summary = project.json(args);
    assert_eq!(summary["target"], "harness@3.1.0");
    let all = summary["differences"].as_array().expect("a list");
    let binary = all.iter().find(|one| one["target"]["place"] == "cli.js:10");
    let binary = binary.unwrap_or_else(|| panic!("{summary:#}"));
    assert_eq!(
        binary["title"],
        "error not in the candidate: binary file: {}"
    );
    assert!(!summary.to_string().contains("of others"), "{summary:#}");
    let parts = summary["partition"].as_array().expect("a list");
    let is_method = |one: &&serde_json::Value| one["name"] == "ReadFile.run";
    let method = parts.iter().find(is_method).expect("is a unit");
    assert_eq!(method["place"], "cli.js:9");
}
