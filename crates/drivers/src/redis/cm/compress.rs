//! Compressed values: two letters of the library's name, `:`, 0x1f, 0x8b, and the library's bytes.
//!
//! | letters | bytes |
//! |---|---|
//! | `gz`, formerly `zc` | a zlib stream (RFC 1950), as PHP's `gzcompress` gives it |
//! | `sn` | a raw snappy block, as `snappy_compress` of the extension snappy |
//! | `l4` | four bytes of length, the lowest first, and an lz4 block, as `lz4_compress` of lz4 |
//! | `zs`, `lz` | zstd and lzf: not read here, for want of a library without C and of a kept one |
//!
//! The level is 1, the module's default. The formats are those of the extensions, while another
//! library may choose other bytes for the same value.

use std::io::{Read as _, Write as _};

use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use model::ErrorClass;
use workloads::store::StoreError;

use crate::fault;

/// What stands behind the letters.
const MARK: &[u8] = b":\x1f\x8b";
/// Letters and mark.
const PREFIX_BYTES: usize = 5;
/// Longer values than this are not unpacked: an error, never memory.
const VALUE_BYTES_MAX: usize = 512 << 20;

/// A library that compresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// zlib, which every PHP has.
    Gzip,
    /// snappy.
    Snappy,
    /// lz4.
    Lz4,
}

/// Appends a value, compressed if there is something to do it with.
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
    }
    Ok(())
}

/// Appends a value as it was before [`pack`]; one that is not compressed as it stands.
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
        b"zs" | b"lz" => {
            let letters = fault::words(letters);
            let message = format!("a value is compressed as `{letters}` (expected gz, sn or l4)");
            return Err(StoreError::soft(ErrorClass::Protocol, message));
        }
        // The module gives values with letters that it does not know as they stand.
        _ => Some(value.to_vec()),
    };
    let Some(unpacked) = unpacked else {
        let letters = fault::words(letters);
        let message = format!("a value is damaged (expected what `{letters}` says it is)");
        return Err(StoreError::soft(ErrorClass::Protocol, message));
    };
    out.extend_from_slice(&unpacked);
    Ok(())
}

fn unpack_zlib(packed: &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    let limit = VALUE_BYTES_MAX as u64 + 1;
    ZlibDecoder::new(packed).take(limit).read_to_end(&mut value).ok()?;
    (value.len() <= VALUE_BYTES_MAX).then_some(value)
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
    fn values_of_php_are_read() {
        // gzcompress(str_repeat('abc', 40), 1) of PHP 8.2
        let packed = b"gz:\x1f\x8b\x78\x01\x4b\x4c\x4a\x4e\x1c\x08\x04\x00\xdb\xf6\x2d\xf1";
        let mut out = b"before ".to_vec();
        unpack(packed, &mut out).unwrap();
        assert_eq!(out, [b"before ".as_slice(), &b"abc".repeat(40)].concat());
    }

    #[test]
    fn formats_are_those_of_the_libraries() {
        // By the formats' descriptions: a literal of one byte.
        let mut out = Vec::new();
        pack(b"a", Some(Compression::Snappy), &mut out).unwrap();
        assert_eq!(out, b"sn:\x1f\x8b\x01\x00a");
        out.clear();
        pack(b"a", Some(Compression::Lz4), &mut out).unwrap();
        assert_eq!(out, b"l4:\x1f\x8b\x01\x00\x00\x00\x10a");
    }

    #[test]
    fn what_is_not_compressed_stays_and_what_cannot_be_read_is_told() {
        let mut out = Vec::new();
        for plain in [&b""[..], b"ab", b"gz:x", b"gz:\x1f", b"qq:\x1f\x8bxyz"] {
            out.clear();
            unpack(plain, &mut out).unwrap();
            assert_eq!(out, plain);
        }
        out.clear();
        for (bad, words) in [
            (&b"zs:\x1f\x8bxyz"[..], "compressed as `zs`"),
            (b"gz:\x1f\x8bxyz", "is damaged"),
            (b"gz:\x1f\x8b", "is damaged"),
            (b"sn:\x1f\x8b\xff\xff\xff\xff\x0f", "is damaged"),
            (b"l4:\x1f\x8bxyz", "is damaged"),
            (b"l4:\x1f\x8b\xff\xff\xff\xff\x10x", "is damaged"),
        ] {
            let e = unpack(bad, &mut out).unwrap_err();
            assert!(!e.fatal && e.message.contains(words), "{e}");
            assert!(out.is_empty());
        }
    }

    proptest! {
        #[test]
        fn packed_values_come_back(value: Vec<u8>, choice in 0..4_usize) {
            // A value that begins as a compressed one cannot be told from it, with the module too.
            prop_assume!(value.get(2..5) != Some(MARK));
            let some = [Compression::Gzip, Compression::Snappy, Compression::Lz4];
            let (mut packed, mut back) = (Vec::new(), Vec::new());
            pack(&value, some.get(choice).copied(), &mut packed).unwrap();
            unpack(&packed, &mut back).unwrap();
            prop_assert_eq!(back, value);
        }

        #[test]
        fn any_bytes_are_unpacked_without_a_panic(letters in 0..4_usize, bytes: Vec<u8>) {
            let mut value = [&b"gz"[..], b"sn", b"l4", b"xx"][letters].to_vec();
            value.extend_from_slice(MARK);
            value.extend_from_slice(&bytes);
            let _ = unpack(&value, &mut Vec::new());
        }
    }
}
