//! Topics that lie outside of the document, each a closed list of words with a reason.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `pipeline/topics.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topics {
    #[serde(default)]
    pub topic: Vec<Topic>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topic {
    pub name: String,
    pub reason: String,
    pub words: Vec<String>,
}

/// A word as a topic lists it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicWord {
    pub topic: String,
    pub word: String,
}

impl Topics {
    /// The terms of all topics; of a term in two topics the first has it.
    pub fn terms(&self, term: impl Fn(&str) -> String) -> BTreeMap<String, TopicWord> {
        let mut terms = BTreeMap::new();
        for topic in &self.topic {
            for word in &topic.words {
                terms.entry(term(word)).or_insert_with(|| TopicWord {
                    topic: topic.name.clone(),
                    word: word.clone(),
                });
            }
        }
        terms
    }

    pub fn get(&self, name: &str) -> Option<&Topic> {
        self.topic.iter().find(|topic| topic.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_belongs_to_the_first_topic_that_names_it() {
        let topic = |name: &str, words: &[&str]| Topic {
            name: name.into(),
            reason: "r".into(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
        };
        let topics = Topics {
            topic: vec![topic("a", &["X", "Y"]), topic("b", &["y", "z"])],
        };
        let terms = topics.terms(str::to_lowercase);
        assert_eq!(
            (terms["y"].topic.as_str(), terms["y"].word.as_str()),
            ("a", "Y")
        );
        assert_eq!(terms["z"].topic, "b");
        assert_eq!(topics.get("b").map(|topic| topic.words.len()), Some(2));
    }
}
