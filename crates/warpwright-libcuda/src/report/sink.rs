//! The target of reports: stderr as text, a file as lines of JSON, or a list for a client that takes them.

use super::log;
use crate::lock;
use crate::state;
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, OnceLock};
use warpwright_report::Event;

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

/// What is kept until a client takes it, once one has.
static KEPT: Mutex<Option<Vec<Event>>> = Mutex::new(None);

/// What was reported since the last call, as lines of JSON with `text` besides. From now on reports are kept for the
/// next call.
pub(super) fn take() -> String {
    let kept = lock(&KEPT).replace(Vec::new()).unwrap_or_default();
    kept.iter().map(|event| event.line_with(&event.text()) + "\n").collect()
}

/// Ends the keeping: what nobody has taken is written. Returns whether reports were kept.
pub(super) fn release() -> bool {
    let kept = lock(&KEPT).take();
    let was_kept = kept.is_some();
    kept.into_iter().flatten().for_each(tell);
    was_kept
}

/// Whether there is a file.
pub(super) fn is_file() -> bool {
    file().is_some()
}

/// Writes a report in either form.
pub(super) fn tell(event: Event) {
    if let Some(kept) = lock(&KEPT).as_mut() {
        return kept.push(event);
    }
    let Some(mut file) = file() else { return log::line(&event.text()) };
    if let Err(error) = file.write_all(
        format!(
            "{}
",
            event.line()
        )
        .as_bytes(),
    ) {
        log::line(&format!("findings cannot be written: {error}"));
        log::line(&event.text());
    }
}
