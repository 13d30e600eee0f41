//! The modules of a bundle: one file of script that a bundler made of many and marked with their paths.

use std::path::{Path, PathBuf};

/// A part of a bundle that was a file of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module<'t> {
    /// As the marker has it.
    pub path: PathBuf,
    /// The line of the bundle that its text begins on, from 1.
    pub line: usize,
    pub text: &'t str,
}

/// A file with fewer markers has comments that look like them.
const LEAST_MARKERS: usize = 3;

/// The modules in the order of the bundle; none when the text is no bundle. What stands before the first marker is the
/// bundler's own.
pub fn modules(text: &str) -> Vec<Module<'_>> {
    let mut markers: Vec<(PathBuf, usize, usize, usize)> = Vec::new();
    let mut begin = 0;
    for (idx, line) in text.split_inclusive('\n').enumerate() {
        if let Some(path) = marked(line.trim_end()) {
            markers.push((path, idx + 2, begin, begin + line.len()));
        }
        begin += line.len();
    }
    if markers.len() < LEAST_MARKERS {
        return Vec::new();
    }
    let ends = markers.iter().skip(1).map(|(_, _, begin, _)| *begin);
    let ends: Vec<usize> = ends.chain([text.len()]).collect();
    markers
        .into_iter()
        .zip(ends)
        .map(|((path, line, _, begin), end)| Module {
            path,
            line,
            text: &text[begin..end],
        })
        .collect()
}

/// `// packages/core/src/tools/read-file.ts` at the beginning of a line, as esbuild writes it.
fn marked(line: &str) -> Option<PathBuf> {
    let path = line.strip_prefix("// ")?;
    // What a plugin made has its name in front.
    let path = path.rsplit_once(':').map_or(path, |(_, path)| path);
    let is_path = !path.contains([' ', '\t', '`', '\'', '"']) && path.contains('/');
    let ending = Path::new(path).extension()?.to_str()?;
    let is_script = ["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "json"].contains(&ending);
    (is_path && is_script).then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_cut_at_its_markers() {
        let text = "var a;\n// src/a.ts\nx();\n// no path here.js\ny();\n  // src/inner.ts\n// node_modules/b/c.js\n\
                    z();\n\n// wasm:src/d.ts\n";
        let seen: Vec<(String, usize, &str)> = modules(text)
            .into_iter()
            .map(|module| (module.path.display().to_string(), module.line, module.text))
            .collect();
        let first = "x();\n// no path here.js\ny();\n  // src/inner.ts\n";
        let expected = [
            ("src/a.ts".to_owned(), 3, first),
            ("node_modules/b/c.js".to_owned(), 8, "z();\n\n"),
            ("src/d.ts".to_owned(), 11, ""),
        ];
        assert_eq!(seen, expected);
        assert_eq!(modules("// src/a.ts\nx();\n"), []);
    }
}
