"""Reader of stored distributions: HdrHistogram, V2 format with zlib, base64.

Source of the format: `AbstractHistogram.encodeIntoByteBuffer` and `ZigZagEncoding` of
https://github.com/HdrHistogram/HdrHistogram. A record is foreign data, so sizes are limited.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator

_COMPRESSED_COOKIE = 0x1C849304
_COOKIE = 0x1C849303
_COOKIE_MASK = 0xFFFFFF0F
"""Bits of a cookie without those for the size of a counter, which V2 does not use."""
_HEADER = struct.Struct(">iiiiqqd")
_BYTES_MAX = 8 << 20
_INDEX_MAX = 1 << 22


def decode(text: str) -> list[tuple[int, int]]:
    """Return (value, count) of each value with a count, ascending.

    A value is the largest one that shares its counter, which is what percentiles of the program
    are. Raises ValueError if the text is no distribution.
    """
    try:
        packed = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", packed)
        if cookie & _COOKIE_MASK != _COMPRESSED_COOKIE & _COOKIE_MASK:
            raise ValueError("another cookie")
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed[8 : 8 + length], _BYTES_MAX)
        if unpacker.unconsumed_tail:
            raise ValueError("too large")
        cookie, length, offset, digits, lowest, _, _ = _HEADER.unpack_from(data)
    except (ValueError, struct.error, zlib.error) as e:
        raise ValueError(f"unreadable histogram: {e}") from e
    is_known = cookie & _COOKIE_MASK == _COOKIE & _COOKIE_MASK
    if not (is_known and offset == 0 and 1 <= digits <= 5 and lowest >= 1):
        raise ValueError("unreadable histogram: an unknown header")
    counts = data[_HEADER.size : _HEADER.size + length]
    return [(_value(index, digits, lowest), count) for index, count in _counts(counts)]


def _counts(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield index and count of each counter above 0: ZigZag, a negative number skips counters."""
    at = index = 0
    while at < len(data):
        number = 0
        for shift in range(0, 64, 7):
            if at == len(data):
                raise ValueError("unreadable histogram: it ends within a number")
            byte = data[at]
            at += 1
            # The ninth byte has eight bits of the number.
            number |= (byte if shift == 56 else byte & 0x7F) << shift
            if shift == 56 or byte < 0x80:
                break
        count = (number >> 1) ^ -(number & 1)
        if count > 0:
            yield index, count
        index += 1 if count >= 0 else -count
        if index > _INDEX_MAX:
            raise ValueError("unreadable histogram: too many counters")


def _value(index: int, digits: int, lowest: int) -> int:
    """Return the largest value that is counted at an index."""
    half_magnitude = (2 * 10**digits - 1).bit_length() - 1
    half = 1 << half_magnitude
    bucket = (index >> half_magnitude) - 1
    place = (index & (half - 1)) + half
    if bucket < 0:
        place, bucket = place - half, 0
    shift = bucket + lowest.bit_length() - 1
    return ((place + 1) << shift) - 1
