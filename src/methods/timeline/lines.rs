//! A time line as lines of harmless text, cut to limits; a surface only adds colours or markup.

use super::{LaunchStory, MessageStory, RequestStory, Timeline};
use crate::domain::evidence::{Exit, Sent, SentEnd, Text};
use crate::domain::visible::{shortened, visible, visible_line};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub kind: LineKind,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    Head,
    Plain,
    Added,
    Removed,
}

/// How much of each thing is shown.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Characters of a message, a call, a reply or a line.
    pub n_chars: usize,
    /// Characters of the system message.
    pub n_system_chars: usize,
    /// Lines of an output, a screen or a diff.
    pub n_lines: usize,
    /// Requests of a launch: so many first and so many last ones.
    pub n_requests: usize,
    /// Say when things happened and how long they took.
    pub times: bool,
}

impl Limits {
    pub const FULL: Self = Self {
        n_chars: usize::MAX,
        n_system_chars: usize::MAX,
        n_lines: usize::MAX,
        n_requests: usize::MAX,
        times: true,
    };
    /// For a terminal.
    pub const SHORT: Self = Self {
        n_chars: 400,
        n_system_chars: 80,
        n_lines: 40,
        n_requests: 50,
        times: true,
    };
    /// For one of many units in a report.
    pub const EXCERPT: Self = Self {
        n_chars: 200,
        n_system_chars: 60,
        n_lines: 8,
        n_requests: 4,
        times: false,
    };
}

/// The whole time line, in order.
pub fn lines(timeline: &Timeline, limits: &Limits) -> Vec<Line> {
    let mut page = Page {
        limits: *limits,
        lines: Vec::new(),
    };
    for (idx, launch) in timeline.launches.iter().enumerate() {
        page.launch(idx + 1, launch);
    }
    page.files(timeline);
    page.lines
}

struct Page {
    limits: Limits,
    lines: Vec<Line>,
}

impl Page {
    fn push(&mut self, kind: LineKind, text: String) {
        self.lines.push(Line { kind, text });
    }

    fn plain(&mut self, text: String) {
        self.push(LineKind::Plain, text);
    }

    fn launch(&mut self, number: usize, launch: &LaunchStory) {
        let argv: Vec<String> = launch.argv.iter().map(|arg| quoted(arg)).collect();
        let argv = argv.join(" ");
        let argv = shortened(&argv, self.limits.n_chars).into_owned();
        self.push(LineKind::Head, format!("launch {number}  {argv}"));
        if launch.started_ms > 0 && self.limits.times {
            let seconds = launch.started_ms as f64 / 1000.0;
            self.plain(format!("  began at {seconds:.2} s"));
        }
        if launch.requests.is_empty() {
            self.plain("  no request".to_owned());
        }
        let n = launch.requests.len();
        let ends = self.limits.n_requests;
        for (idx, request) in launch.requests.iter().enumerate() {
            if idx < ends || n - idx <= ends {
                self.request(request);
            } else if idx == ends {
                self.plain(format!("  … {} requests left out", n - 2 * ends));
            }
        }
        if launch.n_requests_unkept > 0 {
            self.plain(format!(
                "  and {} more requests, of which nothing was kept",
                launch.n_requests_unkept
            ));
        }
        self.output("stdout", &launch.stdout);
        self.output("stderr", &launch.stderr);
        if let Some(screen) = &launch.screen {
            let screen = Text {
                text: screen.clone(),
                cut: false,
            };
            self.output("screen", &screen);
        }
        if launch.keys_unsent > 0 {
            self.plain(format!(
                "  {} keys were never sent: what they wait for never came",
                launch.keys_unsent
            ));
        }
        if launch.signals_unsent > 0 {
            let n = launch.signals_unsent;
            self.plain(format!(
                "  {n} signals were never sent: their moment never came"
            ));
        }
        for name in &launch.unbound {
            self.plain(format!(
                "  what is to be {{bound:{name}}} is not in the output"
            ));
        }
        let exit = match launch.exit {
            Exit::Code(code) => format!("exit {code}"),
            Exit::Signal(signal) => format!("died of signal {signal}"),
            Exit::TimedOut => "killed at the time limit".to_owned(),
            Exit::NeverStarted => "never started".to_owned(),
        };
        let memory = if launch.out_of_memory {
            ", out of memory"
        } else {
            ""
        };
        let took = match self.limits.times {
            true => format!(
                " after {:.2} s (cpu {:.2} s)",
                launch.duration_ms as f64 / 1000.0,
                launch.cpu_ms as f64 / 1000.0
            ),
            false => String::new(),
        };
        self.plain(format!("  {exit}{took}{memory}"));
    }

    fn request(&mut self, request: &RequestStory) {
        let mut head = format!("  request {}", request.number);
        if self.limits.times {
            head += &format!("  at {:.2} s", request.at_ms as f64 / 1000.0);
        }
        if let Some(unusual) = &request.unusual {
            head += &format!(", {}", visible_line(unusual));
        }
        match &request.other_body {
            None => head += &format!(", {} messages", request.n_messages),
            Some(_) => head += ", no messages",
        }
        head += &match request.n_tools {
            0 => ", no tools".to_owned(),
            n => format!(", {n} tools"),
        };
        if request.n_dropped > 0 {
            head += &format!(", {} of the messages before are gone", request.n_dropped);
        }
        self.plain(head);
        if request.n_kept > 0 {
            self.plain(format!("    (the first {} as before)", request.n_kept));
        }
        for message in &request.fresh {
            self.message(message);
        }
        if let Some(body) = &request.other_body {
            let body = self.cut(body);
            self.plain(format!("    body {body}"));
        }
        let reply = self.cut(&request.reply);
        let times = self.limits.times;
        let sent = request.sent.as_ref().map(|one| sent(one, times));
        let sent = sent.unwrap_or_default();
        self.plain(format!("    ← {reply}{sent}"));
    }

    fn message(&mut self, message: &MessageStory) {
        let role = visible_line(&message.role);
        let role = shortened(&role, 20).into_owned();
        if !message.text.is_empty() || message.calls.is_empty() {
            let answers = match &message.answers {
                Some(id) => format!("[{}] ", visible_line(id)),
                None => String::new(),
            };
            let text = if message.role == "system" {
                let text = visible_line(&message.text);
                shortened(&text, self.limits.n_system_chars).into_owned()
            } else {
                self.cut(&message.text)
            };
            self.plain(format!("    {role:<9} {answers}{text}"));
        }
        for call in &message.calls {
            let call = self.cut(call);
            self.plain(format!("    {role:<9} calls {call}"));
        }
    }

    /// The end of an output says more than its start.
    fn output(&mut self, name: &str, output: &Text) {
        if output.text.is_empty() {
            return;
        }
        let n_lines = output.text.lines().count();
        let n_left_out = n_lines.saturating_sub(self.limits.n_lines);
        let mut head = format!("  {name}");
        if output.cut {
            head += ", cut at the limit";
        }
        if n_left_out > 0 {
            head += &format!(", {n_left_out} lines left out");
        }
        self.plain(head);
        for line in output.text.lines().skip(n_left_out) {
            let line = visible(line);
            let line = shortened(&line, self.limits.n_chars);
            self.lines.push(Line {
                kind: LineKind::Plain,
                text: format!("    │ {line}"),
            });
        }
    }

    fn files(&mut self, timeline: &Timeline) {
        let head = match timeline.files.len() {
            0 => format!("files  none of {} changed", timeline.n_unchanged),
            n => format!("files  {n} changed, {} as before", timeline.n_unchanged),
        };
        self.push(LineKind::Head, head);
        for change in &timeline.files {
            let path = visible_line(&change.path).into_owned();
            let note = visible_line(&change.note).into_owned();
            self.plain(format!("  {:<8} {path}  ({note})", change.what));
            let n_lines = change.diff.lines().count();
            for line in change.diff.lines().take(self.limits.n_lines) {
                let kind = match line.as_bytes().first() {
                    Some(b'+') => LineKind::Added,
                    Some(b'-') => LineKind::Removed,
                    _ => LineKind::Plain,
                };
                let line = visible(line);
                let line = shortened(&line, self.limits.n_chars);
                self.push(kind, format!("    {line}"));
            }
            if n_lines > self.limits.n_lines {
                self.plain(format!(
                    "    … {} lines left out",
                    n_lines - self.limits.n_lines
                ));
            }
        }
    }

    fn cut(&self, text: &str) -> String {
        shortened(&visible_line(text), self.limits.n_chars).into_owned()
    }
}

/// As one would type it in a shell.
fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+{}".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) {
        arg.to_owned()
    } else {
        format!("'{}'", visible_line(arg).replace('\'', "'\\''"))
    }
}

/// What went out, and when if `times` are told, in brackets.
fn sent(sent: &Sent, times: bool) -> String {
    let seconds = |ms: Option<u64>| format!("{:.2} s", ms.unwrap_or_default() as f64 / 1000.0);
    let (began, ended) = (seconds(sent.began_ms), seconds(sent.ended_ms));
    let at = match times {
        true => format!(" at {ended}"),
        false => String::new(),
    };
    let Some(status) = sent.status else {
        return match sent.end {
            SentEnd::Left => format!(" (the candidate left before any answer{at})"),
            SentEnd::Open => " (no answer to the end of the launch)".to_owned(),
            SentEnd::Whole | SentEnd::Cut => format!(" (connection ended{at})"),
        };
    };
    let n_bytes = sent.n_bytes;
    match sent.end {
        SentEnd::Whole => {
            let span = match times && began != ended {
                true => format!(" from {began} to {ended}"),
                false => at,
            };
            format!(" ({status}, {n_bytes} bytes{span})")
        }
        SentEnd::Cut => format!(" ({status}, cut after {n_bytes} bytes{at})"),
        SentEnd::Left => {
            format!(" ({status}, the candidate left after {n_bytes} bytes{at})")
        }
        SentEnd::Open => format!(" ({status}, {n_bytes} bytes, then open to the end)"),
    }
}
