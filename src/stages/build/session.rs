//! The turns of one build. The builder runs in its cell; meanwhile what it asks of its model is kept, and what it submits
//! is checked. A submission that passes, or the last one, ends the build at once.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use super::builder::Builder;
use super::launched::Launched;
use super::progress::Line;
use super::room::{self, DOCUMENT, how, ours};
use super::settings::Settings;
use crate::adapters::folders::{FoldersError, unpack};
use crate::adapters::gateway::{Event, Gateway, Reply, Submission, Upstream};
use crate::adapters::sandbox::{Cell, Ended, Exit, Launch};
use crate::domain::build::{Build, State, Submitted, Turn};
use crate::domain::candidate::{Candidate, Source};
use crate::domain::model_call::ModelCall;
use crate::domain::visible::{shortened, visible_line};
use crate::stages::contract::{self, Bench, Report};
use crate::stages::{Classify, Kind, Result};
use crate::storage::builds::{self, BuildFolder};

/// How long calls may take to be told after their cell is gone.
const LAST_CALLS: Duration = Duration::from_secs(10);
/// How a turn ended that has not.
const RUNNING: &str = "running";
/// How often it is looked whether the endpoint has fallen silent.
const TICK: Duration = Duration::from_secs(1);
/// Endpoints that say this will say it again: unauthorized, payment required, forbidden, not found.
const HOPELESS: [u16; 4] = [401, 402, 403, 404];

/// A build under way.
pub struct Session<'a> {
    pub bench: &'a Bench<'a>,
    pub builder: &'a dyn Builder,
    pub settings: &'a Settings,
    pub folder: &'a BuildFolder,
    pub line: Line<'a>,
    pub build: Build,
    last_fault: Option<Fault>,
    began: Instant,
}

/// The last call that the endpoint, or the way to it, answered with an error. What broke off without an answer is none:
/// it may be the builder, or the end of its cell, that broke it off.
struct Fault {
    turn: usize,
    status: u16,
    said: String,
}

impl<'a> Session<'a> {
    pub fn new(
        bench: &'a Bench<'a>,
        builder: &'a dyn Builder,
        settings: &'a Settings,
        folder: &'a BuildFolder,
        line: Line<'a>,
        build: Build,
    ) -> Self {
        Self {
            bench,
            builder,
            settings,
            folder,
            line,
            build,
            last_fault: None,
            began: Instant::now(),
        }
    }

    /// Builds, from the preflight to the end, and closes the cell. The state says how it ended.
    pub async fn run(&mut self, mut cell: Cell, upstream: Option<Upstream>) -> Result<()> {
        if let Some(why) = room::preflight(self.bench, self.builder, &mut cell).await? {
            self.end(State::Aborted, why);
            return cell.close().await.map_err(ours);
        }
        let (sender, mut events) = unbounded_channel();
        let gateway =
            Gateway::serve(cell.take_listener(), upstream, sender).kind(Kind::Environment)?;
        self.began = Instant::now();
        let turns = self.turns(&mut cell, &gateway, &mut events).await;
        cell.close().await.map_err(ours)?;
        drop(gateway);
        turns?;
        while let Ok(Some(event)) = timeout(LAST_CALLS, events.recv()).await {
            if let Event::Call(call) = event {
                self.keep(&call)?;
            }
        }
        Ok(())
    }

    async fn turns(
        &mut self,
        cell: &mut Cell,
        gateway: &Gateway,
        events: &mut UnboundedReceiver<Event>,
    ) -> Result<()> {
        for turn in 1..=self.settings.max_turns {
            let left = self.left();
            if left.is_zero() {
                self.give_up(format!("{} s are over", self.settings.time_limit_s));
                return Ok(());
            }
            gateway.begin_turn(turn);
            self.build.turns.push(Turn {
                ended: RUNNING.to_owned(),
                ..Turn::default()
            });
            self.folder.write(&self.build)?;
            self.show();
            let prompt = match turn {
                1 => &self.settings.task,
                _ => &self.settings.further,
            };
            let argv = self.builder.turn(turn, prompt);
            let ended = self
                .turn(
                    cell,
                    gateway,
                    room::launch(self.builder, argv, left),
                    events,
                )
                .await?;
            self.folder
                .write_transcript(turn, &ended.stdout, &ended.stderr)?;
            let is_over = self.build.state != State::Running;
            let told = self.build.turns.last_mut().expect("was pushed");
            told.duration_ms = millis(ended.duration);
            if !is_over {
                told.ended = how(&ended.exit);
            }
            self.folder.write(&self.build)?;
            self.line.note(&format!(
                "turn {turn}: {}",
                self.build.turns[turn - 1].ended
            ));
            if is_over {
                return Ok(());
            }
            if ended.exit == Exit::TimedOut {
                self.give_up(format!("{} s are over", self.settings.time_limit_s));
                return Ok(());
            }
            if let Some(Fault { status, said, .. }) = self.silence()
                && HOPELESS.contains(status)
            {
                let why = format!("the model's endpoint refuses: status {status}: {said}");
                self.end(State::Aborted, why);
                return Ok(());
            }
        }
        self.give_up(format!("{} turns are used up", self.settings.max_turns));
        Ok(())
    }

    /// One launch of the builder, to its end. A submission is checked to its end too.
    async fn turn(
        &mut self,
        cell: &mut Cell,
        gateway: &Gateway,
        launch: Launch,
        events: &mut UnboundedReceiver<Event>,
    ) -> Result<Ended> {
        let mut launched = Launched::start(cell, launch).await?;
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => {
                    self.take(event, &mut launched).await?;
                    if self.build.state != State::Running {
                        launched.kill().await?;
                    }
                }
                _ = tick.tick() => {
                    self.show();
                    let limit = self.settings.silence_limit();
                    if self.build.state == State::Running && gateway.owed() >= limit {
                        let why = format!("the model's endpoint gave no answer for {} s", limit.as_secs());
                        self.end(State::Aborted, why);
                        launched.kill().await?;
                    }
                }
                () = launched.wait() => {
                    // What it asked before it ended counts.
                    while let Ok(event) = events.try_recv() {
                        self.take(event, &mut launched).await?;
                    }
                    return launched.ended.expect("was waited for");
                }
            }
        }
    }

    async fn take(&mut self, event: Event, launched: &mut Launched<'_>) -> Result<()> {
        match event {
            Event::Call(call) => self.keep(&call)?,
            // Nobody waits for a reply when the build is over.
            Event::Submission(_) if self.build.state != State::Running => {}
            Event::Submission(submission) => self.submitted(submission, launched).await?,
        }
        self.show();
        Ok(())
    }

    fn keep(&mut self, call: &ModelCall) -> Result<()> {
        self.folder.add_call(call)?;
        if let Some(status) = call.status
            && call.refused.is_none()
            && !call.is_answered()
        {
            self.last_fault = Some(Fault {
                turn: call.turn,
                status,
                said: shortened(&visible_line(call.response.trim()), 300).into_owned(),
            });
        }
        let turn = call.turn.checked_sub(1);
        if let Some(turn) = turn.and_then(|turn| self.build.turns.get_mut(turn)) {
            turn.add(call);
        }
        Ok(())
    }

    /// Unpacks and checks a submission, and tells the builder.
    async fn submitted(
        &mut self,
        submission: Submission,
        launched: &mut Launched<'_>,
    ) -> Result<()> {
        let number = self.build.submissions.len() + 1;
        let at_ms = self.elapsed_ms();
        let tree = self.folder.submission(number);
        let name = self.build.name.clone();
        let report = launched
            .during(checked(self.bench, &submission, &name, &tree))
            .await?;
        let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        self.build.submissions.push(Submitted {
            turn: self.build.turns.len(),
            at_ms,
            digest: Some(report.digest.clone()).filter(|digest| !digest.is_empty()),
            findings: findings.clone(),
        });
        let left = self.settings.max_submissions.saturating_sub(number);
        self.line.note(&format!(
            "submission {number} of {}: {}",
            self.settings.max_submissions,
            match findings.len() {
                0 => "passes".to_owned(),
                n => format!("{n} findings"),
            }
        ));
        if report.passed {
            std::fs::rename(&tree, builds::candidate_in(&self.folder.path))?;
            contract::freeze(self.bench.context, &report)?;
            self.end(State::Passed, format!("submission {number} passes"));
        } else if left == 0 {
            self.end(State::Failed, "no submission is left".to_owned());
        }
        self.folder.write(&self.build)?;
        let reply = match report.passed {
            true => Reply {
                code: 0,
                text: "The submission passes and is frozen. The build is over.".to_owned(),
            },
            false => Reply {
                code: 1,
                text: format!(
                    "Submission {number} is returned. {left} left. Findings:\n{}",
                    findings.join("\n")
                ),
            },
        };
        // Who submitted may be gone by now.
        let _ = submission.reply.send(reply);
        Ok(())
    }

    /// Turns or time are used up.
    fn give_up(&mut self, why: String) {
        if self.build.model.is_some() && !self.was_answered() {
            let said = self.last_fault.as_ref().map(|fault| fault.said.as_str());
            let said = said.map(|said| format!(": {said}")).unwrap_or_default();
            self.end(
                State::Aborted,
                format!("{why}, and the model never answered{said}"),
            );
        } else if let Some(Fault { status, said, .. }) = self.silence() {
            let why = format!("{why}, and the model answered no more: status {status}: {said}");
            self.end(State::Aborted, why);
        } else if self.build.submissions.is_empty() {
            self.end(State::NotDelivered, why);
        } else {
            self.end(State::Failed, why);
        }
    }

    /// The record is whole from here on: whoever is killed behind this has lost nothing of the build.
    fn end(&mut self, state: State, why: String) {
        self.build.state = state;
        self.build.why = Some(why);
        self.build.duration_ms = self.elapsed_ms();
        if let Some(turn) = self.build.turns.last_mut()
            && turn.ended == RUNNING
        {
            turn.ended = "stopped: the build was over".to_owned();
        }
    }

    fn was_answered(&self) -> bool {
        self.build.turns.iter().any(|turn| turn.n_answered > 0)
    }

    /// What the endpoint said last, when in the last turn it gave errors and no answer.
    fn silence(&self) -> Option<&Fault> {
        let last = self.build.turns.last()?;
        let fault = self.last_fault.as_ref()?;
        (last.n_answered == 0 && fault.turn == self.build.turns.len()).then_some(fault)
    }

    fn left(&self) -> Duration {
        Duration::from_secs(self.settings.time_limit_s).saturating_sub(self.began.elapsed())
    }

    fn elapsed_ms(&self) -> u64 {
        millis(self.began.elapsed())
    }

    fn show(&self) {
        let left = self.left().as_secs();
        let tokens = self.build.tokens();
        self.line.show(&format!(
            "turn {}/{}, {}:{:02}:{:02} left, {} tokens, {}/{} submissions",
            self.build.turns.len(),
            self.settings.max_turns,
            left / 3600,
            left / 60 % 60,
            left % 60,
            tokens.input + tokens.output,
            self.build.submissions.len(),
            self.settings.max_submissions
        ));
    }
}

/// Unpacks a submission to `tree`, and checks it.
async fn checked(
    bench: &Bench<'_>,
    submission: &Submission,
    name: &str,
    tree: &Path,
) -> Result<Report> {
    let (archive, to) = (submission.archive.clone(), tree.to_path_buf());
    let unpacked = tokio::task::spawn_blocking(move || unpack(&archive, &to, &[DOCUMENT]));
    match unpacked.await? {
        Err(error @ FoldersError::NotCopied { .. }) => {
            Ok(Report::refused(name, &error.to_string()))
        }
        unpacked => {
            unpacked?;
            let candidate = Candidate {
                name: name.to_owned(),
                source: Source::Tree(tree.to_path_buf()),
            };
            contract::check(bench, &candidate).await
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
