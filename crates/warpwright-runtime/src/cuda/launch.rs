//! Launches as the driver takes them.
//!
//! Everything is laid out when a launch is prepared, so that issuing it is one call without computation.

use super::error::{CallError, check};
use super::handles::Stream;
use super::sys::{
    self, CUDA_KERNEL_NODE_PARAMS, CUfunction, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUlaunchConfig,
};
use crate::contract::{Number, Param};
use crate::op::Shape;
use std::ffi::c_void;
use std::ptr::null_mut;

/// A launch of a function, with its arguments. Its owner keeps the function's module.
pub(crate) struct Call {
    function: CUfunction,
    shape: Shape,
    /// The arguments, each at a place of its own that begins with a word. Not in a box, which when it is moved claims that
    /// nothing else leads to what is in it.
    words: Vec<u64>,
    /// Where each argument is in `words`, which never moves.
    pointers: Box<[*mut c_void]>,
}

// SAFETY: the pointers lead into the call's own memory, which is never changed; the function is a name that the driver
// looks up.
unsafe impl Send for Call {}
// SAFETY: as above; the driver reads the arguments and writes nothing.
unsafe impl Sync for Call {}

impl Call {
    /// A launch of that shape with these arguments.
    pub(crate) fn new(function: CUfunction, shape: Shape, params: impl Iterator<Item = Param>) -> Self {
        let (mut words, mut places) = (Vec::new(), Vec::new());
        for param in params {
            places.push(words.len());
            match param {
                Param::Address(address) => words.push(address),
                // As many bytes as the type has are read, and they come first.
                Param::Number(Number { bytes, .. }) => words.push(u64::from_ne_bytes(bytes)),
                Param::Bytes(bytes) => words.extend(bytes.chunks(8).map(|chunk| {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    u64::from_ne_bytes(word)
                })),
            }
        }
        // A structure without bytes has a place too.
        words.push(0);
        let start = words.as_mut_ptr();
        let pointers = places.into_iter().map(|at| start.wrapping_add(at).cast()).collect();
        Call { function, shape, words, pointers }
    }

    /// Issues it; `overlaps` if it may begin before the launch in front of it is complete. The context is bound.
    ///
    /// # Safety
    ///
    /// The function's module is loaded, it takes these arguments, and what it does with the memory that they lead to is
    /// in the order of the stream.
    #[inline]
    pub(crate) unsafe fn issue(&self, stream: &Stream, overlaps: bool) -> Result<(), CallError> {
        let Shape { grid: [x, y, z], block: [bx, by, bz], dynamic_shared, cooperative, cluster, .. } =
            self.shape;
        let arguments = self.pointers.as_ptr().cast_mut();
        if !cooperative && cluster.is_none() && !overlaps {
            // SAFETY: the arguments are those of the function, as the caller says, and the driver copies them.
            let asked = unsafe {
                sys::cuLaunchKernel(
                    self.function,
                    x,
                    y,
                    z,
                    bx,
                    by,
                    bz,
                    dynamic_shared,
                    stream.handle,
                    arguments,
                    null_mut(),
                )
            };
            return check("cuLaunchKernel", asked);
        }
        let (mut attributes, mut count) = self.attributes();
        if overlaps {
            let serial = &mut attributes[count as usize];
            serial.id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            serial.value.programmaticStreamSerializationAllowed = 1;
            count += 1;
        }
        let config = CUlaunchConfig {
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: dynamic_shared,
            hStream: stream.handle,
            attrs: attributes.as_mut_ptr(),
            numAttrs: count,
        };
        // SAFETY: as above; the attributes outlive the call.
        let asked = unsafe { sys::cuLaunchKernelEx(&config, self.function, arguments, null_mut()) };
        check("cuLaunchKernelEx", asked)
    }

    /// How it is launched, besides its dimensions, and how many of the attributes say so. What it may overlap with is
    /// an attribute in a stream, for which there is room, and an edge in a graph.
    pub(super) fn attributes(&self) -> ([CUlaunchAttribute; 3], u32) {
        let attribute =
            |id| CUlaunchAttribute { id, pad: [0; 4], value: CUlaunchAttributeValue { pad: [0; 64] } };
        let mut attributes = [attribute(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_IGNORE); 3];
        let mut count = 0;
        if self.shape.cooperative {
            attributes[count] = attribute(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
            attributes[count].value.cooperative = 1;
            count += 1;
        }
        if let Some([x, y, z]) = self.shape.cluster {
            attributes[count] = attribute(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
            let value = &mut attributes[count].value;
            (value.clusterDim.x, value.clusterDim.y, value.clusterDim.z) = (x, y, z);
            count += 1;
        }
        (attributes, count as u32)
    }

    /// Room of the arguments: at least as much as the driver takes.
    pub(super) fn argument_bytes(&self) -> usize {
        // The last word belongs to no argument.
        (self.words.len() - 1) * size_of::<u64>()
    }

    /// What a graph's node of it is given. The arguments are `self`'s.
    pub(super) fn node(&self) -> CUDA_KERNEL_NODE_PARAMS {
        let Shape { grid: [x, y, z], block: [bx, by, bz], dynamic_shared, .. } = self.shape;
        CUDA_KERNEL_NODE_PARAMS {
            func: self.function,
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: dynamic_shared,
            kernelParams: self.pointers.as_ptr().cast_mut(),
            extra: null_mut(),
            kern: null_mut(),
            ctx: null_mut(),
        }
    }
}
