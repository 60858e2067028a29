//! Copies of rows and slices, held against a model.

#![allow(non_snake_case, reason = "the interface's names")]

use crate::*;
use std::ffi::c_void;

/// Numbers that look random.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }
}

const ROOM: usize = 1 << 14;

/// The extents of an array of bytes: a row, rows, slices.
const ARRAY: [usize; 3] = [32, 10, 7];

fn flat(c: &CUDA_MEMCPY3D) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcXInBytes: c.srcXInBytes,
        srcY: c.srcY,
        srcMemoryType: c.srcMemoryType,
        srcHost: c.srcHost,
        srcDevice: c.srcDevice,
        srcArray: c.srcArray,
        srcPitch: c.srcPitch,
        dstXInBytes: c.dstXInBytes,
        dstY: c.dstY,
        dstMemoryType: c.dstMemoryType,
        dstHost: c.dstHost,
        dstDevice: c.dstDevice,
        dstArray: c.dstArray,
        dstPitch: c.dstPitch,
        WidthInBytes: c.WidthInBytes,
        Height: c.Height,
    }
}

/// A kind of memory with some content.
enum HostOrDevice {
    Device(CUdeviceptr),
    Host(Vec<u8>),
    Pinned(u64),
    /// An array, and the content behind what it holds.
    Array(CUarray, Vec<u8>),
}

/// A copy between a whole array and host memory.
fn whole(array: CUarray, data: *mut c_void, is_upload: bool) {
    let mut c = empty_copy();
    let [width, height, depth] = ARRAY;
    (c.WidthInBytes, c.Height, c.Depth) = (width, height, depth);
    (c.srcPitch, c.srcHeight, c.dstPitch, c.dstHeight) = (width, height, width, height);
    (c.srcArray, c.dstArray, c.srcHost, c.dstHost) = (array, array, data, data);
    let kinds = (CUmemorytype::HOST, CUmemorytype::ARRAY);
    (c.srcMemoryType, c.dstMemoryType) = if is_upload { kinds } else { (kinds.1, kinds.0) };
    ok!(cuMemcpy3D_v2(input(&c)));
}

impl HostOrDevice {
    fn new(kind: usize, data: &[u8]) -> Self {
        match kind {
            0 => {
                let at = alloc(ROOM);
                upload(at, data);
                HostOrDevice::Device(at)
            }
            1 => HostOrDevice::Host(data.to_vec()),
            2 => {
                let [Width, Height, Depth] = ARRAY;
                let Format = CUarray_format::UNSIGNED_INT8;
                let descriptor =
                    CUDA_ARRAY3D_DESCRIPTOR { Width, Height, Depth, Format, NumChannels: 1, Flags: 0 };
                let array = out(|array| call!(cuArray3DCreate_v2(array, input(&descriptor)))).unwrap();
                whole(array, data.as_ptr().cast_mut().cast(), true);
                HostOrDevice::Array(array, data.to_vec())
            }
            _ => {
                let words = pinned(ROOM / 4);
                ok!(cuMemcpy(address(words), address(data), ROOM));
                HostOrDevice::Pinned(address(words))
            }
        }
    }

    /// As a side of a copy: the kind, the pointer and the address.
    fn side(&mut self, unified: bool) -> (CUmemorytype, *mut c_void, u64) {
        let host = |at: u64| std::ptr::with_exposed_provenance_mut::<c_void>(at as usize);
        match self {
            HostOrDevice::Array(..) => (CUmemorytype::ARRAY, std::ptr::null_mut(), 0),
            HostOrDevice::Device(at) if !unified => (CUmemorytype::DEVICE, std::ptr::null_mut(), *at),
            HostOrDevice::Host(data) if !unified => (CUmemorytype::HOST, pointer_mut(data), 0),
            HostOrDevice::Pinned(at) if !unified => (CUmemorytype::HOST, host(*at), 0),
            HostOrDevice::Device(at) | HostOrDevice::Pinned(at) => {
                (CUmemorytype::UNIFIED, std::ptr::null_mut(), *at)
            }
            HostOrDevice::Host(data) => {
                (CUmemorytype::UNIFIED, std::ptr::null_mut(), pointer_mut(data).expose_provenance() as u64)
            }
        }
    }

    fn array(&self) -> CUarray {
        if let HostOrDevice::Array(array, _) = self { *array } else { CUarray::NULL }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            HostOrDevice::Array(array, mut data) => {
                whole(array, data.as_mut_ptr().cast(), false);
                ok!(cuArrayDestroy(array));
                data
            }
            HostOrDevice::Device(at) => {
                let data = download(at, ROOM);
                free(at);
                data
            }
            HostOrDevice::Host(data) => data,
            HostOrDevice::Pinned(at) => {
                let data = download(at, ROOM);
                free_pinned_at(at);
                data
            }
        }
    }
}

#[test]
fn rows_and_slices_land_where_a_model_puts_them() {
    let _context = Ctx::new(0);
    let stream = stream(0);
    let mut random = Random::new(7);
    for round in 0..300 {
        let mut c = empty_copy();
        let (width, height) = (1 + random.below(20), 1 + random.below(6));
        let depth = if round % 2 == 0 { 1 } else { 1 + random.below(4) };
        (c.WidthInBytes, c.Height, c.Depth) = (width, height, depth);
        (c.srcXInBytes, c.srcY, c.dstXInBytes, c.dstY) =
            (random.below(9), random.below(4), random.below(9), random.below(4));
        (c.srcPitch, c.dstPitch) =
            (c.srcXInBytes + width + random.below(8), c.dstXInBytes + width + random.below(8));
        if depth > 1 {
            (c.srcZ, c.dstZ) = (random.below(3), random.below(3));
        }
        (c.srcHeight, c.dstHeight) = (c.srcY + height + random.below(3), c.dstY + height + random.below(3));
        // What an array has, whatever the copy says of its rows.
        let kinds = (random.below(4), random.below(4));
        let model =
            |kind: usize, pitch, height| if kind == 2 { (ARRAY[0], ARRAY[1]) } else { (pitch, height) };
        let (src_pitch, src_height) = model(kinds.0, c.srcPitch, c.srcHeight);
        let (dst_pitch, dst_height) = model(kinds.1, c.dstPitch, c.dstHeight);
        let source: Vec<u8> = (0..ROOM).map(|_| random.below(256) as u8).collect();
        let target = vec![0xcc; ROOM];
        let mut expected = target.clone();
        for z in 0..depth {
            for y in 0..height {
                let from = ((c.srcZ + z) * src_height + c.srcY + y) * src_pitch + c.srcXInBytes;
                let to = ((c.dstZ + z) * dst_height + c.dstY + y) * dst_pitch + c.dstXInBytes;
                expected[to..to + width].copy_from_slice(&source[from..from + width]);
            }
        }
        let (mut from, mut to) = (HostOrDevice::new(kinds.0, &source), HostOrDevice::new(kinds.1, &target));
        let unified = random.below(3) == 0;
        let (kind, host, device) = from.side(unified);
        (c.srcMemoryType, c.srcHost, c.srcDevice) = (kind, host, device);
        (c.dstMemoryType, c.dstHost, c.dstDevice) = to.side(unified);
        (c.srcArray, c.dstArray) = (from.array(), to.array());
        let how = if depth == 1 { random.below(5) } else { random.below(2) };
        match how {
            0 => ok!(cuMemcpy3D_v2(input(&c))),
            1 => ok!(cuMemcpy3DAsync_v2(input(&c), stream)),
            2 => ok!(cuMemcpy2D_v2(input(&flat(&c)))),
            3 => ok!(cuMemcpy2DUnaligned_v2(input(&flat(&c)))),
            _ => ok!(cuMemcpy2DAsync_v2(input(&flat(&c)), stream)),
        }
        ok!(cuStreamSynchronize(stream));
        drop(from.finish());
        assert!(to.finish() == expected, "round {round}, {kinds:?}, {how}: {c:?}");
    }
    ok!(cuStreamDestroy_v2(stream));
}

#[test]
fn what_makes_no_rows_is_refused() {
    let context = Ctx::new(0);
    let (a, b) = (alloc(1000), alloc(1000));
    let mut good = empty_copy();
    (good.srcDevice, good.dstDevice, good.srcContext, good.dstContext) = (a, b, context.0, context.0);
    (good.srcPitch, good.dstPitch, good.srcHeight, good.dstHeight) = (50, 100, 5, 5);
    (good.WidthInBytes, good.Height, good.Depth) = (50, 5, 2);
    ok!(cuMemcpy3D_v2(input(&good)));
    ok!(cuMemcpy3DPeer(input(&good)));
    let mut table: Vec<(&str, CUDA_MEMCPY3D)> = Vec::new();
    let mut add = |what, change: fn(&mut CUDA_MEMCPY3D)| {
        let mut c = good;
        change(&mut c);
        table.push((what, c));
    };
    add("a pitch below the width", |c| c.srcPitch = 49);
    add("a pitch below the width and where it begins", |c| c.srcXInBytes = 1);
    add("slices that overlap", |c| c.dstHeight = 4);
    add("too many slices", |c| c.Depth = 3);
    add("one slice, of more rows than is said", |c| (c.Depth, c.srcHeight) = (1, 4));
    add("slices from too far behind", |c| c.dstZ = 1);
    add("no address", |c| c.srcDevice = 0);
    add("no kind of memory", |c| c.srcMemoryType = CUmemorytype(0));
    add("another kind of memory", |c| c.dstMemoryType = CUmemorytype(9));
    add("host memory that is null", |c| c.srcMemoryType = CUmemorytype::HOST);
    add("numbers that go round", |c| c.srcY = usize::MAX);
    add("a huge pitch", |c| c.srcPitch = usize::MAX);
    add("a level", |c| c.srcLOD = 1);
    for (what, c) in &table {
        assert_eq!(call!(cuMemcpy3D_v2(input(c))), INVALID, "{what}");
    }
    let mut none = good;
    none.srcMemoryType = CUmemorytype::ARRAY;
    assert_eq!(call!(cuMemcpy3D_v2(input(&none))), Status::INVALID_HANDLE);
    // Parts that an array does not have, and parts of texels.
    let Format = CUarray_format::FLOAT;
    let descriptor =
        CUDA_ARRAY3D_DESCRIPTOR { Width: 13, Height: 5, Depth: 2, Format, NumChannels: 1, Flags: 0 };
    let array = out(|array| call!(cuArray3DCreate_v2(array, input(&descriptor)))).unwrap();
    let mut part = good;
    (part.dstMemoryType, part.dstArray, part.WidthInBytes, part.srcPitch) =
        (CUmemorytype::ARRAY, array, 52, 64);
    (part.Height, part.Depth) = (5, 2);
    ok!(cuMemcpy3D_v2(input(&part)));
    let changes: [fn(&mut CUDA_MEMCPY3D); 7] = [
        |c| c.WidthInBytes = 56,
        |c| c.WidthInBytes = 50,
        |c| (c.dstXInBytes, c.WidthInBytes) = (2, 4),
        |c| c.dstXInBytes = 4,
        |c| c.dstY = 1,
        |c| c.dstZ = 1,
        |c| c.dstY = usize::MAX,
    ];
    for (case, change) in changes.iter().enumerate() {
        let mut c = part;
        change(&mut c);
        assert_eq!(call!(cuMemcpy3D_v2(input(&c))), INVALID, "array case {case}");
    }
    ok!(cuArrayDestroy(array));
    assert_eq!(call!(cuMemcpy3D_v2(In::null())), INVALID);
    let mut stranger = good;
    stranger.srcContext = CUcontext(77);
    assert_eq!(call!(cuMemcpy3DPeer(input(&stranger))), Status::INVALID_CONTEXT);
    // One row needs no pitch, and nothing needs nothing.
    (good.srcPitch, good.dstPitch, good.srcHeight, good.dstHeight, good.Height, good.Depth) =
        (0, 0, 0, 0, 1, 1);
    ok!(cuMemcpy3D_v2(input(&good)));
    (good.Height, good.srcDevice) = (0, 1);
    ok!(cuMemcpy3D_v2(input(&good)));
    [a, b].into_iter().for_each(free);
}
