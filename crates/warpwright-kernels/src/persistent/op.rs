//! An op: the body of a kernel, or a piece of it, as a function that the decoder calls.
//!
//! Tracing a body gives its code and the list of values that the code loads from a record of `operands`. Two launches
//! are instances of one op if their code is the same text: then they differ in their records only.

use super::format;
use super::walk::Kept;
use std::fmt;
use std::sync::Arc;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_ptx::ir::{Arch, Type};

/// The body of a kernel, or a piece of one, that a [`PersistentDecoder`](super::PersistentDecoder) calls.
#[derive(Clone)]
pub struct Op {
    kernel: Arc<dyn AnyKernel + Send + Sync>,
    args: Arc<[ArgDesc]>,
    /// Which of the pieces of the body.
    piece: usize,
    /// Blocks of each piece; none where the body is one piece.
    pieces: Arc<[u32]>,
    /// Warps of a team, and of the block that it is a part of.
    warps: u32,
    block: u32,
    target: Arch,
    /// What a record holds, word by word.
    asked: Arc<[Asked]>,
    /// The PTX of a kernel that calls it and nothing else.
    code: Arc<str>,
}

/// Ops are equal where their code is.
impl PartialEq for Op {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for Op {}

impl KeyPart for Op {
    fn feed(&self, key: &mut Vec<u8>) {
        self.code.feed(key);
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Op").field("kernel", &self.name()).field("piece", &self.piece).finish()
    }
}

impl Op {
    /// The ops that do the work of a kernel's launch in blocks of `warps` warps, on devices of an architecture: one for
    /// each [piece](K::pieces) of its body.
    ///
    /// # Errors
    /// If the kernel refuses its configuration, if its body has mistakes, or if it cannot be called from the decoder:
    /// its blocks are not whole warps along x or do not divide `warps`; it wants dynamic shared memory, clusters or a
    /// cooperative launch; or it has an argument that is neither a buffer nor a number of 32 or 64 bits.
    pub fn of(
        kernel: &Arc<dyn AnyKernel + Send + Sync>,
        warps: u32,
        target: Arch,
    ) -> Result<Vec<Self>, BuildError> {
        kernel.check()?;
        let (args, rule) = (kernel.args(), kernel.launch());
        let refuse = |rule: &str| Err(BuildError::field("ops", kernel.entry(), rule));
        let block = warps;
        let Some(warps) = rule.team_warps(block) else {
            return refuse(&format!(
                "a kernel with blocks of whole warps along x, of a number that divides {block}"
            ));
        };
        if rule.dynamic_shared > 0 {
            return refuse("a kernel without dynamic shared memory, which the caller does not have");
        }
        if rule.cooperative || rule.cluster.is_some() {
            return refuse("a kernel whose blocks do not wait for one another");
        }
        let is_number = |arg: &ArgDesc| {
            matches!(arg.dtype, Type::U32 | Type::S32 | Type::F32 | Type::U64 | Type::S64 | Type::F64)
        };
        if let Some(arg) = args.iter().find(|arg| arg.role == Role::Scalar && !is_number(arg)) {
            let (name, ty) = (arg.name, arg.dtype.name());
            return refuse(&format!("a kernel whose numbers have 32 or 64 bits: `{name}` is {ty}"));
        }
        let args: Arc<[ArgDesc]> = args.into();
        let piece = |piece: usize| -> Result<Op, BuildError> {
            let (kernel, args) = (Arc::clone(kernel), Arc::clone(&args));
            let (pieces, asked, code) = ([].into(), [].into(), "".into());
            let op = Op { kernel, args, piece, pieces, warps, block, target, asked, code };
            let (code, CallDesc { asked, pieces }) = op.alone(target)?;
            Ok(Op { pieces: pieces.into(), asked: asked.into(), code: code.into(), ..op })
        };
        let first = piece(0)?;
        let others = 1..first.pieces.len();
        [Ok(first)].into_iter().chain(others.map(piece)).collect()
    }

    /// The PTX of a kernel that calls it and nothing else, and what the call asked for.
    fn alone(&self, target: Arch) -> Result<(String, CallDesc), BuildError> {
        let rule = LaunchRule::new(32 * self.block).min_sm(self.kernel.launch().min_sm);
        let mut built = build("op", &rule, target, |k| {
            let (operands, first) = (k.ptr("operands"), k.scalar("first"));
            self.run(k, operands, first, k.shared(Kept::WORDS));
        })?;
        let text = warpwright_ptx::print(&built.module);
        match built.calls.pop() {
            Some(call) => Ok((text, call)),
            None => Err(BuildError::field("ops", self.name(), "a kernel whose body is called")),
        }
    }

    /// The kernel.
    pub fn kernel(&self) -> &Arc<dyn AnyKernel + Send + Sync> {
        &self.kernel
    }

    /// Warps of the blocks that the op is for.
    pub fn block_warps(&self) -> u32 {
        self.block
    }

    /// Whether its record is the same on another target: what the body asks for may depend on that.
    pub(super) fn suits(&self, target: Arch) -> bool {
        let same = |ops: Vec<Op>| ops.get(self.piece).is_some_and(|op| op.operands().eq(self.operands()));
        target == self.target || Op::of(&self.kernel, self.block, target).is_ok_and(same)
    }

    /// The architecture that its code is for.
    pub fn target(&self) -> Arch {
        self.target
    }

    /// The index of the piece of the kernel's body.
    pub fn piece(&self) -> usize {
        self.piece
    }

    /// How many pieces the kernel's body has; 0 if its grid is not divided.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// The kernel whose body is called: the one that has promised to stay within its arguments, where one has.
    fn called(&self) -> &dyn AnyKernel {
        match self.kernel.bounded() {
            Some(bounded) => bounded,
            None => &*self.kernel,
        }
    }

    /// A readable name: the entry name of the op's kernel.
    pub fn name(&self) -> String {
        self.kernel.entry()
    }

    /// The arguments of the kernel that the code uses, in the order of the op's record.
    pub fn args(&self) -> impl Iterator<Item = &ArgDesc> {
        self.operands().filter_map(|asked| match asked {
            Asked::Arg(name) => self.args.iter().find(|arg| arg.name == *name),
            _ => None,
        })
    }

    /// The contents of a record, word by word after its head.
    pub fn operands(&self) -> impl Iterator<Item = &Asked> {
        self.asked.iter()
    }

    /// Warps of a warp group that runs the op.
    pub fn warps(&self) -> u32 {
        self.warps
    }

    /// The op's grid, from the numbers that the kernel's launch rule depends on; `None` if a number is missing or there
    /// are too many blocks.
    pub fn grid(&self, number: impl Fn(&str) -> Option<u64>) -> Option<[u32; 3]> {
        if let Some(&blocks) = self.pieces.get(self.piece) {
            return Some([blocks, 1, 1]);
        }
        let mut grid = [0; 3];
        for (extent, rule) in grid.iter_mut().zip(self.kernel.launch().grid) {
            *extent = u32::try_from(rule.evaluate(&number)?).ok()?;
        }
        Some(grid)
    }

    /// Warps that the kernel's launch rule wants resident on a multiprocessor; `None` if it does not say.
    pub fn resident_warps(&self) -> Option<u32> {
        let rule = self.kernel.launch();
        let Block::Exactly([threads, ..]) = rule.block else { return None };
        rule.resident_blocks.map(|blocks| blocks.saturating_mul(threads / 32))
    }

    /// The record in `operands` of the launch that the op was made from: see [`format::record`]. `grid` is in blocks of
    /// the op's kernel. `word` returns the address of a buffer or the bits of a number for [`Asked::Arg`], and the
    /// element of `operands` at which the words begin for [`Asked::Table`].
    ///
    /// # Errors
    /// Those of `word`.
    pub fn record<E>(
        &self,
        grid: [u32; 3],
        mut word: impl FnMut(&Asked) -> Result<u64, E>,
    ) -> Result<Vec<u64>, E> {
        let words = self.operands().map(|asked| match asked {
            Asked::Number(bits) => Ok(*bits),
            asked => word(asked),
        });
        Ok(format::record(grid, &words.collect::<Result<Vec<_>, E>>()?))
    }

    /// Runs the tiles from `first` on, up to the end that is kept, of the instance whose record is kept, by the teams of
    /// the block.
    ///
    /// Where the grid is a line, as that of products is, there are many tiles, and what they have in common is computed
    /// before the first. The other bodies run once or twice and want all registers: they read their operands each time.
    pub(super) fn run<'k>(
        &self,
        k: K<'k>,
        all: Ptr<'k, Global, u64>,
        first: Reg<'k, u32>,
        kept: Ptr<'k, Shared, u32>,
    ) {
        let team = k.teams(self.warps);
        let one = Extent::new(1);
        let [_, y_is, z_is] = self.kernel.launch().grid;
        let call = |at: Reg<'k, u32>| {
            let [x, y, z, _] = all.at(at).cast::<u32>().ld_vec::<4>(0);
            let record = at + format::RECORD_HEAD as u32;
            (Call::new(team, all, record).grid([x, y, z]).piece(self.piece), [x, y])
        };
        let line = (y_is == one && z_is == one).then(|| call(kept.ld(Kept::RECORD)).0);
        k.fold_while(
            first + team.number(),
            |tile| tile.lt(kept.ld(Kept::END)),
            |tile| {
                let zero = k.u32(0);
                let next = match &line {
                    Some(call) => {
                        call.run(self.called(), [tile, zero, zero]);
                        team.sync();
                        tile
                    }
                    None => {
                        let mine = kept.at(Kept::TILES).at(team.number());
                        // All have read what is there of the last tile.
                        team.sync();
                        k.when(k.lane().eq(0) & k.warp().eq(team.first_warp()), || mine.st(0, tile));
                        let (call, [x, y]) = call(kept.ld(Kept::RECORD));
                        // A division costs as much as some tiles, and most grids are a line after all.
                        let row = || {
                            let row = tile / x;
                            [tile - row * x, row % y, row / y]
                        };
                        let place = k.if_else(tile.lt(x), || [tile, zero, zero], row);
                        call.late(all.at(format::RECORD_HEAD as u32), kept.at(Kept::RECORD))
                            .run(self.called(), place);
                        team.sync();
                        mine.ld(0)
                    }
                };
                next + team.count()
            },
        );
    }
}
