//! Counters of a batch that go on by one.

use crate::entry::{Domain, Entry, Field, boxed};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;

/// Adds 1 to each of `rows` counters in each of up to four buffers: the positions, lengths and steps of a batch,
/// once at the end of each step of decoding.
///
/// The buffers, `counters_0` and so on, hold a `u32` for each row. A counter at `u32::MAX` stays there: such
/// positions mark rows that only fill up a batch, and go on doing so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, warpwright_dsl::KeyPart)]
pub struct Advance {
    /// Buffers: up to four.
    pub buffers: u32,
}

const NAMES: [&str; 4] = ["counters_0", "counters_1", "counters_2", "counters_3"];

/// Threads of a block.
const THREADS: u32 = 128;

impl Advance {
    /// So many buffers.
    pub fn new(buffers: u32) -> Self {
        Advance { buffers }
    }

    fn names(&self) -> &'static [&'static str] {
        &NAMES[..NAMES.len().min(self.buffers as usize)]
    }
}

impl AnyKernel for Advance {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn entry(&self) -> String {
        format!("advance_{}", self.buffers)
    }

    fn args(&self) -> Vec<ArgDesc> {
        let counters = self.names().iter().map(|name| ArgDesc::in_out::<u32>(name, Extent::dim("rows")));
        counters.chain([ArgDesc::scalar::<u32>("rows")]).collect()
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(THREADS).grid(Extent::dim("rows").per(THREADS.into()))
    }

    fn check(&self) -> Result<(), BuildError> {
        if !(1..=4).contains(&self.buffers) {
            return Err(BuildError::field("buffers", self.buffers, "from 1 to 4"));
        }
        Ok(())
    }

    fn body(&self, k: K<'_>) {
        let buffers: Vec<_> = self.names().iter().map(|name| k.ptr_mut::<u32>(name)).collect();
        let row = k.global_tid();
        k.when(row.lt(k.scalar::<u32>("rows")), || {
            let counters: Vec<_> = buffers.iter().map(|counters| counters.ld(row)).collect();
            for (buffer, counter) in buffers.iter().zip(counters) {
                buffer.st(row, counter.min(u32::MAX - 1) + 1);
            }
        });
    }
}

pub(crate) const ENTRY: Entry = Entry {
    name: "advance",
    doc: "adds 1 to the counters of each row: positions, lengths, steps",
    fields: &[Field {
        name: "buffers",
        domain: Domain::int(1, 4),
        default: Some("2"),
        doc: "buffers of counters, of which each has one for each row",
    }],
    examples: &["buffers=1", "buffers=3", "buffers=4"],
    make: |config| boxed(Advance::new(config.u32("buffers"))),
};
