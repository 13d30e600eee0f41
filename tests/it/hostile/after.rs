//! What the host, the evidence and the reports look like when all attacks are over.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::project::Project;

/// What no attack may change.
#[derive(Debug, PartialEq, Eq)]
pub struct Host {
    files: BTreeMap<PathBuf, Vec<u8>>,
    kernel: Vec<String>,
}

impl Host {
    /// Reads the project but for what a run writes, and settings of the kernel.
    pub fn look(project: &Project) -> Self {
        let mut files = BTreeMap::new();
        for part in ["canary", "candidates", "cases", "pipeline"] {
            read_all(&project.path(part), &mut files);
        }
        let settings = ["core_pattern", "hostname", "domainname", "pid_max"];
        let kernel = settings
            .iter()
            .map(|name| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).expect("reads"))
            .collect();
        Host { files, kernel }
    }

    pub fn is_unchanged(&self, project: &Project) {
        assert!(
            *self == Self::look(project),
            "something of the host was changed"
        );
        // The sealed trees are what was delivered.
        let mut sealed = BTreeMap::new();
        read_all(&project.path("data/frozen"), &mut sealed);
        for (path, content) in &sealed {
            let name = path.file_name().expect("a name");
            let delivered = self
                .files
                .iter()
                .any(|(path, delivered)| path.file_name() == Some(name) && delivered == content);
            assert!(delivered, "{} is not as it was delivered", path.display());
        }
    }
}

fn read_all(path: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    let about = std::fs::symlink_metadata(path).expect("reads");
    if about.is_dir() {
        for entry in std::fs::read_dir(path).expect("reads") {
            read_all(&entry.expect("reads").path(), into);
        }
    } else {
        into.insert(path.to_path_buf(), std::fs::read(path).expect("reads"));
    }
}

/// No process, mount, control group or folder of the run with this process id is left.
pub fn nothing_is_left(project: &Project, pid: u32) {
    let folder = project.path("").display().to_string();
    let mine = std::fs::read_to_string("/proc/self/mountinfo").expect("reads");
    assert!(!mine.contains(&folder), "a mount is left");
    eventually("processes are left", || {
        // Every cell shows the candidate's tree, which lies in the project.
        let seeing = numbers("/proc").into_iter().filter(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/mountinfo"))
                .is_ok_and(|mounts| mounts.contains(&folder))
        });
        seeing.count() == 0
    });
    eventually("control groups are left", || {
        let found = std::process::Command::new("find")
            .args(["/sys/fs/cgroup", "-name", "doc2harness-*"])
            .output()
            .expect("finds");
        let alive = numbers("/proc");
        String::from_utf8_lossy(&found.stdout).lines().all(|path| {
            let maker = path
                .rsplit_once("doc2harness-")
                .and_then(|(_, maker)| maker.split('-').next());
            maker
                .and_then(|pid| pid.parse().ok())
                .is_none_or(|pid| alive.contains(&pid))
        })
    });
    let temporary = std::fs::read_dir(std::env::temp_dir()).expect("reads");
    let left: Vec<_> = temporary
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| {
            name.to_string_lossy()
                .starts_with(&format!("doc2harness-{pid}-"))
        })
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

fn numbers(folder: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).expect("reads").flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Nothing of the host is in what was stored.
pub fn evidence_lacks(project: &Project, secret: &str) {
    let mut files = BTreeMap::new();
    read_all(&project.path("data/runs"), &mut files);
    assert!(
        files
            .keys()
            .any(|path| path.extension().is_some_and(|end| end == "gz")),
        "no evidence"
    );
    for (path, content) in files {
        let mut text = Vec::new();
        if path.extension().is_some_and(|end| end == "gz") {
            flate2::read::GzDecoder::new(content.as_slice())
                .read_to_end(&mut text)
                .expect("unpacks");
        } else {
            text = content;
        }
        assert!(
            !String::from_utf8_lossy(&text).contains(secret),
            "{} holds the host's secret",
            path.display()
        );
    }
}

/// Neither the terminal nor a browser nor a reader of XML is told anything by a candidate.
pub fn everything_is_safe_to_read(project: &Project, sandbox: &str, attacks: &[(&str, &str)]) {
    let ran = project.run(&["report", "r"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    harmless("report", &ran.stdout);
    harmless("report's notes", &ran.stderr);
    let file = |name: &str| {
        std::fs::read_to_string(project.path(&format!("data/runs/r/report/{name}"))).expect("reads")
    };
    for name in ["report.html", "report.md", "report.json", "verdicts.csv"] {
        harmless(name, &file(name));
    }
    let page = file("report.html");
    for markup in ["<script>alert", "<img src=x", "href=\"javascript:"] {
        assert!(!page.contains(markup), "report.html holds {markup}");
    }
    nothing_active(&file("report.md"));
    let shown = project.run(&["show", "r"]);
    harmless("show", &shown.stdout);
    for (name, _) in attacks {
        for full in [&[][..], &["--full"]] {
            let arguments = [&["show", "r", "headless/1-attack", "-c", name], full].concat();
            let shown = project.run(&arguments);
            assert_eq!(shown.code, 0, "{}", shown.stderr);
            harmless(name, &shown.stdout);
        }
    }
    let junit = project.path("junit.xml");
    let ran = project.run(&[
        "evaluate",
        "--resume",
        "r",
        "--sandbox",
        sandbox,
        "--junit",
        &junit.display().to_string(),
    ]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    harmless("evaluate", &ran.stdout);
    harmless("evaluate's notes", &ran.stderr);
    let xml = std::fs::read_to_string(junit).expect("reads");
    harmless("junit.xml", &xml);
    assert!(!xml.contains("<script>"), "{xml}");
}

/// Whoever renders this Markdown gets no markup and no link of a candidate's.
fn nothing_active(markdown: &str) {
    use pulldown_cmark::{Event, Options, Parser, Tag};
    for event in Parser::new_ext(markdown, Options::all()) {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => panic!("markup: {text}"),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                assert!(!dest_url.contains(':'), "a link to {dest_url}");
            }
            _ => {}
        }
    }
}

/// No control character but tabs and ends of lines, and nothing that changes the direction of text.
pub fn harmless(name: &str, text: &str) {
    let is_bad = |c: &char| {
        let control = c.is_control() && !matches!(c, '\n' | '\t');
        control
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    if let Some(at) = text
        .char_indices()
        .find(|(_, c)| is_bad(c))
        .map(|(at, _)| at)
    {
        let around: String = text[..at]
            .chars()
            .rev()
            .take(60)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect();
        panic!("{name}: {:?} after {around:?}", text[at..].chars().next());
    }
}
