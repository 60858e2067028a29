//! What is found about textures and surfaces, and what they say of themselves.

use super::*;

#[test]
fn handles_answer_questions() {
    let device = device();
    let array = device.array("image", shape(Geometry::A2D, 9, 7, 5, F32)).unwrap();
    let sampler = Sampler {
        filter: Filter::Linear,
        normalized: true,
        address: [AddressMode::Wrap, AddressMode::Mirror, AddressMode::Border],
        ..Sampler::default()
    };
    let texture = device.texture("texture", array.image().clone(), sampler).unwrap();
    let surface = device.surface("surface", array.image().clone()).unwrap();
    let ask = |instruction: &str, handle: u64, what: [&str; 4]| {
        let questions =
            what.iter().zip(5..).map(|(what, row)| format!("{instruction}.{what}.b32 %r{row}, [%rd1];"));
        clean(&device, &questions.collect::<String>(), handle, &[[0; 4]])[0]
    };
    assert_eq!(ask("txq", texture.handle(), ["width", "height", "depth", "array_size"]), [9, 7, 0, 5]);
    let what = ["normalized_coords", "filter_mode", "num_mipmap_levels", "num_samples"];
    assert_eq!(ask("txq", texture.handle(), what), [1, 1, 0, 0]);
    assert_eq!(
        ask("txq", texture.handle(), ["addr_mode_0", "addr_mode_1", "addr_mode_2", "width"]),
        [0, 1, 4, 9]
    );
    let is = "istypep.texref %p1, %rd1; istypep.surfref %p2, %rd1; istypep.samplerref %p3, %rd1; \
              selp.u32 %r5, 1, 0, %p1; selp.u32 %r6, 1, 0, %p2; selp.u32 %r7, 1, 0, %p3;";
    for (handle, expected) in [(texture.handle(), [1, 0, 0]), (surface.handle(), [0, 1, 0]), (8, [0; 3])] {
        assert_eq!(clean(&device, is, handle, &[[0; 4]])[0][..3], expected);
    }
    assert_eq!(ask("suq", surface.handle(), ["width", "height", "depth", "array_size"]), [9, 7, 0, 5]);
}

/// The kinds of findings, and the lines of the first access of each.
fn found(report: &Report, text: &str) -> Vec<(&'static str, usize)> {
    let line = |finding: &Finding| line(text, finding.accesses[0].origin);
    report.findings.iter().map(|finding| (finding.kind.name(), line(finding))).collect()
}

#[test]
fn handles_of_nothing_are_found() {
    let device = device();
    let array = device.array("image", shape(Geometry::D1, 3, 1, 1, F32)).unwrap();
    array.write(&bytes(&[1.0, 2.0, 4.0])).unwrap();
    let texture = device.texture("texture", array.image().clone(), Sampler::default()).unwrap();
    let destroyed = device.texture("destroyed", array.image().clone(), Sampler::default()).unwrap();
    let surface = device.surface("surface", array.image().clone()).unwrap();
    let buffer = device.alloc_zeros::<u32>(4).unwrap();
    let gone = destroyed.handle();
    drop(destroyed);
    let body = "\n    tex.1d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1}]; // read";
    let text = text(body);
    let at = marked(&text, "read");
    for handle in [gone, surface.handle(), buffer.address(), texture.handle() + 1, 0, 1, u64::MAX] {
        let (_, report) = run(&device, body, handle, &[[0; 4]]);
        assert_eq!(found(&report, &text), [("bad-handle", at)], "{handle:#x}");
    }
    let (_, report) = run(&device, body, gone, &[[0; 4]]);
    let memory = report.findings[0].accesses[0].memory.as_ref().unwrap();
    let allocation = memory.allocation.as_ref().unwrap();
    assert_eq!((allocation.name.as_str(), allocation.freed), ("destroyed", true));
    let body = "suld.b.1d.b32.trap %r5, [%rd1, {0}];";
    assert_eq!(run(&device, body, texture.handle(), &[[0; 4]]).1.findings.len(), 1);
    // An instruction for another geometry.
    let body = "tex.2d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1, %r1}];";
    let trap = run(&device, body, texture.handle(), &[[0; 4]]).1.trap.expect("it is a line");
    assert_eq!(trap.kind, TrapKind::BadOperand);
    // No load or store reaches an array.
    let body = "ld.global.u32 %r5, [%rd1];";
    let address = array.bytes().address();
    assert_eq!(run(&device, body, address, &[[0; 4]]).1.findings[0].kind.name(), "wrong-space");
    assert!(device.span(address, 4).is_err() && device.extent(gone).is_none());
    // What a texture is of may be gone.
    drop(array);
    let (_, report) =
        run(&device, "tex.1d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1}];", texture.handle(), &[[0; 4]]);
    assert_eq!(report.findings[0].kind.name(), "use-after-free");
}

#[test]
fn texels_are_checked_as_memory_is() {
    let device = device();
    let new = || {
        let array = device.array("image", shape(Geometry::D1, 64, 1, 1, F32)).unwrap();
        let texture = device.texture("texture", array.image().clone(), Sampler::default()).unwrap();
        let surface = device.surface("surface", array.image().clone()).unwrap();
        (array, texture, surface)
    };
    let inputs: Vec<[u32; 4]> = (0..64).map(|thread| [thread * 4, 0, 0, 0]).collect();
    // Never written; a half of it was.
    let (array, texture, surface) = new();
    let read = "tex.1d.v4.f32.s32 {%r5, %r6, %r7, %r8}, [%rd1, {%r9}];";
    assert_eq!(run(&device, read, texture.handle(), &inputs).1.findings[0].kind.name(), "uninitialized");
    array.part(0, 128).write(0, &[0; 128]).unwrap();
    let half = format!("setp.ge.u32 %p1, %r9, 32; @!%p1 {read}");
    clean(&device, &half, texture.handle(), &inputs);
    assert_eq!(run(&device, read, texture.handle(), &inputs).1.findings[0].kind.name(), "uninitialized");
    // A launch writes what the next one reads.
    clean(&device, "sust.b.1d.b32.trap [%rd1, {%r1}], %r9;", surface.handle(), &inputs);
    let outputs = clean(&device, read, texture.handle(), &inputs);
    assert!(outputs.iter().map(|output| output[0]).eq(0..64));
    // In place: each thread reads before it writes.
    let in_place = "suld.b.1d.b32.trap %r5, [%rd1, {%r1}]; add.u32 %r11, %r5, 1; sust.b.1d.b32.trap [%rd1, {%r1}], %r11;";
    clean(&device, in_place, surface.handle(), &inputs);
    // Two threads write one texel.
    let race = "shr.u32 %r11, %r1, 1; and.b32 %r11, %r11, -4; sust.b.1d.b32.trap [%rd1, {%r11}], %r9;";
    let (_, report) = run(&device, race, surface.handle(), &inputs);
    assert_eq!(report.findings[0].kind.name(), "race", "{report}");
    // Neither a barrier nor the order of a thread lets a surface see what the launch has written.
    for between in ["", "bar.sync 0;"] {
        let body = format!(
            "\n    sust.b.1d.b32.trap [%rd1, {{%r1}}], %r9; // write\n    {between}\n    \
                            suld.b.1d.b32.trap %r5, [%rd1, {{%r1}}]; // read"
        );
        let (_, report) = run(&device, &body, surface.handle(), &inputs);
        let text = text(&body);
        assert_eq!(found(&report, &text), [("non-coherent", marked(&text, "write"))]);
        assert_eq!(line(&text, report.findings[0].accesses[1].origin), marked(&text, "read"));
    }
}

#[test]
fn a_texture_of_a_buffer_does_not_see_what_the_launch_has_stored() {
    let device = device();
    let buffer = device.clone_htod(&[0u32; 64]).unwrap();
    let image = Image::linear(buffer.address(), 64, F32);
    let texture = device.texture("texture", image, Sampler::default()).unwrap();
    let (low, high) = (buffer.address() as u32, (buffer.address() >> 32) as u32);
    let inputs: Vec<[u32; 4]> = (0..64).map(|thread| [thread * 4, 0, low, high]).collect();
    let place = "mov.b64 %rd7, {%r3, %r4}; cvt.u64.u32 %rd8, %r1; add.u64 %rd7, %rd7, %rd8;";
    let write = "st.global.u32 [%rd7], %r9; // write";
    let read = "tex.1d.v4.f32.s32 {%r5, %r6, %r7, %r8}, [%rd1, {%r9}]; // read";
    // Whatever stands between the two.
    for between in ["", "bar.sync 0;", "fence.sc.sys;", "fence.proxy.alias;"] {
        let body = format!("\n    {place}\n    {write}\n    {between}\n    {read}");
        let (_, report) = run(&device, &body, texture.handle(), &inputs);
        let text = text(&body);
        assert_eq!(found(&report, &text), [("non-coherent", marked(&text, "write"))], "{between}");
        assert_eq!(line(&text, report.findings[0].accesses[1].origin), marked(&text, "read"));
    }
    // A thread that reads before it stores has no such problem, and the next launch sees what it stored.
    clean(&device, &format!("{place}\n{read}\n{write}"), texture.handle(), &inputs);
    let outputs = clean(&device, read, texture.handle(), &inputs);
    assert!(outputs.iter().map(|output| output[0]).eq(0..64));
}

#[test]
fn what_does_not_exist_is_refused() {
    let device = device();
    let u8 = TexelFormat { channel: Channel::U8, channels: 4 };
    for shape in [
        shape(Geometry::D1, 4, 2, 1, F32),
        shape(Geometry::D2, 4, 0, 1, F32),
        shape(Geometry::Cube, 4, 4, 5, F32),
        shape(Geometry::ACube, 4, 3, 6, F32),
        shape(Geometry::D2Ms, 4, 4, 1, F32),
        shape(Geometry::D1, 4, 1, 1, TexelFormat { channels: 3, ..F32 }),
        ArrayShape { levels: Some(4), ..shape(Geometry::D2, 4, 4, 1, F32) },
    ] {
        assert!(matches!(device.array("", shape), Err(DeviceError::Image { .. })), "{shape:?}");
    }
    let huge = shape(Geometry::D3, 16384, 16384, 16384, TexelFormat { channels: 4, ..F32 });
    assert!(matches!(device.array("", huge), Err(DeviceError::OutOfMemory { .. })));
    let array = device.array("", ArrayShape { levels: Some(2), ..shape(Geometry::D2, 4, 4, 1, u8) }).unwrap();
    for sampler in [
        Sampler { normalized: true, filter: Filter::Linear, ..Sampler::default() },
        Sampler { normalized: true, srgb: true, ..Sampler::default() },
        Sampler::default(),
    ] {
        assert!(device.texture("", array.image().clone(), sampler).is_err());
    }
    for image in [
        Image::linear(0, 0, F32),
        Image::pitched(0, (4, 0), 16, F32),
        Image::pitched(0, (4, 4), u64::MAX, F32),
        Image::linear(0, 4, TexelFormat { channels: 3, ..F32 }),
    ] {
        assert!(device.texture("", image.clone(), Sampler::default()).is_err(), "{image:?}");
        assert!(device.surface("", image).is_err());
    }
    let image = array.image();
    assert!(image.view(Geometry::D2, F32, 0..=1, 0..=0).is_some(), "another format of the same size");
    for (geometry, format, levels, layers) in [
        (Geometry::D3, u8, 0..=1, 0..=0),
        (Geometry::D2, TexelFormat { channels: 2, ..u8 }, 0..=1, 0..=0),
        (Geometry::D2, u8, 0..=2, 0..=0),
        (Geometry::D2, u8, 2..=2, 0..=0),
        (Geometry::A2D, u8, 0..=1, 0..=0),
        (Geometry::D2, u8, 0..=1, 1..=1),
    ] {
        assert!(
            image.view(geometry, format, levels.clone(), layers).is_none(),
            "{geometry} {format:?} {levels:?}"
        );
    }
}
