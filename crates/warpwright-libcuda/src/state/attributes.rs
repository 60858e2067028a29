//! The attributes of a device: `cuDeviceGetAttribute`.
//!
//! Values that depend on the architecture come from its limits, others from a card of that architecture. **Whether the
//! interface supports a feature is derived from the table of its functions**, so that a client is never told of a
//! missing one.

use super::{Device, Model};
use crate::api;
use crate::types::{CUdevice_attribute, Result, Status};
use std::ffi::c_int;
use warpwright_ptx::ir::Arch;

/// The last attribute of CUDA 12.8.
const LAST: c_int = 143;
/// Numbers before it that are none.
const GAPS: [c_int; 3] = [138, 141, 142];

/// Bytes of the cache that lines may be kept in.
pub(crate) fn persisting_l2(device: &Device) -> u32 {
    let arch = device.arch();
    if arch.sm >= 80 { Model::of(arch).l2 / 4 * 3 } else { 0 }
}

/// Whether devices of an architecture take part in multicast objects: those that an NVSwitch joins.
pub(crate) fn supports_multicast(arch: Arch) -> bool {
    matches!(arch.sm, 90 | 100 | 103)
}

/// An attribute of a device.
pub(crate) fn attribute(device: &Device, which: CUdevice_attribute) -> Result<c_int> {
    let arch = device.arch();
    let (limits, model) = (arch.limits(), Model::of(arch));
    let from = |sm: u16| c_int::from(arch.sm >= sm);
    let with = |function: &str| c_int::from(api::is_supported(function));
    let place = device.pci_place();
    let (major, minor) = device.compute_capability();
    Ok(match which.0 {
        // Shapes of launches.
        1..=3 => 1024,
        4 => 64,
        5 => c_int::MAX,
        6 | 7 => 65535,
        10 => 32,
        39 => limits.threads as c_int,
        106 => limits.blocks as c_int,
        16 => device.config.multiprocessors as c_int,
        95 => from(60) & with("cuLaunchCooperativeKernel"),
        120 => from(90),
        // Memory of a multiprocessor.
        8 => 48 << 10,
        9 => 64 << 10,
        12 if matches!(arch.sm, 53 | 62) => 32 << 10,
        12 | 82 => 64 << 10,
        81 => limits.shared as c_int,
        97 => limits.shared_per_block as c_int,
        111 => (limits.shared - limits.shared_per_block).min(1 << 10) as c_int,
        79 | 80 => 1,
        // Memory of the device, and its cache.
        11 => c_int::MAX,
        36 => model.memory_clock as c_int,
        37 => model.bus_width as c_int,
        38 => model.l2 as c_int,
        108 => persisting_l2(device) as c_int,
        109 => from(80) * ((128 << 20) - (4 << 10)),
        // The multiprocessors.
        13 => model.clock as c_int,
        18 => model.is_integrated.into(),
        75 => major,
        76 => minor,
        87 => model.double_ratio as c_int,
        90 => from(60),
        129 => with("cuLibraryGetUnifiedFunction"),
        // Copies and kernels go on while the host does; operations of several streams in some order.
        15 | 31 => 1,
        40 => model.copy_engines as c_int,
        78 => 1,
        // Host memory has one address for all.
        19 => with("cuMemHostGetDevicePointer_v2"),
        41 => 1,
        83 | 89 => with("cuMemAllocManaged"),
        91 | 99 => with("cuMemHostRegister_v2"),
        113 => with("cuMemHostRegister_v2"),
        98 => with("cuFlushGPUDirectRDMAWrites"),
        115 => with("cuMemPoolCreate"),
        102 => with("cuMemCreate"),
        103 => with("cuMemExportToShareableHandle"),
        // Streams that wait for memory.
        122 => with("cuStreamWaitValue64_v2"),
        123 => with("cuStreamWaitValue32_v2"),
        // Parts of memory that are ordered apart.
        126 => {
            if arch.sm >= 90 {
                4
            } else {
                1
            }
        }
        127 => from(90) & with("cuTensorMapEncodeTiled"),
        // Where it is.
        33 => place.bus as c_int,
        34 => place.device as c_int,
        50 => place.domain as c_int,
        // An object of several devices there is not.
        132 => {
            let is_alone = super::state()?.devices.len() == 1;
            c_int::from(is_alone && supports_multicast(arch)) & with("cuMulticastCreate")
        }
        // No node of memory is its own.
        131 | 134 => -1,
        // Textures and surfaces, whose sizes are the same for all architectures from 6.0.
        14 | 30 => 512,
        51 => 32,
        21 | 22 => 131_072,
        23 => 65_536,
        24..=26 => 16_384,
        27 | 28 => 32_768,
        29 => 2048,
        42 | 45 | 46 | 52 | 53 | 61 | 66 | 67 | 73 | 74 | 77 => 32_768,
        43 | 62 | 65 => 2048,
        44 => 1,
        47 | 48 => 8192,
        49 => 32_768,
        54 | 68 => 2046,
        55 => 32_768,
        56 => 131_072,
        57 => 65_536,
        58..=60 => 16_384,
        63 | 64 => 32_768,
        69 => 268_435_456,
        70 => 131_072,
        71 => 65_000,
        72 => 2_097_120,
        // What it is not, does not have or cannot do: limits of time, exclusive use, error correction, the Windows
        // model, several devices on a board, atomics and page tables shared with the host, handles for other
        // processes, compression, RDMA, several nodes of memory, multicast, decompression.
        known if (1..=LAST).contains(&known) && !GAPS.contains(&known) => 0,
        _ => return Err(Status::INVALID_VALUE),
    })
}
