//! Kernels of the DSL on a device: built, verified and loaded once, then launched under contract.
//!
//! ```text
//!  Kernel ──Device::kernel──► CompiledKernel ──bind──► Binder ──launch──────────────────► stream
//!                                                        └─────prepare──► PreparedLaunch ──┘ as often as wanted
//! ```

use crate::backend::Backend;
use crate::bindings::{ArgumentSink, Bindings, LaunchMode};
use crate::buffer::{AnyBuffer, Element};
use crate::contract::{Contract, Limits, Resolved};
use crate::device::Device;
use crate::error::{Result, RuntimeError};
use crate::function::{self, Function};
use crate::lock;
use crate::op::{Launch, Shape};
use crate::stream::Stream;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::{ArgDesc, Arguments, Built, Kernel, Key, LaunchRule, build_checked};

/// A kernel on a device, ready for launches. A cheap handle: its clones are one kernel.
///
/// ```
/// use warpwright_dsl::any::AnyKernel;
/// use warpwright_dsl::*;
/// use warpwright_runtime::{Device, RuntimeError, Violation, VmConfig};
///
/// /// `y = factor · x`.
/// #[derive(Config)]
/// struct Scale;
///
/// #[derive(Args)]
/// #[args(of = Scale)]
/// struct ScaleArgs<M: Mode> {
///     #[arg(len = n)]
///     x: M::In<f32>,
///     #[arg(len = n, shares(x))]
///     y: M::Out<f32>,
///     factor: M::Scalar<f32>,
///     n: M::Scalar<u32>,
/// }
///
/// impl Kernel for Scale {
///     type Args<M: Mode> = ScaleArgs<M>;
///
///     fn launch(&self) -> LaunchRule {
///         LaunchRule::new(128).grid(Extent::dim("n").per(128))
///     }
///
///     fn body<'k>(&self, k: K<'k>, ScaleArgs { x, y, factor, n }: ScaleArgs<Body<'k>>) {
///         let i = k.global_tid();
///         k.when(i.lt(n), || y.st(i, x.ld(i) * factor));
///     }
/// }
///
/// # fn main() -> Result<(), RuntimeError> {
/// let device = Device::vm(VmConfig::default())?;
/// let stream = device.default_stream();
/// let kernel = device.kernel(&Scale)?;
/// let x = stream.clone_htod(&[1.0f32, 2.0, 3.0])?;
/// let y = stream.alloc::<f32>(3)?;
///
/// // Grid and block follow from the arguments.
/// kernel.with(ScaleArgs { x: &x, y: &y, factor: 2.0, n: 3 }).launch(&stream)?;
/// assert_eq!(stream.clone_dtoh(&y)?, [2.0, 4.0, 6.0]);
///
/// // Four elements are more than there are: nothing runs.
/// let Err(RuntimeError::Contract(error)) = kernel.with(ScaleArgs { x: &x, y: &y, factor: 2.0, n: 4 }).launch(&stream)
/// else {
///     panic!()
/// };
/// assert!(matches!(error.violation, Violation::TooShort { argument: "x", given: 3, needed: 4, .. }));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CompiledKernel {
    device: Device,
    compiled: Arc<Compiled>,
    is_bounded: bool,
}

/// Handles of one loaded kernel are equal.
impl PartialEq for CompiledKernel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.compiled, &other.compiled)
    }
}

impl Eq for CompiledKernel {}

/// A [`CompiledKernel`] whose type, and so the type of its arguments, is known at compile time.
pub struct TypedKernel<T: ?Sized> {
    compiled: CompiledKernel,
    kernel: PhantomData<fn(&T)>,
}

impl<T: ?Sized> Clone for TypedKernel<T> {
    fn clone(&self) -> Self {
        TypedKernel { compiled: self.compiled.clone(), kernel: PhantomData }
    }
}

impl<T: ?Sized> Deref for TypedKernel<T> {
    type Target = CompiledKernel;

    fn deref(&self) -> &CompiledKernel {
        &self.compiled
    }
}

impl<T: ?Sized> From<TypedKernel<T>> for CompiledKernel {
    fn from(kernel: TypedKernel<T>) -> Self {
        kernel.compiled
    }
}

impl<T: ?Sized> fmt::Debug for TypedKernel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.compiled.fmt(f)
    }
}

impl<T: Kernel> TypedKernel<T> {
    /// Begins a launch with all of its arguments: a missing or misspelt argument does not compile.
    pub fn with(&self, args: T::Args<LaunchMode<'_>>) -> Binder<'_> {
        let mut binder = self.bind();
        let contract = &self.compiled.compiled.contract;
        args.give(&mut ArgumentSink { contract, bindings: &mut binder.bindings });
        binder
    }
}

/// A compiled kernel without a handle of the device, so that the device can hold it.
struct Compiled {
    contract: Contract,
    kernel: Arc<function::Kernel>,
    /// Blocks that are resident at once, for the block that the launch rule names.
    resident: u64,
}

/// The kernels of a device, so that each is loaded once.
///
/// Content decides: two kernels are equal if they are built to the same module, with the same arguments and the same
/// launch rule, whatever their names. A [`Key`] is a short cut that only derives can make: they leave out no field, and
/// a body computes with nothing else.
#[derive(Default)]
pub(crate) struct Kernels {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The key includes the reason why the kernel stays within its arguments: only a kernel that makes the promise may
    /// decide what runs under it.
    by_key: HashMap<(Key, Within), Arc<Compiled>>,
    by_content: HashMap<Content, Arc<Compiled>>,
}

/// Why a kernel stays within its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Within {
    /// Unknown.
    Unknown,
    /// Its author promises it.
    Promised,
    /// It was built with checks that trap before an access leaves the arguments.
    Checked,
}

/// A checksum of what was built.
type Content = [u8; 32];

impl Device {
    /// Checks, builds, verifies and loads a kernel for this device. A configuration that the device has seen is not
    /// built again if its type [derives](warpwright_dsl::Config) its key; any other kernel is built, but not loaded
    /// again if an equal module is loaded already.
    ///
    /// Refused if the kernel does not support the configuration, if the body has mistakes, or if the device cannot run
    /// the kernel: it is too old, has too little shared memory, does not support the block or has no clusters. The
    /// device keeps its kernels as long as it lives.
    ///
    /// Launching it is safe on a virtual GPU, which checks every access, and if the kernel is
    /// [`Bounded`](warpwright_dsl::Bounded): see [`Binder::launch`].
    pub fn kernel<T: AnyKernel + ?Sized>(&self, kernel: &T) -> Result<TypedKernel<T>> {
        // Whatever shows a promise, the one that has given it is the one that is built.
        let (compiled, within) = match kernel.bounded() {
            Some(bounded) => (self.known(bounded, Within::Promised)?, Within::Promised),
            None => (self.known(kernel, Within::Unknown)?, Within::Unknown),
        };
        Ok(self.typed(compiled, within))
    }

    /// Like [`kernel`](Self::kernel), built with checked pointers ([`build_checked`]): launching it is safe on every
    /// device, whatever the kernel does. A launch fails before an access leaves the arguments, and on a CUDA device the
    /// context fails with it. Each access costs about five more instructions.
    ///
    /// Refused for the same reasons as [`kernel`](Self::kernel), and if an access cannot be checked.
    ///
    /// ```
    /// use warpwright_dsl::*;
    /// use warpwright_runtime::{Device, RuntimeError, VmConfig};
    ///
    /// /// `y[i] = 1`, for any `i`.
    /// #[derive(Config)]
    /// struct WriteOne;
    ///
    /// #[derive(Args)]
    /// #[args(of = WriteOne)]
    /// struct WriteOneArgs<M: Mode> {
    ///     #[arg(len = 8)]
    ///     y: M::Out<u32>,
    ///     i: M::Scalar<u32>,
    /// }
    ///
    /// impl Kernel for WriteOne {
    ///     type Args<M: Mode> = WriteOneArgs<M>;
    ///     fn launch(&self) -> LaunchRule {
    ///         LaunchRule::new(1)
    ///     }
    ///     fn body<'k>(&self, k: K<'k>, WriteOneArgs { y, i }: WriteOneArgs<Body<'k>>) {
    ///         y.st(i, k.u32(1));
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), RuntimeError> {
    /// let device = Device::vm(VmConfig::default())?;
    /// let stream = device.default_stream();
    /// let y = stream.alloc_zeros::<u32>(8)?;
    /// let kernel = device.checked(&WriteOne)?;
    /// kernel.with(WriteOneArgs { y: &y, i: 7 }).launch(&stream)?;
    /// assert_eq!(stream.clone_dtoh(&y)?, [0, 0, 0, 0, 0, 0, 0, 1]);
    /// kernel.with(WriteOneArgs { y: &y, i: 8 }).launch(&stream)?;
    /// assert!(stream.synchronize().is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn checked<T: AnyKernel + ?Sized>(&self, kernel: &T) -> Result<TypedKernel<T>> {
        Ok(self.typed(self.known(kernel, Within::Checked)?, Within::Checked))
    }

    fn typed<T: ?Sized>(&self, compiled: Arc<Compiled>, within: Within) -> TypedKernel<T> {
        let is_bounded = within != Within::Unknown;
        let compiled = CompiledKernel { device: self.clone(), compiled, is_bounded };
        TypedKernel { compiled, kernel: PhantomData }
    }

    fn known<T: AnyKernel + ?Sized>(&self, kernel: &T, within: Within) -> Result<Arc<Compiled>> {
        let key = kernel.key().map(|key| (key, within));
        match key.as_ref().and_then(|key| lock(&self.kernels().known).by_key.get(key).cloned()) {
            Some(compiled) => Ok(compiled),
            None => self.built(kernel, within, key),
        }
    }

    /// Checks that the device checks accesses, or that the kernel does not need it to.
    pub(crate) fn must_stay_inside(&self, is_bounded: bool, kernel: &str) -> Result<()> {
        // A CUDA driver may say that its device is virtual: it is not known here what that one checks.
        if is_bounded || matches!(self.backend(), Backend::Vm(_)) {
            return Ok(());
        }
        Err(RuntimeError::Unbounded { kernel: kernel.to_owned() })
    }

    /// The kernel, once it is built.
    fn built<T: AnyKernel + ?Sized>(
        &self,
        kernel: &T,
        within: Within,
        key: Option<(Key, Within)>,
    ) -> Result<Arc<Compiled>> {
        let entry = kernel.entry();
        let failed = |source| RuntimeError::Build { kernel: entry.clone(), source };
        kernel.check().map_err(failed)?;
        let limits = Limits::of(self);
        // What the rule says without a build is judged without one.
        Contract::check_rule(&entry, &kernel.launch(), &limits)?;
        let (built, args) = match within {
            // The arguments that it was built with, even if it would return others now.
            Within::Checked => build_checked(kernel, limits.arch).map_err(failed)?,
            _ => (kernel.build(limits.arch).map_err(failed)?, kernel.args()),
        };
        let content = content(&built, &args);
        let known = lock(&self.kernels().known).by_content.get(&content).cloned();
        let compiled = match known {
            Some(compiled) => compiled,
            None => Arc::new(self.compile(&entry, args, built, limits, within == Within::Checked)?),
        };
        let mut known = lock(&self.kernels().known);
        // Where another thread was faster, its kernel is the one.
        let compiled = known.by_content.entry(content).or_insert(compiled).clone();
        if let Some(key) = key {
            known.by_key.insert(key, compiled.clone());
        }
        Ok(compiled)
    }

    fn compile(
        &self,
        entry: &str,
        args: Vec<ArgDesc>,
        built: Built,
        limits: Limits,
        checked: bool,
    ) -> Result<Compiled> {
        let contract = Contract::new(entry, args, built.launch, limits)?.checked(checked);
        let info = warpwright_ptx::verify(&built.module)
            .map_err(|mistakes| RuntimeError::Build { kernel: entry.to_owned(), source: mistakes.into() })?;
        let kernel = self.load(&built.module, &info)?.kernel(entry)?;
        let function = Function::new(self.clone(), kernel.clone());
        let LaunchRule { dynamic_shared, .. } = contract.rule;
        if dynamic_shared > function.max_dynamic_shared() {
            function.set_max_dynamic_shared(dynamic_shared)?;
        }
        let resident = function.max_cooperative_grid(threads(contract.block()), dynamic_shared);
        Ok(Compiled { contract, kernel, resident })
    }
}

/// The kernel to build, and whether it promises to stay within its arguments.
pub(crate) fn promised(kernel: &dyn AnyKernel) -> (&dyn AnyKernel, bool) {
    match kernel.bounded() {
        Some(bounded) => (bounded, true),
        None => (kernel, false),
    }
}

/// The checksum of all that a launch depends on.
fn content(built: &Built, args: &[ArgDesc]) -> Content {
    let text = warpwright_ptx::print(&built.module);
    let beside = format!("{args:?} {:?}", built.launch);
    Sha256::new()
        .chain_update(text.len().to_le_bytes())
        .chain_update(text)
        .chain_update(beside)
        .finalize()
        .into()
}

fn threads(block: [u32; 3]) -> u32 {
    block.iter().fold(1, |product: u32, &n| product.saturating_mul(n))
}

impl CompiledKernel {
    /// Its entry name.
    pub fn entry(&self) -> &str {
        &self.compiled.contract.kernel
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Its arguments, in order.
    pub fn args(&self) -> &[ArgDesc] {
        &self.compiled.contract.args
    }

    /// The numbers that lengths and the grid depend on and that are not arguments: see [`Binder::dim`].
    pub fn dims(&self) -> &[&'static str] {
        &self.compiled.contract.dims
    }

    /// Its launch rule, with the shared memory that the build needs.
    pub fn launch_rule(&self) -> &LaunchRule {
        &self.compiled.contract.rule
    }

    /// The compiled function: its attributes and its occupancy.
    pub fn function(&self) -> Function {
        Function::new(self.device.clone(), self.compiled.kernel.clone())
    }

    /// Begins a launch without arguments, which are then given by name. [`TypedKernel::with`] takes all at once.
    pub fn bind(&self) -> Binder<'_> {
        let contract = &self.compiled.contract;
        let (device, compiled, is_bounded) = (&self.device, &*self.compiled, self.is_bounded);
        let (bindings, block) = (Bindings::new(contract), contract.block());
        Binder { device, compiled, is_bounded, bindings, block, dependent: true }
    }
}

impl fmt::Debug for CompiledKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledKernel").field("entry", &self.entry()).finish_non_exhaustive()
    }
}

/// A launch under construction: takes arguments by name and in any order. [`launch`](Self::launch) and
/// [`prepare`](Self::prepare) return the first mistake.
#[must_use = "nothing is launched before `launch`"]
pub struct Binder<'a> {
    device: &'a Device,
    compiled: &'a Compiled,
    is_bounded: bool,
    bindings: Bindings,
    block: [u32; 3],
    dependent: bool,
}

impl<'a> Binder<'a> {
    /// Passes a buffer, or a part of one.
    pub fn buffer(mut self, name: &str, buffer: impl AsRef<AnyBuffer>) -> Self {
        self.bindings.buffer(self.contract(), name, buffer.as_ref());
        self
    }

    /// Passes a number. Lengths and the grid may depend on it.
    pub fn scalar<T: Element>(mut self, name: &str, value: T) -> Self {
        self.bindings.scalar(self.contract(), name, value);
        self
    }

    /// Passes a number that lengths or the grid depend on, such as `rows`: one of [`CompiledKernel::dims`], or an
    /// integer argument.
    pub fn dim(mut self, name: &str, count: u64) -> Self {
        self.bindings.dim(self.contract(), name, count);
        self
    }

    /// Chooses the block, in threads along x, y and z. Kernels of the library accept one block only, which you need not
    /// choose.
    pub fn block(mut self, dims: [u32; 3]) -> Self {
        self.block = dims;
        self
    }

    /// Whether the launch may begin before the one in front of it in its stream is complete (a programmatic dependent
    /// launch). By default it may if its code contains `griddepcontrol.wait` and it is not cooperative.
    pub fn dependent(mut self, dependent: bool) -> Self {
        self.dependent = dependent;
        self
    }

    fn contract(&self) -> &'a Contract {
        &self.compiled.contract
    }

    /// Checks everything but runs nothing yet. The result can be launched any number of times without another check.
    ///
    /// Refused for the same reasons as [`launch`](Self::launch).
    pub fn prepare(self) -> Result<PreparedLaunch> {
        self.must_stay_inside()?;
        self.prepared()
    }

    /// As [`prepare`](Self::prepare), for a kernel that does not promise to stay within its arguments.
    ///
    /// # Safety
    ///
    /// As for [`launch_unbounded`](Self::launch_unbounded), for every launch of the result, whatever its buffers hold
    /// by then.
    #[allow(unsafe_code, reason = "what a kernel accesses is the caller's promise")]
    pub unsafe fn prepare_unbounded(self) -> Result<PreparedLaunch> {
        self.prepared()
    }

    fn prepared(self) -> Result<PreparedLaunch> {
        let device = self.device.clone();
        let (launch, buffers) = self.resolve()?;
        Ok(PreparedLaunch { inner: Arc::new(Prepared { device, launch: Arc::new(launch), buffers }) })
    }

    /// Checks everything and issues the launch on the stream.
    ///
    /// Refused on a CUDA device, which checks no access, if the kernel is not [`Bounded`](warpwright_dsl::Bounded)
    /// ([`RuntimeError::Unbounded`]).
    pub fn launch(self, stream: &Stream) -> Result<()> {
        self.must_stay_inside()?;
        self.launched(stream)
    }

    /// As [`launch`](Self::launch), for a kernel that does not promise to stay within its arguments.
    ///
    /// ```compile_fail,E0133
    /// # use warpwright_runtime::{Binder, RuntimeError, Stream};
    /// # fn launch(binder: Binder<'_>, stream: &Stream) -> Result<(), RuntimeError> {
    /// binder.launch_unbounded(stream)
    /// # }
    /// ```
    ///
    /// # Safety
    ///
    /// With these arguments, and whatever they hold when the kernel runs, the kernel must keep to what
    /// [`Bounded`](warpwright_dsl::Bounded) says; or it must access only memory of buffers that outlive the launch, and
    /// write nothing that anything else uses at the same time.
    #[allow(unsafe_code, reason = "what a kernel accesses is the caller's promise")]
    pub unsafe fn launch_unbounded(self, stream: &Stream) -> Result<()> {
        self.launched(stream)
    }

    fn must_stay_inside(&self) -> Result<()> {
        self.device.must_stay_inside(self.is_bounded, &self.compiled.contract.kernel)
    }

    fn launched(self, stream: &Stream) -> Result<()> {
        must_run(stream, self.device)?;
        let (launch, buffers) = self.resolve()?;
        stream.enqueue(Arc::new(launch).into(), &buffers)
    }

    fn resolve(self) -> Result<(Launch, Vec<AnyBuffer>)> {
        let (arguments, buffers) = self.bindings.finish()?;
        let Compiled { contract, kernel, resident } = self.compiled;
        let max_blocks = || {
            if self.block == contract.block() {
                return *resident;
            }
            let dynamic_shared = contract.rule.dynamic_shared;
            Function::new(self.device.clone(), kernel.clone())
                .max_cooperative_grid(threads(self.block), dynamic_shared)
        };
        let Resolved { mut shape, params, mut access } =
            contract.resolve(&arguments, self.block, max_blocks)?;
        shape.dependent &= self.dependent;
        if !self.is_bounded {
            access.writes = None;
        }
        let launch = kernel.launch((shape, access), params.into_iter(), buffers.iter());
        Ok((launch, buffers))
    }
}

/// Checks that a stream belongs to the kernel's device.
fn must_run(stream: &Stream, device: &Device) -> Result<()> {
    if stream.device() == device {
        return Ok(());
    }
    Err(RuntimeError::OtherDevice { operation: "launch", what: "kernel" })
}

/// A launch that has passed every check. It keeps its buffers alive. A cheap handle: its clones are one launch.
///
/// The contents of its buffers may change between launches; their addresses and the numbers do not.
#[derive(Clone)]
pub struct PreparedLaunch {
    inner: Arc<Prepared>,
}

struct Prepared {
    device: Device,
    launch: Arc<Launch>,
    buffers: Vec<AnyBuffer>,
}

impl PreparedLaunch {
    /// The kernel's entry name.
    pub fn kernel(&self) -> &str {
        &self.inner.launch.kernel
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Blocks along x, y and z.
    pub fn grid(&self) -> [u32; 3] {
        self.shape().grid
    }

    /// Threads of a block along x, y and z.
    pub fn block(&self) -> [u32; 3] {
        self.shape().block
    }

    /// Dynamic shared memory of a block, in bytes.
    pub fn dynamic_shared(&self) -> u32 {
        self.shape().dynamic_shared
    }

    /// The buffers among its arguments.
    pub fn buffers(&self) -> &[AnyBuffer] {
        &self.inner.buffers
    }

    /// Whether it may begin before the launch in front of it is complete.
    pub fn is_dependent(&self) -> bool {
        self.shape().dependent
    }

    fn shape(&self) -> &Shape {
        &self.inner.launch.shape
    }

    pub(crate) fn op(&self) -> &Arc<Launch> {
        &self.inner.launch
    }
}

impl fmt::Debug for PreparedLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("PreparedLaunch");
        debug.field("kernel", &self.kernel()).field("grid", &self.grid()).field("block", &self.block());
        debug.finish_non_exhaustive()
    }
}

impl Stream {
    /// Issues a prepared launch on this stream. Only the device is checked again, and nothing is allocated.
    pub fn launch(&self, prepared: &PreparedLaunch) -> Result<()> {
        must_run(self, &prepared.inner.device)?;
        self.enqueue(prepared.inner.launch.clone().into(), &prepared.inner.buffers)
    }
}
