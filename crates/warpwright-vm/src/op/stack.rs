//! The stack: memory that a function allocates while it runs.
//!
//! It follows the variables of the frame, and is freed with the frame. The lanes of a warp share the layout of local
//! memory: each gets as much as the lane that requests most.

use crate::decode::{Decoder, File};
use crate::launch::TrapKind;
use crate::machine::{Base, LANES, LanesOf, MAX_LOCAL, Machine, Step};
use warpwright_ptx::ir::{Dst, Imm, Src, Type};
use warpwright_ptx::op::family::Stack as Op;

/// The alignment of every frame, and of what is allocated without one.
const ALIGNMENT: u32 = 16;

pub(super) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Alloca(op) => {
            let size = d.src64(&op.size, op.ty);
            let align = match &op.align {
                Some(Src::Imm(Imm::Int(align))) => (*align as u32).max(ALIGNMENT),
                _ => ALIGNMENT,
            };
            let result = ResultRow::of(d, op.d);
            d.emit_boxed(move |m, _| allocate(m, size, align, result));
        }
        Op::StackSave(op) => {
            let result = ResultRow::of(d, op.d);
            d.emit_boxed(move |m, _| {
                result.set(m, end(m));
                Step::Next
            });
        }
        Op::StackRestore(op) => {
            let saved = d.src64(&Src::Reg(op.a.0), Type::U64);
            d.emit_boxed(move |m, _| restore(m, saved));
        }
    }
    true
}

/// The register row that receives an address.
#[derive(Clone, Copy)]
struct ResultRow(File, u32);

impl ResultRow {
    fn of(d: &Decoder<'_, '_>, dst: Dst) -> Self {
        let (file, row) = d.register(dst.0);
        ResultRow(file, row)
    }

    fn set(self, m: &mut Machine<'_>, address: u32) {
        match self.0 {
            File::Wide | File::Double => m.registers.set64(self.1, &[address.into(); LANES], m.mask),
            _ => m.registers.set32(self.1, &[address; LANES], m.mask),
        }
    }
}

/// Where the variables of the frame end, in the local memory of the thread.
fn fixed_end(m: &Machine<'_>) -> u32 {
    let frame = m.warp.frame();
    frame.local + m.launch.code.functions[frame.function as usize].local_bytes
}

/// Where what the frame has allocated ends.
fn end(m: &Machine<'_>) -> u32 {
    fixed_end(m) + m.warp.frame().allocated
}

fn set_end(m: &mut Machine<'_>, end: u32) {
    let allocated = end.saturating_sub(fixed_end(m));
    let frame = m.warp.paths[m.warp.current].frame as usize;
    m.warp.frames[frame].allocated = allocated;
}

fn allocate(m: &mut Machine<'_>, size: u32, align: u32, result: ResultRow) -> Step {
    let sizes = m.registers.row64(size);
    let bytes = LanesOf(m.mask).map(|lane| sizes[lane]).max().unwrap_or(0);
    let start = u64::from(end(m)).next_multiple_of(align.into());
    let end = start.saturating_add(bytes);
    if end > MAX_LOCAL {
        let message =
            format!("the stack of a thread is full: {bytes} bytes more than the {start} that it holds");
        return m.trap(TrapKind::StackOverflow, message);
    }
    if !m.reserve(end, Base::default(), Base::default()) {
        return m.out_of_memory();
    }
    set_end(m, end as u32);
    result.set(m, start as u32);
    Step::Next
}

/// Frees everything allocated since the stack pointer was saved, if all lanes of the frame do: others may still use
/// theirs.
fn restore(m: &mut Machine<'_>, saved: u32) -> Step {
    if m.warp.frame().lanes & !m.mask == 0 {
        let pointers = m.registers.row64(saved);
        let saved = LanesOf(m.mask).map(|lane| pointers[lane]).max().unwrap_or(0);
        let saved = saved.min(end(m).into());
        set_end(m, saved as u32);
    }
    Step::Next
}
