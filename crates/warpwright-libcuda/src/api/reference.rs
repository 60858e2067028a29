//! Texture and surface references: variables of modules that are bound to arrays or memory.

use super::entries;
use super::memory::here;
use super::texture::{ALIGN, image, sampler, surface_image};
use crate::engine::{ModuleReference, REFERENCES, Settings, array, mipmapped_array};
use crate::lock;
use crate::report::log;
use crate::types::*;
use std::ffi::{c_char, c_int, c_uint};
use std::sync::Arc;

/// The flag that an array is bound with: its format is that of the reference.
const OVERRIDE_FORMAT: c_uint = 1;

/// The reference to a variable of a module, by its name.
fn of_module(module: CUmodule, name: In<c_char>) -> Result<usize> {
    let (context, engine) = here()?;
    let (variable, _) = crate::code::module(module)?.variable(&text(name)?)?;
    let known = REFERENCES.handles(|reference| reference.variable == variable);
    if let Some(&handle) = known.first() {
        return Ok(handle);
    }
    let reference = ModuleReference::new(variable, engine.ordinal, context.id);
    REFERENCES.insert(Arc::new(reference))
}

fn reference(handle: usize) -> Result<Arc<ModuleReference>> {
    here()?;
    REFERENCES.get(handle).map_err(|_| Status::INVALID_VALUE)
}

/// What is set of a texture reference.
fn get<T>(handle: CUtexref, get: impl FnOnce(&Settings) -> T) -> Result<T> {
    let reference = reference(handle.0)?;
    let settings = lock(&reference.settings);
    Ok(get(&settings))
}

/// Changes what is set of a texture reference, and binds the variable as it is set then: for launches from now on.
fn change(handle: CUtexref, change: impl FnOnce(&mut Settings) -> Result<()>) -> Result<()> {
    let reference = reference(handle.0)?;
    super::array::settle(reference.ordinal)?;
    let mut settings = lock(&reference.settings);
    let mut changed = settings.clone();
    change(&mut changed)?;
    if let Some(resource) = &changed.resource {
        let (_, engine) = here()?;
        let image = image(resource)?;
        let sampler = sampler(&changed.sampling, resource, &image)?;
        engine.vm().bind_texture(reference.variable, image, sampler).map_err(|error| {
            log::misuse(&error);
            Status::INVALID_VALUE
        })?;
    }
    *settings = changed;
    Ok(())
}

/// The resource of a reference is that array.
fn bind_array(
    handle: CUtexref,
    kind: CUresourcetype,
    array: usize,
    is: CUDA_ARRAY3D_DESCRIPTOR,
    flags: c_uint,
) -> Result<()> {
    if flags != OVERRIDE_FORMAT {
        return Err(Status::INVALID_VALUE);
    }
    change(handle, |settings| {
        let mut resource = CUDA_RESOURCE_DESC { resType: kind, ..CUDA_RESOURCE_DESC::default() };
        resource.res[0] = array as u64;
        (settings.resource, settings.format, settings.channels) = (Some(resource), is.Format, is.NumChannels);
        Ok(())
    })
}

/// A word of a resource of memory: the format and the channels.
fn format_word(format: CUarray_format, channels: c_uint) -> u64 {
    format.0 as u32 as u64 | u64::from(channels) << 32
}

/// The resource that is bound, if it is of that kind.
fn bound(settings: &Settings, kind: CUresourcetype) -> Result<u64> {
    let resource = settings.resource.filter(|resource| resource.resType == kind);
    resource.map(|resource| resource.res[0]).ok_or(Status::INVALID_VALUE)
}

/// One of the three dimensions.
fn dimension(number: c_int) -> Result<usize> {
    usize::try_from(number).ok().filter(|&number| number < 3).ok_or(Status::INVALID_VALUE)
}

entries! {
    /// Returns the texture reference of that name.
    fn cuModuleGetTexRef(made: Out<CUtexref>, module: CUmodule, name: In<c_char>) {
        made.required()?.set(CUtexref(of_module(module, name)?))
    }

    /// Returns the surface reference of that name.
    fn cuModuleGetSurfRef(made: Out<CUsurfref>, module: CUmodule, name: In<c_char>) {
        made.required()?.set(CUsurfref(of_module(module, name)?))
    }

    /// Binds a surface reference to an array.
    fn cuSurfRefSetArray(handle: CUsurfref, to: CUarray, flags: c_uint) {
        let reference = reference(handle.0)?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let image = surface_image(to)?;
        super::array::settle(reference.ordinal)?;
        let (_, engine) = here()?;
        engine.vm().bind_surface(reference.variable, image).map_err(|_| Status::INVALID_VALUE)?;
        let mut settings = lock(&reference.settings);
        let mut resource = CUDA_RESOURCE_DESC::default();
        resource.res[0] = to.0 as u64;
        settings.resource = Some(resource);
        Ok(())
    }

    /// Returns the array of a surface reference.
    fn cuSurfRefGetArray(to: Out<CUarray>, handle: CUsurfref) {
        to.set(CUarray(get(CUtexref(handle.0), |settings| bound(settings, CUresourcetype::ARRAY))?? as usize))
    }

    /// Binds a texture reference to an array.
    fn cuTexRefSetArray(handle: CUtexref, to: CUarray, flags: c_uint) {
        bind_array(handle, CUresourcetype::ARRAY, to.0, array(to)?.descriptor, flags)
    }

    /// Binds a texture reference to an array with levels.
    fn cuTexRefSetMipmappedArray(handle: CUtexref, to: CUmipmappedArray, flags: c_uint) {
        let is = mipmapped_array(to)?.array.descriptor;
        bind_array(handle, CUresourcetype::MIPMAPPED_ARRAY, to.0, is, flags)
    }

    /// Binds a texture reference to linear memory. It begins at an aligned address, and the offset from there is
    /// returned.
    fn cuTexRefSetAddress_v2(offset: Out<usize>, handle: CUtexref, address: CUdeviceptr, bytes: usize) {
        let odd = address % ALIGN;
        if odd != 0 && offset.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        change(handle, |settings| {
            let format = format_word(settings.format, settings.channels);
            let mut resource =
                CUDA_RESOURCE_DESC { resType: CUresourcetype::LINEAR, ..CUDA_RESOURCE_DESC::default() };
            resource.res[..3].copy_from_slice(&[address - odd, format, odd.saturating_add(bytes as u64)]);
            settings.resource = Some(resource);
            Ok(())
        })?;
        offset.set_if(odd as usize);
        Ok(())
    }

    /// Binds a texture reference to rows in linear memory.
    fn cuTexRefSetAddress2D_v3 = cuTexRefSetAddress2D_v2(
        handle: CUtexref, descriptor: In<CUDA_ARRAY_DESCRIPTOR>, address: CUdeviceptr, pitch: usize,
    ) {
        let CUDA_ARRAY_DESCRIPTOR { Width, Height, Format, NumChannels } = descriptor.get()?;
        change(handle, |settings| {
            let extents = [Width, Height, pitch].map(|extent| extent as u64);
            let mut resource =
                CUDA_RESOURCE_DESC { resType: CUresourcetype::PITCH2D, ..CUDA_RESOURCE_DESC::default() };
            resource.res[..2].copy_from_slice(&[address, format_word(Format, NumChannels)]);
            resource.res[2..5].copy_from_slice(&extents);
            settings.resource = Some(resource);
            Ok(())
        })
    }

    /// Sets the format of linear memory that is bound next.
    fn cuTexRefSetFormat(handle: CUtexref, format: CUarray_format, channels: c_int) {
        super::array::format(format, channels as c_uint)?;
        change(handle, |settings| {
            (settings.format, settings.channels) = (format, channels as c_uint);
            Ok(())
        })
    }

    /// Sets what is read outside, in a dimension.
    fn cuTexRefSetAddressMode(handle: CUtexref, number: c_int, mode: CUaddress_mode) {
        let number = dimension(number)?;
        mode.check()?;
        change(handle, |settings| {
            settings.sampling.addressMode[number] = mode;
            Ok(())
        })
    }

    /// Sets the filter.
    fn cuTexRefSetFilterMode(handle: CUtexref, mode: CUfilter_mode) {
        change(handle, |settings| {
            settings.sampling.filterMode = mode;
            mode.check()
        })
    }

    /// Sets the filter between levels.
    fn cuTexRefSetMipmapFilterMode(handle: CUtexref, mode: CUfilter_mode) {
        change(handle, |settings| {
            settings.sampling.mipmapFilterMode = mode;
            mode.check()
        })
    }

    /// Sets what is added to a level of detail.
    fn cuTexRefSetMipmapLevelBias(handle: CUtexref, bias: f32) {
        change(handle, |settings| {
            settings.sampling.mipmapLevelBias = bias;
            Ok(())
        })
    }

    /// Sets the least and the greatest level of detail.
    fn cuTexRefSetMipmapLevelClamp(handle: CUtexref, least: f32, greatest: f32) {
        change(handle, |settings| {
            settings.sampling.minMipmapLevelClamp = least;
            settings.sampling.maxMipmapLevelClamp = greatest;
            Ok(())
        })
    }

    /// Sets the anisotropy, which is not simulated.
    fn cuTexRefSetMaxAnisotropy(handle: CUtexref, max: c_uint) {
        change(handle, |settings| {
            settings.sampling.maxAnisotropy = max;
            Ok(())
        })
    }

    /// Sets the border colour.
    fn cuTexRefSetBorderColor(handle: CUtexref, color: In<[f32; 4]>) {
        let color = color.get()?;
        change(handle, |settings| {
            settings.sampling.borderColor = color;
            Ok(())
        })
    }

    /// Sets the flags: of integers, normalized coordinates, sRGB.
    fn cuTexRefSetFlags(handle: CUtexref, flags: c_uint) {
        change(handle, |settings| {
            settings.sampling.flags = flags;
            Ok(())
        })
    }

    /// Returns the array of a texture reference.
    fn cuTexRefGetArray(to: Out<CUarray>, handle: CUtexref) {
        to.set(CUarray(get(handle, |settings| bound(settings, CUresourcetype::ARRAY))?? as usize))
    }

    /// Returns the array with levels of a texture reference.
    fn cuTexRefGetMipmappedArray(to: Out<CUmipmappedArray>, handle: CUtexref) {
        let array = get(handle, |settings| bound(settings, CUresourcetype::MIPMAPPED_ARRAY))??;
        to.set(CUmipmappedArray(array as usize))
    }

    /// Returns the address of a texture reference to linear memory.
    fn cuTexRefGetAddress_v2(to: Out<CUdeviceptr>, handle: CUtexref) {
        to.set(get(handle, |settings| bound(settings, CUresourcetype::LINEAR))??)
    }

    /// Returns what is read outside, in a dimension.
    fn cuTexRefGetAddressMode(to: Out<CUaddress_mode>, handle: CUtexref, number: c_int) {
        let number = dimension(number)?;
        to.set(get(handle, |settings| settings.sampling.addressMode[number])?)
    }

    /// Returns the filter.
    fn cuTexRefGetFilterMode(to: Out<CUfilter_mode>, handle: CUtexref) {
        to.set(get(handle, |settings| settings.sampling.filterMode)?)
    }

    /// Returns the filter between levels.
    fn cuTexRefGetMipmapFilterMode(to: Out<CUfilter_mode>, handle: CUtexref) {
        to.set(get(handle, |settings| settings.sampling.mipmapFilterMode)?)
    }

    /// Returns what is added to a level of detail.
    fn cuTexRefGetMipmapLevelBias(to: Out<f32>, handle: CUtexref) {
        to.set(get(handle, |settings| settings.sampling.mipmapLevelBias)?)
    }

    /// Returns the least and the greatest level of detail.
    fn cuTexRefGetMipmapLevelClamp(least: Out<f32>, greatest: Out<f32>, handle: CUtexref) {
        let sampling = get(handle, |settings| settings.sampling)?;
        least.set(sampling.minMipmapLevelClamp)?;
        greatest.set(sampling.maxMipmapLevelClamp)
    }

    /// Returns the anisotropy.
    fn cuTexRefGetMaxAnisotropy(to: Out<c_int>, handle: CUtexref) {
        to.set(get(handle, |settings| settings.sampling.maxAnisotropy)? as c_int)
    }

    /// Returns the border colour.
    fn cuTexRefGetBorderColor(to: Out<[f32; 4]>, handle: CUtexref) {
        to.set(get(handle, |settings| settings.sampling.borderColor)?)
    }

    /// Returns the flags.
    fn cuTexRefGetFlags(to: Out<c_uint>, handle: CUtexref) {
        to.set(get(handle, |settings| settings.sampling.flags)?)
    }

    /// Returns the format, and the number of channels.
    fn cuTexRefGetFormat(format: Out<CUarray_format>, channels: Out<c_int>, handle: CUtexref) {
        let (is, count) = get(handle, |settings| (settings.format, settings.channels))?;
        format.set_if(is);
        channels.set_if(count as c_int);
        Ok(())
    }
}
