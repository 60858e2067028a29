//! The way from the interpreter into native code and back.

use super::frame::{CHANGED, OUTWARD, PROGRESS, READ, VALID};
use super::functions::{Access, Entry};
use super::{Cache, Compiled, Native, Variant};
use crate::machine::{LANES, LanesOf, Machine};
use crate::memory::RegionKind;

/// The largest distance of addresses that native code takes.
const NEAR: u64 = i32::MAX as u64;

impl<'a> Machine<'a> {
    /// The native code for the path that runs, if there is some.
    pub(crate) fn native_code(&self, function: u32) -> Option<&'a Compiled> {
        let launch = self.launch;
        let options = &launch.options;
        if options.native == Native::Off {
            return None;
        }
        let variant = Variant {
            full: self.active == u32::MAX,
            memory: !self.checks_accesses() && !options.counters && self.cluster.is_alone(),
        };
        launch.code.native.get(&launch.code, function, variant, options.native)
    }

    /// Runs native code from an instruction on, with fuel for the rest of its segment: the next instruction, which is the
    /// interpreter's. Adds the lane instructions that were executed to `lanes`; `count`: those of the path.
    pub(crate) fn run_native(
        &mut self,
        native: &Compiled,
        entry: Entry,
        pc: u32,
        count: u64,
        lanes: &mut u64,
    ) -> u32 {
        let (before, warp) = (self.fuel, &self.warp);
        let reconverges_at = warp.reconverges_at();
        let Some(state) = &mut self.worker.native else { return pc };
        let entered = &mut state.entered[pc as usize];
        entered.warps = entered.warps.wrapping_add(1);
        entered.lanes = entered.lanes.wrapping_add(count);
        let frame = &mut *state.frame;
        (frame.w32, frame.w64, frame.pred) = self.registers.pointers();
        frame.entered = state.entered.as_mut_ptr();
        frame.caches = state.caches.as_ptr();
        frame.shared = self.cluster.shared.as_mut_ptr().cast();
        (frame.lanes, frame.active, frame.reconverges_at) = (count, self.active, reconverges_at);
        (frame.fuel, frame.flags, frame.corrected) = (before - entry.need, 0, 0);
        let next = native.enter(entry, frame);
        self.fuel = frame.fuel;
        let (used, flags, corrected) = (before - frame.fuel, frame.flags, frame.corrected);
        let entered = &mut state.entered[next as usize];
        entered.warps = entered.warps.wrapping_sub(1);
        entered.lanes = entered.lanes.wrapping_sub(count);
        self.block.clock += u64::from(used);
        *lanes = lanes.wrapping_add(count * u64::from(used)).wrapping_add(corrected as u64);
        self.worker.read |= flags & READ != 0;
        self.worker.outward |= flags & OUTWARD != 0;
        self.worker.progress |= flags & PROGRESS != 0;
        if flags & CHANGED != 0 {
            self.warp.polls = 0;
        }
        next
    }

    /// The interpreter is about to execute an instruction for the lanes of the mask: where native code may do it next time,
    /// if it is an access.
    pub(crate) fn fill_cache(&mut self, native: &Compiled, pc: u32) {
        let launch = self.launch;
        let Some(Access { op: at, write }) = native.access(pc) else { return };
        let op = &launch.code.memory[at as usize];
        let first = LanesOf(self.mask).next().unwrap_or(0) % LANES;
        let address = self.addresses(&op.address)[first];
        let cache = self.plain_region(op.spec(write), address).map(|(region, host)| {
            let (start, last) = (region.start, region.bytes - u64::from(op.spec(write).bytes));
            let outward = if write { READ | OUTWARD | PROGRESS } else { READ };
            let (flags, from_shared) = match region.kind {
                RegionKind::Global(_) => (outward, 0),
                RegionKind::Shared => (outward & PROGRESS, u64::MAX),
                RegionKind::Local | RegionKind::Param => (0, 0),
            };
            // Differences of narrow addresses are right if these are low, too.
            let is_near = last <= NEAR && (op.address.wide || start <= NEAR);
            let start = start.wrapping_sub(op.address.offset as u64);
            let flags = if is_near { flags | VALID } else { 0 };
            Cache { start, last, host, from_shared, flags: flags.into() }
        });
        if let (Some(state), Some(cache)) = (&mut self.worker.native, cache) {
            state.caches[at as usize] = cache;
        }
    }
}

impl Compiled {
    /// Enters the code: the next instruction.
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "entering code that was compiled here")]
    fn enter(&self, entry: Entry, frame: &mut super::frame::Frame) -> u32 {
        type Code = unsafe extern "sysv64" fn(*mut super::frame::Frame, *const u8) -> u32;
        let start = self.page.start();
        // SAFETY: the page holds a function of this type, which was compiled for features that the processor has. The
        // entry is one of its instructions. The rows that the code reads and writes are those of the function's frame,
        // for which there is room, as for handlers; `entered` has an element for each instruction, `caches` for each
        // access; memory is accessed where a cache says that the launch has it, which keeps it.
        unsafe {
            let code: Code = std::mem::transmute(start);
            code(frame, start.add(entry.at as usize))
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn enter(&self, _: Entry, _: &mut super::frame::Frame) -> u32 {
        unreachable!("nothing is compiled for this processor")
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::Native;
    use crate::{Arg, Device, DeviceConfig, LaunchConfig, Options};
    use std::arch::asm;
    use std::io::{self, Write};
    use warpwright_ptx::{parse, verify};

    /// Sets MXCSR of this thread, which threads that it starts inherit; returns the last one.
    #[expect(unsafe_code, reason = "a host that computes otherwise")]
    fn set_mxcsr(value: u32) -> u32 {
        let mut old = 0u32;
        // SAFETY: the words are there. The test computes nothing with numbers until it has set back what was there.
        unsafe { asm!("stmxcsr [{}]", "ldmxcsr [{}]", in(reg) &raw mut old, in(reg) &raw const value) };
        old
    }

    /// The bits of sums, products and conversions of each of the numbers, where the host has this MXCSR, and what it has
    /// then.
    fn results(mxcsr: u32, native: Native) -> (Vec<u32>, u32) {
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
        let old = set_mxcsr(mxcsr);
        let device = Device::new(config).expect("a device");
        let module = device.load(&module, &info).expect("it is loaded");
        let out = device.alloc_zeros::<u32>(32 * forms.len()).expect("memory");
        let launch =
            device.launch(&module, "k", &LaunchConfig::new(1, 32), &[Arg::buffer(&out)], &Options::default());
        let report = launch.expect("it is launched").wait();
        let left = set_mxcsr(old);
        assert!(report.is_clean(), "{report:?}");
        (out.read(), left)
    }

    /// Whatever the host has told its processor, which it has again afterwards.
    #[test]
    fn numbers_do_not_depend_on_the_state_of_the_host_thread() {
        const DEFAULT: u32 = 0x1f80;
        const FLAGS: u32 = 0x3f;
        let (expected, _) = results(DEFAULT, Native::Off);
        if let Some(why) = Native::unavailable() {
            // What a test prints is not shown if it passes, but what it writes is.
            return writeln!(io::stderr(), "not tested: {why}").expect("stderr is there");
        }
        for (what, mxcsr) in [
            ("the default", DEFAULT),
            ("flags that are set", DEFAULT | FLAGS),
            ("results are flushed", DEFAULT | 1 << 15),
            ("operands are flushed", DEFAULT | 1 << 6),
            ("rounded down", DEFAULT | 1 << 13),
            ("rounded up", DEFAULT | 2 << 13),
            ("rounded towards zero", DEFAULT | 3 << 13),
            ("inexact results trap", DEFAULT & !(1 << 12)),
        ] {
            let (bits, left) = results(mxcsr, Native::Always);
            for (at, (expected, bits)) in expected.iter().zip(&bits).enumerate() {
                assert_eq!(expected, bits, "{what}: form {}, lane {}", at / 32, at % 32);
            }
            assert_eq!(left & !FLAGS, mxcsr & !FLAGS, "{what}");
        }
    }
}
