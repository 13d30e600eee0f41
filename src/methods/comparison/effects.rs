//! What calls change or ask outside of the program, and what conditions look at before, whatever the language.
//!
//! Only names of the languages' own libraries are known, so that two harnesses mean the same by them.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::syntax::last;

/// A class of effects → the functions that have it. Where a name is general, what it belongs to stands in front.
const EFFECTS: &[(&str, &[&str])] = &[
    (
        "writes a file",
        &[
            "write_text",
            "write_bytes",
            "json.dump",
            "writeFile",
            "writeFileSync",
            "appendFile",
            "appendFileSync",
            "createWriteStream",
        ],
    ),
    (
        "removes",
        &[
            "unlink",
            "unlinkSync",
            "rmtree",
            "rmdir",
            "rmdirSync",
            "rmSync",
            "os.remove",
            "fs.rm",
        ],
    ),
    (
        "moves or copies",
        &[
            "os.replace",
            "rename",
            "renameSync",
            "copytree",
            "copyfile",
            "copy2",
            "copyFile",
            "copyFileSync",
            "shutil.move",
            "shutil.copy",
        ],
    ),
    (
        "makes a directory",
        &["mkdir", "makedirs", "mkdirSync", "mkdtemp"],
    ),
    (
        "starts a process",
        &[
            "Popen",
            "check_output",
            "create_subprocess_exec",
            "create_subprocess_shell",
            "subprocess.run",
            "subprocess.call",
            "spawn",
            "spawnSync",
            "execFile",
            "execSync",
            "child_process.exec",
        ],
    ),
    (
        "ends a process",
        &["kill", "killpg", "terminate", "send_signal"],
    ),
    (
        "opens a connection",
        &[
            "urlopen",
            "HTTPConnection",
            "HTTPSConnection",
            "fetch",
            "requests.post",
            "client.post",
            "session.post",
            "completions.create",
        ],
    ),
];

/// What a condition looks at → parts of the names that say so, without `_` and in lower case.
const LOOKS: &[(&str, &[&str])] = &[
    (
        "whether it exists",
        &["exists", "isfile", "notfound", "enoent"],
    ),
    ("whether it is a directory", &["isdir"]),
    ("links", &["symlink", "islink", "realpath"]),
    (
        "whether it lies inside",
        &["relativeto", "commonpath", "within", "inside", "outside"],
    ),
    ("the size", &["stsize", "getsize", "bytelength", "toolarge"]),
    ("the time of change", &["mtime"]),
    ("whether it is binary", &["binary"]),
    ("whether it is ignored", &["ignore"]),
    (
        "whether it is protected",
        &["protect", "sensitive", "readonly"],
    ),
    ("permission", &["permi", "approv", "allowed", "denied"]),
    (
        "whether it is a terminal",
        &["isatty", "istty", "interactive"],
    ),
    ("interruption", &["cancel", "abort", "interrupt"]),
    (
        "whether it still runs",
        &["returncode", "isalive", "isrunning", "exitcode", "poll"],
    ),
    ("a checksum", &["digest", "hash", "checksum"]),
];

/// The class of the effect that a call has; `callee` is the whole name, as written.
pub(super) fn effect(callee: &str) -> Option<&'static str> {
    let is_meant = |name: &&str| match name.contains('.') {
        true => callee == *name || callee.ends_with(&format!(".{name}")),
        false => last(callee) == *name,
    };
    let class = EFFECTS
        .iter()
        .find(|(_, names)| names.iter().any(&is_meant));
    class.map(|(class, _)| *class)
}

/// What the conditions look at that are passed before a call in its function: those that it stands in, and those whose
/// branch leaves off.
pub(super) fn looks_before<'n, 's>(
    call: Node<'n>,
    text: &dyn Fn(Node<'n>) -> &'s str,
    leaves: &dyn Fn(Node<'n>) -> bool,
) -> BTreeSet<&'static str> {
    let of_condition = |branch: Node<'n>| {
        let condition = branch.child_by_field_name("condition");
        condition.map_or_else(Vec::new, |condition| looks(text(condition)))
    };
    let mut before = BTreeSet::new();
    let mut inner = call;
    while let Some(outer) = inner.parent() {
        match outer.kind() {
            "if_statement" | "elif_clause" | "while_statement" => {
                before.extend(of_condition(outer))
            }
            "block" | "statement_block" => {
                let mut cursor = outer.walk();
                for earlier in outer.named_children(&mut cursor) {
                    if earlier.id() == inner.id() {
                        break;
                    }
                    let body = earlier.child_by_field_name("consequence");
                    if earlier.kind() == "if_statement" && body.is_some_and(leaves) {
                        before.extend(of_condition(earlier));
                    }
                }
            }
            kind if kind.contains("function")
                || kind.contains("method")
                || kind.contains("class") =>
            {
                break;
            }
            _ => {}
        }
        inner = outer;
    }
    before
}

/// What a condition, or a longer piece of source, looks at, in the order of the table.
pub(super) fn looks(condition: &str) -> Vec<&'static str> {
    let names: Vec<String> = condition
        .split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        .map(|name| name.replace('_', "").to_lowercase())
        .collect();
    let has = |part: &&str| names.iter().any(|name| name.contains(*part));
    LOOKS
        .iter()
        .filter(|(_, parts)| parts.iter().any(&has))
        .map(|(look, _)| *look)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_are_known_by_the_names_of_libraries() {
        let check = |callee: &str, expected: Option<&str>| {
            assert_eq!(effect(callee), expected, "{callee}");
        };
        check("path.write_text", Some("writes a file"));
        check("os.remove", Some("removes"));
        check("items.remove", None);
        check("subprocess.run", Some("starts a process"));
        check("self.run", None);
        check("text.replace", None);
        check("fs.mkdirSync", Some("makes a directory"));
    }

    #[test]
    fn a_condition_tells_what_it_looks_at() {
        let check = |condition: &str, expected: &[&str]| {
            assert_eq!(looks(condition), expected, "{condition}");
        };
        check("not path.exists()", &["whether it exists"]);
        check(
            "os.path.isdir(p) or p.stat().st_size > 10",
            &["whether it is a directory", "the size"],
        );
        check(
            "(await fs.stat(p)).isDirectory()",
            &["whether it is a directory"],
        );
        check("x is None", &[]);
    }
}
