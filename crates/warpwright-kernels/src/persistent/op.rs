//! An op: a kernel whose body the decoder calls, and how its operands are read.
//!
//! Two launches are instances of one op where what is built of calling their kernels is the same text, with all sizes in
//! registers and all tables in memory: then they differ in what a record of `operands` holds, and in nothing else.

use super::format;
use super::walk::Kept;
use std::fmt;
use std::sync::Arc;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_ptx::ir::{Arch, Type};

/// Warps of a block that takes any op.
const MAX_WARPS: u32 = 8;

/// The size that says how many warps a block has, where that is chosen for each instance.
const WARPS: &str = "warps";

/// What of an argument a record shows.
fn layout(arg: &ArgDesc) -> (&'static str, Type, Role) {
    (arg.name, arg.dtype, arg.role)
}

/// A kernel whose body a [`PersistentDecoder`](super::PersistentDecoder) calls.
#[derive(Clone)]
pub struct Op {
    kernel: Arc<dyn AnyKernel + Send + Sync>,
    args: Vec<ArgDesc>,
    sizes: Vec<(&'static str, SizeValue)>,
    tables: Vec<&'static str>,
    /// For each argument, whether nobody writes it while the decoder runs.
    frozen: Vec<bool>,
    /// Warps of a team; none where any number will do.
    warps: Option<u32>,
    /// The PTX of a kernel that calls it and nothing else, with nothing frozen.
    code: Arc<str>,
}

/// Ops are equal where their code and the layout of their records are.
impl PartialEq for Op {
    fn eq(&self, other: &Self) -> bool {
        self.has_code_of(other) && self.frozen == other.frozen
    }
}

impl Eq for Op {}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Op").field(&self.name()).finish()
    }
}

impl Op {
    /// The op that calls the kernel's body, on devices of an architecture. None of its arguments is frozen.
    ///
    /// # Errors
    /// Where the kernel refuses its configuration, or the body has mistakes when it is called; and where it cannot be called: its blocks are not whole warps along
    /// x, it wants dynamic shared memory, clusters or a cooperative launch, or it has an argument that is no buffer and
    /// no number of 32 or 64 bits.
    pub fn new(kernel: Arc<dyn AnyKernel + Send + Sync>, target: Arch) -> Result<Self, BuildError> {
        kernel.check()?;
        let (args, sizes, rule) = (kernel.args(), kernel.sizes(), kernel.launch());
        let refuse = |rule: &str| Err(BuildError::field("ops", kernel.entry(), rule));
        let threads = match rule.block {
            Block::Exactly([threads, 1, 1]) if threads > 0 && threads.is_multiple_of(32) => threads,
            _ => return refuse("a kernel with blocks of whole warps along x, of a number that it fixes"),
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
        let any = sizes.iter().any(|(name, _)| *name == WARPS);
        let frozen = vec![false; args.len()];
        let tables = kernel.tables().into_iter().map(|(name, _)| name).collect();
        let warps = (!any).then_some(threads / 32);
        let op = Op { kernel, args, sizes, tables, frozen, warps, code: "".into() };
        let code = op.alone(target)?.into();
        Ok(Op { code, ..op })
    }

    /// The PTX of a kernel that calls it and nothing else.
    fn alone(&self, target: Arch) -> Result<String, BuildError> {
        let rule = LaunchRule::new(32 * self.warps.unwrap_or(MAX_WARPS)).min_sm(self.kernel.launch().min_sm);
        let built = build("op", &rule, target, |k| {
            let (operands, first) = (k.ptr("operands"), k.scalar("first"));
            self.run(k, operands, first, k.shared(Kept::WORDS));
        })?;
        Ok(warpwright_ptx::print(&built.module))
    }

    /// Whether instances of the one are instances of the other, as far as nothing is frozen.
    pub fn has_code_of(&self, other: &Op) -> bool {
        self.code == other.code
            && self.args.iter().map(layout).eq(other.args.iter().map(layout))
            && self.tables == other.tables
            && self.sizes.iter().map(|(name, _)| name).eq(other.sizes.iter().map(|(name, _)| name))
    }

    /// The same with arguments that nobody writes while the decoder runs, such as weights: they may be loaded through
    /// the read-only cache.
    ///
    /// # Errors
    /// Where the kernel has no argument of that name, or writes it.
    pub fn frozen(mut self, names: &[&str]) -> Result<Self, BuildError> {
        for name in names {
            let known = self.args.iter().position(|arg| arg.name == *name && arg.role == Role::In);
            let Some(at) = known else {
                let rule = format!("a buffer that `{}` only reads", self.kernel.entry());
                return Err(BuildError::field("frozen", name, rule));
            };
            self.frozen[at] = true;
        }
        Ok(self)
    }

    /// Whether nobody writes an argument while the decoder runs.
    pub fn is_frozen(&self, name: &str) -> bool {
        self.args.iter().zip(&self.frozen).any(|(arg, frozen)| arg.name == name && *frozen)
    }

    /// The kernel.
    pub fn kernel(&self) -> &Arc<dyn AnyKernel + Send + Sync> {
        &self.kernel
    }

    /// The kernel whose body is called: the one that has promised to stay within its arguments, where one has.
    fn called(&self) -> &dyn AnyKernel {
        match self.kernel.bounded() {
            Some(bounded) => bounded,
            None => &*self.kernel,
        }
    }

    /// Its name for people: the entry of the kernel that it was made of.
    pub fn name(&self) -> String {
        self.kernel.entry()
    }

    /// The PTX of a kernel that calls it and nothing else, with nothing frozen.
    pub(super) fn code(&self) -> &str {
        &self.code
    }

    /// The arguments of an instance, in the order of its record.
    pub fn args(&self) -> &[ArgDesc] {
        &self.args
    }

    /// The sizes of an instance, in the order of its record, with the values of the kernel that the op was made of.
    pub fn sizes(&self) -> &[(&'static str, SizeValue)] {
        &self.sizes
    }

    /// The [tables](AnyKernel::tables) of an instance, in the order of its record.
    pub fn tables(&self) -> &[&'static str] {
        &self.tables
    }

    /// Warps of a team that runs it; `None` where each instance may choose.
    pub fn warps(&self) -> Option<u32> {
        self.warps
    }

    /// Warps that its own launch rule wants on a multiprocessor at once; `None` where it does not say.
    pub fn resident_warps(&self) -> Option<u32> {
        let rule = self.kernel.launch();
        let Block::Exactly([threads, ..]) = rule.block else { return None };
        rule.resident_blocks.map(|blocks| blocks * (threads / 32))
    }

    /// The record of an instance in `operands`: see [`format::record`]. `args`, `sizes` and `tables` are in the order of
    /// [`args`](Self::args), [`sizes`](Self::sizes) and [`tables`](Self::tables), `grid` is in blocks of the op's
    /// kernel, and `warps` is the number of warps of a team.
    ///
    /// # Errors
    /// Where they are not as many, or of other types, or `warps` is not what the op or the size of that name says.
    pub fn record(
        &self,
        grid: [u32; 3],
        warps: u32,
        args: &[u64],
        sizes: &[SizeValue],
        tables: &[u32],
    ) -> Result<Vec<u64>, BuildError> {
        let refuse = |field: &'static str, value: String, rule: String| {
            Err(BuildError::field(field, value, format!("{rule}, for `{}`", self.name())))
        };
        if args.len() != self.args.len() {
            return refuse("args", args.len().to_string(), self.args.len().to_string());
        }
        if sizes.len() != self.sizes.len() {
            return refuse("sizes", sizes.len().to_string(), self.sizes.len().to_string());
        }
        if tables.len() != self.tables.len() {
            return refuse("tables", tables.len().to_string(), self.tables.len().to_string());
        }
        for (given, (name, wanted)) in sizes.iter().zip(&self.sizes) {
            if std::mem::discriminant(given) != std::mem::discriminant(wanted) {
                return refuse("sizes", format!("{given:?}"), format!("`{name}`, like {wanted:?}"));
            }
            if *name == WARPS && given.bits() != u64::from(warps) {
                return refuse(WARPS, warps.to_string(), format!("the size of that name, {}", given.bits()));
            }
        }
        if self.warps.is_some_and(|own| own != warps) {
            return refuse(WARPS, warps.to_string(), self.warps.unwrap_or(0).to_string());
        }
        Ok(format::record(grid, warps, args, sizes, tables))
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
        let record = || all.at(kept.ld(Kept::RECORD));
        let head = || record().cast::<u32>().ld_vec::<4>(0);
        let team = match self.warps {
            Some(warps) => k.teams(warps),
            None => k.teams_of(head()[3]),
        };
        let one = Extent::new(1);
        let [_, y_is, z_is] = self.kernel.launch().grid;
        let line = (y_is == one && z_is == one).then(|| self.call(team, all, record(), None));
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
                        let [x, y, ..] = head();
                        // A division costs as much as some tiles, and most grids are a line after all.
                        let row = || {
                            let row = tile / x;
                            [tile - row * x, row % y, row / y]
                        };
                        let place = k.if_else(tile.lt(x), || [tile, zero, zero], row);
                        self.call(team, all, record(), Some(kept.at(Kept::RECORD))).run(self.called(), place);
                        team.sync();
                        mine.ld(0)
                    }
                };
                next + team.count()
            },
        );
    }

    /// A call with the operands of a record. Where it is `kept` where the record begins, buffers that the body writes
    /// are looked up when it asks for them: that is late, and until then its registers are better used.
    fn call<'k>(
        &self,
        team: Team<'k>,
        all: Ptr<'k, Global, u64>,
        record: Ptr<'k, Global, u64>,
        kept: Option<Ptr<'k, Shared, u32>>,
    ) -> Call<'k> {
        let [x, y, z, warps] = record.cast::<u32>().ld_vec::<4>(0);
        let words = self.args.len() + self.sizes.len() + self.tables.len();
        let operands: Vec<Reg<'k, u64>> = (0..words.div_ceil(2))
            .flat_map(|pair| record.ld_vec::<2>((format::RECORD_HEAD + 2 * pair) as u32))
            .collect();
        let (args, rest) = operands.split_at(self.args.len());
        let (sizes, tables) = rest.split_at(self.sizes.len());
        let mut call = Call::new(team).grid([x, y, z]);
        if let Some(kept) = kept {
            call = call.record(all, kept);
        }
        for (i, ((arg, frozen), &bits)) in self.args.iter().zip(&self.frozen).zip(args).enumerate() {
            let name = arg.name;
            call = match (arg.role, arg.dtype) {
                (Role::Out | Role::InOut, _) if kept.is_some() => {
                    call.recorded(name, (format::RECORD_HEAD + i) as u32, *frozen)
                }
                (Role::Scalar, Type::U32) => call.number(name, bits.to::<u32>()),
                (Role::Scalar, Type::S32) => call.number(name, bits.to::<i32>()),
                (Role::Scalar, Type::F32) => call.number(name, bits.to::<u32>().bits::<f32>()),
                (Role::Scalar, Type::S64) => call.number(name, bits.to::<i64>()),
                (Role::Scalar, Type::F64) => call.number(name, bits.bits::<f64>()),
                (Role::Scalar, _) => call.number(name, bits),
                _ => call.buffer(name, bits, *frozen),
            };
        }
        for ((name, value), &bits) in self.sizes.iter().zip(sizes) {
            call = match value {
                SizeValue::U32(_) if *name == WARPS => call.size(name, warps),
                SizeValue::U32(_) => call.size(name, bits.to::<u32>()),
                SizeValue::U64(_) => call.wide_size(name, bits),
                SizeValue::F32(_) => call.factor(name, bits.to::<u32>().bits::<f32>()),
            };
        }
        for (name, &at) in self.tables.iter().zip(tables) {
            call = call.table(name, all.at(at.to::<u32>()));
        }
        call
    }
}
