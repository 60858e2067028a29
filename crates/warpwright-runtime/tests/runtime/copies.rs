//! Copies and fills: every element type, every kind of range, and what is refused.

use crate::*;
use half::{bf16, f16};

/// Copies values to the device, within it, and back, whole and in part.
fn round_trip<T: Element + PartialEq + std::fmt::Debug>(values: [T; 7]) {
    let device = Gpu::plain().device;
    let stream = device.default_stream();
    let source = stream.clone_htod(&values).unwrap();
    assert_eq!(stream.clone_dtoh(&source).unwrap(), values);
    let target = stream.alloc_zeros::<T>(9).unwrap();
    assert_eq!(stream.clone_dtoh(&target).unwrap(), [T::zeroed(); 9]);
    stream.memcpy_dtod(&source.slice(1..6).unwrap(), &target.slice(3..8).unwrap()).unwrap();
    let mut expected = [T::zeroed(); 9];
    expected[3..8].copy_from_slice(&values[1..6]);
    assert_eq!(stream.clone_dtoh(&target).unwrap(), expected);
    stream.memcpy_htod(&values[4..5], &target.slice(..1).unwrap()).unwrap();
    stream.memset_zeros(&target.slice(5..7).unwrap()).unwrap();
    expected[0] = values[4];
    expected[5..7].fill(T::zeroed());
    let mut part = [values[6]; 5];
    stream.memcpy_dtoh(&target.slice(..3).unwrap(), &mut part[1..4]).unwrap();
    assert_eq!(part, [values[6], expected[0], expected[1], expected[2], values[6]]);
    stream.memcpy_dtoh(&target.slice(2..7).unwrap(), &mut part).unwrap();
    assert_eq!(part, expected[2..7]);
    // Within one buffer, side by side.
    stream.memcpy_dtod(&target.slice(3..5).unwrap(), &target.slice(5..7).unwrap()).unwrap();
    assert_eq!(stream.clone_dtoh(&target.slice(5..7).unwrap()).unwrap(), expected[3..5]);
}

#[test]
fn every_element_type_comes_back() {
    round_trip([0u8, 1, 2, 127, 128, 254, 255]);
    round_trip([0i8, 1, -1, 127, -128, 50, -50]);
    round_trip([0u16, 1, 2, 0x7fff, 0x8000, 0xfffe, 0xffff]);
    round_trip([0i16, 1, -1, i16::MAX, i16::MIN, 500, -500]);
    round_trip([0u32, 1, 2, u32::MAX / 2, u32::MAX / 2 + 1, 0xdead_beef, u32::MAX]);
    round_trip([0i32, 1, -1, i32::MAX, i32::MIN, 70_000, -70_000]);
    round_trip([0u64, 1, 2, u64::MAX / 2, u64::MAX / 2 + 1, 0xdead_beef_0123_4567, u64::MAX]);
    round_trip([0i64, 1, -1, i64::MAX, i64::MIN, 1 << 40, -1 << 40]);
    round_trip([0.0f32, -0.0, 1.5, f32::MAX, f32::MIN_POSITIVE, f32::INFINITY, -1e-40]);
    round_trip([0.0f64, -0.0, 1.5, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, -1e-310]);
    round_trip([0.0, -0.0, 1.5, 65504.0, 6e-8, f32::INFINITY, -2.5].map(f16::from_f32));
    round_trip([0.0, -0.0, 1.5, 3e38, 1e-40, f32::INFINITY, -2.5].map(bf16::from_f32));
}

/// More than is on its way at once: what a copy goes through is used again, and not before it is free.
#[test]
fn long_slices_of_the_host_come_whole() {
    let stream = Gpu::plain().device.default_stream();
    let values: Vec<u32> = (0..5 << 20).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
    let target = stream.alloc::<u32>(values.len()).unwrap();
    for part in [3 << 18..5 << 18, 0..values.len()] {
        let target = target.slice(part.clone()).unwrap();
        stream.memcpy_htod(&values[part.clone()], &target).unwrap();
        assert!(stream.clone_dtoh(&target).unwrap() == values[part]);
    }
}

#[test]
fn a_slice_of_the_host_may_change_once_it_was_given() {
    let gpu = Gpu::plain();
    let stream = gpu.device.default_stream();
    let (x, target) = (stream.alloc_zeros::<u32>(1).unwrap(), stream.alloc_zeros::<u32>(2).unwrap());
    let hold = gpu.hold(&stream, &x, 0);
    let mut data = [1, 2];
    stream.memcpy_htod(&data, &target).unwrap();
    data = [3, 4];
    stream.memcpy_htod(&data[..1], &target.slice(1..).unwrap()).unwrap();
    data[0] = 5;
    hold.release();
    assert_eq!(stream.clone_dtoh(&target).unwrap(), [1, 3]);
    assert_eq!(data, [5, 4]);
}

#[test]
fn nothing_is_copied_as_well() {
    let device = Gpu::plain().device;
    let stream = device.default_stream();
    let (none, some) = (stream.clone_htod::<f64>(&[]).unwrap(), stream.clone_htod(&[1.0f64]).unwrap());
    assert!(none.is_empty());
    stream.memcpy_dtod(&none, &some.slice(1..).unwrap()).unwrap();
    stream.memcpy_dtod(&some.slice(..0).unwrap(), &none).unwrap();
    stream.memset_zeros(&some.slice(0..0).unwrap()).unwrap();
    assert_eq!(stream.clone_dtoh(&none).unwrap(), [0.0; 0]);
    assert_eq!(stream.clone_dtoh(&some).unwrap(), [1.0]);
}

#[test]
fn large_copies_are_whole() {
    let device = Gpu::plain().device;
    let stream = device.default_stream();
    let data: Vec<u16> = (0..1_000_003u32).map(|i| i.wrapping_mul(7919) as u16).collect();
    let source = stream.clone_htod(&data).unwrap();
    let target = stream.alloc::<u16>(data.len()).unwrap();
    let (from, to) = (source.slice(1..).unwrap(), target.slice(..data.len() - 1).unwrap());
    stream.memcpy_dtod(&from, &to).unwrap();
    assert!(stream.clone_dtoh(&to).unwrap() == data[1..]);
}

#[test]
fn fills_are_of_bytes() {
    let device = Gpu::plain().device;
    let stream = device.default_stream();
    let target = stream.alloc_zeros::<u16>(4).unwrap();
    stream.memset_any(target.slice(1..3).unwrap().as_any(), 0xab).unwrap();
    assert_eq!(stream.clone_dtoh(&target).unwrap(), [0, 0xabab, 0xabab, 0]);
}

#[test]
fn both_sides_have_the_same_length() {
    let device = Gpu::plain().device;
    let stream = device.default_stream();
    let (two, three) = (stream.clone_htod(&[1u32, 2]).unwrap(), stream.clone_htod(&[3u32, 4, 5]).unwrap());
    let refused = |result: Result<()>, expected| match result {
        Err(RuntimeError::Length { source_len, target_len, .. }) => {
            assert_eq!((source_len, target_len), expected)
        }
        other => panic!("{other:?}"),
    };
    refused(stream.memcpy_htod(&[9; 3], &two), (3, 2));
    refused(stream.memcpy_dtoh(&three, &mut [9; 2]), (3, 2));
    refused(stream.memcpy_dtod(&two, &three), (2, 3));
    assert_eq!(stream.clone_dtoh(&two).unwrap(), [1, 2]);
    assert_eq!(stream.clone_dtoh(&three).unwrap(), [3, 4, 5]);
}

#[test]
fn both_sides_are_apart() {
    let device = Gpu::plain().device;
    let stream = device.default_stream();
    let buffer = stream.clone_htod(&[1u32, 2, 3]).unwrap();
    let (low, high) = (buffer.slice(..2).unwrap(), buffer.slice(1..).unwrap());
    for (source, target) in [(&low, &high), (&high, &low), (&low, &low)] {
        assert!(matches!(stream.memcpy_dtod(source, target), Err(RuntimeError::Overlap { .. })));
    }
    assert_eq!(stream.clone_dtoh(&buffer).unwrap(), [1, 2, 3]);
}

#[test]
fn both_sides_are_of_one_type() {
    let device = Gpu::plain().device;
    let stream = device.default_stream();
    let (floats, words) = (stream.clone_htod(&[1.0f32]).unwrap(), stream.clone_htod(&[2u32]).unwrap());
    let result = stream.memcpy_dtod_any(floats.as_any(), words.as_any());
    assert!(matches!(result, Err(RuntimeError::ElementType { .. })));
    stream.memcpy_dtod_any(floats.cast::<u32>().unwrap().as_any(), words.as_any()).unwrap();
    assert_eq!(stream.clone_dtoh(&words).unwrap(), [1.0f32.to_bits()]);
}

#[test]
fn a_buffer_of_another_device_is_refused() {
    let (here, there) = (Gpu::plain().device, Gpu::plain().device);
    let stream = here.default_stream();
    let (own, foreign) =
        (stream.alloc_zeros::<u8>(1).unwrap(), there.new_stream().unwrap().alloc_zeros::<u8>(1).unwrap());
    let mut byte = [0];
    for result in [
        stream.memcpy_htod(&byte, &foreign),
        stream.memcpy_dtoh(&foreign, &mut byte),
        stream.memcpy_dtod(&foreign, &own),
        stream.memcpy_dtod(&own, &foreign),
        stream.memset_zeros(&foreign),
    ] {
        assert!(matches!(result, Err(RuntimeError::OtherDevice { .. })), "{result:?}");
    }
}

#[test]
fn bytes_go_to_another_device() {
    let (here, there) = (Gpu::plain(), Gpu::plain());
    let (near, far) = (here.device.new_stream().unwrap(), there.device.new_stream().unwrap());
    let x = near.clone_htod(&[1u32, 2, 3]).unwrap();
    let y = far.alloc_zeros::<u32>(3).unwrap();
    near.wait_event(&far.record_event().unwrap()).unwrap();
    let hold = here.hold(&near, &x, 10);
    near.memcpy_peer(&x, &y).unwrap();
    // Behind the copy, though nobody has said so.
    there.launch(&far, "add", &y, &y, 100);
    hold.release();
    assert_eq!(far.clone_dtoh(&y).unwrap(), [111, 2, 3]);
    // Back, on a stream of the other device; and where both are one.
    far.memcpy_peer(&y.slice(..2).unwrap(), &x.slice(1..).unwrap()).unwrap();
    assert_eq!(near.clone_dtoh(&x).unwrap(), [11, 111, 2]);
    near.memcpy_peer(&x.slice(..1).unwrap(), &x.slice(2..).unwrap()).unwrap();
    assert_eq!(near.clone_dtoh(&x).unwrap(), [11, 111, 11]);

    let refused = near.memcpy_peer(&x.slice(1..).unwrap(), &y);
    assert!(matches!(refused, Err(RuntimeError::Length { source_len: 2, target_len: 3, .. })));
    let third = Gpu::plain().device;
    let refused = third.default_stream().memcpy_peer(&x, &y);
    assert!(matches!(refused, Err(RuntimeError::OtherDevice { operation: "memcpy_peer", .. })));
    near.begin_capture().unwrap();
    assert!(matches!(near.memcpy_peer(&x, &y), Err(RuntimeError::Capturing { .. })));
    near.end_capture().unwrap();
}

#[test]
fn copies_are_counted() {
    let device = Gpu::plain().device;
    let stream = device.default_stream();
    let source = stream.clone_htod(&[1u32, 2, 3]).unwrap();
    let target = stream.alloc_zeros::<u32>(3).unwrap();
    stream.memcpy_dtod(&source, &target).unwrap();
    stream.clone_dtoh(&target.slice(..1).unwrap()).unwrap();
    let statistics = device.statistics();
    assert_eq!((statistics.copies, statistics.bytes_copied, statistics.memsets), (3, 12 + 12 + 4, 1));
    assert_eq!((statistics.launches, statistics.graph_launches), (0, 0));
}

/// Three numbers of two bytes.
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Triple([i16; 3]);

impl Element for Triple {
    const TYPE: Type = Type::S16;
}

/// Four floats.
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Particle {
    position: [f32; 3],
    mass: f32,
}

impl Element for Particle {
    const TYPE: Type = Type::F32;
}

/// Every element of a slice has the value, and no other one, also in a replay.
fn fills<T: Element + PartialEq + std::fmt::Debug>(value: T, before: T) {
    let stream = Gpu::plain().device.default_stream();
    let buffer = stream.clone_htod(&[before; 9]).unwrap();
    let slice = buffer.slice(2..7).unwrap();
    let expected = |value: T| [before, before, value, value, value, value, value, before, before];
    stream.memset(&slice, value).unwrap();
    assert_eq!(stream.clone_dtoh(&buffer).unwrap(), expected(value));
    stream.memset(&buffer, before).unwrap();
    stream.begin_capture().unwrap();
    stream.memset(&slice, value).unwrap();
    stream.memset(&slice.slice(0..0).unwrap(), before).unwrap();
    let graph = stream.end_capture().unwrap().instantiate().unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(stream.clone_dtoh(&buffer).unwrap(), expected(value));
}

#[test]
fn elements_of_every_size_are_filled() {
    fills(0xabu8, 1);
    fills(0x1234u16, 7);
    fills(f16::from_f32(-2.5), f16::ONE);
    fills(0x1234_5678u32, 1);
    fills(-1.5f32, 2.0);
    // One word twice, two words, the same byte everywhere.
    fills(0x1234_5678_1234_5678u64, 1);
    fills(std::f64::consts::PI, 1.0);
    fills(-1i64, 0);
    fills(Triple([1, -2, 3]), Triple([9; 3]));
    fills(Particle { position: [1.0, 2.0, 3.0], mass: 4.0 }, Particle { position: [0.0; 3], mass: -1.0 });
}

#[test]
fn a_struct_is_as_many_numbers_as_it_has() {
    let stream = Gpu::plain().device.default_stream();
    let particles = stream.alloc_zeros::<Particle>(6).unwrap();
    assert_eq!((particles.len(), particles.as_any().len(), particles.num_bytes()), (6, 24, 96));
    let numbers = particles.cast::<f32>().unwrap();
    stream.memcpy_htod(&[1.0, 2.0, 3.0, 4.0], &numbers.slice(8..12).unwrap()).unwrap();
    let third = stream.clone_dtoh(&particles.slice(2..3).unwrap()).unwrap();
    assert_eq!(third, [Particle { position: [1.0, 2.0, 3.0], mass: 4.0 }]);
    // Back only where they are whole ones, of that type of numbers.
    assert_eq!(numbers.slice(4..12).unwrap().cast::<Particle>().unwrap().len(), 2);
    assert!(matches!(numbers.slice(0..6).unwrap().cast::<Particle>(), Err(RuntimeError::Cast { .. })));
    assert!(matches!(particles.as_any().typed::<Triple>(), Err(RuntimeError::ElementType { .. })));
    assert!(matches!(particles.slice(0..7), Err(RuntimeError::Range { end: 7, len: 6, .. })));
}

/// Whatever the device's range is.
#[test]
fn streams_have_any_priority() {
    for priority in [i32::MIN, -1, 0, 1, i32::MAX] {
        let stream = Gpu::plain().device.new_stream_with_priority(priority).unwrap();
        let x = stream.clone_htod(&[1u32, 2, 3]).unwrap();
        assert_eq!(stream.clone_dtoh(&x).unwrap(), [1, 2, 3]);
    }
}
