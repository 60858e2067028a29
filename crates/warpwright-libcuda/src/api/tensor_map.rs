//! Tensor maps.

use super::entries;
use crate::report::log;
use crate::types::*;
use std::ffi::{c_int, c_uint, c_void};
use warpwright_vm::{Im2col, Im2colMode, TensorElement, TensorInterleave, TensorMap, TensorSwizzle};

/// What the address of a map is a multiple of.
const ALIGN: usize = 64;

fn refuse<T>(what: &dyn std::fmt::Display) -> Result<T> {
    log::misuse(&format_args!("a tensor map: {what}"));
    Err(Status::INVALID_VALUE)
}

fn unsupported<T>(what: &str) -> Result<T> {
    log::misuse(&format_args!("a tensor map {what}: it is not supported"));
    Err(Status::NOT_SUPPORTED)
}

/// What is one of a few, by its number.
fn numbered<T>(what: &str, number: c_int, find: impl Fn(u8) -> Option<T>) -> Result<T> {
    let found = u8::try_from(number).ok().and_then(find);
    found.map_or_else(|| refuse(&format_args!("there is no {what} of number {number}")), Ok)
}

/// A tensor, and how it is copied.
struct Said {
    ty: c_int,
    rank: c_uint,
    address: *mut c_void,
    dims: In<u64>,
    strides: In<u64>,
    steps: In<u32>,
    interleave: c_int,
    swizzling: c_int,
    promotion: c_int,
    fill: c_int,
}

impl Said {
    /// The tensor without a box, and the number of its dimensions.
    fn tensor(self, least: usize) -> Result<(TensorMap, usize)> {
        let rank = self.rank as usize;
        if !(least..=5).contains(&rank) {
            return refuse(&format_args!("{rank} dimensions: there are {least} to 5"));
        }
        if !(0..=3).contains(&self.promotion) || !(0..=1).contains(&self.fill) {
            let (promotion, fill) = (self.promotion, self.fill);
            return refuse(&format_args!(
                "promotion {promotion} and fill {fill}: they are 0 to 3, and 0 or 1"
            ));
        }
        let interleave = numbered("interleaving", self.interleave, TensorInterleave::from_number)?;
        let mut steps = self.steps.get_all(rank)?;
        if interleave == TensorInterleave::None && steps[0] <= 8 {
            // Elements of a row are beside each other, whatever the caller says.
            steps[0] = 1;
        }
        let made = TensorMap {
            address: self.address as u64,
            element: numbered("type", self.ty, TensorElement::from_driver)?,
            dims: self.dims.get_all(rank)?,
            strides: if rank > 1 { self.strides.get_all(rank - 1)? } else { Vec::new() },
            tile: Vec::new(),
            steps,
            interleave,
            im2col: None,
            swizzle: numbered("swizzling", self.swizzling, TensorSwizzle::from_driver)?,
            nan_fill: self.fill == 1,
        };
        match made.element.is_padded() && interleave != TensorInterleave::None {
            true if made.element != TensorElement::B6x16P32 => unsupported("of padded elements in slices"),
            _ => Ok((made, rank)),
        }
    }
}

fn set(map: Out<CUtensorMap>, made: &TensorMap) -> Result<()> {
    if !(map.as_ptr() as usize).is_multiple_of(ALIGN) {
        return refuse(&format_args!("at {:p}: its address must be a multiple of {ALIGN}", map.as_ptr()));
    }
    match made.to_bytes() {
        Ok(bytes) => map.set(CUtensorMap { bytes }),
        Err(wrong) => refuse(&wrong),
    }
}

entries! {
    /// Makes the map of a tensor that is copied in tiles.
    fn cuTensorMapEncodeTiled(
        map: Out<CUtensorMap>, ty: c_int, rank: c_uint, address: *mut c_void, dims: In<u64>, strides: In<u64>,
        tile: In<u32>, steps: In<u32>, interleave: c_int, swizzling: c_int, promotion: c_int, fill: c_int,
    ) {
        map.required()?;
        let said = Said { ty, rank, address, dims, strides, steps, interleave, swizzling, promotion, fill };
        let (tensor, rank) = said.tensor(1)?;
        let tile = tile.get_all(rank)?;
        if tensor.interleave != TensorInterleave::None && rank > 2 && tile[rank - 2] > 1 {
            return unsupported("whose box has several slices of channels");
        }
        set(map, &TensorMap { tile, ..tensor })
    }

    /// Makes the map of a tensor that is copied as columns of a convolution.
    fn cuTensorMapEncodeIm2col(
        map: Out<CUtensorMap>, ty: c_int, rank: c_uint, address: *mut c_void, dims: In<u64>, strides: In<u64>,
        lower: In<c_int>, upper: In<c_int>, channels: c_uint, pixels: c_uint, steps: In<u32>, interleave: c_int,
        swizzling: c_int, promotion: c_int, fill: c_int,
    ) {
        map.required()?;
        let said = Said { ty, rank, address, dims, strides, steps, interleave, swizzling, promotion, fill };
        let (tensor, rank) = said.tensor(3)?;
        let corners = |corners: In<c_int>| corners.get_all(rank - 2);
        let im2col = Im2col { mode: Im2colMode::Spatial, lower: corners(lower)?, upper: corners(upper)? };
        set(map, &TensorMap { tile: vec![channels, pixels], im2col: Some(im2col), ..tensor })
    }

    /// Makes the map of a tensor that is copied as columns of a convolution along the width alone.
    fn cuTensorMapEncodeIm2colWide(
        map: Out<CUtensorMap>, ty: c_int, rank: c_uint, address: *mut c_void, dims: In<u64>, strides: In<u64>,
        lower: c_int, upper: c_int, channels: c_uint, pixels: c_uint, steps: In<u32>, interleave: c_int, mode: c_int,
        swizzling: c_int, promotion: c_int, fill: c_int,
    ) {
        map.required()?;
        let said = Said { ty, rank, address, dims, strides, steps, interleave, swizzling, promotion, fill };
        let (tensor, _) = said.tensor(3)?;
        let (mode, pixels) = match mode {
            0 => (Im2colMode::Wide, pixels),
            // What the caller says of pixels does not count.
            1 => (Im2colMode::Wide128, 128),
            _ => return refuse(&format_args!("there is no mode of number {mode} of columns along the width")),
        };
        let im2col = Im2col { mode, lower: vec![lower], upper: vec![upper] };
        set(map, &TensorMap { tile: vec![channels, pixels], im2col: Some(im2col), ..tensor })
    }

    /// Gives a map another address.
    fn cuTensorMapReplaceAddress(map: Out<CUtensorMap>, address: *mut c_void) {
        map.required()?;
        match TensorMap::from_bytes(&map.given().get()?.bytes) {
            Ok(made) => set(map, &TensorMap { address: address as u64, ..made }),
            Err(wrong) => refuse(&wrong),
        }
    }
}
