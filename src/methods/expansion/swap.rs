//! One text put in the place of another where it stands by itself: `a.txt` in `cat a.txt`, not in `data.txt`.

/// A pair of texts, the old and the new.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Swap {
    from: String,
    to: String,
}

impl Swap {
    pub fn new(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self {
            from: from.into(),
            to: to.into(),
        }
    }

    pub fn from(&self) -> &str {
        &self.from
    }

    pub fn to(&self) -> &str {
        &self.to
    }

    pub fn in_text(&self, text: &str) -> String {
        replace(text, &self.from, &self.to)
    }

    /// In a shell command: the new text is quoted when the shell would split it.
    pub fn in_command(&self, text: &str) -> String {
        let harmless = |letter: char| letter.is_alphanumeric() || "{}:/._-".contains(letter);
        if self.to.chars().all(harmless) {
            return self.in_text(text);
        }
        replace(
            text,
            &self.from,
            &format!("'{}'", self.to.replace('\'', r"'\''")),
        )
    }

    /// In a regular expression that matches the old text literally.
    pub fn in_pattern(&self, text: &str) -> String {
        let escaped = replace(text, &escape(&self.from), &escape(&self.to));
        if escaped == text {
            self.in_text(text)
        } else {
            escaped
        }
    }
}

/// Escaped for a regular expression, but for placeholders: they are filled in before the expression is read.
fn escape(text: &str) -> String {
    const PLACES: [&str; 4] = ["{workspace}", "{outside}", "{home}", "{state}"];
    match PLACES
        .iter()
        .find_map(|place| text.split_once(place).map(|parts| (place, parts)))
    {
        Some((place, (before, after))) => {
            format!("{}{place}{}", regex::escape(before), escape(after))
        }
        None => regex::escape(text),
    }
}

/// Whether the text says `word` by itself.
pub fn says(text: &str, word: &str) -> bool {
    !word.is_empty() && places(text, word).next().is_some()
}

fn replace(text: &str, from: &str, to: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for at in places(text, from) {
        out.push_str(&text[done..at]);
        out.push_str(to);
        done = at + from.len();
    }
    out.push_str(&text[done..]);
    out
}

/// Where `word` stands and is no part of a longer word or path. A point at its end is one of a sentence.
fn places<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    let joins = |letter: char| letter.is_alphanumeric() || "-_/{}".contains(letter);
    text.match_indices(word).filter_map(move |(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + word.len()..].chars();
        let open_before = before.is_some_and(|letter| joins(letter) || letter == '.');
        let open_after = match after.next() {
            Some('.') => after.next().is_some_and(char::is_alphanumeric),
            Some(letter) => joins(letter),
            None => false,
        };
        (!open_before && !open_after).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_are_swapped() {
        let swap = Swap::new("a.txt", "b c.txt");
        let check = |text: &str, expected: &str| assert_eq!(swap.in_text(text), expected, "{text}");
        check("a.txt", "b c.txt");
        check("error: no such file: a.txt", "error: no such file: b c.txt");
        check("See a.txt.", "See b c.txt.");
        check("@a.txt, a.txt", "@b c.txt, b c.txt");
        check(
            "data.txt a.txt.bak x/a.txt a.txt/b",
            "data.txt a.txt.bak x/a.txt a.txt/b",
        );
        assert_eq!(swap.in_command("cat a.txt"), "cat 'b c.txt'");
        assert_eq!(
            swap.in_pattern(r"^wrote a\.txt \(\d"),
            r"^wrote b c\.txt \(\d"
        );
        assert_eq!(swap.in_pattern("^wrote a.txt"), "^wrote b c.txt");
        let placed = Swap::new("a.txt", "{workspace}/a.txt");
        assert_eq!(placed.in_pattern(r"^a\.txt$"), r"^{workspace}/a\.txt$");
    }

    #[test]
    fn numbers_are_words_too() {
        let swap = Swap::new("0", "-1");
        assert_eq!(swap.in_text("at least 10: 0"), "at least 10: -1");
        assert!(says("must be 0", "0") && !says("must be 10", "0") && !says("x", ""));
    }
}
