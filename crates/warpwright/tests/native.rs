//! Native code as the program has it: what people see of it. Where a process may not have memory that it writes and then
//! executes, kernels are interpreted, and the program says so if native code was asked for.
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
    let kernel = kernel();
    let arguments = ["run", &kernel, "--grid", "2", "--block", "32", "--json"];
    let values = [&format!("in:{x}"), &format!("inout:{y}"), "f32:2", "u32:64"];
    let output = run(refusal, &[before, &arguments, options, &values].concat())?;
    let said = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    assert_eq!(status(&output), 0, "{said}");
    Ok((to_f32s(&npy::read(&y).1), json(&output)["counters"]["instructions"].clone(), said))
}

fn kernel() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/axpy.ptx");
    path.to_str().expect("UTF-8").to_string()
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

/// A variable that says something else is told of, one that is empty is not.
#[test]
fn a_variable_that_cannot_be_understood_is_told_of() {
    for (value, is_told) in [("", false), ("auto", false), ("on", true)] {
        let output = Command::new(env!("CARGO_BIN_EXE_warpwright"))
            .args(["run", &kernel(), "--grid", "1", "--block", "32", "zeros:f32:64", "zeros:f32:64"])
            .args(["f32:2", "u32:64"])
            .env("WARPWRIGHT_NATIVE", value)
            .output()
            .expect("the program starts");
        assert_eq!((status(&output), !output.stderr.is_empty()), (0, is_told), "{value:?}");
    }
}

/// Linux's `perf` names what is at an address by lines of the first one, the length and a name. Texts have each
/// instruction of PTX, and behind it offsets and the processor's instructions.
#[test]
fn native_code_can_be_looked_at() {
    let folder = Folder::new("native_debug");
    let wanted = format!("perf,gdb,dump={}", folder.path().join("texts").display());
    let mut child = Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(["run", &kernel(), "--grid", "1", "--block", "32", "zeros:f32:64", "zeros:f32:64"])
        .args(["f32:2", "u32:64"])
        .envs([("WARPWRIGHT_NATIVE_DEBUG", &*wanted), ("WARPWRIGHT_NATIVE", "always")])
        .env("WARPWRIGHT_TUNING", "off")
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    let path = Path::new("/tmp").join(format!("perf-{}.map", child.id()));
    assert!(child.wait().expect("it ends").success());
    let map = std::fs::read_to_string(&path);
    if Native::unavailable().is_some() {
        assert!(map.is_err(), "nothing is compiled for this processor");
        return;
    }
    let map = map.expect("there is a map");
    std::fs::remove_file(&path).expect("the map is removed");
    let hexadecimal = |word: &str| u64::from_str_radix(word, 16).expect("a number");
    let mut places: Vec<(u64, u64)> = Vec::new();
    for line in map.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        places.push((hexadecimal(words[0]), hexadecimal(words[1])));
        assert_eq!(words[2], "axpy", "{line}");
    }
    // Instructions do not overlap, and there are no gaps in the code of a function.
    places.sort_unstable();
    assert!(places.len() > 10, "{map}");
    assert!(places.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{map}");
    assert!(places.windows(2).filter(|pair| pair[0].0 + pair[0].1 != pair[1].0).count() < 4, "{map}");

    let text = std::fs::read_to_string(folder.path().join("texts/000-axpy.txt")).expect("there is a text");
    let (mut ptx, mut next) = (Vec::new(), 0..1);
    for line in text.lines().skip(1).filter(|line| !line.is_empty()) {
        if let Some((_, statement)) = line.split_once("  ").filter(|_| !line.starts_with(' ')) {
            ptx.push(statement.to_string());
        }
        let offset = line.split_whitespace().next().and_then(|word| u64::from_str_radix(word, 16).ok());
        if let Some(offset) = offset.filter(|_| line.starts_with(' ')) {
            assert!(next.contains(&offset), "{offset:x} is not behind the instruction before: {text}");
            // An instruction of the processor has fifteen bytes at most.
            next = offset + 1..offset + 16;
        }
    }
    // A statement may be several decoded instructions.
    ptx.dedup();
    let source = std::fs::read_to_string(kernel()).expect("it is there");
    let statements = source.lines().filter(|line| line.starts_with("    ") && line.ends_with(';'));
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected: Vec<_> = statements.map(words).filter(|line| !line.starts_with('.')).collect();
    // What only some lanes execute behind a branch may stand there once more, behind all of it.
    let (whole, arms) = ptx.split_at(expected.len().min(ptx.len()));
    assert_eq!(whole, expected, "{text}");
    assert!(arms.iter().all(|statement| expected.contains(statement)), "{text}");
}
