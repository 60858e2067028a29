//! Native code: what the interpreter does for a run of instructions, compiled for this processor, and bit for bit the
//! same.
//!
//! Every result is stored to its row, where handlers have it, so that **native code can be left before any instruction**. It
//! does what is common, and leaves the rest to the interpreter: an instruction that the
//! compiler does not know, a branch that divides the path, an access that its cache of regions does not answer. Then the
//! loop of [`Machine`](crate::machine::Machine) executes that one instruction by its handler, and enters native code again
//! behind it. So no handler is called from native code, nothing unwinds through it, and whatever is rare has one
//! implementation. It calls small routines: those of the checks say whether an access may go on, the others do what is long and
//! the same for both.
//!
//! ```text
//!   enter.rs       the way from the interpreter into native code and back
//!   operation.rs   what the compiler knows of an instruction; said beside its handler
//!   frame.rs       what native code reads and writes besides registers and memory
//!   functions.rs   the compiled functions of a module, and when they are compiled
//!   product.rs     a product of matrices for AVX-512, which handlers use, too
//!   background.rs  the thread that does so while they are interpreted
//!   x86/           the compiler: segments, rows in registers, what must be so of all that; avx512/ and avx2/: what each
//!                  operation becomes, accesses; routine/: what native code calls
//!   page.rs        memory that holds code
//!   debug/         what people see of it: names for a profiler and a debugger, and text beside the PTX
//! ```
//!
//! **A path runs in native code with all its lanes**, so its mask is a constant there; a version for whole warps has no
//! masks at all. A *segment* is a run of instructions that is entered at its beginning or from the interpreter and left at
//! its end. Its fuel is taken at once, if there is enough for all of it, else the interpreter takes the rest one by one:
//! time slices and budgets end where they always do. Instructions are counted where native code is entered and left
//! ([`State::entered`]): their sums are the counts.
//!
//! **A cache of a region for each access** ([`frame::Cache`]) says where an access may go without asking: between two
//! addresses. It is filled when the interpreter executes the access, and holds for the launch. Whole warps whose
//! lanes are one behind the other load and store by vectors. Where traffic is counted, a routine is called for that. With the
//! race check, native code does those that are only [noted](crate::check::race). Where a cluster has several blocks, or what
//! caches are asked for is counted, accesses are the interpreter's.
//!
//! Numbers are computed by the mode of the host thread, which is that of Rust's code wherever a launch is executed
//! ([`with_default_floats`](crate::simd)): to the nearest, with subnormal ones, and nothing traps.
#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "nothing is compiled for other processors")
)]

mod background;
#[cfg(target_arch = "x86_64")]
mod debug;
mod enter;
mod frame;
mod functions;
mod operation;
#[cfg(target_arch = "x86_64")]
mod page;
#[cfg(target_arch = "x86_64")]
mod product;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "x86_64")]
pub(crate) use debug::add_text;
pub(crate) use frame::{Cache, State};
pub(crate) use functions::{Accesses, Compiled, Functions, Variant};
pub(crate) use operation::{
    Arithmetic, Binary, Double, Lane, Logic, Operation, Relation, binary, compare, directed, double, field,
    half, mul_high, nearest, nearest_double, not, to_integer, unless, wide,
};

use crate::machine::Row32;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// Whether kernels are compiled to code of the host's processor. Results, findings and counts are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Native {
    /// They are interpreted.
    Off,
    /// A function is compiled once it has run for some time, by another thread, which it does not wait for.
    #[default]
    Auto,
    /// A function is compiled before its first instruction.
    Always,
}

impl Native {
    /// What the environment variable `WARPWRIGHT_NATIVE` says: `off`, `auto` or `always`. Something else is said to be
    /// none of them on stderr, once, and is `auto`, as nothing is.
    pub fn from_env() -> Native {
        static NATIVE: OnceLock<Native> = OnceLock::new();
        *NATIVE.get_or_init(|| match std::env::var("WARPWRIGHT_NATIVE") {
            Ok(text) if !text.is_empty() => text.parse().unwrap_or_else(|error| {
                eprintln!("WARPWRIGHT_NATIVE={text}: {error}");
                Native::Auto
            }),
            _ => Native::Auto,
        })
    }

    /// Why kernels are interpreted in this process whatever is asked for, if they are: the processor has no AVX2 (or
    /// `WARPWRIGHT_SIMD=base` leaves it out), or the
    /// process may not have memory that it writes and then executes.
    pub fn unavailable() -> Option<&'static str> {
        static WHY: OnceLock<Option<&str>> = OnceLock::new();
        *WHY.get_or_init(why_unavailable)
    }
}

#[cfg(target_arch = "x86_64")]
fn why_unavailable() -> Option<&'static str> {
    if !crate::simd::Level::detect().has_avx2() {
        return Some("this processor has no AVX2, or WARPWRIGHT_SIMD leaves it out");
    }
    page::Page::new(&[]).is_none().then_some("this process may not have executable memory")
}

#[cfg(not(target_arch = "x86_64"))]
fn why_unavailable() -> Option<&'static str> {
    Some("native code is for x86-64 processors")
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn add_text(_: &mut crate::decode::Code, _: &warpwright_ptx::ir::Module) {}

/// The fragments of the factors and sums of `mma.m16n8k16`.
#[derive(Clone, Copy)]
pub(crate) struct Fragments<'a> {
    pub(crate) a: [&'a Row32; 4],
    pub(crate) b: [&'a Row32; 2],
    pub(crate) c: [&'a Row32; 4],
}

/// The product of fragments of `f16` or `bf16`, with sums in `f32`, by blocks of factors along k and as many bits as `f32`
/// has and some more. Returns `false` where that has to be computed otherwise: the processor has no AVX-512, or a number is
/// infinite, none, or very large or small.
#[cfg(target_arch = "x86_64")]
pub(crate) use product::half_product;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn half_product<const BF16: bool>(
    _: crate::simd::Level,
    _: Fragments<'_>,
    _: (usize, i32),
    _: &mut [Row32; 4],
) -> bool {
    false
}

/// The error for a text that does not say whether kernels are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownNative;

impl fmt::Display for UnknownNative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is `off`, `auto` or `always`")
    }
}

impl std::error::Error for UnknownNative {}

impl FromStr for Native {
    type Err = UnknownNative;

    fn from_str(text: &str) -> Result<Self, UnknownNative> {
        match text {
            "off" => Ok(Native::Off),
            "auto" => Ok(Native::Auto),
            "always" => Ok(Native::Always),
            _ => Err(UnknownNative),
        }
    }
}
