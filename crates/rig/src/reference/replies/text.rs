//! Replies of memcached's text protocol and its meta commands
//! (<https://github.com/memcached/memcached/blob/master/doc/protocol.txt>).

use crate::reference::scan::Request;
use stats::append_number;

/// An item's metadata in a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) flags: u32,
    /// Length of the data in bytes.
    pub(crate) length: usize,
    /// Unique number of this value (memcached's `cas unique`).
    pub(crate) unique: u64,
}

/// Appends the start of a value's reply, up to the key.
pub(crate) fn name(out: &mut Vec<u8>, key: &[u8]) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
}

/// Appends the part of a value's reply after the key: flags, length, unique number if any, data.
pub(crate) fn value(out: &mut Vec<u8>, flags: u32, bytes: &[u8], unique: Option<u64>) {
    for number in [flags.into(), bytes.len() as u64].into_iter().chain(unique) {
        out.push(b' ');
        append_number(out, number);
    }
    out.extend_from_slice(b"\r\n");
    data(out, bytes);
}

/// Appends the data of a value.
pub(crate) fn data(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// The argument of a meta flag; flags start at word `from`. `None` if the flag is missing.
pub(crate) fn flag(request: Request<'_>, from: usize, flag: u8) -> Option<&[u8]> {
    request.words(from).find_map(|word| word.strip_prefix(&[flag]))
}

/// Appends a code and the returned flags, unless the request is quiet.
pub(crate) fn meta(
    out: &mut Vec<u8>,
    code: &str,
    request: Request,
    from: usize,
    item: Option<Item>,
) {
    if flag(request, from, b'q').is_none() {
        out.extend_from_slice(code.as_bytes());
        meta_flags(out, request, from, item);
    }
}

/// Appends the value of each requested flag (item flags only with an item) and ends the line.
pub(crate) fn meta_flags(out: &mut Vec<u8>, request: Request, from: usize, item: Option<Item>) {
    for word in request.words(from) {
        let number = match (word, item) {
            ([b'O', ..], _) => {
                out.push(b' ');
                out.extend_from_slice(word);
                continue;
            }
            ([b'k', ..], _) => {
                out.extend_from_slice(b" k");
                out.extend_from_slice(request.key());
                continue;
            }
            ([b't', ..], Some(_)) => {
                out.extend_from_slice(b" t-1");
                continue;
            }
            ([b'f', ..], Some(item)) => item.flags.into(),
            ([b's', ..], Some(item)) => item.length as u64,
            ([b'c', ..], Some(item)) => item.unique,
            ([b'h' | b'l', ..], Some(_)) => 0,
            _ => continue,
        };
        out.extend_from_slice(&[b' ', word[0]]);
        append_number(out, number);
    }
    out.extend_from_slice(b"\r\n");
}
