//! Blocks of the pool that buffers hold.

use super::{AnyBuffer, Issuing, Loan};
use crate::backend::Memory;
use crate::device::Device;
use crate::error::Result;
use crate::lock;
use crate::pool::Point;
use crate::stream::StreamState;
use std::sync::{Arc, Mutex, PoisonError};

/// A piece of device memory that buffers share. It goes back to the pool when it is dropped.
pub(crate) struct Block {
    pub(crate) device: Device,
    pub(crate) memory: Arc<Memory>,
    /// The stream that it was allocated on; `None` for mapped or lent memory, which belongs to no pool and no stream.
    pub(crate) home: Option<Arc<StreamState>>,
    /// Other streams that have used it.
    foreign: Mutex<Vec<Arc<StreamState>>>,
    /// Buffers whose addresses are stored in it: an operation that uses the block uses them too.
    held: Box<[AnyBuffer]>,
    /// The loan, if the memory belongs to someone else.
    loan: Option<Arc<Loan>>,
}

impl Block {
    /// A block that stores the addresses of these buffers and keeps them alive.
    pub(crate) fn holding(
        device: Device,
        memory: Arc<Memory>,
        home: Option<Arc<StreamState>>,
        held: Box<[AnyBuffer]>,
    ) -> Self {
        Block { device, memory, home, foreign: Mutex::default(), held, loan: None }
    }

    /// Memory that is lent for the duration of the loan.
    pub(crate) fn lent(device: Device, memory: Arc<Memory>, loan: Arc<Loan>) -> Self {
        let (foreign, held) = Default::default();
        Block { device, memory, home: None, foreign, held, loan: Some(loan) }
    }

    /// Whether it is memory of the host's.
    pub(crate) fn is_mapped(&self) -> bool {
        self.home.is_none() && self.loan.is_none()
    }

    /// The streams other than its own that have used it.
    pub(crate) fn foreign(&self) -> Vec<Arc<StreamState>> {
        lock(&self.foreign).clone()
    }

    /// Buffers whose addresses are in it.
    pub(crate) fn held(&self) -> &[AnyBuffer] {
        &self.held
    }

    /// Notes that an operation being issued on that stream uses the block. Streams other than its own are few: each is
    /// noted once. Refused if the loan has ended.
    pub(crate) fn used_by(&self, stream: &Arc<StreamState>, issuing: &mut Issuing) -> Result<()> {
        for buffer in &self.held {
            buffer.used_by(stream, issuing)?;
        }
        if let Some(loan) = &self.loan {
            issuing.enter(loan)?;
        }
        if self.home.as_ref().is_some_and(|home| home.id == stream.id) {
            return Ok(());
        }
        let mut foreign = lock(&self.foreign);
        if !foreign.iter().any(|known| known.id == stream.id) {
            foreign.push(stream.clone());
        }
        Ok(())
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // The operations of its streams so far may use it.
        let foreign = self.foreign.get_mut().unwrap_or_else(PoisonError::into_inner);
        let others: Vec<Point> = foreign.iter().map(|stream| stream.point()).collect();
        match &self.home {
            Some(home) => self.device.release(self.memory.clone(), home.point(), others),
            None => self.device.release_mapped(self.memory.clone(), &others),
        }
    }
}
