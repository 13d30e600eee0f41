//! A small document, changed in one place at a time.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::domain::document::Chapter;
use crate::domain::inventory::{Feature, State};
use crate::domain::place::Place;
use crate::domain::vocabulary::{Letters, Sense, Within};

/// A clause; `text` is its behaviour, after `syntax |` when it needs a syntax.
fn clause(id: &str, text: &str) -> String {
    let (syntax, text) = text.split_once(" | ").unwrap_or(("none", text));
    let relates = if id.starts_with(CONSISTENCY) {
        "\n**Relates** memory.a.b, tools.read.range"
    } else {
        ""
    };
    format!(
        "### {id} · ordinary\n**Syntax** {syntax}\n**Meaning** x\n**Behaviour** {text}\n**Channels** exit{relates}\n\n"
    )
}

fn markdown() -> Vec<(String, String)> {
    let clauses: [&[(&str, &str)]; 11] = [
        &[(
            "deliverable.env.a",
            "`HARNESS_HOME` | The state directory `HARNESS_HOME`.",
        )],
        &[
            ("tools.set.names", "`read`, `bash` | All tools."),
            (
                "tools.read.range",
                "`read(path, limit?)` | `limit` (default 2000). At most 10 lines.",
            ),
            (
                "tools.bash.result",
                "`bash(command)` | `timeout_s` (default 120), as `flags.settings.keys`.",
            ),
        ],
        &[(
            "commands.a.b",
            "`harness a --json` | Unknown: exit code 2, standard error says `unknown key: KEY`.",
        )],
        &[(
            "permissions.mode.plan",
            "As `--max-turns` says, default 50. The setting `max_turns`.",
        )],
        &[
            (
                "flags.limits.max-turns",
                "`--max-turns N` | Default is in the table.",
            ),
            (
                "flags.settings.keys",
                "The table:\n- `max_turns` integer from 1, 50 · `bash_timeout_s` integer 1–600, 120",
            ),
        ],
        &[(
            "in-session.compact.manual",
            "`/compact` | See `05-flags.md`. At most 10 lines.",
        )],
        &[("memory.a.b", "An `unknown key` gives exit code 2.")],
        &[("conventions.a.b", "The file `AGENTS.md`.")],
        &[("consistency.a.b", "Both hold.")],
        &[
            ("exit-codes.table.closed", "0, 2 | These."),
            ("exit-codes.success.answer", "0 | Success."),
            ("exit-codes.usage.error", "2 | Exit code 2."),
        ],
        &[("eval-api.a.b", "Nothing.")],
    ];
    CHAPTERS
        .iter()
        .zip(clauses)
        .enumerate()
        .map(|(idx, (slug, clauses))| {
            let body: String = clauses.iter().map(|(id, text)| clause(id, text)).collect();
            (
                format!("{:02}-{slug}.md", idx + 1),
                format!("# {slug}\n\n{body}"),
            )
        })
        .collect()
}

fn parse(files: &[(String, String)]) -> Document {
    let chapters = files
        .iter()
        .map(|(file, text)| Chapter::parse(Path::new(file), text).expect("parses"))
        .collect();
    Document { chapters }
}

fn place() -> Place {
    Place::new(Path::new("x.toml"), 7)
}

fn alias() -> Alias {
    Alias {
        concept: "compaction".into(),
        canonical: "/compact".into(),
        others: vec!["/compress".into(), "/summarize".into()],
        reason: "r".into(),
        letters: Letters::Exact,
        within: Within::Text,
        except: Vec::new(),
        place: place(),
    }
}

fn homonym(clauses: &[&str]) -> Homonym {
    let sense = |clause: &&str| Sense {
        sense: format!("as in {clause}"),
        clause: clause.parse().expect("an id"),
    };
    Homonym {
        word: "plan".into(),
        senses: clauses.iter().map(sense).collect(),
        place: place(),
    }
}

fn inventory(states: Vec<Vec<State>>) -> Inventory {
    let feature = |(idx, states): (usize, Vec<State>)| Feature {
        id: format!("x/tool/{idx}"),
        kind: "tool".into(),
        chapter: "tools".into(),
        name: "n".into(),
        invocation: "n()".into(),
        states,
        place: Place::new(Path::new("x.toml"), 10 * idx + 1),
    };
    Inventory {
        harness: "x".into(),
        version: String::new(),
        sources: Vec::new(),
        features: states.into_iter().enumerate().map(feature).collect(),
        file: "x.toml".into(),
    }
}

fn merged(id: &str) -> Vec<State> {
    vec![State::Clause(id.parse().expect("an id"))]
}

/// The findings as text, with everything else in order.
fn findings(files: &[(String, String)], change: impl FnOnce(&mut Words)) -> Vec<String> {
    let document = parse(files);
    let mut words = Words {
        aliases: vec![alias()],
        homonyms: vec![homonym(&["permissions.mode.plan", "tools.read.range"])],
        examples: Examples::new(),
        inventories: vec![inventory(vec![
            merged("tools.read.range"),
            vec![State::Pruned("appearance".into())],
        ])],
    };
    change(&mut words);
    let reasons = BTreeMap::from([("appearance".to_owned(), "looks".to_owned())]);
    check(&Material {
        document: &document,
        aliases: &words.aliases,
        homonyms: &words.homonyms,
        examples: &words.examples,
        inventories: &words.inventories,
        reasons: &reasons,
    })
    .iter()
    .map(ToString::to_string)
    .collect()
}

struct Words {
    aliases: Vec<Alias>,
    homonyms: Vec<Homonym>,
    examples: Examples,
    inventories: Vec<Inventory>,
}

#[test]
fn a_sound_document_has_no_findings() {
    assert_eq!(findings(&markdown(), |_| {}), Vec::<String>::new());
}

/// One change of one chapter gives the finding `expected`, which names that chapter's file and a line.
#[test]
fn each_fault_of_a_chapter_is_found_with_its_place() {
    let check = |file: &str, from: &str, to: &str, expected: &str| {
        let mut files = markdown();
        let (_, text) = files
            .iter_mut()
            .find(|(name, _)| name.starts_with(file))
            .expect("a file");
        assert!(text.contains(from), "{file} lacks {from:?}");
        *text = text.replace(from, to);
        let found = findings(&files, |_| {});
        assert!(
            found.iter().any(|one| one.contains(expected)),
            "{expected:?} is not among {found:?}"
        );
    };
    // Ids and references.
    check(
        "02",
        "### tools.bash.result",
        "### tools.read.range",
        "02-tools.md:15: tools.read.range is already the id of the clause at 02-tools.md:9",
    );
    check(
        "02",
        "### tools.read.range",
        "### tools.read.ranges",
        "09-consistency.md:3: consistency.a.b relates tools.read.range, which is no clause",
    );
    check(
        "02",
        "`flags.settings.keys`",
        "`flags.settings.key`",
        "02-tools.md:18: `flags.settings.key` is no clause",
    );
    check(
        "02",
        "`flags.settings.keys`",
        "`tools.bash.result`",
        "02-tools.md:18: `tools.bash.result` refers to itself",
    );
    check(
        "06",
        "`05-flags.md`",
        "`05-flag.md`",
        "06-in-session.md:6: 05-flag.md is no chapter",
    );
    check(
        "09",
        "memory.a.b, ",
        "",
        "09-consistency.md:3: consistency.a.b relates 1 clauses",
    );
    check(
        "09",
        "\n**Relates** memory.a.b, tools.read.range",
        "",
        "consistency.a.b relates 0 clauses",
    );
    check(
        "11",
        "**Channels** exit",
        "**Channels** exit\n**Relates** memory.a.b, commands.a.b",
        "only chapter consistency does",
    );
    // Names.
    check(
        "04",
        "`--max-turns`",
        "`--max-steps`",
        "04-permissions.md:6: `--max-steps` is a flag that no clause defines",
    );
    check(
        "11",
        "Nothing.",
        "A call `fetch(url)`.",
        "11-eval-api.md:6: `fetch` is called like a tool",
    );
    check(
        "11",
        "Nothing.",
        "By `/undo`.",
        "11-eval-api.md:6: `/undo` is an in-session command that no clause defines",
    );
    check(
        "04",
        "setting `max_turns`",
        "setting `max_turn`",
        "04-permissions.md:6: `max_turn` is a setting",
    );
    check(
        "11",
        "Nothing.",
        "`HARNESS_DIR`.",
        "11-eval-api.md:6: `HARNESS_DIR` is a variable",
    );
    check(
        "02",
        "**Syntax** `bash(command)`",
        "**Syntax** none",
        "no clause tools.bash.… gives the syntax `bash(…)`",
    );
    // Words.
    check(
        "11",
        "Nothing.",
        "As /compress does.",
        "11-eval-api.md:6: \"/compress\" is another name of \"/compact\"",
    );
    check(
        "06",
        "`/compact`",
        "`/squeeze`",
        "the canonical name \"/compact\" occurs nowhere",
    );
    // Facts stated twice.
    check(
        "04",
        "default 50",
        "default 60",
        "04-permissions.md:6: the default of max_turns is 60 here and 50 at 05-flags.md:13",
    );
    check(
        "02",
        "default 120",
        "default 30",
        "02-tools.md:18: the default of bash_timeout_s is 30 here and 120 at 05-flags.md:13",
    );
    check(
        "02",
        "At most 10 lines.",
        "At most 10 lines, more than 1,000 lines never.",
        "the limit of tools.read in line is 1000 here and 10",
    );
    check(
        "07",
        "exit code 2",
        "exit code 0",
        "07-memory.md:6: the exit code with the text \"unknown key\" is 0 here and 2 at 03-commands.md:6",
    );
    check(
        "07",
        "exit code 2",
        "exit code 9",
        "07-memory.md:6: exit code 9 is not in the table",
    );
    check(
        "10",
        "**Syntax** 2",
        "**Syntax** two",
        "10-exit-codes.md:3: no clause of chapter exit-codes has the syntax 2",
    );
}

#[test]
fn chapters_are_complete() {
    let mut files = markdown();
    files.remove(6);
    let found = findings(&files, |_| {});
    assert!(
        found
            .iter()
            .any(|one| one.contains("chapter 07-memory.md is missing")),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|one| one.contains("relates memory.a.b, which is no clause")),
        "{found:?}"
    );

    let mut files = markdown();
    files[6].0 = "07-memories.md".into();
    files[6].1 = files[6].1.replace("memory.a.b", "memories.a.b");
    let found = findings(&files, |_| {});
    assert!(
        found
            .iter()
            .any(|one| one.contains("07-memories is none of the chapters")),
        "{found:?}"
    );
}

#[test]
fn faults_of_words_are_found() {
    let check = |change: &dyn Fn(&mut Words), expected: &str| {
        let found = findings(&markdown(), change);
        assert!(
            found.iter().any(|one| one.contains(expected)),
            "{expected:?} is not among {found:?}"
        );
    };
    check(
        &|w| w.homonyms = vec![homonym(&["tools.read.range"])],
        "x.toml:7: \"plan\" has 1 senses",
    );
    check(
        &|w| w.homonyms = vec![homonym(&["tools.read.range", "tools.read.range"])],
        "two senses name",
    );
    check(
        &|w| w.homonyms = vec![homonym(&["tools.read.range", "tools.read.absent"])],
        "is no clause",
    );
    check(
        &|w| w.aliases.push(alias()),
        "\"/compress\" is listed twice",
    );
    check(
        &|w| w.aliases[0].others.push("/compact".into()),
        "is the canonical name",
    );
    check(
        &|w| w.aliases[0].except = merged_ids("tools.read.range"),
        "has none of the names",
    );
    check(
        &|w| drop(w.examples.insert("/compat".into(), "r".into())),
        "\"/compat\" of pipeline/document.toml is in no code span",
    );
}

fn merged_ids(id: &str) -> Vec<crate::domain::clause::ClauseId> {
    vec![id.parse().expect("an id")]
}

#[test]
fn an_exception_holds_for_its_clause_only() {
    let mut files = markdown();
    files[10].1 = files[10].1.replace("Nothing.", "As `/compress`.");
    let excepted = |words: &mut Words| words.aliases[0].except = merged_ids("eval-api.a.b");
    let known = |words: &mut Words| {
        excepted(words);
        words.examples.insert("/compress".into(), "r".into());
    };
    assert_eq!(findings(&files, known), Vec::<String>::new());
    files[9].1 = files[9].1.replace("Success.", "Also /compress.");
    let found = findings(&files, known);
    assert!(
        found[0].contains("10-exit-codes.md") && found.len() == 1,
        "{found:?}"
    );
}

#[test]
fn every_feature_ends_in_one_state() {
    let check = |states: Vec<Vec<State>>, expected: &str| {
        let found = findings(&markdown(), |words| {
            words.inventories = vec![inventory(states)]
        });
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(expected), "{expected:?} is not {found:?}");
    };
    let split = |ids: &[&str]| {
        vec![State::Clauses(
            ids.iter().map(|id| id.parse().expect("an id")).collect(),
        )]
    };
    check(
        vec![vec![], merged("tools.read.range"), vec![]],
        "x.toml:1: 2 of 3 features have no state (clause, clauses or pruned): x/tool/0 (line 1), x/tool/2 (line 21)",
    );
    check(
        vec![vec![State::Pruned("boring".into())]],
        "x.toml:1: x/tool/0: \"boring\" is no reason: use appearance",
    );
    check(
        vec![merged("tools.read.absent")],
        "`tools.read.absent` is no clause",
    );
    check(
        vec![split(&["tools.read.range"])],
        "`clauses` names fewer than two",
    );
    check(
        vec![split(&[
            "tools.read.range",
            "tools.bash.result",
            "tools.read.range",
        ])],
        "names a clause twice",
    );
    check(
        vec![
            [
                merged("tools.read.range"),
                vec![State::Pruned("appearance".into())],
            ]
            .concat(),
        ],
        "has several states",
    );
    check(vec![vec![]; 9], "x/tool/4 (line 41), …");
}

#[test]
fn words_stand_by_themselves() {
    let check = |text: &str, word: &str, letters: Letters, expected: bool| {
        assert_eq!(
            words::contains(text, word, letters),
            expected,
            "{word} in {text}"
        );
    };
    use Letters::{AnyCase, Exact};
    check("as `/new` does", "/new", Exact, true);
    check("src/new", "/new", Exact, false);
    check("/newer and /new-chat", "/new", Exact, false);
    check("</summary>", "/summary", Exact, false);
    check("--timeout-s", "--timeout", Exact, false);
    check("--timeout=5", "--timeout", Exact, true);
    check("The Yolo mode", "yolo", AnyCase, true);
    check("The Yolo mode", "yolo", Exact, false);
    check("/yolo", "yolo", Exact, true);
    check("in .cursorrules.", ".cursorrules", Exact, true);
    check("precursor", "cursor", Exact, false);
}
