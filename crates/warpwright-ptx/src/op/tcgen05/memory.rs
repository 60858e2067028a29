//! Allocating tensor memory, moving data to and from it, and waiting.

use super::{CtaGroup, descriptor, tcgen05_needs, tensor_memory};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;
use crate::op::{Convergence, instruction, modifiers};

modifiers! {
    /// Lanes and bits that a warp moves between tensor memory and registers at once.
    pub enum TensorShape {
        /// 32 lanes of 32 bits.
        S32x32b = "32x32b",
        /// 16 lanes of 64 bits.
        S16x64b = "16x64b",
        /// 16 lanes of 128 bits.
        S16x128b = "16x128b",
        /// 16 lanes of 256 bits.
        S16x256b = "16x256b",
        /// Twice 16 lanes of 32 bits, a constant apart.
        S16x32bx2 = "16x32bx2",
    }

    /// The number of repetitions of a shape along the columns.
    pub enum TensorRepeat {
        /// Once.
        X1 = "x1",
        /// Twice.
        X2 = "x2",
        /// 4 times.
        X4 = "x4",
        /// 8 times.
        X8 = "x8",
        /// 16 times.
        X16 = "x16",
        /// 32 times.
        X32 = "x32",
        /// 64 times.
        X64 = "x64",
        /// 128 times.
        X128 = "x128",
    }

    /// Reduction over the columns that are read.
    pub enum TensorReduction {
        /// Smallest value.
        Min = "min",
        /// Largest value.
        Max = "max",
    }

    /// Rows and bits that a copy from shared to tensor memory moves.
    pub enum TensorCopyShape {
        /// 128 rows of 256 bits.
        S128x256b = "128x256b",
        /// 4 rows of 256 bits.
        S4x256b = "4x256b",
        /// 128 rows of 128 bits.
        S128x128b = "128x128b",
        /// 64 rows of 128 bits.
        S64x128b = "64x128b",
        /// 32 rows of 128 bits.
        S32x128b = "32x128b",
    }

    /// The warps over whose lanes a copy is repeated.
    pub enum WarpMulticast {
        /// Warps 0 and 2, and warps 1 and 3.
        X2By02And13 = "warpx2::02_13",
        /// Warps 0 and 1, and warps 2 and 3.
        X2By01And23 = "warpx2::01_23",
        /// All four.
        X4 = "warpx4",
    }

    /// Format of the elements in tensor memory.
    pub enum TensorFormat {
        /// Sixteen of 8 bits.
        B8x16 = "b8x16",
    }

    /// Format of the elements in shared memory.
    pub enum PackedFormat {
        /// Sixteen of 6 bits, and 32 bits of padding.
        B6x16P32 = "b6x16_p32",
        /// Sixteen of 4 bits, and 64 bits of padding.
        B4x16P64 = "b4x16_p64",
    }

    /// How a commit signals the completion of the operations before it.
    pub enum CommitMechanism {
        /// By one arrival at a barrier.
        ArriveOne = "mbarrier::arrive::one",
    }
}

impl TensorRepeat {
    /// How often.
    pub const fn count(self) -> usize {
        1 << self as usize
    }
}

impl TensorShape {
    /// Registers per repetition.
    const fn registers(self) -> usize {
        match self {
            TensorShape::S32x32b | TensorShape::S16x64b | TensorShape::S16x32bx2 => 1,
            TensorShape::S16x128b => 2,
            TensorShape::S16x256b => 4,
        }
    }

    const fn is_split(self) -> bool {
        matches!(self, TensorShape::S16x32bx2)
    }
}

instruction! {
    /// Allocates columns of tensor memory, and writes their address to shared memory.
    pub struct Tcgen05Alloc("tcgen05.alloc") {
        cta_group: CtaGroup,
        sync: bool = "sync",
        aligned: bool = "aligned",
        space: Option<Space>,
        ty: Type,
    }(to: Address, columns: Src) -> nothing,
        needs: |_, needs| tcgen05_needs(needs, "`tcgen05.alloc`"),
        convergence: |_| Convergence::Warp,
        check: |op, check| {
            aligned(check, op.sync, op.aligned);
            check.type_among(op.ty, &[Type::B32]);
            if !matches!(op.space, None | Some(Space::SharedCta)) {
                check.report(
                    Code::StateSpace,
                    "the space must be `.shared::cta`, or none for a generic address",
                );
            }
            check.wide_address("to", &op.to, op.space);
            columns(check, &op.columns);
        };

    /// Frees columns of tensor memory.
    pub struct Tcgen05Dealloc("tcgen05.dealloc") {
        cta_group: CtaGroup,
        sync: bool = "sync",
        aligned: bool = "aligned",
        ty: Type,
    }(address: Src, columns: Src) -> nothing,
        needs: |_, needs| tcgen05_needs(needs, "`tcgen05.dealloc`"),
        convergence: |_| Convergence::Warp,
        check: |op, check| {
            aligned(check, op.sync, op.aligned);
            check.type_among(op.ty, &[Type::B32]);
            check.src("address", &op.address, Type::U32);
            columns(check, &op.columns);
        };

    /// Gives up the right to allocate.
    pub struct Tcgen05RelinquishAllocPermit("tcgen05.relinquish_alloc_permit") {
        cta_group: CtaGroup,
        sync: bool = "sync",
        aligned: bool = "aligned",
    }() -> nothing,
        needs: |_, needs| tcgen05_needs(needs, "`tcgen05.relinquish_alloc_permit`"),
        convergence: |_| Convergence::Warp,
        check: |op, check| aligned(check, op.sync, op.aligned);

    /// Loads from tensor memory.
    pub struct Tcgen05Ld("tcgen05.ld.sync.aligned") {
        shape: TensorShape,
        repeat: TensorRepeat,
        pack: bool = "pack::16b",
        ty: Type,
    }(d: Dsts, address: Address, split: Option<Src> = shape.is_split()) -> unknown,
        needs: |_, needs| tcgen05_needs(needs, "`tcgen05.ld`"),
        convergence: |_| Convergence::Warp,
        check: |op, check| {
            check.type_among(op.ty, &[Type::B32]);
            let is_vector = matches!(op.d, Dsts::Many(_));
            fragment(check, op.shape, op.repeat, is_vector, op.d.len(), op.split.as_ref());
            destinations(check, &op.d);
            tensor_memory(check, "address", &op.address);
        };

    /// Loads from tensor memory, and reduces over the columns.
    pub struct Tcgen05LdRed("tcgen05.ld.red.sync.aligned") {
        shape: TensorShape,
        repeat: TensorRepeat,
        reduction: TensorReduction,
        abs: bool = "abs",
        nan: bool = "NaN",
        ty: Type,
    }(d: Dsts, reduced: Dst, address: Address, split: Option<Src> = shape.is_split()) -> unknown,
        needs: |_, needs| needs.targets("`tcgen05.ld.red`", (8, 8), Requirement::family(&[103, 110])),
        convergence: |_| Convergence::Warp,
        check: |op, check| {
            check.type_among(op.ty, &[Type::F32, Type::U32, Type::S32]);
            check.combination(
                matches!(op.shape, TensorShape::S32x32b | TensorShape::S16x32bx2)
                    && op.repeat != TensorRepeat::X1,
                "a reduction takes the shapes `.32x32b` and `.16x32bx2`, and `.x2` or more",
            );
            check.combination(
                op.ty == Type::F32 || !(op.abs || op.nan),
                "`.abs` and `.NaN` go with `.f32` only",
            );
            let is_vector = matches!(op.d, Dsts::Many(_));
            fragment(check, op.shape, op.repeat, is_vector, op.d.len(), op.split.as_ref());
            destinations(check, &op.d);
            check.dst("reduced", op.reduced, op.ty);
            tensor_memory(check, "address", &op.address);
        };

    /// Stores to tensor memory.
    pub struct Tcgen05St("tcgen05.st.sync.aligned") {
        shape: TensorShape,
        repeat: TensorRepeat,
        unpack: bool = "unpack::16b",
        ty: Type,
    }(address: Address, split: Option<Src> = shape.is_split(), a: Srcs) -> nothing,
        needs: |_, needs| tcgen05_needs(needs, "`tcgen05.st`"),
        convergence: |_| Convergence::Warp,
        check: |op, check| {
            check.type_among(op.ty, &[Type::B32]);
            let values = op.a.as_slice();
            let is_vector = matches!(op.a, Srcs::Many(_));
            fragment(check, op.shape, op.repeat, is_vector, values.len(), op.split.as_ref());
            for value in values {
                if matches!(value, Src::Imm(_)) {
                    check.report(Code::OperandForm, "what is stored must be in registers");
                }
                check.src("a", value, Type::B32);
            }
            tensor_memory(check, "address", &op.address);
        };

    /// Waits for the thread's loads from tensor memory.
    pub struct Tcgen05WaitLd("tcgen05.wait::ld.sync.aligned")
    /// Waits for the thread's stores to tensor memory.
    pub struct Tcgen05WaitSt("tcgen05.wait::st.sync.aligned") {}() -> nothing,
        needs: |_, needs| tcgen05_needs(needs, "`tcgen05.wait`"),
        convergence: |_| Convergence::Warp,
        check: |_, _| {};

    /// Copies a matrix from shared to tensor memory.
    pub struct Tcgen05Cp("tcgen05.cp") {
        cta_group: CtaGroup,
        shape: TensorCopyShape,
        multicast: Option<WarpMulticast>,
        to_format: Option<TensorFormat>,
        from_format: Option<PackedFormat>,
    }(to: Address, from: Src) -> nothing,
        needs: |_, needs| tcgen05_needs(needs, "`tcgen05.cp`"),
        check: |op, check| {
            let fits = match op.shape {
                TensorCopyShape::S64x128b => {
                    matches!(op.multicast, Some(WarpMulticast::X2By02And13 | WarpMulticast::X2By01And23))
                }
                TensorCopyShape::S32x128b => op.multicast == Some(WarpMulticast::X4),
                _ => op.multicast.is_none(),
            };
            check.combination(
                fits,
                "`.64x128b` needs a `.warpx2`, `.32x128b` needs `.warpx4`, and the other shapes take none",
            );
            check.combination(
                op.to_format.is_some() == op.from_format.is_some(),
                "the formats of both sides stand together or not at all",
            );
            tensor_memory(check, "to", &op.to);
            descriptor(check, "from", &op.from);
        };

    /// Shifts rows of tensor memory down by one.
    pub struct Tcgen05Shift("tcgen05.shift") {
        cta_group: CtaGroup,
        down: bool = "down",
    }(address: Address) -> nothing,
        needs: |_, needs| {
            needs.targets("`tcgen05.shift`", (8, 6), Requirement::specific(&[100, 101, 103, 110]))
        },
        check: |op, check| {
            check.combination(op.down, "`.down` must stand");
            tensor_memory(check, "address", &op.address);
        };

    /// Makes the completion of the thread's operations so far arrive at a barrier.
    pub struct Tcgen05Commit("tcgen05.commit") {
        cta_group: CtaGroup,
        mechanism: CommitMechanism,
        space: Option<Space>,
        multicast: bool = "multicast::cluster",
        ty: Type,
    }(mbar: Address, cta_mask: Option<Src> = multicast) -> nothing,
        needs: |_, needs| tcgen05_needs(needs, "`tcgen05.commit`"),
        check: |op, check| {
            check.type_among(op.ty, &[Type::B64]);
            check.that(
                matches!(op.space, None | Some(Space::SharedCluster)),
                Code::StateSpace,
                "the space must be `.shared::cluster`, or none for a generic address",
            );
            check.wide_address("mbar", &op.mbar, op.space);
            check.src("cta_mask", &op.cta_mask, Type::U16);
            check.imm_range("cta_mask", &op.cta_mask, 0..=0xffff);
        };

    /// Orders the asynchronous operations so far before a synchronisation of threads.
    pub struct Tcgen05FenceBefore("tcgen05.fence::before_thread_sync")
    /// Orders a synchronisation of threads before the asynchronous operations that follow.
    pub struct Tcgen05FenceAfter("tcgen05.fence::after_thread_sync") {}() -> nothing,
        needs: |_, needs| tcgen05_needs(needs, "`tcgen05.fence`"),
        check: |_, _| {};
}

fn aligned(check: &mut Check<'_>, sync: bool, aligned: bool) {
    check.combination(sync && aligned, "`.sync.aligned` must stand");
}

/// The number of columns: a multiple of 32 up to 512, and a power of two.
fn columns(check: &mut Check<'_>, columns: &Src) {
    check.src("columns", columns, Type::U32);
    if let Src::Imm(Imm::Int(count)) = columns
        && !matches!(count, 32 | 64 | 128 | 256 | 512)
    {
        let message = format!("the number of columns must be 32, 64, 128, 256 or 512, not {count}");
        check.report(Code::ImmediateRange, message);
    }
}

/// As many registers as the shape needs, and a constant for one that is split.
fn fragment(
    check: &mut Check<'_>,
    shape: TensorShape,
    repeat: TensorRepeat,
    is_vector: bool,
    count: usize,
    split: Option<&Src>,
) {
    let wanted = shape.registers() * repeat.count();
    if wanted > 128 {
        check.report(
            Code::ModifierCombination,
            format!("`{shape}{repeat}` needs {wanted} registers, and 128 is the most"),
        );
    } else if !is_vector || count != wanted {
        let message = format!("`{shape}{repeat}` needs a vector of {wanted} registers, not {count}");
        check.report(Code::VectorShape, message);
    }
    if let Some(split) = split
        && !matches!(split, Src::Imm(imm) if !imm.is_float())
    {
        check.report(Code::OperandForm, "the distance of the two halves must be an integer constant");
    }
}

fn destinations(check: &mut Check<'_>, d: &Dsts) {
    for reg in d.as_slice() {
        match reg {
            Some(reg) => check.reg("d", reg, Type::B32),
            None => check.report(Code::OperandForm, "an element that is loaded cannot be `_`"),
        }
    }
}
