//! Compressed values: two letters of the library's name, `:`, 0x1f, 0x8b, and the library's bytes.
//!
//! | letters | library | bytes |
//! |---|---|---|
//! | `gz`, formerly `zc` | zlib | a zlib stream (RFC 1950), as PHP's `gzcompress` gives it |
//! | `sn`, `l4`, `zs`, `lz` | snappy, lz4, zstd, lzf | not read here |

use std::io::{Read as _, Write as _};

use flate2::Compression;
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
const VALUE_BYTES_MAX: u64 = 512 << 20;

/// Appends a value, compressed at `level` if there is one.
pub(super) fn pack(value: &[u8], level: Option<u32>, out: &mut Vec<u8>) -> Result<(), StoreError> {
    let Some(level) = level else {
        out.extend_from_slice(value);
        return Ok(());
    };
    out.extend_from_slice(b"gz");
    out.extend_from_slice(MARK);
    let mut encoder = ZlibEncoder::new(out, Compression::new(level));
    let written = encoder.write_all(value).and_then(|()| encoder.finish().map(drop));
    written.map_err(|e| fault::file("a value cannot be compressed", &e))
}

/// Appends a value as it was before [`pack`]; one that is not compressed as it stands.
pub(super) fn unpack(value: &[u8], out: &mut Vec<u8>) -> Result<(), StoreError> {
    if value.get(2..PREFIX_BYTES) != Some(MARK) {
        out.extend_from_slice(value);
        return Ok(());
    }
    let (letters, packed) = (&value[..2], &value[PREFIX_BYTES..]);
    let wrong = |message| StoreError::soft(ErrorClass::Protocol, message);
    if !matches!(letters, b"gz" | b"zc") {
        // The module gives values with letters that it does not know as they stand.
        if !matches!(letters, b"sn" | b"l4" | b"zs" | b"lz") {
            out.extend_from_slice(value);
            return Ok(());
        }
        let letters = fault::words(letters);
        return Err(wrong(format!("a value is compressed as `{letters}` (expected `gz`)")));
    }
    let before = out.len();
    let read = ZlibDecoder::new(packed).take(VALUE_BYTES_MAX).read_to_end(out);
    if !read.is_ok_and(|bytes| (bytes as u64) < VALUE_BYTES_MAX) {
        out.truncate(before);
        return Err(wrong("a compressed value is damaged (expected a zlib stream)".into()));
    }
    Ok(())
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
    fn what_is_not_compressed_stays_and_what_cannot_be_read_is_told() {
        let mut out = Vec::new();
        for plain in [&b""[..], b"ab", b"gz:x", b"gz:\x1f", b"qq:\x1f\x8bxyz"] {
            out.clear();
            unpack(plain, &mut out).unwrap();
            assert_eq!(out, plain);
        }
        out.clear();
        for (bad, words) in [
            (&b"sn:\x1f\x8bxyz"[..], "compressed as `sn`"),
            (b"gz:\x1f\x8bxyz", "is damaged"),
            (b"gz:\x1f\x8b", "is damaged"),
        ] {
            let e = unpack(bad, &mut out).unwrap_err();
            assert!(!e.fatal && e.message.contains(words), "{e}");
            assert!(out.is_empty());
        }
    }

    proptest! {
        #[test]
        fn packed_values_come_back(value: Vec<u8>, level in proptest::option::of(0_u32..=9)) {
            // A value that begins as a compressed one cannot be told from it, with the module too.
            prop_assume!(value.get(2..5) != Some(MARK));
            let (mut packed, mut back) = (Vec::new(), Vec::new());
            pack(&value, level, &mut packed).unwrap();
            unpack(&packed, &mut back).unwrap();
            prop_assert_eq!(back, value);
        }
    }
}
