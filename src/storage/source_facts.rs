//! Facts of candidates' sources as CSV, for verdicts whose candidates are not at hand.
//!
//! Columns: `candidate, code_lines, modules, functions, largest_module` (code lines), and `dedicated` (categories with a
//! module of their own, between blanks) where it is known. Others are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::domain::case::Category;
use crate::domain::place::{Finding, Place};
use crate::domain::source_facts::SourceFacts;

#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    #[error("cannot read {path}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    /// A row that means nothing; the text names the line.
    #[error(transparent)]
    Row(#[from] Finding),
}

#[derive(Deserialize)]
struct Record {
    candidate: String,
    code_lines: usize,
    modules: usize,
    functions: usize,
    largest_module: usize,
    dedicated: Option<String>,
}

/// The facts of each candidate by its name.
pub fn read(path: &Path) -> Result<BTreeMap<String, SourceFacts>, FactsError> {
    let text = std::fs::read(path).map_err(|source| FactsError::Read {
        path: path.to_path_buf(),
        source,
    })?;
    Ok(parse(path, &text)?)
}

fn parse(path: &Path, text: &[u8]) -> Result<BTreeMap<String, SourceFacts>, Finding> {
    let wrong = |line: u64, message: String| Finding::new(Place::new(path, line as usize), message);
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text);
    let header = reader
        .headers()
        .map_err(|error| wrong(1, error.to_string()))?
        .clone();
    let is_known = header.iter().any(|name| name == "dedicated");
    let mut all = BTreeMap::new();
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(1, csv::Position::line);
            wrong(line, error.to_string())
        })?;
        let line = record.position().map_or(1, csv::Position::line);
        let mut record: Record = record
            .deserialize(Some(&header))
            .map_err(|error| wrong(line, error.to_string()))?;
        if is_known {
            // An empty cell of the column: none is dedicated.
            record.dedicated.get_or_insert_default();
        }
        let (name, facts) = facts(record).map_err(|message| wrong(line, message))?;
        if all.contains_key(&name) {
            return Err(wrong(line, format!("{name} has a row further up")));
        }
        all.insert(name, facts);
    }
    Ok(all)
}

fn facts(record: Record) -> Result<(String, SourceFacts), String> {
    if record.largest_module > record.code_lines {
        return Err("the largest module has more lines than all together".to_owned());
    }
    let category = |word: &str| {
        let mut all = Category::ALL.into_iter();
        all.find(|category| category.as_str() == word)
            .ok_or_else(|| format!("{word:?} is no category"))
    };
    let dedicated = record.dedicated.as_deref().map(|words| {
        let categories = words.split_whitespace().map(category);
        categories.collect::<Result<BTreeSet<_>, _>>()
    });
    let facts = SourceFacts {
        code_lines: record.code_lines,
        modules: record.modules,
        functions: record.functions,
        largest_module: record.largest_module,
        dedicated: dedicated.transpose()?,
    };
    Ok((record.candidate, facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<usize, &str>) {
        match (parse(Path::new("f.csv"), text.as_bytes()), expected) {
            (Ok(facts), Ok(n)) => assert_eq!(facts.len(), n),
            (Err(finding), Err(part)) => {
                let message = finding.to_string();
                assert!(message.contains(part), "{message}");
            }
            (got, expected) => panic!("{got:?} is not {expected:?}"),
        }
    }

    #[test]
    fn faults_name_the_line() {
        let header = "candidate,code_lines,modules,functions,largest_module";
        check(&format!("{header}\na,10,2,3,6\nb,1,1,1,1\n"), Ok(2));
        let some = format!("{header},dedicated\na,10,2,3,6,headless startup\nb,1,1,1,1,\n");
        let facts = parse(Path::new("f.csv"), some.as_bytes()).unwrap();
        assert_eq!(facts["b"].dedicated, Some(BTreeSet::new()));
        assert_eq!(facts["a"].dedicated.as_ref().map(BTreeSet::len), Some(2));
        check(
            &format!("{header},dedicated\na,10,2,3,6,sport\n"),
            Err("f.csv:2: \"sport\""),
        );
        check(
            &format!("{header}\na,10,2,3,11\n"),
            Err("f.csv:2: the largest"),
        );
        check(
            &format!("{header}\na,1,1,1,1\na,1,1,1,1\n"),
            Err("f.csv:3: a has"),
        );
        check("candidate,modules\na,1\n", Err("code_lines"));
        check(&format!("{header}\na,many,1,1,1\n"), Err("f.csv:2"));
    }
}
