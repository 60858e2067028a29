//! Programs that have cudarc already: its streams and slices with ours.
//!
//! Memory goes for a time from one side to the other, as the argument of a closure, which no value can outlive: theirs
//! as [`Buffer`]s ([`Device::borrow`]), ours as views of theirs ([`Stream::lend`]). What one side was asked for before
//! comes before what the other one is asked for meanwhile, and that before what the first one is asked for afterwards:
//! by events between the streams, and by those that cudarc keeps with its slices where it keeps some.
//!
//! Who has a stream may capture on it what we are asked for: that graph [keeps](super::keep) what our operations use.

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
    /// The device of a context that the program has, whose [default stream](Device::default_stream) is that stream: what
    /// either side is asked for on it is done in the order of asking.
    ///
    /// Refused where the stream is of another context, or the driver is too old.
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

    /// Has slices of cudarc as buffers for the time of a call: `&CudaSlice`, `&mut CudaSlice`, `&CudaView`, `&mut
    /// CudaViewMut`, vectors and tuples of them. What is written is borrowed mutably.
    ///
    /// What is asked for meanwhile, on any stream of the device, comes behind what the slice's stream was asked for
    /// before, and before what that one is asked for afterwards; nobody waits. Handles of the buffers that are kept, also
    /// in graphs and prepared launches, are refused when they are used afterwards ([`RuntimeError::LoanEnded`]).
    ///
    /// Refused where a slice is not of the device's context, or the device is none of CUDA's.
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
    /// Lends a buffer to cudarc for the time of a call, as a view on this stream ([`DeviceSlice::stream`]).
    ///
    /// What is done with the view meanwhile comes behind what this stream was asked for before, and before what it is
    /// asked for afterwards. That holds on the view's own stream, and on others where cudarc keeps events with slices: where
    /// the device's [`CudaContext`], which [`Device::from_cudarc`] was given or `view.stream().context()` is, has made
    /// streams and tracks them. Streams of another `CudaContext` of the same GPU must be
    /// [joined](CudaStream::join) by hand.
    ///
    /// Refused where the buffer is of another device, and for devices that are none of CUDA's.
    pub fn lend<T: Element, R>(
        &self,
        buffer: &Buffer<T>,
        call: impl FnOnce(CudaViewMut<'_, T>) -> R,
    ) -> Result<R> {
        /// Gives the memory back, which is not the slice's to free.
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
        // Other streams of cudarc wait for what this one was asked for.
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
    /// Keeps the block, which knows what has used it.
    buffer: AnyBuffer,
    /// Tells cudarc that it is used no more, behind what it was used for.
    sync: Option<SyncOnDrop<'a>>,
    /// The slice's own stream.
    home: Arc<CudaStream>,
}

impl<'a> Loans<'a> {
    /// Lends memory that is there for as long as `'a`.
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

/// What a stream is asked for from now on waits for what another one was asked for so far.
fn join(later: &Raw, earlier: &Raw) -> Result<()> {
    if later.handle != earlier.handle {
        let event = Event::new(&later.context, false)?;
        event.record(earlier)?;
        later.wait(&event)?;
    }
    Ok(())
}

mod sealed {
    /// Lends what cudarc has borrowed for long enough.
    pub trait Sealed {}
}

/// What [`Device::borrow`] takes: slices of cudarc, vectors and tuples of them.
pub trait Lendable: sealed::Sealed {
    /// The buffers that these become.
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
