//! The terminal of a launch: the emulated screen, and the keys that are typed when it shows what they wait for.

use std::num::NonZeroU16;
use std::time::Duration;

use tokio::time::Instant;

use crate::adapters::sandbox::TerminalSize;
use crate::domain::case::{self, Bindings, Key, KeyWait, key_bytes};

/// How long a key waits in vain before the program is killed.
const WAIT_LIMIT: Duration = Duration::from_secs(10);
const DEFAULT_SIZE: [u16; 2] = [80, 24];
/// Of the raw output so much is kept.
const OUTPUT_BYTES: usize = 1 << 20;

/// A screen and the keys that are still to be typed.
pub(super) struct Terminal<'a> {
    keys: &'a [Key],
    n_done: usize,
    /// When the key that waits now stops waiting.
    deadline: Option<Instant>,
    parser: vt100::Parser,
    pub(super) output: Vec<u8>,
    pub(super) cut: bool,
}

/// What is to be done at the terminal.
pub(super) enum Act {
    Type(Vec<u8>),
    Resize(TerminalSize),
    /// What a key waited for has come: the next key has its turn.
    GoOn,
    /// What a key waits for did not come: the program is ended.
    GiveUp,
    /// Nothing for now.
    Wait,
}

pub(super) fn size(launch: &case::Launch) -> TerminalSize {
    terminal_size(launch.size.unwrap_or(DEFAULT_SIZE))
}

impl<'a> Terminal<'a> {
    pub(super) fn new(launch: &'a case::Launch) -> Self {
        let (rows, columns) = cells(size(launch));
        Self {
            keys: &launch.keys,
            n_done: 0,
            deadline: None,
            parser: vt100::Parser::new(rows, columns, 0),
            output: Vec::new(),
            cut: false,
        }
    }

    pub(super) fn show(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
        let room = OUTPUT_BYTES.saturating_sub(self.output.len());
        self.cut |= bytes.len() > room;
        self.output
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    pub(super) fn shows(&self, text: &str) -> bool {
        self.parser.screen().contents().contains(text)
    }

    /// The screen, one line a row, without empty rows at its end.
    pub(super) fn text(&self) -> String {
        self.parser.screen().contents().trim_end().to_owned()
    }

    pub(super) fn n_unsent(&self) -> usize {
        self.keys.len() - self.n_done
    }

    /// When [`Terminal::next`] has something else to say although nothing was shown.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// What the next key waits for.
    pub(super) fn wait(&self) -> Option<&'a KeyWait> {
        self.keys.get(self.n_done)?.wait.as_ref()
    }

    /// The next thing to do, where `has_come` says whether what the next key waits for is there. A key that it returns
    /// counts as typed.
    pub(super) fn next(&mut self, has_come: bool, bindings: &Bindings) -> Act {
        let Some(key) = self.keys.get(self.n_done) else {
            return Act::Wait;
        };
        let act = if key.wait.is_some() {
            if !has_come {
                let now = Instant::now();
                return match *self.deadline.get_or_insert(now + WAIT_LIMIT) {
                    deadline if now >= deadline => Act::GiveUp,
                    _ => Act::Wait,
                };
            }
            self.deadline = None;
            Act::GoOn
        } else if let Some(size) = key.resize {
            let size = terminal_size(size);
            let (rows, columns) = cells(size);
            self.parser.screen_mut().set_size(rows, columns);
            Act::Resize(size)
        } else if let Some(text) = &key.r#type {
            Act::Type(bindings.expand(text).into_bytes())
        } else if let Some(text) = &key.paste {
            let text = bindings.expand(text);
            Act::Type(format!("\x1b[200~{text}\x1b[201~").into_bytes())
        } else {
            let name = key.press.as_deref().expect("a checked key does one thing");
            Act::Type(key_bytes(name).expect("a checked key has a known name"))
        };
        self.n_done += 1;
        act
    }
}

fn terminal_size([columns, rows]: [u16; 2]) -> TerminalSize {
    TerminalSize {
        columns: columns.max(1),
        rows: rows.max(1),
    }
}

fn cells(size: TerminalSize) -> (NonZeroU16, NonZeroU16) {
    let one = NonZeroU16::MIN;
    (
        NonZeroU16::new(size.rows).unwrap_or(one),
        NonZeroU16::new(size.columns).unwrap_or(one),
    )
}
