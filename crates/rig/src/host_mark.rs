//! A keyed hash by which a host recognises plans that it wrote itself.

use nix::unistd::gethostname;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs;

/// Files with a unique id of this host; the last one changes with every boot.
const IDS: [&str; 3] =
    ["/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/sys/kernel/random/boot_id"];
/// Number of hexadecimal digits of an id; some files also contain dashes.
const ID_LENGTH: usize = 32;

/// This host's mark for `text`, in hexadecimal: SHA-256 over the SHA-256 hashes of the host's id,
/// of its name and of the text. Without the id nobody can compute the mark of another text, and
/// the mark does not reveal the id. `None` if the host has no id.
pub fn host_mark(text: &[u8]) -> Option<String> {
    let id = IDS.iter().find_map(|path| id_of(&fs::read_to_string(path).ok()?))?;
    let name = gethostname().unwrap_or_default();
    Some(mark(&id, name.as_encoded_bytes(), text))
}

/// The hexadecimal digits of an id; `None` if it is not initialised yet.
fn id_of(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    (digits.len() == ID_LENGTH).then_some(digits)
}

fn mark(id: &str, name: &[u8], text: &[u8]) -> String {
    let mut hash = Sha256::new();
    for part in [id.as_bytes(), name, text] {
        hash.update(Sha256::digest(part));
    }
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Name of this host; empty if it has none.
pub fn host_name() -> String {
    gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_differ_by_host_and_text() {
        let id = "0123456789abcdef0123456789abcdef";
        let own = mark(id, b"name", b"plan");
        assert_eq!((own.len(), &own), (64, &mark(id, b"name", b"plan")));
        for (id, name, text) in [
            ("1123456789abcdef0123456789abcdef", "name", "plan"),
            (id, "names", "plan"),
            (id, "name", "plans"),
            (id, "nam", "eplan"),
        ] {
            assert_ne!(mark(id, name.as_bytes(), text.as_bytes()), own);
        }
    }

    #[test]
    fn ids_have_32_hexadecimal_digits() {
        assert_eq!(id_of("uninitialized\n"), None);
        assert_eq!(id_of(""), None);
        let boot = id_of("0b5f3bb8-3f16-4f4b-9a1f-0f3f3a1d2c11\n");
        assert_eq!(boot.as_deref(), Some("0b5f3bb83f164f4b9a1f0f3f3a1d2c11"));
        assert!(host_mark(b"plan").is_some());
    }
}
