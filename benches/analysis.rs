//! How long the statistics of 57 candidates × 328 cases take with 2,000 draws: `cargo bench --bench analysis`.
//!
//! `PIPELINE_BENCH_PYTHON=PYTHON` names a Python with numpy; then `benches/peers/bootstrap.py` does the same bootstrap of
//! the rates on the same table, in turns with ours. The verdicts are made up: nineteen models of three builds, families of
//! one to five variants.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use doc2harness::domain::case::{CaseId, Category};
use doc2harness::domain::clause::Scenario;
use doc2harness::domain::results::{Row, Status};
use doc2harness::methods::analysis::{
    Resampling, Table, analyse_resampled, floor, independence, items, selection,
};
use doc2harness::methods::statistics::Random;
use doc2harness::storage::verdict_table;
use nix::sys::resource::{UsageWho, getrusage};

const N_ROUNDS: usize = 5;
const RESAMPLING: Resampling = Resampling {
    draws: 2000,
    seed: 1,
};

fn rows() -> Vec<Row> {
    let mut random = Random::new(7);
    let mut families = Vec::new();
    while families.len() < 328 {
        let hard = random.unit();
        let size = (1 + random.below(5)).min(328 - families.len());
        let seed = families.len();
        families.extend(std::iter::repeat_n((seed, hard), size));
    }
    let mut rows = Vec::new();
    for model in 0..19 {
        for build in 0..3 {
            let skill = 0.75 - 0.02 * model as f64 + 0.02 * random.unit();
            for (case, (seed, hard)) in families.iter().enumerate() {
                let category = Category::ALL[seed % Category::ALL.len()];
                let passed = 0.7 * hard + 0.3 * random.unit() < skill;
                let status = if passed { Status::Pass } else { Status::Fail };
                rows.push(Row {
                    candidate: format!("m{model:02}/{build}"),
                    model: format!("m{model:02}"),
                    build: build.to_string(),
                    case: CaseId::new(format!("{category}/{case:03}")),
                    category,
                    scenario: [Scenario::Ordinary, Scenario::Boundary][case % 2],
                    family: CaseId::new(format!("{category}/{seed:03}")),
                    n_controls: Some(case % 2),
                    status,
                    reason: status.as_str().to_owned(),
                });
            }
        }
    }
    rows
}

/// Seconds of the processor, user and system, of this process or of its ended children.
fn cpu(of: UsageWho) -> f64 {
    let usage = getrusage(of).expect("the kernel counts");
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let rows = rows();
    let folder = tempfile::tempdir().expect("a folder");
    let table_file = folder.path().join("verdicts.csv");
    std::fs::write(&table_file, verdict_table::text(&rows)).expect("writes");
    let python = std::env::var_os("PIPELINE_BENCH_PYTHON");
    let peer = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/bootstrap.py");

    let (mut intervals, mut rest, mut numpy) = (Vec::new(), Vec::new(), Vec::new());
    let mut said = String::new();
    for _ in 0..N_ROUNDS {
        let read = verdict_table::read(&table_file).expect("reads what was written");
        let table = Table::new(&read);
        let (begin, before) = (Instant::now(), cpu(UsageWho::RUSAGE_SELF));
        let analysis = analyse_resampled(&table, RESAMPLING);
        intervals.push(cpu(UsageWho::RUSAGE_SELF) - before);
        let before = cpu(UsageWho::RUSAGE_SELF);
        let items = items(&table);
        let selection = selection(&table, 0.95).expect("there is a KR-20");
        let independence = independence(&table);
        let floor = floor(&table, &Default::default());
        rest.push(cpu(UsageWho::RUSAGE_SELF) - before);
        let first = &analysis.models[0].rates.overall;
        let interval = first.interval.expect("it was resampled");
        said = format!(
            "{:.4} ({:.4} to {:.4}); KR-20 {:.4}; {} items, {} kept, {:.0} effective, {} on the floor; wall {:.2} s",
            first.mean.expect("a rate"),
            interval.low,
            interval.high,
            analysis.reliability.kr20.expect("a reliability"),
            items.cases.len(),
            selection.n_cases - selection.dropped.len(),
            independence.effective_cases.expect("families"),
            floor.len(),
            begin.elapsed().as_secs_f64()
        );
        if let Some(python) = &python {
            let before = cpu(UsageWho::RUSAGE_CHILDREN);
            let output = Command::new(python).arg(&peer).arg(&table_file).output();
            let output = output.expect("the Python of PIPELINE_BENCH_PYTHON starts");
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            numpy.push(cpu(UsageWho::RUSAGE_CHILDREN) - before);
            print!("numpy: {}", String::from_utf8_lossy(&output.stdout));
        }
    }
    let peak = getrusage(UsageWho::RUSAGE_SELF)
        .expect("the kernel counts")
        .max_rss();
    println!("ours:  {said}");
    println!(
        "57 candidates × 328 cases, {} draws, median of {N_ROUNDS}, seconds of the processor",
        RESAMPLING.draws
    );
    println!(
        "  rates, ranks, gaps, KR-20, correlations with intervals  {:.2}",
        median(&mut intervals)
    );
    println!(
        "  items, selection, independence, floor                   {:.2}",
        median(&mut rest)
    );
    if !numpy.is_empty() {
        println!(
            "  numpy, rates and KR-20 with intervals                   {:.2}",
            median(&mut numpy)
        );
    }
    println!(
        "  most memory                                             {} MiB",
        peak / 1024
    );
}
