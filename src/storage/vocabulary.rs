//! The files `aliases.toml` and `homonyms.toml` beside the chapters of the document.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;

use crate::domain::clause::ClauseId;
use crate::domain::place::{Finding, Place};
use crate::domain::vocabulary::{Alias, Homonym, Letters, Sense, Within};

/// Reads `aliases.toml` of the document's folder.
pub fn read_aliases(folder: &Path) -> Result<Vec<Alias>, Finding> {
    let file = folder.join("aliases.toml");
    let (text, parsed): (String, AliasFile) = parse(&file)?;
    let alias = |entry: AliasEntry| Alias {
        place: Place::of_offset(&file, &text, entry.concept.span().start),
        concept: entry.concept.into_inner(),
        canonical: entry.canonical,
        others: entry.others,
        reason: entry.reason,
        letters: entry.letters,
        within: entry.within,
        except: entry.except,
    };
    Ok(parsed.alias.into_iter().map(alias).collect())
}

/// Reads `homonyms.toml` of the document's folder.
pub fn read_homonyms(folder: &Path) -> Result<Vec<Homonym>, Finding> {
    let file = folder.join("homonyms.toml");
    let (text, parsed): (String, HomonymFile) = parse(&file)?;
    let homonym = |entry: HomonymEntry| Homonym {
        place: Place::of_offset(&file, &text, entry.word.span().start),
        word: entry.word.into_inner(),
        senses: entry.senses,
    };
    Ok(parsed.homonym.into_iter().map(homonym).collect())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AliasFile {
    alias: Vec<AliasEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AliasEntry {
    concept: Spanned<String>,
    canonical: String,
    others: Vec<String>,
    reason: String,
    #[serde(default)]
    letters: Letters,
    #[serde(default)]
    within: Within,
    #[serde(default)]
    except: Vec<ClauseId>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HomonymFile {
    homonym: Vec<HomonymEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HomonymEntry {
    word: Spanned<String>,
    senses: Vec<Sense>,
}

fn parse<T: DeserializeOwned>(file: &Path) -> Result<(String, T), Finding> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Finding::new(Place::new(file, 1), format!("cannot be read: {error}")))?;
    let parsed = toml::from_str(&text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        Finding::new(
            Place::of_offset(file, &text, offset),
            error.message().trim().to_owned(),
        )
    })?;
    Ok((text, parsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_are_read_with_their_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(
            folder.path().join("aliases.toml"),
            "[[alias]]\nconcept = \"c\"\ncanonical = \"/a\"\nothers = [\"/b\"]\nreason = \"r\"\nletters = \"any-case\"\n",
        )
        .expect("writes");
        std::fs::write(
            folder.path().join("homonyms.toml"),
            "\n[[homonym]]\nword = \"w\"\nsenses = [{ sense = \"s\", clause = \"a.b.c\" }]\n",
        )
        .expect("writes");
        let aliases = read_aliases(folder.path()).expect("reads");
        assert_eq!(
            (aliases[0].place.line, aliases[0].letters),
            (2, Letters::AnyCase)
        );
        let homonyms = read_homonyms(folder.path()).expect("reads");
        assert_eq!(homonyms[0].place.line, 3);
        let absent = read_aliases(&folder.path().join("absent")).expect_err("must fail");
        assert!(absent.message.contains("cannot be read"));
    }
}
