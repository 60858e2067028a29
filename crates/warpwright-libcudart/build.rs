//! How the library is linked, and which functions are exported that do nothing.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=versions.map");
    println!("cargo::rerun-if-changed=src/api/functions.txt");
    let table = fs::read_to_string("src/api/functions.txt").expect("the table of functions is there");
    let names: Vec<&str> = table.lines().filter_map(|line| line.strip_suffix(" unsupported")).collect();
    let folder = env::var_os("OUT_DIR").expect("cargo says where to write");
    let code = format!("unsupported! {{ {} }}\n", names.join(" "));
    fs::write(Path::new(&folder).join("unsupported.rs"), code).expect("the folder can be written");
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        // Programs keep pointers into it until they end.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
    if links_with_lld() {
        let map = env::current_dir().expect("cargo sets the folder").join("versions.map");
        println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={}", map.display());
    }
}

/// Whether the linker takes a second version script beside the one that rustc gives it: LLD does, which rustc uses
/// unasked for this target from 1.90 on; GNU ld does not. Without the versions programs work the same, and the loader
/// warns that there are none.
fn links_with_lld() -> bool {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let chosen = ["linker", "fuse-ld"].iter().any(|option| flags.contains(option));
    let rustc = env::var_os("RUSTC").expect("cargo names the compiler");
    let version =
        Command::new(rustc).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    let version = String::from_utf8_lossy(&version);
    let minor = version.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
    is("TARGET", "x86_64-unknown-linux-gnu")
        && env::var_os("RUSTC_LINKER").is_none()
        && !chosen
        && minor.is_some_and(|minor| minor >= 90)
}
