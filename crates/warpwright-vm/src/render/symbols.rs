//! Readable names of symbols.

use std::borrow::Cow;

/// A symbol's name in its source: names of Rust and C++ are decoded, others stay as they are.
///
/// ```
/// use warpwright_vm::render::symbol;
///
/// assert_eq!(symbol("_Z4axpyPKfPffi"), "axpy(float const*, float*, float, int)");
/// assert_eq!(symbol("_RNvCs1234_5mylib4axpy"), "mylib::axpy");
/// assert_eq!(symbol("_ZN5mylib4axpy17h0123456789abcdefE"), "mylib::axpy");
/// assert_eq!(symbol("axpy"), "axpy");
/// ```
pub fn symbol(name: &str) -> Cow<'_, str> {
    if !name.starts_with("_Z") && !name.starts_with("_R") {
        return name.into();
    }
    // The older encoding of Rust is one of C++ with a hash: what has that is Rust.
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}").into();
    }
    let of_cpp = cpp_demangle::Symbol::new(name).ok().and_then(|symbol| symbol.demangle().ok());
    of_cpp.map_or(name.into(), Cow::from)
}
