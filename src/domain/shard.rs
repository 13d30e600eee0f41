//! A shard: one of the parts into which a plan's units are dealt, each of which one machine runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Shard `index` of `of`, counted from 1; written `3/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ShardId {
    index: u32,
    of: u32,
}

impl ShardId {
    /// None unless `index` is from 1 to `of`.
    pub fn new(index: u32, of: u32) -> Option<Self> {
        (1..=of).contains(&index).then_some(Self { index, of })
    }

    /// From 1.
    pub fn index(self) -> u32 {
        self.index
    }

    pub fn of(self) -> u32 {
        self.of
    }

    /// The name of its folder: `3-of-8`.
    pub fn folder(self) -> String {
        format!("{}-of-{}", self.index, self.of)
    }
}

impl FromStr for ShardId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split_once('/')
            .and_then(|(index, of)| Self::new(index.parse().ok()?, of.parse().ok()?))
            .ok_or_else(|| format!("{text:?} is no shard: write 3/8 for the third of eight"))
    }
}

impl TryFrom<String> for ShardId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ShardId> for String {
    fn from(shard: ShardId) -> Self {
        shard.to_string()
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// Numbers as engines write the tasks of an array: `3,7-9`. `numbers` are sorted.
pub fn ranges(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let words = parts.into_iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    words.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_count_from_one() {
        let check = |text: &str, folder: Option<&str>| {
            let shard = text.parse::<ShardId>().ok();
            assert_eq!(shard.map(ShardId::folder).as_deref(), folder, "{text}");
        };
        check("1/1", Some("1-of-1"));
        check("3/8", Some("3-of-8"));
        for wrong in ["0/8", "9/8", "3", "3/", "/8", "-1/8", "3/8/9", "1/0"] {
            check(wrong, None);
        }
        let shard: ShardId = serde_json::from_str("\"3/8\"").expect("is read");
        assert_eq!(serde_json::to_string(&shard).expect("text"), "\"3/8\"");
        assert!(serde_json::from_str::<ShardId>("\"9/8\"").is_err());
    }

    #[test]
    fn an_array_is_as_short_as_it_can_be() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[3]), "3");
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3,7,9-10");
    }
}
