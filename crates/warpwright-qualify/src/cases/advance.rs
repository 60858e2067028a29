//! Counters that go on, on the virtual GPU with every check on.

use crate::common::ops::{Buffers, run};
use warpwright_dsl::{BuildError, any::AnyKernel};
use warpwright_kernels::Advance;
use warpwright_ptx::ir::Arch;

const NAMES: [&str; 4] = ["counters_0", "counters_1", "counters_2", "counters_3"];

/// Counters of every size, other ones in each buffer.
fn counters(rows: usize, buffer: usize) -> Vec<f64> {
    let at_ends = [0, 1, u32::MAX, u32::MAX - 1, 1 << 31, (1 << 31) - 1].map(f64::from);
    (0..rows)
        .map(|row| at_ends.get((row + buffer) % 9).copied().unwrap_or((row * 77 + buffer) as f64))
        .collect()
}

fn each_counter_goes_on_by_one_and_stays_at_the_end() {
    for (i, rows) in [1, 3, 128, 129, 1000].into_iter().enumerate() {
        for buffers in 1..=4 {
            let given: Buffers = (0..buffers).map(|i| (NAMES[i], counters(rows, i))).collect();
            let advance = Advance::new(buffers as u32);
            let found = run([75, 80, 90][i % 3], &advance, &[("rows", rows as u64)], &given);
            let last = f64::from(u32::MAX);
            for (name, before) in &given {
                let after: Vec<_> = before.iter().map(|counter| (counter + 1.0).min(last)).collect();
                assert_eq!(found[name], after, "{name} of {buffers}, {rows} rows");
            }
        }
    }
}

fn no_buffers_and_too_many_are_refused() {
    for buffers in [0, 5, u32::MAX] {
        let refused = Advance::new(buffers).build(Arch::sm(80)).map(|_| ());
        assert!(matches!(refused, Err(BuildError::Field { field: "buffers", .. })), "{refused:?}");
    }
}

crate::case_list! {
    each_counter_goes_on_by_one_and_stays_at_the_end,
    no_buffers_and_too_many_are_refused,
}
