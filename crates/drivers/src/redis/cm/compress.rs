//! Compressed values: two letters for the library, `:`, 0x1f, 0x8b, and the library's output.
//!
//! | letters | bytes |
//! |---|---|
//! | `gz`, formerly `zc` | a zlib stream (RFC 1950), as from PHP's `gzcompress` |
//! | `sn` | a raw snappy block, as from `snappy_compress` of the extension snappy |
//! | `l4` | length in four bytes, little-endian, and an lz4 block, as from `lz4_compress` of lz4 |
//! | `zs` | a zstd frame (RFC 8878), as from `zstd_compress` of the extension zstd |
//! | `lz` | an LZF stream of liblzf without a length, as from `lzf_compress` of lzf |
//!
//! A value that LZF cannot shorten becomes a stream of literals. The extension reserves 128 bytes
//! or a 25th more than the value for it.
//!
//! The level is 1, the module's default. The formats are those of the extensions, but another
//! library can produce different bytes for the same value.

use std::io::{Read, Write as _};

use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use lzf::LzfError;
use model::ErrorClass;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::CompressionLevel;
use workloads::store::StoreError;

use crate::fault;

/// The bytes after the letters.
const MARK: &[u8] = b":\x1f\x8b";
/// Bytes of the letters and the mark.
const PREFIX_BYTES: usize = 5;
/// Longest unpacked value; a longer one is an error before memory is allocated.
const VALUE_BYTES_MAX: usize = 512 << 20;
/// Longest run of literals in an LZF stream.
const LZF_LITERALS_MAX: usize = 32;

/// A compression library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// zlib, part of every PHP.
    Gzip,
    /// snappy.
    Snappy,
    /// lz4.
    Lz4,
    /// LZF.
    Lzf,
    /// zstd.
    Zstd,
}

impl Compression {
    /// Every library.
    pub const ALL: [Self; 5] = [Self::Gzip, Self::Snappy, Self::Lz4, Self::Lzf, Self::Zstd];

    /// Name in the module's setting `compression_lib`, where lz4 is `l4z`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Lzf => "lzf",
            Self::Zstd => "zstd",
        }
    }
}

/// Appends a value, compressed if a library is given.
pub(super) fn pack(
    value: &[u8],
    compression: Option<Compression>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let Some(compression) = compression else {
        out.extend_from_slice(value);
        return Ok(());
    };
    out.extend_from_slice(match compression {
        Compression::Gzip => b"gz",
        Compression::Snappy => b"sn",
        Compression::Lz4 => b"l4",
        Compression::Lzf => b"lz",
        Compression::Zstd => b"zs",
    });
    out.extend_from_slice(MARK);
    let failed = |problem: &dyn std::fmt::Display| {
        let message = format!("a value of {} bytes cannot be compressed: {problem}", value.len());
        StoreError::soft(ErrorClass::Other, message)
    };
    match compression {
        Compression::Gzip => {
            let mut encoder = ZlibEncoder::new(out, flate2::Compression::fast());
            let written = encoder.write_all(value).and_then(|()| encoder.finish().map(drop));
            return written.map_err(|e| failed(&e));
        }
        Compression::Snappy => {
            let packed = snap::raw::Encoder::new().compress_vec(value).map_err(|e| failed(&e))?;
            out.extend_from_slice(&packed);
        }
        Compression::Lz4 => {
            out.extend_from_slice(&lz4_flex::block::compress_prepend_size(value));
        }
        Compression::Lzf => match lzf::compress(value) {
            Ok(packed) => out.extend(packed),
            Err(LzfError::NoCompressionPossible) if !value.is_empty() => {
                as_lzf_literals(value, out);
            }
            Err(e) => return Err(failed(&e)),
        },
        Compression::Zstd => {
            out.extend(ruzstd::encoding::compress_to_vec(value, CompressionLevel::Fastest));
        }
    }
    Ok(())
}

/// Appends an LZF stream of literals only: each run is preceded by its length minus one.
fn as_lzf_literals(value: &[u8], out: &mut Vec<u8>) {
    for literals in value.chunks(LZF_LITERALS_MAX) {
        out.push(literals.len() as u8 - 1);
        out.extend_from_slice(literals);
    }
}

/// Appends the value before [`pack`]; an uncompressed value is copied.
pub(super) fn unpack(value: &[u8], out: &mut Vec<u8>) -> Result<(), StoreError> {
    if value.get(2..PREFIX_BYTES) != Some(MARK) {
        out.extend_from_slice(value);
        return Ok(());
    }
    let (letters, packed) = (&value[..2], &value[PREFIX_BYTES..]);
    let unpacked = match letters {
        b"gz" | b"zc" => unpack_zlib(packed),
        b"sn" => unpack_snappy(packed),
        b"l4" => unpack_lz4(packed),
        b"lz" => unpack_lzf(packed),
        b"zs" => unpack_zstd(packed),
        // The module returns values with unknown letters unchanged.
        _ => Some(value.to_vec()),
    };
    let Some(unpacked) = unpacked else {
        let letters = fault::printable(letters);
        let message = format!("a value is corrupt (expected format `{letters}`)");
        return Err(StoreError::soft(ErrorClass::Protocol, message));
    };
    out.extend_from_slice(&unpacked);
    Ok(())
}

fn unpack_zlib(packed: &[u8]) -> Option<Vec<u8>> {
    read_limited(ZlibDecoder::new(packed))
}

fn unpack_zstd(packed: &[u8]) -> Option<Vec<u8>> {
    read_limited(StreamingDecoder::new(packed).ok()?)
}

/// The whole output of a decoder; `None` if it is too long.
fn read_limited(decoder: impl Read) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    decoder.take(VALUE_BYTES_MAX as u64 + 1).read_to_end(&mut value).ok()?;
    (value.len() <= VALUE_BYTES_MAX).then_some(value)
}

/// The stream does not contain its length, so the buffer is doubled until it suffices.
fn unpack_lzf(packed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = (packed.len() * 2).max(64);
    loop {
        match lzf::decompress(packed, bytes) {
            Err(LzfError::BufferTooSmall) if bytes < VALUE_BYTES_MAX => bytes *= 2,
            unpacked => return unpacked.ok(),
        }
    }
}

fn unpack_snappy(packed: &[u8]) -> Option<Vec<u8>> {
    let bytes = snap::raw::decompress_len(packed).ok()?;
    (bytes <= VALUE_BYTES_MAX).then(|| snap::raw::Decoder::new().decompress_vec(packed).ok())?
}

fn unpack_lz4(packed: &[u8]) -> Option<Vec<u8>> {
    let (length, block) = packed.split_first_chunk()?;
    let bytes = u32::from_le_bytes(*length) as usize;
    (bytes <= VALUE_BYTES_MAX).then(|| lz4_flex::block::decompress(block, bytes).ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_from_php_are_unpacked() {
        // gzcompress(str_repeat('abc', 40), 1) of PHP 8.2
        let packed = b"gz:\x1f\x8b\x78\x01\x4b\x4c\x4a\x4e\x1c\x08\x04\x00\xdb\xf6\x2d\xf1";
        let mut out = b"before ".to_vec();
        unpack(packed, &mut out).unwrap();
        assert_eq!(out, [b"before ".as_slice(), &b"abc".repeat(40)].concat());
    }

    #[test]
    fn values_from_other_libraries_are_unpacked() {
        // zstd 1.5 of 120 bytes and a last one: zstd -1
        let zstd = b"\x28\xb5\x2f\xfd\x24\x79\x5d\x00\x00\x20\x61\x62\x63\x64\x01\x00\xd2\xd4\
                     \x0d\x01\xc9\x97\x6c\xfe";
        let mut out = Vec::new();
        unpack(&[&b"zs:\x1f\x8b"[..], zstd].concat(), &mut out).unwrap();
        assert_eq!(out, [&b"abc".repeat(40)[..], b"d"].concat());
        // LZF by its specification: three literals, then 117 bytes copied from three bytes earlier.
        out.clear();
        unpack(b"lz:\x1f\x8b\x02abc\xe0\x6c\x02", &mut out).unwrap();
        assert_eq!(out, b"abc".repeat(40));
    }

    #[test]
    fn formats_match_the_libraries() {
        // By the formats' specifications: a literal of one byte.
        let mut out = Vec::new();
        pack(b"a", Some(Compression::Snappy), &mut out).unwrap();
        assert_eq!(out, b"sn:\x1f\x8b\x01\x00a");
        out.clear();
        pack(b"a", Some(Compression::Lz4), &mut out).unwrap();
        assert_eq!(out, b"l4:\x1f\x8b\x01\x00\x00\x00\x10a");
    }

    #[test]
    fn uncompressed_values_are_copied_and_damaged_ones_fail() {
        let mut out = Vec::new();
        for plain in [&b""[..], b"ab", b"gz:x", b"gz:\x1f", b"qq:\x1f\x8bxyz"] {
            out.clear();
            unpack(plain, &mut out).unwrap();
            assert_eq!(out, plain);
        }
        out.clear();
        for (bad, words) in [
            (&b"zs:\x1f\x8bxyz"[..], "is corrupt"),
            (b"lz:\x1f\x8b\xe0", "is corrupt"),
            (b"gz:\x1f\x8bxyz", "is corrupt"),
            (b"gz:\x1f\x8b", "is corrupt"),
            (b"sn:\x1f\x8b\xff\xff\xff\xff\x0f", "is corrupt"),
            (b"l4:\x1f\x8bxyz", "is corrupt"),
            (b"l4:\x1f\x8b\xff\xff\xff\xff\x10x", "is corrupt"),
        ] {
            let e = unpack(bad, &mut out).unwrap_err();
            assert!(!e.fatal && e.message.contains(words), "{e}");
            assert!(out.is_empty());
        }
    }

    #[test]
    fn long_values_round_trip_with_every_library() {
        let value = b"configuration of a shop, ".repeat(2000);
        for compression in Compression::ALL {
            let (mut packed, mut back) = (Vec::new(), Vec::new());
            pack(&value, Some(compression), &mut packed).unwrap();
            assert!(packed.len() * 10 < value.len(), "{compression:?}: {}", packed.len());
            unpack(&packed, &mut back).unwrap();
            assert_eq!(back, value, "{compression:?}");
        }
    }

    #[test]
    fn incompressible_values_become_literals() {
        let value: Vec<u8> = (0..23_430).map(|n| workloads::values::mix(&[n]) as u8).collect();
        let (mut packed, mut back) = (Vec::new(), Vec::new());
        pack(&value, Some(Compression::Lzf), &mut packed).unwrap();
        let stream = &packed[PREFIX_BYTES..];
        // The buffer that the extension reserves for its result.
        assert!((value.len()..=value.len() + value.len() / 25).contains(&stream.len()));
        assert_eq!(lzf::decompress(stream, value.len()).unwrap(), value);
        unpack(&packed, &mut back).unwrap();
        assert_eq!(back, value);
        packed.clear();
        pack(b"a", Some(Compression::Lzf), &mut packed).unwrap();
        assert_eq!(packed, b"lz:\x1f\x8b\0a");
    }

    proptest! {
        #[test]
        fn packed_values_round_trip(value: Vec<u8>, choice in 0..6_usize) {
            // A value that looks compressed cannot be distinguished from a compressed one, in the
            // module as well.
            prop_assume!(value.get(2..5) != Some(MARK));
            let compression = Compression::ALL.get(choice).copied();
            let (mut packed, mut back) = (Vec::new(), Vec::new());
            let made = pack(&value, compression, &mut packed);
            if compression == Some(Compression::Lzf) && value.is_empty() {
                // The extension cannot compress an empty value.
                prop_assert!(made.is_err());
                return Ok(());
            }
            made.unwrap();
            unpack(&packed, &mut back).unwrap();
            prop_assert_eq!(back, value);
        }

        #[test]
        fn unpacking_arbitrary_bytes_never_panics(letters in 0..6_usize, bytes: Vec<u8>) {
            let mut value = [&b"gz"[..], b"sn", b"l4", b"lz", b"zs", b"xx"][letters].to_vec();
            value.extend_from_slice(MARK);
            value.extend_from_slice(&bytes);
            let _ = unpack(&value, &mut Vec::new());
        }
    }
}
