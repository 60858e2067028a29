//! Images: how the texels of arrays, and of linear memory behind textures, lie in memory.
//!
//! ```text
//! level 0: slice 0: row 0: texel 0 | texel 1 | …
//!                   row 1 …
//!          slice 1 …
//! level 1 …
//! ```
//!
//! A slice is a layer, a face of a cube, or a plane of a volume. Rows of arrays begin at multiples of the widest access.
//! No program can see that: kernels reach arrays by coordinates alone.

use warpwright_ptx::op::texture::Geometry;

/// The number format of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the format of its name")]
pub enum Channel {
    U8,
    U16,
    U32,
    S8,
    S16,
    S32,
    F16,
    F32,
}

impl Channel {
    /// Its size in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Channel::U8 | Channel::S8 => 1,
            Channel::U16 | Channel::S16 | Channel::F16 => 2,
            Channel::U32 | Channel::S32 | Channel::F32 => 4,
        }
    }

    /// Whether it is an integer that can be read as a number from 0 or −1 to 1.
    pub const fn is_normalizable(self) -> bool {
        matches!(self, Channel::U8 | Channel::U16 | Channel::S8 | Channel::S16)
    }

    /// Whether it is a floating-point number.
    pub const fn is_float(self) -> bool {
        matches!(self, Channel::F16 | Channel::F32)
    }
}

/// The format of a texel: 1, 2 or 4 channels of one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TexelFormat {
    /// The format of each channel.
    pub channel: Channel,
    /// The number of channels.
    pub channels: u32,
}

impl TexelFormat {
    /// Bytes of a texel: 1, 2, 4, 8 or 16.
    pub const fn bytes(self) -> u32 {
        self.channel.bytes() * self.channels
    }
}

/// A level of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Where it begins, in bytes from the beginning of the image.
    pub offset: u64,
    /// Texels of a row.
    pub width: u32,
    /// Rows of a slice.
    pub height: u32,
    /// Planes of a volume; layers, or faces of all cubes; otherwise 1.
    pub slices: u32,
    /// Bytes from a row to the next one.
    pub pitch: u64,
    /// Bytes from a slice to the next one.
    pub slice: u64,
}

impl Level {
    /// Bytes from the beginning of the image to a texel.
    pub(crate) fn texel(&self, [x, y, z]: [u32; 3], bytes: u32) -> u64 {
        self.offset + u64::from(z) * self.slice + u64::from(y) * self.pitch + u64::from(x) * u64::from(bytes)
    }
}

/// Texels in memory that textures and surfaces reach by coordinates.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    pub(crate) base: u64,
    pub(crate) geometry: Geometry,
    pub(crate) format: TexelFormat,
    /// From the largest one on; never empty.
    pub(crate) levels: Vec<Level>,
    /// It was declared with several levels, or is a view of such an image.
    pub(crate) is_mipmapped: bool,
}

/// What an array is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayShape {
    /// Its geometry; arrays of several samples per element do not exist.
    pub geometry: Geometry,
    /// Texels of a row.
    pub width: u32,
    /// Rows; 1 for lines.
    pub height: u32,
    /// Planes of a volume, layers, or six for each cube; otherwise 1.
    pub slices: u32,
    /// Levels of a mipmapped array; `None` for another one.
    pub levels: Option<u32>,
    /// Its texels.
    pub format: TexelFormat,
}

/// Bytes of a slice of linear memory at most.
const MAX_SLICE: u64 = 1 << 48;

/// What rows begin at a multiple of, in bytes: the widest access.
const ROW_ALIGN: u64 = 16;

impl ArrayShape {
    /// The number of levels down to a single texel.
    pub fn max_levels(&self) -> u32 {
        let depth = if self.geometry == Geometry::D3 { self.slices } else { 1 };
        let largest = self.width.max(self.height).max(depth).max(1);
        largest.ilog2() + 1
    }

    /// Why there is no such array.
    pub(crate) fn mistake(&self) -> Option<&'static str> {
        use Geometry::*;
        let (one_row, one_slice) = (self.height == 1, self.slices == 1);
        let fits = match self.geometry {
            D1 => one_row && one_slice,
            D2 => one_slice,
            A1D => one_row,
            Cube => self.slices == 6 && self.width == self.height,
            ACube => self.slices.is_multiple_of(6) && self.width == self.height,
            D3 | A2D => true,
            D2Ms | A2DMs => return Some("arrays have one sample per element"),
        };
        if !fits {
            Some("the extents do not fit the geometry: lines have one row, and cubes six square faces each")
        } else if self.width == 0 || self.height == 0 || self.slices == 0 {
            Some("every extent is at least 1")
        } else if !matches!(self.format.channels, 1 | 2 | 4) {
            Some("a texel has 1, 2 or 4 channels")
        } else if self.levels.is_some_and(|levels| levels == 0 || levels > self.max_levels()) {
            Some("the levels are 1 to the number that leads down to a single texel")
        } else {
            None
        }
    }

    /// Its levels and its size in bytes; `None` if that is beyond all memory.
    pub(crate) fn layout(&self) -> Option<(Vec<Level>, u64)> {
        let mut levels = Vec::new();
        let mut end = 0u64;
        for level in 0..self.levels.unwrap_or(1) {
            let half = |extent: u32| (extent >> level).max(1);
            let (width, height) = (half(self.width), half(self.height));
            let slices = if self.geometry == Geometry::D3 { half(self.slices) } else { self.slices };
            let pitch = (u64::from(width) * u64::from(self.format.bytes())).next_multiple_of(ROW_ALIGN);
            let slice = pitch.checked_mul(height.into())?;
            let offset = end;
            end = slice.checked_mul(slices.into())?.checked_add(offset)?;
            levels.push(Level { offset, width, height, slices, pitch, slice });
        }
        Some((levels, end))
    }
}

impl Image {
    /// Texels in linear memory, one behind the other.
    pub fn linear(address: u64, texels: u32, format: TexelFormat) -> Image {
        let pitch = u64::from(texels) * u64::from(format.bytes());
        Image::rows(Geometry::D1, address, (texels, 1), pitch, format)
    }

    /// Rows of texels in linear memory, `pitch` bytes apart.
    pub fn pitched(address: u64, (width, height): (u32, u32), pitch: u64, format: TexelFormat) -> Image {
        Image::rows(Geometry::D2, address, (width, height), pitch, format)
    }

    fn rows(
        geometry: Geometry,
        base: u64,
        (width, height): (u32, u32),
        pitch: u64,
        format: TexelFormat,
    ) -> Image {
        let slice = pitch.saturating_mul(height.into());
        let level = Level { offset: 0, width, height, slices: 1, pitch, slice };
        Image { base, geometry, format, levels: vec![level], is_mipmapped: false }
    }

    /// Why there is no such image.
    pub(crate) fn mistake(&self) -> Option<&'static str> {
        let is_empty = |level: &Level| level.width == 0 || level.height == 0 || level.slices == 0;
        if self.levels.iter().any(is_empty) {
            Some("every extent is at least 1")
        } else if !matches!(self.format.channels, 1 | 2 | 4) {
            Some("a texel has 1, 2 or 4 channels")
        } else if self.levels.iter().any(|level| level.slice > MAX_SLICE) {
            Some("the rows are further apart than any memory is large")
        } else {
            None
        }
    }

    /// Its geometry.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The format of its texels.
    pub fn format(&self) -> TexelFormat {
        self.format
    }

    /// Its levels.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// One level as an image of its own; `None` if there is no such level.
    pub fn level(&self, level: u32) -> Option<Image> {
        let level = *self.levels.get(level as usize)?;
        Some(Image { levels: vec![level], is_mipmapped: false, ..self.clone() })
    }

    /// The same memory seen otherwise: as another format of the same size, with some of the levels, and some of the
    /// layers as another geometry of layers. `None` if that does not fit.
    pub fn view(
        &self,
        geometry: Geometry,
        format: TexelFormat,
        levels: std::ops::RangeInclusive<u32>,
        layers: std::ops::RangeInclusive<u32>,
    ) -> Option<Image> {
        let is_layered = |geometry| !matches!(geometry, Geometry::D1 | Geometry::D2 | Geometry::D3);
        let has_rows = |geometry| !matches!(geometry, Geometry::D1 | Geometry::A1D);
        let (first, last) = (*layers.start(), *layers.end());
        let count = last.checked_sub(first)?.checked_add(1)?;
        let levels = self.levels.get(*levels.start() as usize..=*levels.end() as usize)?;
        let mut seen = Image { geometry, format, levels: levels.to_vec(), ..self.clone() };
        let is_volume = self.geometry == Geometry::D3;
        if format.bytes() != self.format.bytes()
            || seen.levels.is_empty()
            || is_volume != (geometry == Geometry::D3)
            || has_rows(self.geometry) != has_rows(geometry)
            || !is_layered(self.geometry) && (is_layered(geometry) || first != 0 || last != 0)
        {
            return None;
        }
        if is_layered(self.geometry) {
            let fits = match geometry {
                Geometry::Cube => count == 6,
                Geometry::ACube => count.is_multiple_of(6),
                Geometry::D1 | Geometry::D2 => count == 1,
                _ => true,
            };
            let is_square = seen.levels.iter().all(|level| level.width == level.height);
            if !fits
                || last >= self.levels[0].slices
                || matches!(geometry, Geometry::Cube | Geometry::ACube) && !is_square
            {
                return None;
            }
            for level in &mut seen.levels {
                level.offset += u64::from(first) * level.slice;
                level.slices = count;
            }
        }
        Some(seen)
    }

    /// What it is, in words.
    pub(crate) fn shown(&self) -> String {
        let Level { width, height, slices, .. } = self.levels[0];
        let bytes = self.format.bytes();
        format!("`{}` image of {width} × {height} × {slices} texels of {bytes} bytes", self.geometry)
    }
}
