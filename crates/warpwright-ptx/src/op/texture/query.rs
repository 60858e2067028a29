//! Properties of textures, samplers and surfaces.

use super::opaque;
use crate::ir::*;
use crate::op::{instruction, modifiers};

modifiers! {
    /// Property of a texture, sampler or surface.
    pub enum TexQuery {
        /// Width.
        Width = "width",
        /// Height.
        Height = "height",
        /// Depth.
        Depth = "depth",
        /// Type of the components.
        ChannelDataType = "channel_data_type",
        /// Order of the components.
        ChannelOrder = "channel_order",
        /// Whether coordinates run from 0 to 1.
        NormalizedCoords = "normalized_coords",
        /// Number of elements of an array.
        ArraySize = "array_size",
        /// Number of levels.
        NumMipmapLevels = "num_mipmap_levels",
        /// Number of samples per element.
        NumSamples = "num_samples",
        /// Whether a sampler overrides normalised coordinates.
        ForceUnnormalizedCoords = "force_unnormalized_coords",
        /// Filter.
        FilterMode = "filter_mode",
        /// Treatment of coordinates out of range, first dimension.
        AddrMode0 = "addr_mode_0",
        /// Treatment of coordinates out of range, second dimension.
        AddrMode1 = "addr_mode_1",
        /// Treatment of coordinates out of range, third dimension.
        AddrMode2 = "addr_mode_2",
        /// Order in memory.
        MemoryLayout = "memory_layout",
    }
}

instruction! {
    /// Property of a texture or sampler, or of one level of a texture.
    pub struct Txq("txq") {
        level: bool = "level",
        query: TexQuery,
        ty: Type,
    }(d: Dst, a: Address, lod: Option<Src> = level) -> pointwise,
        check: |op, check| {
            use TexQuery::*;
            check.type_among(op.ty, &[Type::B32]);
            check.combination(
                !op.level || matches!(op.query, Width | Height | Depth),
                "a level has a width, a height and a depth",
            );
            check.dst("d", op.d, Type::B32);
            let types: &[Type] = match op.query {
                ForceUnnormalizedCoords => &[Type::SamplerRef],
                FilterMode | AddrMode0 | AddrMode1 | AddrMode2 => &[Type::SamplerRef, Type::TexRef],
                _ => &[Type::TexRef],
            };
            opaque(check, "a", &op.a, types);
            check.src("lod", &op.lod, Type::U32);
        };

    /// Property of a surface.
    pub struct Suq("suq") {
        query: TexQuery,
        ty: Type,
    }(d: Dst, a: Address) -> pointwise,
        check: |op, check| {
            use TexQuery::*;
            check.type_among(op.ty, &[Type::B32]);
            check.combination(
                matches!(
                    op.query,
                    Width | Height | Depth | ChannelDataType | ChannelOrder | ArraySize | MemoryLayout
                ),
                "a surface has no such property",
            );
            check.dst("d", op.d, Type::B32);
            opaque(check, "a", &op.a, &[Type::SurfRef]);
        };

    /// Whether an address is that of a texture, sampler or surface variable.
    pub struct Istypep("istypep") {
        ty: Type,
    }(p: Dst, a: Src) -> pointwise,
        check: |op, check| {
            check.type_among(op.ty, &[Type::TexRef, Type::SamplerRef, Type::SurfRef]);
            check.dst("p", op.p, Type::Pred);
            check.src("a", &op.a, Type::U64);
        };
}
