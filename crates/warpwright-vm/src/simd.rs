//! Compiles hot loops for several levels of vector instructions, and chooses one at run time.
//!
//! You write a lane operation once, as an expression over one lane. [`lane_op!`] wraps it in a loop over the 32 lanes
//! and compiles that loop for each [`Level`]; the decoder takes the version for the level of this processor. Beside
//! `native/`, this is the crate's only place with `unsafe`.
//!
//! **A [`Level`] is a proof**: only [`Level::detect`] creates one, and code compiled for features that the target may
//! lack is reached only through it. So all fields here are private, and so is [`Features`].
#![allow(unsafe_code, reason = "entering functions that are compiled for features of the processor")]

use crate::machine::{Inst, Machine, Step};
use crate::native::Operation;
use std::sync::OnceLock;

/// A level of vector instructions that this processor has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level(Features);

#[derive(Clone, Copy, Debug)]
enum Features {
    /// What the target always has: SSE2 on x86-64, NEON on AArch64.
    Base,
    /// AVX2, FMA, F16C and BMI: x86-64-v3.
    #[cfg(target_arch = "x86_64")]
    V3,
    /// AVX-512 F, BW, CD, DQ and VL: x86-64-v4.
    #[cfg(target_arch = "x86_64")]
    V4,
}

impl Level {
    /// The best level of this processor, or the one below it that the environment variable `WARPWRIGHT_SIMD` names:
    /// `base`, `avx2` or `avx512`. Another word is said to be none of them on stderr, once, and limits nothing.
    pub(crate) fn detect() -> Level {
        static LEVEL: OnceLock<Level> = OnceLock::new();
        *LEVEL.get_or_init(|| {
            let found = Features::probe();
            match std::env::var("WARPWRIGHT_SIMD") {
                Ok(word) => Level(found.limited(&word).unwrap_or_else(|| {
                    eprintln!("WARPWRIGHT_SIMD={word}: it is `base`, `avx2` or `avx512`");
                    found
                })),
                Err(_) => Level(found),
            }
        })
    }

    /// Whether it has AVX-512.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn has_avx512(self) -> bool {
        matches!(self.0, Features::V4)
    }

    /// Whether it has AVX2, FMA, F16C and BMI.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn has_avx2(self) -> bool {
        matches!(self.0, Features::V3 | Features::V4)
    }

    /// Runs `work` compiled for this level. Functions that it calls are compiled for the level if they are inlined.
    #[inline]
    pub(crate) fn run<R>(self, work: impl FnOnce() -> R) -> R {
        match self.0 {
            Features::Base => work(),
            #[cfg(target_arch = "x86_64")]
            Features::V3 => {
                #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt")]
                fn inner<R>(work: impl FnOnce() -> R) -> R {
                    work()
                }
                // SAFETY: a level comes only from `detect`, which found the features.
                unsafe { inner(work) }
            }
            #[cfg(target_arch = "x86_64")]
            Features::V4 => {
                #[target_feature(
                    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt"
                )]
                fn inner<R>(work: impl FnOnce() -> R) -> R {
                    work()
                }
                // SAFETY: as above.
                unsafe { inner(work) }
            }
        }
    }
}

impl Features {
    #[cfg(target_arch = "x86_64")]
    fn probe() -> Features {
        macro_rules! all { ($($name:tt),*) => { $(std::arch::is_x86_feature_detected!($name))&&* } }
        let v3 = all!("avx2", "fma", "f16c", "bmi1", "bmi2", "lzcnt", "movbe", "popcnt");
        let v4 = v3 && all!("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl");
        match (v3, v4) {
            (_, true) => Features::V4,
            (true, _) => Features::V3,
            _ => Features::Base,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn probe() -> Features {
        Features::Base
    }

    /// These, but none above what a word names; `None`: it names nothing.
    fn limited(self, word: &str) -> Option<Features> {
        match word {
            "base" => Some(Features::Base),
            "avx2" => Some(match self {
                #[cfg(target_arch = "x86_64")]
                Features::V4 => Features::V3,
                other => other,
            }),
            "avx512" => Some(self),
            _ => None,
        }
    }
}

/// Runs `work` with the floating-point mode that Rust's code expects: the nearest value, denormal numbers kept, no traps.
/// A client may have set another one for its thread (`torch.set_flush_denormal`), and the threads that it starts, ours
/// too, begin with it.
pub(crate) fn with_default_floats<R>(work: impl FnOnce() -> R) -> R {
    /// Gives the thread its mode back.
    struct Restore(Mode);
    impl Drop for Restore {
        fn drop(&mut self) {
            set_mode(self.0);
        }
    }
    let _restore = Restore(mode());
    set_mode(DEFAULT_MODE);
    work()
}

#[cfg(target_arch = "x86_64")]
type Mode = u32;
#[cfg(target_arch = "aarch64")]
type Mode = u64;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
type Mode = ();

/// MXCSR with all exceptions masked.
#[cfg(target_arch = "x86_64")]
const DEFAULT_MODE: Mode = 0x1f80;
#[cfg(target_arch = "aarch64")]
const DEFAULT_MODE: Mode = 0;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const DEFAULT_MODE: Mode = ();

/// The floating-point mode of this thread.
fn mode() -> Mode {
    #[cfg(target_arch = "x86_64")]
    {
        let mut mode = 0;
        // SAFETY: the instruction writes these four bytes.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut mode, options(nostack, preserves_flags)) };
        mode
    }
    #[cfg(target_arch = "aarch64")]
    {
        let mode;
        // SAFETY: the instruction reads a register that all processors have.
        unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) mode, options(nostack, preserves_flags)) };
        mode
    }
}

/// Sets it.
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), expect(unused_variables))]
fn set_mode(mode: Mode) {
    // SAFETY: no bits but those of a mode that a thread had, or of the default, and the instruction reads these bytes.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("ldmxcsr [{}]", in(reg) &mode, options(nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("msr fpcr, {}", in(reg) mode, options(nostack, preserves_flags));
    }
}

/// What executes an instruction for the lanes of [`Machine::mask`].
pub(crate) type Handler = fn(&mut Machine<'_>, &Inst) -> Step;

/// One operation, compiled for each level.
#[derive(Clone, Copy)]
pub(crate) struct Lanes {
    /// What it is for the compiler of native code.
    pub(crate) native: Option<Operation>,
    base: Handler,
    #[cfg(target_arch = "x86_64")]
    v3: Handler,
    #[cfg(target_arch = "x86_64")]
    v4: Handler,
}

impl Lanes {
    /// The version for a level.
    pub(crate) fn at(self, level: Level) -> Handler {
        match level.0 {
            Features::Base => self.base,
            #[cfg(target_arch = "x86_64")]
            Features::V3 => self.v3,
            #[cfg(target_arch = "x86_64")]
            Features::V4 => self.v4,
        }
    }
}

/// An operation on all lanes of [`Machine::mask`]. `run` is `#[inline(always)]`, so that it is compiled for
/// each level.
pub(crate) trait LaneOp {
    /// What it is for the compiler of native code.
    const NATIVE: Option<Operation> = None;

    fn run(m: &mut Machine<'_>, i: &Inst) -> Step;
}

/// The handlers of an operation.
pub(crate) fn lanes<O: LaneOp>() -> Lanes {
    Lanes {
        native: O::NATIVE,
        base: O::run,
        #[cfg(target_arch = "x86_64")]
        v3: x86::v3::<O>,
        #[cfg(target_arch = "x86_64")]
        v4: x86::v4::<O>,
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;

    pub(super) fn v3<O: LaneOp>(m: &mut Machine<'_>, i: &Inst) -> Step {
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt")]
        fn inner<O: LaneOp>(m: &mut Machine<'_>, i: &Inst) -> Step {
            O::run(m, i)
        }
        // SAFETY: only `Lanes::at` yields this handler, for a level with these features.
        unsafe { inner::<O>(m, i) }
    }

    pub(super) fn v4<O: LaneOp>(m: &mut Machine<'_>, i: &Inst) -> Step {
        #[target_feature(
            enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt"
        )]
        fn inner<O: LaneOp>(m: &mut Machine<'_>, i: &Inst) -> Step {
            O::run(m, i)
        }
        // SAFETY: only `Lanes::at` yields this handler, for a level with these features.
        unsafe { inner::<O>(m, i) }
    }
}

/// Declares operations of one lane as [`LaneOp`]s: up to three sources, which are by position the rows `a`, `b` and
/// `c` of the instruction, and the destination `d`. The types are [`Cell`](crate::machine::Cell)s. The expression is
/// always inlined into the loop: on its own it would be compiled for one lane, and for no level. Behind `=>` stands what
/// the operation is for the compiler of native code, if it knows it.
///
/// ```text
/// lane_op! {
///     Min<T: Integer>(a: T, b: T) -> T { a.min(b) } => binary(Binary::Min, T::LANE);
///     AddF32[FTZ: bool](a: f32, b: f32) -> f32 { flush::<FTZ>(flush::<FTZ>(a) + flush::<FTZ>(b)) }
/// }
/// d.emit(lanes::<AddF32<true>>(), …)
/// ```
macro_rules! lane_op {
    ($(
        $(#[$doc:meta])* $name:ident $(<$t:ident: $bound:path>)? $([$($g:ident: $gt:ty),* $(,)?])?
            ($($arg:ident: $ty:ty),*) -> $ret:ty $body:block $(=> $native:expr;)?
    )*) => {$(
        $(#[$doc])*
        pub(crate) struct $name $(<$t>(std::marker::PhantomData<$t>))? $(<$(const $g: $gt),*>)?;

        impl $(<$t: $bound + $crate::machine::Cell>)? $(<$(const $g: $gt),*>)? $crate::simd::LaneOp
            for $name $(<$t>)? $(<$($g),*>)?
        {
            $(const NATIVE: Option<$crate::native::Operation> = $native;)?

            #[inline(always)]
            fn run(m: &mut $crate::machine::Machine<'_>, i: &$crate::machine::Inst) -> $crate::machine::Step {
                $crate::simd::map_lanes!(m, i, ($($arg: $ty),*) -> $ret, $body);
                $crate::machine::Step::Next
            }
        }
    )*};
}
pub(crate) use lane_op;

macro_rules! map_lanes {
    ($m:ident, $i:ident, () -> $ret:ty, $body:block) => {
        $crate::machine::map0::<$ret>(
            $m,
            $i,
            #[inline(always)]
            || $body,
        )
    };
    ($m:ident, $i:ident, ($a:ident: $ta:ty) -> $ret:ty, $body:block) => {
        $crate::machine::map1::<$ta, $ret>(
            $m,
            $i,
            #[inline(always)]
            |$a: $ta| $body,
        )
    };
    ($m:ident, $i:ident, ($a:ident: $ta:ty, $b:ident: $tb:ty) -> $ret:ty, $body:block) => {
        $crate::machine::map2::<$ta, $tb, $ret>(
            $m,
            $i,
            #[inline(always)]
            |$a: $ta, $b: $tb| $body,
        )
    };
    ($m:ident, $i:ident, ($a:ident: $ta:ty, $b:ident: $tb:ty, $c:ident: $tc:ty) -> $ret:ty, $body:block) => {
        $crate::machine::map3::<$ta, $tb, $tc, $ret>(
            $m,
            $i,
            #[inline(always)]
            |$a: $ta, $b: $tb, $c: $tc| $body,
        )
    };
}
pub(crate) use map_lanes;

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::{DEFAULT_MODE, mode, set_mode};
    use crate::{Arg, Device, DeviceConfig, LaunchConfig, Native, Options};
    use warpwright_ptx::{parse, verify};

    /// The bits of sums, products and conversions of each of the numbers, where the host thread has this mode, and what it
    /// has then.
    fn results(asked: u32, native: Native) -> (Vec<u32>, u32) {
        let forms = [
            "add.rn.f32 %r2, %r1, 0f33800001;",
            "add.rm.f32 %r2, %r1, 0f33800001;",
            "mul.rn.f32 %r2, %r1, 0f3f400000;",
            "mul.ftz.f32 %r2, %r1, 0f3f400000;",
            "fma.rn.f32 %r2, %r1, 0f3eaaaaab, %r1;",
            "max.f32 %r2, %r1, 0f00000001;",
            "cvt.rn.f32.u32 %r2, %r1;",
            "cvt.rni.s32.f32 %r2, %r1;",
            "cvt.rn.f16.f32 %h1, %r1; cvt.u32.u16 %r2, %h1;",
            "cvt.u16.u32 %h1, %r1; mov.b32 {%h1, %h2}, %r1; cvt.f32.f16 %r2, %h1;",
            "setp.gt.f32 %p1, %r1, 0f00000000; selp.b32 %r2, 1, 0, %p1;",
        ];
        let stored = |(at, form)| format!("{form}\nst.global.b32 [%rd1+{}], %r2;\n", 128 * at);
        let body: String = forms.into_iter().enumerate().map(stored).collect();
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
             .reg .pred %p<2>;\n.reg .b16 %h<3>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<3>;\n\
             ld.param.u64 %rd1, [out];\nmov.u32 %r3, %tid.x;\nmul.wide.u32 %rd2, %r3, 4;\n\
             add.u64 %rd1, %rd1, %rd2;\n// Small numbers, large ones, and halves.\n\
             mul.lo.u32 %r1, %r3, 0x085cdefb;\nand.b32 %r2, %r3, 3;\nsetp.eq.u32 %p1, %r2, 0;\n\
             @%p1 shr.u32 %r1, %r1, 9;\nsetp.eq.u32 %p1, %r2, 1;\n@%p1 cvt.rn.f32.u32 %r1, %r3;\n\
             @%p1 add.f32 %r1, %r1, 0f3f000000;\n{body}ret;\n}}\n"
        );
        let module = parse(&text).expect("it is PTX");
        let info = verify(&module).expect("the verifier accepts it");
        let mut config = DeviceConfig::default();
        (config.workers, config.native) = (1, native);
        let old = mode();
        // Threads that are started have it, too.
        set_mode(asked);
        let device = Device::new(config).expect("a device");
        let module = device.load(&module, &info).expect("it is loaded");
        let out = device.alloc_zeros::<u32>(32 * forms.len()).expect("memory");
        let launch =
            device.launch(&module, "k", &LaunchConfig::new(1, 32), &[Arg::buffer(&out)], &Options::default());
        let report = launch.expect("it is launched").wait();
        let left = mode();
        set_mode(old);
        assert!(report.is_clean(), "{report:?}");
        (out.read(), left)
    }

    /// Whatever the host has told its processor, which it has again afterwards; interpreted and compiled.
    #[test]
    fn numbers_do_not_depend_on_the_state_of_the_host_thread() {
        const FLAGS: u32 = 0x3f;
        let (expected, _) = results(DEFAULT_MODE, Native::Off);
        for (what, mode) in [
            ("the default", DEFAULT_MODE),
            ("flags that are set", DEFAULT_MODE | FLAGS),
            ("results are flushed", DEFAULT_MODE | 1 << 15),
            ("operands are flushed", DEFAULT_MODE | 1 << 6),
            ("rounded down", DEFAULT_MODE | 1 << 13),
            ("rounded up", DEFAULT_MODE | 2 << 13),
            ("rounded towards zero", DEFAULT_MODE | 3 << 13),
            ("inexact results trap", DEFAULT_MODE & !(1 << 12)),
        ] {
            for native in [Native::Off, Native::Always] {
                let (bits, left) = results(mode, native);
                for (at, (expected, bits)) in expected.iter().zip(&bits).enumerate() {
                    assert_eq!(expected, bits, "{what}, {native:?}: form {}, lane {}", at / 32, at % 32);
                }
                assert_eq!(left & !FLAGS, mode & !FLAGS, "{what}, {native:?}");
            }
        }
    }
}
