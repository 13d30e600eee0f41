//! Text of strangers made harmless for people: what would move a cursor, hide or reorder text is shown as a sign.
//!
//! Escaping for HTML, XML or Markdown comes on top and is elsewhere.

use std::borrow::Cow;
use std::fmt::Write;

/// Line breaks and tabs stay; other control characters become their pictures (`␛`), and characters that are
/// invisible or change the direction of text become `⟨U+202E⟩`.
pub fn visible(text: &str) -> Cow<'_, str> {
    let harmless = |c: char| matches!(c, '\n' | '\t') || !is_hidden(c);
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if harmless(c) {
            out.push(c);
        } else {
            push_sign(&mut out, c);
        }
    }
    Cow::Owned(out)
}

/// The same on one line: line breaks become `↵`, tabs `⇥`.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            push_sign(&mut out, c);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The first characters, with `… (N more)` when something was cut.
pub fn shortened(text: &str, n_chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(n_chars) {
        None => Cow::Borrowed(text),
        Some((end, _)) => {
            let n_more = text[end..].chars().count();
            Cow::Owned(format!("{}… ({n_more} more)", &text[..end]))
        }
    }
}

/// What a stranger's program says: on one line, and cut.
pub fn in_short(text: &str) -> String {
    const N_SHOWN: usize = 300;
    shortened(&visible_line(text.trim()), N_SHOWN).into_owned()
}

fn push_sign(out: &mut String, c: char) {
    match c {
        '\n' => out.push('↵'),
        '\t' => out.push('⇥'),
        '\0'..='\x1f' => out.push(char::from_u32(0x2400 + c as u32).expect("pictures of C0")),
        '\x7f' => out.push('␡'),
        _ => write!(out, "⟨U+{:04X}⟩", c as u32).expect("a String takes everything"),
    }
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
        || (c as u32) & 0xfffe == 0xfffe
}

/// The innermost cause of an error on one line: what happened, without what the layers around it say.
pub fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    visible_line(&cause.to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected, "{text:?}");
        check("plain\n\tumlaut ä, 漢字, 🙂", "plain\n\tumlaut ä, 漢字, 🙂");
        check("\x1b[31mred\x1b[0m", "␛[31mred␛[0m");
        check("a\r\nb", "a␍\nb");
        check("bell\x07 back\x08 del\x7f nul\0", "bell␇ back␈ del␡ nul␀");
        check("\u{9b}31m", "⟨U+009B⟩31m");
        check("user\u{202e}nimda", "user⟨U+202E⟩nimda");
        check("a\u{200b}b\u{feff}", "a⟨U+200B⟩b⟨U+FEFF⟩");
        check("tag\u{e0041}", "tag⟨U+E0041⟩");
        check("not\u{ffff}", "not⟨U+FFFF⟩");
        assert_eq!(visible_line("a\nb\tc\x1b"), "a↵b⇥c␛");
    }

    #[test]
    fn shortening_counts_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äöü… (1 more)");
        assert_eq!(in_short(" no\x1b[2J\n"), "no␛[2J");
        assert!(in_short(&"a".repeat(1000)).ends_with("… (700 more)"));
    }
}
