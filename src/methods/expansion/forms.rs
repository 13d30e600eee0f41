//! Operators of the variable *input form*: the same inspection, triggered by an input of another form.
//!
//! Where it can be, the path stays and what lies there changes, so that the assertion need not follow.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::case_text::CaseText;
use super::follow::{Follow, Scope};
use super::scenario::{Lies, PATH_PARAMETER, ScriptCall, assertion_texts, calls, lies};
use super::swap::{Swap, says};
use crate::domain::case::{Bindings, Case, Entry, Made};

/// A form, as `pipeline/expand.toml` names it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    pub name: String,
    pub make: Make,
    /// Completes the seed's title.
    pub title: String,
    /// One sentence: why the form matters.
    pub why: String,
    /// For `rename`: the new name, made of `{stem}` (`{STEM}` in capital letters) and `{ending}`.
    #[serde(default)]
    pub rename: String,
    /// For `large`: how often the content is repeated.
    #[serde(default)]
    pub times: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Make {
    /// The file lies elsewhere, and a link at its path leads to it.
    Link,
    /// The path goes through a link to the folder.
    FolderLink,
    /// Three links in a row.
    LinkChain,
    /// The link's target is written relative.
    RelativeLink,
    /// The link's target is written absolute.
    AbsoluteLink,
    DotDot,
    Absolute,
    TrailingSlash,
    Rename,
    HardLink,
    /// Only the reads before a change name the file in another way.
    ReadAbsolute,
    ReadDotDot,
    ReadLink,
    ReadFolderLink,
    Empty,
    Large,
}

/// How a place is reached from the workspace by a relative path, as `{outside}` → `../outside`.
pub type Relative = BTreeMap<String, String>;

/// Gives one input of a case another form. The error says why the form does not fit.
pub fn apply(
    form: &Form,
    relative: &Relative,
    case: &Case,
    text: &mut CaseText,
    input: &str,
) -> Result<Follow, String> {
    let at = lies(case, input);
    let path = Path::new(input);
    match form.make {
        Make::Link => match at {
            Lies::File(_) if path.is_placed() => {
                let name = free(case, &path.named("{stem}-link{ending}").base());
                text.set_entry(&name, &link(input));
                Ok(moved(text, input, &name))
            }
            Lies::File(entry) => {
                unseen(case, input)?;
                let aside = aside(case, text, &path, entry);
                text.set_entry(input, &link(&Path::new(&aside).base()));
                Ok(Follow::default())
            }
            _ => Err("no file lies at the path".to_owned()),
        },
        Make::HardLink => match at {
            Lies::File(entry) if !path.is_placed() => {
                unseen(case, input)?;
                let aside = aside(case, text, &path, entry);
                let made = Made {
                    hard_link: Some(aside),
                    ..Made::default()
                };
                text.set_entry(input, &Entry::Made(made));
                Ok(Follow::default())
            }
            _ => Err("no file of the workspace lies at the path".to_owned()),
        },
        Make::FolderLink => {
            let name = free(case, "linked");
            let (target, rest) = match at {
                Lies::File(_) if !path.is_placed() => {
                    (path.folder().unwrap_or(".").to_owned(), path.base())
                }
                Lies::Link { target } => {
                    let target = Path::new(target);
                    // A relative target counts from the link's own folder, the new link stands at the top.
                    let folder = match (target.folder(), path.folder()) {
                        (Some(folder), Some(own)) if !target.is_placed() => {
                            format!("{own}/{folder}")
                        }
                        (Some(folder), _) => folder.to_owned(),
                        (None, Some(own)) => own.to_owned(),
                        (None, None) => ".".to_owned(),
                    };
                    text.rename_entry(input, &name);
                    (folder, target.base())
                }
                Lies::Folder if !path.is_placed() => {
                    (input.trim_end_matches('/').to_owned(), String::new())
                }
                _ => return Err("neither a file, a link nor a folder lies at the path".to_owned()),
            };
            text.set_entry(&name, &link(&target));
            let new = if rest.is_empty() {
                name
            } else {
                format!("{name}/{rest}")
            };
            Ok(moved(text, input, &new))
        }
        Make::LinkChain => {
            let (place, end) = match at {
                Lies::Link { target } => (input.to_owned(), target.to_owned()),
                Lies::Beneath { link, target } => (link, target.to_owned()),
                Lies::File(entry) if !path.is_placed() => {
                    unseen(case, input)?;
                    let aside = aside(case, text, &path, entry);
                    (input.to_owned(), Path::new(&aside).base())
                }
                _ => return Err("neither a link nor a file lies at the path".to_owned()),
            };
            let first = free(case, &Path::new(&place).named("{stem}-hop-1{ending}").0);
            let second = free(case, &Path::new(&place).named("{stem}-hop-2{ending}").0);
            text.set_entry(&place, &link(&Path::new(&first).base()));
            text.set_entry(&first, &link(&Path::new(&second).base()));
            text.set_entry(&second, &link(&end));
            Ok(Follow::default())
        }
        Make::RelativeLink | Make::AbsoluteLink => {
            let (place, target) = match at {
                Lies::Link { target } => (input.to_owned(), target),
                Lies::Beneath { link, target } => (link, target),
                _ => return Err("no link lies at the path".to_owned()),
            };
            let target = if form.make == Make::RelativeLink {
                relative_target(relative, &place, target)?
            } else {
                absolute_target(&place, target)?
            };
            text.set_entry(&place, &link(&target));
            Ok(Follow::default())
        }
        Make::DotDot => {
            let new = if path.is_placed() {
                relative_target(relative, "", input)?
            } else {
                let turn = case
                    .fixture
                    .keys()
                    .filter_map(|key| key.split_once('/').map(|(first, _)| first))
                    .find(|first| !first.starts_with(['{', '.']) && !input.starts_with(*first));
                let turn = match turn {
                    Some(folder) => folder.to_owned(),
                    None => {
                        let name = free(case, "turn");
                        let made = Made {
                            dir: true,
                            ..Made::default()
                        };
                        text.set_entry(&name, &Entry::Made(made));
                        name
                    }
                };
                format!("{turn}/../{input}")
            };
            Ok(moved(text, input, &new))
        }
        Make::Absolute => {
            if path.is_placed() {
                return Err("the path is absolute already".to_owned());
            }
            Ok(moved(text, input, &format!("{{workspace}}/{input}")))
        }
        Make::TrailingSlash => {
            let leads_out = matches!(&at, Lies::Link { target } if target.starts_with("{outside}"));
            if input.ends_with('/') || !(at == Lies::Folder || leads_out) {
                return Err(
                    "neither a folder nor a link out of the workspace lies at the path".to_owned(),
                );
            }
            Ok(moved(text, input, &format!("{input}/")))
        }
        Make::ReadAbsolute | Make::ReadDotDot | Make::ReadLink | Make::ReadFolderLink => {
            read_as(form.make, case, text, input)
        }
        Make::Rename => rename(form, case, text, input),
        Make::Empty | Make::Large => resize(form, case, text, input),
    }
}

/// Whether the input has the form as it is.
pub fn has(form: &Form, case: &Case, input: &str) -> bool {
    let target = match lies(case, input) {
        Lies::Link { target } | Lies::Beneath { target, .. } => Some(target),
        _ => None,
    };
    match form.make {
        Make::RelativeLink => target.is_some_and(|target| !Path::new(target).is_placed()),
        Make::AbsoluteLink => target.is_some_and(|target| Path::new(target).is_placed()),
        Make::Absolute => Path::new(input).is_placed(),
        Make::TrailingSlash => input.ends_with('/'),
        _ => false,
    }
}

/// The file is read under one name and changed under the other.
fn read_as(make: Make, case: &Case, text: &mut CaseText, input: &str) -> Result<Follow, String> {
    let path = Path::new(input);
    if path.is_placed() || !matches!(lies(case, input), Lies::File(_)) {
        return Err("no file of the workspace lies at the path".to_owned());
    }
    let on_it: Vec<ScriptCall> = calls(case)
        .into_iter()
        .filter(|call| call.path() == Some(input))
        .collect();
    let is_changed = |call: &ScriptCall| ["write", "edit"].contains(&call.tool.as_str());
    let Some(last) = on_it.iter().rposition(is_changed) else {
        return Err("no call changes the file".to_owned());
    };
    let reads: Vec<&ScriptCall> = on_it[..last]
        .iter()
        .filter(|call| call.tool == "read")
        .collect();
    if reads.is_empty() {
        return Err("no call reads the file before one changes it".to_owned());
    }
    let other = match make {
        Make::ReadAbsolute => format!("{{workspace}}/{input}"),
        Make::ReadDotDot => {
            let folder = free(case, "turn");
            let made = Made {
                dir: true,
                ..Made::default()
            };
            text.set_entry(&folder, &Entry::Made(made));
            format!("{folder}/../{input}")
        }
        Make::ReadLink => {
            let name = free(case, &path.named("{stem}-link{ending}").0);
            text.set_entry(&name, &link(&path.base()));
            name
        }
        _ => {
            let name = free(case, "linked");
            text.set_entry(&name, &link(path.folder().unwrap_or(".")));
            format!("{name}/{}", path.base())
        }
    };
    for read in reads {
        let mut arguments = read.arguments.clone().unwrap_or_default();
        arguments.insert(PATH_PARAMETER.to_owned(), other.clone().into());
        text.set_call(read.at, &read.tool, &arguments.into());
    }
    Ok(Follow::default())
}

fn rename(form: &Form, case: &Case, text: &mut CaseText, input: &str) -> Result<Follow, String> {
    let path = Path::new(input);
    if path.is_placed() || input.split('/').any(|part| part.starts_with('.')) {
        return Err("the name has a meaning".to_owned());
    }
    if matches!(lies(case, input), Lies::Beneath { .. } | Lies::Folder) {
        return Err("the name stands in other paths, too".to_owned());
    }
    let spoken = |text: &str| says(text, input) || says(text, &path.base());
    let in_contents = case.fixture.values().any(|entry| match entry {
        Entry::Text(text) => spoken(text),
        Entry::Made(made) => made.text.as_deref().is_some_and(spoken),
    });
    let in_args = case
        .launches
        .iter()
        .flat_map(|launch| &launch.args)
        .any(|arg| spoken(arg));
    if in_contents || in_args {
        return Err("settings or other files name the path".to_owned());
    }
    let new = path.named(&form.rename).0;
    if case.fixture.contains_key(&new) {
        return Err(format!("{new} is there already"));
    }
    text.rename_entry(input, &new);
    let swap = Swap::new(input, &new);
    text.swap_in_launches(&swap);
    text.swap_in_links(&swap);
    let follow = Follow {
        quotes: vec![swap.clone()],
        renamed: Some(swap),
        ..Follow::default()
    };
    text.follow(&follow);
    Ok(follow)
}

/// An empty file, or one with its content many times over; both at the file that is reached in the end.
fn resize(form: &Form, case: &Case, text: &mut CaseText, input: &str) -> Result<Follow, String> {
    let key = match lies(case, input) {
        Lies::File(_) => input.to_owned(),
        Lies::Link { target } => match Path::new(input).folder() {
            Some(folder) if !target.starts_with('{') => format!("{folder}/{target}"),
            _ => target.to_owned(),
        },
        _ => return Err("no file lies at the path".to_owned()),
    };
    let content = match case.fixture.get(&key) {
        Some(Entry::Text(content)) if !content.is_empty() => content,
        _ => return Err("no text lies at the path".to_owned()),
    };
    let changed = calls(case)
        .iter()
        .any(|call| ["edit", "patch"].contains(&call.tool.as_str()) && call.path() == Some(input));
    if changed {
        return Err("a call changes the text".to_owned());
    }
    let spoken = |texts: &[String]| {
        Bindings::nonce_names(content).iter().any(|name| {
            texts
                .iter()
                .any(|text| text.contains(&format!("{{nonce:{name}}}")))
        }) || content
            .lines()
            .filter(|line| line.len() > 2)
            .any(|line| texts.iter().any(|text| says(text, line)))
    };
    let entry = if form.make == Make::Empty {
        if spoken(&assertion_texts(case)) {
            return Err("the assertion is about the content".to_owned());
        }
        Entry::Text(String::new())
    } else {
        // What must be there or be absent is so in a longer file too; what must be equal is not.
        let exact: Vec<String> = case
            .expects
            .iter()
            .filter(|expect| expect.equals.is_some() || expect.matches.is_some())
            .flat_map(|expect| {
                let value = expect
                    .equals
                    .iter()
                    .filter_map(|value| value.as_str().map(str::to_owned));
                value.chain(expect.matches.clone()).collect::<Vec<_>>()
            })
            .collect();
        if spoken(&exact) {
            return Err("the assertion holds the content whole".to_owned());
        }
        if !content.ends_with('\n') {
            return Err("the text does not end its last line".to_owned());
        }
        Entry::Made(Made {
            text: Some(content.clone()),
            times: Some(form.times),
            ..Made::default()
        })
    };
    text.set_entry(&key, &entry);
    Ok(Follow::default())
}

/// The path is written in another way; the file keeps its name.
fn moved(text: &mut CaseText, from: &str, to: &str) -> Follow {
    let swap = Swap::new(from, to);
    text.swap_in_launches(&swap);
    let follow = Follow {
        quotes: vec![swap],
        scope: Scope::Results,
        ..Follow::default()
    };
    text.follow(&follow);
    follow
}

/// An assertion on the file itself would see the link.
fn unseen(case: &Case, path: &str) -> Result<(), String> {
    let is_seen = case
        .expects
        .iter()
        .any(|expect| expect.path.as_deref() == Some(path));
    if is_seen {
        Err("an assertion looks at the file itself".to_owned())
    } else {
        Ok(())
    }
}

/// Puts what lies at a path beside it, and returns where.
fn aside(case: &Case, text: &mut CaseText, path: &Path<'_>, entry: &Entry) -> String {
    let aside = free(case, &path.named("{stem}-target{ending}").0);
    text.set_entry(&aside, entry);
    aside
}

fn link(target: &str) -> Entry {
    Entry::Made(Made {
        link: Some(target.to_owned()),
        ..Made::default()
    })
}

/// A name that the fixture does not have yet.
fn free(case: &Case, name: &str) -> String {
    let mut free = name.to_owned();
    let mut n = 2;
    while case.fixture.contains_key(&free) {
        free = Path::new(name).named(&format!("{{stem}}-{n}{{ending}}")).0;
        n += 1;
    }
    free
}

fn relative_target(relative: &Relative, place: &str, target: &str) -> Result<String, String> {
    let up = "../".repeat(place.matches('/').count());
    if let Some(rest) = target.strip_prefix("{workspace}/") {
        return Ok(format!("{up}{rest}"));
    }
    for (name, way) in relative {
        if let Some(rest) = target.strip_prefix(name.as_str()) {
            return Ok(format!("{up}{way}{rest}"));
        }
    }
    Err("the target is relative already".to_owned())
}

fn absolute_target(place: &str, target: &str) -> Result<String, String> {
    if target.starts_with(['{', '/']) {
        return Err("the target is absolute already".to_owned());
    }
    if target.split('/').any(|part| part == "..") {
        return Err("the target climbs".to_owned());
    }
    let target = target.trim_start_matches("./");
    Ok(match Path::new(place).folder() {
        Some(folder) => format!("{{workspace}}/{folder}/{target}"),
        None => format!("{{workspace}}/{target}"),
    })
}

/// A path of the case language: relative to the workspace, or opened by a place such as `{outside}`.
struct Path<'p>(&'p str);

/// A path that was made.
struct Named(String);

impl Named {
    fn base(&self) -> String {
        Path::new(&self.0).base()
    }
}

impl<'p> Path<'p> {
    fn new(path: &'p str) -> Self {
        Self(path.trim_end_matches('/'))
    }

    fn is_placed(&self) -> bool {
        self.0.starts_with(['{', '/'])
    }

    fn folder(&self) -> Option<&'p str> {
        self.0.rsplit_once('/').map(|(folder, _)| folder)
    }

    fn base(&self) -> String {
        self.0.rsplit('/').next().unwrap_or(self.0).to_owned()
    }

    /// Beside it, with a name from a template of `{stem}`, `{STEM}` and `{ending}`.
    fn named(&self, template: &str) -> Named {
        let base = self.base();
        let (stem, ending) = match base.rfind('.') {
            Some(at) if at > 0 => base.split_at(at),
            _ => (base.as_str(), ""),
        };
        let name = template
            .replace("{stem}", stem)
            .replace("{STEM}", &stem.to_uppercase())
            .replace("{ending}", ending);
        Named(match self.folder() {
            Some(folder) => format!("{folder}/{name}"),
            None => name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::case::CaseId;

    fn case(fixture: &str, input: &str, expect: &str) -> String {
        format!(
            "title = \"t\"\npurpose = \"p\"\nclause = \"a.b.c\"\ncategory = \"headless\"\nscenario = \"ordinary\"\n\n\
             [fixture]\n{fixture}\n\n[[launch]]\nroute  = \"headless\"\nprompt = \"x\"\nscript = [\n  \
             {{ call = \"read\", with = {{ path = \"{input}\" }} }},\n]\n\n[[expect]]\n{expect}\n"
        )
    }

    #[test]
    fn a_new_name_is_made_of_the_old_one() {
        let named = |template| Path::new("d/notes.txt").named(template).0;
        assert_eq!(named("my {stem}{ending}"), "d/my notes.txt");
        assert_eq!(named("{STEM}{ending}"), "d/NOTES.txt");
    }

    const REFUSED: &str = "channel = \"requests\"\nat = \"$.x\"\nequals = \"error: INPUT\"";

    /// The fixture and the call's path afterwards, or why the form does not fit.
    fn formed(make: &str, fixture: &str, input: &str, expect: &str) -> Result<String, String> {
        let form: Form = toml::from_str(&format!(
            "name = \"n\"\nmake = \"{make}\"\ntitle = \"t\"\nwhy = \"w\"\nrename = \"{{stem}} ü{{ending}}\"\ntimes = 9"
        ))
        .expect("parses");
        let relative = Relative::from([("{outside}".to_owned(), "../outside".to_owned())]);
        let text = case(fixture, input, &expect.replace("INPUT", input));
        let path = std::path::Path::new("x.toml");
        let seed = Case::parse(CaseId::new("headless/x"), path, &text).expect("a case");
        let mut edited = CaseText::new(&text).expect("parses");
        apply(&form, &relative, &seed, &mut edited, input)?;
        let edited = edited.finish(&[]);
        let variant = Case::parse(CaseId::new("headless/y"), path, &edited)
            .unwrap_or_else(|findings| panic!("{findings:?}\n{edited}"));
        let entries: Vec<String> = variant
            .fixture
            .iter()
            .map(|(key, entry)| match entry {
                Entry::Text(text) => format!("{key}={text}"),
                Entry::Made(made) => match (&made.link, &made.hard_link) {
                    (Some(target), _) => format!("{key}->{target}"),
                    (_, Some(other)) => format!("{key}=={other}"),
                    _ if made.dir => format!("{key}/"),
                    _ => format!("{key}*{}", made.times.unwrap_or(1)),
                },
            })
            .collect();
        let called = calls(&variant)[0].path().expect("has a path").to_owned();
        let tested = assertion_texts(&variant).pop().expect("has a test");
        assert!(
            !expect.contains("INPUT") || tested == format!("error: {called}"),
            "{tested} {called}"
        );
        Ok(format!("{} | {called}", entries.join(" ")))
    }

    #[test]
    fn each_form_leads_to_the_same_file() {
        let check = |make: &str, fixture: &str, input: &str, expected: &str| {
            assert_eq!(
                formed(make, fixture, input, REFUSED).as_deref(),
                Ok(expected),
                "{make} {fixture}"
            );
        };
        let file = "\"a.txt\" = \"x\"";
        let deep = "\"d/a.txt\" = \"x\"";
        let out = "\"l.txt\" = { link = \"{outside}/s/k.txt\" }";
        check(
            "link",
            file,
            "a.txt",
            "a-target.txt=x a.txt->a-target.txt | a.txt",
        );
        check(
            "link",
            deep,
            "d/a.txt",
            "d/a-target.txt=x d/a.txt->a-target.txt | d/a.txt",
        );
        check(
            "link",
            "\"{outside}/k\" = \"x\"",
            "{outside}/k",
            "k-link->{outside}/k {outside}/k=x | k-link",
        );
        check(
            "hard-link",
            file,
            "a.txt",
            "a-target.txt=x a.txt==a-target.txt | a.txt",
        );
        check(
            "folder-link",
            deep,
            "d/a.txt",
            "d/a.txt=x linked->d | linked/a.txt",
        );
        check(
            "folder-link",
            file,
            "a.txt",
            "a.txt=x linked->. | linked/a.txt",
        );
        check(
            "folder-link",
            out,
            "l.txt",
            "linked->{outside}/s | linked/k.txt",
        );
        check(
            "folder-link",
            "\"d/l\" = { link = \"k\" }",
            "d/l",
            "linked->d | linked/k",
        );
        check("folder-link", deep, "d", "d/a.txt=x linked->d | linked");
        check(
            "link-chain",
            out,
            "l.txt",
            "l-hop-1.txt->l-hop-2.txt l-hop-2.txt->{outside}/s/k.txt l.txt->l-hop-1.txt | l.txt",
        );
        check(
            "link-chain",
            "\"o\" = { link = \"{outside}/d\" }",
            "o/new.txt",
            "o->o-hop-1 o-hop-1->o-hop-2 o-hop-2->{outside}/d | o/new.txt",
        );
        check(
            "relative-link",
            out,
            "l.txt",
            "l.txt->../outside/s/k.txt | l.txt",
        );
        check(
            "relative-link",
            "\"d/l\" = { link = \"{outside}/k\" }",
            "d/l",
            "d/l->../../outside/k | d/l",
        );
        check(
            "absolute-link",
            "\"d/l\" = { link = \"k\" }",
            "d/l",
            "d/l->{workspace}/d/k | d/l",
        );
        check("dot-dot", file, "a.txt", "a.txt=x turn/ | turn/../a.txt");
        check(
            "dot-dot",
            "\"a.txt\" = \"x\"\n\"s/b\" = \"x\"",
            "a.txt",
            "a.txt=x s/b=x | s/../a.txt",
        );
        check("dot-dot", file, "{outside}/k", "a.txt=x | ../outside/k");
        check("absolute", file, "a.txt", "a.txt=x | {workspace}/a.txt");
        check("trailing-slash", deep, "d", "d/a.txt=x | d/");
        check("rename", file, "a.txt", "a ü.txt=x | a ü.txt");
        check("rename", file, "new.txt", "a.txt=x | new ü.txt");
        check("empty", file, "a.txt", "a.txt= | a.txt");
        check("large", "\"a.txt\" = \"x\\n\"", "a.txt", "a.txt*9 | a.txt");
        check(
            "empty",
            "\"k\" = \"x\"\n\"l\" = { link = \"k\" }",
            "l",
            "k= l->k | l",
        );
    }

    #[test]
    fn a_form_that_does_not_fit_says_why() {
        let check = |make: &str, fixture: &str, input: &str, expect: &str, expected: &str| {
            let why = formed(make, fixture, input, expect).expect_err("must not fit");
            assert!(why.contains(expected), "{make}: {why}");
        };
        let file = "\"a.txt\" = \"x {nonce:x}\\n\"";
        let on_file = "channel = \"files\"\npath = \"a.txt\"\nunchanged = true";
        let content = "channel = \"requests\"\nat = \"$.x\"\nequals = \"1 x {nonce:x}\"";
        check("link", file, "a.txt", on_file, "looks at the file itself");
        check(
            "hard-link",
            file,
            "a.txt",
            on_file,
            "looks at the file itself",
        );
        check("link", file, "none", REFUSED, "no file lies");
        check("relative-link", file, "a.txt", REFUSED, "no link lies");
        check(
            "relative-link",
            "\"l\" = { link = \"k\" }",
            "l",
            REFUSED,
            "relative already",
        );
        check(
            "absolute-link",
            "\"l\" = { link = \"../k\" }",
            "l",
            REFUSED,
            "climbs",
        );
        check(
            "absolute",
            file,
            "{workspace}/a.txt",
            REFUSED,
            "absolute already",
        );
        check("trailing-slash", file, "a.txt", REFUSED, "neither a folder");
        check("empty", file, "a.txt", content, "about the content");
        check("large", file, "a.txt", content, "holds the content whole");
        check(
            "rename",
            "\".git/x\" = \"\"",
            ".git/x",
            REFUSED,
            "has a meaning",
        );
        check(
            "rename",
            "\"a.txt\" = \"\"\n\".harness/settings.json\" = 'read(a.txt)'",
            "a.txt",
            REFUSED,
            "name the path",
        );
    }
}
