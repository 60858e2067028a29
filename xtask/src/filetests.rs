//! The filetests under `ptxas`: it accepts what we accept, and refuses what we refuse.
//!
//! A file that `// ptxas: differs REASON` marks is left out.

use crate::run::{parallel, ptx_files, read, relative, root};
use crate::summary::{SuiteResult, Summary};
use std::path::Path;
use warpwright_estimate::machine::{Ptxas, first_error};

/// Gives every `verify` and `vm` file to `ptxas`.
pub(crate) fn check(ptxas: &Ptxas, summary: &mut Summary) {
    let name = "filetests, assembled";
    let files = match ptx_files(&root().join("tests/filetests")) {
        Ok(files) => files,
        Err(why) => return summary.add_failure(name, &why),
    };
    let outcomes = parallel(&files, |path| compare(ptxas, path));
    let (mut passed, mut failed, mut left_out) = (0, 0, 0);
    for (path, outcome) in files.iter().zip(outcomes) {
        match outcome {
            Ok(true) => passed += 1,
            Ok(false) => left_out += 1,
            Err(why) => {
                failed += 1;
                eprintln!("{}: {why}", relative(path));
            }
        }
    }
    let remark = if left_out == 0 { String::new() } else { format!("{left_out} are not for ptxas") };
    summary.add(SuiteResult { name: name.to_string(), passed, failed, remark });
}

/// Whether the file is one for `ptxas`; an error where it disagrees.
fn compare(ptxas: &Ptxas, path: &Path) -> Result<bool, String> {
    let text = read(path)?;
    let header: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//")).map(str::trim).collect();
    let is_for_ptxas = header.iter().any(|line| {
        line.strip_prefix("test:").is_some_and(|modes| modes.contains("verify") || modes.contains("vm"))
    }) && !header.iter().any(|line| line.starts_with("ptxas: differs "));
    if !is_for_ptxas {
        return Ok(false);
    }
    let refused = text.contains("//~ E");
    match (refused, ptxas.assemble(&text)) {
        (false, Ok(_)) | (true, Err(_)) => Ok(true),
        (false, Err(log)) => Err(format!("we accept it, ptxas says: {}", first_error(&log))),
        (true, Ok(_)) => Err("we refuse it, ptxas accepts it".to_string()),
    }
}
