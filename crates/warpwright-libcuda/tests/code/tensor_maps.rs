//! Tensor maps that the driver makes, and kernels that use them.

use crate::*;
use std::ffi::c_void;

const PTX: &str = "
.version 8.0
.target sm_90
.address_size 64

// Copies a tile of 8 by 4 words from one tensor to another.
.visible .entry copy(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128], .param .u32 x, .param .u32 y)
{
    .shared .align 8 .u64 bar;
    .shared .align 128 .b8 tile[128];
    .reg .pred %p1;
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u32 %r1, [x];
    ld.param.u32 %r2, [y];
    mov.b64 %rd1, from;
    cvta.param.u64 %rd1, %rd1;
    mov.b64 %rd2, to;
    cvta.param.u64 %rd2, %rd2;
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [bar], 128;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1, {%r1, %r2}], [bar];
$wait:
    mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
    @!%p1 bra $wait;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd2, {%r1, %r2}], [tile];
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
    let copy = function(load(PTX).unwrap(), "copy").unwrap();
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

#[test]
fn what_breaks_a_rule_is_refused() {
    let _context = Ctx::new();
    let memory = words(6 * 24);
    assert!(encode(memory, SAID).is_ok());
    let invalid = Status::INVALID_VALUE;
    for (said, status) in [
        (Said { ty: 16, ..SAID }, invalid),
        (Said { ty: -1, ..SAID }, invalid),
        (Said { ty: 10, ..SAID }, Status::NOT_SUPPORTED),
        (Said { rank: 0, ..SAID }, invalid),
        (Said { rank: 6, ..SAID }, invalid),
        (Said { dims: [0, 6], ..SAID }, invalid),
        (Said { stride: 100, ..SAID }, invalid),
        (Said { tile: [8, 257], ..SAID }, invalid),
        (Said { tile: [16, 4], ..SAID }, invalid),
        (Said { tile: [7, 4], ..SAID }, invalid),
        (Said { steps: [1, 9], ..SAID }, invalid),
        (Said { modes: [1, 0, 0, 0], ..SAID }, Status::NOT_SUPPORTED),
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
