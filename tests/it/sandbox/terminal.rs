//! Programs in a terminal.

use std::time::Duration;

use doc2harness::adapters::sandbox::{Exit, Launch, LaunchEvent, Terminal, TerminalSize};

use super::{Place, others, python, sh, text};

const SIZE: TerminalSize = TerminalSize {
    columns: 100,
    rows: 30,
};

/// Reads what a terminal shows until it has shown `wanted`.
async fn shown(terminal: &mut Terminal<'_>, wanted: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(wanted) {
        match terminal.next().await.unwrap() {
            LaunchEvent::Output(bytes) => seen.push_str(text(&bytes)),
            LaunchEvent::Signalled => {}
            LaunchEvent::Ended(ended) => panic!("ended without {wanted:?}: {seen:?} {ended:?}"),
        }
    }
    seen
}

pub async fn terminal_has_the_size_asked_for(place: Place) {
    let mut cell = place.open().await;
    let script = "import os, sys
print(os.get_terminal_size(), [os.isatty(i) for i in range(3)], os.ttyname(0), os.open('/dev/tty', os.O_RDWR) > 2)";
    let ended = cell
        .terminal(python(script), SIZE)
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(ended.exit, Exit::Code(0));
    assert_eq!(
        text(&ended.stdout),
        "os.terminal_size(columns=100, lines=30) [True, True, True] /dev/pts/0 True\r\n"
    );
    cell.close().await.unwrap();
}

pub async fn terminal_echoes_what_is_typed(place: Place) {
    let mut cell = place.open().await;
    let mut terminal = cell
        .terminal(
            Launch {
                stdin: b"first\r".into(),
                ..sh("cat")
            },
            SIZE,
        )
        .await
        .unwrap();
    assert_eq!(
        shown(&mut terminal, "first\r\nfirst\r\n").await,
        "first\r\nfirst\r\n"
    );
    terminal.write("gr\u{fc}n\r".as_bytes()).await.unwrap();
    assert_eq!(
        shown(&mut terminal, "n\r\ngr\u{fc}n\r\n").await,
        "gr\u{fc}n\r\ngr\u{fc}n\r\n"
    );
    // Longer than a terminal takes at once, and read in raw mode.
    terminal.write(b"\x04").await.unwrap();
    assert_eq!(terminal.wait().await.unwrap().exit, Exit::Code(0));
    let raw = "import sys, tty; tty.setraw(0); print('go', flush=True); print(len(sys.stdin.buffer.read(50000)))";
    let mut terminal = cell.terminal(python(raw), SIZE).await.unwrap();
    shown(&mut terminal, "go").await;
    terminal.write(&[b'x'; 50_000]).await.unwrap();
    shown(&mut terminal, "50000").await;
    drop(terminal);
    cell.close().await.unwrap();
}

pub async fn terminal_can_be_resized(place: Place) {
    let mut cell = place.open().await;
    let script = "trap 'stty size; exit 4' WINCH; echo ready; while :; do sleep 0.02; done";
    let mut terminal = cell.terminal(sh(script), SIZE).await.unwrap();
    shown(&mut terminal, "ready").await;
    terminal
        .resize(TerminalSize {
            columns: 120,
            rows: 40,
        })
        .await
        .unwrap();
    let ended = terminal.wait().await.unwrap();
    assert_eq!(
        (ended.exit, text(&ended.stdout)),
        (Exit::Code(4), "\r\n40 120\r\n".trim_start())
    );
    cell.close().await.unwrap();
}

pub async fn control_characters_are_signals(place: Place) {
    let mut cell = place.open().await;
    let script = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.02; done";
    let mut terminal = cell.terminal(sh(script), SIZE).await.unwrap();
    shown(&mut terminal, "ready").await;
    terminal.write(b"\x03").await.unwrap();
    let ended = terminal.wait().await.unwrap();
    assert_eq!(ended.exit, Exit::Code(9));
    assert!(text(&ended.stdout).contains("caught"), "{ended:?}");
    cell.close().await.unwrap();
}

pub async fn terminal_flood_is_cut(mut place: Place) {
    place.limits.output_kib = 64;
    let mut cell = place.open().await;
    let mut limits = [600, 3_000, 20_000].into_iter();
    // More time when the machine was too busy for the flood to get so far.
    let ended = loop {
        let flood = Launch {
            time_limit: Duration::from_millis(limits.next().expect("it was cut before")),
            ..sh("yes")
        };
        let terminal = cell.terminal(flood, SIZE).await.unwrap();
        let ended = terminal.wait().await.unwrap();
        assert_eq!(ended.exit, Exit::TimedOut);
        if ended.stdout_cut {
            break ended;
        }
    };
    assert_eq!(ended.stdout.len(), 64 * 1024);
    cell.close().await.unwrap();
}

pub async fn terminal_obeys_kill_and_drop(place: Place) {
    let mut cell = place.open().await;
    let mut terminal = cell
        .terminal(sh("trap '' TERM; echo up; while :; do sleep 1; done"), SIZE)
        .await
        .unwrap();
    shown(&mut terminal, "up").await;
    terminal.kill().await.unwrap();
    assert_eq!(
        terminal.wait().await.unwrap().exit,
        Exit::Signal(libc::SIGKILL)
    );
    drop(cell.terminal(sh("sleep 600"), SIZE).await.unwrap());
    assert_eq!(others(&mut cell).await, 0);
    cell.close().await.unwrap();
}
