//! How long ranking and clustering take on as many issues as the method's authors collected: 21,083, made up here.
//!
//! `cargo bench --bench mining`. The stages run as they do for a curator: all but 100 issues first, then those 100. The
//! corpus has 600 planted phenomena of 3 to 60 issues in the words of clauses, the rest is noise in the same forms. It is
//! easier than real issues: the times count, the agreement only shows that the result makes sense.

mod corpus;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use chrono::DateTime;
use doc2harness::domain::issue::{Issue, IssueKey};
use doc2harness::domain::mining::Cluster;
use doc2harness::methods::cluster_quality::{Labels, agreement};
use doc2harness::paths::Project;
use doc2harness::stages::context::Silent;
use doc2harness::stages::{Context, cluster, rank};
use doc2harness::storage::database::Database;
use doc2harness::storage::{documents, issues};

const N_LATER: usize = 100;

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    println!("{what:<44} {:>8.2} s", began.elapsed().as_secs_f64());
    result
}

fn main() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    for part in ["pipeline", "data"] {
        std::fs::create_dir(folder.path().join(part)).expect("makes a folder");
    }
    std::os::unix::fs::symlink(
        repository.join("data/document"),
        folder.path().join("data/document"),
    )
    .expect("links");
    let context = Context {
        project: Project::find(folder.path()).expect("it is laid out like a project"),
        progress: Box::new(Silent),
        now: DateTime::UNIX_EPOCH,
    };
    let settings = Project::find(repository).expect("the repository is a project");
    let rank_config = rank::Config::read(&settings).expect("the settings are valid");
    let mut cluster_config = cluster::Config::read(&settings).expect("the settings are valid");
    cluster_config.all = true;
    cluster_config.settings.n_top = i64::MAX as usize;

    let document = documents::read(&settings.document()).expect("the document is valid");
    let clauses: Vec<String> = document
        .clauses()
        .map(|clause| format!("{} {}", clause.meaning, clause.behaviour))
        .collect();
    let corpus = corpus::corpus(&clauses);
    let n_bytes: usize = corpus
        .iter()
        .map(|(issue, _)| issue.title.len() + issue.body.len())
        .sum();
    println!(
        "{} issues, {:.1} MB, {} clauses",
        corpus.len(),
        n_bytes as f64 / 1e6,
        clauses.len()
    );
    let step = corpus.len() / N_LATER;
    let is_later = |place: usize| place % step == 0 && place / step < N_LATER;
    let (later, first): (Vec<_>, Vec<_>) = (0..corpus.len()).partition(|place| is_later(*place));
    let store = |places: &[usize]| {
        let mut database = Database::open(&context.project.database()).expect("opens");
        let transaction = database.write().expect("begins");
        for place in places {
            let issue: &Issue = &corpus[*place].0;
            issues::store(&transaction, issue).expect("stores");
        }
        transaction.commit().expect("commits");
    };

    let rank = || rank::run(&context, &rank_config).expect("ranks");
    let cluster = || cluster::run(&context, &cluster_config).expect("clusters");
    timed("store", || store(&first));
    timed("rank", rank);
    let before = timed("cluster", cluster);
    timed(&format!("store {N_LATER} more"), || store(&later));
    let ranked = timed("rank", rank);
    assert_eq!(ranked.n_ranked, N_LATER, "the others stay");
    let after = timed("cluster", cluster);
    assert_eq!(after.n_issues, corpus.len());
    stay(&before.clusters, &after.clusters);

    let found: BTreeMap<&IssueKey, &str> = after
        .clusters
        .iter()
        .flat_map(|cluster| cluster.members.iter().map(|key| (key, cluster.id.as_str())))
        .collect();
    let labels: Vec<Labels<&str, usize, ()>> = corpus
        .iter()
        .filter_map(|(issue, phenomenon)| {
            Some(Labels {
                found: found[&issue.key],
                truth: (*phenomenon)?,
                source: (),
            })
        })
        .collect();
    let agreement = agreement(&labels);
    println!(
        "{} clusters, {} parts split; planted: pairwise F1 {:.3}, adjusted Rand {:.3}",
        after.n_clusters,
        before.n_split,
        agreement.pairs.f1.unwrap_or(f64::NAN),
        agreement.adjusted_rand.unwrap_or(f64::NAN),
    );
    let memory = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(line) = memory.lines().find(|line| line.starts_with("VmHWM")) {
        println!("most memory {}", line.trim_start_matches("VmHWM:").trim());
    }
}

/// No issue leaves its cluster when others come.
fn stay(before: &[Cluster], after: &[Cluster]) {
    let after: BTreeMap<&str, BTreeSet<&IssueKey>> = after
        .iter()
        .map(|cluster| (cluster.id.as_str(), cluster.members.iter().collect()))
        .collect();
    for cluster in before {
        let now = &after[cluster.id.as_str()];
        let stays = |key| now.contains(key);
        assert!(cluster.members.iter().all(stays), "{}", cluster.id);
    }
}
