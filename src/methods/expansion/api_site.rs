//! A headless run as the first run of the evaluation API, which returns the same result in a response.

use serde_json::{Map, Value, json};

use super::sites::without_format;
use crate::domain::case::{Launch, Route};

/// Flags and the one request of `harness api` that does what a headless launch does. `taken` are the flags that
/// `harness api` takes; resuming is an option of the request. The error says what has no counterpart.
pub fn as_run(launch: &Launch, taken: &[String]) -> Result<(Vec<String>, Value), String> {
    let prompt = match (launch.route, &launch.prompt) {
        (Route::Headless, Some(prompt)) if prompt != "-" => prompt,
        _ => return Err("only a headless run with its prompt is a run of the API".to_owned()),
    };
    if launch.stdin.is_some() || launch.stdin_is.is_some() || launch.cwd.is_some() {
        return Err("standard input and folder are not those of the run".to_owned());
    }
    let mut args: Vec<String> = Vec::new();
    let mut options = Map::new();
    let mut given = without_format(&launch.args).into_iter().peekable();
    while let Some(arg) = given.next() {
        let flag = arg.split('=').next().unwrap_or(&arg);
        if arg == "--resume" {
            options.insert("resume".to_owned(), given.next().unwrap_or_default().into());
        } else if arg == "--fork" {
            options.insert("fork".to_owned(), true.into());
        } else if taken.iter().any(|one| one == flag) {
            args.push(arg);
            while let Some(value) = given.next_if(|next| !next.starts_with('-')) {
                args.push(value);
            }
        } else {
            return Err(format!("the evaluation API has no {flag}"));
        }
    }
    let mut request = json!({"id": "run", "op": "run", "prompt": prompt});
    if !options.is_empty() {
        request["options"] = options.into();
    }
    Ok((args, request))
}

/// Whether one launch is the run of the API that the other, a headless one, is.
pub fn is_same_run(headless: &Launch, api: &Launch) -> bool {
    let taken: Vec<String> = api
        .args
        .iter()
        .filter_map(|arg| arg.split('=').next())
        .map(str::to_owned)
        .collect();
    api.route == Route::Api
        && as_run(headless, &taken)
            .is_ok_and(|(args, request)| args == api.args && api.requests == [request])
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::case::{Case, CaseId};

    fn launch(text: &str) -> Launch {
        let text = format!(
            "title = \"t\"\npurpose = \"p\"\nclause = \"a.b.c\"\ncategory = \"headless\"\nscenario = \"ordinary\"\n\
             [[launch]]\n{text}\n[[expect]]\nchannel = \"exit\"\nequals = 0\n"
        );
        let case = Case::parse(CaseId::new("headless/x"), Path::new("x.toml"), &text);
        case.unwrap_or_else(|findings| panic!("{findings:?}"))
            .launches
            .remove(0)
    }

    #[test]
    fn flags_stay_or_become_options_or_have_no_counterpart() {
        let taken = ["--allow".to_owned(), "--stream".to_owned()];
        let run = |args: &str| {
            let headless = launch(&format!(
                "route = \"headless\"\nprompt = \"p\"\nargs = [{args}]"
            ));
            as_run(&headless, &taken).map(|(args, request)| format!("{} {request}", args.join(" ")))
        };
        assert_eq!(
            run(r#""--output-format", "json", "--allow", "read", "--stream""#).as_deref(),
            Ok(r#"--allow read --stream {"id":"run","op":"run","prompt":"p"}"#)
        );
        assert_eq!(
            run(r#""--resume", "abc", "--fork""#).as_deref(),
            Ok(r#" {"id":"run","op":"run","prompt":"p","options":{"resume":"abc","fork":true}}"#)
        );
        assert_eq!(
            run(r#""--timeout-s", "2""#),
            Err("the evaluation API has no --timeout-s".to_owned())
        );
    }

    #[test]
    fn another_prompt_is_another_run() {
        let headless =
            launch("route = \"headless\"\nprompt = \"p\"\nargs = [\"--allow\", \"read\"]");
        let api = |prompt: &str| {
            launch(&format!(
                "route = \"api\"\nargs = [\"--allow\", \"read\"]\nrequests = [{{ id = \"run\", op = \"run\", prompt = \"{prompt}\" }}]"
            ))
        };
        assert!(is_same_run(&headless, &api("p")));
        assert!(!is_same_run(&headless, &api("q")));
    }
}
