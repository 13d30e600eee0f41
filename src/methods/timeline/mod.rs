//! The evidence of one attempt told in the order in which it happened: launches, requests with the messages that are
//! new in each, replies, output, exit; then what became of the files.
//!
//! Values drawn for the run stand as their names, `{nonce:secret}`. Nothing is cut here, and nothing is made visible
//! or escaped; [`lines`] does the first two.

mod files;
mod lines;
mod messages;

use serde::Serialize;

pub use files::{FileChange, changes};
pub use lines::{Limits, Line, LineKind, lines};

use crate::domain::case::{Bindings, Case, Fault, Finish, Reply};
use crate::domain::evidence::{Evidence, Exchange, Exit, LaunchEvidence, ReplyKind, Sent, Text};
use messages::fresh;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline {
    pub launches: Vec<LaunchStory>,
    /// By path.
    pub files: Vec<FileChange>,
    /// Files that are after as they were before.
    pub n_unchanged: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaunchStory {
    pub argv: Vec<String>,
    pub requests: Vec<RequestStory>,
    /// Further requests, of which nothing was kept.
    pub n_requests_unkept: usize,
    pub stdout: Text,
    pub stderr: Text,
    pub screen: Option<String>,
    pub keys_unsent: usize,
    pub signals_unsent: usize,
    /// Names of values that were to be caught and are not in the output.
    pub unbound: Vec<String>,
    /// Since the first launch began.
    pub started_ms: u64,
    pub exit: Exit,
    pub out_of_memory: bool,
    pub duration_ms: u64,
    pub cpu_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestStory {
    /// From 1, over all requests of the launch, as verdicts count them.
    pub number: usize,
    pub at_ms: u64,
    /// Method and path, where they are not the usual ones.
    pub unusual: Option<String>,
    pub side: bool,
    pub n_tools: usize,
    pub n_messages: usize,
    /// Of the messages of the request before, how many stand unchanged at the start of this one.
    pub n_kept: usize,
    /// Messages of the request before that are gone or changed: compaction, a rewind.
    pub n_dropped: usize,
    /// The messages after the kept ones.
    pub fresh: Vec<MessageStory>,
    /// A body that is no object with messages, as it came.
    pub other_body: Option<String>,
    pub reply: String,
    /// What went out; unknown of older runs.
    pub sent: Option<Sent>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MessageStory {
    pub role: String,
    /// The call that a tool's message answers.
    pub answers: Option<String>,
    pub text: String,
    /// `name arguments [id]`
    pub calls: Vec<String>,
}

/// Tells the story of `evidence`. With the case that it was made from, replies are told in full, else by number.
pub fn tell(evidence: &Evidence, case: Option<&Case>) -> Timeline {
    let bindings = &evidence.bindings;
    let launches = evidence
        .launches
        .iter()
        .enumerate()
        .map(|(idx, launch)| {
            let script = case.and_then(|case| case.launches.get(idx));
            let script = script.map(|launch| launch.script.as_slice());
            self::launch(launch, script.unwrap_or_default(), bindings)
        })
        .collect();
    let (files, n_unchanged) = changes(&evidence.files_before, &evidence.files_after, bindings);
    Timeline {
        launches,
        files,
        n_unchanged,
    }
}

fn launch(launch: &LaunchEvidence, script: &[Reply], bindings: &Bindings) -> LaunchStory {
    let text = |text: &Text| Text {
        text: bindings.redact(&text.text),
        cut: text.cut,
    };
    // A side call has a conversation of its own, so it is not what the next call goes on from.
    let mut previous: Option<&Exchange> = None;
    let requests = launch
        .requests
        .iter()
        .enumerate()
        .map(|(idx, exchange)| {
            let before = if exchange.side { None } else { previous };
            if !exchange.side {
                previous = Some(exchange);
            }
            request(idx + 1, exchange, before, script, bindings)
        })
        .collect();
    LaunchStory {
        argv: launch.argv.iter().map(|arg| bindings.redact(arg)).collect(),
        requests,
        n_requests_unkept: launch.n_requests_unkept,
        stdout: text(&launch.stdout),
        stderr: text(&launch.stderr),
        screen: launch.screen.as_deref().map(|s| bindings.redact(s)),
        keys_unsent: launch.keys_unsent,
        signals_unsent: launch.signals_unsent,
        unbound: launch.unbound.clone(),
        started_ms: launch.started_ms,
        exit: launch.exit,
        out_of_memory: launch.out_of_memory,
        duration_ms: launch.duration_ms,
        cpu_ms: launch.cpu_ms,
    }
}

fn request(
    number: usize,
    exchange: &Exchange,
    before: Option<&Exchange>,
    script: &[Reply],
    bindings: &Bindings,
) -> RequestStory {
    let usual = exchange.method == "POST" && exchange.path.ends_with("/chat/completions");
    let chat = exchange.chat();
    let n_tools = chat["tools"].as_array().map_or(0, Vec::len);
    let mut story = RequestStory {
        number,
        at_ms: exchange.at_ms,
        unusual: (!usual)
            .then(|| bindings.redact(&format!("{} {}", exchange.method, exchange.path))),
        side: exchange.side,
        n_tools,
        n_messages: 0,
        n_kept: 0,
        n_dropped: 0,
        fresh: Vec::new(),
        other_body: None,
        reply: bindings.redact(&reply(exchange.reply, script)),
        sent: exchange.sent,
    };
    match chat["messages"].as_array() {
        Some(messages) => {
            let earlier = before.and_then(|before| before.chat()["messages"].as_array());
            let earlier = earlier.map_or(&[][..], Vec::as_slice);
            story.n_messages = messages.len();
            story.n_kept = messages
                .iter()
                .zip(earlier)
                .take_while(|(now, then)| now == then)
                .count();
            story.n_dropped = earlier.len() - story.n_kept;
            story.fresh = messages[story.n_kept..]
                .iter()
                .map(|message| fresh(message, bindings))
                .collect();
        }
        None => {
            let body = match exchange.body.as_str() {
                Some(text) => text.to_owned(),
                None => exchange.body.to_string(),
            };
            story.other_body = Some(bindings.redact(&body));
        }
    }
    story
}

fn reply(kind: ReplyKind, script: &[Reply]) -> String {
    match kind {
        ReplyKind::Step(number) => match script.get(number.saturating_sub(1)) {
            Some(reply) => format!("step {number}: {}", words(reply)),
            None => format!("step {number}"),
        },
        ReplyKind::Side => "the fixed text for a call without tools".to_owned(),
        ReplyKind::Overrun => "the fixed text beyond the script".to_owned(),
        ReplyKind::Service => "a fixed answer: no call of the model".to_owned(),
        ReplyKind::NotFound => "404: no path of the protocol".to_owned(),
        ReplyKind::BadRequest => "400: no JSON object".to_owned(),
        ReplyKind::TooLarge => "413: the body is too large".to_owned(),
        ReplyKind::Unfinished => "nothing: the request was broken off".to_owned(),
    }
}

fn words(reply: &Reply) -> String {
    let mut parts = Vec::new();
    if let Some(say) = &reply.say {
        parts.push(format!("{say:?}"));
    }
    for call in reply.all_calls() {
        let with = call.with.as_ref().map(|with| match with.as_str() {
            Some(text) => text.to_owned(),
            None => with.to_string(),
        });
        parts.push(format!("calls {} {}", call.call, with.unwrap_or_default()));
    }
    if reply.is_raw() {
        parts.push("a body as the script has it".to_owned());
    }
    if let Some(finish) = reply.finish {
        parts.push(match finish {
            Finish::Length => "stopped at the limit of its length".to_owned(),
            Finish::Filter => "stopped by a filter".to_owned(),
        });
    }
    if let Some(fault) = reply.fault {
        parts.push(match fault {
            Fault::Drop => "no answer and the end of the connection".to_owned(),
            Fault::Stall => "silence in the middle".to_owned(),
            Fault::ErrorEvent => "an error in the middle".to_owned(),
            Fault::Status => format!("status {}", reply.code.unwrap_or_default()),
            Fault::Hang => "no answer".to_owned(),
            Fault::Cut => "cut in the middle".to_owned(),
            Fault::Malformed => "a body that is no JSON".to_owned(),
            Fault::Empty => "neither text nor calls".to_owned(),
            Fault::ContextLength => "status 400, context_length_exceeded".to_owned(),
        });
    }
    parts.join(", ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::domain::case::CaseId;
    use crate::domain::evidence::{EVIDENCE_FORMAT, SentEnd};

    fn exchange(side: bool, messages: Value, reply: ReplyKind) -> Exchange {
        Exchange {
            at_ms: 10,
            method: "POST".into(),
            path: "/v1/chat/completions".into(),
            headers: BTreeMap::new(),
            body: json!({ "messages": messages, "tools": [{}, {}] }),
            chat: None,
            side,
            reply,
            sent: None,
        }
    }

    fn evidence(requests: Vec<Exchange>) -> Evidence {
        Evidence {
            format: EVIDENCE_FORMAT,
            case: CaseId::new("a/b"),
            bindings: Bindings(BTreeMap::from([(
                "nonce:secret".to_owned(),
                "s-7f3a".to_owned(),
            )])),
            launches: vec![LaunchEvidence {
                argv: vec!["harness".into(), "-p".into(), "say s-7f3a".into()],
                exit: Exit::Code(0),
                stdout: Text {
                    text: "\x1b[2Jdone s-7f3a\n".into(),
                    cut: false,
                },
                stderr: Text::default(),
                screen: None,
                keys_unsent: 0,
                signals_unsent: 0,
                unbound: Vec::new(),
                started_ms: 0,
                n_requests_unkept: 0,
                requests,
                duration_ms: 310,
                cpu_ms: 200,
                out_of_memory: false,
            }],
            files_before: BTreeMap::new(),
            files_after: BTreeMap::new(),
            files_cut: false,
        }
    }

    #[test]
    fn only_new_messages_are_told_and_side_calls_stand_apart() {
        let system = json!({"role": "system", "content": "be good"});
        let user = json!({"role": "user", "content": "say s-7f3a"});
        let sent = Sent {
            status: Some(200),
            began_ms: Some(20),
            ended_ms: Some(1_500),
            n_bytes: 40,
            end: SentEnd::Left,
        };
        let call = json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "call-1", "type": "function",
             "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}}]});
        let result = json!({"role": "tool", "tool_call_id": "call-1", "content": "error: s-7f3a"});
        let summary = json!({"role": "user", "content": "<summary>x</summary>"});
        let mut timeline = tell(
            &evidence(vec![
                exchange(false, json!([system, user]), ReplyKind::Step(1)),
                exchange(
                    false,
                    json!([system, user, call, result]),
                    ReplyKind::Step(2),
                ),
                exchange(true, json!([user]), ReplyKind::Side),
                exchange(false, json!([system, summary]), ReplyKind::Overrun),
            ]),
            None,
        );
        timeline.launches[0].requests[0].sent = Some(sent);
        timeline.launches[0].n_requests_unkept = 7;
        let requests = &timeline.launches[0].requests;
        let numbers: Vec<_> = requests
            .iter()
            .map(|r| (r.n_kept, r.n_dropped, r.fresh.len()))
            .collect();
        assert_eq!(numbers, [(0, 0, 2), (2, 0, 2), (0, 0, 1), (1, 3, 1)]);
        assert_eq!(
            requests[1].fresh[0].calls,
            ["read {\"path\":\"a\"} [call-1]"]
        );
        assert_eq!(requests[1].fresh[1].answers.as_deref(), Some("call-1"));
        assert_eq!(requests[1].fresh[1].text, "error: {nonce:secret}");
        assert_eq!(timeline.launches[0].argv[2], "say {nonce:secret}");

        let text: Vec<String> = lines(&timeline, &Limits::SHORT)
            .into_iter()
            .map(|line| line.text)
            .collect();
        let text = text.join("\n");
        let check = |part: &str| assert!(text.contains(part), "{part:?} is not in:\n{text}");
        check("launch 1  harness -p 'say {nonce:secret}'");
        check("␛[2Jdone {nonce:secret}");
        check("3 of the messages before are gone");
        check("the fixed text beyond the script");
        check("← step 1 (200, the candidate left after 40 bytes at 1.50 s)");
        check("and 7 more requests, of which nothing was kept");
        check("exit 0 after 0.31 s");
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn bodies_without_messages_are_shown_as_they_came() {
        let mut odd = exchange(false, json!([]), ReplyKind::NotFound);
        odd.body = json!("GET me");
        odd.path = "/v1/models".into();
        let timeline = tell(&evidence(vec![odd]), None);
        let request = &timeline.launches[0].requests[0];
        assert_eq!(request.other_body.as_deref(), Some("GET me"));
        assert_eq!(request.unusual.as_deref(), Some("POST /v1/models"));
    }
}
