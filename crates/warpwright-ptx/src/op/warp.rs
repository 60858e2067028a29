//! Exchanges between the lanes of a warp.

use super::{Convergence, Rule, instruction, modifiers};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;

modifiers! {
    /// Which lane a shuffle reads.
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

    /// What a vote yields.
    pub enum VoteMode {
        /// Whether all hold.
        All = "all",
        /// Whether any holds.
        Any = "any",
        /// Whether all are alike.
        Uni = "uni",
        /// The mask of those that hold.
        Ballot = "ballot",
    }

    /// Which lanes a match wants.
    pub enum MatchMode {
        /// Those that hold this lane's value.
        Any = "any",
        /// All, if all hold the same value.
        All = "all",
    }

    /// What a reduction does.
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
    }(d: DstPair, a: Src, b: Src, c: Src)

    /// A predicate over the lanes that happen to execute it together (before sm_70).
    pub struct VoteNoSync("vote") {
        mode: VoteMode,
        ty: Type,
    }(d: Dst, a: Src)

    /// Exchanges a value between lanes.
    pub struct Shfl("shfl.sync") {
        mode: ShuffleMode,
        ty: Type,
    }(d: DstPair, a: Src, b: Src, c: Src, mask: Src)

    /// A predicate over the lanes.
    pub struct Vote("vote.sync") {
        mode: VoteMode,
        ty: Type,
    }(d: Dst, a: Src, mask: Src)

    /// Mask of the lanes that execute together.
    pub struct ActiveMask("activemask") {
        ty: Type,
    }(d: Dst)

    /// Lanes that hold the same value.
    pub struct Match("match.sync") {
        mode: MatchMode,
        ty: Type,
    }(d: DstPair, a: Src, mask: Src)

    /// Reduction over the lanes.
    pub struct Redux("redux.sync") {
        op: ReduxOp,
        abs: bool = "abs",
        nan: bool = "NaN",
        ty: Type,
    }(d: Dst, a: Src, mask: Src)

    /// Picks one lane.
    pub struct Elect("elect.sync") {}(d: DstPair, mask: Src)
}

/// All lanes of the warp where the mask says all, else those that it names, by themselves.
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

impl Rule for ShflNoSync {
    fn check(&self, check: &mut Check<'_>) {
        shuffle(check, self.ty, self.d, (&self.a, &self.b, &self.c));
    }

    fn needs(&self, needs: &mut Needs) {
        gone(needs, "`shfl` without `.sync`");
    }

    fn convergence(&self) -> Convergence {
        Convergence::Warp
    }
}

impl Rule for VoteNoSync {
    fn check(&self, check: &mut Check<'_>) {
        vote(check, self.mode, self.ty, self.d, &self.a);
    }

    fn needs(&self, needs: &mut Needs) {
        gone(needs, "`vote` without `.sync`");
    }

    fn convergence(&self) -> Convergence {
        Convergence::Warp
    }
}

impl Rule for Shfl {
    fn check(&self, check: &mut Check<'_>) {
        shuffle(check, self.ty, self.d, (&self.a, &self.b, &self.c));
        check.word_src("mask", &self.mask);
    }

    fn needs(&self, _needs: &mut Needs) {}

    fn convergence(&self) -> Convergence {
        by_mask(&self.mask)
    }
}

impl Rule for Vote {
    fn check(&self, check: &mut Check<'_>) {
        vote(check, self.mode, self.ty, self.d, &self.a);
        check.word_src("mask", &self.mask);
    }

    fn needs(&self, _needs: &mut Needs) {}

    fn convergence(&self) -> Convergence {
        by_mask(&self.mask)
    }
}

impl Rule for ActiveMask {
    fn check(&self, check: &mut Check<'_>) {
        check.type_among(self.ty, &[Type::B32]);
        check.dst("d", self.d, Type::B32);
    }

    fn needs(&self, needs: &mut Needs) {
        needs.version("`activemask`", 6, 2);
    }
}

impl Rule for Match {
    fn check(&self, check: &mut Check<'_>) {
        check.type_among(self.ty, &[Type::B32, Type::B64]);
        if let Some(d) = self.d.first {
            check.word("d", d);
        } else if self.mode == MatchMode::Any {
            check.report(Code::OperandForm, "operand `d` cannot be `_`");
        }
        if let Some(all) = self.d.second {
            check.pred_dst("p", all);
            if self.mode == MatchMode::Any {
                check.report(Code::OperandForm, "`.any` has no predicate result");
            }
        }
        check.src("a", &self.a, self.ty);
        check.word_src("mask", &self.mask);
    }

    fn needs(&self, needs: &mut Needs) {
        needs.sm("`match`", 70);
    }

    fn convergence(&self) -> Convergence {
        by_mask(&self.mask)
    }
}

impl Rule for Redux {
    fn check(&self, check: &mut Check<'_>) {
        use Type::*;
        match self.op {
            ReduxOp::Add => check.type_among(self.ty, &[U32, S32]),
            ReduxOp::Min | ReduxOp::Max => check.type_among(self.ty, &[U32, S32, F32]),
            ReduxOp::And | ReduxOp::Or | ReduxOp::Xor => check.type_among(self.ty, &[B32]),
        };
        check.combination(!(self.abs || self.nan) || self.ty == F32, "`.abs` and `.NaN` go with `.f32`");
        // Its `.b32` is an integer: a `.f32` register is no operand.
        if self.ty == F32 {
            check.dst("d", self.d, F32);
            check.src("a", &self.a, F32);
        } else {
            check.word_dst("d", self.d);
            check.word_src("a", &self.a);
        }
        check.word_src("mask", &self.mask);
    }

    fn needs(&self, needs: &mut Needs) {
        if self.ty == Type::F32 {
            needs.version("`redux` of `.f32`", 8, 6);
            needs.add("`redux` of `.f32`", Requirement::Specific { specific: &[], family: &[100] });
        } else {
            needs.both("`redux`", (7, 0), 80);
        }
    }

    fn convergence(&self) -> Convergence {
        by_mask(&self.mask)
    }
}

impl Rule for Elect {
    fn check(&self, check: &mut Check<'_>) {
        if let Some(d) = self.d.first {
            check.word("d", d);
        }
        match self.d.second.flatten() {
            Some(p) => check.reg("p", p, Type::Pred),
            None => check.report(Code::OperandForm, "the result is a pair `d|p` with a predicate"),
        }
        check.word_src("mask", &self.mask);
    }

    fn needs(&self, needs: &mut Needs) {
        needs.both("`elect`", (8, 0), 90);
    }

    fn convergence(&self) -> Convergence {
        by_mask(&self.mask)
    }
}
