//! Bytes of memory as 32-bit words, by accesses that their alignment allows.

use warpwright_dsl::*;

/// The word that begins at byte `at`, an address that is a multiple of `alignment`; zero where the guard does not hold.
#[track_caller]
pub(crate) fn load_word<'k>(
    k: K<'k>,
    from: Ptr<'k, Global, u8>,
    alignment: u32,
    guard: Option<Reg<'k, Pred>>,
) -> Reg<'k, u32> {
    match alignment {
        4.. => from.cast::<u32>().ld_if(guard, 0, 0),
        2.. => {
            let half = |i: u32| from.cast::<u16>().ld_if(guard, i, k.value::<u16>(0)).to::<u32>();
            half(0) | half(1) << 16
        }
        _ => {
            let byte = |i: u32| from.ld_if(guard, i, k.u32(0).to::<u8>()).to::<u32>() << (8 * i);
            byte(0) | byte(1) | byte(2) | byte(3)
        }
    }
}

/// Stores a word: see [`load_word`].
#[track_caller]
pub(crate) fn store_word<'k>(
    to: Ptr<'k, Global, u8>,
    alignment: u32,
    guard: Option<Reg<'k, Pred>>,
    word: Reg<'k, u32>,
) {
    match alignment {
        4.. => to.cast::<u32>().st_if(guard, 0, word),
        2.. => {
            for i in 0..2 {
                to.cast::<u16>().st_if(guard, i, (word >> (16 * i)).to::<u16>());
            }
        }
        _ => {
            for i in 0..4 {
                to.st_if(guard, i, (word >> (8 * i)).to::<u8>());
            }
        }
    }
}

/// What an address of this alignment is still a multiple of, `offset` bytes further.
pub(crate) fn aligned(alignment: u32, offset: u32) -> u32 {
    alignment.min(1 << offset.trailing_zeros().min(31))
}
