//! Writes the figures, each as SVG and as PNG.

use std::path::{Path, PathBuf};

use super::Summary;
use crate::adapters::plots::{png, svg, text_width};
use crate::domain::drawing::Drawing;
use crate::methods::figures::{categories, code_lines, ranking};
use crate::stages::{Classify, Kind, Result};

/// What printers ask for.
const PIXELS_PER_INCH: f64 = 300.0;

/// The paths of the files. A figure without data is not made.
pub(super) fn write(summary: &Summary, folder: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).kind(Kind::User)?;
    let drawings: [(&str, Option<Drawing>); 3] = [
        ("ranking", ranking(&summary.analysis, &text_width)),
        ("categories", categories(&summary.coverage, &text_width)),
        (
            "code-lines",
            summary
                .architecture
                .as_ref()
                .map(|architecture| code_lines(architecture, &text_width)),
        ),
    ];
    let mut written = Vec::new();
    for (name, drawing) in drawings {
        let Some(drawing) = drawing else { continue };
        let picture = png(&drawing, PIXELS_PER_INCH).kind(Kind::Environment)?;
        for (ending, bytes) in [("svg", svg(&drawing).into_bytes()), ("png", picture)] {
            let path = folder.join(format!("{name}.{ending}"));
            std::fs::write(&path, bytes).kind(Kind::User)?;
            written.push(path);
        }
    }
    Ok(written)
}
