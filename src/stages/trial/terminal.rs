//! A launch in a terminal: keys are typed when the screen shows what they wait for.

use std::num::NonZeroU16;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::adapters::sandbox::{
    Cell, Ended, Launch, SandboxError, Terminal, TerminalEvent, TerminalSize,
};
use crate::domain::case::{self, Bindings, Key, key_bytes};

/// How long a key waits for its screen condition before the program is killed.
const WAIT_LIMIT: Duration = Duration::from_secs(10);
const DEFAULT_SIZE: [u16; 2] = [80, 24];
/// Of the raw output so much is kept.
const OUTPUT_BYTES: usize = 1 << 20;

/// What the terminal showed.
pub(super) struct Seen {
    pub(super) output: Vec<u8>,
    pub(super) cut: bool,
    /// The screen at the end.
    pub(super) screen: String,
    pub(super) keys_unsent: usize,
}

pub(super) async fn run(
    launch: &case::Launch,
    order: Launch,
    bindings: &Bindings,
    cell: &mut Cell,
) -> Result<(Ended, Seen), SandboxError> {
    let size = terminal_size(launch.size.unwrap_or(DEFAULT_SIZE));
    let mut screen = Screen::new(size);
    let mut terminal = cell.terminal(order, size).await?;
    let mut ended = None;
    let mut n_typed = 0;
    for key in &launch.keys {
        let done = step(key, bindings, &mut terminal, &mut screen).await?;
        match done {
            Step::Typed => n_typed += 1,
            Step::Ended(how) => {
                ended = Some(how);
                break;
            }
            Step::Never => {
                terminal.kill().await?;
                break;
            }
        }
    }
    let ended = match ended {
        Some(ended) => ended,
        None => loop {
            match terminal.next().await? {
                TerminalEvent::Output(bytes) => screen.show(&bytes),
                TerminalEvent::Ended(ended) => break ended,
            }
        },
    };
    let seen = Seen {
        screen: screen.text(),
        output: screen.output,
        cut: screen.cut,
        keys_unsent: launch.keys.len() - n_typed,
    };
    Ok((ended, seen))
}

enum Step {
    Typed,
    /// The program ended first.
    Ended(Ended),
    /// What the key waits for did not come.
    Never,
}

async fn step(
    key: &Key,
    bindings: &Bindings,
    terminal: &mut Terminal<'_>,
    screen: &mut Screen,
) -> Result<Step, SandboxError> {
    if let Some(wanted) = &key.wait {
        return wait(&bindings.expand(wanted), terminal, screen).await;
    }
    if let Some([columns, rows]) = key.resize {
        let size = terminal_size([columns, rows]);
        screen.resize(size);
        terminal.resize(size).await?;
        return Ok(Step::Typed);
    }
    let bytes = if let Some(text) = &key.r#type {
        bindings.expand(text).into_bytes()
    } else if let Some(text) = &key.paste {
        format!("\x1b[200~{}\x1b[201~", bindings.expand(text)).into_bytes()
    } else {
        let name = key.press.as_deref().expect("a checked key does one thing");
        key_bytes(name).expect("a checked key has a known name")
    };
    terminal.write(&bytes).await?;
    Ok(Step::Typed)
}

async fn wait(
    wanted: &str,
    terminal: &mut Terminal<'_>,
    screen: &mut Screen,
) -> Result<Step, SandboxError> {
    let deadline = Instant::now() + WAIT_LIMIT;
    while !screen.contents().contains(wanted) {
        match timeout_at(deadline, terminal.next()).await {
            Err(_) => return Ok(Step::Never),
            Ok(event) => match event? {
                TerminalEvent::Output(bytes) => screen.show(&bytes),
                TerminalEvent::Ended(ended) => return Ok(Step::Ended(ended)),
            },
        }
    }
    Ok(Step::Typed)
}

fn terminal_size([columns, rows]: [u16; 2]) -> TerminalSize {
    TerminalSize {
        columns: columns.max(1),
        rows: rows.max(1),
    }
}

/// The emulated screen, and the raw output.
struct Screen {
    parser: vt100::Parser,
    output: Vec<u8>,
    cut: bool,
}

impl Screen {
    fn new(size: TerminalSize) -> Self {
        let (rows, columns) = cells(size);
        Self {
            parser: vt100::Parser::new(rows, columns, 0),
            output: Vec::new(),
            cut: false,
        }
    }

    fn show(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
        let room = OUTPUT_BYTES.saturating_sub(self.output.len());
        self.cut |= bytes.len() > room;
        self.output
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn resize(&mut self, size: TerminalSize) {
        let (rows, columns) = cells(size);
        self.parser.screen_mut().set_size(rows, columns);
    }

    /// One line a row, with the blanks that were written at its end.
    fn contents(&self) -> String {
        self.parser.screen().contents()
    }

    /// The same without empty rows at the end.
    fn text(&self) -> String {
        self.contents().trim_end().to_owned()
    }
}

fn cells(size: TerminalSize) -> (NonZeroU16, NonZeroU16) {
    let one = NonZeroU16::MIN;
    (
        NonZeroU16::new(size.rows).unwrap_or(one),
        NonZeroU16::new(size.columns).unwrap_or(one),
    )
}
