//! Look-up tables of a few entries, in registers.

use super::reg::Reg;

impl<'k> Reg<'k, u32> {
    /// Looks up each nibble of the word in a table of 16 bytes: the first result is for the four low nibbles of the
    /// bytes, the second for the four high ones, each in its nibble's byte. The eight look-ups take fourteen
    /// operations.
    ///
    /// Byte `i` of the first result is `table[byte i & 15]`, that of the second `table[byte i >> 4]`.
    #[track_caller]
    pub fn look_up(self, table: [u8; 16]) -> [Self; 2] {
        let k = self.kernel();
        let word = |i: usize| u32::from_le_bytes([table[i], table[i + 1], table[i + 2], table[i + 3]]);
        // A permutation takes three bits of each nibble to choose among eight bytes. The fourth chooses the half.
        let within = self & 0x7777_7777;
        let halves = ((self >> 1) & 0x4444_4444) | 0x3210_3210;
        let of_nibbles = [0, 16].map(|at| {
            let within = within >> at;
            let of_half = |first: usize| k.u32(word(first)).prmt(word(first + 4), within);
            of_half(0).prmt(of_half(8), halves >> at)
        });
        [0x6420, 0x7531].map(|which: u32| of_nibbles[0].prmt(of_nibbles[1], which))
    }
}
