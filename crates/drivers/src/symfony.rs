//! Items of Symfony's adapters that keep tags themselves (symfony/cache 6.3 to 7.2,
//! `Marshaller/TagAwareMarshaller.php`), as stored by `redis` and `files`.
//!
//! An item is 0x9d, eight bytes of creation metadata (0 in an item of `save`), 0x5f, a length in
//! three bytes, that many bytes of tags (none, or a list in PHP's `serialize` format) and the
//! serialized value.

use model::ErrorClass;
use workloads::store::StoreError;

use crate::fault;
use crate::php::Value;

/// Prefix of a tag in the ID of its index.
pub(crate) const TAG: &str = "\x01tags\x01";
/// Bytes of an item before its tags.
const HEAD_BYTES: usize = 13;
/// Most bytes of tags in an item.
const TAGS_BYTES_MAX: usize = (1 << 24) - 1;
/// Characters that are not allowed in IDs and tags.
const RESERVED: &str = "{}()/\\@:";

/// The parts of an item.
pub(crate) struct Parts<'a> {
    tags: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl Parts<'_> {
    /// The tags; `None` if they are not a list of strings.
    pub(crate) fn tags(&self) -> Option<Vec<String>> {
        read_tags(self.tags)
    }
}

/// Length of the tags in the first bytes of an item; `None` if the bytes are not those of an item.
pub(crate) fn tags_bytes(item: &[u8]) -> Option<usize> {
    let [0x9d, _, _, _, _, 0, _, _, _, 0x5f, a, b, c] = *item.first_chunk::<HEAD_BYTES>()? else {
        return None;
    };
    Some(usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c))
}

/// The tags and everything after them in the item that starts with these bytes.
pub(crate) fn behind_head(item: &[u8]) -> &[u8] {
    item.get(HEAD_BYTES..).unwrap_or_default()
}

/// The tags and the value of an item; `None` for any other content.
pub(crate) fn split(item: &[u8]) -> Option<Parts<'_>> {
    let (tags, value) = behind_head(item).split_at_checked(tags_bytes(item)?)?;
    Some(Parts { tags, value: Value::read_whole(value)?.str()? })
}

/// Appends an item.
pub(crate) fn join(tags: &[&str], value: &[u8], item: &mut Vec<u8>) -> Result<(), StoreError> {
    let start = item.len();
    item.push(0x9d);
    item.extend_from_slice(&[0; HEAD_BYTES - 1]);
    if !tags.is_empty() {
        Value::keys(tags).write(item);
    }
    let tags_bytes = item.len() - start - HEAD_BYTES;
    if tags_bytes > TAGS_BYTES_MAX {
        let message = format!("`{tags_bytes}` bytes of tags (expected at most {TAGS_BYTES_MAX})");
        return Err(StoreError::soft(ErrorClass::Other, message));
    }
    let [_, a, b, c] = (tags_bytes as u32).to_be_bytes();
    item[start + 9..start + HEAD_BYTES].copy_from_slice(&[0x5f, a, b, c]);
    Value::Str(value).write(item);
    Ok(())
}

/// Serialized tags; `None` if they are not a list of strings.
pub(crate) fn read_tags(tags: &[u8]) -> Option<Vec<String>> {
    if tags.is_empty() { Some(Vec::new()) } else { Value::read_whole(tags)?.into_keys() }
}

/// Rejects names that Symfony rejects in IDs and tags.
pub(crate) fn expect_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), StoreError> {
    let bad = |name: &&str| name.is_empty() || name.contains(|c| RESERVED.contains(c));
    let Some(name) = names.into_iter().find(bad) else { return Ok(()) };
    let name = fault::printable(name.as_bytes());
    let message =
        format!("Symfony rejects the name `{name}` (expected some characters, none of {RESERVED})");
    Err(StoreError::soft(ErrorClass::Other, message))
}
