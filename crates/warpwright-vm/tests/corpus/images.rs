//! Textures and surfaces, and traps where a source uses one texture for several geometries.

use crate::case::{Case, Expect, File, Source, launch, rule, source, within};
use crate::data::{Format, Rng};
use warpwright_ptx::op::texture::Geometry;
use warpwright_vm::{ArrayShape, Channel, Filter, Sampler, TexelFormat};

pub(crate) const SOURCES: &[Source] = &[
    source("textures.nvcc", textures),
    source("texture_queries.nvcc", texture_queries),
    source("surfaces.nvcc", surfaces),
];

const F32: TexelFormat = TexelFormat { channel: Channel::F32, channels: 1 };

fn image(geometry: Geometry, width: u32, height: u32, format: TexelFormat) -> ArrayShape {
    ArrayShape { geometry, width, height, slices: 1, levels: None, format }
}

fn textures(_: &File) -> Vec<Case> {
    let out = [0u8; 4096];
    let buffers = |case: Case| case.inout(&out, Expect::Same).inout(&out, Expect::Same);
    // Of each kernel, one texture has another geometry than some of its instructions.
    let point = Sampler { normalized: true, ..Sampler::default() };
    let square = image(Geometry::D2, 5, 3, TexelFormat { channel: Channel::U8, channels: 4 });
    let pixels = Rng::new(1705).bytes(60);
    let line = image(Geometry::D1, 16, 1, F32);
    let texture = |entry, block: (u32, u32), shape, n: usize| {
        let texels = vec![0u8; (shape_bytes(&shape)) as usize];
        (0..n).fold(launch(entry, 1, block), |case, _| case.texture(shape, &texels, point.clone()))
    };
    // Half the size in x, and the same in y: the mean of two pixels.
    let sampler = Sampler { filter: Filter::Linear, reads_normalized: true, ..Sampler::default() };
    let (w, h) = (2, 3);
    let resized: Vec<u8> = (0..h)
        .flat_map(|y| (0..w).flat_map(move |x| (0..4).map(move |channel| (x, y, channel))))
        .map(|(x, y, channel)| {
            let at = |x: usize| f64::from(pixels[(y * 5 + x) * 4 + channel]) / 255.0;
            (((at(2 * x) + at(2 * x + 1)) / 2.0) as f32 * 255.0) as u8
        })
        .collect();
    let near = rule(resized.len(), move |got: &[u8]| {
        let close = got.iter().zip(&resized).all(|(got, want)| got.abs_diff(*want) <= 1);
        if close { Ok(()) } else { Err(format!("{got:?}, expected {resized:?}")) }
    });
    let resize = launch("resize", 1, (4, 4))
        .texture(square, &pixels, sampler)
        .inout(&[0u8; 24], near)
        .scalar(w as i32)
        .scalar(h as i32)
        .scalar(2f32)
        .scalar(1f32);
    vec![
        buffers(texture("tex_1d", (16, 1), line, 2)).scalar(16i32).traps(&["geometry"]),
        buffers(texture("tex_2d", (4, 4), square, 2)).scalar(4i32).scalar(4i32).traps(&["geometry"]),
        texture("tex_3d", (4, 4), square, 3).inout(&out, Expect::Same).scalar(4i32).traps(&["geometry"]),
        resize,
    ]
}

fn shape_bytes(shape: &ArrayShape) -> u32 {
    shape.width * shape.height * shape.slices * shape.format.bytes()
}

fn surfaces(_: &File) -> Vec<Case> {
    let (w, h) = (4usize, 3usize);
    let shape = image(Geometry::D2, 4, 3, F32);
    let x = Rng::new(1706).f32s(w * h, -1.0, 1.0);
    let blurred = (0..w * h).map(|at| {
        let near = |at: usize, step: usize, n: usize| (at + step).saturating_sub(1).min(n - 1);
        let (column, row) = (at % w, at / w);
        let all = (0..9).map(|of| f64::from(x[near(row, of / 3, h) * w + near(column, of % 3, w)]));
        (all.sum::<f64>() / 9.0, 9.0 * 2f64.powi(-24))
    });
    let blurred = within(Format::F32, blurred);
    let blur =
        launch("surf_blur", 1, (4, 4)).surface(shape, &x, Expect::Same).surface(shape, &[0f32; 12], blurred);
    let types = launch("surf_types", 1, 4).surface(shape, &x, Expect::Same).surface(shape, &x, Expect::Same);
    vec![blur.scalar(w as i32).scalar(h as i32), types.scalar(4i32).traps(&["geometry"])]
}

fn texture_queries(_: &File) -> Vec<Case> {
    let shape = image(Geometry::D2, 4, 3, F32);
    let queries = launch("texture_queries", 1, 8).texture(shape, &[0f32; 12], Sampler::default());
    let queries = queries.surface(shape, &[0f32; 12], Expect::Same);
    vec![queries.inout(&[0u32; 64], Expect::Same).traps(&["txq.channel_order"])]
}
