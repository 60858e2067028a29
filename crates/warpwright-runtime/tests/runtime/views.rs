//! Parts of buffers, and other views of their bytes.

use crate::*;
use half::{bf16, f16};
use warpwright_ptx::ir::Type;

#[test]
fn a_slice_shares_the_memory() {
    let device = Gpu::plain().device;
    let stream = device.default_stream();
    let whole = stream.clone_htod(&[0u32, 1, 2, 3, 4, 5, 6, 7]).unwrap();
    let part = whole.slice(2..6).unwrap();
    assert_eq!((part.len(), part.num_bytes(), part.is_empty()), (4, 16, false));
    assert_eq!(part.device_ptr(), whole.device_ptr() + 8);
    assert_eq!(stream.clone_dtoh(&part).unwrap(), [2, 3, 4, 5]);
    let middle = part.slice(1..=2).unwrap();
    stream.memcpy_htod(&[30, 40], &middle).unwrap();
    assert_eq!(stream.clone_dtoh(&whole).unwrap(), [0, 1, 2, 30, 40, 5, 6, 7]);
    for (part, expected) in [
        (whole.slice(..), 0..8),
        (whole.slice(..3), 0..3),
        (whole.slice(5..), 5..8),
        (whole.slice(8..), 8..8),
        (whole.slice((std::ops::Bound::Excluded(2), std::ops::Bound::Unbounded)), 3..8),
    ] {
        let part = part.unwrap();
        let start = (part.device_ptr() - whole.device_ptr()) as usize / 4;
        assert_eq!(start..start + part.len(), expected);
    }
}

#[test]
fn a_slice_keeps_the_memory() {
    let device = Gpu::plain().device;
    let stream = device.default_stream();
    let part = stream.clone_htod(&[1u8, 2, 3]).unwrap().slice(1..2).unwrap();
    assert_eq!(device.pool_statistics().live, 1);
    // Of the same size as the whole: it must be another one.
    let other = stream.clone_htod(&[7u8; 3]).unwrap();
    assert_eq!(stream.clone_dtoh(&part).unwrap(), [2]);
    drop((part, other));
    assert_eq!(device.pool_statistics().live, 0);
}

#[test]
fn a_slice_is_inside() {
    let device = Gpu::plain().device;
    let buffer = device.default_stream().alloc::<u16>(5).unwrap();
    let reversed = std::ops::Range { start: 3, end: 2 };
    for (result, expected) in [
        (buffer.slice(0..6), (0, 6, 5)),
        (buffer.slice(6..), (6, 5, 5)),
        (buffer.slice(reversed), (3, 2, 5)),
        (buffer.slice(0..=usize::MAX), (0, usize::MAX, 5)),
        (buffer.slice(1..4).unwrap().slice(..4), (0, 4, 3)),
    ] {
        match result {
            Err(RuntimeError::Range { start, end, len }) => assert_eq!((start, end, len), expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn bytes_are_seen_as_other_elements() {
    let device = Gpu::plain().device;
    let stream = device.default_stream();
    let floats = stream.clone_htod(&[1.0f32, -2.5]).unwrap();
    let words = floats.cast::<u32>().unwrap();
    assert_eq!(stream.clone_dtoh(&words).unwrap(), [0x3f80_0000, 0xc020_0000]);
    assert_eq!(stream.clone_dtoh(&floats.cast::<bf16>().unwrap()).unwrap()[3], bf16::from_f32(-2.5));
    assert_eq!(floats.cast::<u64>().unwrap().len(), 1);
    assert_eq!(stream.clone_dtoh(&floats.cast::<u8>().unwrap()).unwrap()[3], 0x3f);
    assert_eq!(floats.cast::<f16>().unwrap().as_any().element(), Type::F16);
}

#[test]
fn casts_want_whole_elements_at_their_addresses() {
    let device = Gpu::plain().device;
    let bytes = device.default_stream().alloc::<u8>(12).unwrap();
    let refused = |result: Result<()>, to| match result {
        Err(RuntimeError::Cast { to: found, .. }) => assert_eq!(found, to),
        other => panic!("{other:?}"),
    };
    assert_eq!(bytes.cast::<f32>().unwrap().len(), 3);
    refused(bytes.cast::<f64>().map(drop), Type::F64);
    refused(bytes.slice(..3).unwrap().cast::<u16>().map(drop), Type::U16);
    // Two words' bytes, but not where a word may be.
    refused(bytes.slice(2..10).unwrap().cast::<i32>().map(drop), Type::S32);
    assert_eq!(bytes.slice(4..).unwrap().cast::<i64>().map(|b| b.len()).ok(), None);
    assert_eq!(bytes.slice(..8).unwrap().cast::<i64>().unwrap().len(), 1);
    refused(bytes.as_any().cast(Type::E2M1).map(drop), Type::E2M1);
}

#[test]
fn a_type_is_given_back_to_who_knows_it() {
    let device = Gpu::plain().device;
    let stream = device.default_stream();
    let any = stream.clone_htod(&[5i16, -6]).unwrap().into_any();
    assert_eq!((any.element(), any.len(), any.is_mapped()), (Type::S16, 2, false));
    assert_eq!(stream.clone_dtoh(&any.typed::<i16>().unwrap()).unwrap(), [5, -6]);
    match any.typed::<u16>() {
        Err(RuntimeError::ElementType { found: Type::S16, asked: Type::U16 }) => {}
        other => panic!("{other:?}"),
    }
    assert!(device.alloc_mapped::<i16>(1).unwrap().buffer().as_any().is_mapped());
}

#[test]
fn ranges_overlap_where_they_share_a_byte() {
    let device = Gpu::plain().device;
    let stream = device.default_stream();
    let (whole, other) = (stream.alloc::<u8>(8).unwrap(), stream.alloc::<u8>(8).unwrap());
    let part = |range| whole.slice(range).unwrap().into_any();
    assert!(part(0..4).overlaps(&part(3..5)) && part(3..5).overlaps(&part(0..4)));
    assert!(part(0..8).overlaps(&part(2..3)) && part(2..3).overlaps(&part(0..8)));
    assert!(!part(0..4).overlaps(&part(4..8)) && !part(4..8).overlaps(&part(0..4)));
    assert!(!part(2..2).overlaps(&part(0..8)), "nothing shares nothing");
    assert!(!part(0..8).overlaps(other.as_any()));
}
