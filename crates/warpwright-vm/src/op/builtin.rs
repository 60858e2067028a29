//! Functions of the device runtime: `vprintf`, `__assertfail`, `malloc`, `free`.
//!
//! Signatures are those that compilers declare: `vprintf(format, arguments) → count`,
//! `__assertfail(message, file, line, function, char size)`, `malloc(bytes) → pointer`, `free(pointer)`.

use super::control::{read_argument, row64, set_register, words64};
use super::format::format;
use crate::check::set_local_written;
use crate::decode::{Builtin, Decoder, ParamSlot};
use crate::launch::TrapKind;
use crate::machine::{LANES, LanesOf, Machine, Row64, Step};

/// Longest string that is read.
const MAX_TEXT: u64 = 1 << 16;

/// Emits a call of the runtime.
pub(crate) fn decode(
    d: &mut Decoder<'_, '_>,
    builtin: Builtin,
    arguments: Box<[ParamSlot]>,
    returns: &[Option<ParamSlot>],
) {
    let result = returns.iter().flatten().next().copied();
    d.emit_boxed(move |m, _| {
        arguments.iter().for_each(|&value| m.runtime_takes(value));
        let argument = |m: &Machine<'_>, index: usize| match arguments.get(index) {
            Some(&value) => read(m, value),
            None => [0; LANES],
        };
        let results = match builtin {
            Builtin::Vprintf => print(m, &argument(m, 0), &argument(m, 1)),
            Builtin::AssertFail => {
                let parts = [0, 1, 2, 3].map(|index| argument(m, index));
                return assertion(m, &parts);
            }
            Builtin::Malloc => {
                let bytes = argument(m, 0);
                let given = on_heap(m, |heap, lane| heap.allocate(bytes[lane]).unwrap_or(0));
                LanesOf(m.mask).for_each(|lane| m.given_memory(given[lane], bytes[lane]));
                given
            }
            Builtin::Free => {
                let pointer = argument(m, 0);
                let freed = on_heap(m, |heap, lane| u64::from(heap.release(pointer[lane])));
                if let Some(lane) = LanesOf(m.mask).find(|&lane| freed[lane] == 0 && pointer[lane] != 0) {
                    let message = format!("`free` of {:#x}, which `malloc` has not given", pointer[lane]);
                    return m.trap(TrapKind::BadFree, message);
                }
                freed
            }
        };
        if let Some(result) = result {
            write(m, result, &results);
        }
        Step::Next
    });
}

fn read(m: &Machine<'_>, value: ParamSlot) -> Row64 {
    let value = read_argument(m, value);
    let word = |at| value.word(m, m.warp.frame().local, at).unwrap_or([0; LANES]);
    row64([word(0), word(1)])
}

fn write(m: &mut Machine<'_>, value: ParamSlot, results: &Row64) {
    match value {
        ParamSlot::Memory { offset, .. } => {
            let word = ((m.warp.frame().local + offset) / 4) as usize;
            for half in 0..2 {
                if let Some(row) = m.warp.local.get_mut(word + half) {
                    LanesOf(m.mask).for_each(|lane| row[lane] = (results[lane] >> (32 * half)) as u32);
                }
            }
            if m.launch.options.checks.init {
                set_local_written(&mut m.warp, 4 * word as u32, 8, m.mask, true);
            }
        }
        register => {
            let [low, high] = words64(results);
            set_register(m, register, &[low, high, [0; LANES], [0; LANES]], m.mask);
        }
    }
}

fn on_heap(m: &mut Machine<'_>, mut work: impl FnMut(&crate::memory::Heap, usize) -> u64) -> Row64 {
    let mut results = [0; LANES];
    m.worker.outward = true;
    if let Some(heap) = m.launch.memory.heap() {
        LanesOf(m.mask).for_each(|lane| results[lane] = work(heap, lane));
    }
    results
}

/// The bytes of a string, up to its end.
fn text(m: &Machine<'_>, lane: usize, address: u64) -> Vec<u8> {
    (0..MAX_TEXT)
        .map_while(|at| m.peek_byte(lane, address.wrapping_add(at)).filter(|&byte| byte != 0))
        .collect()
}

fn print(m: &mut Machine<'_>, formats: &Row64, arguments: &Row64) -> Row64 {
    // Formats and strings may be in global memory.
    m.worker.read = true;
    let mut out = Vec::new();
    let mut counts = [0; LANES];
    for lane in LanesOf(m.mask) {
        let pattern = text(m, lane, formats[lane]);
        let base = arguments[lane];
        let mut at = 0u64;
        let mut take = |bytes: u64| {
            at = at.next_multiple_of(bytes);
            m.runtime_reads(lane, base.wrapping_add(at), bytes as u32);
            let value = (0..bytes).fold(0, |value, byte| {
                let found = m.peek_byte(lane, base.wrapping_add(at + byte)).unwrap_or(0);
                value | u64::from(found) << (8 * byte)
            });
            at += bytes;
            value
        };
        counts[lane] = format(&pattern, &mut out, &mut take, &|address| text(m, lane, address));
    }
    m.launch.print(&out);
    counts
}

fn assertion(m: &mut Machine<'_>, [message, file, line, function]: &[Row64; 4]) -> Step {
    let lane = m.mask.trailing_zeros() as usize;
    let part = |row: &Row64| String::from_utf8_lossy(&text(m, lane, row[lane])).into_owned();
    let message = format!(
        "{}:{}: {}: assertion `{}` failed",
        part(file),
        line[lane] as u32,
        part(function),
        part(message)
    );
    m.trap(TrapKind::Assertion, message)
}
