//! Interoperation with cudarc: its streams and slices together with those of this crate.
//!
//! Each side lends memory to the other for the duration of a closure: cudarc's slices become [`Buffer`]s
//! ([`Device::borrow`]), and buffers become views of cudarc ([`Stream::lend`]). Operations that the lender issued
//! before come first, then those of the borrower, then later ones of the lender. Events between the streams ensure this
//! order, and those that cudarc keeps with its slices, where it keeps some.
//!
//! A program may capture on its stream the operations that are issued through this crate: its graph
//! [holds](super::captured) the resources that they use.

use super::handles::{Event, Stream as Raw};
use super::memory::Allocator;
use crate::backend::{self, StreamHandle};
use crate::buffer::{AnyBuffer, Block, Buffer, Element, Issuing, Loan};
use crate::device::Device;
use crate::error::{Result, RuntimeError};
use crate::stream::Stream;
use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DeviceSlice,
    SyncOnDrop,
};
use std::sync::Arc;

impl Device {
    /// The device of an existing cudarc context. Its [default stream](Device::default_stream) is the given stream:
    /// operations of both sides on it are executed in the order of issue.
    ///
    /// Refused if the stream belongs to another context, or if the driver is too old.
    ///
    /// ```no_run
    /// use cudarc::driver::CudaContext;
    /// use warpwright_runtime::{Device, cudarc};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let context = CudaContext::new(0)?;
    /// let theirs = context.new_stream()?;
    /// let device = Device::from_cudarc(context, theirs.clone())?;
    /// let ours = device.default_stream();
    ///
    /// let x = theirs.clone_htod(&[1.0f32, 2.0, 3.0])?;
    /// let mut y = theirs.alloc_zeros::<f32>(3)?;
    /// device.borrow((&x, &mut y), |(x, y)| ours.memcpy_dtod(&x, &y))??;
    /// assert_eq!(theirs.clone_dtoh(&y)?, [1.0, 2.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_cudarc(context: Arc<CudaContext>, stream: Arc<CudaStream>) -> Result<Device> {
        if stream.context().cu_ctx() != context.cu_ctx() {
            return Err(RuntimeError::OtherDevice { operation: "from_cudarc", what: "stream" });
        }
        Device::cuda_of(context, stream)
    }

    /// Lends slices of cudarc as buffers for the duration of a call: `&CudaSlice`, `&mut CudaSlice`, `&CudaView`, `&mut
    /// CudaViewMut`, vectors and tuples of them. Borrow mutably what is written.
    ///
    /// Operations that the call issues, on any stream of the device, come after the earlier operations of the slice's
    /// stream and before its later ones; the host does not wait. Handles of the buffers that outlive the call,
    /// including those in graphs and prepared launches, are refused when they are used ([`RuntimeError::LoanEnded`]).
    ///
    /// Refused if a slice is not of the device's context, or if the device is not a CUDA device.
    pub fn borrow<L: Lendable, R>(&self, slices: L, call: impl FnOnce(L::Buffers) -> R) -> Result<R> {
        let stream = self.default_stream();
        let raw = stream.driver("borrow")?;
        let ours = raw.cudarc();
        // Whatever happens in the call, this is dropped before the slices are free.
        let mut loans = Loans { device: self, raw, ours: &ours, lent: Vec::new() };
        let buffers = slices.lend(&mut loans)?;
        Ok(call(buffers))
    }
}

impl Stream {
    /// Lends a buffer to cudarc for the duration of a call, as a view on this stream ([`DeviceSlice::stream`]).
    ///
    /// Operations on the view come after the earlier operations of this stream and before its later ones. That holds on
    /// the view's own stream, and on others if cudarc keeps events with slices, which it does if the device's
    /// [`CudaContext`] has made streams and tracks them. That context is the one given to [`Device::from_cudarc`], or
    /// `view.stream().context()`. [Join](CudaStream::join) streams of another `CudaContext` of the same GPU by hand.
    ///
    /// Refused if the buffer belongs to another device, or if the device is not a CUDA device.
    pub fn lend<T: Element, R>(
        &self,
        buffer: &Buffer<T>,
        call: impl FnOnce(CudaViewMut<'_, T>) -> R,
    ) -> Result<R> {
        /// Releases the memory, which the slice must not free.
        struct Returned<'a, T> {
            slice: Option<CudaSlice<T>>,
            ours: &'a CudaStream,
            stream: &'a Stream,
        }

        impl<T> Drop for Returned<'_, T> {
            fn drop(&mut self) {
                if let Some(mut slice) = self.slice.take() {
                    // The stream waits for what cudarc has issued on others.
                    drop(slice.device_ptr_mut(self.ours));
                    slice.leak();
                    // What cudarc has issued has no ticket: this one is behind it.
                    let _ = self.stream.record_event();
                }
            }
        }

        self.must_not_capture("lend")?;
        self.must_own("lend", "buffer", buffer.as_any())?;
        let ours = self.driver("lend")?.lend();
        let mut issuing = Issuing::default();
        buffer.as_any().used_by(self.state(), &mut issuing)?;
        // The bindings make events, and panic where they cannot.
        drop(Event::new(&self.driver("lend")?.context, false)?);
        // SAFETY: the memory is there and has that many elements for as long as `buffer` is borrowed, which is longer
        // than the slice lives; any bytes are elements. It is leaked and not freed.
        let slice = unsafe { ours.upgrade_device_ptr::<T>(buffer.device_ptr(), buffer.len()) };
        let mut lent = Returned { slice: Some(slice), ours: &ours, stream: self };
        let Some(slice) = &mut lent.slice else { return Err(RuntimeError::LoanEnded) };
        // Other streams of cudarc wait for this one's operations.
        drop(slice.device_ptr_mut(&ours));
        Ok(call(slice.as_view_mut()))
    }

    /// The driver's stream.
    fn driver(&self, operation: &'static str) -> Result<&Arc<Raw>> {
        match &self.state().handle {
            StreamHandle::Cuda(handle) => Ok(handle.stream()),
            StreamHandle::Vm(_) => Err(RuntimeError::NotCuda { operation }),
        }
    }
}

/// The loans of a call.
pub struct Loans<'a> {
    device: &'a Device,
    raw: &'a Arc<Raw>,
    ours: &'a CudaStream,
    lent: Vec<Lent<'a>>,
}

/// A slice that is lent.
struct Lent<'a> {
    loan: Arc<Loan>,
    /// Keeps the block alive; it knows which streams have used it.
    buffer: AnyBuffer,
    /// Records with cudarc the end of its use.
    sync: Option<SyncOnDrop<'a>>,
    /// The slice's own stream.
    home: Arc<CudaStream>,
}

impl<'a> Loans<'a> {
    /// Lends memory that lives for `'a`.
    fn add<T: Element>(
        &mut self,
        home: &Arc<CudaStream>,
        len: usize,
        pointer: impl FnOnce(&'a CudaStream) -> (u64, SyncOnDrop<'a>),
    ) -> Result<Buffer<T>> {
        if home.context().cu_ctx() != self.ours.context().cu_ctx() {
            return Err(RuntimeError::OtherDevice { operation: "borrow", what: "slice" });
        }
        join(self.raw, &theirs(self.raw, home))?;
        let (address, sync) = pointer(self.ours);
        let bytes = (len * size_of::<T>()) as u64;
        let memory = backend::Memory::Cuda(Allocator::borrowed(address, bytes));
        let loan = Arc::new(Loan::default());
        let block = Block::lent(self.device.clone(), Arc::new(memory), loan.clone());
        let buffer = AnyBuffer::new(block, bytes, T::TYPE);
        self.lent.push(Lent { loan, buffer: buffer.clone(), sync: Some(sync), home: home.clone() });
        Ok(Buffer::new(buffer))
    }
}

impl Drop for Loans<'_> {
    fn drop(&mut self) {
        for lent in &mut self.lent {
            lent.loan.end();
            // Where a call fails the context is lost, and nothing goes on that would have to be waited for.
            for state in lent.buffer.block().foreign() {
                if let StreamHandle::Cuda(handle) = &state.handle {
                    let _ = join(self.raw, handle.stream());
                }
            }
            drop(lent.sync.take());
            let _ = join(&theirs(self.raw, &lent.home), self.raw);
        }
    }
}

fn theirs(ours: &Raw, stream: &Arc<CudaStream>) -> Raw {
    Raw::theirs(&ours.context, stream.clone())
}

/// Makes later operations of one stream wait for the earlier ones of another.
fn join(later: &Raw, earlier: &Raw) -> Result<()> {
    if later.handle != earlier.handle {
        let event = Event::new(&later.context, false)?;
        event.record(earlier)?;
        later.wait(&event)?;
    }
    Ok(())
}

mod sealed {
    /// Lends memory that cudarc has borrowed for long enough.
    pub trait Sealed {}
}

/// The arguments of [`Device::borrow`]: slices of cudarc, vectors and tuples of them.
pub trait Lendable: sealed::Sealed {
    /// The buffers that they become.
    type Buffers;

    /// Lends them.
    #[doc(hidden)]
    fn lend<'a>(self, loans: &mut Loans<'a>) -> Result<Self::Buffers>
    where
        Self: 'a;
}

macro_rules! lendable {
    ($($slice:ty: $pointer:ident;)*) => {$(
        impl<T: Element> sealed::Sealed for $slice {}

        impl<T: Element> Lendable for $slice {
            type Buffers = Buffer<T>;

            fn lend<'a>(self, loans: &mut Loans<'a>) -> Result<Buffer<T>>
            where
                Self: 'a,
            {
                let (home, len) = (DeviceSlice::stream(&*self).clone(), DeviceSlice::len(&*self));
                loans.add(&home, len, |ours| self.$pointer(ours))
            }
        }
    )*};
}

lendable! {
    &CudaSlice<T>: device_ptr;
    &mut CudaSlice<T>: device_ptr_mut;
    &CudaView<'_, T>: device_ptr;
    &mut CudaViewMut<'_, T>: device_ptr_mut;
}

impl<L: Lendable> sealed::Sealed for Vec<L> {}

impl<L: Lendable> Lendable for Vec<L> {
    type Buffers = Vec<L::Buffers>;

    fn lend<'a>(self, loans: &mut Loans<'a>) -> Result<Self::Buffers>
    where
        Self: 'a,
    {
        self.into_iter().map(|slices| slices.lend(loans)).collect()
    }
}

macro_rules! lendable_tuple {
    ($($name:ident)*) => {
        impl<$($name: Lendable),*> sealed::Sealed for ($($name,)*) {}

        impl<$($name: Lendable),*> Lendable for ($($name,)*) {
            type Buffers = ($($name::Buffers,)*);

            #[allow(non_snake_case, reason = "a value for each type")]
            fn lend<'a>(self, loans: &mut Loans<'a>) -> Result<Self::Buffers>
            where
                Self: 'a,
            {
                let ($($name,)*) = self;
                Ok(($($name.lend(loans)?,)*))
            }
        }
    };
}

lendable_tuple!(A);
lendable_tuple!(A B);
lendable_tuple!(A B C);
lendable_tuple!(A B C D);
lendable_tuple!(A B C D E);
lendable_tuple!(A B C D E F);
lendable_tuple!(A B C D E F G);
lendable_tuple!(A B C D E F G H);
