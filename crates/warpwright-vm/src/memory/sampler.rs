//! What handles of textures and surfaces stand for, and how textures are sampled.

use super::image::{Channel, Image, TexelFormat};

/// What a handle stands for.
#[derive(Debug)]
pub(crate) enum Object {
    Texture(Image, Sampler),
    Surface(Image),
}

/// What is read where a coordinate is outside of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AddressMode {
    /// The image is repeated. Coordinates that are not normalized are clamped instead.
    Wrap,
    /// The nearest texel.
    #[default]
    Clamp,
    /// The image is repeated, every other time mirrored. Coordinates that are not normalized are clamped instead.
    Mirror,
    /// The border colour.
    Border,
}

/// How texels, or levels, are chosen or combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Filter {
    /// The nearest one.
    #[default]
    Point,
    /// The weighted mean of the neighbours.
    Linear,
}

/// How a texture is sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampler {
    /// For each dimension, what is outside.
    pub address: [AddressMode; 3],
    /// How texels are filtered.
    pub filter: Filter,
    /// How levels are filtered.
    pub mip_filter: Filter,
    /// Coordinates run from 0 to 1.
    pub normalized: bool,
    /// Integers of 8 and 16 bits are read as numbers from 0 or −1 to 1.
    pub reads_normalized: bool,
    /// The first three channels are sRGB, in a format of unsigned bytes that is read normalized.
    pub srgb: bool,
    /// The colour outside: floating-point numbers, or the bits of integers.
    pub border: [u32; 4],
    /// What is added to a level of detail.
    pub level_bias: f32,
    /// The least and the greatest level of detail.
    pub levels: [f32; 2],
}

impl Default for Sampler {
    fn default() -> Self {
        Sampler {
            address: [AddressMode::Clamp; 3],
            filter: Filter::Point,
            mip_filter: Filter::Point,
            normalized: false,
            reads_normalized: false,
            srgb: false,
            border: [0; 4],
            level_bias: 0.0,
            levels: [0.0, f32::MAX],
        }
    }
}

impl Sampler {
    /// Whether what it reads from a format are floating-point numbers.
    pub(crate) fn reads_floats(&self, channel: Channel) -> bool {
        channel.is_float() || self.reads_normalized && channel.is_normalizable()
    }

    /// What cannot be done to an image.
    pub(crate) fn mistake(&self, image: &Image) -> Option<&'static str> {
        let TexelFormat { channel, .. } = image.format;
        if self.filter == Filter::Linear && !self.reads_floats(channel) {
            Some("linear filtering needs texels that are read as floating-point numbers")
        } else if self.srgb && !(channel == Channel::U8 && self.reads_normalized) {
            Some("sRGB needs unsigned bytes that are read normalized")
        } else if image.is_mipmapped && !self.normalized {
            Some("a mipmapped image needs normalized coordinates")
        } else {
            image.mistake()
        }
    }
}
