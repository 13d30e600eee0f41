//! Verdicts as CSV, one a row: what `report` writes and `analyze --csv` reads.
//!
//! Columns are found by name and others are ignored: `candidate, model, build, case, category, scenario, outcome`,
//! and `family` (the seed of a variant) and `controls` (how many gate the case) where they are known. Tables of several
//! runs can be joined below one header.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::domain::case::{CaseId, Category};
use crate::domain::clause::Scenario;
use crate::domain::place::Finding;
use crate::domain::results::{Row, Status};
use crate::domain::verdict::{FaultKind, NOT_ASKED, Reason};
use crate::storage::csv_table::{self, CsvError};

const COLUMNS: [&str; 7] = [
    "candidate",
    "model",
    "build",
    "case",
    "category",
    "scenario",
    "outcome",
];

#[derive(Deserialize)]
struct Record {
    candidate: String,
    model: String,
    build: String,
    case: String,
    category: String,
    scenario: String,
    outcome: String,
    #[serde(default)]
    family: String,
    #[serde(default)]
    controls: String,
}

/// What is said of a case is the same in all of its rows.
type CaseRow = (Category, Scenario, CaseId, Option<usize>);

/// Reads a table. A candidate has one model and one row a case, and a case one category, scenario, family and number of
/// controls.
pub fn read(path: &Path) -> Result<Vec<Row>, CsvError> {
    Ok(parse(path, &csv_table::bytes(path)?)?)
}

fn parse(path: &Path, text: &[u8]) -> Result<Vec<Row>, Finding> {
    let table = csv_table::parse::<Record>(path, text, &COLUMNS)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut seen: BTreeMap<(String, CaseId), usize> = BTreeMap::new();
    let mut builds: BTreeMap<String, (String, String)> = BTreeMap::new();
    let mut cases: BTreeMap<CaseId, CaseRow> = BTreeMap::new();
    for (place, record) in table.rows {
        let line = place.line;
        let wrong = |message: String| Finding::new(place.clone(), message);
        let row = row(record).map_err(wrong)?;
        let pair = (row.candidate.clone(), row.case.clone());
        if let Some(first) = seen.insert(pair, line) {
            let (candidate, case) = (&row.candidate, &row.case);
            return Err(wrong(format!(
                "{candidate} has a row for {case} in line {first} already"
            )));
        }
        let build = (row.model.clone(), row.build.clone());
        if builds
            .entry(row.candidate.clone())
            .or_insert_with(|| build.clone())
            != &build
        {
            let message = format!("{} has another model or build further up", row.candidate);
            return Err(wrong(message));
        }
        let facts = (
            row.category,
            row.scenario,
            row.family.clone(),
            row.n_controls,
        );
        if cases
            .entry(row.case.clone())
            .or_insert_with(|| facts.clone())
            != &facts
        {
            let message = format!(
                "{} has another category, scenario, family or number of controls further up",
                row.case
            );
            return Err(wrong(message));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn row(record: Record) -> Result<Row, String> {
    for (name, value) in [
        ("candidate", &record.candidate),
        ("model", &record.model),
        ("case", &record.case),
    ] {
        if value.is_empty() {
            return Err(format!("{name} is empty"));
        }
    }
    let category = Category::ALL
        .into_iter()
        .find(|category| category.as_str() == record.category)
        .ok_or_else(|| format!("{:?} is no category", record.category))?;
    let scenario: Scenario = record.scenario.parse()?;
    let n_controls = match record.controls.as_str() {
        "" => None,
        number => Some(
            number
                .parse()
                .map_err(|_| format!("{number:?} is no number of controls"))?,
        ),
    };
    let case = CaseId::new(record.case);
    Ok(Row {
        status: status(&record.outcome)?,
        reason: record.outcome,
        candidate: record.candidate,
        model: record.model,
        build: record.build,
        family: if record.family.is_empty() {
            case.clone()
        } else {
            CaseId::new(record.family)
        },
        case,
        category,
        scenario,
        n_controls,
    })
}

/// `pass`, `fail`, `invalid`, `not-asked`, or the reason of a failure or a fault.
fn status(word: &str) -> Result<Status, String> {
    let is_reason = Reason::ALL.iter().any(|reason| reason.as_str() == word);
    let is_fault = [
        FaultKind::Sandbox,
        FaultKind::Files,
        FaultKind::DiskFull,
        FaultKind::Flaky,
        FaultKind::Unstable,
    ]
    .iter()
    .any(|fault| fault.as_str() == word);
    match word {
        "pass" => Ok(Status::Pass),
        "fail" => Ok(Status::Fail),
        "invalid" => Ok(Status::Invalid),
        NOT_ASKED => Ok(Status::NotAsked),
        _ if is_reason => Ok(Status::Fail),
        _ if is_fault => Ok(Status::Invalid),
        _ => Err(format!(
            "{word:?} is no outcome: use pass, fail, invalid, not-asked or a reason"
        )),
    }
}

/// The table as text, sorted by candidate and case; `reason` says more than `outcome`.
pub fn text(rows: &[Row]) -> String {
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_by(|a, b| (&a.candidate, &a.case).cmp(&(&b.candidate, &b.case)));
    let header = COLUMNS.into_iter().chain(["reason", "family", "controls"]);
    let records = sorted.into_iter().map(|row| {
        [
            row.candidate.as_str(),
            &row.model,
            &row.build,
            row.case.as_str(),
            row.category.as_str(),
            row.scenario.as_str(),
            row.status.as_str(),
            &row.reason,
            row.family.as_str(),
            &row.n_controls.map_or_else(String::new, |n| n.to_string()),
        ]
        .map(str::to_owned)
        .to_vec()
    });
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in std::iter::once(header.map(str::to_owned).collect()).chain(records) {
        writer
            .write_record(record)
            .expect("memory takes every record of one length");
    }
    let bytes = writer.into_inner().expect("memory takes everything");
    String::from_utf8(bytes).expect("the fields are UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "candidate,model,build,case,category,scenario,outcome";

    fn check(lines: &str, expected: Result<usize, &str>) {
        let text = format!("{HEADER}\n{lines}");
        let rows = parse(Path::new("t.csv"), text.as_bytes());
        csv_table::check(rows.map(|rows| rows.len()), expected);
    }

    #[test]
    fn faults_name_the_line() {
        let good = "a,m,1,headless/x,headless,ordinary,pass\n";
        check(good, Ok(1));
        check(
            &format!("{good}a,m,1,headless/y,headless,boundary,timeout\n"),
            Ok(2),
        );
        check(&format!("{good}{good}"), Err("t.csv:3: a has a row for"));
        check(
            &format!("{good}a,n,1,headless/y,headless,ordinary,pass\n"),
            Err("t.csv:3: a has another model"),
        );
        check(
            &format!("{good}b,n,1,headless/x,startup,ordinary,pass\n"),
            Err("t.csv:3: headless/x has another category"),
        );
        check(
            "a,m,1,x,sports,ordinary,pass\n",
            Err("t.csv:2: \"sports\" is no category"),
        );
        check(
            "a,m,1,x,headless,ordinary,maybe\n",
            Err("t.csv:2: \"maybe\" is no outcome"),
        );
        let text = format!("{HEADER},controls\na,m,1,x,headless,ordinary,pass,two\n");
        let finding = parse(Path::new("t.csv"), text.as_bytes()).unwrap_err();
        assert!(
            finding
                .to_string()
                .contains("t.csv:2: \"two\" is no number")
        );
        check("a,m,1\n", Err("t.csv:2"));
        let finding = parse(Path::new("t.csv"), b"candidate,case\n").unwrap_err();
        assert!(
            finding
                .to_string()
                .contains("model, build, category, scenario, outcome")
        );
    }

    #[test]
    fn what_is_written_is_read_back() {
        let row = |candidate: &str, status: Status| Row {
            candidate: candidate.to_owned(),
            model: "m, \"quoted\"".to_owned(),
            build: "1".to_owned(),
            case: CaseId::new("startup/x"),
            category: Category::Startup,
            scenario: Scenario::Boundary,
            family: CaseId::new("startup/seed"),
            n_controls: Some(2),
            status,
            reason: status.as_str().to_owned(),
        };
        let rows = [row("b", Status::Fail), row("a", Status::Pass)];
        let read = parse(Path::new("t.csv"), text(&rows).as_bytes()).unwrap();
        assert_eq!(read, [rows[1].clone(), rows[0].clone()]);
    }
}
