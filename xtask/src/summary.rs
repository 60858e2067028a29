//! What ran, what passed, and what did not run.

use crate::Failure;

/// The outcome of a run of several parts.
#[derive(Default)]
pub(crate) struct Summary {
    parts: Vec<Part>,
    not_run: Vec<(String, String)>,
}

/// The outcome of one part.
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// A figure worth a word.
    pub(crate) remark: String,
}

impl Summary {
    /// Adds what ran.
    pub(crate) fn add(&mut self, part: Part) {
        self.parts.push(part);
    }

    /// Adds a part that could not even begin.
    pub(crate) fn add_failure(&mut self, name: &str, why: &str) {
        eprintln!("{name}: {why}");
        let remark = why.lines().next().unwrap_or_default().to_string();
        self.parts.push(Part { name: name.to_string(), passed: 0, failed: 1, remark });
    }

    /// Adds what did not run, and how to make it run.
    pub(crate) fn add_not_run(&mut self, name: &str, how: &str) {
        self.not_run.push((name.to_string(), how.to_string()));
    }

    /// Prints the table. The last line says how many passed and failed.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        let (passed, failed) =
            self.parts.iter().fold((0, 0), |(passed, failed), p| (passed + p.passed, failed + p.failed));
        let width = self.parts.iter().map(|part| part.name.len()).max().unwrap_or(0);
        println!("\nsummary");
        for Part { name, passed, failed, remark } in &self.parts {
            let mark = if *failed == 0 { "ok  " } else { "FAIL" };
            let remark = if remark.is_empty() { String::new() } else { format!("  ({remark})") };
            println!("  {mark}  {name:width$}  {passed:6} passed, {failed} failed{remark}");
        }
        for (name, how) in &self.not_run {
            println!("  not run: {name}\n           {how}");
        }
        let left = match self.not_run.len() {
            0 => String::new(),
            1 => "; 1 part not run".to_string(),
            n => format!("; {n} parts not run"),
        };
        println!("{passed} passed, {failed} failed{left}");
        match failed {
            0 => Ok(()),
            _ => Err(Failure::Failed(format!("{failed} failed"))),
        }
    }
}
