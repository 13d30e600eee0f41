//! Plays the launches of a case: one after the other, or beside each other where the case says so; signals and starts
//! come at the moments that the case names, and what they wait for is held until then.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::launch::{self, never_started};
use super::terminal::{Act, Terminal};
use crate::adapters::folders::Folders;
use crate::adapters::mock::{BASE_PATH, Mock};
use crate::adapters::sandbox::{Cell, Ended, LaunchEvent, LaunchId, SandboxError};
use crate::domain::case::{self, Bindings, Case, KeyWait, Moment, Signal};
use crate::domain::evidence::LaunchEvidence;
use crate::methods::judge;

/// How often it is looked whether a file is there.
const FILE_TICK: Duration = Duration::from_millis(10);

/// Runs every launch to its end. What they bind is added to the bindings.
pub(super) async fn all(
    case: &Case,
    bindings: &mut Bindings,
    (folders, owner): (&Folders, (u32, u32)),
    cell: &mut Cell,
    mock: &Mock,
) -> Result<Vec<LaunchEvidence>, SandboxError> {
    let states = case.launches.iter().map(|_| State::Waiting);
    let mut play = Play {
        case,
        bindings,
        folders,
        owner,
        cell,
        mock,
        began: Instant::now(),
        is_broken_off: false,
        states: states.collect(),
    };
    play.run().await?;
    let over = play.states.into_iter().map(|state| match state {
        State::Over(evidence) => *evidence,
        State::Waiting | State::Running(_) => unreachable!("the play ends when all is over"),
    });
    Ok(over.collect())
}

struct Play<'a> {
    case: &'a Case,
    bindings: &'a mut Bindings,
    folders: &'a Folders,
    /// Whose the folders are.
    owner: (u32, u32),
    cell: &'a mut Cell,
    mock: &'a Mock,
    began: Instant,
    /// A value that later launches need was not caught: nothing more is started.
    is_broken_off: bool,
    /// One a launch.
    states: Vec<State<'a>>,
}

enum State<'a> {
    Waiting,
    Running(Box<Running<'a>>),
    Over(Box<LaunchEvidence>),
}

struct Running<'a> {
    id: LaunchId,
    argv: Vec<String>,
    base_path: String,
    started: Instant,
    terminal: Option<Terminal<'a>>,
    /// Signals of the case that were sent, and those of them that are known to have been.
    n_sent: usize,
    n_known_sent: usize,
    /// It was ended since a key waited in vain.
    is_given_up: bool,
}

impl<'a> Play<'a> {
    async fn run(&mut self) -> Result<(), SandboxError> {
        let mut news = self.mock.news();
        loop {
            news.mark_unchanged();
            while self.advance().await? {}
            if self
                .states
                .iter()
                .all(|state| matches!(state, State::Over(_)))
            {
                return Ok(());
            }
            let wake_at = self.wake_at();
            tokio::select! {
                event = self.cell.next() => {
                    let (id, event) = event?;
                    self.take(id, event);
                }
                // The mock lives as long as the play.
                _ = news.changed() => {}
                () = sleep_until(wake_at.unwrap_or(self.began)), if wake_at.is_some() => {}
            }
        }
    }

    /// Does what can be done now. `true`: there may be more.
    async fn advance(&mut self) -> Result<bool, SandboxError> {
        for idx in 0..self.states.len() {
            let done = match &self.states[idx] {
                State::Waiting => self.start(idx).await?,
                State::Running(_) => self.send_signal(idx).await?,
                State::Over(_) => false,
            };
            if done {
                return Ok(true);
            }
        }
        // A key may wipe away what a start waits for, so keys come after starts.
        for idx in 0..self.states.len() {
            if self.type_key(idx).await? {
                return Ok(true);
            }
        }
        for idx in 0..self.states.len() {
            if let State::Running(running) = &self.states[idx] {
                for request in held(self.case, idx) {
                    if !self.is_awaited(idx, request) {
                        self.mock.release(&running.base_path, request);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Starts a launch whose time has come, or settles that it never comes.
    async fn start(&mut self, idx: usize) -> Result<bool, SandboxError> {
        let launch = &self.case.launches[idx];
        let can_start = match &launch.alongside {
            None => self.states[..idx]
                .iter()
                .all(|state| matches!(state, State::Over(_))),
            Some(alongside) => self.has_come(alongside.launch - 1, &alongside.once),
        };
        let is_never = match &launch.alongside {
            Some(alongside) => matches!(self.states[alongside.launch - 1], State::Over(_)),
            None => false,
        };
        if self.is_broken_off || (is_never && !can_start) {
            self.states[idx] = State::Over(Box::new(never_started(launch, self.bindings)));
            return Ok(true);
        }
        if !can_start {
            return Ok(false);
        }
        let base_path = match launch.alongside {
            None => BASE_PATH.to_owned(),
            Some(_) => format!("/launch-{}{BASE_PATH}", idx + 1),
        };
        self.mock.begin(
            &base_path,
            launch::script(launch, self.bindings),
            held(self.case, idx),
        );
        let order = launch::order(launch, self.bindings, &base_path);
        let argv = order.argv.clone();
        let id = self.cell.start(order, launch::stdio(launch)).await?;
        self.states[idx] = State::Running(Box::new(Running {
            id,
            argv,
            base_path,
            started: Instant::now(),
            terminal: (launch.route == case::Route::Terminal).then(|| Terminal::new(launch)),
            n_sent: 0,
            n_known_sent: 0,
            is_given_up: false,
        }));
        Ok(true)
    }

    async fn send_signal(&mut self, idx: usize) -> Result<bool, SandboxError> {
        let State::Running(running) = &self.states[idx] else {
            return Ok(false);
        };
        let signals = &self.case.launches[idx].signals;
        let Some(signal) = signals.get(running.n_sent) else {
            return Ok(false);
        };
        if !self.has_come(idx, &signal.once) {
            return Ok(false);
        }
        self.cell.signal(running.id, signal.send.number()).await?;
        if let State::Running(running) = &mut self.states[idx] {
            running.n_sent += 1;
        }
        Ok(true)
    }

    async fn type_key(&mut self, idx: usize) -> Result<bool, SandboxError> {
        let is_paused = self.is_paused(idx);
        let has_come = match &self.states[idx] {
            State::Running(running) => {
                let wait = running.terminal.as_ref().and_then(Terminal::wait);
                wait.is_some_and(|wait| match wait {
                    KeyWait::Screen(text) => self.shows(idx, text),
                    KeyWait::Moment(moment) => self.has_come(idx, moment),
                })
            }
            State::Waiting | State::Over(_) => false,
        };
        let State::Running(running) = &mut self.states[idx] else {
            return Ok(false);
        };
        let Some(terminal) = running.terminal.as_mut().filter(|_| !is_paused) else {
            return Ok(false);
        };
        if running.is_given_up {
            return Ok(false);
        }
        match terminal.next(has_come, self.bindings) {
            Act::GoOn => {}
            Act::Type(bytes) => self.cell.write(running.id, &bytes).await?,
            Act::Resize(size) => self.cell.resize(running.id, size).await?,
            Act::GiveUp => {
                running.is_given_up = true;
                self.cell.kill(running.id).await?;
            }
            Act::Wait => return Ok(false),
        }
        Ok(true)
    }

    /// Whether the moment has come in that launch, which may be over by now.
    fn has_come(&self, idx: usize, moment: &Moment) -> bool {
        let State::Running(running) = &self.states[idx] else {
            return false;
        };
        match moment {
            Moment::Request(n) => self.mock.n_requests(&running.base_path) >= *n,
            Moment::Screen(text) => self.shows(idx, text),
            Moment::File(path) => self.folders.holds(path, self.bindings, self.owner),
        }
    }

    /// Whether the screen of that launch shows this text now.
    fn shows(&self, idx: usize, text: &str) -> bool {
        let State::Running(running) = &self.states[idx] else {
            return false;
        };
        let terminal = running.terminal.as_ref();
        terminal.is_some_and(|terminal| terminal.shows(&self.bindings.expand(text)))
    }

    /// Whether something that the case wants to happen at this request has not happened yet.
    fn is_awaited(&self, idx: usize, request: usize) -> bool {
        let moment = Moment::Request(request);
        let State::Running(running) = &self.states[idx] else {
            return false;
        };
        let mut signals = self.case.launches[idx].signals.iter().enumerate();
        signals.any(|(n, signal)| {
            // What is killed needs no reply, and must not get one before it is dead.
            signal.once == moment && (n >= running.n_known_sent || signal.send == Signal::Kill)
        }) || self
            .guests(idx, &moment)
            .any(|guest| self.is_in_the_way(guest))
    }

    /// Whether no key is typed since another launch has the word.
    fn is_paused(&self, idx: usize) -> bool {
        let once = |guest: usize| {
            let alongside = self.case.launches[guest].alongside.as_ref();
            alongside.map(|alongside| &alongside.once)
        };
        (idx + 1..self.states.len()).any(|guest| {
            let screen = once(guest).filter(|once| matches!(once, Moment::Screen(_)));
            let is_guest =
                screen.is_some_and(|once| self.guests(idx, once).any(|one| one == guest));
            is_guest && matches!(self.states[guest], State::Running(_)) && self.is_in_the_way(guest)
        })
    }

    /// Launches that start at this moment of that launch.
    fn guests(&self, idx: usize, moment: &Moment) -> impl Iterator<Item = usize> {
        let launches = self.case.launches.iter().enumerate();
        let guests = launches.filter(move |(_, launch)| {
            let alongside = launch.alongside.as_ref();
            alongside.is_some_and(|other| other.launch == idx + 1 && other.once == *moment)
        });
        guests.map(|(guest, _)| guest)
    }

    /// Whether a launch beside another has not come to where the other may go on.
    fn is_in_the_way(&self, guest: usize) -> bool {
        let alongside = self.case.launches[guest].alongside.as_ref();
        let until = alongside.and_then(|alongside| alongside.until.as_ref());
        match (&self.states[guest], until) {
            (State::Over(_), _) => false,
            (_, None) => true,
            (_, Some(until)) => !self.has_come(guest, until),
        }
    }

    /// When to look again although nothing is heard.
    fn wake_at(&self) -> Option<Instant> {
        let is_file = |moment: &Moment| matches!(moment, Moment::File(_));
        let waits_for_file = self
            .case
            .launches
            .iter()
            .zip(&self.states)
            .any(|(launch, state)| {
                let alongside = launch.alongside.as_ref();
                match state {
                    State::Waiting => alongside.is_some_and(|other| is_file(&other.once)),
                    State::Running(running) => {
                        let signal = launch.signals.get(running.n_sent);
                        let until = alongside.and_then(|other| other.until.as_ref());
                        let key = running.terminal.as_ref().and_then(Terminal::wait);
                        let key = key.is_some_and(
                            |wait| matches!(wait, KeyWait::Moment(moment) if is_file(moment)),
                        );
                        key || signal.is_some_and(|signal| is_file(&signal.once))
                            || until.is_some_and(is_file)
                    }
                    State::Over(_) => false,
                }
            });
        let tick = waits_for_file.then(|| Instant::now() + FILE_TICK);
        let deadlines = self.states.iter().filter_map(|state| match state {
            State::Running(running) if !running.is_given_up => {
                running.terminal.as_ref()?.deadline()
            }
            _ => None,
        });
        deadlines.chain(tick).min()
    }

    fn take(&mut self, id: LaunchId, event: LaunchEvent) {
        let is_it = |state: &State| matches!(state, State::Running(running) if running.id == id);
        let Some(idx) = self.states.iter().position(is_it) else {
            return;
        };
        let State::Running(running) = &mut self.states[idx] else {
            return;
        };
        match event {
            LaunchEvent::Output(bytes) => {
                if let Some(terminal) = &mut running.terminal {
                    terminal.show(&bytes);
                }
            }
            LaunchEvent::Signalled => running.n_known_sent += 1,
            LaunchEvent::Ended(ended) => self.end(idx, ended),
        }
    }

    fn end(&mut self, idx: usize, mut ended: Ended) {
        let state = std::mem::replace(&mut self.states[idx], State::Waiting);
        let State::Running(mut running) = state else {
            unreachable!("only what runs ends");
        };
        if let Some(terminal) = &mut running.terminal {
            // What was read last came with the report.
            terminal.show(&std::mem::take(&mut ended.stdout));
            // Keys that wait for nothing more are lost with the program, and were typed all the same.
            if !running.is_given_up {
                loop {
                    let has_come = match terminal.wait() {
                        Some(KeyWait::Screen(text)) => terminal.shows(&self.bindings.expand(text)),
                        Some(KeyWait::Moment(_)) | None => false,
                    };
                    if matches!(
                        terminal.next(has_come, self.bindings),
                        Act::Wait | Act::GiveUp
                    ) {
                        break;
                    }
                }
            }
        }
        let asked = self.mock.end(&running.base_path);
        let launch = &self.case.launches[idx];
        let mut evidence = launch::evidence(running.argv, ended, running.terminal, asked);
        evidence.signals_unsent = launch.signals.len() - running.n_sent;
        let started = running.started.duration_since(self.began);
        evidence.started_ms = u64::try_from(started.as_millis()).unwrap_or(u64::MAX);
        for (name, capture) in &launch.bind {
            match judge::caught(capture, &evidence, self.bindings) {
                Some(value) => {
                    self.bindings.0.insert(format!("bound:{name}"), value);
                }
                None => evidence.unbound.push(name.clone()),
            }
        }
        self.is_broken_off |= !evidence.unbound.is_empty();
        self.states[idx] = State::Over(Box::new(evidence));
    }
}

/// Requests of a launch whose replies wait for what the case wants to happen at them.
fn held(case: &Case, idx: usize) -> BTreeSet<usize> {
    let signals = case.launches[idx].signals.iter().map(|signal| &signal.once);
    let guests = case
        .launches
        .iter()
        .filter_map(|launch| launch.alongside.as_ref());
    let guests = guests.filter(|alongside| alongside.launch == idx + 1);
    signals
        .chain(guests.map(|alongside| &alongside.once))
        .filter_map(|moment| match moment {
            Moment::Request(n) => Some(*n),
            Moment::Screen(_) | Moment::File(_) => None,
        })
        .collect()
}
