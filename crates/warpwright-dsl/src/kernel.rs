//! Kernels as configured types: arguments, launch rules, and how a body becomes a module.

use super::reg::Reg;
use super::state::{Base, ENTRY, Pointer, State};
use super::types::*;
use super::{Called, Extent, K, Ptr, SizeValue};
use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use warpwright_ptx::diag::{Code, Diagnostics};
use warpwright_ptx::ir::{self, Arch, Module, Name, Pointee, Space, Type, Variable};
use warpwright_ptx::op::convert::Cvta;
use warpwright_ptx::op::memory::Ld;

/// A kernel: a struct whose fields are its host-time configuration.
pub trait Kernel {
    /// The entry point's name, unique to the configuration.
    fn entry(&self) -> String;

    /// The arguments, in the order of the parameters; the body asks for each once, in any order.
    fn args(&self) -> Vec<ArgDesc>;

    /// How it is launched. The shared memory is that which the body asks for: see [`Built::launch`].
    fn launch(&self) -> LaunchRule;

    /// The algorithm.
    fn body(&self, k: K<'_>);

    /// The numbers of the configuration that the body asks for by name ([`K::size`], [`K::wide_size`],
    /// [`K::factor`]). Where another kernel [calls](super::Call) the body they may be registers.
    fn sizes(&self) -> Vec<(&'static str, SizeValue)> {
        Vec::new()
    }

    /// The tables that the body computes of its configuration, and asks for by name ([`K::configured_table`]), as the
    /// bits of their elements. Where another kernel [calls](super::Call) the body they may be anywhere in memory, aligned
    /// to 8 bytes.
    fn tables(&self) -> Vec<(&'static str, Vec<u64>)> {
        Vec::new()
    }

    /// The name of the code that the body makes where all its sizes are registers and all its tables are in memory:
    /// configurations of one code differ in these alone.
    fn code(&self) -> String {
        self.entry()
    }

    /// What a kernel with blocks of `threads` threads calls in place of launching this one, where that is not this
    /// one itself: the same with smaller blocks, or in parts that do not depend on one another.
    fn called(&self, threads: u32) -> Option<Vec<Called>> {
        let _ = threads;
        None
    }

    /// Whether the configuration is one that the kernel has. [`build`](Self::build) asks first, so that the
    /// body need not; the entry's name, the arguments and the launch rule are asked of any configuration.
    fn check(&self) -> Result<(), BuildError> {
        Ok(())
    }

    /// The kernel for a target, with all its mistakes if there are any.
    fn build(&self, target: Arch) -> Result<Built, BuildError> {
        self.check()?;
        let args = self.args();
        let built = build_with(&self.entry(), &self.launch(), target, &args, |k| self.body(k))?;
        check_args(&args, &built)?;
        Ok(built)
    }

    /// The module for a target.
    fn module(&self, target: Arch) -> Result<Module, BuildError> {
        Ok(self.build(target)?.module)
    }

    /// The PTX for a target.
    fn ptx(&self, target: Arch) -> Result<String, BuildError> {
        Ok(warpwright_ptx::print(&self.module(target)?))
    }
}

/// Why a kernel was not built.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// A field of the configuration has a value that the kernel does not take.
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        rule: String,
    },
    /// The mistakes of the body, each with its line.
    Mistakes(Diagnostics),
}

impl BuildError {
    /// The field's value is against the rule, which goes on from "it must be".
    pub fn field(field: &'static str, value: impl fmt::Display, rule: impl Into<String>) -> Self {
        BuildError::Field { field, value: value.to_string(), rule: rule.into() }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Field { field, value, rule } => {
                write!(f, "`{field}` cannot be `{value}`: it must be {rule}")
            }
            BuildError::Mistakes(mistakes) => mistakes.fmt(f),
        }
    }
}

impl std::error::Error for BuildError {}

impl From<Diagnostics> for BuildError {
    fn from(mistakes: Diagnostics) -> Self {
        BuildError::Mistakes(mistakes)
    }
}

/// A kernel that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// The module, with the kernel as its only function.
    pub module: Module,
    /// The launch rule, with the shared memory that the body asked for.
    pub launch: LaunchRule,
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgDesc {
    /// Its name.
    pub name: &'static str,
    /// Type of the scalar, or of the buffer's elements.
    pub dtype: Type,
    /// What the kernel does with it.
    pub role: Role,
    /// Number of elements.
    pub len: Extent,
    /// The inputs whose buffer an output may be. Any other overlap of what a kernel writes with what else it is
    /// given is a mistake of the caller.
    pub shares: &'static [&'static str],
}

/// What a kernel does with an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A buffer that it reads.
    In,
    /// A buffer that it writes.
    Out,
    /// A buffer that it reads and writes.
    InOut,
    /// A number.
    Scalar,
}

impl ArgDesc {
    /// A buffer that the kernel reads.
    pub fn input<T: Data>(name: &'static str, len: impl Into<Extent>) -> Self {
        ArgDesc { name, dtype: T::TYPE, role: Role::In, len: len.into(), shares: &[] }
    }

    /// A buffer that the kernel writes.
    pub fn output<T: Data>(name: &'static str, len: impl Into<Extent>) -> Self {
        ArgDesc { name, dtype: T::TYPE, role: Role::Out, len: len.into(), shares: &[] }
    }

    /// A buffer that the kernel reads and writes.
    pub fn in_out<T: Data>(name: &'static str, len: impl Into<Extent>) -> Self {
        ArgDesc { name, dtype: T::TYPE, role: Role::InOut, len: len.into(), shares: &[] }
    }

    /// A buffer whose element type is configuration.
    pub fn buffer(name: &'static str, dtype: Type, role: Role, len: impl Into<Extent>) -> Self {
        ArgDesc { name, dtype, role, len: len.into(), shares: &[] }
    }

    /// A number.
    pub fn scalar<T: Data>(name: &'static str) -> Self {
        ArgDesc { name, dtype: T::TYPE, role: Role::Scalar, len: Extent::new(1), shares: &[] }
    }

    /// The output may be exactly the buffer of any of these inputs, which have its element type: each element is
    /// read by the thread that writes it, or before it is written.
    pub fn may_share(mut self, inputs: &'static [&'static str]) -> Self {
        self.shares = inputs;
        self
    }
}

/// The threads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Block {
    /// These dimensions and no others (`.reqntid`).
    Exactly([u32; 3]),
    /// Any dimensions up to these (`.maxntid`).
    AtMost([u32; 3]),
}

/// How a kernel is launched.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchRule {
    /// The grid, in blocks.
    pub grid: [Extent; 3],
    /// The block, in threads.
    pub block: Block,
    /// Static shared memory, in bytes: found by the build.
    pub static_shared: u32,
    /// Dynamic shared memory, in bytes. More than 48 KiB has to be allowed before the launch.
    pub dynamic_shared: u32,
    /// Blocks per cluster.
    pub cluster: Option<[u32; 3]>,
    /// Whether all blocks must be resident at once.
    pub cooperative: bool,
    /// The oldest architecture that it runs on, as `sm_N`.
    pub min_sm: u16,
    /// Blocks that should be resident on each multiprocessor (`.minnctapersm`).
    pub resident_blocks: Option<u32>,
}

impl LaunchRule {
    /// One block of exactly that many threads; the other members say more.
    pub fn new(threads: u32) -> Self {
        LaunchRule {
            grid: [Extent::new(1); 3],
            block: Block::Exactly([threads, 1, 1]),
            static_shared: 0,
            dynamic_shared: 0,
            cluster: None,
            cooperative: false,
            min_sm: 75,
            resident_blocks: None,
        }
    }

    /// Sets the grid's first dimension.
    pub fn grid(mut self, blocks: impl Into<Extent>) -> Self {
        self.grid[0] = blocks.into();
        self
    }

    /// Sets the grid.
    pub fn grid_3d(mut self, blocks: [Extent; 3]) -> Self {
        self.grid = blocks;
        self
    }

    /// Sets the block's dimensions.
    pub fn block_3d(mut self, dims: [u32; 3]) -> Self {
        self.block = Block::Exactly(dims);
        self
    }

    /// Sets the dynamic shared memory.
    pub fn dynamic_shared(mut self, bytes: u32) -> Self {
        self.dynamic_shared = bytes;
        self
    }

    /// Sets the oldest architecture.
    pub fn min_sm(mut self, sm: u16) -> Self {
        self.min_sm = sm;
        self
    }
}

/// Builds a kernel: runs the body, and yields the module or all mistakes that the body made.
///
/// The module's `.version` is the lowest that its instructions and the target need.
#[track_caller]
pub fn build(
    entry: &str,
    launch: &LaunchRule,
    target: Arch,
    body: impl for<'k> FnOnce(K<'k>),
) -> Result<Built, Diagnostics> {
    build_with(entry, launch, target, &[], body)
}

/// The same with parameters in the order of `args`, whatever order the body asks for them in.
#[track_caller]
fn build_with(
    entry: &str,
    launch: &LaunchRule,
    target: Arch,
    args: &[ArgDesc],
    body: impl for<'k> FnOnce(K<'k>),
) -> Result<Built, Diagnostics> {
    let loc = Location::caller();
    let threads = match launch.block {
        Block::Exactly(dims) => Some(dims),
        Block::AtMost(_) => None,
    };
    let state = RefCell::new(State::new(target, threads));
    for arg in args {
        let ty = if arg.role == Role::Scalar { param_type(arg.dtype) } else { Type::U64 };
        state.borrow_mut().params.push((Variable::new(Space::Param, ty, arg.name), false));
    }
    if target.sm < launch.min_sm {
        let message = format!("`{entry}` needs sm_{} or later; the target is {target}", launch.min_sm);
        state.borrow_mut().mistake(Code::NeedsTarget, loc, message);
    }
    body(K::new(&state));
    let mut state = state.into_inner();
    for arg in args {
        if state.params.iter().any(|(param, asked)| *param.name == *arg.name && !asked) {
            state.mistake(Code::Parameter, loc, format!("the body declares no parameter `{}`", arg.name));
        }
    }
    let built = super::lower::module(&mut state, entry, launch, loc);
    match built {
        Some(built) if state.mistakes.is_empty() => Ok(built),
        _ => Err(Diagnostics::from(state.mistakes)),
    }
}

/// Checks that the argument list is the body's.
fn check_args(args: &[ArgDesc], built: &Built) -> Result<(), Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    for function in built.module.entries() {
        let mut report = |message: String| {
            diagnostics.push(warpwright_ptx::diag::Diagnostic::new(
                Code::Parameter,
                function.origin,
                message,
            ));
        };
        for (arg, param) in args.iter().zip(&function.params) {
            let &ir::Param::Variable(id) = param else { continue };
            let param = function.variable(id);
            let scalar = param.pointee.is_none();
            if scalar != (arg.role == Role::Scalar) {
                report(format!("the body disagrees on whether `{}` is a buffer", arg.name));
            } else if scalar && param_type(arg.dtype) != param.ty {
                report(format!(
                    "`{}` is {}, but the body says {}",
                    arg.name,
                    arg.dtype.name(),
                    param.ty.name()
                ));
            }
        }
        for arg in args {
            for other in arg.shares {
                let input = args.iter().find(|arg| arg.name == *other);
                if arg.role != Role::Out {
                    report(format!("only an output may share a buffer, and `{}` is none", arg.name));
                } else if !input.is_some_and(|input| input.role == Role::In && input.dtype == arg.dtype) {
                    report(format!(
                        "`{}` may share the buffer of `{other}`, which is no input of {}",
                        arg.name,
                        arg.dtype.name()
                    ));
                }
            }
        }
        for param in function.params.iter().skip(args.len()) {
            if let ir::Param::Variable(id) = param {
                report(format!("the argument list lacks `{}`", function.variable(*id).name));
            }
        }
    }
    if diagnostics.is_empty() { Ok(()) } else { Err(diagnostics) }
}

fn param_type(ty: Type) -> Type {
    match ty {
        Type::F16 | Type::BF16 => Type::B16,
        Type::F16X2 | Type::BF16X2 => Type::B32,
        ty => ty,
    }
}

impl<'k> K<'k> {
    /// A parameter: a buffer in global memory that the kernel reads.
    #[track_caller]
    pub fn ptr<T: Data>(self, name: &str) -> Ptr<'k, Global, T> {
        self.buffer(name, false)
    }

    /// A parameter: a buffer in global memory that the kernel writes, or reads and writes.
    #[track_caller]
    pub fn ptr_mut<T: Data>(self, name: &str) -> Ptr<'k, Global, T> {
        self.buffer(name, true)
    }

    #[track_caller]
    fn buffer<T: Data>(self, name: &str, mutable: bool) -> Ptr<'k, Global, T> {
        let loc = Location::caller();
        let recorded = self.framed_address(name).map(|address| self.global_address(address, loc));
        let framed = self.state().framed_buffer(name, recorded, mutable, loc);
        if let Some(pointer) = framed {
            return Ptr::new(self, pointer);
        }
        let mut variable = Variable::new(Space::Param, Type::U64, name);
        // Device allocations are aligned to 256 bytes, and views of them to what an access needs.
        variable.pointee = Some(Pointee { space: Some(Space::Global), align: Some(16) });
        let loaded = self.parameter(variable, Type::U64, loc);
        let mut state = self.state();
        let base = state.pure_in(ENTRY, Type::U64, loc, |d| {
            Cvta { to: true, space: Space::Global, ty: Type::U64, d: ir::Dst(d), a: loaded.into() }.into()
        });
        drop(state);
        let base = Base::Reg(base);
        Ptr::new(
            self,
            Pointer { base, form: super::form::FormId::ZERO, narrow: false, mutable, shifting: false },
        )
    }

    /// A generic address as one of global memory.
    pub(super) fn global_address(self, address: Reg<'k, u64>, loc: super::state::Loc) -> ir::Reg {
        let mut state = self.state();
        let a = state.operand(address.id, loc);
        state.pure(Type::U64, loc, |d| {
            Cvta { to: true, space: Space::Global, ty: Type::U64, d: ir::Dst(d), a }.into()
        })
    }

    /// A parameter: a number.
    #[track_caller]
    pub fn scalar<T: Data>(self, name: &str) -> Reg<'k, T> {
        let loc = Location::caller();
        let framed = self.state().framed_number(name, T::TYPE, loc);
        if let Some(id) = framed {
            return Reg::new(self, id);
        }
        let variable = Variable::new(Space::Param, param_type(T::TYPE), name);
        Reg::new(self, self.parameter(variable, T::TYPE, loc))
    }

    fn parameter(self, mut variable: Variable, ty: Type, loc: super::state::Loc) -> ir::Reg {
        let mut state = self.state();
        let known = state.params.iter().position(|(param, _)| param.name == variable.name);
        if known.is_some_and(|at| state.params[at].1) {
            return state.mistake(Code::Redeclared, loc, format!("two parameters `{}`", variable.name));
        }
        if !is_identifier(&variable.name) {
            let message = format!("`{}` is no name for a parameter", variable.name);
            return state.mistake(Code::Syntax, loc, message);
        }
        variable.origin = ir::Origin::Rust(loc);
        let memory = variable.ty;
        let at = known.unwrap_or(state.params.len());
        match state.params.get_mut(at) {
            Some(known) => *known = (variable, true),
            None => state.params.push((variable, true)),
        }
        let symbol = ir::Symbol::Local(ir::VarId(at as u32));
        state.pure_in(ENTRY, ty, loc, |d| {
            Ld {
                mmio: false,
                semantics: None,
                scope: None,
                space: Some(Space::Param),
                cache: None,
                nc: false,
                l1_eviction: None,
                l2_eviction: None,
                cache_hint: false,
                prefetch: None,
                vector: None,
                ty: memory,
                readonly: false,
                unified: ir::Unified::default(),
                d: ir::Dsts::One(d),
                address: ir::Address::symbol(symbol, 0),
                policy: None,
            }
            .into()
        })
    }
}

/// Whether a text can name a parameter or kernel.
pub(super) fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() > usize::from(name.starts_with('_'))
        && !is_reserved(name)
}

/// Whether the DSL gives such names to labels and arrays: `fold_1_end`, `tile_0`.
fn is_reserved(name: &str) -> bool {
    let stem = name.trim_end_matches("_end").trim_end_matches(|c: char| c == '_' || c.is_ascii_digit());
    let numbered = [
        "each", "fold", "while", "when", "else", "switch", "case", "loop", "labelled", "tile", "stack",
        "table",
    ];
    name == "dynamic_shared" || name == "collective" || (stem != name && numbered.contains(&stem))
}

/// The name of the dynamic shared memory.
pub(super) fn dynamic_name() -> Name {
    "dynamic_shared".into()
}

impl State {
    /// A special register, read once for the kernel.
    pub(super) fn special(&mut self, special: ir::Special, ty: Type, loc: super::state::Loc) -> ir::Reg {
        if let Some(reg) = self.framed(special) {
            return reg;
        }
        if let Some((_, reg)) = self.specials.iter().find(|(known, _)| *known == special) {
            return *reg;
        }
        let reg = self.pure_in(ENTRY, ty, loc, |d| {
            super::emit::mov(special.register.ty(), d, ir::Src::Special(special))
        });
        self.specials.push((special, reg));
        reg
    }
}
