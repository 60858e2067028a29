//! Captured resources: what our operations use when another library captures them. Its graph keeps them alive, and so
//! does everything made from it.
//!
//! The buffers of a captured operation, and the operation itself, may be dropped before its graph runs. So the graph
//! gets a user object that holds them and ends with the last replay. The driver reports that end on a thread of its own
//! that must not call the driver, as freeing memory does: **a thread of ours drops the resources**.

use super::error::{CallError, check};
use super::shutdown::{Busy, watch};
use super::sys::{self, CUgraph, CUuserObject_flags, CUuserObjectRetain_flags, Status};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::mpsc::{SendError, Sender, channel};

/// The resources.
type Held = Box<dyn Send>;

/// The resources of a user object, and the channel to the thread that drops them.
struct CapturedResources {
    held: Held,
    dropper: Sender<(Held, Busy)>,
}

/// The thread that drops resources of graphs, as long as the process lives.
fn dropper() -> Result<Sender<(Held, Busy)>, CallError> {
    static DROPPER: OnceLock<Sender<(Held, Busy)>> = OnceLock::new();
    if let Some(dropper) = DROPPER.get() {
        return Ok(dropper.clone());
    }
    let (dropper, dropped) = channel::<(Held, Busy)>();
    watch();
    std::thread::Builder::new()
        .name("warpwright-cuda-graphs".into())
        .spawn(move || dropped.into_iter().for_each(drop))
        .map_err(|error| CallError {
            text: format!("there is no thread that could drop what the graph holds: {error}"),
            ..CallError::new("cuUserObjectCreate", Status::OPERATING_SYSTEM)
        })?;
    // Another thread may have been faster: then this one ends.
    Ok(DROPPER.get_or_init(|| dropper).clone())
}

unsafe extern "C" fn let_go(data: *mut c_void) {
    // SAFETY: `data` is what `retain` has made, and the driver calls this once.
    let CapturedResources { held, dropper } = *unsafe { Box::from_raw(data.cast::<CapturedResources>()) };
    // The thread lives as long as the process, unless it has panicked: then the resources leak, since nothing may be
    // freed here.
    if let Err(SendError((held, _))) = dropper.send((held, Busy::new())) {
        std::mem::forget(held);
    }
}

/// Makes a graph, and everything made from it, keep resources alive until it runs no more. The context is bound.
pub(super) fn retain(graph: CUgraph, held: Held) -> Result<(), CallError> {
    let data = Box::into_raw(Box::new(CapturedResources { held, dropper: dropper()? })).cast::<c_void>();
    let mut object = null_mut();
    let flags = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC as u32;
    // SAFETY: writes the handle; the function takes what it is given, and calls nothing of the driver.
    let made = unsafe { sys::cuUserObjectCreate(&mut object, data, Some(let_go), 1, flags) };
    if let Err(error) = check("cuUserObjectCreate", made) {
        // SAFETY: the driver has refused, and calls nothing with it.
        drop(unsafe { Box::from_raw(data.cast::<CapturedResources>()) });
        return Err(error);
    }
    let flags = CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE as u32;
    // SAFETY: both handles are good: the graph is that of a capture under way.
    let kept = unsafe { sys::cuGraphRetainUserObject(graph, object, 1, flags) };
    check("cuGraphRetainUserObject", kept).inspect_err(|_| {
        // SAFETY: the one reference is still ours. An error cannot be reported.
        let _ = unsafe { sys::cuUserObjectRelease(object, 1) };
    })
}
