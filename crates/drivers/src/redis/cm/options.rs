//! What can be chosen of the module, and the defaults of its versions.

use std::collections::BTreeMap;

use model::{ErrorClass, Failure};

use super::Compression;

/// How records are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// `DEL`: memory is free when it is answered. The module's until 2023.
    Del,
    /// `UNLINK`: a thread of the server frees memory later. The module's since.
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

/// The module's settings, as far as they change what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmOptions {
    /// True to save, to clean by any tag and to collect by scripts.
    pub scripts: bool,
    /// How records and sets are removed, where no script does it.
    pub removal: Removal,
    /// True to put a pipeline between `MULTI` and `EXEC`, as the module does without PHP's
    /// extension.
    pub transaction: bool,
    /// Most records that one command removes, at least 1.
    pub records_at_once: usize,
    /// True to keep the set of all ids, which a clean of what does not match needs.
    pub not_matching_tags: bool,
    /// What compresses long data and tags; `None` for nothing.
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

    /// The defaults since October 2023: scripts, and elsewhere `UNLINK` of 10,000 records at once.
    pub const fn today() -> Self {
        let then = Self::as_2019();
        Self { scripts: true, removal: Removal::Unlink, records_at_once: 10_000, ..then }
    }

    /// The same with what was chosen instead, by [`model::CM_SETTINGS`]. Errors: a name or value
    /// that is not known.
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
    let message = format!("cm.{name}=`{value}` is not known (expected a setting of the module)");
    Failure { class: ErrorClass::Other, message }
}
