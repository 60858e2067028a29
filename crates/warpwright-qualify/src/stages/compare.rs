//! The device against the virtual GPU, bit for bit, launch by launch of the correctness cases.
//!
//! Where PTX or the model of the tensor cores defines every bit of a kernel's results, a difference is a mistake of one of
//! the two. Where it does not (approximated functions, floats that are added atomically), differing words are counted.

use super::cases;
use super::{Item, Outcome};
use crate::event::{Compared, Difference, Finding};
use std::sync::{Mutex, MutexGuard, PoisonError};
use warpwright_ptx::ir::Module;
use warpwright_ptx::print;
use warpwright_testing::{Comparison, compare_launches};

/// Differences of an item that are listed.
const LISTED: usize = 20;

/// What the launches of the item under way came to.
static UNDER_WAY: Mutex<Compared> =
    Mutex::new(Compared { launches: 0, defined: 0, words: 0, differ: 0, differences: Vec::new() });

fn under_way() -> MutexGuard<'static, Compared> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn items(quick: bool) -> Vec<Item> {
    compare_launches(|comparison| add(&mut under_way(), comparison));
    let compare = |item: Item| Item {
        name: item.name,
        run: Box::new(move |device, found| {
            let outcome = (item.run)(device, &mut |_| ());
            let mut compared = std::mem::take(&mut *under_way());
            compared.differences.sort_by_key(|difference| !difference.defined);
            compared.differences.truncate(LISTED);
            let wrong = wrong(&compared.differences);
            found(Finding::Compared(compared));
            outcome.and(wrong)
        }),
    };
    let part = if quick { cases::Part::DecodePath } else { cases::Part::All };
    cases::items(quick, part).into_iter().map(compare).collect()
}

/// A launch that differs where it must not.
fn wrong(differences: &[Difference]) -> Outcome {
    let first = differences.iter().find(|difference| difference.defined);
    first.map_or(Ok(()), |Difference { kernel, buffer, words, differ, .. }| {
        Err(format!("{kernel}: {differ} of {words} words of `{buffer}` differ from the virtual GPU's").into())
    })
}

fn add(all: &mut Compared, comparison: &Comparison<'_>) {
    let defined = is_defined(&comparison.launch.module);
    all.launches += 1;
    all.defined += u64::from(defined);
    let mut most: Option<Difference> = None;
    for (buffer, here, there) in &comparison.buffers {
        let words = here.len().div_ceil(4) as u64;
        let differ = here.chunks(4).zip(there.chunks(4)).filter(|(here, there)| here != there).count() as u64;
        all.words += words;
        all.differ += differ;
        if differ > most.as_ref().map_or(0, |most| most.differ) {
            let (kernel, buffer) = (comparison.launch.entry.clone(), buffer.to_string());
            most = Some(Difference { kernel, buffer, words, differ, defined });
        }
    }
    all.differences.extend(most);
}

/// Whether every bit of the results is defined: by the operations, and by the order in which threads do them. Sums and
/// products are, since they are [rounded one by one](compare_launches).
fn is_defined(module: &Module) -> bool {
    print(module).lines().all(has_one_result)
}

/// Whether the instruction of a line, if it has one, has the same result on every device, whatever other threads do.
fn has_one_result(line: &str) -> bool {
    // Behind the guard.
    let opcode = line.split_whitespace().find(|word| !word.starts_with('@')).unwrap_or_default();
    let words: Vec<_> = opcode.trim_end_matches(';').split('.').collect();
    let has = |word: &str| words.contains(&word);
    let is_float = ["f16", "f16x2", "bf16", "bf16x2", "f32", "f64"].iter().any(|word| has(word));
    match words[0] {
        "atom" | "red" => !(is_float && has("add")),
        _ => !has("approx") && !has("full"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Compared, add, has_one_result, wrong};
    use warpwright_ptx::ir::Arch;
    use warpwright_test::TestLaunch;
    use warpwright_testing::Comparison;
    use warpwright_vm::LaunchConfig;

    /// A launch that left these bytes on the device and on the virtual GPU.
    fn compared(all: &mut Compared, instruction: &str, buffers: &[(&'static str, [u8; 8], [u8; 8])]) {
        let text = format!(
            ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry f() {{ .reg .f32 %f<3>; {instruction} ret; }}"
        );
        let launch = TestLaunch {
            arch: Arch::sm(80),
            module: warpwright_ptx::parse(&text).expect("PTX"),
            entry: "f".into(),
            config: LaunchConfig::new(1, 32),
            args: Vec::new(),
            outputs: Vec::new(),
        };
        let buffers = buffers.iter().map(|(name, here, there)| (*name, here.to_vec(), there.to_vec()));
        add(all, &Comparison { launch: &launch, buffers: buffers.collect() });
    }

    #[test]
    fn a_difference_is_wrong_where_every_bit_is_defined() {
        let same = ("x", [1; 8], [1; 8]);
        let other = ("y", [1; 8], [1, 1, 1, 1, 1, 1, 1, 2]);
        let mut all = Compared::default();
        compared(&mut all, "add.f32 %f0, %f1, %f2;", &[same]);
        compared(&mut all, "ex2.approx.f32 %f0, %f1;", &[same, other]);
        assert_eq!((all.launches, all.defined, all.words, all.differ), (2, 1, 6, 1));
        assert!(wrong(&all.differences).is_ok());
        compared(&mut all, "add.f32 %f0, %f1, %f2;", &[same, other]);
        let last = all.differences.last().expect("a difference");
        assert_eq!((last.buffer.as_str(), last.words, last.differ, last.defined), ("y", 2, 1, true));
        assert!(wrong(&all.differences).is_err());
    }

    #[test]
    fn what_has_one_result() {
        for (text, defined) in [
            ("ex2.approx.ftz.f32 %f0, %f1;", false),
            ("@!%p1 rcp.approx.ftz.f32 %f0, %f1;", false),
            ("div.full.f32 %f0, %f1, %f2;", false),
            ("div.rn.f32 %f0, %f1, %f2;", true),
            ("atom.global.add.f32 %f0, [%rd0], %f1;", false),
            ("atom.global.max.f32 %f0, [%rd0], %f1;", true),
            ("red.global.add.u32 [%rd0], %r1;", true),
            ("ret;", true),
            ("", true),
        ] {
            assert_eq!(has_one_result(text), defined, "{text}");
        }
    }
}
