//! Which texels a coordinate reads, and their weights: the formulas of the CUDA programming guide ("Texture Fetching").
//!
//! A coordinate `x` is scaled by the extent `N` if it is normalized. Point filtering takes the texel `⌊x⌋`. Linear
//! filtering takes `i = ⌊x − 0.5⌋` and `i + 1`, with the weights `1 − α` and `α` in each dimension; `α` is the fraction of
//! `x − 0.5` in fixed point with 8 bits behind the point, here the nearest such number. Address modes apply to indices of
//! texels. Everything is exact but `α`: on hardware the scaled coordinate is rounded too. NaN counts as 0.

use crate::memory::{AddressMode, Filter, Image, Level, Sampler};
use warpwright_ptx::op::texture::Geometry;

/// What is read at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Source {
    /// A texel, at that many bytes from the beginning of the image.
    Texel(u64),
    /// The border colour.
    Border,
    /// Nothing: zeros.
    #[default]
    Zero,
}

/// What is read, and its weight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tap {
    pub(super) source: Source,
    pub(super) weight: f64,
}

/// Two levels of a volume with linear filtering.
pub(super) const MAX_TAPS: usize = 16;

/// What a lane reads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Footprint {
    taps: [Tap; MAX_TAPS],
    count: usize,
}

impl Footprint {
    fn push(&mut self, source: Source, weight: f64) {
        if self.count < MAX_TAPS {
            self.taps[self.count] = Tap { source, weight };
            self.count += 1;
        }
    }

    /// What is read, in order.
    pub(super) fn taps(&self) -> &[Tap] {
        &self.taps[..self.count]
    }

    /// Whether it is one place alone, whose value needs no arithmetic.
    pub(super) fn is_single(&self) -> bool {
        self.count == 1
    }
}

/// The coordinates of a lane.
#[derive(Clone, Copy, Debug)]
pub(super) enum Position {
    /// Indices of a texel: nothing is filtered, and outside there are zeros.
    Index([i32; 3]),
    /// A place between texels.
    Point([f32; 3]),
}

/// Where a texture is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) position: Position,
    /// Added to the indices of texels.
    pub(super) offset: [i32; 3],
    /// The layer.
    pub(super) layer: u32,
}

/// The number of coordinates besides the layer.
pub(super) const fn dimensions(geometry: Geometry) -> usize {
    match geometry {
        Geometry::D1 | Geometry::A1D => 1,
        Geometry::D3 => 3,
        _ => 2,
    }
}

/// Steps of a weight.
const STEPS: f64 = 256.0;

/// A number in fixed point: what is in front of the point, and the fraction behind it.
fn fixed(x: f64) -> (i64, f64) {
    let steps = (x * STEPS + 0.5).floor() as i64;
    (steps >> 8, (steps & 0xff) as f64 / STEPS)
}

/// The texel that an index means in a dimension.
fn index(mode: AddressMode, at: i64, extent: u32) -> Option<u32> {
    let n = i64::from(extent);
    let inside = match mode {
        AddressMode::Clamp => at.clamp(0, n - 1),
        AddressMode::Border => at,
        AddressMode::Wrap => at.rem_euclid(n),
        AddressMode::Mirror => {
            let at = at.rem_euclid(2 * n);
            if at < n { at } else { 2 * n - 1 - at }
        }
    };
    u32::try_from(inside).ok().filter(|&inside| inside < extent)
}

/// The extents of a level in its dimensions.
pub(super) fn extents(level: &Level) -> [u32; 3] {
    [level.width, level.height, level.slices]
}

struct Reader<'a> {
    image: &'a Image,
    sampler: &'a Sampler,
    place: Place,
}

impl Reader<'_> {
    fn mode(&self, dimension: usize) -> AddressMode {
        let is_cube = matches!(self.image.geometry, Geometry::Cube | Geometry::ACube);
        match self.sampler.address[dimension] {
            // Faces end at the edges of the cube.
            _ if is_cube => AddressMode::Clamp,
            AddressMode::Wrap | AddressMode::Mirror if !self.sampler.normalized => AddressMode::Clamp,
            mode => mode,
        }
    }

    /// What is at these indices of a level.
    fn source(&self, level: &Level, at: [i64; 3]) -> Source {
        let geometry = self.image.geometry;
        let mut texel = [0; 3];
        for dimension in 0..dimensions(geometry) {
            let at = at[dimension].saturating_add(self.place.offset[dimension].into());
            let extent = extents(level)[dimension];
            let (mode, outside) = match self.place.position {
                Position::Index(_) => (AddressMode::Border, Source::Zero),
                Position::Point(_) => (self.mode(dimension), Source::Border),
            };
            match index(mode, at, extent) {
                Some(index) => texel[dimension] = index,
                None => return outside,
            }
        }
        if geometry != Geometry::D3 {
            texel[2] = self.place.layer.min(level.slices - 1);
        }
        Source::Texel(level.texel(texel, self.image.format.bytes()))
    }

    /// A coordinate in texels.
    fn scaled(&self, level: &Level, at: f32, dimension: usize) -> f64 {
        let scale = if self.sampler.normalized { extents(level)[dimension].into() } else { 1.0 };
        f64::from(at) * scale
    }

    /// The indices of the first texel of a linear filter, and the fractions.
    fn corner(&self, level: &Level, at: [f32; 3]) -> [(i64, f64); 3] {
        std::array::from_fn(|dimension| match dimension < dimensions(self.image.geometry) {
            true => fixed(self.scaled(level, at[dimension], dimension) - 0.5),
            false => (0, 0.0),
        })
    }

    fn level(&self, level: &Level, weight: f64, out: &mut Footprint) {
        let point = match self.place.position {
            Position::Index(at) => return out.push(self.source(level, at.map(i64::from)), weight),
            Position::Point(point) => point,
        };
        if self.sampler.filter == Filter::Point {
            let at = std::array::from_fn(|dimension| {
                self.scaled(level, point[dimension], dimension).floor() as i64
            });
            return out.push(self.source(level, at), weight);
        }
        let corner = self.corner(level, point);
        for step in 0..1 << dimensions(self.image.geometry) {
            let mut weight = weight;
            let at = std::array::from_fn(|dimension| {
                let (first, fraction) = corner[dimension];
                let next = step >> dimension & 1;
                weight *= if next == 1 { fraction } else { 1.0 - fraction };
                first.saturating_add(next)
            });
            // What has no weight is not read.
            if weight > 0.0 {
                out.push(self.source(level, at), weight);
            }
        }
    }
}

/// What is read at a place, at a level of detail if one is given, and otherwise from the first level.
pub(super) fn footprint(image: &Image, sampler: &Sampler, place: Place, detail: Option<f32>) -> Footprint {
    let reader = Reader { image, sampler, place };
    let mut out = Footprint::default();
    if let (Position::Index(_), Some(number)) = (place.position, detail) {
        // A level is named as a texel is.
        match image.levels.get(number as usize).filter(|_| number >= 0.0) {
            Some(level) => reader.level(level, 1.0, &mut out),
            None => out.push(Source::Zero, 1.0),
        }
        return out;
    }
    let last = image.levels.len() as i64 - 1;
    let Some(detail) = detail.filter(|_| last > 0) else {
        reader.level(&image.levels[0], 1.0, &mut out);
        return out;
    };
    let [least, greatest] = sampler.levels;
    let detail = f64::from((detail + sampler.level_bias).max(least).min(greatest)).clamp(0.0, last as f64);
    match sampler.mip_filter {
        Filter::Point => {
            let level = ((detail + 0.5).floor() as i64).min(last);
            reader.level(&image.levels[level as usize], 1.0, &mut out);
        }
        Filter::Linear => {
            let (level, fraction) = fixed(detail);
            reader.level(&image.levels[level as usize], 1.0 - fraction, &mut out);
            if fraction > 0.0 {
                reader.level(&image.levels[level as usize + 1], fraction, &mut out);
            }
        }
    }
    out
}

/// The four texels of a linear filter in the order of `tld4`.
pub(super) fn gathered(image: &Image, sampler: &Sampler, place: Place) -> Footprint {
    let reader = Reader { image, sampler, place };
    let mut out = Footprint::default();
    let Position::Point(point) = place.position else { return out };
    let level = &image.levels[0];
    let [(x, _), (y, _), _] = reader.corner(level, point);
    for (right, down) in [(0, 1), (1, 1), (1, 0), (0, 0)] {
        let at = [x.saturating_add(right), y.saturating_add(down), 0];
        out.push(reader.source(level, at), 1.0);
    }
    out
}

/// The level of detail of a gradient: how many texels the longer of the two derivatives steps over, as a power of two.
pub(super) fn detail(image: &Image, sampler: &Sampler, gradients: [[f32; 3]; 2]) -> f32 {
    let level = &image.levels[0];
    let length = |gradient: [f32; 3]| {
        let steps = (0..dimensions(image.geometry)).map(|dimension| {
            let scale = if sampler.normalized { extents(level)[dimension].into() } else { 1.0 };
            f64::from(gradient[dimension]) * scale
        });
        steps.map(|step| step * step).sum::<f64>().sqrt()
    };
    let [a, b] = gradients.map(length);
    a.max(b).log2() as f32
}

/// The face of a cube in a direction.
pub(super) fn face([x, y, z]: [f32; 3]) -> u32 {
    let [ax, ay, az] = [x.abs(), y.abs(), z.abs()];
    let (first, along) = if ax >= ay && ax >= az {
        (0, x)
    } else if ay >= az {
        (2, y)
    } else {
        (4, z)
    };
    first + u32::from(along < 0.0)
}

/// A vector by its parts along a face, and along the axis that the face is on.
fn on_face(face: u32, direction: [f32; 3]) -> [f64; 3] {
    let [x, y, z] = direction.map(f64::from);
    match face {
        0 => [-z, -y, x],
        1 => [z, -y, -x],
        2 => [x, z, y],
        3 => [x, -z, -y],
        4 => [x, -y, z],
        _ => [-x, -y, -z],
    }
}

/// Where a direction meets a face: coordinates from 0 to 1.
pub(super) fn face_coordinates(face: u32, direction: [f32; 3]) -> [f32; 2] {
    let [s, t, m] = on_face(face, direction);
    [s, t].map(|c| ((c / m + 1.0) / 2.0) as f32)
}

/// How far that place moves for a step of the direction: the derivative.
pub(super) fn face_gradient(face: u32, direction: [f32; 3], step: [f32; 3]) -> [f32; 2] {
    let [s, t, m] = on_face(face, direction);
    let [ds, dt, dm] = on_face(face, step);
    [(s, ds), (t, dt)].map(|(c, dc)| ((dc * m - c * dm) / (m * m) / 2.0) as f32)
}
