//! A cached image as a file.
//!
//! ```text
//!  0  "wwimage\n"
//!  8  version of this format, u32 little-endian: 1
//! 12  zero, u32
//! 16  bytes of the image, u64 little-endian
//! 24  key, 32 bytes
//! 56  SHA-256 of the image, 32 bytes
//! 88  the image
//! ```
//!
//! Every byte is checked: those of the header have only one value for a key and an image, and the rest has a checksum.

use super::Key;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;

const MAGIC: [u8; 8] = *b"wwimage\n";
const FORMAT: u32 = 1;
const HEADER: usize = 88;

/// What is found where an image should be.
#[derive(Debug)]
pub(super) enum Read {
    /// It.
    Image {
        /// Its bytes.
        image: Vec<u8>,
        /// The file, open for reading.
        file: File,
    },
    /// Something else: cut off, changed, of another key, of another format, or no such file at all.
    Damaged,
    /// Nothing, or what cannot be read.
    Missing,
}

/// Bytes of the file of an image.
pub(super) fn size(image: &[u8]) -> u64 {
    (HEADER + image.len()) as u64
}

/// The header of an image's file.
fn header(key: &Key, image: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    header[16..24].copy_from_slice(&(image.len() as u64).to_le_bytes());
    header[24..56].copy_from_slice(key.bytes());
    header[56..].copy_from_slice(&Sha256::digest(image));
    header
}

/// Writes the file of an image.
pub(super) fn write(file: &mut File, key: &Key, image: &[u8]) -> io::Result<()> {
    file.write_all(&header(key, image))?;
    file.write_all(image)
}

/// Reads the file of an image, which has that many bytes at most.
pub(super) fn read(path: &Path, key: &Key, max: u64) -> Read {
    // What is no file is not opened: a pipe would wait for a writer.
    let Ok(found) = std::fs::metadata(path) else { return Read::Missing };
    if !found.is_file() || !(HEADER as u64..=max).contains(&found.len()) {
        return Read::Damaged;
    }
    let Ok(mut file) = File::open(path) else { return Read::Missing };
    let mut found_header = [0; HEADER];
    // Room for the file as it was, and no more than that is read: others may write to it.
    let mut image = Vec::with_capacity((found.len() as usize).saturating_sub(HEADER));
    let read = file.read_exact(&mut found_header).and_then(|()| {
        let rest = max.saturating_sub(HEADER as u64);
        (&mut file).take(rest).read_to_end(&mut image)
    });
    match read {
        Ok(_) if found_header == header(key, &image) => Read::Image { image, file },
        Ok(_) => Read::Damaged,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Read::Damaged,
        Err(_) => Read::Missing,
    }
}
