//! Operators of the variable *return site*: the same result, looked for where else it is returned.
//!
//! The selectors of assertions change, and the flag that brings the result there; the tests stay.

use serde::Deserialize;

use super::api_site;
use super::case_text::{CaseText, Selector};
use super::scenario::calls;
use crate::domain::case::{Case, Category, Route};
use crate::domain::clause::{Channel, ClauseId};
use crate::domain::expect::{Expect, Pick, PickNamed, Stream};

/// A place where results are returned, as `pipeline/expand.toml` names it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    pub name: String,
    /// The value of `--output-format` that brings the results there.
    pub format: String,
    /// For the evaluation API: the flags that it takes. Its results come in a response, whatever the format.
    #[serde(default)]
    pub api_flags: Vec<String>,
    pub title: String,
    /// One sentence: why the site matters.
    pub why: String,
    /// Where each kind of result is found.
    pub results: Vec<Found>,
}

/// Where one kind of result is found at a site. `{id}` in `at` stands for the id of a call, `{index}` for its number,
/// counted from 0; as a target only.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// The same kind has the same name at every site.
    pub kind: String,
    pub channel: Channel,
    #[serde(default)]
    pub stream: Option<Stream>,
    #[serde(default)]
    pub at: Option<String>,
    #[serde(default)]
    pub lines: bool,
    /// Whether what is found is the result and nothing around it. Only then can more be moved than tests of parts.
    pub exact: bool,
    /// The clause that says so. A variant is anchored to it when the seed's clause shows itself on other channels.
    pub clause: ClauseId,
}

const FLAG: &str = "--output-format";

/// What was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved<'s> {
    /// It says that the first of the results is found there.
    pub clause: &'s ClauseId,
    /// Whether something must be absent there, so that controls have to look there, too.
    pub absence: bool,
}

impl Site {
    fn is_api(&self) -> bool {
        !self.api_flags.is_empty()
    }
}

/// Moves the assertions of a case to a site. The error says why they cannot be moved.
pub fn apply<'s>(
    sites: &[Site],
    to: &'s Site,
    case: &Case,
    text: &mut CaseText,
) -> Result<Moved<'s>, String> {
    let [launch] = case.launches.as_slice() else {
        return Err("several launches return results".to_owned());
    };
    if launch.route != Route::Headless {
        return Err("only a headless run has output formats".to_owned());
    }
    let format = format_of(&launch.args).unwrap_or("text");
    let run = match to.is_api() {
        true => Some(api_site::as_run(launch, &to.api_flags)?),
        false => None,
    };
    let other_format = to.is_api() || (!to.format.is_empty() && format != to.format);
    let mut clause = None;
    let mut absence = false;
    for (idx, expect) in case.expects.iter().enumerate() {
        let selector = sites
            .iter()
            .filter(|site| !site.is_api() && (site.format == format || site.format.is_empty()))
            .filter(|site| site.name != to.name)
            .flat_map(|site| &site.results)
            .find_map(|here| moved(here, to, expect, case));
        match selector {
            Some((selector, there)) => {
                text.set_selector(idx, &selector);
                clause = clause.or(Some(&there.clause));
                absence = absence || expect.is_absence();
            }
            // What standard output holds changes with the format, so that such an assertion cannot stay.
            None if other_format
                && (expect.channel == Some(Channel::Output)
                    && expect.stream != Some(Stream::Stderr)
                    || expect.channel == Some(Channel::Exit) && to.is_api()) =>
            {
                return Err(format!(
                    "assertion {} is about the output as it is",
                    idx + 1
                ));
            }
            None => {}
        }
    }
    let clause =
        clause.ok_or_else(|| format!("no assertion is about a result that {} has", to.name))?;
    if let Some((args, request)) = run {
        text.set_api(0, &args, &request);
        text.set("category", Category::DirectDrive.as_str());
    } else if other_format {
        text.set_args(0, &with_format(&launch.args, &to.format));
    }
    Ok(Moved { clause, absence })
}

/// The same for a control. False when it looks at no result that a site returns, and stays as it is.
pub fn apply_to_control(
    sites: &[Site],
    to: &Site,
    case: &Case,
    text: &mut CaseText,
) -> Result<bool, String> {
    let looks = case.expects.iter().any(|expect| {
        let mut results = sites.iter().flat_map(|site| &site.results);
        results.any(|here| {
            to.results.iter().any(|there| there.kind == here.kind)
                && matched(here, expect).is_some()
        })
    });
    if looks {
        apply(sites, to, case, text).map(|_| true)
    } else {
        Ok(false)
    }
}

/// The selector of the assertion at the other site; none when it is not about this result, or cannot be moved.
fn moved<'s>(
    here: &Found,
    to: &'s Site,
    expect: &Expect,
    case: &Case,
) -> Option<(Selector, &'s Found)> {
    let id = matched(here, expect)?;
    let there = to.results.iter().find(|there| there.kind == here.kind)?;
    let index = match there.at.as_deref() {
        Some(at) if at.contains("{index}") => Some(index_of(case, id.as_deref()?)?),
        _ => None,
    };
    let of_parts =
        expect.equals.is_none() && expect.not_equals.is_none() && expect.matches.is_none();
    ((here.exact && there.exact) || of_parts)
        .then(|| (selector(there, id.as_deref(), index), there))
}

/// The number of a call among those that are carried out; none when a fault may keep one from it.
fn index_of(case: &Case, id: &str) -> Option<usize> {
    let faults = case.launches.iter().flat_map(|launch| &launch.script);
    if faults.clone().any(|reply| reply.fault.is_some()) {
        return None;
    }
    calls(case)
        .iter()
        .position(|call| call.id.as_deref() == Some(id))
}

/// Whether the assertion looks at this; `Some(Some(id))` when through the id of a call.
fn matched(found: &Found, expect: &Expect) -> Option<Option<String>> {
    let stream = |stream: Option<Stream>| match stream {
        None | Some(Stream::Stdout) => None,
        other => other,
    };
    let is_plain = expect.members().next().is_none()
        && expect.header.is_none()
        && expect.order.is_empty()
        && expect.launch.is_none()
        && (expect.request.is_none()
            || found.exact && expect.request == Some(Pick::Named(PickNamed::Last)))
        && expect.count.is_none()
        && expect.channel == Some(found.channel)
        && stream(expect.stream) == stream(found.stream)
        && expect.lines == found.lines;
    if !is_plain {
        return None;
    }
    match (&found.at, &expect.at) {
        (None, None) => Some(None),
        (Some(pattern), Some(at)) => match pattern.split_once("{id}") {
            None => (pattern == at).then_some(None),
            Some((before, after)) => {
                let id = at.strip_prefix(before)?.strip_suffix(after)?;
                let is_id = !id.is_empty() && !id.contains(['\'', ']', ' ']);
                is_id.then(|| Some(id.to_owned()))
            }
        },
        _ => None,
    }
}

fn selector(found: &Found, id: Option<&str>, index: Option<usize>) -> Selector {
    Selector {
        channel: found.channel.as_str().to_owned(),
        stream: found.stream.map(|stream| stream.as_str().to_owned()),
        at: found
            .at
            .as_ref()
            .map(|at| at.replace("{id}", id.unwrap_or_default()))
            .map(|at| match index {
                Some(index) => at.replace("{index}", &index.to_string()),
                None => at,
            }),
        lines: found.lines,
    }
}

fn format_of(args: &[String]) -> Option<&str> {
    args.iter()
        .position(|arg| arg == FLAG)
        .and_then(|at| args.get(at + 1))
        .map(String::as_str)
}

fn with_format(args: &[String], format: &str) -> Vec<String> {
    let mut args = args.to_vec();
    match args.iter().position(|arg| arg == FLAG) {
        Some(at) if at + 1 < args.len() => args[at + 1] = format.to_owned(),
        _ => args.extend([FLAG.to_owned(), format.to_owned()]),
    }
    args
}

/// The arguments without the output format: what must be the same in a variant.
pub fn without_format(args: &[String]) -> Vec<String> {
    let mut rest = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == FLAG {
            args.next();
        } else {
            rest.push(arg.clone());
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::case::CaseId;

    fn sites() -> Vec<Site> {
        #[derive(Deserialize)]
        struct File {
            site: Vec<Site>,
        }
        let file: File = toml::from_str(
            r#"
            [[site]]
            name = "requests"
            format = ""
            title = "t"
            why = "w"
            results = [
              { kind = "result", channel = "requests", at = "$.messages[?@.role == 'tool'].content", exact = true, clause = "f.g.h" },
              { kind = "result-by-id", channel = "requests", at = "$.messages[?@.tool_call_id == '{id}'].content", exact = true, clause = "f.g.h" },
              { kind = "anything", channel = "requests", at = "$.messages[*].content", exact = false, clause = "f.g.h" },
            ]
            [[site]]
            name = "text"
            format = "text"
            title = "t"
            why = "w"
            results = [{ kind = "answer", channel = "output", exact = false, clause = "f.g.h" }]
            [[site]]
            name = "events"
            format = "stream-json"
            title = "t"
            why = "w"
            results = [
              { kind = "result", channel = "output", lines = true, at = "$[?@.type == 'tool_result'].result", exact = true, clause = "f.g.h" },
              { kind = "result-by-id", channel = "output", lines = true, at = "$[?@.id == '{id}'].result", exact = true, clause = "f.g.h" },
              { kind = "anything", channel = "output", exact = false, clause = "f.g.h" },
              { kind = "answer", channel = "output", lines = true, at = "$[-1].text", exact = true, clause = "f.g.h" },
            ]"#,
        )
        .expect("parses");
        file.site
    }

    fn moved_to(name: &str, args: &str, expects: &str) -> Result<String, String> {
        let text = format!(
            "title = \"t\"\npurpose = \"p\"\nclause = \"a.b.c\"\ncategory = \"headless\"\nscenario = \"ordinary\"\n\
             [[launch]]\nroute = \"headless\"\nprompt = \"x\"\nargs = [{args}]\nscript = [{{ say = \"x\" }}]\n{expects}"
        );
        let path = Path::new("x.toml");
        let case = Case::parse(CaseId::new("headless/x"), path, &text)
            .unwrap_or_else(|findings| panic!("{findings:?}"));
        let mut edited = CaseText::new(&text).expect("parses");
        let sites = sites();
        let to = sites.iter().find(|site| site.name == name).expect("a site");
        let moved = apply(&sites, to, &case, &mut edited)?;
        assert_eq!(moved.clause.as_str(), "f.g.h");
        let edited = edited.finish(&[]);
        let variant = Case::parse(CaseId::new("headless/y"), path, &edited)
            .unwrap_or_else(|findings| panic!("{findings:?}\n{edited}"));
        let looks: Vec<String> = variant.expects.iter().map(ToString::to_string).collect();
        Ok(format!(
            "{} | {}",
            variant.launches[0].args.join(" "),
            looks.join(" & ")
        ))
    }

    #[test]
    fn selectors_and_the_flag_change_and_tests_stay() {
        let check = |name: &str, args: &str, expects: &str, expected: &str| {
            assert_eq!(
                moved_to(name, args, expects).as_deref(),
                Ok(expected),
                "{expects}"
            );
        };
        check(
            "events",
            "\"--quiet\"",
            "[[expect]]\nchannel = \"requests\"\nat = \"$.messages[?@.role == 'tool'].content\"\nequals = \"error: x\"\n\
             [[expect]]\nchannel = \"requests\"\nat = \"$.messages[*].content\"\nlacks = \"s\"\n\
             [[expect]]\nchannel = \"exit\"\nequals = 0\n",
            "--quiet --output-format stream-json | output $[?@.type == 'tool_result'].result equals \"error: x\" & \
             output lacks \"s\" & exit equals 0",
        );
        check(
            "events",
            "",
            "[[expect]]\nchannel = \"requests\"\nat = \"$.messages[?@.tool_call_id == 'one'].content\"\nhas = \"x\"\n",
            "--output-format stream-json | output $[?@.id == 'one'].result has \"x\"",
        );
        check(
            "events",
            "\"--output-format\", \"text\"",
            "[[expect]]\nchannel = \"output\"\nhas = \"x\"\n",
            "--output-format stream-json | output $[-1].text has \"x\"",
        );
        check(
            "requests",
            "\"--output-format\", \"stream-json\"",
            "[[expect]]\nchannel = \"output\"\nlines = true\nat = \"$[?@.id == 'a'].result\"\nequals = \"x\"\n",
            "--output-format stream-json | requests $.messages[?@.tool_call_id == 'a'].content equals \"x\"",
        );
    }

    #[test]
    fn what_cannot_be_moved_says_why() {
        let check = |expects: &str, expected: &str| {
            let why = moved_to("events", "", expects).expect_err("must not fit");
            assert!(why.contains(expected), "{why}");
        };
        check(
            "[[expect]]\nchannel = \"output\"\nequals = \"x\\n\"\n",
            "assertion 1 is about the output as it is",
        );
        check(
            "[[expect]]\nchannel = \"exit\"\nequals = 0\n",
            "no assertion is about a result",
        );
    }

    #[test]
    fn a_control_that_looks_at_no_result_stays() {
        let control = |expect: &str| {
            let text = format!(
                "title = \"t\"\npurpose = \"p\"\nclause = \"a.b.c\"\nclass = \"channel\"\n\
                 [[launch]]\nroute = \"headless\"\nprompt = \"x\"\nscript = [{{ say = \"x\" }}]\n[[expect]]\n{expect}"
            );
            let path = Path::new("x.toml");
            let case = Case::parse(CaseId::new("controls/x"), path, &text)
                .unwrap_or_else(|findings| panic!("{findings:?}"));
            let sites = sites();
            apply_to_control(
                &sites,
                &sites[2],
                &case,
                &mut CaseText::new(&text).expect("parses"),
            )
        };
        assert_eq!(
            control("channel = \"files\"\npath = \"a\"\nexists = true"),
            Ok(false)
        );
        let result =
            "channel = \"requests\"\nat = \"$.messages[?@.role == 'tool'].content\"\nhas = \"x\"";
        assert_eq!(control(result), Ok(true));
        assert!(control("channel = \"output\"\nequals = \"x\"").is_err());
    }

    #[test]
    fn the_format_is_no_part_of_what_must_stay() {
        let args: Vec<String> = ["--quiet", "--output-format", "json", "-c"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(without_format(&args), ["--quiet", "-c"]);
    }
}
