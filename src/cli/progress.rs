//! Progress on stderr: a bar on a terminal, a line at the start and the end of each piece of work elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::stages::Progress;
use crate::stages::context::Silent;

pub(super) fn choose(quiet: bool) -> Box<dyn Progress> {
    if quiet {
        Box::new(Silent)
    } else if std::io::stderr().is_terminal() {
        Box::new(Bar::default())
    } else {
        Box::new(Plain::default())
    }
}

#[derive(Default)]
struct Bar {
    bar: Mutex<Option<ProgressBar>>,
}

impl Bar {
    fn with(&self, act: impl FnOnce(&mut Option<ProgressBar>)) {
        act(&mut self.bar.lock().expect("no holder of this lock panics"));
    }
}

impl Progress for Bar {
    fn begin(&self, what: &str, total: Option<u64>) {
        let bar = match total {
            Some(total) => ProgressBar::new(total).with_style(
                ProgressStyle::with_template("{msg:<10} {wide_bar} {pos}/{len} {eta}")
                    .expect("the template is a constant"),
            ),
            None => ProgressBar::new_spinner().with_style(
                ProgressStyle::with_template("{spinner} {msg} {pos} {prefix}")
                    .expect("the template is a constant"),
            ),
        };
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        self.with(|slot| *slot = Some(bar));
    }

    fn advance(&self, n: u64) {
        self.with(|slot| {
            if let Some(bar) = slot {
                bar.inc(n);
            }
        });
    }

    fn note(&self, text: &str) {
        self.with(|slot| match slot {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        });
    }

    fn detail(&self, text: &str) {
        self.with(|slot| {
            if let Some(bar) = slot {
                bar.set_prefix(text.to_owned());
            }
        });
    }

    fn end(&self, text: &str) {
        self.with(|slot| {
            if let Some(bar) = slot.take() {
                let what = bar.message();
                bar.finish_and_clear();
                eprintln!("{what:<10} {text}");
            }
        });
    }
}

#[derive(Default)]
struct Plain {
    what: Mutex<String>,
}

impl Progress for Plain {
    fn begin(&self, what: &str, total: Option<u64>) {
        *self.what.lock().expect("no holder of this lock panics") = what.to_owned();
        match total {
            Some(total) => eprintln!("{what}: {total} to do"),
            None => eprintln!("{what}: begins"),
        }
    }

    fn advance(&self, _: u64) {}

    fn note(&self, text: &str) {
        eprintln!("{text}");
    }

    fn end(&self, text: &str) {
        let what = self.what.lock().expect("no holder of this lock panics");
        eprintln!("{what}: {text}");
    }
}
