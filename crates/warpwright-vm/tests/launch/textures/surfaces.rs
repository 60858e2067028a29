//! What surfaces read and write.

use super::*;

#[test]
fn surfaces_are_written_and_read_by_bytes() {
    let device = device();
    let format = TexelFormat { channel: Channel::U16, channels: 2 };
    // Thread `n` writes texel `n`: the number of its column, row and slice.
    let split = "rem.u32 %r11, %r9, 5; div.u32 %r12, %r9, 5; rem.u32 %r13, %r12, 3; div.u32 %r14, %r12, 3; \
                 shl.b32 %r15, %r11, 2; setp.ge.u32 %p1, %r9, 60; @%p1 bra $end;";
    for (geometry, coordinates) in
        [(Geometry::D3, "{%r15, %r13, %r14, %r14}"), (Geometry::A2D, "{%r14, %r15, %r13, %r13}")]
    {
        let array = device.array("image", shape(geometry, 5, 3, 4, format)).unwrap();
        let surface = device.surface("surface", array.image().clone()).unwrap();
        let write = format!("{split} sust.b{geometry}.b32.trap [%rd1, {coordinates}], %r9; $end:");
        clean(&device, &write, surface.handle(), &[[0; 4]; 64]);
        let texels: Vec<u8> = (0..60u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(array.read().unwrap(), texels, "{geometry}");
        let read = format!(
            "{split} suld.b{geometry}.v2.b16.trap {{%rs1, %rs2}}, [%rd1, {coordinates}]; \
                            mov.b32 %r5, {{%rs1, %rs2}}; $end:"
        );
        let outputs = clean(&device, &read, surface.handle(), &[[0; 4]; 64]);
        assert!(outputs[..60].iter().map(|output| output[0]).eq(0..60), "{geometry}");
    }
}

#[test]
fn what_is_outside_of_a_surface_is_clamped_dropped_or_a_trap() {
    let device = device();
    let format = TexelFormat { channel: Channel::U32, channels: 1 };
    let numbers: Vec<u8> = (1..=15u32).flat_map(u32::to_le_bytes).collect();
    let inputs: Vec<[u32; 4]> = [(-4, 0), (0, -1), (20, 2), (16, 3), (i32::MIN, i32::MAX), (8, 1)]
        .map(|(x, y)| [x as u32, y as u32, 0, 0])
        .into();
    let array = device.array("image", shape(Geometry::D2, 5, 3, 1, format)).unwrap();
    array.write(&numbers).unwrap();
    let surface = device.surface("surface", array.image().clone()).unwrap();
    for (clamp, expected) in [("clamp", [1, 1, 15, 15, 11, 8]), ("zero", [0, 0, 0, 0, 0, 8])] {
        let body = format!("suld.b.2d.b32.{clamp} %r5, [%rd1, {{%r1, %r2}}];");
        let outputs = clean(&device, &body, surface.handle(), &inputs);
        assert!(outputs.iter().map(|output| output[0]).eq(expected), "{clamp}: {outputs:?}");
    }
    let body = "setp.ge.u32 %p1, %r9, 6; @!%p1 sust.b.2d.b32.zero [%rd1, {%r1, %r2}], %r9;";
    clean(&device, body, surface.handle(), &inputs);
    let mut after: Vec<u32> = (1..=15).collect();
    after[7] = 5;
    assert_eq!(array.read().unwrap(), after.iter().copied().flat_map(u32::to_le_bytes).collect::<Vec<_>>());
    // Bytes between texels are none.
    let (_, report) = run(&device, "suld.b.2d.b32.trap %r5, [%rd1, {2, 1}];", surface.handle(), &[[0; 4]]);
    assert_eq!(report.findings[0].kind.name(), "misaligned");
    // The lane that is outside is named, and nothing behind it happens.
    let body = "\n    sust.b.2d.b32.trap [%rd1, {%r1, %r2}], %r9; // outside";
    let (_, report) = run(&device, body, surface.handle(), &[[16, 2, 0, 0], [20, 2, 0, 0]]);
    let trap = report.trap.expect("it is outside");
    assert_eq!((trap.kind, trap.thread), (TrapKind::SurfaceBounds, Some(([0; 3], [1, 0, 0]))));
    let text = text(body);
    assert_eq!(line(&text, trap.origin.unwrap()), marked(&text, "outside"));
}

#[test]
fn formatted_stores_convert_to_the_format() {
    use Channel::*;
    let device = device();
    let float = |value: f32| value.to_bits();
    // What is stored in a channel, and the bytes that it becomes.
    let cases: [(Channel, u32, &[u8]); 9] = [
        (U8, 300, &[255]),
        (S8, -200i32 as u32, &[0x80]),
        (U16, 70000, &[0xff, 0xff]),
        (S16, 40000, &[0xff, 0x7f]),
        (U32, 0x0102_0304, &[4, 3, 2, 1]),
        (F16, float(-1.5), &[0x00, 0xbe]),
        (F16, float(1e9), &[0x00, 0x7c]),
        (F32, float(2.0), &[0, 0, 0, 0x40]),
        (S32, 7, &[7, 0, 0, 0]),
    ];
    for (channel, word, data) in cases {
        let format = TexelFormat { channel, channels: 2 };
        let array = device.array("image", shape(Geometry::D1, 3, 1, 1, format)).unwrap();
        array.write(&vec![0; 3 * format.bytes() as usize]).unwrap();
        let surface = device.surface("surface", array.image().clone()).unwrap();
        let body = "mov.u32 %r11, 2; setp.ne.u32 %p1, %r9, 0; @!%p1 sust.p.1d.v2.b32.trap [%rd1, {%r11}], {%r1, %r2};";
        clean(&device, body, surface.handle(), &[[word, word, 0, 0]]);
        let expected = [vec![0; 4 * data.len()], data.repeat(2)].concat();
        assert_eq!(array.read().unwrap(), expected, "{channel:?}");
    }
}

#[test]
fn reductions_into_surfaces_lose_nothing() {
    let device = device();
    let format = TexelFormat { channel: Channel::S32, channels: 1 };
    let cases = [
        ("b", "add.1d.u32", 4, 640 * 639 / 2),
        ("b", "max.1d.s32", 4, 639),
        ("b", "min.1d.s32", 4, 0),
        ("p", "max.1d.b32", 1, 639),
    ];
    for (form, kind, unit, expected) in cases {
        let array = device.array("image", shape(Geometry::D1, 3, 1, 1, format)).unwrap();
        array.write(&[0; 12]).unwrap();
        let surface = device.surface("surface", array.image().clone()).unwrap();
        // Ten blocks reduce into one texel; the clamped ones of others are dropped.
        let body = format!(
            "mov.u32 %r11, {unit}; sured.{form}.{kind}.trap [%rd1, {{%r11}}], %r9; \
                            sured.{form}.{kind}.zero [%rd1, {{-{unit}}}], %r9;"
        );
        clean(&device, &body, surface.handle(), &[[0; 4]; 640]);
        let expected: Vec<u8> = [0, expected, 0].into_iter().flat_map(i32::to_le_bytes).collect();
        assert_eq!(array.read().unwrap(), expected, "{form} {kind}");
    }
}
