//! Runs every file of `tests/filetests/vm` on the virtual GPU.
//!
//! A file begins with `// test: vm`. Above each kernel stand its runs:
//!
//! ```text
//! // run: grid=2 block=4 u32:3 f32[1, 2.5, 0 x 6] => [2, 3.5, 1 x 6] -> u32[0..8]
//! .visible .entry k(.param .u32 n, .param .u64 inout, .param .u64 out)
//! ```
//!
//! - Options are `grid=X,Y,Z` and `block=X,Y,Z` (1 where not said), `shared=BYTES`, `cooperative`, `cluster=X,Y,Z`,
//!   `check=all` (where not said), `check=none` or names of checks, `race=strict`,
//!   `budget=INSTRUCTIONS`, `sm=90` and `tensor-core=MODEL`.
//! - Arguments stand in the order of the parameters: a scalar `TYPE:VALUE`, `null`, a structure
//!   `raw:HEX`, a buffer `TYPE[…]`, or `freed:TYPE[…]` for one that the host has freed. `=> […]` after
//!   a buffer says its contents afterwards; `multimem:N` is the multimem address of the buffer that is
//!   argument N, and `multimem:none` one of no memory; `-> TYPE[…]` is a buffer that is not initialised, with its
//!   contents afterwards.
//! - Numbers are decimal, or the bits in hexadecimal; `inf`; `nan` for any NaN; `_` for whatever comes
//!   out; `?` for an element that is not initialised; `1.5~1e-3` and `1.5~2ulp` with a tolerance.
//!   `V x N` repeats, `A..B` and `A..B step S` count.
//! - `prints "…"` after the arguments says what the kernel prints.
//! - A run goes on in the next lines where they are indented by four more spaces, and has a name where
//!   one stands before the colon: `// run name: …`.
//!
//! A mark stands on each line that a finding or a trap names: `//~ KIND [ROLE]`, or with the name of the
//! run, `//~ name: KIND [ROLE]`; `//~^` is about the line above. A race has two marks, one for each
//! access. Where there are two findings of a kind, `KIND#1` and `KIND#2` tell which marks belong
//! together. The kinds and roles are those of the API; for `budget`, the marks are the lines where the
//! launch may be stopped; `mbarrier` marks a test of an mbarrier in a deadlock, with its state as role; `deadlock loop` marks the lines of a loop, at some of which threads are found. What is not marked must not be found.
//!
//! Every run is made with several schedules, and each must give the same. `FILETEST=warp/` in the
//! environment runs the files whose path contains that.

mod filetest;

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn filetests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/vm");
    let only = std::env::var("FILETEST").unwrap_or_default();
    let files = files(&root);
    assert!(!files.is_empty(), "no filetests found");
    let mut failures = Vec::new();
    for path in &files {
        let name = path.strip_prefix(&root).unwrap_or(path).display().to_string();
        if !name.contains(&only) {
            continue;
        }
        let text = fs::read_to_string(path).expect("a file can be read");
        if let Err(why) = filetest::run::check(&text) {
            failures.push(format!("{name}: {why}"));
        }
    }
    let (failed, all) = (failures.len(), files.len());
    assert!(failures.is_empty(), "{failed} of {all} filetests fail:\n{}", failures.join("\n"));
}

/// Every `.ptx` file under a folder, sorted.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![root.to_path_buf()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ptx") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
