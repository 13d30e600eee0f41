//! The search index: tantivy in memory, one segment, built anew from the stored issues for each ranking, so that it
//! can never be stale. Documents come as terms; splitting text is done elsewhere.

use std::borrow::Borrow;

use tantivy::collector::Count;
use tantivy::directory::RamDirectory;
use tantivy::query::{EnableScoring, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{IndexBuilder, Searcher, TantivyDocument, Term};

#[derive(Debug, thiserror::Error)]
#[error("the search index failed")]
pub struct IndexError(#[from] tantivy::TantivyError);

/// A document is one list of terms a field.
pub struct Index {
    searcher: Searcher,
    fields: Vec<(Field, f32)>,
}

/// What the writer may use before it would flush; we want one segment, and 21,000 issues fit in well.
const MEMORY_BYTES: usize = 256 << 20;

impl Index {
    /// Builds the index. `fields` are names with the weight of a match in them; each document has as many lists.
    pub fn build<'a, T: Borrow<str> + 'a, const N: usize>(
        fields: [(&str, f32); N],
        documents: impl Iterator<Item = [&'a [T]; N]>,
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
        })
    }

    /// BM25 of one term: the documents that hold it, by their position, with the weighted sum over the fields.
    pub fn postings(&self, term: &str) -> Result<Vec<(usize, f32)>, IndexError> {
        let mut found: Vec<(usize, f32)> = Vec::new();
        for (field, weight) in &self.fields {
            let query = TermQuery::new(
                Term::from_field_text(*field, term),
                IndexRecordOption::WithFreqs,
            );
            let scorer = query.weight(EnableScoring::enabled_from_searcher(&self.searcher))?;
            for segment in self.searcher.segment_readers() {
                scorer.for_each(segment, &mut |document, score| {
                    found.push((document as usize, weight * score));
                })?;
            }
        }
        // Stable: the fields stay in their order, and floating-point sums the same.
        found.sort_by_key(|(document, _)| *document);
        let mut postings: Vec<(usize, f32)> = Vec::with_capacity(found.len());
        for (document, score) in found {
            match postings.last_mut() {
                Some(last) if last.0 == document => last.1 += score,
                _ => postings.push((document, score)),
            }
        }
        Ok(postings)
    }

    pub fn n_documents(&self) -> Result<usize, IndexError> {
        Ok(self.searcher.search(&tantivy::query::AllQuery, &Count)?)
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
}
