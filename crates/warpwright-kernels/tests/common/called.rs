//! Bodies that another kernel calls, held to what they do where they are launched, bit for bit.
//!
//! [`Calls`] launches a kernel by its rule, and runs it a second time as a caller does: all its sizes, its grid and the
//! warps of a team are registers that come out of a buffer, its tiles are walked by the teams of a few blocks, and the
//! code may be that of another configuration with the same [`AnyKernel::code`]. So a size that a body takes from its
//! configuration without asking for it by name makes a wrong result.

use std::collections::HashMap;
use std::sync::Arc;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_ptx::ir::{Arch, Type};
use warpwright_test::KernelTest;
use warpwright_testing::{Ran, RunError, RunHere};
use warpwright_vm::{Element, Options, Report};

/// Warps of a caller's block.
const WARPS: u32 = 8;
/// The size under which a body asks for the warps of its team.
const TEAM: &str = "warps";
/// The caller's own argument.
const OPERANDS: &str = "operands";

/// What a kernel is called as: itself, or the kernels that it says.
fn parts<R>(
    kernel: &dyn AnyKernel,
    see: impl FnOnce(&[(&dyn AnyKernel, Vec<(&'static str, &'static str)>)]) -> R,
) -> R {
    match kernel.called(WARPS * 32) {
        Some(parts) => {
            let parts: Vec<_> =
                parts.iter().map(|part| (&*part.kernel as &dyn AnyKernel, part.args.clone())).collect();
            see(&parts)
        }
        None => see(&[(kernel, kernel.args().iter().map(|arg| (arg.name, arg.name)).collect())]),
    }
}

/// Warps of the kernel's blocks; `None` where its body asks for them.
fn fixed_warps(kernel: &dyn AnyKernel) -> Option<u32> {
    match kernel.launch().block {
        _ if kernel.sizes().iter().any(|(name, _)| *name == TEAM) => None,
        Block::Exactly([threads, 1, 1]) => Some(threads / 32),
        block => panic!("{} has blocks of {block:?}", kernel.entry()),
    }
}

/// Calls the body of a kernel, or those of its parts one after the other, for all blocks of their grids.
///
/// Its arguments are the kernel's, and `operands`: for each part its sizes in their order, the extents of its grid,
/// the warps of a team, and its tables, 64 bits each.
pub(crate) struct Caller<'a> {
    /// Whose code is run.
    pub(crate) kernel: &'a dyn AnyKernel,
    /// The arguments of the kernel that is meant: their lengths are its own.
    pub(crate) args: Vec<ArgDesc>,
    /// Blocks that it is launched with.
    pub(crate) blocks: u32,
    /// Whether what the kernel only reads is given as what nobody writes.
    pub(crate) frozen: bool,
}

/// A parameter of the caller.
#[derive(Clone, Copy)]
enum Param<'k> {
    Buffer(Ptr<'k, Global, u8>, bool),
    F32(Reg<'k, f32>),
    U32(Reg<'k, u32>),
    I32(Reg<'k, i32>),
    U64(Reg<'k, u64>),
}

/// A buffer of a caller, as bytes.
pub(crate) fn bytes<'k>(k: K<'k>, arg: &ArgDesc) -> Ptr<'k, Global, u8> {
    fn of<'k, T: warpwright_dsl::Data>(k: K<'k>, arg: &ArgDesc) -> Ptr<'k, Global, u8> {
        let buffer: Ptr<'k, Global, T> = match arg.role {
            Role::In => k.ptr(arg.name),
            _ => k.ptr_mut(arg.name),
        };
        buffer.cast()
    }
    match arg.dtype {
        Type::U8 => of::<u8>(k, arg),
        Type::S8 => of::<i8>(k, arg),
        Type::F16 => of::<F16>(k, arg),
        Type::BF16 => of::<Bf16>(k, arg),
        Type::U32 => of::<u32>(k, arg),
        Type::S32 => of::<i32>(k, arg),
        Type::F32 => of::<f32>(k, arg),
        Type::U64 => of::<u64>(k, arg),
        ty => panic!("`{}` is of {}", arg.name, ty.name()),
    }
}

impl<'k> Param<'k> {
    fn declare(k: K<'k>, arg: &ArgDesc) -> Self {
        match (arg.role, arg.dtype) {
            (Role::In, _) => Param::Buffer(bytes(k, arg), true),
            (Role::Out | Role::InOut, _) => Param::Buffer(bytes(k, arg), false),
            (Role::Scalar, Type::F32) => Param::F32(k.scalar(arg.name)),
            (Role::Scalar, Type::U32) => Param::U32(k.scalar(arg.name)),
            (Role::Scalar, Type::S32) => Param::I32(k.scalar(arg.name)),
            (Role::Scalar, Type::U64) => Param::U64(k.scalar(arg.name)),
            (Role::Scalar, ty) => panic!("`{}` is a number of {}", arg.name, ty.name()),
        }
    }

    fn give(self, call: Call<'k>, name: &'static str, frozen: bool) -> Call<'k> {
        match self {
            Param::Buffer(buffer, read_only) => call.parameter(name, buffer, read_only && frozen),
            Param::F32(value) => call.number(name, value),
            Param::U32(value) => call.number(name, value),
            Param::I32(value) => call.number(name, value),
            Param::U64(value) => call.number(name, value),
        }
    }
}

/// Operands of a part.
fn words_of(kernel: &dyn AnyKernel) -> u32 {
    let tables: usize = kernel.tables().iter().map(|(_, words)| words.len()).sum();
    (kernel.sizes().len() + 4 + tables) as u32
}

impl Caller<'_> {
    /// Operands of all parts.
    fn words(&self) -> u32 {
        parts(self.kernel, |parts| parts.iter().map(|(kernel, _)| words_of(*kernel)).sum())
    }

    /// Calls a part with operands from `from` on.
    fn call<'k>(
        &self,
        k: K<'k>,
        (kernel, args): (&dyn AnyKernel, &[(&'static str, &'static str)]),
        params: &[(&'static str, Param<'k>)],
        from: Ptr<'k, Global, u64>,
    ) {
        let sizes = kernel.sizes();
        let count = sizes.len() as u32;
        let grid = [0, 1, 2].map(|axis| from.ld(count + axis).to::<u32>());
        let team = match fixed_warps(kernel) {
            Some(warps) => k.teams(warps),
            None => k.teams_of(from.ld(count + 3).to()),
        };
        let mut call = Call::new(team).grid(grid);
        for &(own, name) in args {
            let (_, param) =
                params.iter().find(|(known, _)| *known == name).expect("an argument of the whole");
            call = param.give(call, own, self.frozen);
        }
        for ((name, size), i) in sizes.into_iter().zip(0..) {
            let bits = from.ld(i);
            call = match size {
                SizeValue::U32(_) => call.size(name, bits.to()),
                SizeValue::U64(_) => call.wide_size(name, bits),
                SizeValue::F32(_) => call.factor(name, bits.to::<u32>().bits()),
            };
        }
        let mut at = count + 4;
        for (name, words) in kernel.tables() {
            call = call.table(name, from.at(at));
            at += words.len() as u32;
        }
        let [x, y, z] = grid;
        let first = k.ctaid() * team.count() + team.number();
        k.each(k.range(first..x * y * z).step(k.nctaid() * team.count()), |tile| {
            let rows = tile / x;
            call.run(kernel, [tile % x, rows % y, rows / y]);
            team.sync();
        });
        k.sync();
    }
}

impl AnyKernel for Caller<'_> {
    fn entry(&self) -> String {
        "caller".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        let mut args = self.args.clone();
        args.push(ArgDesc::input::<u64>(OPERANDS, self.words()));
        args
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(WARPS * 32).grid(Extent::new(self.blocks.into()))
    }

    fn body(&self, k: K<'_>) {
        let params: Vec<_> = self.args.iter().map(|arg| (arg.name, Param::declare(k, arg))).collect();
        let mut operands = k.ptr::<u64>(OPERANDS);
        parts(self.kernel, |parts| {
            for (kernel, args) in parts {
                self.call(k, (*kernel, args), &params, operands);
                operands = operands.at(words_of(*kernel));
            }
        });
    }
}

/// The text of the caller of the kernel with all its sizes open, which kernels that differ in sizes and tables alone share.
pub(crate) fn called_ptx(kernel: &dyn AnyKernel, arch: Arch) -> String {
    let caller = Caller { kernel, args: kernel.args(), blocks: 1, frozen: true };
    caller.ptx(arch).unwrap_or_else(|error| panic!("{} called: {error}", kernel.entry()))
}

/// A kernel with its arguments, to be run launched and called.
pub(crate) struct Calls<'a> {
    kernel: &'a dyn AnyKernel,
    code: &'a dyn AnyKernel,
    options: Options,
    arch: Arch,
    dims: HashMap<String, u64>,
    scalars: HashMap<String, f64>,
    inputs: Vec<(String, Data)>,
    shared: Vec<(String, String)>,
}

/// Elements by their size, so that the test is given what the arguments hold.
enum Data {
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
    Eight(Vec<u64>),
}

impl<'a> Calls<'a> {
    /// On a device of `sm_80`, with all checks.
    pub(crate) fn new(kernel: &'a dyn AnyKernel) -> Self {
        Calls {
            kernel,
            code: kernel,
            options: Options::checked(),
            arch: Arch::sm(80),
            dims: HashMap::new(),
            scalars: HashMap::new(),
            inputs: Vec::new(),
            shared: Vec::new(),
        }
    }

    /// Runs the code of that configuration where the kernel is called: it has the same text.
    pub(crate) fn with_code_of(self, code: &'a dyn AnyKernel) -> Self {
        let texts = [self.kernel, code].map(|kernel| called_ptx(kernel, self.arch));
        assert_eq!(texts[0], texts[1], "{} and {}", self.kernel.entry(), code.entry());
        Calls { code, ..self }
    }

    pub(crate) fn arch(self, arch: Arch) -> Self {
        Calls { arch, ..self }
    }

    pub(crate) fn options(self, options: Options) -> Self {
        Calls { options, ..self }
    }

    /// As [`KernelTest::dim`].
    pub(crate) fn dim(mut self, name: &str, value: u64) -> Self {
        self.dims.insert(name.into(), value);
        self
    }

    /// As [`KernelTest::scalar`].
    pub(crate) fn scalar(mut self, name: &str, value: f64) -> Self {
        self.scalars.insert(name.into(), value);
        self
    }

    /// As [`KernelTest::input`].
    pub(crate) fn input<T: Element>(mut self, name: &str, data: &[T]) -> Self {
        let bytes: Vec<u8> = data
            .iter()
            .flat_map(|&value| {
                let mut bytes = vec![0; T::BYTES];
                value.put(&mut bytes);
                bytes
            })
            .collect();
        let data = match T::BYTES {
            1 => Data::One(bytes),
            2 => Data::Two(bytes.chunks_exact(2).map(u16::get).collect()),
            4 => Data::Four(bytes.chunks_exact(4).map(u32::get).collect()),
            _ => Data::Eight(bytes.chunks_exact(8).map(u64::get).collect()),
        };
        self.inputs.push((name.into(), data));
        self
    }

    /// As [`input`](Self::input), by the bytes of elements of a type.
    pub(crate) fn elements(mut self, name: &str, ty: Type, bytes: &[u8]) -> Self {
        let data = match ty.bytes() {
            1 => Data::One(bytes.to_vec()),
            2 => Data::Two(bytes.chunks_exact(2).map(u16::get).collect()),
            4 => Data::Four(bytes.chunks_exact(4).map(u32::get).collect()),
            _ => Data::Eight(bytes.chunks_exact(8).map(u64::get).collect()),
        };
        self.inputs.push((name.into(), data));
        self
    }

    /// As [`KernelTest::in_place`].
    pub(crate) fn in_place(mut self, output: &str, input: &str) -> Self {
        self.shared.push((output.into(), input.into()));
        self
    }

    fn test<'t>(&self, kernel: &'t dyn AnyKernel) -> KernelTest<'t> {
        let mut test = KernelTest::new(kernel).arch(self.arch).options(self.options);
        for (name, &value) in &self.dims {
            test = test.dim(name, value);
        }
        for (name, &value) in &self.scalars {
            test = test.scalar(name, value);
        }
        for (name, data) in &self.inputs {
            test = match data {
                Data::One(data) => test.input(name, data),
                Data::Two(data) => test.input(name, data),
                Data::Four(data) => test.input(name, data),
                Data::Eight(data) => test.input(name, data),
            };
        }
        self.shared.iter().fold(test, |test, (output, input)| test.in_place(output, input))
    }

    /// What the caller is given beside the kernel's arguments.
    fn operands(&self) -> Vec<u64> {
        let extent = |extent: &Extent| {
            let known = |name: &str| {
                self.dims.get(name).copied().or(self.scalars.get(name).map(|value| *value as u64))
            };
            extent.evaluate(known).expect("all numbers that the grid depends on")
        };
        let of_part = |kernel: &dyn AnyKernel| {
            let sizes = kernel.sizes();
            let warps = match sizes.iter().find(|(name, _)| *name == TEAM) {
                Some((_, warps)) => warps.bits(),
                None => 0,
            };
            let mut words: Vec<u64> = sizes.iter().map(|(_, size)| size.bits()).collect();
            words.extend(kernel.launch().grid.iter().map(extent));
            words.push(warps);
            words.extend(kernel.tables().into_iter().flat_map(|(_, table)| table));
            words
        };
        parts(self.kernel, |parts| parts.iter().flat_map(|(kernel, _)| of_part(*kernel)).collect())
    }

    /// Launches the kernel.
    pub(crate) fn launched(&self) -> Result<Ran, RunError> {
        self.test(self.kernel).run_here()
    }

    /// Calls it from so many blocks.
    pub(crate) fn called(&self, blocks: u32, frozen: bool) -> Result<Ran, RunError> {
        let caller = Caller { kernel: self.code, args: self.kernel.args(), blocks, frozen };
        self.test(&caller).input(OPERANDS, &self.operands()).run_here()
    }

    /// What is written first as the launch does not write it, if anything.
    fn difference(&self, launched: &Ran, called: &Ran) -> Option<String> {
        self.kernel.args().iter().filter(|arg| matches!(arg.role, Role::Out | Role::InOut)).find_map(|arg| {
            let [one, other] = [launched, called].map(|run| run.output::<u8>(arg.name));
            let at = one.iter().zip(&other).position(|(one, other)| one != other)?;
            Some(format!("`{}` differs from byte {at} on", arg.name))
        })
    }

    /// Whether a call does what the launch does, from one block and from three.
    pub(crate) fn agrees(&self) -> Result<(), String> {
        let entry = self.kernel.entry();
        let launched = self.launched().map_err(|error| format!("{entry}, launched: {error}"))?;
        for (blocks, frozen) in [(1, true), (3, false)] {
            let what = format!("{entry}, called from {blocks} blocks with the code of {}", self.code.entry());
            let called = self.called(blocks, frozen).map_err(|error| format!("{what}: {error}"))?;
            if let Some(difference) = self.difference(&launched, &called) {
                return Err(format!("{what}: {difference}"));
            }
        }
        Ok(())
    }

    /// The same, or the test fails.
    #[track_caller]
    pub(crate) fn check(&self) {
        if let Err(message) = self.agrees() {
            panic!("{message}");
        }
    }

    /// What the launch did on the virtual GPU, and the call from one block.
    pub(crate) fn reports(&self) -> [Arc<Report>; 2] {
        [self.launched(), self.called(1, true)]
            .map(|run| run.expect("a run without findings").report.expect("the report of a virtual GPU"))
    }
}
