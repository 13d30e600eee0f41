//! The language of an issue. Words of all languages go through the same splitting; the language is noted for people.

use whatlang::{Detector, Lang};

use super::words::is_dense;

/// Letters that are looked at; more would cost time and tell little.
const N_LETTERS: usize = 300;

/// The code of ISO 639-3; none when the text is too short to say.
///
/// Reports in Chinese, Japanese or Korean are full of English names, so that a few letters of these scripts decide.
pub fn language(title: &str, prose: &str) -> Option<&'static str> {
    let text: String = title
        .chars()
        .chain(std::iter::once(' '))
        .chain(prose.chars())
        .take(N_LETTERS)
        .collect();
    let n_letters = text.chars().filter(|letter| letter.is_alphabetic()).count();
    let dense: Vec<char> = text.chars().filter(|letter| is_dense(*letter)).collect();
    if !dense.is_empty() && dense.len() * 10 >= n_letters {
        let any = |from: char, to: char| dense.iter().any(|letter| (from..=to).contains(letter));
        return Some(if any('\u{3040}', '\u{30ff}') {
            "jpn"
        } else if any('\u{ac00}', '\u{d7af}') {
            "kor"
        } else {
            "cmn"
        });
    }
    let detector = Detector::with_allowlist(vec![
        Lang::Eng,
        Lang::Deu,
        Lang::Fra,
        Lang::Spa,
        Lang::Por,
        Lang::Ita,
        Lang::Rus,
        Lang::Tur,
        Lang::Vie,
        Lang::Pol,
    ]);
    let found = detector.detect(&text)?;
    found.is_reliable().then(|| found.lang().code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_apart() {
        let check = |title: &str, prose: &str, expected: Option<&str>| {
            assert_eq!(language(title, prose), expected, "{title} {prose}");
        };
        let english = "The permission rule is ignored when the agent edits a file that lies outside of the workspace.";
        check("Deny rule ignored", english, Some("eng"));
        check(
            "[BUG] 权限规则不生效",
            "settings.json 里的 deny 规则没有生效",
            Some("cmn"),
        );
        check("ファイルを編集できない", "edit tool", Some("jpn"));
        check("권한 규칙이 무시됩니다", "", Some("kor"));
        check(
            "Regel wird ignoriert",
            "Die Regel in den Einstellungen wird nicht beachtet, wenn der Agent eine Datei außerhalb des Ordners ändert.",
            Some("deu"),
        );
        check("", "", None);
    }
}
