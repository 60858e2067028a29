//! Code from a client: its kind, its end, and the images that our linker makes.
//!
//! A client passes an address without a length, so the content must show where it ends: PTX by a zero byte, our own
//! image and fat binaries by their headers. Machine code is recognised by its first bytes, and refused.
//!
//! ```text
//! ┌───────┬────┬──────────────┬───────┬──────────┬─────────────┬───┐
//! │ magic │ sm │ header check │ bytes │ check    │ PTX         │ 0 │   little-endian
//! │ 8     │ 4  │ 4            │ 8     │ 8        │ bytes       │ 1 │
//! └───────┴────┴──────────────┴───────┴──────────┴─────────────┴───┘
//! ```
//!
//! Both checks are checksums of the fields before them, the second one also of the text: an image that was stored in a
//! file and damaged there is refused, as a cubin would be.

use super::begins_as_ptx;
use super::fat_binary::{self, FatBinary, Unusable};
use super::object;
use crate::report::log;
use crate::types::{In, Status};
use std::borrow::Cow;
use std::ffi::{CStr, c_char};
use warpwright_ptx::ir::Arch;

const MAGIC: [u8; 8] = *b"\x9bWWIMG\x0a\x01";
const HEADER: usize = 32;

/// The maximum size of an image's text, in bytes.
pub(super) const MAX_TEXT_BYTES: u64 = 1 << 32;

/// Code that can be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Image {
    /// A text.
    Ptx(Vec<u8>),
    /// An image of the linker, for a target.
    Linked { arch: Arch, ptx: Vec<u8> },
    /// Code for several targets.
    Fat(FatBinary),
}

/// Why code cannot run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Cubin,
    Fat(Unusable),
    Damaged,
    Empty,
    NotPtx,
    Target {
        linked: Arch,
        device: Arch,
    },
    /// An object that contradicts itself, or is for another system.
    Object,
    NoObject,
    /// An archive that contradicts itself.
    Archive,
    NoArchive,
    ThinArchive,
}

impl Refused {
    /// Logs advice about code of that name, and returns the client's status.
    pub(super) fn status(self, name: &str) -> Status {
        let ptx_for = |device: &Arch| {
            let sm = device.sm;
            format!(
                "give `nvcc` PTX to put in: `-gencode arch=compute_{sm},code=compute_{sm}`, or for an earlier one"
            )
        };
        let list = |arches: &[Arch]| {
            let names: Vec<String> = arches.iter().map(Arch::to_string).collect();
            names.join(", ")
        };
        match &self {
            Refused::Cubin => log::misuse(&format_args!(
                "{name} is a cubin, machine code for a real GPU, and a virtual one runs PTX: compile to PTX (`nvcc \
                 -ptx`, `nvrtcGetPTX`, `ptxas` left out) and load that",
            )),
            Refused::Fat(Unusable::NoPtx(arches, device)) => log::misuse(&format_args!(
                "the fat binary of {name} has no PTX, which is what a virtual GPU runs{}{}: {}",
                if arches.is_empty() { "" } else { ", but machine code alone, for " },
                list(arches),
                ptx_for(device),
            )),
            Refused::Fat(Unusable::LtoIr(arches, device)) => log::misuse(&format_args!(
                "the fat binary of {name} has LTO-IR alone, for {}, and a virtual GPU runs PTX: {}",
                list(arches),
                ptx_for(device),
            )),
            Refused::Fat(Unusable::OtherTargets(arches, device)) => log::misuse(&format_args!(
                "the fat binary of {name} has PTX for {}, which a device of {device} does not run: choose one that \
                 does (`exec --sm {}`), or {}",
                list(arches),
                arches.iter().map(|arch| arch.sm).min().unwrap_or(device.sm),
                ptx_for(device),
            )),
            Refused::Fat(Unusable::Damaged(what)) => {
                log::misuse(&format_args!("{name} is a fat binary, and {what} is damaged: compile again"));
            }
            Refused::Damaged => log::misuse(&format_args!(
                "{name} is an image of this library's linker, and damaged: link again"
            )),
            Refused::Empty => log::misuse(&format_args!("{name} is empty")),
            Refused::NotPtx => log::misuse(&format_args!("{name} is no PTX, which begins with `.version`")),
            Refused::Target { linked, device } => log::misuse(&format_args!(
                "{name} was linked for {linked}, which a device of {device} does not run"
            )),
            Refused::Object => log::misuse(&format_args!(
                "{name} is an object that is damaged, or none of a system of 64 bits: compile again"
            )),
            Refused::NoObject => log::misuse(&format_args!(
                "{name} is no object, which is an ELF file: say what kind of input it is"
            )),
            Refused::Archive => {
                log::misuse(&format_args!("{name} is an archive that is damaged: make it again"))
            }
            Refused::NoArchive => log::misuse(&format_args!(
                "{name} is no archive, which begins with `!<arch>`: say what kind of input it is"
            )),
            Refused::ThinArchive => log::misuse(&format_args!(
                "{name} is a thin archive, which has paths and no members: make one without `T`"
            )),
        }
        match self {
            Refused::Cubin | Refused::Target { .. } => Status::NO_BINARY_FOR_GPU,
            Refused::Fat(Unusable::NoPtx(..) | Unusable::LtoIr(..) | Unusable::OtherTargets(..)) => {
                Status::NO_BINARY_FOR_GPU
            }
            _ => Status::INVALID_IMAGE,
        }
    }
}

/// What messages call code that came without a name.
const CODE: &str = "the code";

impl Image {
    /// Reads code by its address alone.
    pub(crate) fn at(code: In<u8>) -> Result<Image, Status> {
        if code.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // One byte after the other, since a text may end before a magic number would.
        let begins = |magic: &[u8]| {
            // SAFETY: what stands before was part of the magic number, and so the code goes on.
            let byte = |at: usize| unsafe { code.at(at) }.get_if();
            magic.iter().enumerate().all(|(at, expected)| byte(at) == Some(*expected))
        };
        if begins(&MAGIC) {
            let header = code.get_all(HEADER)?;
            let bytes = text_length(&header).map_err(|refused| refused.status(CODE))?;
            return Image::linked(&code.get_all(HEADER + bytes)?).map_err(|refused| refused.status(CODE));
        }
        if begins(&object::ELF) {
            return Err(Refused::Cubin.status(CODE));
        }
        if begins(&fat_binary::CONTAINER) {
            let size = FatBinary::size(&code.get_all(fat_binary::HEADER)?);
            let bytes = code.get_all(size.map_err(|unusable| Refused::Fat(unusable).status(CODE))?)?;
            return Image::fat(&bytes).map_err(|refused| refused.status(CODE));
        }
        if begins(&fat_binary::WRAPPER) {
            // SAFETY: the magic number says that a wrapper stands here, which has the address of a container.
            let container: In<u8> = unsafe { code.at(fat_binary::WRAPPED_AT).cast::<In<u8>>() }.get()?;
            if container.get_all(fat_binary::CONTAINER.len())? != fat_binary::CONTAINER {
                return Err(Refused::Fat(Unusable::Damaged("its wrapper")).status(CODE));
            }
            return Image::at(container);
        }
        // SAFETY: the client's pointer, which the interface says leads to PTX that ends with a zero byte, where it
        // leads to nothing else.
        let text = unsafe { CStr::from_ptr(code.as_ptr().cast::<c_char>()) };
        Image::ptx(text.to_bytes()).map_err(|refused| refused.status(CODE))
    }

    /// Reads bytes of a known length: a file, or an input of the linker. The name is for messages.
    pub(crate) fn of(bytes: &[u8], name: &str) -> Result<Image, Status> {
        let image = if bytes.starts_with(&MAGIC) {
            Image::linked(bytes)
        } else if object::is_elf(bytes) {
            Err(Refused::Cubin)
        } else if bytes.starts_with(&fat_binary::CONTAINER) {
            Image::fat(bytes)
        } else {
            // Clients count the end of a text, or do not.
            Image::ptx(bytes.split(|byte| *byte == 0).next().unwrap_or_default())
        };
        image.map_err(|refused| refused.status(name))
    }

    /// Its text for a device. The linker is told the kind of an input, and elsewhere a text must begin like PTX.
    pub(super) fn loadable(&self, device: Arch) -> Result<Cow<'_, [u8]>, Status> {
        let text = self.text(device).and_then(|text| match self {
            Image::Ptx(_) if !begins_as_ptx(&text) => Err(Refused::NotPtx),
            Image::Linked { arch, .. } if !device.runs(*arch) => {
                Err(Refused::Target { linked: *arch, device })
            }
            _ => Ok(text),
        });
        text.map_err(|refused| refused.status(CODE))
    }

    /// Its text for a target of the linker. The name is for messages.
    pub(super) fn linkable(&self, target: Arch, name: &str) -> Result<Cow<'_, [u8]>, Status> {
        self.text(target).map_err(|refused| refused.status(name))
    }

    /// Whether it has a text for a target.
    pub(super) fn is_for(&self, target: Arch) -> bool {
        self.text(target).is_ok()
    }

    /// Whether it is a fat binary without PTX for a target whose code for others mentions a function.
    pub(super) fn lacks(&self, target: Arch, function: &str) -> bool {
        match self {
            Image::Fat(binary) => binary.ptx(target).is_err() && binary.mentions(function.as_bytes()),
            _ => false,
        }
    }

    fn text(&self, target: Arch) -> Result<Cow<'_, [u8]>, Refused> {
        match self {
            Image::Ptx(text) | Image::Linked { ptx: text, .. } => Ok(text.into()),
            Image::Fat(binary) => binary.ptx(target).map_err(Refused::Fat),
        }
    }

    fn fat(bytes: &[u8]) -> Result<Image, Refused> {
        FatBinary::read(bytes).map(Image::Fat).map_err(Refused::Fat)
    }

    fn ptx(text: &[u8]) -> Result<Image, Refused> {
        let is_blank = text.iter().all(u8::is_ascii_whitespace);
        if is_blank { Err(Refused::Empty) } else { Ok(Image::Ptx(text.to_vec())) }
    }

    fn linked(bytes: &[u8]) -> Result<Image, Refused> {
        let length = text_length(bytes)?;
        let text = bytes.get(HEADER..HEADER + length).ok_or(Refused::Damaged)?;
        if sum(&[&bytes[..24], text]) != u64_at(bytes, 24).ok_or(Refused::Damaged)? {
            return Err(Refused::Damaged);
        }
        let sm = bytes.get(8..10).and_then(|sm| sm.try_into().ok()).map(u16::from_le_bytes);
        let arch = Arch::sm(sm.ok_or(Refused::Damaged)?);
        Ok(Image::Linked { arch, ptx: text.to_vec() })
    }
}

/// The image that the linker makes of PTX for a target.
pub(crate) fn link(arch: Arch, ptx: &[u8]) -> Vec<u8> {
    let mut image = MAGIC.to_vec();
    image.extend(u32::from(arch.sm).to_le_bytes());
    let length = (ptx.len() as u64).to_le_bytes();
    image.extend(header_check(&image, &length).to_le_bytes());
    image.extend(length);
    image.extend(sum(&[&image, ptx]).to_le_bytes());
    image.extend(ptx);
    image.push(0);
    image
}

/// The length of an image's text. Its header is whole, or this is an error.
fn text_length(header: &[u8]) -> Result<usize, Refused> {
    let check = header.get(12..16).and_then(|check| check.try_into().ok()).map(u32::from_le_bytes);
    let length = header.get(16..24).ok_or(Refused::Damaged)?;
    if check != Some(header_check(&header[..12], length)) {
        return Err(Refused::Damaged);
    }
    let length = u64_at(header, 16).filter(|length| *length < MAX_TEXT_BYTES).ok_or(Refused::Damaged)?;
    usize::try_from(length).map_err(|_| Refused::Damaged)
}

fn header_check(begin: &[u8], length: &[u8]) -> u32 {
    let sum = sum(&[begin, length]);
    (sum ^ sum >> 32) as u32
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

/// FNV-1a over parts that follow one another.
fn sum(parts: &[&[u8]]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    parts.iter().flat_map(|part| part.iter()).fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b".version 8.0\n.target sm_80\n";

    fn refused(bytes: &[u8]) -> Status {
        Image::of(bytes, "").unwrap_err()
    }

    fn at(bytes: &[u8]) -> Result<Image, Status> {
        // SAFETY: the texts of the tests end with a zero byte, where they are no machine code.
        Image::at(unsafe { In::new(bytes.as_ptr()) })
    }

    #[test]
    fn texts_end_with_a_zero_or_their_length() {
        let with_end = [TEXT, b"\0\0garbage"].concat();
        assert_eq!(at(&with_end), Ok(Image::Ptx(TEXT.to_vec())));
        assert_eq!(Image::of(&with_end, ""), Ok(Image::Ptx(TEXT.to_vec())));
        assert_eq!(Image::of(TEXT, ""), Ok(Image::Ptx(TEXT.to_vec())));
        // Shorter than a magic number.
        assert_eq!(at(b"\x7f\0"), Ok(Image::Ptx(b"\x7f".to_vec())));
    }

    #[test]
    fn machine_code_is_refused() {
        let cubin = b"\x7fELF\x02\x01\x01\x33";
        assert_eq!(refused(cubin), Status::NO_BINARY_FOR_GPU);
        assert_eq!(at(cubin), Err(Status::NO_BINARY_FOR_GPU));
        for nothing in [&b"\0"[..], b" \n\t\0"] {
            assert_eq!(refused(nothing), Status::INVALID_IMAGE);
            assert_eq!(at(nothing), Err(Status::INVALID_IMAGE));
        }
        assert_eq!(Image::at(In::null()), Err(Status::INVALID_VALUE));
    }

    #[test]
    fn a_linked_image_says_where_it_ends() {
        let image = link(Arch::sm(90), TEXT);
        let expected = Image::Linked { arch: Arch::sm(90), ptx: TEXT.to_vec() };
        let followed = [&image[..], &[0xff; 64]].concat();
        assert_eq!(Image::of(&image, ""), Ok(expected.clone()));
        assert_eq!(at(&followed), Ok(expected));
    }

    #[test]
    fn a_damaged_image_is_refused() {
        let image = link(Arch::sm(90), TEXT);
        // The last byte is the end of the text, which is not read.
        for at_byte in MAGIC.len()..image.len() - 1 {
            let mut damaged = image.clone();
            damaged[at_byte] ^= 0x10;
            assert_eq!(refused(&damaged), Status::INVALID_IMAGE, "byte {at_byte}");
            assert_eq!(at(&damaged), Err(Status::INVALID_IMAGE), "byte {at_byte}");
        }
        for length in MAGIC.len()..image.len() - 1 {
            assert_eq!(refused(&image[..length]), Status::INVALID_IMAGE, "{length} bytes");
        }
    }
}
