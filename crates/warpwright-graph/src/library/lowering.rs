//! Lowering of a kernel and its arguments to a launch.

use super::kernels::Kernels;
use crate::graph::{Element, Tensor, TensorType};
use crate::launch::{
    Action, ArgSource, ConfiguredKernel, PlannedLaunch, Scratch, ScratchId, Unsupported, WeightLayout, planes,
};
use crate::options::PlanOptions;
use crate::program::Program;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::{ArgDesc, Arguments, Block, Data, Kernel, Mode, Role, Sink};
use warpwright_kernels::tune::{Shape, Table};
use warpwright_ptx::ir::Type;

pub(super) type Result<T> = std::result::Result<T, Box<Unsupported>>;

/// No kernel has that form.
pub(super) fn form<T>(rule: impl Into<String>) -> Result<T> {
    Err(Box::new(Unsupported::Form(rule.into())))
}

/// An argument of a launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaunchArg {
    source: Source,
    /// Bytes that are read or written, where that is not all.
    moved: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// A part of a tensor, from this element on.
    Plane(Tensor, usize, u64),
    Weights(Tensor, WeightLayout),
    Scratch(ScratchId),
    U32(u32),
}

impl LaunchArg {
    /// The scalar.
    pub(super) fn u32(value: u32) -> Self {
        LaunchArg { source: Source::U32(value), moved: None }
    }

    /// The weights, in the planes of products.
    pub(super) fn planes(tensor: Tensor) -> Self {
        LaunchArg { source: Source::Weights(tensor, WeightLayout::Planes), moved: None }
    }

    /// The weights, in rows.
    pub(super) fn rows(tensor: Tensor) -> Self {
        LaunchArg { source: Source::Weights(tensor, WeightLayout::Rows), moved: None }
    }

    /// Part `plane` of a tensor, from element `at` on.
    pub(super) fn part(tensor: Tensor, plane: usize, at: u64) -> Self {
        LaunchArg { source: Source::Plane(tensor, plane, at), moved: None }
    }

    /// Sets how many bytes are read or written.
    pub(super) fn moves(self, bytes: u64) -> Self {
        LaunchArg { moved: Some(bytes), ..self }
    }
}

impl From<Tensor> for LaunchArg {
    fn from(tensor: Tensor) -> Self {
        LaunchArg::part(tensor, 0, 0)
    }
}

impl From<ScratchId> for LaunchArg {
    fn from(scratch: ScratchId) -> Self {
        LaunchArg { source: Source::Scratch(scratch), moved: None }
    }
}

/// The arguments of a launch of a plan, as a [`Mode`] of a kernel's arguments.
pub(super) struct Planned;

impl Mode for Planned {
    type In<T: Data> = LaunchArg;
    type Out<T: Data> = LaunchArg;
    type InOut<T: Data> = LaunchArg;
    type Scalar<T: Data> = LaunchArg;
    type AnyIn = LaunchArg;
    type AnyOut = LaunchArg;
    type AnyInOut = LaunchArg;
    type Dim = u64;
}

/// Arguments of a launch by name, and the numbers that it depends on beside them.
#[derive(Default)]
struct Names {
    args: Vec<(&'static str, LaunchArg)>,
    dims: Vec<(&'static str, u64)>,
}

impl Sink<Planned> for Names {
    fn input<T: Data>(&mut self, name: &'static str, value: LaunchArg) {
        self.args.push((name, value));
    }

    fn output<T: Data>(&mut self, name: &'static str, value: LaunchArg) {
        self.args.push((name, value));
    }

    fn in_out<T: Data>(&mut self, name: &'static str, value: LaunchArg) {
        self.args.push((name, value));
    }

    fn scalar<T: Data>(&mut self, name: &'static str, value: LaunchArg) {
        self.args.push((name, value));
    }

    fn any_input(&mut self, name: &'static str, value: LaunchArg) {
        self.args.push((name, value));
    }

    fn any_output(&mut self, name: &'static str, value: LaunchArg) {
        self.args.push((name, value));
    }

    fn any_in_out(&mut self, name: &'static str, value: LaunchArg) {
        self.args.push((name, value));
    }

    fn dim(&mut self, name: &'static str, value: u64) {
        self.dims.push((name, value));
    }
}

/// A step on its way to launches.
pub(super) struct Lowering<'a> {
    pub(super) program: &'a Program,
    pub(super) options: &'a PlanOptions,
    step: usize,
    kernels: &'a mut Kernels,
    scratch: &'a mut Vec<Scratch>,
    choices: &'a mut Table,
    actions: Vec<Action>,
}

/// The largest grid.
const MAX_BLOCKS: [u64; 3] = [(1 << 31) - 1, 65_535, 65_535];
const GRID: [&str; 3] = ["grid.x", "grid.y", "grid.z"];

impl<'a> Lowering<'a> {
    pub(super) fn new(
        program: &'a Program,
        options: &'a PlanOptions,
        step: usize,
        kernels: &'a mut Kernels,
        (scratch, choices): (&'a mut Vec<Scratch>, &'a mut Table),
    ) -> Self {
        Lowering { program, options, step, kernels, scratch, choices, actions: Vec::new() }
    }

    /// The actions of the step.
    pub(super) fn finish(self) -> Vec<Action> {
        self.actions
    }

    pub(super) fn ty(&self, tensor: Tensor) -> TensorType {
        self.program.ty(tensor)
    }

    /// Rows of a tensor, as kernels count them.
    pub(super) fn rows(&self, tensor: Tensor) -> Result<u32> {
        rows(self.ty(tensor))
    }

    /// Scratch that lives for the step.
    pub(super) fn scratch(&mut self, dtype: Type, len: u64) -> ScratchId {
        self.piece(Scratch { dtype, len, zeroed: false, step: self.step })
    }

    /// Scratch that is zero before the launch and after it.
    pub(super) fn zeroed(&mut self, dtype: Type, len: u64) -> ScratchId {
        self.piece(Scratch { dtype, len, zeroed: true, step: self.step })
    }

    fn piece(&mut self, piece: Scratch) -> ScratchId {
        self.scratch.push(piece);
        ScratchId(self.scratch.len() as u32 - 1)
    }

    /// Chooses for a shape, and keeps what was chosen.
    pub(super) fn choose<S: Shape>(&mut self, shape: &S) -> S::Choice {
        let tuning = &self.options.tuning;
        let choice = tuning.choose(shape);
        self.choices.set(&tuning.device.name, shape, &choice);
        choice
    }

    /// Copies a tensor.
    pub(super) fn copy(&mut self, from: Tensor, to: Tensor) {
        self.actions.push(Action::Copy { from, to });
    }

    /// Launches a kernel with its arguments.
    pub(super) fn launch_with<T>(&mut self, kernel: T, args: T::Args<Planned>) -> Result<()>
    where
        T: Kernel + Send + Sync,
    {
        let mut names = Names::default();
        args.give(&mut names);
        self.launch(kernel, &names.dims, &names.args)
    }

    /// Launches a kernel with its arguments, by name and in its order, and the numbers that it depends on beside them.
    pub(super) fn launch<T>(
        &mut self,
        kernel: T,
        dims: &[(&'static str, u64)],
        given: &[(&'static str, LaunchArg)],
    ) -> Result<()>
    where
        T: AnyKernel + Send + Sync + 'static,
    {
        let kernel = self.kernels.get(kernel, self.options.arch())?;
        let scalars = given.iter().filter_map(|&(name, given)| match given.source {
            Source::U32(value) => Some((name, u64::from(value))),
            _ => None,
        });
        let known: Vec<(&str, u64)> = dims.iter().copied().chain(scalars).collect();
        let known = |name: &str| known.iter().find(|&&(known, _)| known == name).map(|&(_, value)| value);
        if kernel.args.len() != given.len() {
            let count = |count: usize| format!("{count} arguments");
            return Err(mismatch(&kernel, count(kernel.args.len()), count(given.len())));
        }
        let mut args = Vec::with_capacity(given.len());
        let mut bytes = 0u64;
        for (desc, &(name, given)) in kernel.args.iter().zip(given) {
            if desc.name != name {
                return Err(mismatch(&kernel, format!("`{}`", desc.name), format!("`{name}`")));
            }
            let len = desc.len.evaluate(known).ok_or_else(|| {
                let needed = format!("{} elements as `{name}`", desc.len);
                mismatch(&kernel, needed, "no such number".into())
            })?;
            args.push((name, self.source(&kernel, desc, given.source, len)?));
            bytes = bytes.saturating_add(moved(desc, given.moved, len));
        }
        let mut grid = [1; 3];
        for i in 0..3 {
            let blocks = kernel.rule.grid[i].evaluate(known).unwrap_or(u64::MAX);
            if blocks > MAX_BLOCKS[i] {
                let what = format!("{} of `{}`", GRID[i], kernel.entry);
                return Err(Box::new(Unsupported::Limit { what, value: blocks, max: MAX_BLOCKS[i] }));
            }
            grid[i] = blocks as u32;
        }
        let (Block::Exactly(block) | Block::AtMost(block)) = kernel.rule.block;
        let dims = dims.to_vec();
        self.actions.push(Action::Launch(PlannedLaunch {
            kernel,
            args,
            dims,
            grid,
            block,
            bytes,
            overlaps: false,
        }));
        Ok(())
    }

    /// The source of an argument with this many elements.
    fn source(
        &self,
        kernel: &ConfiguredKernel,
        desc: &ArgDesc,
        source: Source,
        len: u64,
    ) -> Result<ArgSource> {
        let is_scalar = desc.role == Role::Scalar;
        let (dtype, there, source) = match source {
            Source::U32(value) => (Type::U32, 1, ArgSource::U32(value)),
            Source::Scratch(id) => {
                let piece = self.scratch[id.index()];
                (piece.dtype, piece.len, ArgSource::Scratch(id))
            }
            Source::Weights(tensor, layout) => {
                let there = self.weight_bytes(tensor, layout) / u64::from(desc.dtype.bytes());
                (desc.dtype, there, ArgSource::Weights { tensor, layout })
            }
            Source::Plane(tensor, plane, at) => {
                let (dtype, there) = match planes(self.ty(tensor)).get(plane) {
                    // Any elements are bytes.
                    Some(part) if desc.dtype == Type::U8 => (Type::U8, part.bytes()),
                    Some(part) => (part.dtype, part.len),
                    None => (desc.dtype, 0),
                };
                (dtype, there.saturating_sub(at), ArgSource::Tensor { tensor, plane, at, len })
            }
        };
        let whole = !matches!(source, ArgSource::Tensor { .. });
        let fits = if whole { len == there } else { len <= there };
        if dtype != desc.dtype || !fits || is_scalar != matches!(source, ArgSource::U32(_)) {
            let elements = |len, dtype: Type| format!("{len} of {} as `{}`", dtype.name(), desc.name);
            return Err(mismatch(kernel, elements(len, desc.dtype), elements(there, dtype)));
        }
        Ok(source)
    }

    fn weight_bytes(&self, tensor: Tensor, layout: WeightLayout) -> u64 {
        let ty = self.ty(tensor);
        match (ty.element, rows(ty)) {
            (Element::Weights(format), Ok(n)) => layout.bytes(format, n, ty.shape.columns()),
            _ => 0,
        }
    }
}

/// Rows of a tensor, as kernels count them.
pub(super) fn rows(ty: TensorType) -> Result<u32> {
    let rows = ty.shape.rows();
    let max = u64::from(u32::MAX);
    let limit =
        |_| Box::new(Unsupported::Limit { what: format!("the number of rows of {ty}"), value: rows, max });
    u32::try_from(rows).map_err(limit)
}

/// Bytes that a launch moves for an argument.
fn moved(desc: &ArgDesc, moved: Option<u64>, len: u64) -> u64 {
    let all = len.saturating_mul(desc.dtype.bytes().into());
    match desc.role {
        Role::Scalar => 0,
        // Rows that are read twice are read once.
        Role::In | Role::Out => moved.unwrap_or(all).min(all),
        Role::InOut => moved.unwrap_or(all).min(all).saturating_mul(2),
    }
}

fn mismatch(kernel: &ConfiguredKernel, needed: String, given: String) -> Box<Unsupported> {
    Box::new(Unsupported::Argument { kernel: kernel.entry.clone(), needed, given })
}
