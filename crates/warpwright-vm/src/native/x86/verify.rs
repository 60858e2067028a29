//! What must be so of what was compiled. Builds with assertions look, here and in the code.

use super::held::place;
use super::{Compiler, LONGEST, Result, Vectors};
use crate::native::Operation;
use crate::native::functions::Entry;
use iced_x86::{Decoder, DecoderOptions, OpKind};

impl<V: Vectors> Compiler<'_, V> {
    /// Panics where the compiler has made a mistake.
    pub(super) fn verify(&self, bytes: &[u8], entries: &[Entry]) {
        self.verify_segments();
        let mut starts = vec![false; bytes.len()];
        let mut targets = Vec::new();
        for instruction in Decoder::new(64, bytes, DecoderOptions::NONE) {
            assert!(!instruction.is_invalid(), "there are bytes that are no instruction");
            starts[instruction.ip() as usize] = true;
            // A label that is bound nowhere would be a place as well.
            if instruction.op0_kind() == OpKind::NearBranch64 {
                targets.push(instruction.near_branch64());
            }
        }
        let is_start = |place: u64| starts.get(place as usize).is_some_and(|is_start| *is_start);
        assert!(targets.into_iter().all(is_start), "a jump leads to no instruction");
        for (index, entry) in entries.iter().enumerate() {
            if let Some(access) = entry.access {
                assert!((access.op as usize) < self.code.memory.len(), "{index}: an access without a cache");
            }
            if entry.at != Entry::NONE.at {
                assert!(is_start(entry.at.into()), "{index} is entered at no instruction");
                assert_eq!(entry.need, self.needs[index], "{index} is entered with other fuel");
            }
            let begins = self.begins[index].is_some();
            assert!(!begins || entry.at != Entry::NONE.at, "{index} begins a segment and is not entered");
        }
    }

    /// The fuel of an instruction is how many there are to the end of its segment; a segment is as long as it may be, and
    /// begins where control can come from elsewhere.
    fn verify_segments(&self) {
        let known = |index: usize| self.operations.get(index).copied().flatten();
        let begins = |index: usize| self.begins.get(index).is_some_and(Option::is_some);
        let mut need = 0;
        for index in (0..self.operations.len()).rev() {
            let ends =
                known(index) == Some(Operation::Branch) || known(index + 1).is_none() || begins(index + 1);
            need = if ends { 1 } else { need + 1 };
            match known(index) {
                None => assert!(self.needs[index] == 0 && !begins(index), "{index} is not compiled"),
                Some(_) => assert_eq!(self.needs[index], need, "fuel of {index}"),
            }
            assert!(need as usize <= LONGEST, "the segment of {index} is too long");
            let is_first = index.checked_sub(1).is_none_or(|before| known(before).is_none());
            assert!(!is_first || known(index).is_none() || begins(index), "{index} is entered by nobody");
            if known(index) == Some(Operation::Branch) {
                let target = self.inst(index).x.wrapping_sub(self.first) as usize;
                assert!(known(target).is_none() || begins(target), "{target} is branched to");
                assert!(known(index + 1).is_none() || begins(index + 1), "{} is behind a branch", index + 1);
            }
        }
    }

    /// The process ends where a register does not hold the strip that it should.
    pub(super) fn verify_held(&mut self) -> Result<()> {
        let (held, unsaved): (Vec<_>, _) =
            (self.held.all().collect(), self.held.unsaved().collect::<Vec<_>>());
        for (number, &(at, strip)) in held.iter().enumerate() {
            assert!(held[..number].iter().all(|(_, other)| *other != strip), "two registers hold a strip");
            if unsaved.contains(&(at, strip)) {
                continue;
            }
            let mut is_held = self.a.create_label();
            V::compare(&mut self.a, V::HOLD[at], place::<V>(strip))?;
            self.a.jc(is_held)?;
            self.a.ud2()?;
            self.a.set_label(&mut is_held)?;
            self.a.zero_bytes()?;
        }
        Ok(())
    }
}
