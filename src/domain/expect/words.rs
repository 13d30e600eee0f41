//! Assertions in words, for verdicts and for readers.

use std::fmt;

use super::{Condition, Count, CountRange, Expect, Pick, PickNamed, Texts};
use crate::domain::clause::Channel;

/// In words: `requests $.messages[-1].content lacks "…"`.
impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |members: &[Self], word: &str| {
            let parts: Vec<String> = members.iter().map(|one| one.as_member()).collect();
            parts.join(word)
        };
        if !self.any.is_empty() {
            return write!(f, "any of: {}", joined(&self.any, " | "));
        }
        if !self.all.is_empty() {
            return write!(f, "all of: {}", joined(&self.all, " & "));
        }
        if let Some(inner) = &self.not {
            return write!(f, "not: {}", inner.as_member());
        }
        f.write_str(self.channel.map_or("?", Channel::as_str))?;
        if let Some(n) = self.launch {
            write!(f, " of launch {n}")?;
        }
        match self.request {
            Some(Pick::Nth(n)) => write!(f, " number {n}")?,
            Some(Pick::Named(PickNamed::First)) => f.write_str(" (first)")?,
            Some(Pick::Named(PickNamed::Last)) => f.write_str(" (last)")?,
            Some(Pick::Named(PickNamed::Side)) => f.write_str(" (without tools)")?,
            Some(Pick::Named(PickNamed::Any)) | None => {}
        }
        if let Some(path) = &self.path {
            write!(f, " {path}")?;
        }
        if let Some(name) = &self.header {
            write!(f, " header {name}")?;
        }
        if let Some(stream) = self.stream {
            write!(f, " {}", stream.as_str())?;
        }
        if let Some(at) = &self.at {
            write!(f, " {at}")?;
        }
        let texts = |f: &mut fmt::Formatter<'_>, word: &str, texts: &Option<Texts>| match texts {
            Some(texts) => write!(f, " {word} {}", quoted(texts.as_slice())),
            None => Ok(()),
        };
        texts(f, "has", &self.has)?;
        texts(f, "lacks", &self.lacks)?;
        if let Some(pattern) = &self.matches {
            write!(f, " matches /{pattern}/")?;
        }
        if let Some(pattern) = &self.lacks_match {
            write!(f, " matches nowhere /{pattern}/")?;
        }
        if let Some(value) = &self.equals {
            write!(f, " equals {value}")?;
        }
        if let Some(value) = &self.not_equals {
            write!(f, " differs from {value}")?;
        }
        if !self.one_of.is_empty() {
            write!(f, " is one of {:?}", self.one_of)?;
        }
        if !self.order.is_empty() {
            let steps: Vec<String> = self.order.iter().map(ToString::to_string).collect();
            write!(f, " in this order: {}", steps.join(", then "))?;
        }
        if let Some(range) = self.after_ms {
            write!(f, " comes {range} ms after the one before")?;
        }
        match self.count {
            Some(Count::Exactly(n)) => write!(f, " counts {n}")?,
            Some(Count::Range(range)) => write!(f, " counts {range}")?,
            None => {}
        }
        match self.exists {
            Some(true) => f.write_str(" exists")?,
            Some(false) => f.write_str(" is absent")?,
            None => {}
        }
        match self.unchanged {
            Some(true) => f.write_str(" is unchanged")?,
            Some(false) => f.write_str(" is changed")?,
            None => {}
        }
        if let Some(mode) = &self.mode {
            write!(f, " has mode {mode}")?;
        }
        match self.changed.as_deref() {
            Some([]) => f.write_str(" has no changes")?,
            Some(paths) => write!(f, " has changes at {} and nowhere else", paths.join(", "))?,
            None => {}
        }
        if let Some(name) = &self.bind {
            write!(f, " is bound to {{bound:{name}}}")?;
        }
        Ok(())
    }
}

impl Expect {
    /// Groups inside groups stand in brackets.
    fn as_member(&self) -> String {
        match self.members().next() {
            Some(_) => format!("({self})"),
            None => self.to_string(),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(texts) = &self.has {
            parts.push(format!("has {}", quoted(texts.as_slice())));
        }
        if let Some(pattern) = &self.matches {
            parts.push(format!("matches /{pattern}/"));
        }
        if let Some(value) = &self.equals {
            parts.push(format!("equals {value}"));
        }
        if !self.like.is_empty() {
            let members = self.like.iter();
            let members: Vec<String> = members
                .map(|(name, value)| format!("{name} {value}"))
                .collect();
            parts.push(format!("with {}", members.join(", ")));
        }
        f.write_str(&parts.join(" and "))
    }
}

/// `2..`, `..5`, `2..5`
impl fmt::Display for CountRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |end: Option<usize>| end.map_or_else(String::new, |n| n.to_string());
        write!(f, "{}..{}", end(self.min), end(self.max))
    }
}

fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    texts.join(" and ")
}
