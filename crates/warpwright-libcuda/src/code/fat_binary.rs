//! Fat binaries: code for several architectures in one container, as `nvcc` and `fatbinary` write it.
//!
//! ```text
//! ┌────────────┬─────────┬─────────────┬───────┐ ┌──────────────┬─────────┐ ┌──────────────┬─────────┐
//! │ 0xba55ed50 │ version │ header size │ bytes │ │ entry header │ payload │ │ entry header │ payload │ …
//! │ u32        │ u16     │ u16         │ u64   │ │              │         │ │              │         │
//! └────────────┴─────────┴─────────────┴───────┘ └──────────────┴─────────┘ └──────────────┴─────────┘
//!
//! wrapper, in the data of an executable: 0x466243b1, version, address of the container
//! ```
//!
//! NVIDIA publishes no description. The fields were read off the output of `nvcc` 11 to 13.5, and the tools `fatbinary`
//! and `cuobjdump` agree with them. Numbers are little-endian.

use super::image::MAX_TEXT_BYTES;
use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;
use warpwright_ptx::ir::{Arch, ArchVariant};

/// First bytes of the container, and of the wrapper that leads to it.
pub(super) const CONTAINER: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();
pub(super) const WRAPPER: [u8; 4] = 0x4662_43b1_u32.to_le_bytes();

/// Bytes of the container's header.
pub(super) const HEADER: usize = 16;
/// Where the wrapper has the address of the container.
pub(super) const WRAPPED_AT: usize = 8;

/// Bytes of an entry's header that are read; a newer one may be longer.
const ENTRY_HEADER: usize = 64;

/// Kinds of entries.
const PTX: u64 = 1;
const MACHINE_CODE: u64 = 2;
const LTO_IR: u64 = 8;

/// Flags of an entry.
const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;
const SPECIFIC: u64 = 0x10_0000;
const FAMILY: u64 = 0x20_0000;

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FatBinary {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// The compression of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Plain,
    Lz4,
    Zstd,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    kind: u64,
    arch: Arch,
    packing: Packing,
    /// Bytes of the payload once it is decompressed.
    unpacked: u64,
    /// Where the payload is.
    payload: Range<usize>,
    /// Where the next entry begins.
    end: usize,
}

/// Why a container has no code for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// The container contradicts itself there.
    Damaged(&'static str),
    /// It has PTX for other targets alone than the device's.
    OtherTargets(Vec<Arch>, Arch),
    /// It has no PTX for the device; machine code for these architectures, if any.
    NoPtx(Vec<Arch>, Arch),
    /// It has code for optimisation at link time, for these architectures, and no other, not for the device either.
    LtoIr(Vec<Arch>, Arch),
}

impl FatBinary {
    /// The size of the container whose header this is.
    pub(super) fn size(header: &[u8]) -> Result<usize, Unusable> {
        let damaged = Unusable::Damaged("its header");
        let body = number(header, 8, 8).filter(|body| *body < MAX_TEXT_BYTES);
        match (number(header, 4, 2), number(header, 6, 2), body) {
            (Some(1), Some(length), Some(body)) if length >= HEADER as u64 => {
                usize::try_from(length + body).map_err(|_| damaged)
            }
            _ => Err(damaged),
        }
    }

    /// Reads a container. What follows it is left alone.
    pub(super) fn read(bytes: &[u8]) -> Result<FatBinary, Unusable> {
        let size = FatBinary::size(bytes)?;
        let bytes = bytes.get(..size).ok_or(Unusable::Damaged("its size"))?.to_vec();
        let mut at = number(&bytes, 6, 2).unwrap_or_default() as usize;
        let mut entries = Vec::new();
        while at < bytes.len() {
            let entry = Entry::read(&bytes, at).ok_or(Unusable::Damaged("an entry"))?;
            at = entry.end;
            entries.push(entry);
        }
        Ok(FatBinary { bytes, entries })
    }

    /// Reads containers that follow one another, with zeros between them: a section of an object.
    pub(super) fn read_all(mut bytes: &[u8]) -> Result<Vec<FatBinary>, Unusable> {
        let mut all = Vec::new();
        while let Some(start) = bytes.iter().position(|byte| *byte != 0) {
            bytes = &bytes[start..];
            if !bytes.starts_with(&CONTAINER) {
                return Err(Unusable::Damaged("its section"));
            }
            let binary = FatBinary::read(bytes)?;
            bytes = &bytes[binary.bytes.len()..];
            all.push(binary);
        }
        Ok(all)
    }

    /// The text of the best PTX for a device: that of the latest target which the device runs, the most specific one
    /// of several.
    pub(super) fn ptx(&self, device: Arch) -> Result<Cow<'_, [u8]>, Unusable> {
        let of_kind = |kind| self.entries.iter().filter(move |entry| entry.kind == kind);
        let targets = |kind| of_kind(kind).map(|entry| entry.arch).collect();
        let fitting = of_kind(PTX).filter(|entry| device.runs(entry.arch));
        match fitting.max_by_key(|entry| (entry.arch.sm, entry.arch.variant != ArchVariant::Base)) {
            Some(entry) => self.payload(entry).map(without_end),
            None if of_kind(PTX).next().is_some() => Err(Unusable::OtherTargets(targets(PTX), device)),
            None if of_kind(MACHINE_CODE).next().is_none() && of_kind(LTO_IR).next().is_some() => {
                Err(Unusable::LtoIr(targets(LTO_IR), device))
            }
            None => Err(Unusable::NoPtx(targets(MACHINE_CODE), device)),
        }
    }

    /// Whether any of its code, for whatever target, has a text in it, such as a name.
    pub(super) fn mentions(&self, text: &[u8]) -> bool {
        let mentions = |code: Cow<'_, [u8]>| code.windows(text.len()).any(|window| window == text);
        self.entries.iter().any(|entry| self.payload(entry).is_ok_and(mentions))
    }

    fn payload(&self, entry: &Entry) -> Result<Cow<'_, [u8]>, Unusable> {
        let packed = &self.bytes[entry.payload.clone()];
        let damaged = Unusable::Damaged("its compressed text");
        if entry.unpacked > MAX_TEXT_BYTES {
            return Err(damaged);
        }
        let unpacked = match entry.packing {
            Packing::Plain => return Ok(packed.into()),
            Packing::Lz4 => {
                // A byte of a block stands for 255 bytes at most, so a wrong size cannot ask for more than that.
                let size = usize::try_from(entry.unpacked).ok();
                let size = size.filter(|size| size / 256 <= packed.len()).ok_or(damaged.clone())?;
                lz4_flex::block::decompress(packed, size).map_err(|_| damaged.clone())?
            }
            Packing::Zstd => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(packed).map_err(|_| damaged.clone())?;
                let mut text = Vec::new();
                decoder.take(entry.unpacked + 1).read_to_end(&mut text).map_err(|_| damaged.clone())?;
                text
            }
        };
        if unpacked.len() as u64 == entry.unpacked { Ok(unpacked.into()) } else { Err(damaged) }
    }
}

impl Entry {
    fn read(bytes: &[u8], at: usize) -> Option<Entry> {
        let header = &bytes[at..];
        let field = |offset, width| number(header, offset, width);
        let (header_size, padded) = (field(4, 4)?, field(8, 8)?);
        let from = at.checked_add(usize::try_from(header_size).ok()?)?;
        let end = from.checked_add(usize::try_from(padded).ok()?)?;
        if header_size < ENTRY_HEADER as u64 || end > bytes.len() {
            return None;
        }
        let flags = field(40, 8)?;
        let variant = match (flags & SPECIFIC != 0, flags & FAMILY != 0) {
            (true, _) => ArchVariant::Specific,
            (false, true) => ArchVariant::Family,
            (false, false) => ArchVariant::Base,
        };
        let packing = match (flags & LZ4 != 0, flags & ZSTD != 0) {
            (false, false) => Packing::Plain,
            (true, false) => Packing::Lz4,
            (false, true) => Packing::Zstd,
            (true, true) => return None,
        };
        // Payloads are padded. The size without that stands only where they are compressed.
        let packed = usize::try_from(field(16, 4)?).ok()?;
        let to = if packing == Packing::Plain { end } else { from.checked_add(packed)? };
        if to > end {
            return None;
        }
        Some(Entry {
            kind: field(0, 2)?,
            arch: Arch { sm: u16::try_from(field(28, 4)?).ok()?, variant },
            packing,
            unpacked: field(56, 8)?,
            payload: from..to,
            end,
        })
    }
}

/// A text without the zero byte that ends it, and the padding behind that.
fn without_end(text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    match text {
        Cow::Borrowed(text) => text[..end].into(),
        Cow::Owned(mut text) => {
            text.truncate(end);
            text.into()
        }
    }
}

/// The number of that many bytes at an offset.
fn number(bytes: &[u8], offset: usize, width: usize) -> Option<u64> {
    let mut number = [0; 8];
    number[..width].copy_from_slice(bytes.get(offset..offset.checked_add(width)?)?);
    Some(u64::from_le_bytes(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    const TEXT: &[u8] = b".version 8.0\n.target sm_80\n// again and again and again and again\n";
    /// The same as compilers write it.
    const ENDED: &[u8] = b".version 8.0\n.target sm_80\n// again and again and again and again\n\0";

    /// An entry as `fatbinary` writes it.
    fn entry(kind: u16, arch: Arch, flags: u64, packed: &[u8]) -> Vec<u8> {
        let variant = match arch.variant {
            ArchVariant::Base => 0,
            ArchVariant::Specific => SPECIFIC,
            ArchVariant::Family => FAMILY,
        };
        let padded = packed.len().next_multiple_of(8);
        let mut entry = vec![0; ENTRY_HEADER + padded];
        let mut set = |at: usize, bytes: &[u8]| entry[at..at + bytes.len()].copy_from_slice(bytes);
        set(0, &kind.to_le_bytes());
        set(4, &(ENTRY_HEADER as u32).to_le_bytes());
        set(8, &(padded as u64).to_le_bytes());
        if flags & (LZ4 | ZSTD) != 0 {
            set(16, &(packed.len() as u32).to_le_bytes());
            set(56, &(ENDED.len() as u64).to_le_bytes());
        }
        set(28, &u32::from(arch.sm).to_le_bytes());
        set(40, &(flags | variant).to_le_bytes());
        set(ENTRY_HEADER, packed);
        entry
    }

    fn container(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut bytes = CONTAINER.to_vec();
        bytes.extend([1, 0, HEADER as u8, 0]);
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn text(bytes: &[u8], device: Arch) -> Result<Vec<u8>, Unusable> {
        Ok(FatBinary::read(bytes)?.ptx(device)?.into_owned())
    }

    fn packed() -> [(u64, Vec<u8>); 3] {
        [
            (0, ENDED.to_vec()),
            (LZ4, lz4_flex::block::compress(ENDED)),
            (ZSTD, compress_to_vec(ENDED, CompressionLevel::Fastest)),
        ]
    }

    #[test]
    fn every_packing_is_read() {
        for (flags, packed) in packed() {
            let binary = container(&[entry(1, Arch::sm(80), flags, &packed)]);
            assert_eq!(text(&binary, Arch::sm(90)), Ok(TEXT.to_vec()), "{flags:#x}");
            let followed = [&binary[..], b"garbage"].concat();
            assert_eq!(text(&followed, Arch::sm(90)), Ok(TEXT.to_vec()), "{flags:#x}");
        }
    }

    #[test]
    fn the_best_ptx_for_the_device_is_taken() {
        let ptx = |arch: Arch| entry(1, arch, 0, arch.to_string().as_bytes());
        let all = container(&[
            entry(2, Arch::sm(90), 0, b"\x7fELF"),
            ptx(Arch::sm(75)),
            ptx(Arch::specific(90)),
            ptx(Arch::sm(90)),
            entry(8, Arch::sm(90), 0, b"NVVM"),
            ptx(Arch::sm(80)),
            ptx(Arch::family(100)),
        ]);
        for (device, expected) in
            [(75, "sm_75"), (80, "sm_80"), (89, "sm_80"), (90, "sm_90a"), (100, "sm_100f"), (120, "sm_90")]
        {
            assert_eq!(text(&all, Arch::sm(device)), Ok(expected.into()), "sm_{device}");
        }
        let others = vec![Arch::sm(75), Arch::specific(90), Arch::sm(90), Arch::sm(80), Arch::family(100)];
        assert_eq!(text(&all, Arch::sm(70)), Err(Unusable::OtherTargets(others, Arch::sm(70))));
        let code = container(&[entry(2, Arch::sm(80), 0, b"ELF"), entry(2, Arch::sm(90), LZ4, b"ELF")]);
        assert_eq!(
            text(&code, Arch::sm(90)),
            Err(Unusable::NoPtx(vec![Arch::sm(80), Arch::sm(90)], Arch::sm(90)))
        );
        assert_eq!(text(&container(&[]), Arch::sm(90)), Err(Unusable::NoPtx(vec![], Arch::sm(90))));
        let lto = entry(8, Arch::sm(80), 0, b"IR");
        let sm_80 = vec![Arch::sm(80)];
        let alone = text(&container(std::slice::from_ref(&lto)), Arch::sm(90));
        assert_eq!(alone, Err(Unusable::LtoIr(sm_80.clone(), Arch::sm(90))));
        let with_code = container(&[lto, entry(2, Arch::sm(80), 0, b"ELF")]);
        assert_eq!(text(&with_code, Arch::sm(90)), Err(Unusable::NoPtx(sm_80, Arch::sm(90))));
    }

    #[test]
    fn names_are_found_in_code_of_any_kind_and_packing() {
        for kind in [PTX, MACHINE_CODE] {
            for (flags, packed) in packed() {
                let binary = container(&[entry(kind as u16, Arch::sm(121), flags, &packed)]);
                let binary = FatBinary::read(&binary).unwrap();
                assert!(
                    binary.mentions(b"again and again") && !binary.mentions(b"again and never"),
                    "{flags:#x}"
                );
            }
        }
    }

    /// No damage ends otherwise than in a refusal, or in a text if it hit what says nothing.
    #[test]
    fn damage_is_refused() {
        for (flags, packed) in packed() {
            let binary = container(&[entry(1, Arch::sm(80), flags, &packed)]);
            for length in CONTAINER.len()..binary.len() {
                let cut = text(&binary[..length], Arch::sm(90));
                assert!(matches!(cut, Err(Unusable::Damaged(_))), "{length} bytes: {cut:?}");
            }
            for at in CONTAINER.len()..binary.len() {
                for change in [0xff, 0x80, 1] {
                    let mut damaged = binary.clone();
                    damaged[at] ^= change;
                    let _ = text(&damaged, Arch::sm(90));
                }
            }
        }
        let longer = |flags: u64, packed: &[u8]| {
            let mut entry = entry(1, Arch::sm(80), flags, packed);
            entry[56] += 1;
            text(&container(&[entry]), Arch::sm(90))
        };
        for (flags, packed) in &packed()[1..] {
            assert!(longer(*flags, packed).is_err(), "{flags:#x}");
        }
    }
}
