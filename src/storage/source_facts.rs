//! Facts of candidates' sources as CSV, for verdicts whose candidates are not at hand.
//!
//! Columns: `candidate, code_lines, modules, functions, largest_module` (code lines), and `dedicated` (categories with a
//! module of their own, between blanks) where it is known. Others are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use crate::domain::case::Category;
use crate::domain::place::Finding;
use crate::domain::source_facts::SourceFacts;
use crate::storage::csv_table::{self, CsvError};

const COLUMNS: [&str; 5] = [
    "candidate",
    "code_lines",
    "modules",
    "functions",
    "largest_module",
];

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
pub fn read(path: &Path) -> Result<BTreeMap<String, SourceFacts>, CsvError> {
    Ok(parse(path, &csv_table::bytes(path)?)?)
}

fn parse(path: &Path, text: &[u8]) -> Result<BTreeMap<String, SourceFacts>, Finding> {
    let table = csv_table::parse::<Record>(path, text, &COLUMNS)?;
    let is_known = table.columns.iter().any(|name| name == "dedicated");
    let mut all = BTreeMap::new();
    for (place, mut record) in table.rows {
        if is_known {
            // An empty cell of the column: none is dedicated.
            record.dedicated.get_or_insert_default();
        }
        let (name, facts) = match facts(record) {
            Ok(named) => named,
            Err(message) => return Err(Finding::new(place, message)),
        };
        if all.contains_key(&name) {
            return Err(Finding::new(place, format!("{name} has a row further up")));
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
        let facts = parse(Path::new("f.csv"), text.as_bytes());
        csv_table::check(facts.map(|facts| facts.len()), expected);
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
