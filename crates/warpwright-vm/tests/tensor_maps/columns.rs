//! Columns of convolutions: where their elements come from, by the convolution itself.

use super::*;

/// A convolution of images, which says what columns are: the output has one pixel for each place of the filter.
#[derive(Debug)]
struct Convolution {
    /// Along the width, the height and the depth: pixels of an image, places of the filter, its step, pixels of padding
    /// in front, and how far from the corner of the filter its element is.
    sizes: Vec<i64>,
    places: Vec<i64>,
    steps: Vec<i64>,
    padding: Vec<i64>,
    element: Vec<i64>,
}

impl Convolution {
    /// Where the filter's element meets the images, for a place of the output: along the width, height, depth, and the
    /// number of the image.
    fn input(&self, place: i64) -> Vec<i64> {
        let mut left = place;
        let mut input = Vec::new();
        for dim in 0..self.sizes.len() {
            let at = left % self.places[dim];
            left /= self.places[dim];
            input.push(at * self.steps[dim] - self.padding[dim] + self.element[dim]);
        }
        input.push(left);
        input
    }
}

/// Where the channels of pixels come from, in the order of the tile. The coordinates of a pixel are those behind the
/// channels, or, in slices, all but that of the slice.
fn columns(map: &TensorMap, at: &[i64], pixels: &[Vec<i64>]) -> Vec<Option<usize>> {
    let rank = map.dims.len();
    let is_sliced = map.interleave != TensorInterleave::None;
    let channels = if is_sliced { 1 } else { i64::from(map.tile[0]) };
    let mut all = Vec::new();
    for pixel in pixels {
        for channel in 0..channels {
            let mut place = at.to_vec();
            match is_sliced {
                true => {
                    place[..rank - 2].copy_from_slice(&pixel[..rank - 2]);
                    place[rank - 1] = pixel[rank - 2];
                }
                false => {
                    place[0] += channel;
                    place[1..].copy_from_slice(pixel);
                }
            }
            let inside = place.iter().zip(&map.dims).all(|(at, size)| (0..*size as i64).contains(at));
            all.push(inside.then(|| {
                let outer =
                    place[1..].iter().zip(&map.strides).map(|(at, stride)| *at as usize * *stride as usize);
                place[0] as usize * unit_bytes(map) + outer.sum::<usize>()
            }));
        }
    }
    all
}

/// Columns of a convolution, the coordinates and offsets of a copy of them, and where their elements come from.
pub(crate) fn some_columns(numbers: &mut Numbers) -> (TensorMap, Vec<i64>, Vec<i64>, Vec<Option<usize>>) {
    use TensorInterleave::{B16, B32, None};
    let mode = numbers.of(&[Im2colMode::Spatial, Im2colMode::Spatial, Im2colMode::Wide, Im2colMode::Wide128]);
    let is_wide = mode != Im2colMode::Spatial;
    let rank = 3 + numbers.below(3) as usize;
    let interleave = if is_wide { None } else { numbers.of(&[None, None, B16, B32]) };
    let swizzles = match mode {
        Im2colMode::Spatial => &SWIZZLES[..],
        Im2colMode::Wide => &SWIZZLES[2..6],
        Im2colMode::Wide128 => &SWIZZLES[4..6],
    };
    let (mut map, _) = some_row(numbers, swizzles, interleave);
    let is_sliced = interleave != None;
    let mut sizes = [0; 4].map(|_| 1 + numbers.below(6));
    // In slices dimension 0 is the width, and the last but one counts slices.
    if is_sliced {
        map.dims[0] = sizes[0];
        map.tile[0] = 1 + numbers.below(256) as u32;
        sizes.rotate_left(1);
    }
    with_dims(numbers, &mut map, &sizes[..rank - 1]);
    let first = usize::from(!is_sliced);
    let image = if is_wide { 1 } else { rank - 2 };
    let is_plain = numbers.below(3) == 0;
    let mut below = |count: u64| if is_plain { 0 } else { numbers.below(count) as i64 };
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    let mut conv = Convolution {
        sizes: map.dims[first..first + image].iter().map(|&size| size as i64).collect(),
        places: Vec::new(),
        steps: Vec::new(),
        padding: Vec::new(),
        element: Vec::new(),
    };
    for dim in 0..image {
        let (size, step, padding) = (conv.sizes[dim], 1 + below(3), below(3));
        // A filter of this size, at distances of one another.
        let filter = 1 + below(3);
        let distance = 1 + below(2);
        let span = (filter - 1) * distance + 1;
        let places = ((size + 2 * padding - span).max(0)) / step + 1;
        conv.places.push(places);
        conv.steps.push(step);
        conv.padding.push(padding);
        conv.element.push(below(filter as u64) * distance);
        lower.push(-padding as i32);
        upper.push(((places - 1) * step + 1 - size - padding) as i32);
        map.steps[first + dim] = step as u32;
    }
    let images = map.dims[rank - 1] as i64;
    let start = numbers.below((conv.places.iter().product::<i64>() * (images + 1)) as u64) as i64;
    let pixels = 1 + numbers.below(60) as i64;
    let halo = if is_wide { numbers.below(4) as i64 } else { 0 };
    map.tile.truncate(1);
    map.tile.push(pixels as u32);
    map.im2col = Some(Im2col { mode, lower, upper });
    let mut at = vec![0; rank];
    let offsets = if is_wide { vec![halo, conv.element[0]] } else { conv.element.clone() };
    // The corner of the filter.
    let corner: Vec<i64> =
        conv.input(start).iter().zip(conv.element.iter().chain([&0])).map(|(at, by)| at - by).collect();
    at[first..first + image].copy_from_slice(&corner[..image]);
    at[rank - 1] = corner[image];
    match is_sliced {
        true => at[rank - 2] = numbers.below(map.dims[rank - 2]) as i64,
        false if is_plain => at[0] = numbers.below(map.dims[0]) as i64,
        false => at[0] = numbers.below(map.dims[0] + 4) as i64 - 2,
    }
    if is_wide {
        // The other dimensions of an image stay.
        for (at, size) in at[2..rank - 1].iter_mut().zip(&map.dims[2..]) {
            *at = numbers.below(size + 2) as i64 - 1;
        }
    }
    // The first pixel of a row may be before the box.
    let early = is_wide && start % conv.places[0] == 0 && numbers.below(2) == 0;
    if early {
        at[1] -= conv.steps[0];
    }
    let pixel = |index: i64| {
        let input = conv.input(start + (index - i64::from(early)).max(0));
        let mut pixel = at[first..].to_vec();
        if is_sliced {
            pixel = vec![0; rank - 1];
        }
        pixel[..image].copy_from_slice(&input[..image]);
        pixel[rank - 2] = input[image];
        if early && index == 0 {
            pixel[0] -= conv.steps[0];
        }
        pixel
    };
    let order: Vec<i64> = match mode {
        Im2colMode::Wide128 => {
            (0..128).chain((0..halo).flat_map(|halo| (1..5).map(move |part| 32 * part + halo))).collect()
        }
        _ => (0..pixels + halo).collect(),
    };
    let pixels: Vec<Vec<i64>> = order.into_iter().map(pixel).collect();
    let sources = columns(&map, &at, &pixels);
    (map, at, offsets, sources)
}

/// What columns may not be asked for, is a trap.
#[test]
fn columns_that_are_not_allowed_are_named() {
    let modules = Modules::new();
    let memory = modules.device.alloc_zeros::<u8>(1 << 16).unwrap();
    let map = |mode, lower: &[i32], upper: &[i32]| {
        let im2col = Im2col { mode, lower: lower.to_vec(), upper: upper.to_vec() };
        let mut map =
            TensorMap::columns(memory.address(), TensorElement::U32, &[16, 8, 8, 4], [16, 4], im2col);
        map.swizzle = if mode == Im2colMode::Spatial { TensorSwizzle::None } else { TensorSwizzle::B64 };
        map
    };
    use Im2colMode::{Spatial, Wide, Wide128};
    let padded = || map(Spatial, &[-1, -1], &[-1, -1]);
    let within = || map(Spatial, &[0, 0], &[-2, -2]);
    let wide = || map(Wide, &[-1], &[1]);
    let sliced = TensorMap {
        interleave: TensorInterleave::B16,
        swizzle: TensorSwizzle::B32,
        strides: vec![128, 1024, 2048],
        dims: vec![8, 8, 2, 4],
        ..padded()
    };
    let tile = TensorMap { im2col: None, tile: vec![16, 1, 1, 1], ..padded() };
    let ok = None;
    let bad = Some(TrapKind::BadOperand);
    let cases = [
        (padded(), Spatial, "load", [0, -1, -1, 0], [2, 2], ok),
        (padded(), Spatial, "load", [0, -1, -2, 0], [0, 0], bad),
        (padded(), Spatial, "load", [0, 7, 0, 0], [0, 0], bad),
        (padded(), Spatial, "load", [0, 0, 0, 9], [255, 0], ok),
        (padded(), Spatial, "load", [0, 0, 0, 0], [256, 0], bad),
        (padded(), Wide, "load", [0, 0, 0, 0], [0, 0], bad),
        (padded(), Spatial, "store", [0, 0, 0, 0], [0, 0], bad),
        (within(), Spatial, "store", [0, 5, 5, 0], [0, 0], ok),
        (within(), Spatial, "store", [0, 6, 5, 0], [0, 0], bad),
        (within(), Spatial, "store", [-1, 5, 5, 0], [0, 0], bad),
        (within(), Spatial, "reduce", [0, 5, 5, 0], [0, 0], ok),
        (wide(), Wide, "load", [0, -2, 5, 0], [0, 31], ok),
        (wide(), Wide, "load", [0, 8, 5, 0], [0, 31], ok),
        (wide(), Wide, "load", [0, 9, 5, 0], [0, 0], bad),
        (wide(), Wide, "load", [0, 0, 5, 0], [512, 0], bad),
        (wide(), Wide, "load", [0, 0, 5, 0], [0, 32], bad),
        (wide(), Wide128, "load", [0, 0, 5, 0], [0, 0], bad),
        (map(Wide128, &[0], &[0]), Wide128, "load", [0, 0, 5, 0], [32, 0], bad),
        (sliced, Spatial, "load", [0, 0, 0, 0], [0, 0], Some(TrapKind::Unsupported)),
        (tile, Spatial, "load", [0, 0, 0, 0], [0, 0], bad),
    ];
    for (case, (map, mode, kernel, at, offsets, trap)) in cases.into_iter().enumerate() {
        let [map, at] = arguments(&map, &at, &offsets);
        let args = [map, at, Arg::buffer(&memory), Arg::U32(0), Arg::U32(256)];
        let module = modules.of(How::Columns(mode), 4);
        let launch = modules.device.launch(module, kernel, &LaunchConfig::new(1, 1), &args, &checked());
        assert_eq!(launch.unwrap().wait().trap.map(|trap| trap.kind), trap, "case {case}");
    }
}
