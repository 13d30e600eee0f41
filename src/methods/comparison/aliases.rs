//! One name for one thing: what other harnesses call the commands, flags, tools and parameters of the document.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::domain::difference::FactKind;

/// The document's name → the names elsewhere. Compared without regard to case, `-` and `_`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Aliases {
    pub commands: BTreeMap<String, Vec<String>>,
    pub flags: BTreeMap<String, Vec<String>>,
    pub tools: BTreeMap<String, Vec<String>>,
    pub parameters: BTreeMap<String, Vec<String>>,
}

impl Aliases {
    /// The document's name of a thing, or the name in lower case when the document has none.
    ///
    /// A parameter's key is `tool.parameter`; both parts are looked up.
    pub fn canonical(&self, kind: FactKind, key: &str) -> String {
        match kind {
            FactKind::Command => look_up(&self.commands, key),
            FactKind::Flag => look_up(&self.flags, key),
            FactKind::Tool => look_up(&self.tools, key),
            FactKind::Parameter => match key.rsplit_once('.') {
                Some((tool, parameter)) => format!(
                    "{}.{}",
                    look_up(&self.tools, tool),
                    look_up(&self.parameters, parameter)
                ),
                None => key.to_owned(),
            },
            _ => key.to_owned(),
        }
    }
}

fn look_up(table: &BTreeMap<String, Vec<String>>, name: &str) -> String {
    let wanted = plain(name);
    let known = table.iter().find(|(canonical, others)| {
        plain(canonical) == wanted || others.iter().any(|other| plain(other) == wanted)
    });
    match known {
        Some((canonical, _)) => canonical.clone(),
        None => name.to_lowercase(),
    }
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(|letter| letter.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_has_the_name_of_the_document() {
        let aliases: Aliases = toml::from_str(
            "[tools]\nread = [\"ReadFile\", \"view_file\"]\n[parameters]\noffset = [\"line_offset\"]\n\
             [flags]\n\"--cwd\" = [\"--work-dir\"]\n",
        )
        .expect("parses");
        let check = |kind, key: &str, expected: &str| {
            assert_eq!(aliases.canonical(kind, key), expected, "{key}");
        };
        check(FactKind::Tool, "read_file", "read");
        check(FactKind::Tool, "Read", "read");
        check(FactKind::Tool, "Think", "think");
        check(FactKind::Parameter, "ReadFile.line_offset", "read.offset");
        check(FactKind::Parameter, "ReadFile.mode", "read.mode");
        check(FactKind::Flag, "--work-dir", "--cwd");
        check(FactKind::Flag, "--yolo", "--yolo");
        check(FactKind::Error, "No Such File", "No Such File");
    }
}
