//! Arrays, textures and surfaces, with kernels in the form that nvcc gives them.

use crate::*;
use std::ffi::c_void;

const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64
.global .texref image;
.global .surfref drawn;

// Thread `i` reads texel `i` of a texture reference, and writes it and one into a surface reference.
.visible .entry refer(.param .u64 to)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd2, [to];
    cvta.to.global.u64 %rd3, %rd2;
    mov.u32 %r1, %tid.x;
    tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [image, {%r1}];
    mad.wide.u32 %rd4, %r1, 4, %rd3;
    st.global.u32 [%rd4], %r2;
    add.u32 %r6, %r2, 1;
    shl.b32 %r7, %r1, 2;
    sust.b.1d.b32.trap [drawn, {%r7}], {%r6};
    ret;
}

// Thread `i` reads the texture at the place `i` of `at`.
.visible .entry sample(.param .u64 tex, .param .u64 at, .param .u64 to)
{
    .reg .f32 %f<7>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<10>;
    ld.param.u64 %rd1, [tex];
    ld.param.u64 %rd2, [at];
    ld.param.u64 %rd3, [to];
    cvta.to.global.u64 %rd4, %rd2;
    cvta.to.global.u64 %rd5, %rd3;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd6, %r1, 8;
    add.s64 %rd7, %rd4, %rd6;
    ld.global.v2.f32 {%f1, %f2}, [%rd7];
    tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];
    mul.wide.u32 %rd8, %r1, 4;
    add.s64 %rd9, %rd5, %rd8;
    st.global.f32 [%rd9], %f3;
    ret;
}

// Thread `i` reads texel `i` of a line.
.visible .entry fetch(.param .u64 tex, .param .u64 to)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [tex];
    ld.param.u64 %rd2, [to];
    cvta.to.global.u64 %rd3, %rd2;
    mov.u32 %r1, %tid.x;
    tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [%rd1, {%r1}];
    mad.wide.u32 %rd4, %r1, 4, %rd3;
    st.global.u32 [%rd4], %r2;
    ret;
}

// Thread (x, y) stores 10 * y + x.
.visible .entry write(.param .u64 surf)
{
    .reg .b32 %r<5>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [surf];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    shl.b32 %r3, %r1, 2;
    mad.lo.u32 %r4, %r2, 10, %r1;
    sust.b.2d.b32.trap [%rd1, {%r3, %r2}], {%r4};
    ret;
}
";

const FLOAT: CUarray_format = CUarray_format::FLOAT;

fn descriptor(extents: [usize; 3], format: CUarray_format, flags: u32) -> CUDA_ARRAY3D_DESCRIPTOR {
    let [width, height, depth] = extents;
    CUDA_ARRAY3D_DESCRIPTOR {
        Width: width,
        Height: height,
        Depth: depth,
        Format: format,
        NumChannels: 1,
        Flags: flags,
    }
}

fn array(extents: [usize; 3], format: CUarray_format, flags: u32) -> Result<CUarray> {
    let descriptor = descriptor(extents, format, flags);
    out(|array| call!(cuArray3DCreate_v2(array, input(&descriptor))))
}

fn resource(kind: CUresourcetype, words: &[u64]) -> CUDA_RESOURCE_DESC {
    let mut res = [0; 16];
    res[..words.len()].copy_from_slice(words);
    CUDA_RESOURCE_DESC { resType: kind, res, flags: 0 }
}

fn of_array(array: CUarray) -> CUDA_RESOURCE_DESC {
    resource(CUresourcetype::ARRAY, &[array.0 as u64])
}

/// Clamped, point filtering, texels as they are.
fn plain() -> CUDA_TEXTURE_DESC {
    CUDA_TEXTURE_DESC {
        addressMode: [CUaddress_mode::CLAMP; 3],
        filterMode: CUfilter_mode::POINT,
        flags: 0,
        maxAnisotropy: 0,
        mipmapFilterMode: CUfilter_mode::POINT,
        mipmapLevelBias: 0.0,
        minMipmapLevelClamp: 0.0,
        maxMipmapLevelClamp: 0.0,
        borderColor: [0.0; 4],
        reserved: [0; 12],
    }
}

fn texture(resource: &CUDA_RESOURCE_DESC, desc: &CUDA_TEXTURE_DESC) -> Result<CUtexObject> {
    out(|texture| call!(cuTexObjectCreate(texture, input(resource), input(desc), null())))
}

fn surface(array: CUarray) -> Result<CUsurfObject> {
    let resource = of_array(array);
    out(|surface| call!(cuSurfObjectCreate(surface, input(&resource))))
}

/// Copies rows of the host into an array, or back.
fn copy<T>(array: CUarray, [width, height]: [usize; 2], data: *mut T, is_upload: bool) {
    let host = (CUmemorytype::HOST, data.cast::<c_void>(), CUarray::NULL, width);
    let device = (CUmemorytype::ARRAY, std::ptr::null_mut(), array, 0);
    let (from, to) = if is_upload { (host, device) } else { (device, host) };
    let copy = CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: from.0,
        srcHost: from.1,
        srcDevice: 0,
        srcArray: from.2,
        srcPitch: from.3,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: to.0,
        dstHost: to.1,
        dstDevice: 0,
        dstArray: to.2,
        dstPitch: to.3,
        WidthInBytes: width,
        Height: height,
    };
    ok!(cuMemcpy2D_v2(input(&copy)));
}

/// Launches a kernel with as many threads as there are words, and returns these.
fn run(function: CUfunction, threads: u32, params: &[u64]) -> Vec<u32> {
    let to = words(threads as usize);
    let params = Params::of(&[params, &[to]].concat());
    ok!(cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, CUstream::LEGACY, params.get(), null()));
    let values = read(to, threads as usize);
    ok!(cuMemFree_v2(to));
    values
}

/// What a texture reads at some places.
fn sample(module: CUmodule, texture: CUtexObject, places: &[[f32; 2]]) -> Vec<f32> {
    let at = words(2 * places.len());
    write(at, &places.iter().flatten().map(|place| place.to_bits()).collect::<Vec<_>>());
    let values = run(function(module, "sample").unwrap(), places.len() as u32, &[texture, at]);
    ok!(cuMemFree_v2(at));
    values.into_iter().map(f32::from_bits).collect()
}

#[test]
fn textures_are_what_their_descriptions_say() {
    let _context = Ctx::new();
    let module = load(PTX).unwrap();
    // Three rows of five texels, `10 * row + column`: as an array, and with rows 64 bytes apart.
    let mut texels: Vec<f32> = (0..15).map(|at| (10 * (at / 5) + at % 5) as f32).collect();
    let image = array([5, 3, 0], FLOAT, 0).unwrap();
    copy(image, [20, 3], texels.as_mut_ptr(), true);
    let pitched = words(64);
    for row in 0..3 {
        write(
            pitched + 64 * row as u64,
            &texels[5 * row..5 * row + 5].iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
        );
    }
    let of_pitched = resource(CUresourcetype::PITCH2D, &[pitched, 32 | 1 << 32, 5, 3, 64]);
    let places = [[0.5, 0.5], [2.0, 1.25], [7.5, 1.5], [-1.0, 4.0]];
    let normalized = [[0.1, 0.5 / 3.0], [1.3, 0.5], [-0.3, 1.1]];
    let with = |change: fn(&mut CUDA_TEXTURE_DESC)| {
        let mut desc = plain();
        change(&mut desc);
        desc
    };
    type Case<'a> = (&'a str, CUDA_TEXTURE_DESC, &'a [[f32; 2]], &'a [f32]);
    let border = |desc: &mut CUDA_TEXTURE_DESC| {
        (desc.addressMode, desc.borderColor) = ([CUaddress_mode::BORDER; 3], [0.5, 0.0, 0.0, 0.0]);
    };
    let cases: [Case<'_>; 5] = [
        ("points", plain(), &places, &[0.0, 12.0, 14.0, 20.0]),
        ("filtered", with(|desc| desc.filterMode = CUfilter_mode::LINEAR), &places, &[0.0, 9.0, 14.0, 20.0]),
        ("border", with(border), &places, &[0.0, 12.0, 0.5, 0.5]),
        (
            "mirrored",
            with(|desc| (desc.flags, desc.addressMode) = (2, [CUaddress_mode::MIRROR; 3])),
            &normalized,
            &[0.0, 13.0, 21.0],
        ),
        (
            "repeated",
            with(|desc| (desc.flags, desc.addressMode) = (2, [CUaddress_mode::WRAP; 3])),
            &normalized,
            &[0.0, 11.0, 3.0],
        ),
    ];
    for (what, desc, places, expected) in cases {
        for resource in [of_array(image), of_pitched] {
            let handle = texture(&resource, &desc).unwrap();
            assert_eq!(sample(module, handle, places), expected, "{what}");
            assert_eq!(out(|to| call!(cuTexObjectGetTextureDesc(to, handle))), Ok(desc));
            assert_eq!(out(|to| call!(cuTexObjectGetResourceDesc(to, handle))), Ok(resource));
            fails!(INVALID_VALUE, cuTexObjectGetResourceViewDesc(nowhere(), handle));
            ok!(cuTexObjectDestroy(handle));
            fails!(INVALID_VALUE, cuTexObjectDestroy(handle));
        }
    }
    // Bytes are numbers from 0 to 1 unless they are to be integers.
    let bytes = array([4, 1, 0], CUarray_format::UNSIGNED_INT8, 0).unwrap();
    copy(bytes, [4, 1], [0u8, 51, 102, 255].as_mut_ptr(), true);
    let handle = texture(&of_array(bytes), &plain()).unwrap();
    assert_eq!(sample(module, handle, &[[1.5, 0.0], [3.5, 0.0]]), [0.2, 1.0]);
    ok!(cuTexObjectDestroy(handle));
    let handle = texture(&of_array(bytes), &with(|desc| desc.flags = 1)).unwrap();
    assert_eq!(sample(module, handle, &[[1.5, 0.0]]), [f32::from_bits(51)]);
    ok!(cuTexObjectDestroy(handle));
    // A line in linear memory, which is neither filtered nor repeated.
    let line = resource(CUresourcetype::LINEAR, &[pitched, 3 | 1 << 32, 20]);
    let ignored = with(|desc| (desc.flags, desc.filterMode) = (3, CUfilter_mode::LINEAR));
    let handle = texture(&line, &ignored).unwrap();
    let fetched = run(function(module, "fetch").unwrap(), 6, &[handle]);
    assert_eq!(fetched.into_iter().map(f32::from_bits).collect::<Vec<_>>(), [0.0, 1.0, 2.0, 3.0, 4.0, 0.0]);
    for (what, resource, desc) in [
        (
            "integers that are filtered",
            of_array(bytes),
            with(|desc| (desc.flags, desc.filterMode) = (1, CUfilter_mode::LINEAR)),
        ),
        ("no address mode", of_array(image), with(|desc| desc.addressMode[1] = CUaddress_mode(4))),
        ("no filter", of_array(image), with(|desc| desc.filterMode = CUfilter_mode(2))),
        ("an unknown flag", of_array(image), with(|desc| desc.flags = 1 << 20)),
        ("an odd address", resource(CUresourcetype::LINEAR, &[pitched + 4, 32 | 1 << 32, 16]), plain()),
        ("too long", resource(CUresourcetype::LINEAR, &[pitched, 32 | 1 << 32, 260]), plain()),
        (
            "a pitch below the width",
            resource(CUresourcetype::PITCH2D, &[pitched, 32 | 1 << 32, 20, 3, 64]),
            plain(),
        ),
        ("three channels", resource(CUresourcetype::LINEAR, &[pitched, 32 | 3 << 32, 60]), plain()),
        ("no kind", resource(CUresourcetype(7), &[pitched]), plain()),
    ] {
        assert_eq!(texture(&resource, &desc), Err(Status::INVALID_VALUE), "{what}");
    }
    assert_eq!(texture(&of_array(CUarray(5)), &plain()), Err(Status::INVALID_HANDLE));
    ok!(cuArrayDestroy(image));
    ok!(cuArrayDestroy(bytes));
}

#[test]
fn levels_and_views_of_arrays() {
    let _context = Ctx::new();
    let module = load(PTX).unwrap();
    let described = descriptor([8, 4, 0], FLOAT, 2);
    let pyramid = out(|array| call!(cuMipmappedArrayCreate(array, input(&described), 3))).unwrap();
    for (level, [width, height]) in (0..).zip([[8usize, 4], [4, 2], [2, 1]]) {
        let part = out(|array| call!(cuMipmappedArrayGetLevel(array, pyramid, level))).unwrap();
        let is = out(|to| call!(cuArray3DGetDescriptor_v2(to, part))).unwrap();
        assert_eq!((is.Width, is.Height, is.Depth), (width, height, 0));
        let mut texels = vec![level as f32; width * height];
        copy(part, [4 * width, height], texels.as_mut_ptr(), true);
        fails!(INVALID_HANDLE, cuArrayDestroy(part));
    }
    fails!(INVALID_VALUE, cuMipmappedArrayGetLevel(nowhere(), pyramid, 3));
    let mut normalized = plain();
    normalized.flags = 2;
    let whole = resource(CUresourcetype::MIPMAPPED_ARRAY, &[pyramid.0 as u64]);
    assert_eq!(texture(&whole, &plain()), Err(Status::INVALID_VALUE), "levels need normalized coordinates");
    let view = CUDA_RESOURCE_VIEW_DESC {
        format: 22,
        width: 4,
        height: 2,
        depth: 0,
        firstMipmapLevel: 1,
        lastMipmapLevel: 2,
        firstLayer: 0,
        lastLayer: 0,
        reserved: [0; 16],
    };
    let create = |view: &CUDA_RESOURCE_VIEW_DESC| {
        out(|texture| call!(cuTexObjectCreate(texture, input(&whole), input(&normalized), input(view))))
    };
    let handle = create(&view).unwrap();
    assert_eq!(sample(module, handle, &[[0.5, 0.5]]), [1.0], "the first level of the view");
    assert_eq!(out(|to| call!(cuTexObjectGetResourceViewDesc(to, handle))), Ok(view));
    for wrong in [
        CUDA_RESOURCE_VIEW_DESC { lastMipmapLevel: 3, ..view },
        CUDA_RESOURCE_VIEW_DESC { width: 8, ..view },
        CUDA_RESOURCE_VIEW_DESC { format: 19, ..view },
        CUDA_RESOURCE_VIEW_DESC { lastLayer: 1, ..view },
    ] {
        assert_eq!(create(&wrong), Err(Status::INVALID_VALUE), "{wrong:?}");
    }
    assert_eq!(create(&CUDA_RESOURCE_VIEW_DESC { format: 25, ..view }), Err(Status::NOT_SUPPORTED));
    // A kernel writes a level through a surface.
    let level = out(|array| call!(cuMipmappedArrayGetLevel(array, pyramid, 1))).unwrap();
    let surface = surface(level).unwrap();
    let params = Params::of(&[surface]);
    let kernel = function(module, "write").unwrap();
    ok!(cuLaunchKernel(kernel, 1, 1, 1, 4, 2, 1, 0, CUstream::LEGACY, params.get(), null()));
    ok!(cuSurfObjectDestroy(surface));
    let mut texels = [0u32; 8];
    copy(level, [16, 2], texels.as_mut_ptr(), false);
    assert_eq!(texels, [0, 1, 2, 3, 10, 11, 12, 13]);
    ok!(cuMipmappedArrayDestroy(pyramid));
    fails!(INVALID_HANDLE, cuMipmappedArrayDestroy(pyramid));
    fails!(INVALID_HANDLE, cuArray3DGetDescriptor_v2(nowhere(), level));
}

#[test]
fn arrays_are_as_large_as_the_device_says() {
    let _context = Ctx::new();
    let attribute =
        |number| out(|value| call!(cuDeviceGetAttribute(value, CUdevice_attribute(number), 0))).unwrap();
    let [layered, cube] = [1, 4];
    // The attribute of an extent, which one it is, the other extents, and the flags.
    let table: [(i32, usize, [usize; 3], u32); 14] = [
        (21, 0, [0, 0, 0], 0),
        (22, 0, [0, 1, 0], 0),
        (23, 1, [1, 0, 0], 0),
        (24, 0, [0, 1, 1], 0),
        (25, 1, [1, 0, 1], 0),
        (26, 2, [1, 1, 0], 0),
        (42, 0, [0, 0, 1], layered),
        (43, 2, [1, 0, 0], layered),
        (27, 0, [0, 1, 1], layered),
        (28, 1, [1, 0, 1], layered),
        (29, 2, [1, 1, 0], layered),
        (53, 0, [0, 0, 6], layered | cube),
        (54, 2, [1, 1, 0], layered | cube),
        (52, 0, [0, 0, 6], cube),
    ];
    for (number, which, mut extents, flags) in table {
        let max = attribute(number) as usize;
        let is_square = flags & cube != 0 && which == 0;
        // Square faces of the greatest size are more than the memory.
        if !is_square {
            extents[which] = max;
            let made = array(extents, CUarray_format::UNSIGNED_INT8, flags).unwrap();
            ok!(cuArrayDestroy(made));
        }
        extents[which] = if flags & cube != 0 && which == 2 { max + 6 } else { max + 1 };
        if is_square {
            extents[1] = max + 1;
        }
        let refused = array(extents, CUarray_format::UNSIGNED_INT8, flags);
        assert_eq!(refused, Err(Status::INVALID_VALUE), "attribute {number}: {extents:?}");
    }
    for (what, extents, flags, status) in [
        ("no width", [0, 1, 1], 0, Status::INVALID_VALUE),
        ("a volume without height", [4, 0, 4], 0, Status::INVALID_VALUE),
        ("layers that there are none of", [4, 4, 0], layered, Status::INVALID_VALUE),
        ("five faces", [4, 4, 5], cube, Status::INVALID_VALUE),
        ("oblong faces", [4, 3, 6], cube, Status::INVALID_VALUE),
        ("sparse", [4, 4, 0], 64, Status::NOT_SUPPORTED),
    ] {
        assert_eq!(array(extents, FLOAT, flags), Err(status), "{what}");
    }
    assert_eq!(array([4, 4, 0], CUarray_format(0xb0), 0), Err(Status::INVALID_VALUE));
    let flat = CUDA_ARRAY_DESCRIPTOR { Width: 7, Height: 3, Format: FLOAT, NumChannels: 2 };
    let made = out(|array| call!(cuArrayCreate_v2(array, input(&flat)))).unwrap();
    assert_eq!(out(|to| call!(cuArrayGetDescriptor_v2(to, made))), Ok(flat));
    ok!(cuArrayDestroy(made));
    fails!(INVALID_HANDLE, cuArrayDestroy(made));
}

#[test]
fn rows_of_arrays_are_copied_by_bytes_and_by_graphs() {
    let _context = Ctx::new();
    let stream = stream();
    let [a, b] = [0, 1].map(|_| array([16, 0, 0], CUarray_format::UNSIGNED_INT32, 0).unwrap());
    let device = words(16);
    let numbers: Vec<u32> = (1..=16).collect();
    let mut back = [0u32; 8];
    let at = back.as_mut_ptr().cast::<c_void>();
    ok!(cuMemcpyHtoA_v2(a, 0, numbers.as_ptr().cast(), 64));
    ok!(cuMemcpyAtoA_v2(b, 8, a, 0, 32));
    ok!(cuMemcpyAtoD_v2(device, b, 8, 32));
    assert_eq!(read(device, 9), [1, 2, 3, 4, 5, 6, 7, 8, 0]);
    ok!(cuMemcpyDtoA_v2(a, 32, device, 8));
    ok!(cuMemcpyAtoH_v2(at, a, 24, 32));
    assert_eq!(back, [7, 8, 1, 2, 11, 12, 13, 14]);
    ok!(cuMemcpyHtoAAsync_v2(a, 0, numbers[8..].as_ptr().cast(), 32, stream));
    ok!(cuMemcpyAtoHAsync_v2(at, a, 0, 32, stream));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(back[..], numbers[8..]);
    fails!(INVALID_VALUE, cuMemcpyHtoA_v2(a, 4, numbers.as_ptr().cast(), 64));
    fails!(INVALID_VALUE, cuMemcpyHtoA_v2(a, 2, numbers.as_ptr().cast(), 4));
    fails!(INVALID_HANDLE, cuMemcpyHtoA_v2(CUarray(3), 0, numbers.as_ptr().cast(), 4));
    // Captured: the graph reads what is in the array when it runs.
    ok!(cuStreamBeginCapture_v2(stream, CUstreamCaptureMode::THREAD_LOCAL));
    ok!(cuMemcpyAtoHAsync_v2(at, a, 0, 32, stream));
    let graph = out(|graph| call!(cuStreamEndCapture(stream, graph))).unwrap();
    let exec = out(|exec| call!(cuGraphInstantiateWithFlags(exec, graph, 0))).unwrap();
    for first in [5u32, 9] {
        ok!(cuMemcpyHtoA_v2(a, 0, [first].as_ptr().cast(), 4));
        ok!(cuGraphLaunch(exec, stream));
        ok!(cuStreamSynchronize(stream));
        assert_eq!(back[0], first);
    }
    ok!(cuArrayDestroy(a));
    fails!(INVALID_VALUE, cuGraphLaunch(exec, stream));
}

#[test]
fn what_is_destroyed_is_not_used() {
    let context = Ctx::new();
    let module = load(PTX).unwrap();
    let line = array([4, 0, 0], CUarray_format::UNSIGNED_INT32, 0).unwrap();
    ok!(cuMemcpyHtoA_v2(line, 0, [1u32, 2, 3, 4].as_ptr().cast(), 16));
    let mut desc = plain();
    desc.flags = 1;
    let handle = texture(&of_array(line), &desc).unwrap();
    assert_ne!(handle, 0);
    fails!(INVALID_VALUE, cuSurfObjectDestroy(handle));
    // What is launched before reads it still.
    let (fetch, to) = (function(module, "fetch").unwrap(), words(4));
    let params = Params::of(&[handle, to]);
    ok!(cuLaunchKernel(fetch, 1, 1, 1, 4, 1, 1, 0, CUstream::LEGACY, params.get(), null()));
    ok!(cuTexObjectDestroy(handle));
    ok!(cuArrayDestroy(line));
    assert_eq!(read(to, 4), [1, 2, 3, 4]);
    ok!(cuLaunchKernel(fetch, 1, 1, 1, 4, 1, 1, 0, CUstream::LEGACY, params.get(), null()));
    fails!(ILLEGAL_ADDRESS, cuCtxSynchronize());
    drop(context);
    // A context takes its arrays and textures with it.
    let context = Ctx::new();
    assert_eq!(
        surface(array([4, 0, 0], FLOAT, 0).unwrap()),
        Err(Status::INVALID_VALUE),
        "it is for no surfaces"
    );
    let line = array([4, 0, 0], FLOAT, 2).unwrap();
    let (handle, surface) = (texture(&of_array(line), &plain()).unwrap(), surface(line).unwrap());
    drop(context);
    let _context = Ctx::new();
    fails!(INVALID_HANDLE, cuArrayDestroy(line));
    fails!(INVALID_VALUE, cuTexObjectDestroy(handle));
    fails!(INVALID_VALUE, cuSurfObjectDestroy(surface));
}

#[test]
fn references_of_modules_are_bound() {
    let _context = Ctx::new();
    let module = load(PTX).unwrap();
    let refer = function(module, "refer").unwrap();
    let (image, drawn, nothing) = (text("image"), text("drawn"), text("nothing"));
    let texref = out(|to| call!(cuModuleGetTexRef(to, module, chars(&image)))).unwrap();
    let surfref = out(|to| call!(cuModuleGetSurfRef(to, module, chars(&drawn)))).unwrap();
    assert_eq!(out(|to| call!(cuModuleGetTexRef(to, module, chars(&image)))), Ok(texref));
    let missing: Result<CUtexref> = out(|to| call!(cuModuleGetTexRef(to, module, chars(&nothing))));
    assert_eq!(missing, Err(Status::NOT_FOUND));
    let [from, to] = [0, 2].map(|flags| array([4, 0, 0], CUarray_format::UNSIGNED_INT32, flags).unwrap());
    ok!(cuMemcpyHtoA_v2(from, 0, [5u32, 6, 7, 8].as_ptr().cast(), 16));
    fails!(INVALID_VALUE, cuTexRefSetArray(texref, from, 0));
    fails!(INVALID_VALUE, cuSurfRefSetArray(surfref, from, 0));
    fails!(INVALID_VALUE, cuSurfRefGetArray(nowhere(), surfref));
    ok!(cuTexRefSetArray(texref, from, 1));
    ok!(cuSurfRefSetArray(surfref, to, 0));
    assert_eq!(out(|array| call!(cuTexRefGetArray(array, texref))), Ok(from));
    assert_eq!(out(|array| call!(cuSurfRefGetArray(array, surfref))), Ok(to));
    assert_eq!(run(refer, 4, &[]), [5, 6, 7, 8]);
    let mut written = [0u32; 4];
    ok!(cuMemcpyAtoH_v2(written.as_mut_ptr().cast(), to, 0, 16));
    assert_eq!(written, [6, 7, 8, 9]);
    // Linear memory that does not begin where textures may.
    let memory = words(16);
    write(memory, &(0..16).collect::<Vec<_>>());
    ok!(cuTexRefSetFormat(texref, CUarray_format::UNSIGNED_INT32, 1));
    fails!(INVALID_VALUE, cuTexRefSetAddress_v2(nowhere(), texref, memory + 8, 8));
    assert_eq!(out(|offset| call!(cuTexRefSetAddress_v2(offset, texref, memory + 8, 4))), Ok(8));
    assert_eq!(run(refer, 4, &[]), [0, 1, 2, 0], "from the aligned address on, and as far as was said");
    assert_eq!(out(|to| call!(cuTexRefGetAddress_v2(to, texref))), Ok(memory));
    fails!(INVALID_VALUE, cuTexRefGetArray(nowhere(), texref));
    // What is set can be asked for.
    ok!(cuTexRefSetAddressMode(texref, 2, CUaddress_mode::MIRROR));
    ok!(cuTexRefSetFilterMode(texref, CUfilter_mode::LINEAR));
    ok!(cuTexRefSetFlags(texref, 3));
    ok!(cuTexRefSetMipmapLevelClamp(texref, 0.5, 2.0));
    assert_eq!(out(|to| call!(cuTexRefGetAddressMode(to, texref, 2))), Ok(CUaddress_mode::MIRROR));
    assert_eq!(out(|to| call!(cuTexRefGetAddressMode(to, texref, 0))), Ok(CUaddress_mode::WRAP));
    assert_eq!(out(|to| call!(cuTexRefGetFilterMode(to, texref))), Ok(CUfilter_mode::LINEAR));
    assert_eq!(out(|to| call!(cuTexRefGetFlags(to, texref))), Ok(3));
    let mut greatest = 0.0;
    assert_eq!(out(|to| call!(cuTexRefGetMipmapLevelClamp(to, output(&mut greatest), texref))), Ok(0.5));
    assert_eq!(greatest, 2.0);
    fails!(INVALID_VALUE, cuTexRefSetAddressMode(texref, 3, CUaddress_mode::WRAP));
    fails!(INVALID_VALUE, cuTexRefSetFilterMode(texref, CUfilter_mode(9)));
    fails!(INVALID_VALUE, cuTexRefSetFlags(CUtexref(3), 0));
}
