//! How long collecting all of four repositories takes when each page takes 100 ms: `cargo bench --bench collect`.
//!
//! The anchor is the time that the pages alone take, by so many at a time. A list gives its pages one after the other,
//! so that four at a time are bounded by the longest list.

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/it/fake_github.rs"]
mod fake_github;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/it/full_github.rs"]
mod full_github;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use full_github::{FULL, server};

const LATENCY: Duration = Duration::from_millis(100);

fn main() {
    let pages = |total: u64| total.div_ceil(100);
    let of_lists: Vec<u64> = FULL.iter().map(|list| pages(list.2 + list.3)).collect();
    let all: u64 = of_lists.iter().sum();
    let longest = of_lists.iter().copied().max().unwrap_or_default();
    println!("{all} pages, the longest list {longest}, 100 ms each");
    for (concurrency, n_after_another) in [(1, all), (4, longest.max(all / 4))] {
        let server = server(FULL, LATENCY, false);
        let project = tempfile::tempdir().expect("a folder");
        let at = |below: &str| project.path().join(below);
        std::fs::create_dir_all(at("data/document")).expect("makes");
        std::fs::create_dir_all(at("pipeline")).expect("makes");
        let settings = format!(
            "[patience]\nconcurrency = {concurrency}\nmax_retries = 3\nretry_base_s = 1\nrate_limit_s = 1\n\
             max_wait_s = 5\n"
        );
        std::fs::write(at("pipeline/collect.toml"), settings).expect("writes");
        let began = Instant::now();
        #[expect(
            clippy::zombie_processes,
            reason = "wait4 waits for it and tells what it took"
        )]
        let child = Command::new(env!("CARGO_BIN_EXE_pipeline"))
            .args(["collect", "--api-url", &server.url, "--repository"])
            .args(FULL.iter().map(|list| list.0))
            .current_dir(project.path())
            .env_clear()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let mut status = 0;
        // SAFETY: both places are ours, and the child was not waited for.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            assert!(libc::wait4(child.id() as i32, &mut status, 0, &mut usage) > 0);
            usage
        };
        assert_eq!(libc::WEXITSTATUS(status), 0);
        let took = began.elapsed();
        let anchor = LATENCY * u32::try_from(n_after_another).expect("few pages");
        let cpu_s = [usage.ru_utime, usage.ru_stime]
            .map(|time| time.tv_sec as f64 + time.tv_usec as f64 / 1e6)
            .iter()
            .sum::<f64>();
        println!(
            "{concurrency} at a time: {:.1} s, pages alone {:.1} s, ratio {:.3}; {cpu_s:.1} s of processor, {} MiB",
            took.as_secs_f64(),
            anchor.as_secs_f64(),
            took.as_secs_f64() / anchor.as_secs_f64(),
            usage.ru_maxrss / 1024
        );
    }
}
