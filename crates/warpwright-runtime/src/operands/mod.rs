//! Arguments of kernels that other kernels call: checked against their contracts, and stored in device memory.
//!
//! A kernel that [calls](warpwright_dsl::Call) the bodies of others reads their arguments from memory: addresses and
//! numbers. [`Operands`] are made by name under the called kernel's contract, and a list of them is uploaded as one
//! [`OperandTable`].
//!
//! ```text
//!  Kernel ──Device::operands──► OperandBinder ──resolve──► Operands ──push──► OperandList ──upload──► OperandTable
//!                                                                                                     a buffer of u64
//! ```
//!
//! **Using a table uses the buffers that its addresses point to**: the table's memory holds those buffers. Any handle
//! of it keeps them alive, and an operation or a captured graph that takes the table as an argument counts as using
//! them.
//!
//! The caller's use of the words is not checked: it must read the table as it was laid out, and order calls of which
//! one writes what another reads, since two records may refer to one buffer. A virtual GPU reports violations, as it
//! does for every kernel. On a CUDA device operands are for kernels that are [`Bounded`](warpwright_dsl::Bounded). The
//! calling kernel is not, since it follows addresses that it reads: launch it with the `unsafe`
//! [`Binder::prepare_unbounded`](crate::Binder::prepare_unbounded), promising both, and that nothing writes other words
//! into the table.

mod table;

pub use table::{OperandList, OperandTable};

use crate::bindings::Bindings;
use crate::buffer::{AnyBuffer, Element};
use crate::contract::{Contract, ContractError, Limits, Param, Resolved, Violation};
use crate::device::Device;
use crate::error::{Result, RuntimeError};
use crate::kernel::promised;
use std::fmt;
use std::sync::Arc;
use warpwright_dsl::{ArgDesc, any::AnyKernel};

impl Device {
    /// Begins the operands of a kernel that another one calls. The kernel is not built.
    ///
    /// Refused if the kernel does not support the configuration, if the device cannot run it, if its blocks run
    /// together ([`Violation::NotCallable`]), and on a CUDA device if it is not [`Bounded`](warpwright_dsl::Bounded).
    ///
    /// ```
    /// use warpwright_dsl::any::AnyKernel;
    /// use warpwright_dsl::*;
    /// use warpwright_runtime::{Device, OperandList, RuntimeError, Violation, VmConfig};
    ///
    /// /// `y = 2 x`, 64 elements for each block.
    /// struct Double { n: u32 }
    ///
    /// impl AnyKernel for Double {
    ///     fn entry(&self) -> String { format!("double_{}", self.n) }
    ///     fn args(&self) -> Vec<ArgDesc> {
    ///         vec![ArgDesc::input::<f32>("x", self.n), ArgDesc::output::<f32>("y", self.n)]
    ///     }
    ///     fn launch(&self) -> LaunchRule { LaunchRule::new(64).grid(self.n / 64) }
    ///     fn body(&self, k: K<'_>) {
    ///         let (x, y, i) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"), k.global_tid());
    ///         y.st(i, x.ld(i) + x.ld(i));
    ///     }
    /// }
    ///
    /// /// Calls it, for as many blocks as it has itself, with operands in memory.
    /// struct Caller { calls: Double }
    ///
    /// impl AnyKernel for Caller {
    ///     fn entry(&self) -> String { format!("calls_{}", self.calls.entry()) }
    ///     fn args(&self) -> Vec<ArgDesc> { vec![ArgDesc::input::<u64>("operands", 2)] }
    ///     fn launch(&self) -> LaunchRule { self.calls.launch() }
    ///     fn body(&self, k: K<'_>) {
    ///         let operands = k.ptr::<u64>("operands");
    ///         // The body asks for `x`, then for `y`: their addresses are the first two words.
    ///         let call = Call::new(k.teams(2), operands, k.u32(0));
    ///         call.run(&self.calls, [k.ctaid(), k.u32(0), k.u32(0)]);
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), RuntimeError> {
    /// let device = Device::vm(VmConfig::default())?;
    /// let stream = device.default_stream();
    /// let (x, y) = (stream.clone_htod(&[1.5f32; 128])?, stream.alloc::<f32>(128)?);
    /// let mut list = OperandList::new();
    /// list.push(&device.operands(&Double { n: 128 })?.buffer("x", &x).buffer("y", &y).resolve()?);
    /// let table = list.upload(&stream)?;
    /// // The table has what it refers to: the caller may let go of it.
    /// drop(x);
    /// device.kernel(&Caller { calls: Double { n: 128 } })?.bind().buffer("operands", &table).launch(&stream)?;
    /// assert_eq!(stream.clone_dtoh(&y)?, [3.0; 128]);
    ///
    /// // What a launch would refuse is refused: the input is too short.
    /// let short = device.operands(&Double { n: 128 })?.buffer("x", y.slice(..64)?).buffer("y", &y).resolve();
    /// let Err(RuntimeError::Contract(error)) = short else { panic!() };
    /// assert!(matches!(error.violation, Violation::TooShort { argument: "x", given: 64, needed: 128, .. }));
    /// # Ok(())
    /// # }
    /// ```
    pub fn operands(&self, kernel: &dyn AnyKernel) -> Result<OperandBinder> {
        let (kernel, is_bounded) = promised(kernel);
        let entry = kernel.entry();
        self.must_stay_inside(is_bounded, &entry)?;
        kernel.check().map_err(|source| RuntimeError::Build { kernel: entry.clone(), source })?;
        let rule = kernel.launch();
        if rule.cooperative || rule.cluster.is_some() {
            return Err(ContractError::new(&entry, Violation::NotCallable).into());
        }
        let contract = Contract::new(&entry, kernel.args(), rule, Limits::of(self))?;
        Ok(OperandBinder { bindings: Bindings::new(&contract), contract, device: self.clone() })
    }
}

/// Operands under construction: takes arguments by name and in any order, as [`Binder`](crate::Binder) does.
/// [`resolve`](Self::resolve) returns the first mistake.
#[must_use = "nothing comes of it before `resolve`"]
pub struct OperandBinder {
    device: Device,
    contract: Contract,
    bindings: Bindings,
}

impl OperandBinder {
    /// Passes a buffer, or a part of one.
    pub fn buffer(mut self, name: &str, buffer: impl AsRef<AnyBuffer>) -> Self {
        self.bindings.buffer(&self.contract, name, buffer.as_ref());
        self
    }

    /// Passes a number. Lengths and the grid may depend on it.
    pub fn scalar<T: Element>(mut self, name: &str, value: T) -> Self {
        self.bindings.scalar(&self.contract, name, value);
        self
    }

    /// Passes a number that lengths or the grid depend on, such as `rows`, or an integer argument.
    pub fn dim(mut self, name: &str, count: u64) -> Self {
        self.bindings.dim(&self.contract, name, count);
        self
    }

    /// The kernel's arguments, in order.
    pub fn args(&self) -> &[ArgDesc] {
        &self.contract.args
    }

    /// The numbers that lengths and the grid depend on and that are not arguments: see [`dim`](Self::dim).
    pub fn dims(&self) -> &[&'static str] {
        &self.contract.dims
    }

    /// Checks the arguments against the contract.
    pub fn resolve(self) -> Result<Operands> {
        let OperandBinder { device, contract, bindings } = self;
        let (arguments, buffers) = bindings.finish()?;
        // Cooperative kernels, whose blocks would be counted, have no operands.
        let Resolved { shape, params, .. } = contract.resolve(&arguments, contract.block(), || u64::MAX)?;
        let words = params.iter().map(|param| match param {
            Param::Address(address) => *address,
            Param::Number(number) => u64::from_le_bytes(number.bytes),
            // No argument of a contract is a structure.
            Param::Bytes(_) => 0,
        });
        let words = contract.args.iter().map(|arg| arg.name).zip(words).collect();
        Ok(Operands { kernel: contract.kernel.clone(), device, words, grid: shape.grid, buffers })
    }
}

impl fmt::Debug for OperandBinder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperandBinder").field("kernel", &self.contract.kernel).finish_non_exhaustive()
    }
}

/// The fully checked arguments of a kernel that another one calls: one word for each argument in the kernel's order,
/// the address of a buffer or the bits of a number. It keeps the buffers alive.
#[derive(Clone)]
pub struct Operands {
    kernel: Arc<str>,
    device: Device,
    /// By argument.
    words: Vec<(&'static str, u64)>,
    grid: [u32; 3],
    buffers: Vec<AnyBuffer>,
}

impl Operands {
    /// The kernel's entry name.
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether the kernel has no arguments.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Blocks along x, y and z of a launch of the kernel.
    pub fn grid(&self) -> [u32; 3] {
        self.grid
    }

    /// The buffers among the arguments.
    pub fn buffers(&self) -> &[AnyBuffer] {
        &self.buffers
    }
}

impl fmt::Debug for Operands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Operands");
        debug.field("kernel", &self.kernel).field("grid", &self.grid).finish_non_exhaustive()
    }
}
