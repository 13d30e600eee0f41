//! Programs that run in one cell at the same time, and how their standard input is connected.

use std::time::Duration;

use doc2harness::adapters::sandbox::{
    Cell, Ended, Exit, Launch, LaunchEvent, LaunchId, Stdio, TerminalSize,
};

use super::{Place, others, sh, text};

/// Runs until this launch has ended. The others' ends go lost.
async fn end(cell: &mut Cell, id: LaunchId) -> Ended {
    loop {
        if let (ended_id, LaunchEvent::Ended(ended)) = cell.next().await.unwrap()
            && ended_id == id
        {
            return ended;
        }
    }
}

pub async fn programs_run_beside_each_other(place: Place) {
    let mut cell = place.open().await;
    // Each waits for the other's file, which appears with its content.
    let first = "echo first > new-a; mv new-a a; while [ ! -e b ]; do sleep 0.02; done; cat b; \
                 sleep 600 & exit 3";
    let second = "while [ ! -e a ]; do sleep 0.02; done; cat a >&2; echo second > new-b; mv new-b b; \
                  cat; exit 4";
    let first = cell.start(sh(first), Stdio::Pipes).await.unwrap();
    let fed = Launch {
        stdin: b"fed".into(),
        ..sh(second)
    };
    let second = cell.start(fed, Stdio::Pipes).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        if let (id, LaunchEvent::Ended(ended)) = cell.next().await.unwrap() {
            seen.push((id, ended));
        }
    }
    let of = |wanted| &seen.iter().find(|(id, _)| *id == wanted).unwrap().1;
    assert_eq!(
        (of(first).exit.clone(), text(&of(first).stdout)),
        (Exit::Code(3), "second\n")
    );
    let second = of(second);
    assert_eq!(
        (
            second.exit.clone(),
            text(&second.stdout),
            text(&second.stderr)
        ),
        (Exit::Code(4), "fed", "first\n")
    );
    // What the first left behind died with the last.
    assert_eq!(others(&mut cell).await, 0);
    cell.close().await.unwrap();
}

pub async fn a_program_ends_without_its_neighbour(place: Place) {
    let mut cell = place.open().await;
    let size = TerminalSize {
        columns: 80,
        rows: 24,
    };
    let stays = sh("read line; echo got $line; sleep 0.1");
    let stays = cell.start(stays, Stdio::Terminal(size)).await.unwrap();
    let limited = Launch {
        time_limit: Duration::from_millis(100),
        ..sh("sleep 600")
    };
    let limited = cell.start(limited, Stdio::Pipes).await.unwrap();
    assert_eq!(end(&mut cell, limited).await.exit, Exit::TimedOut);
    let killed = cell.start(sh("sleep 600"), Stdio::Pipes).await.unwrap();
    cell.kill(killed).await.unwrap();
    let killed = end(&mut cell, killed).await;
    assert_eq!(killed.exit, Exit::Signal(libc::SIGKILL));
    // Nobody has touched the one in the terminal.
    cell.write(stays, b"it\r").await.unwrap();
    let mut shown = Vec::new();
    let ended = loop {
        match cell.next().await.unwrap().1 {
            LaunchEvent::Output(bytes) => shown.extend(bytes),
            LaunchEvent::Signalled => {}
            LaunchEvent::Ended(ended) => break ended,
        }
    };
    shown.extend(ended.stdout);
    assert!(text(&shown).contains("got it"), "{shown:?}");
    assert_eq!(ended.exit, Exit::Code(0));
    cell.close().await.unwrap();
}

pub async fn signals_reach_the_process_group(place: Place) {
    let mut cell = place.open().await;
    // The shell waits for its child, which alone would not tell of the signal. The child says that both can hear it: a
    // signal that meets a shell between fork and exec of a command is lost on the command.
    let script = "trap 'echo told; exit 7' TERM; sh -c 'touch ready; exec sleep 600'; echo never";
    let id = cell.start(sh(script), Stdio::Pipes).await.unwrap();
    while !place.host("workspace/ready").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    cell.signal(id, libc::SIGTERM).await.unwrap();
    let ended = end(&mut cell, id).await;
    assert_eq!((ended.exit, text(&ended.stdout)), (Exit::Code(7), "told\n"));
    // To one that is gone: nothing happens.
    cell.signal(id, libc::SIGKILL).await.unwrap();
    assert_eq!(cell.launch(sh("exit 0")).await.unwrap().exit, Exit::Code(0));
    cell.close().await.unwrap();
}

pub async fn standard_input_stays_open_or_is_not_there(place: Place) {
    let mut cell = place.open().await;
    let script = "read line; echo got $line; timeout 0.2 cat; echo $?";
    let fed = Launch {
        stdin: b"it\n".into(),
        ..sh(script)
    };
    let id = cell.start(fed, Stdio::OpenInput).await.unwrap();
    // 124: no end of input came.
    assert_eq!(text(&end(&mut cell, id).await.stdout), "got it\n124\n");
    let script = "[ -e /proc/self/fd/0 ] && echo there || echo closed";
    let id = cell.start(sh(script), Stdio::NoInput).await.unwrap();
    assert_eq!(text(&end(&mut cell, id).await.stdout), "closed\n");
    cell.close().await.unwrap();
}
