//! The search index: tantivy in memory, one segment, built anew for each ranking, so that it can never be stale.
//! Documents come as terms; splitting text is done elsewhere. An index of few documents can score them by what is known
//! of many, so that new documents are scored without reading the others again.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tantivy::collector::Count;
use tantivy::directory::RamDirectory;
use tantivy::query::{Bm25StatisticsProvider, EnableScoring, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{IndexBuilder, Searcher, TantivyDocument, Term};

#[derive(Debug, thiserror::Error)]
#[error("the search index failed")]
pub struct IndexError(#[from] tantivy::TantivyError);

/// A document is one list of terms a field.
pub struct Index {
    searcher: Searcher,
    fields: Vec<(Field, f32)>,
    /// Of other documents; none when scores go by the documents of the index.
    known: Option<Statistics>,
}

/// What BM25 knows of many documents. Lists are in the order of the fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    pub n_documents: u64,
    pub n_tokens: Vec<u64>,
    /// Documents that hold a term, for the terms that count.
    pub n_holders: BTreeMap<String, Vec<u64>>,
}

/// What the writer may use before it would flush; we want one segment, and 21,000 issues fit in well.
const MEMORY_BYTES: usize = 256 << 20;

impl Index {
    /// Builds the index. `fields` are names with the weight of a match in them; each document has as many lists.
    pub fn build<'a, T: Borrow<str> + 'a, const N: usize>(
        fields: [(&str, f32); N],
        documents: impl Iterator<Item = [&'a [T]; N]>,
        known: Option<Statistics>,
    ) -> Result<Self, IndexError> {
        // Terms hold no blanks: splitting at blanks gives them back.
        let options = TextOptions::default().set_indexing_options(
            TextFieldIndexing::default()
                .set_tokenizer("whitespace")
                .set_index_option(IndexRecordOption::WithFreqs),
        );
        let mut schema = Schema::builder();
        let fields =
            fields.map(|(name, weight)| (schema.add_text_field(name, options.clone()), weight));
        let mut writer = IndexBuilder::new()
            .schema(schema.build())
            .single_segment_index_writer::<TantivyDocument>(RamDirectory::create(), MEMORY_BYTES)?;
        for parts in documents {
            let mut document = TantivyDocument::new();
            for ((field, _), terms) in fields.iter().zip(parts) {
                document.add_text(*field, terms.join(" "));
            }
            writer.add_document(document)?;
        }
        let searcher = writer.finalize()?.reader()?.searcher();
        Ok(Self {
            searcher,
            fields: fields.to_vec(),
            known,
        })
    }

    /// What is known of the documents of the index and the given terms.
    pub fn statistics<'a>(
        &self,
        terms: impl Iterator<Item = &'a str>,
    ) -> Result<Statistics, IndexError> {
        let of_fields = |term: &str| -> Result<Vec<u64>, IndexError> {
            let counts = self.fields.iter().map(|(field, _)| {
                Ok(self
                    .searcher
                    .doc_freq(&Term::from_field_text(*field, term))?)
            });
            counts.collect()
        };
        let n_tokens = self
            .fields
            .iter()
            .map(|(field, _)| Ok(self.searcher.total_num_tokens(*field)?));
        Ok(Statistics {
            n_documents: self.searcher.num_docs(),
            n_tokens: n_tokens.collect::<Result<_, IndexError>>()?,
            n_holders: terms
                .map(|term| Ok((term.to_owned(), of_fields(term)?)))
                .collect::<Result<_, IndexError>>()?,
        })
    }

    /// BM25 of one term: the documents that hold it, by their position, with the weighted sum over the fields.
    pub fn postings(&self, term: &str) -> Result<Vec<(usize, f32)>, IndexError> {
        let found = self.postings_by_field(term)?;
        let mut postings: Vec<(usize, f32)> = Vec::with_capacity(found.len());
        for (document, _, score) in found {
            match postings.last_mut() {
                Some(last) if last.0 == document => last.1 += score,
                _ => postings.push((document, score)),
            }
        }
        Ok(postings)
    }

    /// BM25 of one term in each field that counts: document, field and weighted score, in this order.
    pub fn postings_by_field(&self, term: &str) -> Result<Vec<(usize, usize, f32)>, IndexError> {
        let mut found: Vec<(usize, usize, f32)> = Vec::new();
        for (field_idx, (field, weight)) in self.fields.iter().enumerate() {
            if *weight == 0.0 {
                continue;
            }
            let query = TermQuery::new(
                Term::from_field_text(*field, term),
                IndexRecordOption::WithFreqs,
            );
            let scoring = match &self.known {
                Some(known) => {
                    EnableScoring::enabled_from_statistics_provider(known, &self.searcher)
                }
                None => EnableScoring::enabled_from_searcher(&self.searcher),
            };
            let scorer = query.weight(scoring)?;
            for segment in self.searcher.segment_readers() {
                scorer.for_each(segment, &mut |document, score| {
                    found.push((document as usize, field_idx, weight * score));
                })?;
            }
        }
        // Stable: the fields stay in their order, and floating-point sums the same.
        found.sort_by_key(|(document, _, _)| *document);
        Ok(found)
    }

    pub fn n_documents(&self) -> Result<usize, IndexError> {
        Ok(self.searcher.search(&tantivy::query::AllQuery, &Count)?)
    }
}

impl Bm25StatisticsProvider for Statistics {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        Ok(self.n_tokens[field.field_id() as usize])
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.n_documents)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let field_idx = term.field().field_id() as usize;
        let counts = term
            .value()
            .as_str()
            .and_then(|text| self.n_holders.get(text));
        Ok(counts.map_or(0, |counts| counts[field_idx]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_term_is_found_by_the_position_of_its_documents() {
        let documents = [
            [terms("deny rule"), terms("a b deny")],
            [terms("edit"), terms("权限 deny")],
            [terms("x"), terms("c/d.py")],
        ];
        let index = Index::build(
            [("title", 2.0), ("prose", 1.0)],
            documents.iter().map(|[a, b]| [a.as_slice(), b.as_slice()]),
            None,
        )
        .expect("builds");
        assert_eq!(index.n_documents().expect("counts"), 3);
        let check = |term: &str, expected: &[usize]| {
            let found = index.postings(term).expect("searches");
            let documents: Vec<usize> = found.iter().map(|(document, _)| *document).collect();
            assert_eq!(documents, expected, "{term}");
        };
        check("deny", &[0, 1]);
        check("权限", &[1]);
        check("c/d.py", &[2]);
        check("d", &[]);
        let deny = index.postings("deny").expect("searches");
        assert!(deny[0].1 > deny[1].1, "a title counts more: {deny:?}");
    }
    #[test]
    fn few_documents_are_scored_by_what_is_known_of_many() {
        let documents: Vec<[Vec<String>; 2]> = (0..40)
            .map(|n| {
                [
                    terms(if n % 3 == 0 { "deny rule" } else { "edit" }),
                    terms(&"deny a ".repeat(n + 1)),
                ]
            })
            .collect();
        let build = |documents: &[[Vec<String>; 2]], known| {
            let lists = documents.iter().map(|[a, b]| [a.as_slice(), b.as_slice()]);
            Index::build([("title", 2.0), ("prose", 1.0)], lists, known).expect("builds")
        };
        let all = build(&documents, None);
        let known = all
            .statistics(["deny", "rule"].into_iter())
            .expect("counts");
        assert_eq!(known.n_holders["rule"], [14, 0]);
        let last = build(&documents[39..], Some(known));
        let alone = build(&documents[39..], None);
        for term in ["deny", "rule"] {
            let of_last = |index: &Index, document: usize| {
                let found = index.postings(term).expect("searches");
                found
                    .into_iter()
                    .find(|(found, _)| *found == document)
                    .map(|(_, score)| score)
            };
            assert_eq!(of_last(&last, 0), of_last(&all, 39), "{term}");
            assert_ne!(of_last(&last, 0), of_last(&alone, 0), "{term}");
        }
        let by_field = all.postings_by_field("deny").expect("searches");
        let of_first: Vec<usize> = by_field
            .iter()
            .filter(|one| one.0 == 0)
            .map(|one| one.1)
            .collect();
        assert_eq!(of_first, [0, 1]);
    }
}
