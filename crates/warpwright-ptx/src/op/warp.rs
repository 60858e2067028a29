//! Exchanges between the lanes of a warp.

use super::{Rule, instruction, modifiers};
use crate::ir::*;
use crate::verify::Check;

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

impl Rule for Shfl {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Vote {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for ActiveMask {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Match {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Redux {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Elect {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}
