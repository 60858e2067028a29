//! The corpus under `ptxas`: the printed text assembles like the compiler's.

use crate::run::{parallel, ptx_files, read, relative, root};
use crate::summary::{SuiteResult, Summary};
use std::path::Path;
use warpwright_estimate::machine::{Ptxas, first_error};

/// The result for a file.
enum Outcome {
    /// The same resources, and whether the code is the same to the byte.
    Same { identical: bool },
    /// Our text assembles differently.
    Different(String),
}

/// Assembles every file as it is and as we print it.
pub(crate) fn check(ptxas: &Ptxas, summary: &mut Summary) {
    let name = "corpus, printed and assembled";
    let files = match ptx_files(&root().join("tests/corpus/ptx")) {
        Ok(files) => files,
        Err(why) => return summary.add_failure(name, &why),
    };
    let outcomes = parallel(&files, |path| compare(ptxas, path));
    let (mut passed, mut identical) = (0, 0);
    for (path, outcome) in files.iter().zip(&outcomes) {
        match outcome {
            Ok(Outcome::Same { identical: same }) => {
                passed += 1;
                identical += usize::from(*same);
            }
            Ok(Outcome::Different(why)) | Err(why) => eprintln!("{}: {why}", relative(path)),
        }
    }
    let remark = format!("{identical} to the same bytes");
    summary.add(SuiteResult { name: name.to_string(), passed, failed: files.len() - passed, remark });
}

fn compare(ptxas: &Ptxas, path: &Path) -> Result<Outcome, String> {
    let original = read(path)?;
    let module = warpwright_ptx::parse(&original).map_err(|errors| {
        let first = errors.iter().next().map(ToString::to_string);
        format!("does not parse: {} errors, the first is {}", errors.len(), first.unwrap_or_default())
    })?;
    let printed = warpwright_ptx::print(&module);
    let outcome = match (ptxas.assemble(&original), ptxas.assemble(&printed)) {
        (Ok(a), Ok(b)) => match differing_resource(&a.log, &b.log) {
            Some((a, b)) => Outcome::Different(format!("`{a}` became `{b}`")),
            None => Outcome::Same { identical: a.cubin == b.cubin },
        },
        (Ok(_), Err(log)) => {
            Outcome::Different(format!("the printed text is refused: {}", first_error(&log)))
        }
        (Err(log), _) => Outcome::Different(format!("the original is refused: {}", first_error(&log))),
    };
    Ok(outcome)
}

/// The first line about resources (registers, spills, shared memory) in which two logs differ.
fn differing_resource<'a>(a: &'a str, b: &'a str) -> Option<(&'a str, &'a str)> {
    let lines = |log: &'a str| -> Vec<&'a str> {
        let resource = |line: &&str| {
            line.contains("Used ") || line.contains("bytes") || line.contains("Compiling entry function")
        };
        log.lines().map(str::trim).filter(resource).collect()
    };
    let (a, b) = (lines(a), lines(b));
    if a.len() != b.len() {
        return Some(("the list of functions", "one of another length"));
    }
    a.into_iter().zip(b).find(|(a, b)| a != b)
}
