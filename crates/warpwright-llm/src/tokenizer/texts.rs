//! Many short texts in one allocation, found by number and by content.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Byte strings in one buffer, numbered in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Pieces {
    pub(super) fn with_capacity(count: usize) -> Pieces {
        Pieces { bytes: Vec::with_capacity(count * 8), ends: Vec::with_capacity(count) }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }

    /// Appends what `write` writes.
    pub(super) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }
}

/// Texts with an index: of equal texts the last is found.
#[derive(Debug)]
pub(super) struct Texts {
    pieces: Pieces,
    /// Open addressing, half empty at least; a text's number plus one, or 0.
    slots: Vec<u32>,
    hash: Hash,
}

impl Texts {
    pub(super) fn with_capacity(count: usize) -> Texts {
        let slots = vec![0; (count.max(8) * 2).next_power_of_two()];
        Texts { pieces: Pieces::with_capacity(count), slots, hash: Hash::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    pub(super) fn get(&self, index: u32) -> Option<&str> {
        // Only texts come in.
        self.pieces.get(index as usize).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    pub(super) fn find(&self, text: &str) -> Option<u32> {
        match self.slots[self.slot(text)] {
            0 => None,
            found => Some(found - 1),
        }
    }

    /// Appends a text; its number.
    pub(super) fn push(&mut self, text: &str) -> u32 {
        if (self.len() + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let index = self.len() as u32;
        let slot = self.slot(text);
        self.pieces.push_with(|bytes| bytes.extend_from_slice(text.as_bytes()));
        self.slots[slot] = index + 1;
        index
    }

    /// The number of a text, which is appended if it is new.
    pub(super) fn find_or_push(&mut self, text: &str) -> u32 {
        self.find(text).unwrap_or_else(|| self.push(text))
    }

    /// Where the text is, or would be put.
    fn slot(&self, text: &str) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.hash.bytes(text.as_bytes()) as usize & mask;
        loop {
            match self.slots[slot] {
                0 => return slot,
                taken if self.pieces.get(taken as usize - 1) == Some(text.as_bytes()) => return slot,
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![0; old.len() * 2];
        let mask = self.slots.len() - 1;
        for taken in old.into_iter().filter(|&taken| taken != 0) {
            let bytes = self.pieces.get(taken as usize - 1).unwrap_or_default();
            let mut slot = self.hash.bytes(bytes) as usize & mask;
            while self.slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = taken;
        }
    }
}

/// A fast hash with a secret, so that a file cannot be made to collide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hash {
    secret: u64,
}

impl Hash {
    pub(super) fn new() -> Hash {
        Hash { secret: RandomState::new().hash_one(0u8) | 1 }
    }

    fn mix(self, a: u64, b: u64) -> u64 {
        let product = u128::from(a ^ self.secret) * u128::from(b ^ 0x9e37_79b9_7f4a_7c15);
        product as u64 ^ (product >> 64) as u64
    }

    fn bytes(self, bytes: &[u8]) -> u64 {
        let mut hash = bytes.len() as u64;
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            hash = self.mix(hash, chunk.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        }
        let rest = chunks.remainder().iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        self.mix(hash, rest)
    }
}

impl BuildHasher for Hash {
    type Hasher = NumberHasher;

    fn build_hasher(&self) -> NumberHasher {
        NumberHasher { hash: *self, state: 0 }
    }
}

/// Hashes one number.
pub(super) struct NumberHasher {
    hash: Hash,
    state: u64,
}

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.state = self.hash.mix(self.state, self.hash.bytes(bytes));
    }

    fn write_u64(&mut self, number: u64) {
        self.state = self.hash.mix(number, self.hash.secret.rotate_left(32));
    }

    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_by_number_and_by_what_they_say() {
        let mut texts = Texts::with_capacity(0);
        for i in 0..5000 {
            assert_eq!(texts.push(&format!("text {i}")), i);
        }
        assert_eq!(texts.find("text 4321"), Some(4321));
        assert_eq!(texts.get(17), Some("text 17"));
        assert_eq!(texts.find("text 5000"), None);
        assert_eq!(texts.get(5000), None);
        assert_eq!(texts.find_or_push("text 7"), 7);
        assert_eq!(texts.find_or_push(""), 5000);
        assert_eq!(texts.find(""), Some(5000));
    }

    #[test]
    fn of_equal_texts_the_last_is_found() {
        let mut texts = Texts::with_capacity(2);
        texts.push("same");
        texts.push("same");
        assert_eq!(texts.find("same"), Some(1));
        assert_eq!(texts.get(0), Some("same"));
    }
}
