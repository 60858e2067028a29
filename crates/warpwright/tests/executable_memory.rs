//! Native code where a process may not have memory that it writes and then executes: kernels are interpreted, and the
//! program says so if native code was asked for.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::npy::{self, f32s, to_f32s};
use common::{Folder, json, libcuda, status};
use nix::libc::{self, c_ulong, sock_filter, sock_fprog};
use serde_json::Value;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use warpwright_vm::Native;

/// Who refuses it.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    Nobody,
    /// A filter of system calls, with the error that it gives.
    Filter(i32),
    /// The kernel, for memory that was not executable from the beginning. It has that since Linux 6.3.
    Mdwe,
}

/// Takes executable memory from this process and what it becomes, but for files that are mapped so.
fn refuse(refusal: Refusal) -> io::Result<()> {
    let succeeds = |status: i32| if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    let errno = match refusal {
        Refusal::Nobody => return Ok(()),
        Refusal::Mdwe => {
            let (refuse_gain, none): (c_ulong, c_ulong) = (libc::PR_MDWE_REFUSE_EXEC_GAIN.into(), 0);
            // SAFETY: the call takes numbers alone.
            return succeeds(unsafe { libc::prctl(libc::PR_SET_MDWE, refuse_gain, none, none, none) });
        }
        Refusal::Filter(errno) => errno as u32,
    };
    let load = |at| (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at, 0, 0);
    // The lower half of an argument; the number is at 0.
    let argument = |number: u32| load(16 + 8 * number);
    let unless_equal =
        |value: i64, skipped| (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value as u32, 0, skipped);
    let unless_set =
        |bit: i32, skipped| (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, bit as u32, 0, skipped);
    let answer = |answer| (libc::BPF_RET | libc::BPF_K, answer, 0, 0);
    let filter = [
        load(0),
        unless_equal(libc::SYS_mprotect, 3),
        argument(2),
        unless_set(libc::PROT_EXEC, 7),
        answer(libc::SECCOMP_RET_ERRNO | errno),
        unless_equal(libc::SYS_mmap, 5),
        argument(2),
        unless_set(libc::PROT_EXEC, 3),
        argument(3),
        unless_set(libc::MAP_ANONYMOUS, 1),
        answer(libc::SECCOMP_RET_ERRNO | errno),
        answer(libc::SECCOMP_RET_ALLOW),
    ];
    let mut filter = filter.map(|(code, k, jt, jf)| sock_filter { code: code as u16, jt, jf, k });
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    let (one, none): (c_ulong, c_ulong) = (1, 0);
    // SAFETY: the calls take numbers, and a program that lives until they have returned.
    unsafe {
        succeeds(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, none, none, none))?;
        succeeds(libc::prctl(
            libc::PR_SET_SECCOMP,
            c_ulong::from(libc::SECCOMP_MODE_FILTER),
            &raw const program,
        ))
    }
}

/// The program, run under a refusal.
fn run(refusal: Refusal, arguments: &[&str]) -> io::Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    command.args(arguments).env("WARPWRIGHT_TUNING", "off").stdin(Stdio::null());
    // SAFETY: what runs between `fork` and `exec` makes system calls and allocates nothing.
    unsafe { command.pre_exec(move || refuse(refusal)) };
    command.output()
}

/// `warpwright run` of y = 2·x + y under a refusal, behind other words of the command line: the array, what was
/// counted, and what the program says besides.
fn axpy(
    name: &str,
    refusal: Refusal,
    before: &[&str],
    options: &[&str],
) -> io::Result<(Vec<f32>, Value, String)> {
    let folder = Folder::new(&format!("executable_memory_{name}"));
    let array = |file: &str, first: f32| {
        let numbers: Vec<f32> = (0..64).map(|at| first + at as f32).collect();
        let path = folder.path().join(file);
        std::fs::write(&path, npy::file("<f4", false, "(64,)", &f32s(&numbers)))
            .expect("the file is written");
        path.to_str().expect("UTF-8").to_string()
    };
    let (x, y) = (array("x.npy", 0.5), array("y.npy", 100.0));
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/axpy.ptx");
    let arguments = ["run", kernel.to_str().expect("UTF-8"), "--grid", "2", "--block", "32", "--json"];
    let values = [&format!("in:{x}"), &format!("inout:{y}"), "f32:2", "u32:64"];
    let output = run(refusal, &[before, &arguments, options, &values].concat())?;
    let said = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    assert_eq!(status(&output), 0, "{said}");
    Ok((to_f32s(&npy::read(&y).1), json(&output)["counters"]["instructions"].clone(), said))
}

/// What the program says where native code was asked for.
fn sentence(refusal: Refusal) -> String {
    // This process may have executable memory: what it lacks is the processor's.
    let why = match (Native::unavailable(), refusal) {
        (Some(why), _) => why,
        (None, Refusal::Nobody) => return String::new(),
        (None, _) => "this process may not have executable memory",
    };
    format!("warpwright: kernels are interpreted: {why}\n")
}

#[test]
fn kernels_are_interpreted_where_memory_may_not_be_executed() {
    let expected: Vec<f32> = (0..64).map(|at| 2.0 * (0.5 + at as f32) + 100.0 + at as f32).collect();
    let interpreted = axpy("interpreted", Refusal::Nobody, &[], &["--native", "off"]).expect("it runs");
    assert_eq!((&interpreted.0, interpreted.2.as_str()), (&expected, ""));
    let refusals =
        [Refusal::Nobody, Refusal::Filter(libc::EPERM), Refusal::Filter(libc::EACCES), Refusal::Mdwe];
    for refusal in refusals {
        for (name, options, said) in [
            ("always", &["--native", "always"][..], sentence(refusal)),
            ("auto", &["--native", "auto"], sentence(refusal)),
            ("off", &["--native", "off"], String::new()),
            ("unasked", &[], String::new()),
        ] {
            match axpy(&format!("{refusal:?}_{name}"), refusal, &[], options) {
                Ok((array, counted, stderr)) => {
                    assert_eq!((&array, stderr), (&expected, said), "{refusal:?}, {name}");
                    assert_eq!(counted, interpreted.1, "{refusal:?}, {name}");
                }
                // What a test prints is not shown if it passes, but what it writes is.
                Err(error)
                    if matches!(refusal, Refusal::Mdwe) && error.raw_os_error() == Some(libc::EINVAL) =>
                {
                    writeln!(io::stderr(), "not tested: this Linux has no PR_SET_MDWE")
                        .expect("stderr is there");
                }
                Err(error) => panic!("{refusal:?}: {error}"),
            }
        }
    }
}

/// The driver that programs are given says it too, once for all of their kernels.
#[test]
fn a_program_under_exec_is_told() {
    let library = libcuda();
    let exec = ["exec", "--native", "always", "--library", library.to_str().expect("UTF-8"), "--"];
    let program = [&exec[..], &[env!("CARGO_BIN_EXE_warpwright")]].concat();
    for refusal in [Refusal::Nobody, Refusal::Filter(libc::EPERM)] {
        let name = format!("exec_{refusal:?}");
        let (array, _, said) = axpy(&name, refusal, &program, &["--device", "cuda:0"]).expect("it runs");
        assert_eq!((array[63], said), (290.0, sentence(refusal)), "{refusal:?}");
    }
}
