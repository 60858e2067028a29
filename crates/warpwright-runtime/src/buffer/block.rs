//! Blocks of the pool that buffers hold.

use super::AnyBuffer;
use crate::backend::Memory;
use crate::device::Device;
use crate::pool::Point;
use crate::stream::StreamState;
use std::sync::{Arc, Mutex, PoisonError};

/// A piece of device memory that buffers share. It goes back to the pool when it is dropped.
pub(crate) struct Block {
    pub(crate) device: Device,
    pub(crate) memory: Arc<Memory>,
    /// The stream that it was allocated on; `None` for mapped memory, which no pool has, and no stream.
    pub(crate) home: Option<Arc<StreamState>>,
    /// Other streams that have used it.
    foreign: Mutex<Vec<Arc<StreamState>>>,
    /// Buffers whose addresses are in it: whoever uses it uses them.
    held: Box<[AnyBuffer]>,
}

impl Block {
    pub(crate) fn new(device: Device, memory: Arc<Memory>, home: Option<Arc<StreamState>>) -> Self {
        Block::holding(device, memory, home, Box::default())
    }

    /// A block with the addresses of these buffers in it, which live as long as it does.
    pub(crate) fn holding(
        device: Device,
        memory: Arc<Memory>,
        home: Option<Arc<StreamState>>,
        held: Box<[AnyBuffer]>,
    ) -> Self {
        Block { device, memory, home, foreign: Mutex::default(), held }
    }

    /// Buffers whose addresses are in it.
    pub(crate) fn held(&self) -> &[AnyBuffer] {
        &self.held
    }

    /// An operation of that stream uses it. Streams other than its own are few: each is noted once.
    pub(crate) fn used_by(&self, stream: &Arc<StreamState>) {
        self.held.iter().for_each(|buffer| buffer.used_by(stream));
        if self.home.as_ref().is_some_and(|home| home.id == stream.id) {
            return;
        }
        let mut foreign = self.foreign.lock().unwrap_or_else(PoisonError::into_inner);
        if !foreign.iter().any(|known| known.id == stream.id) {
            foreign.push(stream.clone());
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // What its streams have been asked for until now may use it.
        let foreign = self.foreign.get_mut().unwrap_or_else(PoisonError::into_inner);
        let others: Vec<Point> = foreign.iter().map(|stream| stream.point()).collect();
        match &self.home {
            Some(home) => self.device.release(self.memory.clone(), home.point(), others),
            None => self.device.release_mapped(self.memory.clone(), &others),
        }
    }
}
