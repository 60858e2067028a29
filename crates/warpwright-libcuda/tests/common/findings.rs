//! Files of findings.

/// A file of findings, which is gone at the end.
pub(crate) struct Findings(pub(crate) std::path::PathBuf);

impl Findings {
    /// The file of a test.
    pub(crate) fn new(test: &str) -> Findings {
        let name = format!("warpwright-{test}-{}.jsonl", std::process::id());
        Findings(std::env::temp_dir().join(name))
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// Its lines.
    pub(crate) fn read(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(&self.0).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Findings {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
