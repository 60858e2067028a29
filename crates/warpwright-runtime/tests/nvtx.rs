//! Ranges reach a tool that a profiler would inject, and nobody else.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;
use warpwright_runtime::nvtx;

/// A tool as profilers have one: it writes what it is told into a file.
const TOOL: &str = r#"
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::Write;

#[repr(C)]
struct Callbacks {
    size: usize,
    module: extern "C" fn(c_uint, *mut *const *mut *const c_void, *mut c_uint) -> c_int,
}

fn tell(text: &str) {
    let path = std::env::var_os("TOLD").unwrap();
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{text}").unwrap();
}

unsafe extern "C" fn push(name: *const c_char) -> c_int {
    tell(&format!("push {}", unsafe { CStr::from_ptr(name) }.to_str().unwrap()));
    0
}

unsafe extern "C" fn pop() -> c_int {
    tell("pop");
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn InitializeInjectionNvtx2(table: extern "C" fn(c_uint) -> *const c_void) -> c_int {
    unsafe {
        let callbacks = &*table(1).cast::<Callbacks>();
        let (mut slots, mut size) = (std::ptr::null(), 0);
        assert_eq!(callbacks.size, size_of::<Callbacks>());
        // Every module that NVTX has, and none beyond.
        for module in 1..7 {
            assert_eq!((callbacks.module)(module, &mut slots, &mut size), 1);
            assert!((1..size).all(|at| !(*slots.add(at as usize)).is_null()));
        }
        assert_eq!((callbacks.module)(0, &mut slots, &mut size), 0);
        assert_eq!((callbacks.module)(7, &mut slots, &mut size), 0);
        assert!(table(2).is_null() && !table(3).is_null());
        (callbacks.module)(1, &mut slots, &mut size);
        assert_eq!(size, 16);
        **slots.add(9) = push as *const c_void;
        **slots.add(11) = pop as *const c_void;
    }
    tell("initialised");
    c_int::from(std::env::var_os("REFUSE").is_none())
}
"#;

/// What a process that begins ranges tells the tool.
fn told(folder: &Path, name: &str, library: &Path, refuse: bool) -> String {
    let told = folder.join(name);
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["ranges_of_a_child", "--exact", "--nocapture"]).env("TOLD", &told);
    child.env("NVTX_INJECTION64_PATH", library);
    if refuse {
        child.env("REFUSE", "1");
    }
    let output = child.output().expect("the child");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(told).unwrap_or_default()
}

/// What the child of the other test does; by itself it has no tool, and tells nobody.
#[test]
fn ranges_of_a_child() {
    let _step = nvtx::range("step 1");
    drop(nvtx::range("attention"));
    drop(nvtx::range("cut\0here"));
}

#[test]
fn ranges_reach_the_tool_that_is_injected() {
    let folder = std::env::temp_dir().join(format!("warpwright-nvtx-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (source, library) = (folder.join("tool.rs"), folder.join("libtool.so"));
    std::fs::write(&source, TOOL).expect("the source");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(compiler)
        .args(["--edition=2024", "--crate-type=cdylib", "-o"])
        .args([&library, &source])
        .output()
        .expect("the compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    let expected = "initialised\npush step 1\npush attention\npop\npush cut\npop\npop\n";
    assert_eq!(told(&folder, "told", &library, false), expected);
    // A tool that does not want to be there, and one that is not there.
    assert_eq!(told(&folder, "refused", &library, true), "initialised\n");
    assert_eq!(told(&folder, "none", &folder.join("no.so"), false), "");
    std::fs::remove_dir_all(&folder).expect("an end");
}
