//! Bodies that another kernel calls, held to what they do where they are launched, bit for bit.
//!
//! [`Calls`] launches a kernel by its rule, and runs it a second time as a caller does, on the virtual GPU: all that the
//! body asks for comes out of a record in memory, its tiles are walked by the teams of a few blocks, piece by piece, and
//! the code may be that of another configuration that is built to the same text. So a number that a body takes from its
//! configuration without asking for it makes another text, or a wrong result.

use std::collections::HashMap;
use std::sync::Arc;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_ptx::ir::{Arch, Type};
use warpwright_test::{KernelTest, TestArg, TestError};
use warpwright_vm::{Arg, Buffer, Device, DeviceConfig, Element, LaunchConfig, Options, Report};

/// Warps of a caller's block.
pub const WARPS: u32 = 8;
/// Words of the caller's head for each piece: where the record begins, and its grid.
const HEAD: u32 = 4;

/// Calls the body of a kernel, piece by piece, for all blocks of their grids.
///
/// Its argument is `operands`: a head for each piece, then the records.
struct Caller<'a> {
    kernel: &'a dyn AnyKernel,
    pieces: usize,
}

impl Caller<'_> {
    /// Built, with what each piece asks for.
    fn build(kernel: &dyn AnyKernel, arch: Arch) -> Result<(Built, Vec<CallDesc>), BuildError> {
        let built = Caller { kernel, pieces: 1 }.with(arch)?;
        let pieces = built.calls[0].pieces.len();
        let built = if pieces > 1 { Caller { kernel, pieces }.with(arch)? } else { built };
        let calls = built.calls.clone();
        Ok((built, calls))
    }

    fn with(&self, arch: Arch) -> Result<Built, BuildError> {
        self.kernel.check()?;
        let rule = LaunchRule::new(WARPS * 32).min_sm(self.kernel.launch().min_sm);
        Ok(build("caller", &rule, arch, |k| self.body(k))?)
    }

    fn body(&self, k: K<'_>) {
        let operands = k.ptr::<u64>("operands");
        let warps = self.kernel.launch().team_warps(WARPS).expect("teams that divide a block");
        let team = k.teams(warps);
        for piece in 0..self.pieces {
            let head = |i: u32| operands.ld(HEAD * piece as u32 + i).to::<u32>();
            let grid @ [x, y, z] = [head(1), head(2), head(3)];
            let call = Call::new(team, operands, head(0)).grid(grid).piece(piece);
            let first = k.ctaid() * team.count() + team.number();
            k.each(k.range(first..x * y * z).step(k.nctaid() * team.count()), |tile| {
                let rows = tile / x;
                call.run(self.kernel, [tile % x, rows % y, rows / y]);
                team.sync();
            });
            k.sync();
        }
    }
}

/// The text of the caller of the kernel, which kernels that differ in what their records hold alone share.
pub fn called_ptx(kernel: &dyn AnyKernel, arch: Arch) -> String {
    match Caller::build(kernel, arch) {
        Ok((built, _)) => warpwright_ptx::print(&built.module),
        Err(error) => panic!("{} called: {error}", kernel.entry()),
    }
}

/// The first of several configurations that is built to the text of the kernel.
#[track_caller]
pub fn alike<T: AnyKernel>(kernel: &dyn AnyKernel, arch: Arch, others: impl IntoIterator<Item = T>) -> T {
    let text = called_ptx(kernel, arch);
    let found = others.into_iter().find(|other| called_ptx(other, arch) == text);
    found.unwrap_or_else(|| panic!("{}: none of the others has its code", kernel.entry()))
}

/// A kernel with its arguments, to be run launched and called.
pub struct Calls<'a> {
    kernel: &'a dyn AnyKernel,
    code: &'a dyn AnyKernel,
    options: Options,
    arch: Arch,
    dims: HashMap<String, u64>,
    scalars: HashMap<String, f64>,
    inputs: Vec<(String, Data)>,
    shared: Vec<(String, String)>,
    partly: Vec<String>,
    /// The number of the record that is another one, and which.
    wrong: Option<(usize, u64)>,
}

/// Elements by their size, so that the test is given what the arguments hold.
enum Data {
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
    Eight(Vec<u64>),
}

/// What a run has left in each buffer that it writes.
type Written = Vec<(&'static str, Vec<u8>)>;

/// Buffers on a device, with what they hold before the launch; one may be another one's too.
pub fn buffers(device: &Device, args: &[TestArg]) -> Vec<(&'static str, Arc<Buffer<u8>>)> {
    let mut buffers: Vec<(&'static str, Arc<Buffer<u8>>)> = Vec::new();
    for arg in args {
        let (name, buffer) = match arg {
            TestArg::Number(_) => continue,
            TestArg::Data { name, bytes } => (name, Arc::new(device.clone_htod(bytes).expect("memory"))),
            TestArg::Memory { name, bytes } => (name, Arc::new(device.alloc(*bytes).expect("memory"))),
            TestArg::Same { name, input } => {
                let found = buffers.iter().find(|(known, _)| known == input);
                (name, Arc::clone(&found.expect("an argument before it").1))
            }
        };
        buffers.push((name, buffer));
    }
    buffers
}

impl<'a> Calls<'a> {
    /// On a device of `sm_80`, with all checks.
    pub fn new(kernel: &'a dyn AnyKernel) -> Self {
        Calls {
            kernel,
            code: kernel,
            options: Options::checked(),
            arch: Arch::sm(80),
            dims: HashMap::new(),
            scalars: HashMap::new(),
            inputs: Vec::new(),
            shared: Vec::new(),
            partly: Vec::new(),
            wrong: None,
        }
    }

    /// Runs the code of that configuration where the kernel is called: it has the same text.
    #[track_caller]
    pub fn with_code_of(self, code: &'a dyn AnyKernel) -> Self {
        let texts = [self.kernel, code].map(|kernel| called_ptx(kernel, self.arch));
        assert!(texts[0] == texts[1], "{} and {} have other texts", self.kernel.entry(), code.entry());
        Calls { code, ..self }
    }

    pub fn arch(self, arch: Arch) -> Self {
        Calls { arch, ..self }
    }

    pub fn options(self, options: Options) -> Self {
        Calls { options, ..self }
    }

    /// As [`KernelTest::dim`].
    pub fn dim(mut self, name: &str, value: u64) -> Self {
        self.dims.insert(name.into(), value);
        self
    }

    /// As [`KernelTest::scalar`].
    pub fn scalar(mut self, name: &str, value: f64) -> Self {
        self.scalars.insert(name.into(), value);
        self
    }

    /// As [`KernelTest::input`].
    pub fn input<T: Element>(mut self, name: &str, data: &[T]) -> Self {
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
    pub fn elements(self, name: &str, ty: Type, bytes: &[u8]) -> Self {
        match ty.bytes() {
            1 => self.input(name, bytes),
            2 => self.input(name, &bytes.chunks_exact(2).map(u16::get).collect::<Vec<_>>()),
            4 => self.input(name, &bytes.chunks_exact(4).map(u32::get).collect::<Vec<_>>()),
            _ => self.input(name, &bytes.chunks_exact(8).map(u64::get).collect::<Vec<_>>()),
        }
    }

    /// As [`KernelTest::in_place`].
    pub fn in_place(mut self, output: &str, input: &str) -> Self {
        self.shared.push((output.into(), input.into()));
        self
    }

    /// As [`KernelTest::partly`].
    pub fn partly(mut self, output: &str) -> Self {
        self.partly.push(output.into());
        self
    }

    fn test(&self) -> KernelTest<'a> {
        let mut test = KernelTest::new(self.kernel).arch(self.arch).options(self.options);
        for output in &self.partly {
            test = test.partly(output);
        }
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

    /// The numbers of the configuration that the code takes out of the records.
    pub fn numbers(&self) -> Vec<u64> {
        let (_, calls) = Caller::build(self.kernel, self.arch).expect("a caller");
        let asked = calls.iter().flat_map(|call| &call.asked);
        let number = |asked: &Asked| match asked {
            Asked::Number(bits) => Some(*bits),
            _ => None,
        };
        asked.filter_map(number).collect()
    }

    /// The same calls with another one in the place of number `i`.
    pub fn with_number(self, i: usize, bits: u64) -> Self {
        Calls { wrong: Some((i, bits)), ..self }
    }

    /// The words that the caller is given: heads, records, tables.
    fn operands(
        &self,
        calls: &[CallDesc],
        numbers: &[(&'static str, Arg)],
        buffers: &[(&'static str, Arc<Buffer<u8>>)],
    ) -> Vec<u64> {
        let number =
            |name: &str| self.dims.get(name).copied().or(self.scalars.get(name).map(|value| *value as u64));
        let grid = self.kernel.launch().grid;
        let grid = grid.map(|extent| extent.evaluate(number).expect("all numbers that the grid depends on"));
        let word = |name: &str| {
            let buffer = buffers.iter().find(|(known, _)| *known == name).map(|(_, buffer)| buffer.address());
            let number = numbers.iter().find(|(known, _)| *known == name).map(|(_, number)| match *number {
                Arg::F32(value) => value.to_bits().into(),
                Arg::U32(value) => value.into(),
                Arg::I32(value) => value as u32 as u64,
                Arg::U64(value) => value,
                ref other => panic!("`{name}` is {other:?}"),
            });
            buffer.or(number).expect("an argument of the kernel")
        };
        let mut words = vec![0; HEAD as usize * calls.len()];
        let mut seen = 0;
        for (i, call) in calls.iter().enumerate() {
            let grid = call.pieces.get(i).map_or(grid, |&blocks| [blocks.into(), 1, 1]);
            let mut record = Vec::new();
            for asked in &call.asked {
                record.push(match asked {
                    Asked::Arg(name) => word(name),
                    Asked::Number(bits) => {
                        seen += 1;
                        self.wrong.filter(|(place, _)| place + 1 == seen).map_or(*bits, |(_, bits)| bits)
                    }
                    Asked::Table(table) => {
                        words.extend(table);
                        (words.len() - table.len()) as u64
                    }
                });
            }
            let head = [words.len() as u64, grid[0], grid[1], grid[2]];
            words[HEAD as usize * i..][..HEAD as usize].copy_from_slice(&head);
            words.extend(record);
        }
        words
    }

    /// Launches the kernel.
    fn launched(&self) -> Result<(Written, Report), TestError> {
        let run = self.test().run()?;
        let written = self.written().map(|name| (name, run.output::<u8>(name))).collect();
        Ok((written, run.report))
    }

    fn written(&self) -> impl Iterator<Item = &'static str> {
        let written =
            self.kernel.args().into_iter().filter(|arg| matches!(arg.role, Role::Out | Role::InOut));
        written.map(|arg| arg.name)
    }

    /// Calls it from so many blocks.
    fn called(&self, blocks: u32) -> Result<(Written, Report), TestError> {
        let launch = self.test().launch()?;
        let (_, calls) = Caller::build(self.kernel, self.arch).map_err(TestError::Build)?;
        let (built, _) = Caller::build(self.code, self.arch).map_err(TestError::Build)?;
        let mut config = DeviceConfig::default();
        config.arch = self.arch;
        let device = Device::new(config)?;
        let info =
            warpwright_ptx::verify(&built.module).map_err(|mistakes| TestError::Build(mistakes.into()))?;
        let module = device.load(&built.module, &info)?;
        let buffers = buffers(&device, &launch.args);
        let names = self.kernel.args().into_iter().map(|arg| arg.name);
        let numbers: Vec<_> = (names.zip(&launch.args))
            .filter_map(|(name, arg)| match arg {
                TestArg::Number(number) => Some((name, number.clone())),
                _ => None,
            })
            .collect();
        let operands = device.clone_htod(&self.operands(&calls, &numbers, &buffers))?;
        let shared_mem_bytes = built.launch.dynamic_shared;
        let config = LaunchConfig { shared_mem_bytes, ..LaunchConfig::new(blocks, WARPS * 32) };
        let args = [Arg::buffer(&operands)];
        let report = device.launch(&module, "caller", &config, &args, &self.options)?.wait();
        if !report.is_clean() {
            return Err(TestError::Findings(Box::new(report)));
        }
        let of = |name: &str| buffers.iter().find(|(known, _)| *known == name).expect("a buffer").1.read();
        Ok((self.written().map(|name| (name, of(name))).collect(), report))
    }

    /// Whether a call does what the launch does, from one block and from three.
    pub fn agrees(&self) -> Result<(), String> {
        let entry = self.kernel.entry();
        let (launched, _) = self.launched().map_err(|error| format!("{entry}, launched: {error}"))?;
        for blocks in [1, 3] {
            let what = format!("{entry}, called from {blocks} blocks with the code of {}", self.code.entry());
            let (called, _) = self.called(blocks).map_err(|error| format!("{what}: {error}"))?;
            for ((name, one), (_, other)) in launched.iter().zip(&called) {
                if let Some(at) = one.iter().zip(other).position(|(one, other)| one != other) {
                    return Err(format!("{what}: `{name}` differs from byte {at} on"));
                }
            }
        }
        Ok(())
    }

    /// The same, or the test fails.
    #[track_caller]
    pub fn check(&self) {
        if let Err(message) = self.agrees() {
            panic!("{message}");
        }
    }

    /// What the launch did, and the call from one block.
    pub fn reports(&self) -> [Report; 2] {
        [self.launched(), self.called(1)].map(|run| run.expect("a run without findings").1)
    }
}
