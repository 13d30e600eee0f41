//! How long ranking and clustering take on as many issues as the method's authors collected: 21,083, made up here.
//!
//! `cargo bench --bench mining`. The corpus has 600 planted phenomena of 3 to 60 issues in the words of clauses, the rest
//! is noise in the same forms. It is easier than real issues: the times count, the agreement only shows that the result
//! makes sense.

mod corpus;

use std::path::Path;
use std::time::{Duration, Instant};

use doc2harness::domain::issue::{Issue, IssueKey};
use doc2harness::domain::mining::RankedIssue;
use doc2harness::methods::cluster_quality::{Labels, agreement};
use doc2harness::methods::issue_vectors::Rarity;
use doc2harness::paths::Project;
use doc2harness::stages::cluster::{self, Before, group};
use doc2harness::stages::rank;
use doc2harness::stages::scoring::Scoring;
use doc2harness::storage::database::Database;
use doc2harness::storage::{documents, issues};

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    println!(
        "{what:<44} {:>8.2} s",
        Duration::as_secs_f64(&began.elapsed())
    );
    result
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let project = Project::find(root).expect("the repository is a project");
    let document = documents::read(&project.document()).expect("the document is valid");
    let rank_config = rank::Config::read(&project).expect("the settings are valid");
    let cluster_config = cluster::Config::read(&project).expect("the settings are valid");
    let clauses: Vec<String> = document
        .clauses()
        .map(|clause| format!("{} {}", clause.meaning, clause.behaviour))
        .collect();
    let corpus = corpus::corpus(&clauses);
    let all: Vec<Issue> = corpus.iter().map(|(issue, _)| issue.clone()).collect();
    let n_bytes: usize = all
        .iter()
        .map(|issue| issue.title.len() + issue.body.len())
        .sum();
    println!(
        "{} issues, {:.1} MB, {} clauses",
        all.len(),
        n_bytes as f64 / 1e6,
        clauses.len()
    );

    let folder = tempfile::tempdir().expect("a folder");
    let mut database = Database::open(&folder.path().join("bench.sqlite")).expect("opens");
    timed("store all issues", || {
        let transaction = database.write().expect("begins");
        for issue in &all {
            issues::store(&transaction, issue).expect("stores");
        }
        transaction.commit().expect("commits");
    });
    let scoring = timed("terms, index, scores of all clauses", || {
        Scoring::new(&all, &document, &rank_config.scoring).expect("scores")
    });
    let ranked = timed("ranking with the best clauses", || scoring.ranking());
    timed("the same again, read and stored", || {
        rank::renew(&mut database, &document, &rank_config.scoring).expect("ranks")
    });
    let mut later: Vec<Issue> = all[..100].to_vec();
    for issue in &mut later {
        issue.key.repository = "bench/later".to_owned();
    }
    timed("an increment of 100 issues, stored and ranked", || {
        let transaction = database.write().expect("begins");
        for issue in &later {
            issues::store(&transaction, issue).expect("stores");
        }
        transaction.commit().expect("commits");
        let added = rank::add(&mut database, &document, &rank_config.scoring).expect("ranks");
        assert_eq!(added, Some(100), "the others stay");
    });
    let by_key: std::collections::BTreeMap<&IssueKey, &RankedIssue> =
        ranked.iter().map(|ranked| (&ranked.key, ranked)).collect();
    let planted: Vec<(&RankedIssue, usize)> = corpus
        .iter()
        .filter_map(|(issue, phenomenon)| Some((by_key[&issue.key], (*phenomenon)?)))
        .collect();
    let everything: Vec<&RankedIssue> = all.iter().map(|issue| by_key[&issue.key]).collect();
    let clauses = ranked
        .iter()
        .map(|ranked| ranked.relevance.clauses.as_slice());
    let rarity = Rarity::of(&scoring.terms, clauses);
    for (what, chosen) in [
        (
            "planted",
            planted.iter().map(|(ranked, _)| *ranked).collect(),
        ),
        ("all", everything),
    ] {
        let grouping = timed(&format!("cluster {} issues ({what})", chosen.len()), || {
            group(
                &all,
                &scoring.terms,
                &rarity,
                &chosen,
                &Before::default(),
                &cluster_config.settings,
            )
        });
        let found: std::collections::BTreeMap<&IssueKey, &str> = grouping
            .clusters
            .iter()
            .flat_map(|cluster| cluster.members.iter().map(|key| (key, cluster.id.as_str())))
            .collect();
        let labels: Vec<Labels<&str, usize, ()>> = planted
            .iter()
            .map(|(ranked, phenomenon)| Labels {
                found: found[&ranked.key],
                truth: *phenomenon,
                source: (),
            })
            .collect();
        let agreement = agreement(&labels);
        println!(
            "  {} clusters, {} parts split; planted: pairwise F1 {:.3}, adjusted Rand {:.3}",
            grouping.clusters.len(),
            grouping.n_split,
            agreement.pairs.f1.unwrap_or(f64::NAN),
            agreement.adjusted_rand.unwrap_or(f64::NAN),
        );
    }
    let memory = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(line) = memory.lines().find(|line| line.starts_with("VmHWM")) {
        println!("most memory {}", line.trim_start_matches("VmHWM:").trim());
    }
}
