//! Names of files in the layout: Symfony's `getFile` and `getTagFolder`
//! (`Traits/FilesystemCommonTrait.php`, `Adapter/FilesystemTagAwareAdapter.php`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use twox_hash::XxHash3_128;

use crate::symfony::TAG;

/// The adapter's namespace, which is also its directory.
pub(super) const NAMESPACE: &str = "cachedyno";
/// The directory of tag folders.
pub(super) const TAGS: &str = "tags";
/// Names of directories, in the order in which the adapter tries them.
pub(super) const LEVELS: &str = "+-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// Part of every hash.
const CLASS: &str = r"Symfony\Component\Cache\Adapter\FilesystemTagAwareAdapter";
/// Characters of a hash: 128 bits in base64, without padding.
const HASH_CHARS: usize = 22;
/// Characters of a random name.
const RANDOM_CHARS: usize = 8;

/// Base64 with characters that file names can contain.
fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes).replace('/', "-")
}

/// Place of an ID, relative to its directory: `A/B/` and 20 characters.
fn place(id: &str) -> String {
    let hash = base64(&XxHash3_128::oneshot([CLASS, id].concat().as_bytes()).to_be_bytes());
    let level = |at: usize| hash[at..=at].to_ascii_uppercase();
    format!("{}/{}/{}", level(0), level(1), &hash[2..HASH_CHARS])
}

/// The file of an item.
pub(super) fn item(id: &str) -> String {
    place(id)
}

/// The folder of a tag.
pub(super) fn tag_folder(tag: &str) -> String {
    format!("{TAGS}/{}", place(&[TAG, tag].concat()))
}

/// The link from a tag's folder to an item.
pub(super) fn link(folder: &str, item: &str) -> String {
    format!("{folder}/{item}")
}

/// A random name from 64 random bits.
pub(super) fn random_name(bits: u64) -> String {
    base64(&bits.to_le_bytes()[..6])
}

/// The name that a tag's folder gets before its links are removed.
pub(super) fn renamed(folder: &str, random: &str) -> String {
    // Renamed folders and names written by others can be shorter.
    let kept = folder.len().saturating_sub(RANDOM_CHARS + 1);
    format!("{}{random}_", folder.get(..kept).unwrap_or(folder))
}

/// Directory of a path.
pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The expiry in an item's first line, as PHP casts it to a number.
pub(super) fn expires(line: &[u8]) -> i64 {
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: i64, digit| {
        number.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    })
}

/// PHP's `rawurlencode`.
pub(super) fn url_encoded(id: &str) -> String {
    let mut encoded = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            let digit = |bits: u8| char::from(b"0123456789ABCDEF"[usize::from(bits)]);
            encoded.extend([digit(byte >> 4), digit(byte & 15)]);
        }
    }
    encoded
}

/// Whether the layout creates a directory with this path, relative to the cache's directory.
pub(in super::super) fn is_cache_dir(path: &str) -> bool {
    let mut parts = path.split('/');
    if parts.next() != Some(NAMESPACE) {
        return false;
    }
    let parts: Vec<&str> = parts.collect();
    let are_levels = |parts: &[&str]| parts.iter().all(|p| p.len() == 1 && LEVELS.contains(p));
    match parts.as_slice() {
        [] => true,
        [first, rest @ ..] if *first == TAGS => {
            let (levels, below) = rest.split_at(rest.len().min(2));
            let folder = below.first().is_none_or(|name| name.len() == HASH_CHARS - 2);
            let inner = below.get(1..).unwrap_or_default();
            are_levels(levels) && folder && inner.len() <= 2 && are_levels(inner)
        }
        levels => levels.len() <= 2 && are_levels(levels),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths that symfony/cache 7.1 created under PHP 8.2.
    #[test]
    fn paths_match_the_adapter() {
        assert_eq!(item("ABC_1"), "O/Z/dbyUVJYcq34dlbt-bcXg");
        assert_eq!(item("ABC_2"), "W/D/3H-Vz0PYwyO0KIfDLQKQ");
        assert_eq!(tag_folder("T1"), "tags/9/L/ZilD-MBFMM5EyveeytRg");
        assert_eq!(tag_folder("5"), "tags/E/Y/AQPKxGjeCKSNnCZ6C++Q");
        assert_eq!(renamed(&tag_folder("T1"), "TZxck4Rv"), "tags/9/L/ZilD-MBFMM5TZxck4Rv_");
        assert_eq!(random_name(0x6f84_935c_9c4d), "TZxck4Rv");
        assert_eq!(url_encoded("a b.ü~/"), "a%20b.%C3%BC~%2F");
    }

    #[test]
    fn only_directories_of_the_layout_are_ours() {
        for path in ["", "/O", "/O/Z", "/tags", "/tags/9/L", "/tags/9/L/ZilD-MBFMM5EyveeytRg/O/Z"] {
            assert!(is_cache_dir(&format!("cachedyno{path}")), "{path}");
        }
        for path in
            ["/o", "/O/Z/A", "/other", "/tags/9/L/short", "/tags/9/L/ZilD-MBFMM5EyveeytRg/o"]
        {
            assert!(!is_cache_dir(&format!("cachedyno{path}")), "{path}");
        }
        assert!(!is_cache_dir("other/O"));
    }
}
