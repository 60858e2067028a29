//! What native code reads and writes besides registers and memory.

use crate::check::Noting;
use crate::check::race::{NEXT_LANE, Notes};
use crate::counters::MemoryCounters;
use crate::decode::Code;
use crate::machine::{Counts, LANES, NONE};
use crate::num::approx::{EXPONENTIAL, MAX_EXPONENT, SHIFTER};
use crate::num::float::{LARGER, NAN_F32, QUIET_F64};
use crate::num::half::NAN_HALF;
use crate::tensor::{FloatElement, TensorCore};
use std::any::Any;
use std::array::from_fn;

/// An access has read global memory, has written some, has written anything, has changed something by an atomic operation.
pub(super) const READ: u32 = 1;
pub(super) const OUTWARD: u32 = 2;
pub(super) const PROGRESS: u32 = 4;
pub(super) const CHANGED: u32 = 8;
/// It is one.
pub(super) const VALID: u32 = 16;

/// Where an access may go.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Cache {
    /// The first address, less the constant that is added to the row.
    pub(super) start: u64,
    /// The last address, from the first one on, in 31 bits.
    pub(super) last: u64,
    /// Where the host has the first byte.
    pub(super) host: u64,
    /// All bits where that is from the beginning of the cluster's shared memory on.
    pub(super) from_shared: u64,
    /// What the access does, by the bits above; 0: there is no such memory.
    pub(super) flags: u64,
    /// Who looks at it, in variants with notes: nobody; who has shared memory; or global memory.
    pub(super) noted: u64,
    /// There: the allocation, as a pointer, and how far the device has it from where the host has it.
    pub(super) allocation: u64,
    pub(super) apart: u64,
}

/// Who looks at accesses.
pub(super) const SHARED: u64 = 1;
pub(super) const GLOBAL: u64 = 2;

/// What a lane is away from the first one, if they are 1, 2, 4, 8 or 16 bytes from each other.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Ramps {
    pub(super) narrow: [[u32; LANES]; 5],
    pub(super) wide: [[u64; LANES]; 5],
}

/// A constant in each lane.
type Splat<T> = [T; 8];

/// What native code finds by one register.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Frame {
    /// Rows of the frame that runs, by file.
    pub(super) w32: *mut u8,
    pub(super) w64: *mut u8,
    pub(super) pred: *mut u8,
    /// [`State::entered`].
    pub(super) entered: *mut Counts,
    /// The caches of accesses.
    pub(super) caches: *const Cache,
    /// The shared memory of the cluster.
    pub(super) shared: *mut u8,
    /// How many lanes the path has, and which.
    pub(super) lanes: u64,
    pub(super) active: u32,
    pub(super) fuel: u32,
    /// The same, but for what does not execute the arm of a branch, while one is executed.
    pub(super) outer_lanes: u64,
    pub(super) outer_active: u32,
    /// The warp has one path.
    pub(super) is_only_path: u32,
    /// By instruction, how often branches have divided a path; and the one in whose arm native code was left.
    pub(super) divergent: *mut u64,
    pub(super) divided_by: u32,
    /// The instruction at which the path reconverges.
    pub(super) reconverges_at: u32,
    /// What accesses have done.
    pub(super) flags: u32,
    /// Lanes that executed instructions under guards, less those of the path.
    pub(super) corrected: i64,
    /// Constants, in all lanes of a vector of AVX2: the NaNs that results are, bits of numbers, the smallest normal number
    /// times the square of 2^32.
    pub(super) nan: Splat<u32>,
    pub(super) nan_half: Splat<u32>,
    pub(super) half: Splat<u32>,
    pub(super) all: Splat<u32>,
    pub(super) lane: Splat<u32>,
    pub(super) sign: Splat<u32>,
    pub(super) exponent: Splat<u32>,
    pub(super) magnitude: Splat<u32>,
    pub(super) larger: Splat<f32>,
    pub(super) tiny: Splat<f32>,
    pub(super) one: Splat<f32>,
    /// 2^31; 32; words of equal bytes or half words.
    pub(super) too_large: Splat<f32>,
    pub(super) width: Splat<u32>,
    pub(super) byte: Splat<u32>,
    pub(super) bytes: Splat<u32>,
    pub(super) nibbles: Splat<u32>,
    pub(super) places: Splat<u32>,
    pub(super) second: Splat<u32>,
    pub(super) signs: Splat<u32>,
    /// Modes of floating-point instructions, by the number of the direction in which they round.
    pub(super) modes: [u32; 4],
    /// 0; 2^16; the sign of 64 bits.
    pub(super) zero: Splat<u32>,
    pub(super) half_word: Splat<f32>,
    pub(super) sign_wide: [u64; 4],
    /// What makes a NaN of `f64` quiet.
    pub(super) quiet_wide: [u64; 4],
    /// How far the lowest bit of a mask must be shifted for each lane, so that the sign is the bit of the lane.
    pub(super) to_sign: [u32; LANES],
    pub(super) to_sign_wide: [u64; LANES],
    /// The elements of the lower and of the upper half of a vector by turns.
    pub(super) halves: [u32; 8],
    pub(super) below: [u32; 5],
    /// Bits that no offset of an access of so many bytes has that is in 31 bits.
    pub(super) refused: [[u32; 8]; 5],
    pub(super) refused_wide: [[u64; 4]; 5],
    /// A bit for each byte of 1, 2, 4, 8 and 16.
    pub(super) ones: [u32; 5],
    pub(super) first: u32,
    pub(super) ramps: Ramps,
    /// What the race check notes of accesses, and which bytes of shared memory were written: null where all were.
    pub(super) notes: Notes,
    pub(super) written: *const u64,
    /// Bytes of that memory.
    pub(super) shared_bytes: u64,
    /// The numbers that words have of lanes one behind the other, of which each has 1, 2 or 4 words, less those of the
    /// first lane.
    pub(super) threads: [[u32; 4 * LANES]; 3],
    /// Tables for permutations of two vectors: the elements of even and of odd number, and those of the lower or upper
    /// halves by turns; of 32 bits, and of pairs of them.
    pub(super) even: [u32; LANES / 2],
    pub(super) odd: [u32; LANES / 2],
    pub(super) low: [u32; LANES / 2],
    pub(super) high: [u32; LANES / 2],
    pub(super) even_pairs: [u64; LANES / 4],
    pub(super) odd_pairs: [u64; LANES / 4],
    pub(super) low_pairs: [u64; LANES / 4],
    pub(super) high_pairs: [u64; LANES / 4],
    /// Where the halves of two registers go if the matrix that they have is transposed.
    pub(super) transposed: [[u16; LANES]; 2],
    /// What the exponential is computed of, and one.
    pub(super) exponential: [f64; 13],
    pub(super) shifter: f64,
    pub(super) most_exponent: f64,
    pub(super) least_exponent: f64,
    pub(super) one_wide: f64,
    /// Of each byte, the first one of its word, in sixteen bytes.
    pub(super) words: [u8; 64],
    /// How the launch adds products of halves and of `bf16`: see [`half_product`](crate::simd::half_product).
    pub(super) rules: [(usize, i32); 2],
    /// Where the lanes of an atomic operation go, and what they find there.
    pub(super) offsets: [u32; LANES],
    pub(super) found: [u32; LANES],
    /// Where memory traffic is counted.
    pub(super) counters: *mut MemoryCounters,
    /// What looks at accesses where they are noted, and for which warp.
    pub(super) noting: *mut Noting<'static>,
    pub(super) warp: u8,
    /// The panic of a routine that native code called.
    pub(super) panic: Option<Box<dyn Any + Send>>,
}

/// What a host thread keeps for native code.
#[derive(Debug)]
pub(crate) struct State {
    pub(super) frame: Box<Frame>,
    /// By instruction, how many warps and lanes have entered native code there, less those that have left it: the sums from
    /// the first one on are how often it was executed.
    pub(crate) entered: Vec<Counts>,
    pub(crate) caches: Vec<Cache>,
}

// SAFETY: its pointers are set before native code is entered, and used in it alone.
#[expect(unsafe_code, reason = "the pointers of a frame")]
unsafe impl Send for State {}

impl State {
    pub(crate) fn new(code: &Code, core: TensorCore) -> State {
        let rule = |element| core.accumulation(element).map_or((0, 0), |rule| (rule.block, rule.extra_bits));
        let frame = Frame {
            w32: std::ptr::null_mut(),
            w64: std::ptr::null_mut(),
            pred: std::ptr::null_mut(),
            entered: std::ptr::null_mut(),
            caches: std::ptr::null(),
            shared: std::ptr::null_mut(),
            lanes: 0,
            active: 0,
            fuel: 0,
            outer_lanes: 0,
            outer_active: 0,
            is_only_path: 0,
            divergent: std::ptr::null_mut(),
            divided_by: NONE,
            reconverges_at: u32::MAX,
            flags: 0,
            corrected: 0,
            nan: [NAN_F32; 8],
            nan_half: [NAN_HALF.into(); 8],
            half: [0xffff; 8],
            all: [u32::MAX; 8],
            lane: [LANES as u32 - 1; 8],
            sign: [1 << 31; 8],
            exponent: [f32::INFINITY.to_bits(); 8],
            magnitude: [u32::MAX >> 1; 8],
            larger: [LARGER; 8],
            tiny: [f32::MIN_POSITIVE * LARGER * LARGER; 8],
            one: [1.0; 8],
            too_large: [2_147_483_648.0; 8],
            width: [32; 8],
            byte: [0xff; 8],
            bytes: [0x00ff_00ff; 8],
            nibbles: [0x0f0f_0f0f; 8],
            places: [0x0303_0303; 8],
            second: [0x0404_0404; 8],
            signs: [0x0808_0808; 8],
            modes: from_fn(|rounding| 0x1f80 | (rounding as u32) << 13),
            zero: [0; 8],
            half_word: [65536.0; 8],
            sign_wide: [1 << 63; 4],
            quiet_wide: [QUIET_F64; 4],
            to_sign: from_fn(|lane| (LANES - 1 - lane) as u32),
            to_sign_wide: from_fn(|lane| 63 - lane as u64),
            halves: from_fn(|at| (at / 2 + at % 2 * 4) as u32),
            below: [0, 1, 3, 7, 15],
            refused: from_fn(|step| [!0 << 31 | ((1 << step) - 1); 8]),
            refused_wide: from_fn(|step| [!0 << 31 | ((1 << step) - 1); 4]),
            ones: [0x1, 0x3, 0xf, 0xff, 0xffff],
            first: 1,
            ramps: Ramps {
                narrow: from_fn(|step| from_fn(|lane| (lane << step) as u32)),
                wide: from_fn(|step| from_fn(|lane| (lane << step) as u64)),
            },
            notes: Notes::NONE,
            written: std::ptr::null(),
            shared_bytes: 0,
            threads: from_fn(|shift| from_fn(|word| (word >> shift) as u32 * NEXT_LANE)),
            even: from_fn(|at| 2 * at as u32),
            odd: from_fn(|at| 2 * at as u32 + 1),
            low: from_fn(|at| (at / 2 + at % 2 * 16) as u32),
            high: from_fn(|at| (at / 2 + at % 2 * 16 + 8) as u32),
            even_pairs: from_fn(|at| 2 * at as u64),
            odd_pairs: from_fn(|at| 2 * at as u64 + 1),
            low_pairs: from_fn(|at| (at / 2 + at % 2 * 8) as u64),
            high_pairs: from_fn(|at| (at / 2 + at % 2 * 8 + 4) as u64),
            transposed: from_fn(|part| from_fn(|at| (at % 8 * 8 + at / 8 + 4 * part) as u16)),
            exponential: EXPONENTIAL,
            shifter: SHIFTER,
            most_exponent: MAX_EXPONENT,
            least_exponent: -MAX_EXPONENT,
            one_wide: 1.0,
            words: from_fn(|at| (at % 16 / 4 * 4) as u8),
            rules: [rule(FloatElement::F16), rule(FloatElement::BF16)],
            offsets: [0; LANES],
            found: [0; LANES],
            counters: std::ptr::null_mut(),
            noting: std::ptr::null_mut(),
            warp: 0,
            panic: None,
        };
        State {
            frame: Box::new(frame),
            entered: vec![Counts::default(); code.insts.len() + 1],
            caches: vec![Cache::default(); code.memory.len()],
        }
    }

    /// How often instructions were executed, in their order.
    pub(crate) fn counts(&self) -> impl Iterator<Item = Counts> {
        self.entered.iter().scan(Counts::default(), |sum, entered| {
            sum.warps = sum.warps.wrapping_add(entered.warps);
            sum.lanes = sum.lanes.wrapping_add(entered.lanes);
            Some(*sum)
        })
    }
}
