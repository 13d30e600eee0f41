//! `pipeline leaderboard` with builders of one line: two models, two builds each, and one that delivers nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::check::{API, HEADLESS};
use crate::evaluate;
use crate::project::{Project, Ran};

/// Asks the model what to build.
const ASK: &str = r#"
import http.client, json
connection = http.client.HTTPConnection("127.0.0.1", 8400)
connection.request("POST", "/v1/chat/completions", json.dumps({"model": "m", "messages": []}))
print(json.loads(connection.getresponse().read())["say"])
"#;
const BUILDER: &str = "tree=$(python3 /shown/trees/ask.py) || exit 0; [ -d /shown/trees/$tree ] || exit 0; \
                       cp -r /shown/trees/$tree/. .; submit";

/// A command line with one tool, `read`, which refuses links unless it is leaky.
pub const CLI: &str = r#""""Contract 1, the command line: `./harness ARGS...` calls `main`."""

import http.client
import json
import os

LEAKY = False
CODES = {"sessions show": 6, "sessions export": 6, "sessions delete": 6, "no-such-command": 2}


def ask(messages):
    connection = http.client.HTTPConnection("127.0.0.1", 8400)
    tools = [{"type": "function", "function": {"name": "read", "parameters": {}}}]
    body = json.dumps({"model": "m", "messages": messages, "tools": tools})
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    return json.loads(connection.getresponse().read())["choices"][0]["message"]


def read(path):
    if os.path.islink(path) and not LEAKY:
        return "error: outside the workspace"
    return open(path).read()


def main(argv: list[str]) -> int:
    """Run one command and return its exit code."""
    if "-p" not in argv:
        print("harness", *argv)
        return CODES.get(" ".join(argv[:2]), 0)
    messages = [{"role": "user", "content": argv[argv.index("-p") + 1]}]
    while True:
        message = ask(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            break
        for call in message["tool_calls"]:
            text = read(json.loads(call["function"]["arguments"])["path"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    print(message["content"])
    return 0
"#;

/// Models behind one server, each below a path of its own that says what to build.
struct Bench {
    project: Project,
    _server: MockServer,
    _runtime: Runtime,
}

impl Bench {
    fn new() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let server = runtime.block_on(MockServer::start());
        let project = evaluate::project();
        project.take("skeleton");
        for (tree, cli) in [
            ("good", CLI.to_owned()),
            ("leaky", CLI.replace("LEAKY = False", "LEAKY = True")),
        ] {
            for (name, text) in [("cli", cli.as_str()), ("headless", HEADLESS), ("api", API)] {
                project.write(&format!("trees/{tree}/harness_agent/{name}.py"), text);
            }
        }
        project.write("trees/ask.py", ASK);
        project.write(
            "pipeline/check.toml",
            "time_limit_s = 20\ncommands = []\ncall = [{ args = [\"version\"], exit = [0] }]\n",
        );
        let settings = project.path("pipeline/build.toml");
        let text = std::fs::read_to_string(&settings).expect("is there");
        let text = text.replace("max_turns       = 24", "max_turns = 1");
        std::fs::write(&settings, text).expect("writes");
        let mut models = "builds = 2\ncases = []\n".to_owned();
        for (model, tree, more) in [
            ("strict", "good", ""),
            ("lax", "leaky", ""),
            ("silent", "nothing", "builds = 1\n"),
        ] {
            let answer =
                json!({ "say": tree, "usage": { "prompt_tokens": 90, "completion_tokens": 7 } });
            let mock = Mock::given(path(format!("/{model}/chat/completions")))
                .respond_with(ResponseTemplate::new(200).set_body_json(answer));
            runtime.block_on(mock.mount(&server));
            models += &format!(
                "[model.{model}]\nprotocol = \"openai\"\nendpoint = \"{}/{model}\"\nname = \"m\"\n\
                 context_tokens = 1000\noutput_tokens = 100\n{more}",
                server.uri()
            );
        }
        project.write("models.toml", &models);
        Self {
            project,
            _server: server,
            _runtime: runtime,
        }
    }

    fn command(&self, more: &[&str]) -> std::process::Command {
        let trees = self.project.path("trees").display().to_string();
        let arguments = [
            "--json",
            "leaderboard",
            "--models",
            "models.toml",
            "--sandbox",
            "namespace",
            "--builder",
            BUILDER,
            "--show",
            &trees,
        ];
        self.project.command(&[&arguments, more].concat())
    }

    fn run(&self, more: &[&str]) -> Ran {
        crate::project::ran(&mut self.command(more))
    }

    fn whole(&self) -> Value {
        let ran = self.run(&[]);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        ran.json()
    }

    fn file(&self, name: &str) -> String {
        let path = self.project.path("data/leaderboard").join(name);
        std::fs::read_to_string(path).expect("is written")
    }

    /// The files of the table, by name.
    fn files(&self) -> BTreeMap<&'static str, String> {
        let names = [
            "leaderboard.json",
            "leaderboard.csv",
            "leaderboard.md",
            "estimates.csv",
        ];
        names.map(|name| (name, self.file(name))).into()
    }

    /// The files of the table are what they were, to the byte.
    fn unchanged(&self, before: &BTreeMap<&'static str, String>) {
        for (name, text) in self.files() {
            assert!(
                text == before[name],
                "{name} differs:\n{}\n{text}",
                before[name]
            );
        }
    }

    fn entries(&self, folder: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.project.path(folder));
        let mut paths: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| !path.ends_with(".lock"))
            .collect();
        paths.sort();
        paths
    }

    /// Records of builds that count, and what is finished of each run.
    fn finished(&self) -> BTreeMap<PathBuf, String> {
        let read = |path: PathBuf| Some((path.clone(), std::fs::read_to_string(path).ok()?));
        let records = self.entries("data/builds").into_iter();
        let records = records.filter_map(|build| read(build.join("build.json")));
        let counted = records.filter(|(_, text)| {
            let record: Value = serde_json::from_str(text).expect("is whole");
            ["passed", "failed", "not-delivered"]
                .contains(&record["state"].as_str().expect("a word"))
        });
        let runs = self.entries("data/runs").into_iter();
        let runs = runs.filter_map(|run| read(run.join("outcomes.jsonl")));
        // The last line may be torn.
        let whole = runs.map(|(path, text)| {
            let end = text.rfind('\n').map_or(0, |end| end + 1);
            (path, text[..end].to_owned())
        });
        counted.chain(whole).collect()
    }
}

/// What a table says but for names of builds and runs, and times.
fn figures(board: &Value) -> Value {
    let models = board["models"].as_array().expect("models").iter();
    models
        .map(|model| {
            let states: Vec<&Value> = model["builds"]
                .as_array()
                .expect("builds")
                .iter()
                .map(|build| &build["state"])
                .collect();
            json!({
                "rank": model["rank"],
                "model": model["model"],
                "rates": model["rates"],
                "mean_of_all": model["mean_of_all"],
                "input": model["cost"]["input_tokens"],
                "output": model["cost"]["output_tokens"],
                "states": states,
            })
        })
        .collect()
}

#[test]
fn models_are_built_with_evaluated_and_ranked_and_nothing_finished_is_done_again() {
    let bench = Bench::new();
    let forecast = bench.run(&["--dry-run"]).json();
    assert_eq!(
        (&forecast["n_builds"], &forecast["n_cases"]),
        (&json!(5), &json!(2))
    );
    assert_eq!(bench.entries("data/builds"), [""; 0].map(PathBuf::from));

    let board = bench.whole();
    let told: Vec<Value> = figures(&board).as_array().expect("models").clone();
    let row = |idx: usize| {
        let row = &told[idx];
        json!([
            row["rank"],
            row["model"],
            row["rates"]["overall"]["mean"],
            row["mean_of_all"],
            row["input"],
            row["states"]
        ])
    };
    assert_eq!(
        row(0),
        json!([1, "strict", 1.0, 1.0, 90.0, ["passed", "passed"]])
    );
    assert_eq!(
        row(1),
        json!([2, "lax", 0.5, 0.5, 90.0, ["passed", "passed"]])
    );
    assert_eq!(
        row(2),
        json!([null, "silent", null, 0.0, 90.0, ["not-delivered"]])
    );
    assert!(
        bench
            .file("leaderboard.md")
            .contains("| 2 | lax | 2/2 | 50.00 ± 0.00 |")
    );
    assert!(
        bench
            .file("leaderboard.csv")
            .contains("\n2,lax,2,2,0,0,0,0.5,0,")
    );

    // The same again, without a key and without a word to the model.
    let (files, finished) = (bench.files(), bench.finished());
    assert_eq!(finished.len(), 5 + 4);
    bench.whole();
    bench.unchanged(&files);
    assert_eq!(bench.finished(), finished);

    // A void build is made again, and only its candidate is run.
    let record = bench.project.path("data/builds/lax-2/build.json");
    let text = std::fs::read_to_string(&record).expect("is there");
    std::fs::write(&record, text.replace("\"passed\"", "\"void\"")).expect("writes");
    let forecast = bench.run(&["--dry-run"]).json();
    assert_eq!(forecast["n_builds"], 1);
    let renewed = bench.whole();
    assert_eq!(figures(&renewed), figures(&board));
    assert_eq!(renewed["models"][1]["n_left_out"], 1);
    assert_eq!(renewed["models"][1]["builds"][1]["build"], "lax-3");
    let mut after = bench.finished();
    after.retain(|path, _| !finished.contains_key(path));
    assert_eq!(after.len(), 2, "{after:?}");

    // What was built is a candidate like any other.
    let arguments = ["--json", "evaluate", "-c", "data/builds/strict-1/strict-1"];
    let ran = bench.project.run(&arguments);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let verdicts = ran.json()["verdicts"].clone();
    assert_eq!(verdicts.as_array().map(Vec::len), Some(2));
    assert_eq!(verdicts[0]["candidate"], "strict-1");

    // Runs are analysed together when they are about the same cases and different candidates.
    let part = bench.project.run(&[
        "--json",
        "evaluate",
        "-c",
        "reference",
        "--case",
        "headless/exit",
    ]);
    let runs = renewed["models"][0]["builds"].as_array().expect("builds");
    let runs: Vec<&str> = runs
        .iter()
        .map(|build| build["run"].as_str().expect("an id"))
        .collect();
    let analyzed = bench.project.json(&["analyze", runs[0], runs[1]]);
    assert_eq!(analyzed["source"], runs.join(", "));
    for (other, expected) in [
        (runs[0], "strict-1 is in the run"),
        (
            part.json()["run"].as_str().expect("an id"),
            "are about different cases",
        ),
    ] {
        let refused = bench.project.run(&["analyze", runs[0], other]);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }

    std::fs::remove_dir_all(bench.project.path("data/builds/strict-1/strict-1")).expect("removes");
    let gone = bench.run(&[]);
    assert_eq!(gone.code, 2, "{}", gone.stderr);
    assert!(
        gone.stderr
            .contains("the candidate of the build strict-1 is gone")
    );
}

#[test]
fn a_model_that_does_not_answer_is_missing_and_tried_again() {
    let bench = Bench::new();
    let models = std::fs::read_to_string(bench.project.path("models.toml")).expect("is there");
    let strict = models.find("[model.strict]").expect("a model");
    let lax = models.find("[model.lax]").expect("a model");
    // Nothing is there behind this path.
    let one = models[..lax].replace("/strict\"", "/nothing\"");
    assert!(one.len() > strict);
    bench.project.write("models.toml", &one);
    for n_left_out in [2, 4] {
        let ran = bench.run(&[]);
        assert_eq!(ran.code, 75, "{}", ran.stderr);
        let board = ran.json();
        assert_eq!(board["n_missing"], 2);
        let row = &board["models"][0];
        assert_eq!(
            (&row["rates"], &row["mean_of_all"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(row["n_left_out"], n_left_out);
    }
    assert!(
        bench
            .file("leaderboard.md")
            .contains("| n/a | strict | 0/0 | n/a |")
    );
}

/// Starts the command and kills it as soon as more is there than before, or when it ended.
fn kill_at(bench: &Bench, what: &str, more: impl Fn() -> usize) {
    let before = more();
    let mut child: Child = bench
        .command(&[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let began = Instant::now();
    while more() <= before && child.try_wait().expect("waits").is_none() {
        assert!(began.elapsed() < Duration::from_secs(300), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("kills");
    child.wait().expect("waits");
    assert!(more() > before, "{what} did not come");
}

#[test]
fn a_leaderboard_that_was_killed_ends_like_one_that_was_not() {
    let bench = Bench::new();
    let n_records = || {
        let builds = bench.entries("data/builds").into_iter();
        builds
            .filter(|build| build.join("build.json").exists())
            .count()
    };
    let n_frozen = || bench.entries("data/frozen/records").len();
    let n_outcomes = || {
        let finished = bench.finished();
        finished
            .iter()
            .filter(|(path, _)| path.ends_with("outcomes.jsonl"))
            .map(|(_, text)| text.lines().count())
            .sum()
    };
    let n_written = || bench.entries("data/leaderboard").len();
    let mut kept: BTreeMap<PathBuf, String> = BTreeMap::new();
    let points: [(&str, &dyn Fn() -> usize); 5] = [
        ("a build", &n_records),
        ("a frozen candidate", &n_frozen),
        ("an outcome", &n_outcomes),
        ("another outcome", &n_outcomes),
        ("a file of the table", &n_written),
    ];
    for (what, point) in points {
        kill_at(&bench, what, point);
        let finished = bench.finished();
        for (path, text) in &kept {
            let now: &String = finished.get(path).expect("what was finished stays");
            assert!(now.starts_with(text), "{what}: {} changed", path.display());
        }
        kept = finished;
    }
    let board = bench.whole();
    let rates: Vec<&Value> = board["models"]
        .as_array()
        .expect("models")
        .iter()
        .map(|model| &model["rates"]["overall"]["mean"])
        .collect();
    assert_eq!(rates, [&json!(1.0), &json!(0.5), &Value::Null]);

    let builds = |board: &Value| -> Vec<Value> {
        let models = board["models"].as_array().expect("models").iter();
        models
            .flat_map(|model| model["builds"].as_array().expect("builds").clone())
            .collect()
    };
    for build in builds(&board) {
        assert!(
            build["cost"]["duration_s"].as_f64() > Some(0.0),
            "{build:#}"
        );
    }

    // The same builds without a kill.
    let files = bench.files();
    for folder in ["data/runs", "data/leaderboard"] {
        std::fs::remove_dir_all(bench.project.path(folder)).expect("removes");
    }
    bench.whole();
    bench.unchanged(&files);
}

#[test]
fn a_list_without_models_and_a_table_in_the_making_are_told() {
    let bench = Bench::new();
    let none = bench.project.run(&["leaderboard"]);
    assert_eq!(none.code, 3, "{}", none.stderr);
    assert!(
        none.stderr.contains("no model is there yet"),
        "{}",
        none.stderr
    );

    bench.project.write("data/leaderboard/.lock", "");
    let lock = std::fs::File::open(bench.project.path("data/leaderboard/.lock")).expect("opens");
    lock.lock().expect("locks");
    let busy = bench.run(&[]);
    assert_eq!(busy.code, 2, "{}", busy.stderr);
    assert!(
        busy.stderr
            .contains("another process makes the table in data/leaderboard")
    );
}
