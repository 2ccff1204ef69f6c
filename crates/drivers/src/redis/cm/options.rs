//! Options of the module, and the defaults of its versions.

use std::collections::BTreeMap;

use model::{ErrorClass, Failure};

use super::Compression;

/// How records are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// `DEL`: frees memory before the reply. The module used it until 2023.
    Del,
    /// `UNLINK`: a server thread frees memory later. The module uses it since.
    Unlink,
}

impl Removal {
    pub(super) fn command(self) -> &'static [u8] {
        match self {
            Self::Del => b"DEL",
            Self::Unlink => b"UNLINK",
        }
    }
}

/// The module's settings that affect its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmOptions {
    /// True to save, clean by any tag and collect with scripts.
    pub scripts: bool,
    /// How records and sets are removed without a script.
    pub removal: Removal,
    /// True to wrap a pipeline in `MULTI` and `EXEC`, as the module does without PHP's extension.
    pub transaction: bool,
    /// Most records per removal command, at least 1.
    pub records_at_once: usize,
    /// True to maintain the set of all IDs, which a clean by missing tags needs.
    pub not_matching_tags: bool,
    /// Compression of long data and tags; `None` for off.
    pub compression: Option<Compression>,
    /// Data and tags of at least this many bytes are compressed.
    pub compress_from_bytes: usize,
}

impl CmOptions {
    /// The defaults of September 2019: pipelines, `DEL`, all records of a clean in one command.
    pub const fn as_2019() -> Self {
        Self {
            scripts: false,
            removal: Removal::Del,
            transaction: false,
            records_at_once: usize::MAX,
            not_matching_tags: false,
            compression: Some(Compression::Gzip),
            compress_from_bytes: 20_480,
        }
    }

    /// The defaults since October 2023: scripts, and otherwise `UNLINK` of 10,000 records at once.
    pub const fn today() -> Self {
        let then = Self::as_2019();
        Self { scripts: true, removal: Removal::Unlink, records_at_once: 10_000, ..then }
    }

    /// Applies settings by [`model::CM_SETTINGS`]. Errors: an unknown name or value.
    pub fn with(mut self, settings: &BTreeMap<String, String>) -> Result<Self, Failure> {
        for (name, value) in settings {
            let is_on = value == "on";
            match (name.as_str(), value.as_str()) {
                ("removal", "del") => self.removal = Removal::Del,
                ("removal", "unlink") => self.removal = Removal::Unlink,
                ("transaction", "on" | "off") => self.transaction = is_on,
                ("not_matching_tags", "on" | "off") => self.not_matching_tags = is_on,
                ("compression", "none") => self.compression = None,
                ("compression", library) => {
                    let known = Compression::ALL.into_iter().find(|c| c.name() == library);
                    self.compression = Some(known.ok_or_else(|| unknown(name, value))?);
                }
                _ => return Err(unknown(name, value)),
            }
        }
        Ok(self)
    }
}

fn unknown(name: &str, value: &str) -> Failure {
    let message = format!("cm.{name}=`{value}` is unknown (expected a setting of the module)");
    Failure { class: ErrorClass::Other, message }
}
