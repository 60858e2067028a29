//! Arrays, textures and surfaces, as the host makes them.

use super::{Buffer, Device, DeviceError, Span};
use crate::memory::{AllocationKind, ArrayShape, Image, Level, Object, Sampler};
use std::sync::Arc;

/// An array: memory whose texels kernels reach by coordinates alone, through textures and surfaces. Cheap to clone: the
/// clones are one array, which is freed with the last of them.
#[derive(Clone)]
pub struct Array {
    buffer: Arc<Buffer<u8>>,
    shape: ArrayShape,
    image: Image,
}

/// A texture of a device. Its handle means nothing any more once it is dropped.
pub struct Texture {
    handle: Buffer<u8>,
}

/// A surface of a device. Its handle means nothing any more once it is dropped.
pub struct Surface {
    handle: Buffer<u8>,
}

impl Device {
    /// Allocates an array of uninitialised texels, with a name for reports.
    pub fn array(&self, name: &str, shape: ArrayShape) -> Result<Array, DeviceError> {
        if let Some(mistake) = shape.mistake() {
            return Err(DeviceError::Image { mistake });
        }
        let too_large = DeviceError::OutOfMemory { asked: u64::MAX, free: self.free_memory() };
        let (levels, bytes) = shape.layout().ok_or(too_large)?;
        let buffer = self.allocate::<u8>(name, bytes as usize, AllocationKind::Array)?;
        let image = Image {
            base: buffer.address(),
            geometry: shape.geometry,
            format: shape.format,
            levels,
            is_mipmapped: shape.levels.is_some(),
        };
        Ok(Array { buffer: Arc::new(buffer), shape, image })
    }

    /// Makes a texture, with a name for reports. It keeps none of the memory that the image is in.
    pub fn texture(&self, name: &str, image: Image, sampler: Sampler) -> Result<Texture, DeviceError> {
        Ok(Texture { handle: self.handle(name, Object::Texture(image, sampler))? })
    }

    /// Makes a surface of the first level of an image, with a name for reports. It keeps none of the memory.
    pub fn surface(&self, name: &str, image: Image) -> Result<Surface, DeviceError> {
        Ok(Surface { handle: self.handle(name, Object::Surface(image))? })
    }

    /// Binds a variable of a module, `.texref`, to a texture, for launches from now on.
    pub fn bind_texture(&self, variable: u64, image: Image, sampler: Sampler) -> Result<(), DeviceError> {
        self.bind(variable, Object::Texture(image, sampler))
    }

    /// Binds a variable of a module, `.surfref`, to the first level of an image, for launches from now on.
    pub fn bind_surface(&self, variable: u64, image: Image) -> Result<(), DeviceError> {
        self.bind(variable, Object::Surface(image))
    }

    fn bind(&self, variable: u64, object: Object) -> Result<(), DeviceError> {
        let object = checked(object)?;
        let memory = self.inner.memory();
        let found = memory.map.lookup(variable);
        let found = found.filter(|found| found.kind == AllocationKind::Variable && found.base == variable);
        let found = found.filter(|found| !found.freed);
        found.ok_or(DeviceError::NoMemory { address: variable, bytes: 8 })?.bind(Some(object));
        Ok(())
    }

    fn handle(&self, name: &str, object: Object) -> Result<Buffer<u8>, DeviceError> {
        let object = checked(object)?;
        let handle = self.allocate::<u8>(name, 0, AllocationKind::Handle)?;
        handle.allocation.bind(Some(object));
        Ok(handle)
    }
}

/// An object that makes sense.
fn checked(object: Object) -> Result<Object, DeviceError> {
    let mistake = match &object {
        Object::Texture(image, sampler) => sampler.mistake(image),
        Object::Surface(image) => image.mistake(),
    };
    mistake.map_or(Ok(object), |mistake| Err(DeviceError::Image { mistake }))
}

impl Texture {
    /// What kernels know it by; never 0.
    pub fn handle(&self) -> u64 {
        self.handle.address()
    }
}

impl Surface {
    /// What kernels know it by; never 0.
    pub fn handle(&self) -> u64 {
        self.handle.address()
    }
}

impl Array {
    /// What it is made of.
    pub fn shape(&self) -> ArrayShape {
        self.shape
    }

    /// Its texels.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// One level as an array: it shares the texels. `None` if there is no such level.
    pub fn level(&self, level: u32) -> Option<Array> {
        let image = self.image.level(level)?;
        let Level { width, height, slices, .. } = image.levels[0];
        let shape = ArrayShape { width, height, slices, levels: None, ..self.shape };
        Some(Array { buffer: self.buffer.clone(), shape, image })
    }

    /// Copies the texels of its first level in, one behind the other without gaps, after the launches so far.
    pub fn write(&self, texels: &[u8]) -> Result<(), DeviceError> {
        self.buffer.synchronize();
        let rows = self.rows();
        let bytes = rows.len() * rows.first().map_or(0, |row| row.bytes() as usize);
        if texels.len() != bytes {
            return Err(DeviceError::Length { buffer: bytes, slice: texels.len() });
        }
        let chunks = texels.chunks(bytes / rows.len().max(1));
        rows.iter().zip(chunks).try_for_each(|(row, texels)| row.write(0, texels))
    }

    /// The texels of its first level, one behind the other without gaps, after the launches so far.
    pub fn read(&self) -> Result<Vec<u8>, DeviceError> {
        self.buffer.synchronize();
        let mut texels = Vec::new();
        for row in self.rows() {
            let at = texels.len();
            texels.resize(at + row.bytes() as usize, 0);
            row.read(0, &mut texels[at..])?;
        }
        Ok(texels)
    }

    /// The rows of its first level.
    fn rows(&self) -> Vec<Span> {
        let level = self.image.levels[0];
        let bytes = u64::from(level.width) * u64::from(self.shape.format.bytes());
        let slices = (0..u64::from(level.slices)).map(|slice| slice * level.slice);
        let rows =
            slices.flat_map(|slice| (0..u64::from(level.height)).map(move |row| slice + row * level.pitch));
        rows.map(|offset| self.part(offset, bytes)).collect()
    }

    /// The bytes of its first level: rows and slices as the level says, from its beginning on.
    pub fn bytes(&self) -> Span {
        let level = self.image.levels[0];
        self.part(0, level.slice * u64::from(level.slices))
    }

    /// A range of the bytes of its first level.
    ///
    /// # Panics
    ///
    /// If the range is not inside the array.
    pub fn part(&self, offset: u64, bytes: u64) -> Span {
        self.buffer.span(self.image.levels[0].offset + offset, bytes)
    }
}
