//! Shards that are broken or made up, and machines that are not as planned: each is refused by name, and no byte of the
//! merged run comes from them.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use doc2harness::domain::shard::ShardId;
use doc2harness::storage::plans::StoredPlan;

use super::{N_UNITS, Recorded, files};

/// What is done to a sealed attempt, and what must be said of it.
type Fault = (&'static str, fn(&Path), &'static str);

const FAULTS: &[Fault] = &[
    (
        "a torn line",
        |at| edit(at, "outcomes.jsonl", |text| text.trim_end().to_owned()),
        "is torn",
    ),
    (
        "a line of something else",
        |at| edit(at, "outcomes.jsonl", |text| format!("{{}}\n{text}")),
        "outcomes.jsonl:1: ",
    ),
    (
        "a line of 2 MB without an end",
        |at| {
            edit(at, "outcomes.jsonl", |text| {
                format!("{text}{}", "x".repeat(2 << 20))
            })
        },
        "bytes long",
    ),
    (
        "a unit twice",
        |at| {
            edit(at, "outcomes.jsonl", |text| {
                format!("{text}{}\n", text.lines().next().expect("a line"))
            })
        },
        "is there twice",
    ),
    (
        "a foreign unit",
        |at| {
            edit(at, "outcomes.jsonl", |text| {
                text.replacen("headless/exit", "headless/other", 1)
            })
        },
        "is no unit of shard 2/2",
    ),
    (
        "a path for a digest",
        |at| evidence(at, "../../../../etc/passwd"),
        "is no digest",
    ),
    (
        "a pass without evidence",
        |at| evidence(at, ""),
        "without evidence",
    ),
    (
        "another outcome under the seal",
        |at| edit(at, "outcomes.jsonl", turned),
        "does not seal",
    ),
    (
        "another plan",
        |at| edit(at, "claim.json", |text| changed(text, "\"plan\": \"")),
        "claim.json: the plan is",
    ),
    (
        "another version",
        |at| {
            edit(at, "claim.json", |text| {
                changed(text, "\"tool_version\": \"")
            })
        },
        "the version of pipeline is",
    ),
    (
        "another build",
        |at| edit(at, "claim.json", |text| changed(text, "\"build\": \"")),
        "the build of pipeline is",
    ),
    (
        "an older format",
        |at| {
            edit(at, "claim.json", |text| {
                text.replace("\"format\": 2", "\"format\": 1")
                    .replace("\"build\"", "\"built\"")
            })
        },
        "plan anew with this one: pipeline plan",
    ),
    (
        "an image where the plan has none",
        |at| {
            edit(at, "claim.json", |text| {
                text.replace("\"image\": null", "\"image\": \"sha256:0\"")
            })
        },
        "the image is sha256:0, the plan has none",
    ),
    (
        "another suite",
        |at| edit(at, "claim.json", |text| changed(text, "\"suite\": \"")),
        "the suite is",
    ),
    (
        "another candidate",
        |at| edit(at, "claim.json", |text| changed(text, "\"leaky\": \"")),
        "the candidate leaky is",
    ),
    (
        "another sandbox",
        |at| edit(at, "claim.json", |text| changed(text, "\"sandbox\": \"")),
        "the sandbox is",
    ),
    (
        "a shard of another number",
        |at| edit(at, "claim.json", |text| text.replace("\"2/2\"", "\"2/3\"")),
        "a plan of 2",
    ),
    (
        "a name that is a path",
        |at| {
            edit(at, "claim.json", |text| {
                text.replace("\"attempt\": \"0000", "\"attempt\": \"../.")
            })
        },
        "names no attempt",
    ),
    (
        "no claim",
        |at| std::fs::remove_file(at.join("claim.json")).expect("removes"),
        "claim.json: No such file",
    ),
    (
        "a claim without an end",
        |at| std::fs::write(at.join("claim.json"), vec![b' '; 2 << 20]).expect("writes"),
        "bytes long",
    ),
    (
        "a linked log",
        |at| linked(at, "outcomes.jsonl"),
        "outcomes.jsonl: is a link",
    ),
    (
        "a linked claim",
        |at| linked(at, "claim.json"),
        "claim.json: is a link",
    ),
    (
        "a linked folder of evidence",
        |at| linked(at, "evidence"),
        "evidence: is a link",
    ),
    (
        "a linked attempt",
        |at| linked(at.parent().expect("is below"), &name(at)),
        "is a link",
    ),
    ("a pipe for a log", pipe, "is no plain file"),
    (
        "other evidence",
        |at| std::fs::write(first(at), packed(b"{}")).expect("writes"),
        "does not have this digest",
    ),
    (
        "evidence that is no archive",
        |at| std::fs::write(first(at), "x").expect("writes"),
        "dropped",
    ),
    (
        "evidence with more behind it",
        |at| {
            let path = first(at);
            let mut bytes = std::fs::read(&path).expect("reads");
            bytes.extend([0; 9]);
            // Others may have the same file.
            std::fs::remove_file(&path).expect("removes");
            std::fs::write(&path, bytes).expect("writes");
        },
        "goes on behind its content",
    ),
    (
        "something else that has its digest",
        |at| {
            const OF_BRACES: &str =
                "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
            let shelf = at.join("evidence/44");
            std::fs::create_dir_all(&shelf).expect("makes");
            let path = shelf.join(format!("{OF_BRACES}.json.gz"));
            std::fs::write(path, packed(b"{}")).expect("writes");
            std::fs::remove_file(at.join("seal.json")).expect("removes");
            evidence(at, OF_BRACES);
        },
        "missing field",
    ),
    (
        "codes for the terminal",
        |at| {
            edit(at, "claim.json", |text| {
                text.replace(
                    "\"tool_version\": \"",
                    "\"tool_version\": \"\\u001b]0;owned\\u0007",
                )
            })
        },
        "the version of pipeline is ␛]0;owned␇",
    ),
    (
        "no evidence",
        |at| std::fs::remove_file(first(at)).expect("removes"),
        "is not there",
    ),
    (
        "linked evidence",
        |at| linked(first(at).parent().expect("is below"), &name(&first(at))),
        "dropped",
    ),
];

fn edit(folder: &Path, file: &str, change: impl Fn(&str) -> String) {
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).expect("reads");
    let new = change(&text);
    assert_ne!(new, text, "the edit changes something");
    std::fs::write(path, new).expect("writes");
}

/// Another digest in the line of a pass, or none.
fn evidence(folder: &Path, digest: &str) {
    edit(folder, "outcomes.jsonl", |text| {
        let line = text
            .lines()
            .find(|line| line.contains("\"passed\""))
            .expect("a pass");
        let (head, rest) = line.split_once("\"evidence\":\"").expect("evidence");
        let (_, tail) = rest.split_once('"').expect("is a text");
        let value = match digest {
            "" => "null".to_owned(),
            digest => format!("\"{digest}\""),
        };
        text.replace(line, &format!("{head}\"evidence\":{value}{tail}"))
    });
}

fn turned(text: &str) -> String {
    text.replacen("\"duration_ms\":", "\"duration_ms\":1", 1)
}

/// The value behind `key` with another last character.
fn changed(text: &str, key: &str) -> String {
    let (head, rest) = text.split_once(key).expect("the key is there");
    let (value, tail) = rest.split_once('"').expect("is a text");
    let (kept, last) = value.split_at(value.len() - 1);
    let other = if last == "0" { "1" } else { "0" };
    format!("{head}{key}{kept}{other}\"{tail}")
}

/// Moves something away and links to it instead.
fn linked(folder: &Path, name: &str) {
    let data = folder.ancestors().find(|above| above.ends_with("data"));
    let away = data.expect("is below").join(format!("away-{name}"));
    let path = folder.join(name);
    std::fs::rename(&path, &away)
        .or_else(|_| std::fs::copy(&path, &away).and_then(|_| std::fs::remove_file(&path)))
        .expect("moves");
    symlink(&away, &path).expect("links");
}

fn pipe(folder: &Path) {
    std::fs::remove_file(folder.join("outcomes.jsonl")).expect("removes");
    let made = std::process::Command::new("mkfifo")
        .arg(folder.join("outcomes.jsonl"))
        .status();
    assert!(made.expect("starts").success());
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).expect("packs");
    packer.finish().expect("packs")
}

/// Some evidence of an attempt.
fn first(folder: &Path) -> std::path::PathBuf {
    let mut found: Vec<String> = files(&folder.join("evidence")).into_keys().collect();
    found.sort();
    folder.join("evidence").join(&found[0])
}

fn name(path: &Path) -> String {
    let name = path.file_name().expect("has a name");
    name.to_string_lossy().into_owned()
}

#[test]
fn what_is_broken_or_made_up_is_refused_by_name_and_changes_nothing() {
    let recorded = Recorded::new();
    let project = &recorded.project;
    let (plan, file) = recorded.plan(2);
    let [one, two] = [1, 2].map(|index| ShardId::new(index, 2).expect("a shard"));
    recorded.sealed(&plan, one, 1);
    let runs = project.path("data/runs");
    for (what, spoil, said) in FAULTS {
        let spoiled = recorded.sealed(&plan, two, 2);
        spoil(&spoiled);
        // Alone it is as if it were not there.
        let before = files(&runs);
        let ran = project.run(&["merge", &file]);
        assert_eq!(ran.code, 3, "{what}: {}{}", ran.stdout, ran.stderr);
        assert!(
            ran.stdout.contains(said),
            "{what}: {said:?} is not in:\n{}",
            ran.stdout
        );
        assert!(
            ran.stdout.contains("shards to run again: 2 "),
            "{what}: {}",
            ran.stdout
        );
        assert!(files(&runs) == before, "{what}: something was written");
        // Beside a good one it changes no byte.
        let good = recorded.sealed(&plan, two, 3);
        let merged = recorded.merged_like_one(&file, &[]);
        assert_eq!(merged["missing"], serde_json::json!([]), "{what}");
        let with = files(&runs.join("r"));
        remove(&spoiled);
        recorded.merged_like_one(&file, &[]);
        let without = files(&runs.join("r"));
        let same = |name: &str| with[name] == without[name];
        assert!(same("outcomes.jsonl") && same("plan.json"), "{what}");
        remove(&good);
        remove(&runs.join("r"));
        for entry in std::fs::read_dir(project.path("data"))
            .expect("reads")
            .flatten()
        {
            if name(&entry.path()).starts_with("away-") {
                let _ = std::fs::remove_dir_all(entry.path());
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

fn remove(path: &Path) {
    if path.is_symlink() {
        std::fs::remove_file(path).expect("removes");
    } else {
        std::fs::remove_dir_all(path).expect("removes");
    }
}

#[test]
fn a_machine_that_is_not_as_planned_never_runs_the_shard() {
    let recorded = Recorded::new();
    let project = &recorded.project;
    let (plan, file) = recorded.plan(2);
    let shards = project.path("data/shards");
    let never = |file: &str, said: &str| {
        let ran = project.run(&["evaluate", "--plan", file, "--shard", "1/2"]);
        assert_eq!(ran.code, 78, "{}{}", ran.stdout, ran.stderr);
        assert!(
            ran.stderr.contains(said),
            "{said:?} is not in:\n{}",
            ran.stderr
        );
        assert!(!shards.exists(), "nothing was begun");
    };
    let candidate = &plan.units()[plan.places(ShardId::new(1, 2).expect("a shard"))[0]].candidate;
    let install = project.path(&format!("candidates/{candidate}/install.sh"));
    let text = std::fs::read_to_string(&install).expect("reads");
    std::fs::write(&install, format!("{text}# changed\n")).expect("writes");
    never(&file, &format!("the candidate {candidate} is"));
    std::fs::write(&install, text).expect("writes");
    let case = project.path("cases/headless/exit.toml");
    let text = std::fs::read_to_string(&case).expect("reads");
    std::fs::write(&case, format!("{text}# changed\n")).expect("writes");
    never(&file, "headless/exit is not as it was planned");
    std::fs::write(&case, text).expect("writes");
    let newer = edited(&file, &plan, "\"tool_version\":\"", "\"tool_version\":\"9");
    never(&newer, "the version of pipeline is");
    let build = plan.plan.build.as_ref().expect("one build runs it");
    let other = edited(&file, &plan, build, "build-id:0");
    never(
        &other,
        &format!("the build of pipeline is {build}, the plan has build-id:0"),
    );

    let older = edited(&file, &plan, "{\"format\":2,", "{\"format\":1,");
    let ran = project.run(&["merge", &older]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let what_to_type = "plan anew with this one: pipeline plan";
    assert!(ran.stderr.contains(what_to_type), "{}", ran.stderr);

    for (shard, code) in [("3/2", 2), ("1/3", 2), ("0/2", 2)] {
        let ran = project.run(&["evaluate", "--plan", &file, "--shard", shard]);
        assert_eq!(ran.code, code, "{shard}: {}", ran.stderr);
    }
    let elsewhere = edited(&file, &plan, "\"run\":\"r\"", "\"run\":\"../r\"");
    let ran = project.run(&["merge", &elsewhere]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let twice = edited(&file, &plan, "\"shards\":[[", "\"shards\":[[0,0,");
    let ran = project.run(&["evaluate", "--plan", &twice, "--shard", "1/2"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    // A disk that cannot be written may be mended.
    let wrong = project.write("no-folder", "");
    let command = ["evaluate", "--plan", &file, "--shard", "1/2", "--shards"];
    let ran = project.run(&[&command[..], &[wrong.to_str().expect("text")]].concat());
    assert_eq!(ran.code, 75, "{}", ran.stderr);
    assert_eq!(plan.units().len(), N_UNITS);
}

/// A copy of the plan's file with one edit.
pub(super) fn edited(file: &str, plan: &StoredPlan, from: &str, to: &str) -> String {
    let text = String::from_utf8(plan.plan.bytes()).expect("text");
    assert!(text.contains(from));
    let other = format!("{file}.edited");
    std::fs::write(&other, text.replacen(from, to, 1)).expect("writes");
    other
}
