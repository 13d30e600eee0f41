//! What an assertion may follow: it stays fixed, but where it quotes the input it quotes the new one.
//!
//! `error: no such file: a.txt` speaks of the path that the call gave. When the call gives another path, the same
//! assertion says the other path.

use serde_json::Value;

use super::swap::{Swap, says};
use crate::domain::clause::Channel;
use crate::domain::expect::{Expect, Texts};

/// Quotations to be replaced in the tests of an assertion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Follow {
    /// In texts of tests.
    pub quotes: Vec<Swap>,
    /// Only in texts that say this, too; everywhere when none.
    pub beside: Option<String>,
    /// In the paths of files that assertions look at: the file itself has another name.
    pub renamed: Option<Swap>,
    pub scope: Scope,
}

/// Which assertions follow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scope {
    #[default]
    Everywhere,
    /// Those on results of tools: only they quote a path as the call wrote it.
    Results,
    /// Those that name this call.
    Call(String),
}

impl Follow {
    pub fn in_text(&self, text: &str) -> String {
        self.apply(text, Swap::in_text)
    }

    pub fn in_pattern(&self, text: &str) -> String {
        self.apply(text, Swap::in_pattern)
    }

    fn apply(&self, text: &str, swap: fn(&Swap, &str) -> String) -> String {
        if let Some(word) = &self.beside
            && !says(text, word)
        {
            return text.to_owned();
        }
        self.quotes
            .iter()
            .fold(text.to_owned(), |text, quote| swap(quote, &text))
    }

    /// Whether an assertion that looks there follows.
    pub fn is_for(&self, channel: Option<&str>, at: Option<&str>) -> bool {
        let at = at.unwrap_or("");
        match &self.scope {
            Scope::Everywhere => true,
            Scope::Results => channel == Some("requests") || at.contains("result"),
            Scope::Call(id) => at.contains(&format!("'{id}'")),
        }
    }

    /// The assertion as it is when it has followed.
    pub fn expected(&self, expect: &Expect) -> Expect {
        if expect.members().next().is_some() {
            let all = |members: &[Expect]| members.iter().map(|one| self.expected(one)).collect();
            let not = expect.not.as_deref();
            return Expect {
                any: all(&expect.any),
                all: all(&expect.all),
                not: not.map(|inner| Box::new(self.expected(inner))),
                ..expect.clone()
            };
        }
        let channel = expect.channel.map(Channel::as_str);
        if !self.is_for(channel, expect.at.as_deref()) {
            return expect.clone();
        }
        let texts = |some: &Option<Texts>| {
            some.as_ref().map(|texts| match texts {
                Texts::One(text) => Texts::One(self.in_text(text)),
                Texts::All(all) => Texts::All(all.iter().map(|text| self.in_text(text)).collect()),
            })
        };
        let value = |some: &Option<Value>| {
            some.as_ref().map(|value| match value {
                Value::String(text) => Value::String(self.in_text(text)),
                other => other.clone(),
            })
        };
        let pattern = |some: &Option<String>| some.as_ref().map(|text| self.in_pattern(text));
        Expect {
            at: expect.at.as_ref().map(|at| self.in_text(at)),
            has: texts(&expect.has),
            lacks: texts(&expect.lacks),
            matches: pattern(&expect.matches),
            lacks_match: pattern(&expect.lacks_match),
            equals: value(&expect.equals),
            not_equals: value(&expect.not_equals),
            path: match (&expect.path, &self.renamed) {
                (Some(path), Some(swap)) => Some(swap.in_text(path)),
                (path, _) => path.clone(),
            },
            ..expect.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotations_follow_and_nothing_else() {
        let follow = Follow {
            quotes: vec![Swap::new("\"limit\"", "\"offset\""), Swap::new("0", "-1")],
            beside: Some("\"limit\"".into()),
            renamed: None,
            scope: Scope::Everywhere,
        };
        let check =
            |text: &str, expected: &str| assert_eq!(follow.in_text(text), expected, "{text}");
        check(
            "error: parameter \"limit\" must be at least 1: 0",
            "error: parameter \"offset\" must be at least 1: -1",
        );
        check("[exit 0]", "[exit 0]");
        let files = Follow {
            quotes: vec![Swap::new("a.txt", "b.txt")],
            beside: None,
            renamed: Some(Swap::new("a.txt", "b.txt")),
            scope: Scope::Everywhere,
        };
        let expect: Expect = toml::from_str(
            "channel = \"files\"\npath = \"a.txt\"\nequals = \"a.txt and {nonce:x}\"\nmatches = 'a\\.txt'",
        )
        .expect("parses");
        let expected = files.expected(&expect);
        assert_eq!(expected.path.as_deref(), Some("b.txt"));
        assert_eq!(expected.equals, Some(Value::from("b.txt and {nonce:x}")));
        assert_eq!(expected.matches.as_deref(), Some("b\\.txt"));
        assert_eq!(expected.channel, expect.channel);
    }

    #[test]
    fn only_assertions_in_scope_follow() {
        let check = |scope: Scope, expect: &str, follows: bool| {
            let follow = Follow {
                quotes: vec![Swap::new("a.txt", "d/../a.txt")],
                scope,
                ..Follow::default()
            };
            let expect: Expect = toml::from_str(expect).expect("parses");
            assert_eq!(follow.expected(&expect) != expect, follows, "{expect}");
        };
        let requests = "channel = \"requests\"\nat = \"$.m[?@.id == 'one']\"\nhas = \"a.txt\"";
        let printed = "channel = \"output\"\nhas = \"removed a.txt\"";
        let result = "channel = \"output\"\nat = \"$.tool_calls[*].result\"\nhas = \"a.txt\"";
        let any = format!("any = [{{ {} }}]", requests.replace('\n', ", "));
        check(Scope::Everywhere, printed, true);
        check(Scope::Results, printed, false);
        check(Scope::Results, requests, true);
        check(Scope::Results, result, true);
        check(Scope::Results, &any, true);
        check(Scope::Call("one".into()), requests, true);
        check(Scope::Call("two".into()), requests, false);
        check(Scope::Call("one".into()), printed, false);
    }
}
