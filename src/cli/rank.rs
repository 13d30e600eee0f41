//! `pipeline rank`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{ExitCode, Output, output};
use crate::domain::issue::IssueKey;
use crate::domain::visible::visible_line;
use crate::stages::rank::{self, Config, Explanation, Judged, Summary};
use crate::stages::{Context, Result};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rank all issues anew, although nothing or little changed since the last ranking
    ///
    /// Otherwise a few new or changed issues are put among the others by what is known of those, and no other score
    /// moves; from renew_at of pipeline/rank.toml on all are ranked anew.
    #[arg(long)]
    again: bool,
    /// Say why one issue stands where it stands: what each clause, word and field adds
    #[arg(long, value_name = "OWNER/NAME#N", conflicts_with = "judge")]
    explain: Option<IssueKey>,
    /// Rank a judged set instead and print how good the ranking is; nothing is stored
    ///
    /// DIR holds issues.jsonl and judgements.jsonl, as data/sample does.
    #[arg(long, value_name = "DIR")]
    judge: Option<PathBuf>,
    /// Hide the judged set among the issues of these files and folders
    #[arg(long, value_name = "PATH", requires = "judge", num_args = 1..)]
    among: Vec<PathBuf>,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let config = Config {
        again: args.again,
        ..Config::read(&context.project)?
    };
    if let Some(key) = &args.explain {
        output.result(&rank::explain(context, &config, key)?, explanation)?;
    } else if let Some(folder) = &args.judge {
        output.result(&rank::judge(context, &config, folder, &args.among)?, judged)?;
    } else {
        output.result(&rank::run(context, &config)?, words)?;
    }
    Ok(ExitCode::Done)
}

fn words(summary: &Summary) -> String {
    let head = if summary.unchanged {
        format!(
            "nothing changed; the ranking of {} issues stays (--again forces a new one)",
            summary.n_issues
        )
    } else {
        format!(
            "{} of {} issues ranked by {} clauses",
            summary.n_ranked, summary.n_issues, summary.n_clauses
        )
    };
    let languages: Vec<String> = summary
        .languages
        .iter()
        .map(|(language, n)| format!("{language} {n}"))
        .collect();
    let rows = summary.top.iter().map(|top| {
        let relevance = &top.ranked.relevance;
        vec![
            top.ranked.place.to_string(),
            format!("{:.3}", relevance.score),
            top.ranked.key.to_string(),
            best(relevance.clauses.first().map(|best| best.clause.as_str())),
            short(&top.title),
        ]
    });
    let table = output::table(&["place", "score", "issue", "best clause", "title"], rows);
    format!("{head}\nlanguages: {}\n\n{table}", languages.join(", "))
}

fn judged(judged: &Judged) -> String {
    let figure = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
    let mut text = format!(
        "{} issues judged, {} of them relevant, {} more without a judgement\n\n",
        judged.n_issues, judged.n_relevant, judged.n_unjudged,
    );
    let mut figures = vec![("the judged alone", &judged.judged)];
    if judged.n_unjudged > 0 {
        figures.push(("hidden among all", &judged.hidden));
    }
    text += &output::table(
        &["", "average precision", "nDCG@50", "WSS@95"],
        figures.into_iter().map(|(name, figures)| {
            vec![
                name.to_owned(),
                figure(figures.average_precision),
                figure(figures.ndcg_50),
                figure(figures.wss_95),
            ]
        }),
    );
    text += "\n\n";
    text += &output::table(
        &["place", "relevant", "score", "best clause", "title"],
        judged.ranking.iter().map(|issue| {
            vec![
                issue.place.to_string(),
                issue.relevant.to_string(),
                format!("{:.3}", issue.score),
                best(issue.clause.as_deref()),
                short(&issue.title),
            ]
        }),
    );
    text
}

fn explanation(explanation: &Explanation) -> String {
    let relevance = &explanation.ranked.relevance;
    let mut text = format!(
        "{}  {}\n{}\nlanguage {}\nplace {} of {}, score {:.3} = matched {:.3} × factor {:.3} × length {:.3}\n",
        explanation.ranked.key,
        visible_line(&explanation.title),
        explanation.url,
        explanation.ranked.language.as_deref().unwrap_or("?"),
        explanation.ranked.place,
        explanation.n_issues,
        relevance.score,
        relevance.matched,
        relevance.factor,
        relevance.length,
    );
    if !relevance.outside.is_empty() {
        text += &format!("points outside: {}\n", relevance.outside.join(", "));
    }
    for (best, matched) in relevance.clauses.iter().zip(&explanation.matched_terms) {
        let terms: Vec<String> = matched
            .terms
            .iter()
            .map(|term| format!("{} {:.2} ({})", term.word, term.score, fields(&term.fields)))
            .collect();
        text += &format!(
            "\n{:.3}  {}  {}\n       {}\n       {}\n",
            best.score,
            matched.clause,
            matched.meaning,
            fields(&matched.fields),
            terms.join(" · ")
        );
    }
    text
}

/// Fields with what they add, those that add most first.
fn fields(fields: &BTreeMap<&'static str, f64>) -> String {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by(|a, b| b.1.total_cmp(a.1));
    let parts: Vec<String> = sorted
        .into_iter()
        .map(|(field, score)| format!("{field} {score:.2}"))
        .collect();
    parts.join(", ")
}

fn best(clause: Option<&str>) -> String {
    clause.unwrap_or("-").to_owned()
}

/// A title on one line, harmless for a terminal.
fn short(title: &str) -> String {
    let line = visible_line(title);
    match line.char_indices().nth(70) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.into_owned(),
    }
}
