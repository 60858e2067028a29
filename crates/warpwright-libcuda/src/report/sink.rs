//! The target of reports: stderr as text, a file as lines of JSON, or a list for a client that takes them.

use super::log;
use crate::lock;
use crate::state;
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, OnceLock};

/// The version of the lines. It is raised when a field changes its meaning or is removed.
pub(super) const VERSION: u32 = 1;

/// The file. Lines are appended, each with one write, so that several processes can share it.
fn file() -> Option<&'static File> {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    let open = || {
        let path = state::config().ok()?.findings.as_ref()?;
        let file = File::options().create(true).append(true).open(path);
        let told = |error: &std::io::Error| {
            log::line(&format!("WARPWRIGHT_FINDINGS={}: {error}; findings are written here", path.display()));
        };
        file.inspect_err(told).ok()
    };
    FILE.get_or_init(open).as_ref()
}

/// What is kept until a client takes it, once one has; each as text and as an object.
static KEPT: Mutex<Option<Vec<(String, Value)>>> = Mutex::new(None);

/// What was reported since the last call, as lines of JSON with `text` besides. From now on reports are kept for the
/// next call.
pub(super) fn take() -> String {
    let kept = lock(&KEPT).replace(Vec::new()).unwrap_or_default();
    let lines = kept.into_iter().map(|(text, mut json)| {
        json["text"] = text.into();
        format!("{json}\n")
    });
    lines.collect()
}

/// Ends the keeping: what nobody has taken is written. Returns whether reports were kept.
pub(super) fn release() -> bool {
    let kept = lock(&KEPT).take();
    let was_kept = kept.is_some();
    kept.into_iter().flatten().for_each(|(text, json)| tell(|| text, || json));
    was_kept
}

/// Whether there is a file.
pub(super) fn is_file() -> bool {
    file().is_some()
}

/// Writes a report in either form.
pub(super) fn tell(text: impl FnOnce() -> String, json: impl FnOnce() -> Value) {
    if let Some(kept) = lock(&KEPT).as_mut() {
        return kept.push((text(), json()));
    }
    let Some(mut file) = file() else { return log::line(&text()) };
    if let Err(error) = file.write_all(format!("{}\n", json()).as_bytes()) {
        log::line(&format!("findings cannot be written: {error}"));
        log::line(&text());
    }
}
