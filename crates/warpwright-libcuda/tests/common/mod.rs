//! What several tests need: a process with certain devices, kernels, and clients as processes of their own.
#![cfg(target_os = "linux")]
#![allow(dead_code, unused_imports, reason = "each test program takes what it needs")]

mod calls;
mod findings;
mod setter;

pub(crate) use calls::{begin, call, input, ok, out as get, output};

pub(crate) use findings::Findings;
pub(crate) use setter::add_setter;

use std::ffi::CString;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use warpwright_cuda::api::*;
use warpwright_cuda::types::*;

/// Asserts that a call has succeeded.
#[track_caller]
pub(crate) fn ok(status: Status) {
    assert_eq!(status, Status::SUCCESS);
}

/// A context of a device, current in this thread.
pub(crate) fn context(device: CUdevice) -> CUcontext {
    // SAFETY: the place is good for a context.
    get(|context| unsafe { cuCtxCreate_v2(context, 0, device) }).unwrap()
}

/// A kernel of a module from PTX.
pub(crate) fn kernel(ptx: &str, name: &str) -> CUfunction {
    let (ptx, name) = (CString::new(ptx).unwrap(), CString::new(name).unwrap());
    // SAFETY: texts with their ends, and places for handles.
    unsafe {
        let module = get(|module| cuModuleLoadData(module, input(ptx.as_ptr().cast::<u8>()))).unwrap();
        get(|function| cuModuleGetFunction(function, module, input(name.as_ptr()))).unwrap()
    }
}

/// This test program again, as a client of its own that plays a part.
pub(crate) fn client(part: &str, variables: &[(&str, &str)]) -> Ended {
    let mut command = Command::new(std::env::current_exe().unwrap());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WARPWRIGHT_")) {
        command.env_remove(name);
    }
    command.env_remove("CUDA_VISIBLE_DEVICES").args(["--play", part]).envs(variables.iter().copied());
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    Ended::of(child)
}

/// How a client has ended.
pub(crate) struct Ended {
    pub(crate) output: Output,
}

impl Ended {
    /// Waits for a client. One that does not end is a mistake.
    fn of(mut child: Child) -> Ended {
        let until = Instant::now() + Duration::from_secs(120);
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > until {
                child.kill().unwrap();
                panic!("the client hangs: {:?}", child.wait_with_output().unwrap());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ended { output: child.wait_with_output().unwrap() }
    }

    /// Its exit status; `None` after a signal.
    pub(crate) fn status(&self) -> Option<i32> {
        self.output.status.code()
    }

    /// The signal that has ended it.
    pub(crate) fn signal(&self) -> Option<i32> {
        std::os::unix::process::ExitStatusExt::signal(&self.output.status)
    }

    /// Lines that it has written to stderr.
    pub(crate) fn errors(&self) -> Vec<String> {
        String::from_utf8_lossy(&self.output.stderr).lines().map(str::to_owned).collect()
    }

    /// What it has written to stdout.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).trim().to_owned()
    }
}

/// A test program that is its own client: it runs tests, or called with `--play` a part.
pub(crate) fn main(tests: &[(&str, fn())], play: fn(&str) -> i32) -> ! {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, part] = &arguments[..]
        && flag == "--play"
    {
        std::process::exit(play(part));
    }
    let is_wanted = |name: &str| match arguments.iter().find(|argument| !argument.starts_with("--")) {
        Some(filter) => name.contains(filter.as_str()),
        None => true,
    };
    if arguments.iter().any(|argument| argument == "--list") {
        tests.iter().for_each(|(name, _)| println!("{name}: test"));
        std::process::exit(0);
    }
    let mut failed = 0;
    for (name, test) in tests.iter().filter(|(name, _)| is_wanted(name)) {
        let passed = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += i32::from(!passed);
    }
    println!("test result: {}. {failed} failed", if failed == 0 { "ok" } else { "FAILED" });
    std::process::exit(i32::from(failed > 0) * 101);
}
