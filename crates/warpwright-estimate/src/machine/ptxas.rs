//! Running `ptxas` on texts.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A time limit longer than any test needs: `ptxas` hangs on some malformed inputs.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// The oldest architecture that the pinned `ptxas` assembles for.
const OLDEST: &str = "sm_75";

/// `ptxas` and a folder for its files.
pub struct Ptxas {
    program: PathBuf,
    scratch: PathBuf,
    next: AtomicU64,
}

/// The output of `ptxas` for a text.
pub struct Assembled {
    /// The cubin, if one was requested.
    pub cubin: Vec<u8>,
    /// Its messages: resources under `-v`, warnings.
    pub log: String,
}

impl Ptxas {
    /// Runs this program; files are made in a folder of the process below `scratch`, which goes in the end.
    pub fn new(program: &Path, scratch: &Path) -> Result<Self, String> {
        let scratch = scratch.join(std::process::id().to_string());
        std::fs::create_dir_all(&scratch)
            .map_err(|error| format!("cannot make {}: {error}", scratch.display()))?;
        Ok(Ptxas { program: program.to_path_buf(), scratch, next: AtomicU64::new(0) })
    }

    /// Assembles a text for the architecture that it names, or the oldest that is known where it is for
    /// an older one, as a relocatable object where it can be one: text before PTX 3.1, or with functions that return
    /// several values, has no ABI. The error is what `ptxas` says.
    pub fn assemble(&self, text: &str) -> Result<Assembled, String> {
        let arch = target(text).unwrap_or(OLDEST);
        let number = |arch: &str| {
            let digits = arch.chars().filter_map(|c| c.to_digit(10));
            digits.fold(0, |number: u32, digit| number.saturating_mul(10).saturating_add(digit))
        };
        let arch = if number(arch) < number(OLDEST) { OLDEST } else { arch };
        match self.assemble_for(text, arch) {
            Err(log) if log.contains("'Compile only(-c)' requires") => self.assemble_whole(text, arch),
            result => result,
        }
    }

    /// Assembles a text for an architecture, as a relocatable object.
    pub fn assemble_for(&self, text: &str, arch: &str) -> Result<Assembled, String> {
        self.assemble_with(text, arch, &["-c"])
    }

    /// Assembles a text for an architecture, as it is executed: nothing is left to a linker.
    pub fn assemble_whole(&self, text: &str, arch: &str) -> Result<Assembled, String> {
        self.assemble_with(text, arch, &[])
    }

    /// Assembles one kernel of a text as it is executed, with lines of the text for its instructions.
    pub fn assemble_kernel(&self, text: &str, arch: &str, kernel: &str) -> Result<Assembled, String> {
        self.assemble_with(text, arch, &["-lineinfo", "--entry", kernel])
    }

    fn assemble_with(&self, text: &str, arch: &str, options: &[&str]) -> Result<Assembled, String> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let input = self.scratch.join(format!("{number}.ptx"));
        let cubin = self.scratch.join(format!("{number}.cubin"));
        std::fs::write(&input, text).map_err(|error| format!("cannot write {}: {error}", input.display()))?;
        let result = self.run(&input, &cubin, arch, options);
        let assembled = result.map(|log| Assembled { cubin: std::fs::read(&cubin).unwrap_or_default(), log });
        let _ = std::fs::remove_file(&input);
        let _ = std::fs::remove_file(&cubin);
        assembled
    }

    fn run(&self, input: &Path, cubin: &Path, arch: &str, options: &[&str]) -> Result<String, String> {
        let mut child = Command::new(&self.program)
            .args(options)
            .args(["-v", &format!("-arch={arch}"), "-o"])
            .args([cubin, input])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{} cannot be run: {error}", self.program.display()))?;
        let mut pipe = child.stderr.take().ok_or("no pipe for messages")?;
        let reader = std::thread::spawn(move || {
            let mut log = Vec::new();
            let _ = pipe.read_to_end(&mut log);
            String::from_utf8_lossy(&log).into_owned()
        });
        let start = Instant::now();
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if start.elapsed() > TIME_LIMIT => {
                    let _ = child.kill();
                    let _ = child.wait();
                    break None;
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => return Err(format!("ptxas is lost: {error}")),
            }
        };
        let log = reader.join().unwrap_or_default();
        match status {
            Some(status) if status.success() => Ok(log),
            Some(_) => Err(log),
            None => Err(format!("ptxas took longer than {} s", TIME_LIMIT.as_secs())),
        }
    }
}

impl Drop for Ptxas {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

/// The architecture that a text is for.
fn target(text: &str) -> Option<&str> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(".target"))?;
    line.split(|c: char| c == ',' || c.is_whitespace()).find(|word| word.starts_with("sm_"))
}

/// The first error in what `ptxas` said, without the file's name.
pub fn first_error(log: &str) -> String {
    let line = log.lines().find(|line| line.contains("error") || line.contains("fatal"));
    let line = line.or_else(|| log.lines().next()).unwrap_or("no message");
    match line.split_once("; ") {
        Some((_, message)) => message.trim().to_string(),
        None => line.trim().to_string(),
    }
}
