//! Objects of the host's compiler and archives of them, as `nvcc -dc` and `nvcc -lib` write them: their fat binaries.
//!
//! ```text
//! archive ─┬─ object ─┬─ __nv_relfatbin   fat binaries to be linked
//!          │          └─ .nv_fatbin       fat binaries that are programs by themselves: read where there are no others
//!          ├─ object …
//!          └─ symbol table, texts: left alone
//! ```

use super::fat_binary::FatBinary;
use super::image::Refused;
use ::object::elf::{ELFMAG, EM_CUDA, FileHeader64};
use ::object::endian::LittleEndian;
use ::object::read::Error;
use ::object::read::archive::ArchiveFile;
use ::object::read::elf::{FileHeader, SectionHeader};

const TO_LINK: &[u8] = b"__nv_relfatbin";
const LINKED: &[u8] = b".nv_fatbin";

/// First bytes of archives. Those of a thin one hold no members, but their paths.
pub(crate) const ARCHIVE: &[u8] = b"!<arch>\n";
const THIN_ARCHIVE: &[u8] = b"!<thin>\n";

/// First bytes of ELF files, which objects and cubins are.
pub(super) const ELF: [u8; 4] = ELFMAG;

/// The fat binaries of an object, none if all its code is the host's.
pub(super) fn of_object(bytes: &[u8]) -> Result<Vec<FatBinary>, Refused> {
    if !is_elf(bytes) {
        return Err(Refused::NoObject);
    }
    let damaged = |_: Error| Refused::Object;
    let header = FileHeader64::<LittleEndian>::parse(bytes).map_err(damaged)?;
    if header.e_machine(LittleEndian) == EM_CUDA {
        return Err(Refused::Cubin);
    }
    let sections = header.sections(LittleEndian, bytes).map_err(damaged)?;
    let named = |wanted: &[u8]| {
        let mut binaries = Vec::new();
        for section in sections.iter() {
            if sections.section_name(LittleEndian, section).map_err(damaged)? == wanted {
                let data = section.data(LittleEndian, bytes);
                binaries.extend(FatBinary::read_all(data.map_err(damaged)?).map_err(Refused::Fat)?);
            }
        }
        Ok(binaries)
    };
    let to_link = named(TO_LINK)?;
    if to_link.is_empty() { named(LINKED) } else { Ok(to_link) }
}

/// The objects of an archive, by name.
pub(super) fn of_archive(bytes: &[u8]) -> Result<Vec<(String, &[u8])>, Refused> {
    if bytes.starts_with(THIN_ARCHIVE) {
        return Err(Refused::ThinArchive);
    }
    if !bytes.starts_with(ARCHIVE) {
        return Err(Refused::NoArchive);
    }
    let damaged = |_: Error| Refused::Archive;
    let archive = ArchiveFile::parse(bytes).map_err(damaged)?;
    let mut objects = Vec::new();
    for member in archive.members() {
        let member = member.map_err(damaged)?;
        let data = member.data(bytes).map_err(damaged)?;
        if is_elf(data) {
            objects.push((String::from_utf8_lossy(member.name()).into_owned(), data));
        }
    }
    Ok(objects)
}

/// Whether bytes begin as an ELF file.
pub(crate) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(&ELF)
}
