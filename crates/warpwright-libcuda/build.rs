//! How the library is linked, and which functions are exported that do nothing.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/api/functions.txt");
    // Its threads run as long as the process does: a client that closes the library does not unload it.
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
    let table = fs::read_to_string("src/api/functions.txt").expect("the table of functions is there");
    let lines = table.lines().filter_map(|line| line.strip_suffix(" unsupported"));
    let names: Vec<&str> = lines.filter_map(|line| Some(line.split_once(' ')?.1)).collect();
    let folder = env::var_os("OUT_DIR").expect("cargo says where to write");
    let code = format!("unsupported! {{ {} }}\n", names.join(" "));
    fs::write(Path::new(&folder).join("unsupported.rs"), code).expect("the folder can be written");
}
