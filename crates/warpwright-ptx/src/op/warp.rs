//! Exchanges between the lanes of a warp.

use super::{Convergence, instruction, modifiers};
use crate::diag::Code;
use crate::ir::*;
use crate::op::{Apart, Check, Level, Operands};

modifiers! {
    /// The lane that a shuffle reads.
    pub enum ShuffleMode {
        /// A lower one.
        Up = "up",
        /// A higher one.
        Down = "down",
        /// The one whose number differs in the given bits.
        Bfly = "bfly",
        /// The given one.
        Idx = "idx",
    }

    /// The result of a vote.
    pub enum VoteMode {
        /// Whether all hold.
        All = "all",
        /// Whether any holds.
        Any = "any",
        /// Whether all are equal.
        Uni = "uni",
        /// The mask of those that hold.
        Ballot = "ballot",
    }

    /// The lanes that a match returns.
    pub enum MatchMode {
        /// Those that hold this lane's value.
        Any = "any",
        /// All, if all hold the same value.
        All = "all",
    }

    /// The operation of a reduction.
    pub enum ReduxOp {
        /// Sum.
        Add = "add",
        /// Minimum.
        Min = "min",
        /// Maximum.
        Max = "max",
        /// Bitwise and.
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
    }
}

instruction! {
    /// Exchanges a value between the lanes that happen to execute it together (before sm_70).
    pub struct ShflNoSync("shfl") {
        mode: ShuffleMode,
        ty: Type,
    }(d: DstPair, a: Src, b: Src, c: Src) -> |op, operands| {
            shuffled(op.mode, &op.b, &op.c, &Src::Sink, operands)
        },
        needs: |_, needs| gone(needs, "`shfl` without `.sync`"),
        convergence: |_| Convergence::Warp,
        apart: |op, operands| in_range(op.mode, op.d, &op.b, &op.c, operands),
        check: |op, check| shuffle(check, op.ty, op.d, (&op.a, &op.b, &op.c));

    /// A predicate over the lanes that happen to execute it together (before sm_70).
    pub struct VoteNoSync("vote") {
        mode: VoteMode,
        ty: Type,
    }(d: Dst, a: Src) -> |op, operands| voted(op.mode, &Src::Sink, operands),
        needs: |_, needs| gone(needs, "`vote` without `.sync`"),
        convergence: |_| Convergence::Warp,
        check: |op, check| vote(check, op.mode, op.ty, op.d, &op.a);

    /// Exchanges a value between lanes.
    pub struct Shfl("shfl.sync") {
        mode: ShuffleMode,
        ty: Type,
    }(d: DstPair, a: Src, b: Src, c: Src, mask: Src) -> |op, operands| {
            shuffled(op.mode, &op.b, &op.c, &op.mask, operands)
        },
        convergence: |op| by_mask(&op.mask),
        apart: |op, operands| in_range(op.mode, op.d, &op.b, &op.c, operands),
        check: |op, check| {
            shuffle(check, op.ty, op.d, (&op.a, &op.b, &op.c));
            check.word_src("mask", &op.mask);
        };

    /// A predicate over the lanes.
    pub struct Vote("vote.sync") {
        mode: VoteMode,
        ty: Type,
    }(d: Dst, a: Src, mask: Src) -> |op, operands| voted(op.mode, &op.mask, operands),
        convergence: |op| by_mask(&op.mask),
        check: |op, check| {
            vote(check, op.mode, op.ty, op.d, &op.a);
            check.word_src("mask", &op.mask);
        };

    /// Mask of the lanes that execute together.
    pub struct ActiveMask("activemask") {
        ty: Type,
    }(d: Dst) -> unknown,
        needs: |_, needs| needs.version("`activemask`", 6, 2),
        check: |op, check| {
            check.type_among(op.ty, &[Type::B32]);
            check.dst("d", op.d, Type::B32);
        };

    /// Lanes that hold the same value.
    pub struct Match("match.sync") {
        mode: MatchMode,
        ty: Type,
    }(d: DstPair, a: Src, mask: Src) -> |op, operands| match op.mode {
            MatchMode::All => operands.together(&[&op.mask]).max(Level::WarpData),
            // The lanes that hold this lane's value.
            MatchMode::Any => operands.found().max(Level::WarpData),
        },
        needs: |_, needs| needs.sm("`match`", 70),
        convergence: |op| by_mask(&op.mask),
        check: |op, check| {
            check.type_among(op.ty, &[Type::B32, Type::B64]);
            if let Some(d) = op.d.first {
                check.word("d", d);
            } else if op.mode == MatchMode::Any {
                check.report(Code::OperandForm, "operand `d` cannot be `_`");
            }
            if let Some(all) = op.d.second {
                check.pred_dst("p", all);
                check.that(op.mode != MatchMode::Any, Code::OperandForm, "`.any` has no predicate result");
            }
            check.src("a", &op.a, op.ty);
            check.word_src("mask", &op.mask);
        };

    /// Reduction over the lanes.
    pub struct Redux("redux.sync") {
        op: ReduxOp,
        abs: bool = "abs",
        nan: bool = "NaN",
        ty: Type,
    }(d: Dst, a: Src, mask: Src) -> |op, operands| match op.op {
            ReduxOp::Min | ReduxOp::Max | ReduxOp::And | ReduxOp::Or => operands.together(&[&op.mask]),
            // Of equal values, it tells how many lanes there are.
            ReduxOp::Add | ReduxOp::Xor => operands.together(&[&op.mask]).max(Level::WarpData),
        },
        needs: |op, needs| {
            if op.ty == Type::F32 {
                needs.targets("`redux` of `.f32`", (8, 6), Requirement::family(&[100]));
            } else {
                needs.both("`redux`", (7, 0), 80);
            }
        },
        convergence: |op| by_mask(&op.mask),
        check: |op, check| {
            use Type::*;
            match op.op {
                ReduxOp::Add => check.type_among(op.ty, &[U32, S32]),
                ReduxOp::Min | ReduxOp::Max => check.type_among(op.ty, &[U32, S32, F32]),
                ReduxOp::And | ReduxOp::Or | ReduxOp::Xor => check.type_among(op.ty, &[B32]),
            };
            check.combination(!(op.abs || op.nan) || op.ty == F32, "`.abs` and `.NaN` go with `.f32`");
            // Its `.b32` is an integer: a `.f32` register is no operand.
            if op.ty == F32 {
                check.dst("d", op.d, F32);
                check.src("a", &op.a, F32);
            } else {
                check.word_dst("d", op.d);
                check.word_src("a", &op.a);
            }
            check.word_src("mask", &op.mask);
        };

    /// Selects one lane.
    pub struct Elect("elect.sync") {}(d: DstPair, mask: Src) -> |op, operands| {
            operands.together(&[&op.mask]).max(Level::WarpData)
        },
        needs: |_, needs| needs.both("`elect`", (8, 0), 90),
        convergence: |op| by_mask(&op.mask),
        apart: |op, _| op.d.second.flatten().map(|reg| Apart { reg, level: Level::Lane }),
        check: |op, check| {
            if let Some(d) = op.d.first {
                check.word("d", d);
            }
            match op.d.second.flatten() {
                Some(p) => check.reg("p", p, Type::Pred),
                None => check.report(Code::OperandForm, "the result is a pair `d|p` with a predicate"),
            }
            check.word_src("mask", &op.mask);
        };
}

/// Whether all lanes read the same lane: it is named for the whole warp, and not clamped away.
fn broadcasts(mode: ShuffleMode, b: &Src, c: &Src) -> bool {
    let bits = |src: &Src| src.imm().and_then(Imm::bits);
    let Some(c) = bits(c) else { return false };
    let (segments, last) = (c >> 8 & 31, c & 31);
    mode == ShuffleMode::Idx && segments == 0 && (last == 31 || bits(b).is_some_and(|b| b & 31 <= last))
}

/// What a shuffle reads. A mask that is not there is [`Src::Sink`].
fn shuffled(mode: ShuffleMode, b: &Src, c: &Src, mask: &Src, operands: &Operands<'_>) -> Level {
    if broadcasts(mode, b, c) && operands.of(b) <= Level::WarpData {
        operands.together(&[mask])
    } else {
        operands.found()
    }
}

/// Whether a shuffle found a lane to read.
fn in_range(mode: ShuffleMode, d: DstPair, b: &Src, c: &Src, operands: &Operands<'_>) -> Option<Apart> {
    let level = if broadcasts(mode, b, c) { operands.of(b) } else { Level::Lane };
    d.second.flatten().map(|reg| Apart { reg, level })
}

/// What lanes vote. A mask that is not there is [`Src::Sink`].
fn voted(mode: VoteMode, mask: &Src, operands: &Operands<'_>) -> Level {
    match mode {
        VoteMode::All | VoteMode::Any | VoteMode::Uni => operands.together(&[mask]),
        // Of equal votes, it tells which lanes there are.
        VoteMode::Ballot => operands.together(&[mask]).max(Level::WarpData),
    }
}

/// All lanes of the warp if the mask includes all, otherwise the lanes that it names, separately.
fn by_mask(mask: &Src) -> Convergence {
    match mask {
        Src::Imm(Imm::Int(-1 | 0xffff_ffff)) => Convergence::Warp,
        _ => Convergence::None,
    }
}

fn shuffle(check: &mut Check<'_>, ty: Type, d: DstPair, (a, b, c): (&Src, &Src, &Src)) {
    check.type_among(ty, &[Type::B32]);
    match d.first {
        Some(first) => check.reg("d", first, Type::B32),
        None => check.report(Code::OperandForm, "operand `d` cannot be `_`"),
    }
    check.pred_dst("p", d.second.flatten());
    check.src("a", a, Type::B32);
    check.src("b", b, Type::B32);
    check.src("c", c, Type::B32);
}

fn vote(check: &mut Check<'_>, mode: VoteMode, ty: Type, d: Dst, a: &Src) {
    let wanted = if mode == VoteMode::Ballot { Type::B32 } else { Type::Pred };
    check.type_among(ty, &[wanted]);
    check.dst("d", d, wanted);
    check.src("a", a, Type::Pred);
}

/// Forms without `.sync` are gone where threads have their own program counter.
fn gone(needs: &mut Needs, feature: &'static str) {
    needs.add(feature, Requirement::RemovedFrom { sm: 70, version: Version::new(6, 4) });
}
