//! A kernel's description as data (arguments, launch rule), and how a body becomes a module.

use super::call::Asked;
use super::checked::{bytes_of, without_bytes};
use super::emit;
use super::reg::Reg;
use super::state::{Base, ENTRY, Pointer, State};
use super::types::*;
use super::{Extent, K, Ptr};
use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use warpwright_ptx::diag::{Code, Diagnostics};
use warpwright_ptx::ir::{self, Arch, Module, Name, Pointee, Space, Type, Variable};
use warpwright_ptx::op::convert::Cvta;

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
    /// The field's value breaks the rule; the message continues the rule after "it must be".
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

/// What cannot fail fails with no mistake.
impl From<std::convert::Infallible> for BuildError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

/// A kernel that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// The module, with the kernel as its only function.
    pub module: Module,
    /// The launch rule, with the shared memory that the body requested.
    pub launch: LaunchRule,
    /// What each [called](super::Call) body requested, in the order of the calls.
    pub calls: Vec<super::CallDesc>,
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
    /// The inputs that an output may share its buffer with. Any other overlap between a buffer that the kernel writes
    /// and another argument is an error of the caller.
    pub shares: &'static [&'static str],
    /// Whether an input does not change while the kernel runs, such as weights and tables. The kernel reads it
    /// through the read-only cache (`ld.global.nc`), and may do so before it
    /// [waits for launches](K::wait_for_launches): it does not overlap with a launch that writes the input.
    pub constant: bool,
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
        Self::buffer(name, T::TYPE, Role::In, len)
    }

    /// A buffer that the kernel writes.
    pub fn output<T: Data>(name: &'static str, len: impl Into<Extent>) -> Self {
        Self::buffer(name, T::TYPE, Role::Out, len)
    }

    /// A buffer that the kernel reads and writes.
    pub fn in_out<T: Data>(name: &'static str, len: impl Into<Extent>) -> Self {
        Self::buffer(name, T::TYPE, Role::InOut, len)
    }

    /// A buffer whose element type the configuration chooses.
    pub fn buffer(name: &'static str, dtype: Type, role: Role, len: impl Into<Extent>) -> Self {
        ArgDesc { name, dtype, role, len: len.into(), shares: &[], constant: false }
    }

    /// A number.
    pub fn scalar<T: Data>(name: &'static str) -> Self {
        Self::buffer(name, T::TYPE, Role::Scalar, 1)
    }

    /// Marks the input as [`constant`](Self::constant).
    pub fn constant(mut self) -> Self {
        self.constant = true;
        self
    }

    /// The output may use exactly the buffer of any of these inputs, which must have its element type. Each element
    /// must be read by the thread that writes it, or before it is written.
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

impl Block {
    /// The maximum number of threads of a block.
    pub fn threads(self) -> u32 {
        let (Block::Exactly(dims) | Block::AtMost(dims)) = self;
        dims.into_iter().fold(1, u32::saturating_mul)
    }
}

/// How a kernel is launched.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchRule {
    /// The grid, in blocks.
    pub grid: [Extent; 3],
    /// The block, in threads.
    pub block: Block,
    /// Static shared memory in bytes, which the build computes.
    pub static_shared: u32,
    /// Dynamic shared memory in bytes. More than 48 KiB must be enabled before the launch.
    pub dynamic_shared: u32,
    /// Blocks per cluster.
    pub cluster: Option<[u32; 3]>,
    /// Whether all blocks must be resident at once.
    pub cooperative: bool,
    /// The oldest architecture that it runs on, as `sm_N`.
    pub min_sm: u16,
    /// Blocks that should be resident on each multiprocessor (`.minnctapersm`).
    pub resident_blocks: Option<u32>,
    /// Whether the body reads the number of threads ([`K::threads`]), and neither its results nor its grid depend on
    /// it. A [caller](super::Call) can then run the body with a team of any number of warps.
    pub any_warps: bool,
}

impl LaunchRule {
    /// A rule for one block of exactly `threads` threads; the other methods change it.
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
            any_warps: false,
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

    /// The body works with any number of warps: see [`any_warps`](Self::any_warps).
    pub fn any_warps(mut self) -> Self {
        self.any_warps = true;
        self
    }

    /// Number of warps per team when a block of `max` warps runs the body in equal teams: the kernel's own number,
    /// or, if it [takes any](Self::any_warps), the next lower power of two. `None` if the block does not divide into
    /// such teams.
    pub fn team_warps(&self, max: u32) -> Option<u32> {
        let Block::Exactly([threads, 1, 1]) = self.block else { return None };
        let own = threads / 32;
        if !threads.is_multiple_of(32) || own == 0 || max == 0 {
            return None;
        }
        let warps = if self.any_warps { 1 << own.min(max).ilog2() } else { own };
        max.is_multiple_of(warps).then_some(warps)
    }

    /// Sets the oldest architecture.
    pub fn min_sm(mut self, sm: u16) -> Self {
        self.min_sm = sm;
        self
    }
}

/// Builds a kernel: runs the body, and returns the module or all mistakes that the body made.
///
/// The module's `.version` is the lowest that its instructions and the target require.
#[track_caller]
pub fn build(
    entry: &str,
    launch: &LaunchRule,
    target: Arch,
    body: impl for<'k> FnOnce(K<'k>),
) -> Result<Built, Diagnostics> {
    build_with(entry, launch, target, None, false, body)
}

/// Does the same with parameters in the order of `args`, in whatever order the body requests them, optionally with
/// checked pointers.
#[track_caller]
pub(super) fn build_with(
    entry: &str,
    launch: &LaunchRule,
    target: Arch,
    args: Option<&[ArgDesc]>,
    checked: bool,
    body: impl for<'k> FnOnce(K<'k>),
) -> Result<Built, Diagnostics> {
    let loc = Location::caller();
    let threads = match launch.block {
        Block::Exactly(dims) => Some(dims),
        Block::AtMost(_) => None,
    };
    let state = RefCell::new(State::new(target, threads));
    if let Some(args) = args {
        let mut state = state.borrow_mut();
        for arg in args {
            let ty = if arg.role == Role::Scalar { param_type(arg.dtype) } else { Type::U64 };
            state.params.push((Variable::new(Space::Param, ty, arg.name), false));
        }
        if checked {
            for arg in args.iter().filter(|arg| arg.role != Role::Scalar) {
                state.params.push((Variable::new(Space::Param, Type::U64, bytes_of(arg.name)), false));
            }
            state.bounds = Some(Vec::new());
        }
        state.declared = Some(args.to_vec());
    }
    let lengths =
        args.unwrap_or_default().iter().map(|arg| (format!("the length of `{}`", arg.name), arg.len));
    let grid = launch.grid.iter().map(|&extent| ("the grid".to_string(), extent));
    for (what, _) in lengths.chain(grid).filter(|(_, extent)| extent.is_too_long()) {
        let message = format!("{what} is a formula of more than {} steps", Extent::MAX_STEPS);
        state.borrow_mut().mistake(Code::TooLarge, loc, message);
    }
    if target.sm < launch.min_sm {
        let message = format!("`{entry}` needs sm_{} or later; the target is {target}", launch.min_sm);
        state.borrow_mut().mistake(Code::NeedsTarget, loc, message);
    }
    body(K::new(&state));
    let mut state = state.into_inner();
    if args.is_some() && !launch.cooperative {
        state.wait_at_the_start(loc);
    }
    for arg in args.unwrap_or_default() {
        if state.params.iter().any(|(param, asked)| *param.name == *arg.name && !asked) {
            state.mistake(
                Code::Parameter,
                loc,
                format!("the body does not ask for the argument `{}`", arg.name),
            );
        }
    }
    let built = super::lower::module(&mut state, entry, launch, loc);
    match built {
        Some(built) if state.mistakes.is_empty() => Ok(built),
        _ => Err(Diagnostics::from(state.mistakes)),
    }
}

/// Checks that the argument list is the body's.
pub(super) fn check_args(args: &[ArgDesc], built: &Built, checked: bool) -> Result<(), Diagnostics> {
    let buffers = args.iter().filter(|arg| checked && arg.role != Role::Scalar).count();
    let mut diagnostics = Diagnostics::new();
    for function in built.module.entries() {
        let mut report = |origin, message: String| {
            diagnostics.push(warpwright_ptx::diag::Diagnostic::new(Code::Parameter, origin, message));
        };
        for (arg, param) in args.iter().zip(&function.params) {
            let &ir::Param::Variable(id) = param else { continue };
            let param = function.variable(id);
            let scalar = param.pointee.is_none();
            if scalar != (arg.role == Role::Scalar) {
                report(param.origin, format!("the body disagrees on whether `{}` is a buffer", arg.name));
            } else if scalar && param_type(arg.dtype) != param.ty {
                let (name, declared, asked) = (arg.name, arg.dtype.name(), param.ty.name());
                report(param.origin, format!("`{name}` is {declared}, but the body says {asked}"));
            }
        }
        for arg in args {
            if arg.constant && arg.role != Role::In {
                let message = format!("only an input can be constant, and `{}` is none", arg.name);
                report(function.origin, message);
            }
            for other in arg.shares {
                let input = args.iter().find(|arg| arg.name == *other);
                if arg.role != Role::Out {
                    let message = format!("only an output may share a buffer, and `{}` is none", arg.name);
                    report(function.origin, message);
                } else if !input.is_some_and(|input| input.role == Role::In && input.dtype == arg.dtype) {
                    let (name, dtype) = (arg.name, arg.dtype.name());
                    let message =
                        format!("`{name}` may share the buffer of `{other}`, which is no input of {dtype}");
                    report(function.origin, message);
                } else if input.is_some_and(|input| input.constant) {
                    let message =
                        format!("`{}` may share the buffer of `{other}`, which is constant", arg.name);
                    report(function.origin, message);
                }
            }
        }
        for param in function.params.iter().skip(args.len() + buffers) {
            if let ir::Param::Variable(id) = param {
                let param = function.variable(*id);
                report(param.origin, format!("the argument list lacks `{}`", param.name));
            }
        }
    }
    if diagnostics.is_empty() { Ok(()) } else { Err(diagnostics) }
}

/// The type that a parameter or a table of such elements is declared with.
pub(super) fn param_type(ty: Type) -> Type {
    match ty {
        Type::F16 | Type::BF16 => Type::B16,
        Type::F16X2 | Type::BF16X2 => Type::B32,
        ty => ty,
    }
}

impl<'k> K<'k> {
    /// A parameter: a buffer in global memory that the kernel reads.
    #[track_caller]
    pub fn ptr<T: Data>(self, name: &'static str) -> Ptr<'k, Global, T> {
        self.buffer(name, false)
    }

    /// A parameter: a buffer in global memory that the kernel writes, or reads and writes.
    #[track_caller]
    pub fn ptr_mut<T: Data>(self, name: &'static str) -> Ptr<'k, Global, T> {
        self.buffer(name, true)
    }

    #[track_caller]
    fn buffer<T: Data>(self, name: &'static str, mutable: bool) -> Ptr<'k, Global, T> {
        let loc = Location::caller();
        self.state().check_declared(name, Some(T::TYPE), Some(mutable), loc);
        let buffer = self.untyped_buffer(name, mutable, loc);
        self.constant_nc(name, mutable, buffer)
    }

    /// The pointer; its loads go through the read-only cache if the argument is declared constant.
    fn constant_nc<T: Data>(
        self,
        name: &str,
        mutable: bool,
        buffer: Ptr<'k, Global, T>,
    ) -> Ptr<'k, Global, T> {
        let constant = !mutable && self.state().is_constant(name);
        if constant { buffer.nc() } else { buffer }
    }

    /// A parameter: a buffer in global memory, whatever its elements are.
    #[track_caller]
    pub(super) fn any_buffer(self, name: &'static str, mutable: bool) -> Ptr<'k, Global, u8> {
        let loc = Location::caller();
        self.state().check_declared(name, None, Some(mutable), loc);
        let buffer = self.untyped_buffer(name, mutable, loc);
        self.constant_nc(name, mutable, buffer)
    }

    fn untyped_buffer<T: Data>(
        self,
        name: &'static str,
        mutable: bool,
        loc: super::state::Loc,
    ) -> Ptr<'k, Global, T> {
        let framed = self.state().framed_buffer(name, mutable, loc);
        if let Some(pointer) = framed {
            // The call has told its mistake.
            let poison = matches!(pointer.base, Base::Reg(super::state::POISON));
            return if poison { Ptr::poison(self) } else { Ptr::new(self, pointer) };
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
        if self.state().bounds.is_some() {
            let variable = Variable::new(Space::Param, Type::U64, bytes_of(name));
            let bytes = self.parameter(variable, Type::U64, loc);
            if let Some(bounds) = &mut self.state().bounds {
                bounds.push((base, bytes));
            }
        }
        let base = Base::Reg(base);
        // What the kernel writes changes while it runs.
        let (form, shifting) = (super::form::FormId::ZERO, mutable);
        Ptr::new(self, Pointer { base, form, narrow: false, mutable, shifting })
    }

    /// A parameter: a number.
    #[track_caller]
    pub fn scalar<T: Data>(self, name: &'static str) -> Reg<'k, T> {
        let loc = Location::caller();
        self.state().check_declared(name, Some(T::TYPE), None, loc);
        let framed = self.state().asked(Asked::Arg(name), T::TYPE, loc);
        if let Some(id) = framed {
            return Reg::new(self, id);
        }
        let variable = Variable::new(Space::Param, param_type(T::TYPE), name);
        Reg::new(self, self.parameter(variable, T::TYPE, loc))
    }

    fn parameter(self, variable: Variable, ty: Type, loc: super::state::Loc) -> ir::Reg {
        let memory = variable.ty;
        let Some(symbol) = self.declare(variable, loc) else { return super::state::POISON };
        self.state().pure_in(ENTRY, ty, loc, |d| {
            emit::ld(Space::Param, false, memory, d, ir::Address::symbol(symbol, 0))
        })
    }

    /// Makes a variable a parameter; none where the mistake has been told.
    pub(super) fn declare(self, mut variable: Variable, loc: super::state::Loc) -> Option<ir::Symbol> {
        let mut state = self.state();
        let known = state.params.iter().position(|(param, _)| param.name == variable.name);
        if known.is_some_and(|at| state.params[at].1) {
            state.mistake(Code::Redeclared, loc, format!("two parameters `{}`", variable.name));
            return None;
        }
        if !is_identifier(without_bytes(&variable.name)) {
            let message = format!("`{}` is no name for a parameter", variable.name);
            state.mistake(Code::Syntax, loc, message);
            return None;
        }
        variable.origin = ir::Origin::Rust(loc);
        let at = known.unwrap_or(state.params.len());
        match state.params.get_mut(at) {
            Some(known) => *known = (variable, true),
            None => state.params.push((variable, true)),
        }
        Some(ir::Symbol::Local(ir::VarId(at as u32)))
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
    /// Whether the kernel declares the argument constant while it runs.
    pub(super) fn is_constant(&self, name: &str) -> bool {
        self.declared.iter().flatten().any(|arg| arg.name == name && arg.constant)
    }

    /// Checks that the kernel declares an argument as the body requests it; for a buffer, `mutable` says whether it
    /// is written.
    pub(super) fn check_declared(
        &mut self,
        name: &str,
        dtype: Option<Type>,
        mutable: Option<bool>,
        loc: super::state::Loc,
    ) {
        let Some(declared) = &self.declared else { return };
        let message = match declared.iter().find(|arg| arg.name == name) {
            None => format!("the kernel declares no argument `{name}`"),
            Some(arg) if mutable.is_none() != (arg.role == Role::Scalar) => {
                let what = if arg.role == Role::Scalar { "number" } else { "buffer" };
                format!("`{name}` is declared as a {what}")
            }
            Some(arg) if dtype.is_some_and(|dtype| dtype != arg.dtype) => {
                let asked = dtype.unwrap_or(arg.dtype).name();
                format!("`{name}` is declared {}; the body asks for {asked}", arg.dtype.name())
            }
            Some(arg) if mutable == Some(true) && arg.role == Role::In => {
                format!("`{name}` is declared as an input; the body asks for a buffer to write")
            }
            Some(_) => return,
        };
        self.mistake(Code::Parameter, loc, message);
    }

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
