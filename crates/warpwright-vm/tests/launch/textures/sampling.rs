//! What textures read.

use super::*;

/// A level of single floating-point texels.
struct Texels {
    extents: [usize; 3],
    values: Vec<f32>,
}

impl Texels {
    fn random(extents: [usize; 3], random: &mut Random) -> Self {
        let values = (0..extents.iter().product()).map(|_| random.float(-4.0..4.0)).collect();
        Texels { extents, values }
    }

    /// The texel at some indices, by the address modes of the guide: the image goes on as they say.
    fn at(&self, at: [i64; 3], modes: [AddressMode; 3], border: f64) -> f64 {
        let mut place = [0; 3];
        for axis in 0..3 {
            let n = self.extents[axis] as i64;
            let mut i = at[axis];
            match modes[axis] {
                AddressMode::Clamp if i < 0 => i = 0,
                AddressMode::Clamp if i >= n => i = n - 1,
                AddressMode::Wrap => {
                    while i < 0 {
                        i += n;
                    }
                    i %= n;
                }
                AddressMode::Mirror => {
                    // Left of the edge it is as right of it.
                    while !(0..n).contains(&i) {
                        i = if i < 0 { -1 - i } else { 2 * n - 1 - i };
                    }
                }
                AddressMode::Border if !(0..n).contains(&i) => return border,
                _ => {}
            }
            place[axis] = i as usize;
        }
        let [width, height, _] = self.extents;
        f64::from(self.values[place[0] + width * (place[1] + height * place[2])])
    }

    /// The guide's formulas at a place in texels, over the first dimensions.
    fn sample(
        &self,
        x: [f64; 3],
        dimensions: usize,
        linear: bool,
        modes: [AddressMode; 3],
        border: f64,
    ) -> f64 {
        if !linear {
            return self.at(x.map(|x| x.floor() as i64), modes, border);
        }
        let mut total = 0.0;
        let split = x.map(|x| {
            let rounded = ((x - 0.5) * 256.0 + 0.5).floor() / 256.0;
            (rounded.floor(), rounded - rounded.floor())
        });
        for corner in 0..1usize << dimensions {
            let mut weight = 1.0;
            let mut at = x.map(|x| x.floor() as i64);
            for axis in 0..dimensions {
                let (first, fraction) = split[axis];
                let next = corner >> axis & 1;
                weight *= [1.0 - fraction, fraction][next];
                at[axis] = first as i64 + next as i64;
            }
            if weight != 0.0 {
                total += weight * self.at(at, modes, border);
            }
        }
        total
    }
}

/// Geometries with their instructions: the extents, the coordinates, and how many of them are filtered.
const GEOMETRIES: [(Geometry, [usize; 3], &str, usize); 5] = [
    (Geometry::D1, [13, 1, 1], "tex.1d.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1}];", 1),
    (Geometry::D2, [13, 7, 1], "tex.2d.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1, %r2}];", 2),
    (Geometry::D3, [5, 7, 3], "tex.3d.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1, %r2, %r3, %r3}];", 3),
    (Geometry::A1D, [13, 1, 5], "tex.a1d.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r3, %r1}];", 1),
    (Geometry::A2D, [13, 7, 5], "tex.a2d.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r3, %r1, %r2, %r2}];", 2),
];

#[test]
fn filters_are_the_formulas_of_the_guide() {
    use AddressMode::*;
    let device = device();
    let mut random = Random(1);
    for (geometry, extents, body, dimensions) in GEOMETRIES {
        let texels = Texels::random(extents, &mut random);
        let [width, height, slices] = extents.map(|extent| extent as u32);
        let array = device.array("image", shape(geometry, width, height, slices, F32)).unwrap();
        array.write(&bytes(&texels.values)).unwrap();
        for (case, modes) in
            [[Clamp; 3], [Border; 3], [Wrap; 3], [Mirror; 3], [Wrap, Clamp, Mirror]].iter().enumerate()
        {
            for (normalized, filter) in [
                (false, Filter::Point),
                (false, Filter::Linear),
                (true, Filter::Point),
                (true, Filter::Linear),
            ] {
                let border = 0.25f32;
                let sampler = Sampler {
                    address: *modes,
                    filter,
                    normalized,
                    border: [border.to_bits(); 4],
                    ..Sampler::default()
                };
                let texture = device.texture("texture", array.image().clone(), sampler).unwrap();
                let layered = geometry != Geometry::D3 && slices > 1;
                let inputs: Vec<[u32; 4]> = (0..96)
                    .map(|_| {
                        let mut input: [u32; 4] = std::array::from_fn(|axis| {
                            let extent = if normalized { 1.0 } else { extents[axis.min(2)] as f32 };
                            random.float(-1.7 * extent..2.6 * extent).to_bits()
                        });
                        if layered {
                            // A layer beyond the last one is the last one.
                            input[2] = random.next() % (slices + 2);
                        }
                        input
                    })
                    .collect();
                let outputs = clean(&device, body, texture.handle(), &inputs);
                // Repetition needs normalized coordinates.
                let effective = modes.map(|mode| match mode {
                    Wrap | Mirror if !normalized => Clamp,
                    mode => mode,
                });
                for (input, output) in inputs.iter().zip(&outputs) {
                    let mut x: [f64; 3] = std::array::from_fn(|axis| {
                        let scale = if normalized { extents[axis] as f64 } else { 1.0 };
                        f64::from(f32::from_bits(input[axis])) * scale
                    });
                    for axis in &mut x[dimensions..] {
                        *axis = 0.0;
                    }
                    if layered {
                        x[2] = f64::from(input[2].min(slices - 1));
                    }
                    let linear = filter == Filter::Linear;
                    let expected = texels.sample(x, dimensions, linear, effective, border.into());
                    let value = f64::from(f32::from_bits(output[0]));
                    let near = (value - expected).abs() <= if linear { 2e-7 * 4.0 } else { 0.0 };
                    assert!(
                        near,
                        "{geometry} case {case} {normalized} {filter:?} {x:?}: {value}, not {expected}"
                    );
                    if !effective.contains(&Border) {
                        assert_eq!(output[1..], [0, 0, 1f32.to_bits()], "channels that are not there");
                    }
                }
            }
        }
    }
}

#[test]
fn formats_are_read_as_numbers_or_as_they_are() {
    use Channel::*;
    let device = device();
    let half = |bits: u16| f64::from(warpwright_vm::num::half::f16_to_f32(bits));
    // The bytes of a channel, the integer that it is, and the number from 0 or -1 to 1.
    let cases: [(Channel, &[u8], u32, f64); 11] = [
        (U8, &[0xff], 255, 1.0),
        (U8, &[51], 51, 0.2),
        (S8, &[0x80], -128i32 as u32, -1.0),
        (S8, &[0x81], -127i32 as u32, -1.0),
        (U16, &[0xff, 0x7f], 0x7fff, 32767.0 / 65535.0),
        (S16, &[0x01, 0x80], -32767i32 as u32, -1.0),
        (U32, &[1, 2, 3, 0xff], 0xff03_0201, 0.0),
        (S32, &[1, 2, 3, 0xff], 0xff03_0201, 0.0),
        (F16, &[0x01, 0x00], 0, half(1)),
        (F16, &[0x00, 0xc5], 0, -5.0),
        (F32, &[0xdb, 0x0f, 0x49, 0x40], 0, f64::from(std::f32::consts::PI)),
    ];
    for (channel, data, integer, number) in cases {
        for channels in [1, 2, 4] {
            let format = TexelFormat { channel, channels };
            let array = device.array("texel", shape(Geometry::D1, 1, 1, 1, format)).unwrap();
            array.write(&data.repeat(channels as usize)).unwrap();
            for reads_normalized in [false, true] {
                let sampler = Sampler { reads_normalized, ..Sampler::default() };
                let texture = device.texture("texture", array.image().clone(), sampler).unwrap();
                let body = "tex.1d.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1}];";
                let output = clean(&device, body, texture.handle(), &[[0; 4]])[0];
                let floats = matches!(channel, F16 | F32) || reads_normalized && data.len() < 4;
                let value = if floats { (number as f32).to_bits() } else { integer };
                let one = if floats { 1f32.to_bits() } else { 1 };
                let expected =
                    [(0, value), (1, 0), (2, 0), (3, one)].map(|(index, missing)| match index < channels {
                        true => value,
                        false => missing,
                    });
                assert_eq!(output, expected, "{channels} of {channel:?}, normalized: {reads_normalized}");
            }
        }
    }
    // sRGB: three channels are made linear, the last one is not.
    let format = TexelFormat { channel: U8, channels: 4 };
    let array = device.array("texel", shape(Geometry::D1, 1, 1, 1, format)).unwrap();
    array.write(&[0, 10, 128, 128]).unwrap();
    let sampler = Sampler { reads_normalized: true, srgb: true, ..Sampler::default() };
    let texture = device.texture("texture", array.image().clone(), sampler).unwrap();
    let body = "tex.1d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1}];";
    let output = clean(&device, body, texture.handle(), &[[0; 4]])[0].map(f32::from_bits);
    let linear = ((128.0f64 / 255.0 + 0.055) / 1.055).powf(2.4);
    for (value, expected) in output.iter().zip([0.0, 10.0 / 255.0 / 12.92, linear, 128.0 / 255.0]) {
        assert!((f64::from(*value) - expected).abs() < 1e-7, "{output:?}");
    }
    // Halves as a result.
    let body = "tex.1d.v2.f16x2.f32 {%r5, %r6}, [%rd1, {%r1}];";
    let output = clean(&device, body, texture.handle(), &[[0; 4]])[0];
    assert_eq!(half((output[1] >> 16) as u16), half(warpwright_vm::num::half::f32_to_f16(128.0 / 255.0)));
}

#[test]
fn odd_coordinates_have_a_meaning() {
    let device = device();
    let array = device.array("image", shape(Geometry::D1, 3, 1, 1, F32)).unwrap();
    array.write(&bytes(&[1.0, 2.0, 4.0])).unwrap();
    let body = "tex.1d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1}];";
    for filter in [Filter::Point, Filter::Linear] {
        let sampler = Sampler { filter, ..Sampler::default() };
        let texture = device.texture("texture", array.image().clone(), sampler).unwrap();
        let at = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e38, -3e38];
        let inputs = at.map(|at| [at.to_bits(), 0, 0, 0]);
        let outputs = clean(&device, body, texture.handle(), &inputs);
        let values: Vec<f32> = outputs.iter().map(|output| f32::from_bits(output[0])).collect();
        assert_eq!(values, [1.0, 4.0, 1.0, 4.0, 1.0], "{filter:?}");
    }
    // Indices are of texels, whatever the texture says of coordinates, and there are zeros outside.
    let sampler = Sampler { normalized: true, filter: Filter::Linear, ..Sampler::default() };
    let texture = device.texture("texture", array.image().clone(), sampler).unwrap();
    let body = "tex.1d.v4.f32.s32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1}];";
    let inputs = [-1i32, 0, 2, 3, i32::MIN, i32::MAX].map(|at| [at as u32, 0, 0, 0]);
    let outputs = clean(&device, body, texture.handle(), &inputs);
    let values: Vec<f32> = outputs.iter().map(|output| f32::from_bits(output[0])).collect();
    assert_eq!(values, [0.0, 1.0, 4.0, 0.0, 0.0, 0.0]);
    // Offsets are added to indices of texels.
    let texture = device.texture("texture", array.image().clone(), Sampler::default()).unwrap();
    let body = "tex.1d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1}], {-1};";
    let inputs = [0.5f32, 1.5, 2.5].map(|at| [at.to_bits(), 0, 0, 0]);
    let outputs = clean(&device, body, texture.handle(), &inputs);
    let values: Vec<f32> = outputs.iter().map(|output| f32::from_bits(output[0])).collect();
    assert_eq!(values, [1.0, 1.0, 2.0]);
}

#[test]
fn levels_are_chosen_and_blended() {
    let device = device();
    // Level `n` is `10 * n` everywhere.
    let mut shape = shape(Geometry::D2, 12, 5, 1, F32);
    shape.levels = Some(4);
    let array = device.array("pyramid", shape).unwrap();
    let extents = [(12, 5), (6, 2), (3, 1), (1, 1)];
    for (level, (width, height)) in (0..).zip(extents) {
        let part = array.level(level).unwrap();
        assert_eq!((part.shape().width, part.shape().height), (width, height));
        part.write(&bytes(&vec![10.0 * level as f32; (width * height) as usize])).unwrap();
    }
    assert!(array.level(4).is_none());
    let level = "tex.level.2d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1, %r2}], %r4;";
    // The filter between levels, the bias, the least and the greatest level; levels of detail and what is read.
    type Case<'a> = (Filter, f32, [f32; 2], &'a [(f32, f32)]);
    let all = [0.0, 100.0];
    let cases: [Case<'_>; 5] = [
        (Filter::Point, 0.0, all, &[(-3.0, 0.0), (0.49, 0.0), (0.5, 10.0), (1.4, 10.0), (9.0, 30.0)]),
        (Filter::Linear, 0.0, all, &[(-3.0, 0.0), (0.25, 2.5), (1.5, 15.0), (2.75, 27.5), (9.0, 30.0)]),
        (Filter::Linear, 1.25, all, &[(0.0, 12.5), (-1.25, 0.0), (1.0, 22.5)]),
        (Filter::Linear, 0.0, [0.5, 1.5], &[(0.0, 5.0), (1.25, 12.5), (3.0, 15.0)]),
        (Filter::Point, 0.0, [1.0, 2.0], &[(0.0, 10.0), (3.0, 20.0), (f32::NAN, 10.0)]),
    ];
    for (mip_filter, level_bias, levels, values) in cases {
        let sampler = Sampler { normalized: true, mip_filter, level_bias, levels, ..Sampler::default() };
        let texture = device.texture("texture", array.image().clone(), sampler).unwrap();
        let inputs: Vec<_> = values.iter().map(|(lod, _)| [0, 0, 0, lod.to_bits()]).collect();
        let outputs = clean(&device, level, texture.handle(), &inputs);
        for (&(lod, expected), output) in values.iter().zip(outputs) {
            assert_eq!(
                f32::from_bits(output[0]),
                expected,
                "{mip_filter:?} {level_bias} {levels:?} at {lod}"
            );
        }
    }
    // A number of a level, with indices of texels, is of that level whatever the texture says.
    let sampler = Sampler { normalized: true, level_bias: 1.0, levels: [2.0, 2.0], ..Sampler::default() };
    let texture = device.texture("texture", array.image().clone(), sampler).unwrap();
    let body = "tex.level.2d.v4.f32.s32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1, %r2}], %r4;";
    let inputs = [-1i32, 0, 1, 3, 4].map(|level| [0, 0, 0, level as u32]);
    let outputs = clean(&device, body, texture.handle(), &inputs);
    let values: Vec<f32> = outputs.iter().map(|output| f32::from_bits(output[0])).collect();
    assert_eq!(values, [0.0, 0.0, 10.0, 30.0, 0.0]);
    // Gradients: twelve texels a unit in one direction, and five in the other; the longer one counts.
    let sampler = Sampler { normalized: true, mip_filter: Filter::Linear, ..Sampler::default() };
    let texture = device.texture("texture", array.image().clone(), sampler).unwrap();
    let gradient = "tex.grad.2d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {0f00000000, 0f00000000}], {%r1, %r2}, {%r3, %r4};";
    let cases = [
        ([2.0 / 12.0, 0.0, 0.0, 0.0], 1.0),
        ([0.0, 0.0, 0.0, 4.0 / 5.0], 2.0),
        ([0.25, 0.8, 0.0, 0.2], 2.3219),
        ([0.0; 4], 0.0),
    ];
    let inputs = cases.map(|(gradients, _)| gradients.map(f32::to_bits));
    for ((gradients, expected), output) in
        cases.into_iter().zip(clean(&device, gradient, texture.handle(), &inputs))
    {
        let value = f32::from_bits(output[0]) / 10.0;
        assert!((value - expected).abs() <= 1.0 / 256.0, "{gradients:?}: level {value}, not {expected}");
    }
    // Without a level it is the first one.
    let body = "tex.2d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1, %r2}]; txq.num_mipmap_levels.b32 %r6, [%rd1]; \
                txq.level.width.b32 %r7, [%rd1], 2;";
    assert_eq!(clean(&device, body, texture.handle(), &[[0; 4]])[0][..3], [0, 4, 3]);
}

#[test]
fn directions_reach_the_faces_of_cubes() {
    let device = device();
    const SIDE: usize = 3;
    // Face, row and column of a texel, as a direction: the guide's table the other way round.
    let direction = |face: usize, row: usize, column: usize| {
        let on_face = |index: usize| (2.0 * index as f32 + 1.0) / SIDE as f32 - 1.0;
        let (s, t) = (on_face(column), on_face(row));
        let [x, y, z] = match face {
            0 => [1.0, -t, -s],
            1 => [-1.0, -t, s],
            2 => [s, 1.0, t],
            3 => [s, -1.0, -t],
            4 => [s, -t, 1.0],
            _ => [-s, -t, -1.0],
        };
        // Any length.
        [x * 7.0, y * 7.0, z * 7.0]
    };
    for (geometry, cubes, body) in [
        (Geometry::Cube, 1, "tex.cube.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1, %r2, %r3, %r3}];"),
        (Geometry::ACube, 2, "tex.acube.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r4, %r1, %r2, %r3}];"),
    ] {
        let format = TexelFormat { channel: Channel::U32, channels: 1 };
        let array = device.array("cube", shape(geometry, 3, 3, 6 * cubes, format)).unwrap();
        let count = (SIDE * SIDE * 6) as u32 * cubes;
        let texels: Vec<u8> = (0..count).flat_map(u32::to_le_bytes).collect();
        array.write(&texels).unwrap();
        let sampler = Sampler { normalized: true, ..Sampler::default() };
        let texture = device.texture("texture", array.image().clone(), sampler).unwrap();
        let inputs: Vec<_> = (0..count as usize)
            .map(|texel| {
                let (cube, face) = (texel / (SIDE * SIDE * 6), texel / (SIDE * SIDE) % 6);
                let [x, y, z] = direction(face, texel / SIDE % SIDE, texel % SIDE).map(f32::to_bits);
                [x, y, z, cube as u32]
            })
            .collect();
        let outputs = clean(&device, body, texture.handle(), &inputs);
        assert!(outputs.iter().map(|output| output[0]).eq(0..count), "{geometry}: {outputs:?}");
    }
}

#[test]
fn steps_of_a_direction_are_steps_on_the_face() {
    let device = device();
    let mut shape = shape(Geometry::Cube, 8, 8, 6, F32);
    shape.levels = Some(4);
    let array = device.array("cube", shape).unwrap();
    for level in 0..4 {
        let part = array.level(level).unwrap();
        let texels = 6 * (8 >> level) * (8 >> level);
        part.write(&bytes(&vec![level as f32; texels])).unwrap();
    }
    let sampler = Sampler { normalized: true, mip_filter: Filter::Linear, ..Sampler::default() };
    let texture = device.texture("texture", array.image().clone(), sampler).unwrap();
    // The direction, a step of it in one axis, and the level whose texels are as large as that on a face of 8 texels.
    let cases: [([f32; 3], usize, f32, f32); 6] = [
        ([1.0, 0.0, 0.0], 2, 1.0, 2.0),
        ([1.0, 0.0, 0.0], 1, -0.5, 1.0),
        ([1.0, 0.0, 0.0], 0, 1.0, 0.0),
        ([2.0, 1.0, 0.0], 0, 2.0, 1.0),
        ([0.0, -4.0, 2.0], 1, 4.0, 1.0),
        ([0.0, 1.0, -2.0], 0, 2.0, 2.0),
    ];
    for ([x, y, z], axis, step, expected) in cases {
        let float = |value: f32| format!("0f{:08x}", value.to_bits());
        let steps: Vec<String> = (0..4).map(|at| float(if at == axis { step } else { 0.0 })).collect();
        let zero = float(0.0);
        let body = format!(
            "tex.grad.cube.v4.f32.f32 {{%r5, %r6, %r7, %r8}}, [%rd1, {{%r1, %r2, %r3, %r3}}], \
             {{{}}}, {{{zero}, {zero}, {zero}, {zero}}};",
            steps.join(", ")
        );
        let output =
            clean(&device, &body, texture.handle(), &[[x.to_bits(), y.to_bits(), z.to_bits(), 0]])[0];
        assert_eq!(f32::from_bits(output[0]), expected, "{x} {y} {z}, {step} in axis {axis}");
    }
}

#[test]
fn gathers_take_four_texels_against_the_clock() {
    let device = device();
    let format = TexelFormat { channel: Channel::U32, channels: 2 };
    let array = device.array("image", shape(Geometry::D2, 5, 3, 1, format)).unwrap();
    // The second component is the number of the texel.
    let texels: Vec<u8> = (0..15u32).flat_map(|texel| [100u32, texel]).flat_map(u32::to_le_bytes).collect();
    array.write(&texels).unwrap();
    let texture = device.texture("texture", array.image().clone(), Sampler::default()).unwrap();
    let body = "tld4.g.2d.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1, %r2}];";
    let inputs =
        [[2.0, 1.5], [0.1, 0.2], [4.9, 2.8]].map(|[x, y]: [f32; 2]| [x.to_bits(), y.to_bits(), 0, 0]);
    let outputs = clean(&device, body, texture.handle(), &inputs);
    assert_eq!(outputs, [[11, 12, 7, 6], [0, 0, 0, 0], [14, 14, 14, 14]]);
}

#[test]
fn linear_memory_is_read_as_a_texture() {
    let device = device();
    let buffer = device.clone_htod(&(0..40).map(|texel| texel as f32).collect::<Vec<_>>()).unwrap();
    // Three rows of five texels, eight apart; and a line.
    let sampler = Sampler { filter: Filter::Linear, ..Sampler::default() };
    let image = Image::pitched(buffer.address(), (5, 3), 32, F32);
    let pitched = device.texture("pitched", image, sampler).unwrap();
    let body = "tex.2d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1, %r2}];";
    let inputs = [[2.0f32, 1.0], [9.0, 9.0]].map(|[x, y]| [x.to_bits(), y.to_bits(), 0, 0]);
    let outputs = clean(&device, body, pitched.handle(), &inputs);
    assert_eq!(outputs.iter().map(|output| f32::from_bits(output[0])).collect::<Vec<_>>(), [5.5, 20.0]);
    // Variables of the module are bound to a texture and to a surface.
    let array = device.array("image", shape(Geometry::D1, 64, 1, 1, F32)).unwrap();
    let both = "tex.1d.v4.f32.s32 {%r5, %r6, %r7, %r8}, [bound, {%r1}]; shl.b32 %r11, %r9, 2;
                sust.b.1d.b32.trap [drawn, {%r11}], %r9;";
    let module = load(&device, &text(both));
    let variable = |name| module.variable(name).unwrap().0;
    let line = Image::linear(buffer.address(), 40, F32);
    device.bind_texture(variable("bound"), line, Sampler::default()).unwrap();
    device.bind_surface(variable("drawn"), array.image().clone()).unwrap();
    let (from, to) = (device.clone_htod(&[33u32; 256]).unwrap(), device.alloc_zeros::<f32>(256).unwrap());
    let args = [Arg::Pointer(0), Arg::buffer(&from), Arg::buffer(&to)];
    let config = LaunchConfig::new(1, 64);
    let report = device.launch(&module, "k", &config, &args, &Options::checked()).unwrap().wait();
    assert!(report.is_clean(), "{report}");
    assert_eq!(to.read()[0], 33.0);
    assert_eq!(array.read().unwrap(), (0..64u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>());
    assert!(device.bind_surface(buffer.address(), array.image().clone()).is_err(), "it is no variable");
    assert_eq!(
        run(&device, both, 0, &inputs).1.findings[0].kind.name(),
        "bad-handle",
        "another module's are not"
    );
    drop(buffer);
    let (_, report) = run(&device, body, pitched.handle(), &inputs);
    assert_eq!(report.findings[0].kind.name(), "use-after-free");
}
