//! Runs tests in their own processes, each with its own environment, driver and exit status.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The environment variable that names the test of the process.
const APART: &str = "WARPWRIGHT_TEST_APART";

/// The line that such a process prints before its test begins.
const BEGUN: &str = "this process is for one test";

/// The time after which a process counts as hung.
const LONGEST: Duration = Duration::from_secs(120);

/// A test that runs in its own process.
///
/// A test creates it with its own name, as `cargo test` prints it. The child process runs the same test again, where
/// [`new`](Self::new) returns `None`: there the test does its work.
pub struct Apart {
    command: Command,
}

/// The outcome of such a process.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Apart {
    /// A process for the test of that name; `None` in the child process itself.
    pub fn new(test: &str) -> Option<Apart> {
        if std::env::var_os(APART).is_some_and(|name| name == test) {
            println!("{BEGUN}");
            return None;
        }
        let program = std::env::current_exe().expect("the path of this program");
        let mut command = Command::new(program);
        command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(APART, test);
        // What this process is told is not meant for that one.
        let told = |name: &str| name.starts_with("WARPWRIGHT_") && name != APART;
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(told)) {
            command.env_remove(name);
        }
        Some(Apart { command })
    }

    /// Sets a variable in its environment.
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Uses the driver of `warpwright-libcuda`, built beside the test, with devices of these architectures.
    pub fn driver(self, devices: &str) -> Self {
        let folder = driver_folder().unwrap_or_else(|error| panic!("the virtual driver: {error}"));
        self.libraries(&folder).env("WARPWRIGHT_DEVICES", devices)
    }

    /// Like [`driver`](Self::driver), with a driver that lacks a function.
    pub fn driver_without(self, function: &str, devices: &str) -> Self {
        let folder = lacking_folder(function).unwrap_or_else(|error| panic!("the virtual driver: {error}"));
        self.libraries(&folder).env("WARPWRIGHT_DEVICES", devices)
    }

    /// Uses a driver that cannot be loaded: every library of its name is an empty file.
    pub fn broken_driver(self) -> Self {
        let folder = beside().join("no-driver");
        fs::create_dir_all(&folder).expect("a folder");
        let names = ["cuda", "cuda64", "cuda64_12", "nvcuda"].map(|name| format!("lib{name}.so"));
        let versions = ["", ".1", ".9", ".10", ".11", ".12"];
        for name in names.iter().flat_map(|name| versions.map(|version| format!("{name}{version}"))) {
            fs::write(folder.join(name), b"").expect("an empty file");
        }
        self.libraries(&folder)
    }

    fn libraries(self, folder: &Path) -> Self {
        let before = std::env::var_os("LD_LIBRARY_PATH");
        let folders = std::iter::once(folder.to_path_buf())
            .chain(before.iter().flat_map(std::env::split_paths).collect::<Vec<_>>());
        let folders = std::env::join_paths(folders).expect("folders without colons");
        self.env("LD_LIBRARY_PATH", folders)
    }

    /// Starts it and captures its output.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(mut self) -> Running {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
        Running(self.command.spawn().expect("a process"))
    }

    /// Runs it until it exits.
    ///
    /// # Panics
    /// If it hangs, or if it has no such test.
    pub fn run(self) -> Ended {
        self.start().end()
    }
}

/// A running process.
pub struct Running(Child);

impl Running {
    /// Kills it, by a signal that it cannot catch.
    ///
    /// # Panics
    /// If that fails.
    pub fn kill(&mut self) {
        self.0.kill().expect("a process that can be killed");
    }

    /// Waits until it exits.
    ///
    /// # Panics
    /// If it hangs, or if it has no such test.
    pub fn end(mut self) -> Ended {
        let start = Instant::now();
        // Read by threads, so that it does not wait for a reader.
        let stdout = self.0.stdout.take().map(reader);
        let stderr = self.0.stderr.take().map(reader);
        let status = loop {
            if let Some(status) = self.0.try_wait().expect("the state of a process") {
                break status;
            }
            if start.elapsed() > LONGEST {
                self.0.kill().expect("a process that can be killed");
                panic!("the process did not end within {LONGEST:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let text = |reader: Option<std::thread::JoinHandle<String>>| {
            reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
        };
        let ended = Ended { status, stdout: text(stdout), stderr: text(stderr) };
        assert!(ended.stdout.lines().any(|line| line.ends_with(BEGUN)), "no test of that name: {ended:?}");
        ended
    }
}

impl Ended {
    /// Asserts that its test passed and its exit status is 0.
    ///
    /// # Panics
    /// If not, with its output.
    #[track_caller]
    pub fn passed(&self) {
        assert!(self.status.success(), "{}\n{}\n{}", self.status, self.stdout, self.stderr);
    }

    /// Asserts its exit status.
    ///
    /// # Panics
    /// If not, with its output.
    #[track_caller]
    pub fn exited(&self, status: i32) {
        assert_eq!(self.status.code(), Some(status), "{}\n{}\n{}", self.status, self.stdout, self.stderr);
    }
}

fn reader(mut pipe: impl io::Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is what there is.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The folder of the running test binary.
fn beside() -> PathBuf {
    let program = std::env::current_exe().expect("the path of this program");
    program.parent().expect("its folder").to_path_buf()
}

/// A private folder that has the library of `warpwright-libcuda`, which Cargo built beside the test, under the name of
/// the driver's.
fn driver_folder() -> io::Result<PathBuf> {
    let library = beside().join("libwarpwright_cuda.so");
    if !library.is_file() {
        let why = format!("{} was not built: the test's package must depend on it", library.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, why));
    }
    let folder = beside().join("virtual-driver");
    fs::create_dir_all(&folder)?;
    // Programs ask for both names. Several tests do this at once: the last one wins, and all are the same.
    for name in ["libcuda.so", "libcuda.so.1"] {
        let new = folder.join(format!("{name}.{}.{:?}", std::process::id(), std::thread::current().id()));
        link(&library, &new)?;
        fs::rename(&new, folder.join(name))?;
    }
    Ok(folder)
}

/// The same, with a library in which a function is renamed.
fn lacking_folder(function: &str) -> io::Result<PathBuf> {
    let mut library = fs::read(driver_folder()?.join("libcuda.so.1"))?;
    let name = [b"\0", function.as_bytes(), b"\0"].concat();
    let places: Vec<usize> = (0..library.len()).filter(|&at| library[at..].starts_with(&name)).collect();
    for at in places {
        // The hash by which loaders look is 33 times that of what comes before, and the byte: with these two it is the
        // same, so that the library itself still finds what it has under the new name.
        let last = at + name.len() - 2;
        library[last - 1] += 1;
        library[last] -= 33;
    }
    let folder = beside().join(format!("driver-without-{function}"));
    fs::create_dir_all(&folder)?;
    let new = folder.join(format!("libcuda.so.1.{}", std::process::id()));
    fs::write(&new, library)?;
    fs::rename(&new, folder.join("libcuda.so.1"))?;
    Ok(folder)
}

#[cfg(unix)]
fn link(library: &Path, name: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(library, name)
}

#[cfg(not(unix))]
fn link(library: &Path, name: &Path) -> io::Result<()> {
    fs::copy(library, name).map(|_| ())
}
