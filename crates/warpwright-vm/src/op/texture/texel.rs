//! What texels mean: from their bytes to what a texture reads, and from numbers to bytes.

use crate::memory::{Channel, Sampler, TexelFormat};
use crate::num::half::{f16_to_f32, f32_to_f16};

/// What a texture reads of a texel: floating-point numbers by their bits, or integers. Channels that it lacks are 0, and
/// the last one is 1.
pub(super) fn decode(format: TexelFormat, sampler: &Sampler, bytes: &[u8]) -> [u32; 4] {
    let floats = sampler.reads_floats(format.channel);
    let one = if floats { 1f32.to_bits() } else { 1 };
    let mut words = [0, 0, 0, one];
    let size = format.channel.bytes() as usize;
    let channels = bytes.chunks_exact(size).take(format.channels as usize);
    for (index, (word, bytes)) in words.iter_mut().zip(channels).enumerate() {
        let mut value = [0; 4];
        value[..size].copy_from_slice(bytes);
        let bits = u32::from_le_bytes(value);
        *word = channel(format.channel, floats, bits);
        if sampler.srgb && index < 3 {
            *word = (linear(f64::from(f32::from_bits(*word))) as f32).to_bits();
        }
    }
    words
}

/// A channel by its bits; a normalized integer if that is to be a floating-point number.
fn channel(channel: Channel, floats: bool, bits: u32) -> u32 {
    let signed = match channel {
        Channel::S8 => bits as u8 as i8 as i32,
        Channel::S16 => bits as u16 as i16 as i32,
        _ => bits as i32,
    };
    let normalized = |value: f64, max: f64| ((value / max).max(-1.0) as f32).to_bits();
    match channel {
        Channel::F32 => bits,
        Channel::F16 => f16_to_f32(bits as u16).to_bits(),
        Channel::U8 if floats => normalized(bits.into(), u8::MAX.into()),
        Channel::U16 if floats => normalized(bits.into(), u16::MAX.into()),
        Channel::S8 if floats => normalized(signed.into(), i8::MAX.into()),
        Channel::S16 if floats => normalized(signed.into(), i16::MAX.into()),
        _ => signed as u32,
    }
}

/// A linear intensity from one of sRGB (IEC 61966-2-1).
fn linear(x: f64) -> f64 {
    if x <= 0.04045 { x / 12.92 } else { ((x + 0.055) / 1.055).powf(2.4) }
}

/// The bytes of a texel with these channels: floating-point numbers by their bits, or integers. Numbers that the format
/// does not have become the nearest ones.
pub(super) fn encode(format: TexelFormat, words: [u32; 4]) -> [u8; 16] {
    let mut bytes = [0; 16];
    let size = format.channel.bytes() as usize;
    for (to, word) in bytes.chunks_exact_mut(size).zip(words).take(format.channels as usize) {
        let signed = word as i32;
        let bits = match format.channel {
            Channel::U8 => word.min(u8::MAX.into()),
            Channel::U16 => word.min(u16::MAX.into()),
            Channel::S8 => signed.clamp(i8::MIN.into(), i8::MAX.into()) as u32,
            Channel::S16 => signed.clamp(i16::MIN.into(), i16::MAX.into()) as u32,
            Channel::F16 => f32_to_f16(f32::from_bits(word)).into(),
            Channel::U32 | Channel::S32 | Channel::F32 => word,
        };
        to.copy_from_slice(&bits.to_le_bytes()[..size]);
    }
    bytes
}
