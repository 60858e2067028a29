//! Tensor maps.

use super::entries;
use crate::report::log;
use crate::types::*;
use std::ffi::{c_int, c_uint, c_void};
use warpwright_vm::{TensorElement, TensorMap, TensorSwizzle};

/// What the address of a map is a multiple of.
const ALIGN: usize = 64;

fn refuse<T>(what: &dyn std::fmt::Display) -> Result<T> {
    log::misuse(&format_args!("a tensor map: {what}"));
    Err(Status::INVALID_VALUE)
}

/// The type of the elements, by its number.
fn element(number: c_int) -> Result<TensorElement> {
    if !(0..=15).contains(&number) {
        return refuse(&format_args!("there is no type of number {number}"));
    }
    TensorElement::from_driver(number as u8).ok_or_else(|| {
        log::misuse(&format_args!(
            "a tensor map of elements of type {number} (flushing, or padded): they are not supported"
        ));
        Status::NOT_SUPPORTED
    })
}

fn swizzle(number: c_int) -> Result<TensorSwizzle> {
    let found = u8::try_from(number).ok().and_then(TensorSwizzle::from_driver);
    found.map_or_else(|| refuse(&format_args!("there is no swizzling of number {number}")), Ok)
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
        if !(1..=5).contains(&rank) {
            return refuse(&format_args!("{rank} dimensions: there are 1 to 5"));
        }
        match interleave {
            0 => {}
            1 | 2 => {
                log::misuse(&"a tensor map with an interleaved layout: it is not supported");
                return Err(Status::NOT_SUPPORTED);
            }
            _ => return refuse(&format_args!("there is no interleaving of number {interleave}")),
        }
        if !(0..=3).contains(&promotion) || !(0..=1).contains(&fill) {
            return refuse(&format_args!("promotion {promotion} and fill {fill}: they are 0 to 3, and 0 or 1"));
        }
        let rank = rank as usize;
        let made = TensorMap {
            address: address as u64,
            element: element(ty)?,
            dims: dims.get_all(rank)?,
            strides: if rank > 1 { strides.get_all(rank - 1)? } else { Vec::new() },
            tile: tile.get_all(rank)?,
            steps: steps.get_all(rank)?,
            swizzle: swizzle(swizzling)?,
            nan_fill: fill == 1,
        };
        set(map, &made)
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
