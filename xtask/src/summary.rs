//! The summary of a run: results, times, and the suites that did not run.

use std::fmt;
use std::time::{Duration, Instant};

/// The results of a run of several suites.
pub(crate) struct Summary {
    parts: Vec<(SuiteResult, Took)>,
    not_run: Vec<(String, String)>,
    /// When the next suite began.
    began: Began,
}

/// A moment.
#[derive(Clone, Copy)]
struct Began {
    at: Instant,
    /// Processor time so far.
    processor: Option<Duration>,
}

/// The time that a suite took.
#[derive(Clone, Copy)]
struct Took {
    wall: Duration,
    /// Processor time of this process and its children, if the system reports it.
    processor: Option<Duration>,
}

impl Began {
    fn now() -> Self {
        Began { at: Instant::now(), processor: processor() }
    }

    fn took(self) -> Took {
        let processor = processor().zip(self.processor).map(|(now, then)| now.saturating_sub(then));
        Took { wall: self.at.elapsed(), processor }
    }
}

impl fmt::Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:6.1} s", self.wall.as_secs_f64())?;
        match self.processor {
            Some(processor) => write!(f, ", {:6.1} s of processors", processor.as_secs_f64()),
            None => Ok(()),
        }
    }
}

/// Processor time of this process and its finished children: the 14th to the 17th number of Linux's `/proc/self/stat`,
/// in hundredths of a second. The second field is a name in brackets, which may contain anything.
fn processor() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, after) = stat.rsplit_once(')')?;
    let times = after.split_whitespace().skip(11).take(4);
    let ticks: Vec<u64> = times.map(|ticks| ticks.parse().ok()).collect::<Option<_>>()?;
    (ticks.len() == 4).then(|| Duration::from_millis(ticks.iter().sum::<u64>() * 10))
}

/// The result of one suite. A step without tests only reports its time.
#[derive(Default)]
pub(crate) struct SuiteResult {
    pub(crate) name: String,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// A remark.
    pub(crate) remark: String,
}

impl Summary {
    /// Starts the first suite.
    pub(crate) fn begin() -> Self {
        Summary { parts: Vec::new(), not_run: Vec::new(), began: Began::now() }
    }

    /// Adds the result of a suite, which ran since the last one was added.
    pub(crate) fn add(&mut self, part: SuiteResult) {
        self.parts.push((part, self.began.took()));
        self.began = Began::now();
    }

    /// Adds a suite that could not start.
    pub(crate) fn add_failure(&mut self, name: &str, why: &str) {
        eprintln!("{name}: {why}");
        let remark = why.lines().next().unwrap_or_default().to_string();
        self.add(SuiteResult { name: name.to_string(), passed: 0, failed: 1, remark });
    }

    /// Adds a suite that did not run, and how to make it run.
    pub(crate) fn add_not_run(&mut self, name: &str, how: &str) {
        self.not_run.push((name.to_string(), how.to_string()));
    }

    /// Prints the table, with the time of each suite. The last line counts passes and failures.
    pub(crate) fn finish(&self) -> Result<(), String> {
        let (passed, failed) =
            self.parts.iter().fold((0, 0), |(passed, failed), (p, _)| (passed + p.passed, failed + p.failed));
        let width = self.parts.iter().map(|(part, _)| part.name.len()).max().unwrap_or(0);
        println!("\nsummary");
        for (SuiteResult { name, passed, failed, remark }, took) in &self.parts {
            let mark = if *failed == 0 { "ok  " } else { "FAIL" };
            let remark = if remark.is_empty() { String::new() } else { format!("  ({remark})") };
            println!("  {mark}  {name:width$}  {took}  {passed:6} passed, {failed} failed{remark}");
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
            _ => Err(format!("{failed} failed")),
        }
    }
}
