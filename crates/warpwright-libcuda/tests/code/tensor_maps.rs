//! Tensor maps that the driver makes, and kernels that use them.

use crate::*;
use std::ffi::c_void;

const TILE: &str = include_str!("../../../warpwright-runtime/tests/small/tile.ptx");

const COLUMNS_PTX: &str = "
.version 8.0
.target sm_90
.address_size 64

// Copies 8 pixels of 4 channels from the third image on.
.visible .entry columns(.param .align 64 .b8 from[128], .param .u64 to)
{
    .shared .align 8 .u64 bar;
    .shared .align 128 .b8 tile[128];
    .reg .pred %p1;
    .reg .b16 %h<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    mov.b64 %rd1, from;
    cvta.param.u64 %rd1, %rd1;
    ld.param.u64 %rd2, [to];
    mov.b32 %r0, 4;
    mov.b32 %r1, -1;
    mov.b32 %r2, 2;
    mov.b16 %h0, 2;
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [bar], 128;
    cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [tile], [%rd1, {%r0, %r1, %r2}], [bar], {%h0};
$wait:
    mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
    @!%p1 bra $wait;
    cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}
";

/// What a caller says of a tensor of 2 dimensions.
#[derive(Clone, Copy)]
struct Said {
    ty: i32,
    rank: u32,
    dims: [u64; 2],
    stride: u64,
    tile: [u32; 2],
    steps: [u32; 2],
    /// Interleaving, swizzling, promotion, fill.
    modes: [i32; 4],
}

const SAID: Said =
    Said { ty: 2, rank: 2, dims: [20, 6], stride: 96, tile: [8, 4], steps: [1, 1], modes: [0, 1, 3, 0] };

fn encode(address: u64, said: Said) -> Result<CUtensorMap> {
    let Said { ty, rank, dims, stride, tile, steps, modes: [interleave, swizzle, promotion, fill] } = said;
    out(|map| {
        call!(cuTensorMapEncodeTiled(
            map,
            ty,
            rank,
            address as *mut c_void,
            input(&dims[0]),
            input(&stride),
            input(&tile[0]),
            input(&steps[0]),
            interleave,
            swizzle,
            promotion,
            fill
        ))
    })
}

#[test]
fn tiles_are_copied_by_the_maps_of_the_driver() {
    let _context = Ctx::new();
    let copy = function(load(TILE).unwrap(), "copy").unwrap();
    let [from, to, other] = [0; 3].map(|_| words(6 * 24));
    write(from, &(0..6 * 24).collect::<Vec<u32>>());
    let said = Said { modes: [0, 1, 3, 0], ..SAID };
    let (source, mut target) = (encode(from, said).unwrap(), encode(to, said).unwrap());
    ok!(cuTensorMapReplaceAddress(output(&mut target), other as *mut c_void));
    for (map, memory) in [(encode(to, said).unwrap(), to), (target, other)] {
        let (x, y) = (14u32, 3u32);
        let params = [
            (&raw const source).cast::<c_void>().cast_mut(),
            (&raw const map).cast::<c_void>().cast_mut(),
            (&raw const x).cast::<c_void>().cast_mut(),
            (&raw const y).cast::<c_void>().cast_mut(),
        ];
        ok!(cuLaunchKernel(copy, 1, 1, 1, 1, 1, 1, 0, CUstream::NULL, input(params.as_ptr().cast()), null()));
        let want: Vec<u32> = (0..6 * 24)
            .map(|at| if (14..20).contains(&(at % 24)) && at / 24 >= 3 { at } else { 0 })
            .collect();
        assert_eq!(read(memory, 6 * 24), want);
    }
}

/// What a caller says of columns of images of 5 pixels.
#[derive(Clone, Copy)]
struct Columns {
    rank: u32,
    corners: [i32; 2],
    /// Channels and pixels.
    size: [u32; 2],
    step: u32,
    /// Swizzling, and of columns along the width.
    modes: [i32; 2],
}

const COLUMNS: Columns = Columns { rank: 3, corners: [-1, -1], size: [4, 8], step: 1, modes: [0, 0] };

fn encode_columns(address: u64, said: Columns, is_wide: bool) -> Result<CUtensorMap> {
    let Columns { rank, corners: [lower, upper], size: [channels, pixels], step, modes: [swizzle, mode] } =
        said;
    let (dims, strides, steps) = ([8u64, 5, 4], [32u64, 160], [0, step, 1]);
    let (dims, strides, steps) = (input(&dims[0]), input(&strides[0]), input(&steps[0]));
    let address = address as *mut c_void;
    let (lower_at, upper_at) = (input(&lower), input(&upper));
    out(|map| match is_wide {
        false => call!(cuTensorMapEncodeIm2col(
            map, 2, rank, address, dims, strides, lower_at, upper_at, channels, pixels, steps, 0, swizzle, 0,
            0
        )),
        true => call!(cuTensorMapEncodeIm2colWide(
            map, 2, rank, address, dims, strides, lower, upper, channels, pixels, steps, 0, mode, swizzle, 0,
            0
        )),
    })
}

#[test]
fn columns_are_copied_by_the_maps_of_the_driver() {
    let _context = Ctx::new();
    let columns = function(load(COLUMNS_PTX).unwrap(), "columns").unwrap();
    let [from, to] = [4 * 5 * 8, 32].map(words);
    write(from, &(0..4 * 5 * 8).collect::<Vec<u32>>());
    let map = encode_columns(from, COLUMNS, false).unwrap();
    let params = [(&raw const map).cast::<c_void>().cast_mut(), (&raw const to).cast::<c_void>().cast_mut()];
    ok!(cuLaunchKernel(columns, 1, 1, 1, 1, 1, 1, 0, CUstream::NULL, input(params.as_ptr().cast()), null()));
    // A filter of 3 places on a padded image: its last element is one pixel to the right of each output.
    let want: Vec<u32> = (0..32)
        .map(|at| {
            let (pixel, channel) = (at / 4, at % 4);
            let (image, x) = (2 + pixel / 5, 1 + pixel % 5);
            if x < 5 { (image * 5 + x) * 8 + 4 + channel } else { 0 }
        })
        .collect();
    assert_eq!(read(to, 32), want);
}

#[test]
fn columns_that_break_a_rule_are_refused() {
    let _context = Ctx::new();
    let memory = words(4 * 5 * 8);
    let invalid = Err(Status::INVALID_VALUE);
    let wide = Columns { modes: [2, 0], ..COLUMNS };
    assert!(encode_columns(memory, COLUMNS, false).is_ok());
    assert!(encode_columns(memory, wide, true).is_ok());
    assert!(encode_columns(memory, Columns { size: [4, 0], modes: [2, 1], ..wide }, true).is_ok());
    for said in [
        Columns { rank: 2, ..COLUMNS },
        Columns { rank: 6, ..COLUMNS },
        Columns { corners: [-32769, 0], ..COLUMNS },
        Columns { corners: [3, -2], ..COLUMNS },
        Columns { size: [257, 8], ..COLUMNS },
        Columns { size: [3, 8], ..COLUMNS },
        Columns { size: [0, 8], ..COLUMNS },
        Columns { size: [4, 1025], ..COLUMNS },
        Columns { size: [4, 0], ..COLUMNS },
        Columns { step: 9, ..COLUMNS },
        Columns { step: 0, ..COLUMNS },
        Columns { modes: [8, 0], ..COLUMNS },
    ] {
        assert_eq!(encode_columns(memory, said, false), invalid);
    }
    for said in [
        Columns { modes: [0, 0], ..wide },
        Columns { modes: [1, 0], ..wide },
        Columns { modes: [5, 0], ..wide },
        Columns { modes: [7, 1], ..wide },
        Columns { modes: [2, 2], ..wide },
    ] {
        assert_eq!(encode_columns(memory, said, true), invalid);
    }
}

#[test]
fn what_breaks_a_rule_is_refused() {
    let _context = Ctx::new();
    let memory = words(6 * 24);
    assert!(encode(memory, SAID).is_ok());
    // Flushing; and a step of dimension 0, which does not count.
    assert!(encode(memory, Said { ty: 10, ..SAID }).is_ok());
    assert!(encode(memory, Said { steps: [0, 1], ..SAID }).is_ok());
    let invalid = Status::INVALID_VALUE;
    for (said, status) in [
        (Said { ty: 16, ..SAID }, invalid),
        (Said { ty: -1, ..SAID }, invalid),
        (Said { ty: 15, ..SAID }, invalid),
        (Said { steps: [9, 1], ..SAID }, invalid),
        (Said { rank: 0, ..SAID }, invalid),
        (Said { rank: 6, ..SAID }, invalid),
        (Said { dims: [0, 6], ..SAID }, invalid),
        (Said { stride: 100, ..SAID }, invalid),
        (Said { tile: [8, 257], ..SAID }, invalid),
        (Said { tile: [16, 4], ..SAID }, invalid),
        (Said { tile: [7, 4], ..SAID }, invalid),
        (Said { steps: [1, 9], ..SAID }, invalid),
        (Said { modes: [1, 0, 0, 0], ..SAID }, invalid),
        (Said { modes: [3, 0, 0, 0], ..SAID }, invalid),
        (Said { modes: [0, 8, 0, 0], ..SAID }, invalid),
        (Said { modes: [0, 0, 4, 0], ..SAID }, invalid),
        (Said { modes: [0, 0, 0, 1], ..SAID }, invalid),
    ] {
        assert_eq!(encode(memory, said), Err(status));
    }
    assert_eq!(encode(memory + 8, SAID), Err(invalid));
    let mut map = CUtensorMap::default();
    fails!(INVALID_VALUE, cuTensorMapReplaceAddress(output(&mut map), memory as *mut c_void));
}
