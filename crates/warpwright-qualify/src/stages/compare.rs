//! The device against the virtual GPU, bit for bit, launch by launch of the correctness cases.
//!
//! Where PTX or the model of the tensor cores defines every bit of a kernel's results, a difference is a mistake of one of
//! the two. Where it does not (approximated functions, products and sums that a compiler may contract, floats that are
//! added atomically) the differing words are counted.

use super::cases;
use super::{Item, Outcome};
use crate::event::{Compared, Finding};
use std::sync::{Mutex, OnceLock, PoisonError};
use warpwright_ptx::ir::Module;
use warpwright_ptx::print;
use warpwright_testing::{Comparison, compare_launches};

/// What the launches of the item under way came to.
fn results() -> &'static Mutex<Vec<Compared>> {
    static RESULTS: OnceLock<Mutex<Vec<Compared>>> = OnceLock::new();
    RESULTS.get_or_init(Mutex::default)
}

pub(super) fn items(quick: bool) -> Vec<Item> {
    compare_launches(|comparison| {
        results().lock().unwrap_or_else(PoisonError::into_inner).push(compared(comparison));
    });
    let compare = |item: Item| Item {
        name: item.name,
        run: Box::new(move |device, found| {
            let outcome = (item.run)(device, &mut |_| ());
            let all = std::mem::take(&mut *results().lock().unwrap_or_else(PoisonError::into_inner));
            let wrong = wrong(&all);
            all.into_iter().for_each(|compared| found(Finding::Compared(compared)));
            outcome.and(wrong)
        }),
    };
    cases::items(quick, cases::Part::All).into_iter().map(compare).collect()
}

/// The first launch that differs where it must not.
fn wrong(all: &[Compared]) -> Outcome {
    let differs = |compared: &&Compared| compared.defined && compared.differ > 0;
    all.iter().find(differs).map_or(Ok(()), |Compared { kernel, buffer, words, differ, .. }| {
        Err(format!("{kernel}: {differ} of {words} words of `{buffer}` differ from the virtual GPU's").into())
    })
}

/// The buffer with the most differing words.
fn compared(comparison: &Comparison<'_>) -> Compared {
    let differ = |here: &[u8], there: &[u8]| {
        let (here, there) = (here.chunks(4), there.chunks(4));
        here.zip(there).filter(|(here, there)| here != there).count() as u64
    };
    let buffers = comparison.buffers.iter().map(|(name, here, there)| (differ(here, there), *name, here.len()));
    let (differ, buffer, bytes) = buffers.max_by_key(|(differ, ..)| *differ).unwrap_or((0, "", 0));
    Compared {
        kernel: comparison.launch.entry.clone(),
        buffer: buffer.into(),
        words: bytes.div_ceil(4) as u64,
        differ,
        defined: is_defined(&comparison.launch.module),
    }
}

/// Whether every bit of the results is defined: by the operations, and by the order in which threads do them.
fn is_defined(module: &Module) -> bool {
    print(module).lines().all(has_one_result)
}

/// Whether the instruction of a line, if it has one, has the same result on every device, whatever the other threads do.
fn has_one_result(text: &str) -> bool {
    // Behind the guard.
    let opcode = text.split_whitespace().find(|word| !word.starts_with('@')).unwrap_or_default();
    let words: Vec<_> = opcode.trim_end_matches(';').split('.').collect();
    let has = |word: &str| words.contains(&word);
    let is_float = ["f16", "f16x2", "bf16", "bf16x2", "f32", "f64"].iter().any(|word| has(word));
    let is_rounded = ["rn", "rz", "rm", "rp"].iter().any(|word| has(word));
    match words[0] {
        "atom" | "red" => !is_float || !has("add"),
        // Without a rounding a compiler may make one operation of two.
        "add" | "sub" | "mul" => !is_float || is_rounded,
        _ => !has("approx") && !has("full"),
    }
}

#[cfg(test)]
mod tests {
    use super::has_one_result;

    #[test]
    fn what_has_one_result() {
        for (text, defined) in [
            ("ex2.approx.ftz.f32 %f0, %f1;", false),
            ("div.full.f32 %f0, %f1, %f2;", false),
            ("div.rn.f32 %f0, %f1, %f2;", true),
            ("mul.f32 %f0, %f1, %f2;", false),
            ("mul.rn.f32 %f0, %f1, %f2;", true),
            ("add.s32 %r0, %r1, %r2;", true),
            ("atom.global.add.f32 %f0, [%rd0], %f1;", false),
            ("atom.global.max.f32 %f0, [%rd0], %f1;", true),
            ("red.global.add.u32 [%rd0], %r1;", true),
            ("@!%p1 rcp.approx.ftz.f32 %f0, %f1;", false),
            ("ret;", true),
            ("", true),
        ] {
            assert_eq!(has_one_result(text), defined, "{text}");
        }
    }
}
