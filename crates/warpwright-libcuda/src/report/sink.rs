//! The target of reports: stderr as text, or a file as lines of JSON.

use super::log;
use crate::state;
use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;
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

/// Whether there is a file.
pub(super) fn is_file() -> bool {
    file().is_some()
}

/// Writes a report in either form.
pub(super) fn tell(event: &Event) {
    let Some(mut file) = file() else { return log::line(&event.text()) };
    if let Err(error) = file.write_all(format!("{}\n", event.line()).as_bytes()) {
        log::line(&format!("findings cannot be written: {error}"));
        log::line(&event.text());
    }
}
