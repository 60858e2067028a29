//! How the library is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Its threads run as long as the process does: a client that closes the library does not unload it.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
