//! Which unit of a multiprocessor executes an instruction, and for how long it is busy.
//!
//! A multiprocessor has four schedulers, each with units of its own. Loads, stores and shuffles go to a unit that the four
//! share. The throughputs are those of the table of arithmetic instructions in NVIDIA's CUDA C++ Programming Guide
//! (results per cycle and multiprocessor, by compute capability), divided by four; that `IMAD` runs where `FFMA` does,
//! and at half of its rate where that is doubled, is from the microbenchmarks that `docs/performance.md` names.

use crate::machine::Instruction;
use warpwright_kernels::tune::DeviceModel;

/// A unit that executes instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pipe {
    /// `f32` arithmetic and integer products.
    Fma,
    /// Integers, logic, comparisons, moves.
    Alu,
    /// Reciprocals, roots, exponentials, conversions.
    Special,
    /// `f64` arithmetic.
    Double,
    /// Products of matrices.
    Tensor,
    /// Loads, stores, atomics, shuffles: shared by the multiprocessor.
    Memory,
    /// Instructions on values that a warp shares.
    Uniform,
    /// Branches, barriers, and what else needs no unit.
    Control,
}

/// The units.
pub(crate) const PIPES: [Pipe; 8] = [
    Pipe::Fma,
    Pipe::Alu,
    Pipe::Special,
    Pipe::Double,
    Pipe::Tensor,
    Pipe::Memory,
    Pipe::Uniform,
    Pipe::Control,
];

impl Pipe {
    /// The words for it.
    pub fn name(self) -> &'static str {
        match self {
            Pipe::Fma => "f32 and products",
            Pipe::Alu => "integer and logic",
            Pipe::Special => "special functions",
            Pipe::Double => "f64",
            Pipe::Tensor => "tensor cores",
            Pipe::Memory => "loads and stores",
            Pipe::Uniform => "uniform",
            Pipe::Control => "control",
        }
    }
}

/// What memory an instruction goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Global memory, through the caches. Whether it is a load.
    Global { load: bool },
    /// Local memory, taken to be in the first-level cache.
    Local,
    /// Shared memory.
    Shared,
    /// Constants.
    Constant,
    /// None: the lanes of the warp exchange values.
    Lanes,
}

/// How an instruction is executed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    pub(crate) pipe: Pipe,
    /// Cycles that the unit of a scheduler is busy; of the shared unit, without what memory adds.
    pub(crate) busy: f64,
    /// Cycles until a result of variable latency is there, without those that memory adds.
    pub(crate) latency: f64,
    pub(crate) memory: Option<Memory>,
}

/// Special functions and conversions: a quarter of a multiprocessor delivers four results a cycle.
const SPECIAL: f64 = 8.0;

/// Cycles from an operand to a result of the special-function unit, beyond its occupancy.
const SPECIAL_LATENCY: f64 = 18.0;

/// Cycles from an operand to a result of `f64` arithmetic.
const DOUBLE_LATENCY: f64 = 8.0;

/// Cycles that a shuffle takes; shared memory answers a little later.
const LANES_LATENCY: f64 = 23.0;

/// Cycles until a constant that is not an operand is there, if its cache has it.
const CONSTANT_LATENCY: f64 = 30.0;

/// The cost of an instruction on a device.
pub(crate) fn cost(instruction: &Instruction, device: &DeviceModel) -> Cost {
    let sm = device.arch.sm;
    // Data-centre parts before Hopper have half of the `f32` units.
    let doubled = sm != 80 && sm > 75;
    // From Blackwell on the units for integers are as many as those for floats.
    let unified = sm >= 100;
    let (fma, half_rate) = (if doubled { 1.0 } else { 2.0 }, 2.0);
    let plain = |pipe, busy| Cost { pipe, busy, latency: SPECIAL_LATENCY, memory: None };
    // However much the lanes share: fitted to published timings.
    let words = if instruction.has("128") { 2.0 } else { 1.0 };
    let memory = |memory, busy, latency| Cost { pipe: Pipe::Memory, busy, latency, memory: Some(memory) };
    let doubles = match sm {
        80 => 4.0,
        90..=100 => 2.0,
        _ => 64.0,
    };
    match instruction.base() {
        "FFMA" | "FMUL" | "FADD" | "FFMA32I" | "FMUL32I" | "FADD32I" | "FSWZADD" => plain(Pipe::Fma, fma),
        // Two operations a lane from Blackwell on.
        "FFMA2" | "FADD2" | "FMUL2" => plain(Pipe::Fma, 2.0),
        "IMAD" | "IMUL" | "IDP" | "IDP4A" | "IMAD32I" | "IMUL32I" => {
            plain(Pipe::Fma, if instruction.has("WIDE") && sm < 80 { 4.0 } else { half_rate })
        }
        "HFMA2" | "HADD2" | "HMUL2" | "HMNMX2" | "HSET2" | "HSETP2" | "HFMA2_MMA" => plain(
            Pipe::Fma,
            match sm {
                80 | 90..=100 => 1.0,
                _ => half_rate,
            },
        ),
        "MUFU" => plain(Pipe::Special, SPECIAL),
        "I2F" | "F2I" | "F2F" | "I2I" | "FRND" | "POPC" | "FLO" | "BREV" | "BMSK" => {
            plain(Pipe::Special, SPECIAL)
        }
        "DFMA" | "DADD" | "DMUL" | "DSETP" | "DMNMX" => {
            Cost { latency: DOUBLE_LATENCY.max(doubles), ..plain(Pipe::Double, doubles) }
        }
        "HMMA" | "IMMA" | "BMMA" | "QMMA" | "OMMA" | "DMMA" => {
            let busy = tensor(instruction, device);
            Cost { pipe: Pipe::Tensor, busy, latency: busy + SPECIAL_LATENCY, memory: None }
        }
        "LDG" | "LD" | "LDGSTS" | "ATOM" | "ATOMG" | "TLD" | "TEX" => {
            memory(Memory::Global { load: true }, words, 0.0)
        }
        "STG" | "ST" | "RED" | "REDG" => memory(Memory::Global { load: false }, words, 0.0),
        "LDL" | "STL" => memory(Memory::Local, words, 0.0),
        "LDS" | "STS" | "LDSM" | "STSM" | "ATOMS" | "MOVM" => memory(Memory::Shared, words, 0.0),
        "SHFL" | "MATCH" => memory(Memory::Lanes, 1.0, LANES_LATENCY),
        "VOTE" | "VOTEU" => plain(Pipe::Alu, half_rate),
        "REDUX" => plain(Pipe::Special, SPECIAL),
        "LDC" => memory(Memory::Constant, 1.0, CONSTANT_LATENCY),
        "ULDC" | "LDCU" => Cost { latency: CONSTANT_LATENCY, ..plain(Pipe::Uniform, 2.0) },
        "S2R" | "S2UR" | "CS2R" => plain(Pipe::Control, 2.0),
        "BRA" | "BRX" | "EXIT" | "RET" | "CALL" | "BSSY" | "BSYNC" | "BREAK" | "WARPSYNC" | "NOP" | "BAR"
        | "MEMBAR" | "ERRBAR" | "DEPBAR" | "LDGDEPBAR" | "YIELD" | "NANOSLEEP" | "BMOV" | "BPT"
        | "ACQBULK" | "PREEXIT" | "CCTL" | "WARPGROUP" | "JMP" | "KILL" | "ENDCOLLECTIVE" => {
            plain(Pipe::Control, 1.0)
        }
        base if base.starts_with('U') && base != "UNKNOWN" => plain(Pipe::Uniform, 2.0),
        "IADD" | "IADD3" | "LOP3" | "SEL" | "MOV" | "ISETP" | "LEA" | "IMNMX" | "VIADD" | "VIMNMX"
            if unified =>
        {
            plain(Pipe::Alu, 1.0)
        }
        // Logic, shifts, comparisons, moves, packing.
        _ => plain(Pipe::Alu, half_rate),
    }
}

/// Cycles that the tensor cores of a scheduler take for an instruction: by its shape and its elements, in proportion to
/// 16 × 8 × 16 halves with `f32` accumulators.
fn tensor(instruction: &Instruction, device: &DeviceModel) -> f64 {
    let digits: String = instruction.opcode.split('.').nth(1).unwrap_or_default().into();
    // `16816` is m16n8k16: the shape's last number follows m and n.
    let depth = digits.strip_prefix("168").and_then(|depth| depth.parse::<f64>().ok());
    let work = depth.unwrap_or(16.0) / 16.0;
    let f16_accumulators = instruction.base() == "HMMA" && !instruction.opcode.contains("F32");
    let rate = match instruction.base() {
        "IMMA" | "QMMA" => 0.5,
        "BMMA" => 0.125,
        "DMMA" => 16.0,
        _ if instruction.opcode.contains("TF32") => 2.0,
        // Parts that are not for data centres add halves in `f32` at half of the rate.
        _ if f16_accumulators
            && device.speed.as_ref().map_or(f64::from(device.mma_cycles), |speed| speed.mma_cycles) > 8.0 =>
        {
            0.5
        }
        _ => 1.0,
    };
    device.speed.as_ref().map_or(f64::from(device.mma_cycles), |speed| speed.mma_cycles) * work * rate
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(opcode: &str, card: &str) -> Cost {
        let device = DeviceModel::named(card).expect("the card is known");
        cost(&Instruction { opcode: opcode.into(), ..Instruction::default() }, &device)
    }

    #[test]
    fn each_architecture_has_its_units() {
        use Pipe::{Alu, Control, Double, Fma, Memory, Special, Tensor, Uniform};
        // Cycles of sm_80, sm_86, sm_90, sm_120.
        for (opcode, pipe, cycles) in [
            // Twice the `f32` units from sm_86 on.
            ("FFMA", Fma, [2.0, 1.0, 1.0, 1.0]),
            ("FADD.FTZ", Fma, [2.0, 1.0, 1.0, 1.0]),
            // Products of integers run on half of them.
            ("IMAD", Fma, [2.0, 2.0, 2.0, 2.0]),
            ("IMAD.WIDE.U32", Fma, [2.0, 2.0, 2.0, 2.0]),
            // Two halves at once.
            ("HFMA2.MMA", Fma, [1.0, 2.0, 1.0, 2.0]),
            ("HADD2.F32", Fma, [1.0, 2.0, 1.0, 2.0]),
            // Units for integers are as many as those for floats from Blackwell on, for what is common.
            ("IADD3", Alu, [2.0, 2.0, 2.0, 1.0]),
            ("LOP3.LUT", Alu, [2.0, 2.0, 2.0, 1.0]),
            ("ISETP.GE.AND", Alu, [2.0, 2.0, 2.0, 1.0]),
            ("SHF.R.U32.HI", Alu, [2.0, 2.0, 2.0, 2.0]),
            ("PRMT", Alu, [2.0, 2.0, 2.0, 2.0]),
            ("FSETP.GT.AND", Alu, [2.0, 2.0, 2.0, 2.0]),
            ("VOTE.ANY", Alu, [2.0, 2.0, 2.0, 2.0]),
            // What nobody knows is taken for such.
            ("WHATEVER", Alu, [2.0, 2.0, 2.0, 2.0]),
            ("MUFU.EX2", Special, [8.0, 8.0, 8.0, 8.0]),
            ("F2I.TRUNC.NTZ", Special, [8.0, 8.0, 8.0, 8.0]),
            ("POPC", Special, [8.0, 8.0, 8.0, 8.0]),
            // Few units for `f64` where the card is not for data centres.
            ("DFMA", Double, [4.0, 64.0, 2.0, 64.0]),
            // 16 × 8 × 16 halves, then shapes and elements in proportion.
            ("HMMA.16816.F32", Tensor, [8.0, 32.0, 6.26, 32.0]),
            ("HMMA.16816.F32.BF16", Tensor, [8.0, 32.0, 6.26, 32.0]),
            ("HMMA.1688.F32", Tensor, [4.0, 16.0, 3.13, 16.0]),
            ("HMMA.16816.F16", Tensor, [8.0, 16.0, 6.26, 16.0]),
            ("HMMA.1688.F32.TF32", Tensor, [8.0, 32.0, 6.26, 32.0]),
            ("IMMA.16832.S8.S8", Tensor, [8.0, 32.0, 6.26, 32.0]),
            ("LDG.E", Memory, [1.0; 4]),
            ("LDG.E.64.CONSTANT", Memory, [1.0; 4]),
            ("LDG.E.128", Memory, [2.0; 4]),
            ("STG.E.128", Memory, [2.0; 4]),
            ("LDS.U.128", Memory, [2.0; 4]),
            ("SHFL.BFLY", Memory, [1.0; 4]),
            ("ULDC.64", Uniform, [2.0; 4]),
            ("UIADD3", Uniform, [2.0; 4]),
            ("BRA", Control, [1.0; 4]),
            ("BAR.SYNC.DEFER_BLOCKING", Control, [1.0; 4]),
            ("S2R", Control, [2.0; 4]),
        ] {
            for (card, expected) in ["A100", "RTX 3090", "H100", "RTX 5090"].into_iter().zip(cycles) {
                let found = of(opcode, card);
                assert_eq!((found.pipe, found.busy), (pipe, expected), "{opcode} on {card}");
            }
        }
    }

    #[test]
    fn accesses_go_to_their_memory() {
        let global = |load| Some(Memory::Global { load });
        for (opcode, memory) in [
            ("LDG.E", global(true)),
            ("LD.E", global(true)),
            ("LDGSTS.E.BYPASS.128", global(true)),
            // An atomic operation has a result.
            ("ATOMG.E.ADD.STRONG.GPU", global(true)),
            ("RED.E.ADD.F32.FTZ.RN.STRONG.GPU", global(false)),
            ("STG.E.64", global(false)),
            ("LDS.128", Some(Memory::Shared)),
            ("LDSM.16.M88.4", Some(Memory::Shared)),
            ("ATOMS.ADD", Some(Memory::Shared)),
            ("STL", Some(Memory::Local)),
            ("LDC", Some(Memory::Constant)),
            ("SHFL.IDX", Some(Memory::Lanes)),
            ("LDGDEPBAR", None),
            ("DEPBAR.LE", None),
            ("MEMBAR.SC.GPU", None),
            ("FFMA", None),
        ] {
            assert_eq!(of(opcode, "A100").memory, memory, "{opcode}");
        }
    }

    #[test]
    fn units_stand_at_their_places() {
        for (index, pipe) in PIPES.into_iter().enumerate() {
            assert_eq!(pipe as usize, index, "tables of units are indexed by them");
        }
    }
}
