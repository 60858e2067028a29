//! Arrays of a client with their handles, and its textures and surfaces by the handles that kernels get.

use super::{Engine, status};
use crate::lock;
use crate::report::calls::{self, Call};
use crate::state::{Context, Handles, Kind};
use crate::types::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use warpwright_vm::{Array, ArrayShape, Image, Sampler, Surface, Texture};

/// All arrays, also those that are levels of others.
pub(crate) static ARRAYS: Handles<ClientArray> = Handles::new(Kind::Array);

/// All mipmapped arrays.
pub(crate) static MIPMAPPED_ARRAYS: Handles<ClientMipmappedArray> = Handles::new(Kind::MipmappedArray);

/// All textures and surfaces.
pub(crate) static OBJECTS: Objects = Objects(Mutex::new(BTreeMap::new()));

/// An array of a client.
pub(crate) struct ClientArray {
    pub(crate) array: Array,
    /// As the client has described it.
    pub(crate) descriptor: CUDA_ARRAY3D_DESCRIPTOR,
    pub(crate) ordinal: CUdevice,
    pub(crate) context: u64,
    /// It is a level of another one, and is freed with that.
    pub(crate) is_level: bool,
}

/// A mipmapped array of a client.
pub(crate) struct ClientMipmappedArray {
    pub(crate) array: ClientArray,
    /// The handles of its levels.
    levels: Vec<CUarray>,
}

impl ClientArray {
    fn new(
        engine: &Engine,
        context: &Context,
        descriptor: CUDA_ARRAY3D_DESCRIPTOR,
        shape: ArrayShape,
    ) -> Result<Self> {
        let name = format!("array ({})", calls::current());
        let array = engine.vm().array(&name, shape).map_err(|error| status(&error))?;
        Ok(ClientArray { array, descriptor, ordinal: engine.ordinal, context: context.id, is_level: false })
    }

    /// Allocates an array.
    pub(crate) fn create(
        engine: &Engine,
        context: &Context,
        descriptor: CUDA_ARRAY3D_DESCRIPTOR,
        shape: ArrayShape,
    ) -> Result<CUarray> {
        let array = Self::new(engine, context, descriptor, shape)?;
        Ok(CUarray(ARRAYS.insert(Arc::new(array))?))
    }

    /// Frees an array. Nothing of the device uses it any more.
    pub(crate) fn destroy(handle: CUarray) -> Result<()> {
        if ARRAYS.get(handle.0).map_err(|_| Status::INVALID_HANDLE)?.is_level {
            crate::report::log::misuse(
                &"a level of a mipmapped array is destroyed with that one, not by itself",
            );
            return Err(Status::INVALID_HANDLE);
        }
        ARRAYS.remove(handle.0).map(drop).map_err(|_| Status::INVALID_HANDLE)
    }
}

impl ClientMipmappedArray {
    /// Allocates a mipmapped array.
    pub(crate) fn create(
        engine: &Engine,
        context: &Context,
        descriptor: CUDA_ARRAY3D_DESCRIPTOR,
        shape: ArrayShape,
    ) -> Result<CUmipmappedArray> {
        let array = ClientArray::new(engine, context, descriptor, shape)?;
        let mut levels = Vec::new();
        for level in 0..shape.levels.unwrap_or(1) {
            let Some(part) = array.array.level(level) else { break };
            let half = |extent: usize| if extent == 0 { 0 } else { (extent >> level).max(1) };
            let layers = descriptor.Flags & (flags::LAYERED | flags::CUBEMAP) != 0;
            let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
                Width: half(descriptor.Width),
                Height: half(descriptor.Height),
                Depth: if layers { descriptor.Depth } else { half(descriptor.Depth) },
                ..descriptor
            };
            let part = ClientArray {
                array: part,
                descriptor,
                ordinal: array.ordinal,
                context: array.context,
                is_level: true,
            };
            levels.push(CUarray(ARRAYS.insert(Arc::new(part))?));
        }
        Ok(CUmipmappedArray(MIPMAPPED_ARRAYS.insert(Arc::new(ClientMipmappedArray { array, levels }))?))
    }

    /// The handle of a level.
    pub(crate) fn level(&self, level: u32) -> Result<CUarray> {
        self.levels.get(level as usize).copied().ok_or(Status::INVALID_VALUE)
    }

    /// Frees a mipmapped array with its levels. Nothing of the device uses it any more.
    pub(crate) fn destroy(handle: CUmipmappedArray) -> Result<()> {
        let array = MIPMAPPED_ARRAYS.remove(handle.0).map_err(|_| Status::INVALID_HANDLE)?;
        for level in &array.levels {
            let _ = ARRAYS.remove(level.0);
        }
        Ok(())
    }
}

/// Flags of arrays.
pub(crate) mod flags {
    use std::ffi::c_uint;

    pub(crate) const LAYERED: c_uint = 1;
    pub(crate) const SURFACE_LDST: c_uint = 2;
    pub(crate) const CUBEMAP: c_uint = 4;
    pub(crate) const TEXTURE_GATHER: c_uint = 8;
    pub(crate) const COLOR_ATTACHMENT: c_uint = 32;
}

/// All references to variables of modules.
pub(crate) static REFERENCES: Handles<ModuleReference> = Handles::new(Kind::Reference);

/// A texture or surface reference: a variable of a module.
pub(crate) struct ModuleReference {
    /// Its address.
    pub(crate) variable: u64,
    pub(crate) ordinal: CUdevice,
    context: u64,
    pub(crate) settings: Mutex<Settings>,
}

/// What a client has set of a reference.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) resource: Option<CUDA_RESOURCE_DESC>,
    pub(crate) sampling: CUDA_TEXTURE_DESC,
    /// The texels of linear memory that is bound.
    pub(crate) format: CUarray_format,
    pub(crate) channels: u32,
}

impl ModuleReference {
    /// A reference that is bound to nothing.
    pub(crate) fn new(variable: u64, ordinal: CUdevice, context: u64) -> Self {
        let settings = Settings {
            resource: None,
            sampling: CUDA_TEXTURE_DESC::default(),
            format: CUarray_format::FLOAT,
            channels: 1,
        };
        ModuleReference { variable, ordinal, context, settings: Mutex::new(settings) }
    }
}

/// What a client has made a texture or surface of.
pub(crate) struct Object {
    pub(crate) kind: ObjectKind,
    pub(crate) resource: CUDA_RESOURCE_DESC,
    context: u64,
    pub(crate) made_by: Call,
}

/// A texture with its descriptions, or a surface. The virtual GPU forgets it when it is dropped.
pub(crate) enum ObjectKind {
    Texture { _texture: Texture, described: Box<(CUDA_TEXTURE_DESC, Option<CUDA_RESOURCE_VIEW_DESC>)> },
    Surface { _surface: Surface },
}

/// Textures and surfaces by their handles, which differ on all devices.
pub(crate) struct Objects(Mutex<BTreeMap<u64, Arc<Object>>>);

impl Objects {
    /// Makes a texture.
    pub(crate) fn texture(
        &self,
        engine: &Engine,
        context: &Context,
        (image, sampler): (Image, Sampler),
        resource: CUDA_RESOURCE_DESC,
        described: (CUDA_TEXTURE_DESC, Option<CUDA_RESOURCE_VIEW_DESC>),
    ) -> Result<CUtexObject> {
        let name = format!("texture ({})", calls::current());
        let texture = engine.vm().texture(&name, image, sampler).map_err(|error| {
            crate::report::log::misuse(&error);
            status(&error)
        })?;
        let handle = texture.handle();
        self.keep(
            handle,
            ObjectKind::Texture { _texture: texture, described: Box::new(described) },
            resource,
            context,
        );
        Ok(handle)
    }

    /// Makes a surface.
    pub(crate) fn surface(
        &self,
        engine: &Engine,
        context: &Context,
        image: Image,
        resource: CUDA_RESOURCE_DESC,
    ) -> Result<CUsurfObject> {
        let name = format!("surface ({})", calls::current());
        let surface = engine.vm().surface(&name, image).map_err(|error| status(&error))?;
        let handle = surface.handle();
        self.keep(handle, ObjectKind::Surface { _surface: surface }, resource, context);
        Ok(handle)
    }

    fn keep(&self, handle: u64, kind: ObjectKind, resource: CUDA_RESOURCE_DESC, context: &Context) {
        let object = Object { kind, resource, context: context.id, made_by: calls::current() };
        lock(&self.0).insert(handle, Arc::new(object));
    }

    /// The object of a handle, of the kind that is wanted.
    pub(crate) fn get(&self, handle: u64, wanted: fn(&ObjectKind) -> bool) -> Result<Arc<Object>> {
        let found = lock(&self.0).get(&handle).cloned();
        found.filter(|found| wanted(&found.kind)).ok_or_else(|| {
            crate::report::log::misuse(&format_args!("{handle:#x} is no such texture or surface"));
            Status::INVALID_VALUE
        })
    }

    /// Destroys an object. Nothing of the device uses it any more.
    pub(crate) fn remove(&self, handle: u64) {
        lock(&self.0).remove(&handle);
    }

    /// Destroys the objects of a context.
    fn release(&self, context: u64) {
        lock(&self.0).retain(|_, object| object.context != context);
    }

    /// All objects: what they are, their contexts and the calls that made them.
    pub(crate) fn alive(&self) -> Vec<(&'static str, u64, Call)> {
        let what = |object: &Object| match object.kind {
            ObjectKind::Texture { .. } => "texture",
            ObjectKind::Surface { .. } => "surface",
        };
        let objects = lock(&self.0);
        objects.values().map(|object| (what(object), object.context, object.made_by)).collect()
    }
}

/// The array of a handle.
pub(crate) fn array(handle: CUarray) -> Result<Arc<ClientArray>> {
    ARRAYS.get(handle.0).map_err(|_| Status::INVALID_HANDLE)
}

/// The mipmapped array of a handle.
pub(crate) fn mipmapped_array(handle: CUmipmappedArray) -> Result<Arc<ClientMipmappedArray>> {
    MIPMAPPED_ARRAYS.get(handle.0).map_err(|_| Status::INVALID_HANDLE)
}

/// The array whose texels are at an address.
pub(super) fn array_at(address: u64) -> Option<Arc<ClientArray>> {
    let holds = |array: &ClientArray| {
        let bytes = array.array.bytes();
        (bytes.address()..bytes.address() + bytes.bytes()).contains(&address)
    };
    ARRAYS.alive().into_iter().map(|alive| alive.object).find(|array| holds(array))
}

/// The handle of the array that has bytes at an address, and where they begin.
pub(crate) fn handle_of_array(address: u64) -> Option<(CUarray, u64)> {
    let holds = |array: &ClientArray| {
        let bytes = array.array.bytes();
        (bytes.address()..bytes.address() + bytes.bytes()).contains(&address)
    };
    let handle = ARRAYS.handles(holds).into_iter().next()?;
    let array = ARRAYS.get(handle).ok()?;
    Some((CUarray(handle), array.array.bytes().address()))
}

/// Frees the arrays, textures and surfaces of a context.
pub(super) fn release(context: u64) {
    OBJECTS.release(context);
    for handle in REFERENCES.handles(|reference| reference.context == context) {
        let _ = REFERENCES.remove(handle);
    }
    for handle in MIPMAPPED_ARRAYS.handles(|array| array.array.context == context) {
        let _ = ClientMipmappedArray::destroy(CUmipmappedArray(handle));
    }
    for handle in ARRAYS.handles(|array| array.context == context) {
        let _ = ARRAYS.remove(handle);
    }
}
