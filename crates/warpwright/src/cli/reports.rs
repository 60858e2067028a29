//! Reports in files, for services of continuous integration: SARIF and JUnit.

use super::Failure;
use std::path::{Path, PathBuf};
use warpwright_report::{Case, junit, sarif};

/// The files that are asked for.
#[derive(clap::Args)]
pub(crate) struct ReportFiles {
    /// Write the findings to this file as SARIF, which code scanning shows in the lines of a pull request
    #[arg(long, value_name = "FILE")]
    pub(super) sarif: Option<PathBuf>,
    /// The folder that paths in SARIF begin in, the root of the repository [default: the current folder]
    #[arg(long, value_name = "FOLDER", requires = "sarif")]
    root: Option<PathBuf>,
    /// Write the findings to this file as JUnit's XML, with a test for each kernel
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
}

impl ReportFiles {
    /// Whether there are any.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.sarif.is_some() || self.junit.is_some()
    }

    /// Makes the files empty, so that one that cannot be written is an error before anything runs. Empty is no report: if
    /// nothing runs, nothing says that nothing was found.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        [&self.sarif, &self.junit].into_iter().flatten().try_for_each(|path| write(path, ""))
    }

    /// Writes the reports.
    pub(crate) fn write(&self, cases: &[Case]) -> Result<(), Failure> {
        if let Some(path) = &self.sarif {
            write(path, &sarif(cases, self.root.as_deref().unwrap_or(Path::new("."))))?;
        }
        if let Some(path) = &self.junit {
            write(path, &junit(cases))?;
        }
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let written = std::fs::write(path, text);
    written.map_err(|error| Failure::Message(format!("cannot write {}: {error}", path.display())))
}
