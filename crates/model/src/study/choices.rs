//! Command-line choices for a study.

use super::StudyError;
use crate::app_cache::DataFiles;
use crate::plan::Scale;
use crate::product::Product;
use crate::program::Program;
use crate::target::{Endpoint, UrlError, is_store_scheme, mask_text};
use std::path::PathBuf;

/// One `--target [LABEL:]NAME[=URL|=DIRECTORY]`.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetChoice {
    /// Name in the run, with its label if it has one.
    pub name: String,
    /// The store to measure; `None` starts a private server.
    pub endpoint: Option<Endpoint>,
    /// Absolute directory for the data of a private store; `None` for that of `--disk`.
    pub directory: Option<PathBuf>,
}

/// All choices of a user.
#[derive(Clone, Debug)]
pub struct Choices {
    /// Amount of measurement.
    pub scale: Scale,
    /// Seconds for all blocks, in place of the scale's.
    pub budget_s: Option<f64>,
    /// `--set` pairs in order.
    pub sets: Vec<(String, String)>,
    /// Targets to measure; empty for all targets of the study.
    pub targets: Vec<TargetChoice>,
    /// Adds the A/A control.
    pub control: bool,
    /// Seed of order, keys and values.
    pub seed: u64,
    /// Timeout of an operation in milliseconds, in place of the study's.
    pub timeout_ms: Option<u64>,
    /// Time without any answer after which a trial ends, nanoseconds, 0 for no limit; `None` for
    /// [`Plan::stall_ns_by_default`](crate::Plan::stall_ns_by_default).
    pub stall_ns: Option<u64>,
    /// Application cache: files with records and lists.
    pub files: Option<DataFiles>,
    /// True if a command of the user interrupts the service of servers at a URL.
    pub has_fault_command: bool,
}

impl Choices {
    /// Everything as the study has it, except scale and seed.
    pub fn new(scale: Scale, seed: u64) -> Self {
        Self {
            scale,
            budget_s: None,
            sets: Vec::new(),
            targets: Vec::new(),
            control: false,
            seed,
            timeout_ms: None,
            stall_ns: None,
            files: None,
            has_fault_command: false,
        }
    }
}

impl TargetChoice {
    /// Parses `NAME`, `NAME=URL`, `NAME=DIRECTORY` or a bare URL (named after its product). A name
    /// can start with a label, `LABEL:NAME`, so that one store can be measured several times.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let choice = |e: UrlError| StudyError::Choice(format!("--target: {e}"));
        let none = Self { name: String::new(), endpoint: None, directory: None };
        if let (Some(name), place) = Self::parts(text) {
            let name = checked_name(name)?;
            if is_directory(place) {
                return Ok(Self {
                    directory: Some(checked_directory(&name, place)?),
                    name,
                    ..none
                });
            }
            let endpoint = Endpoint::parse(place).map_err(|e| no_place(&name, &e))?;
            return Ok(Self { name, endpoint: Some(endpoint), ..none });
        }
        if text.contains("://") {
            let endpoint = Endpoint::parse(text).map_err(choice)?;
            let name = endpoint.product().name().into();
            return Ok(Self { name, endpoint: Some(endpoint), ..none });
        }
        Ok(Self { name: checked_name(text)?, ..none })
    }

    /// Its name without the label: what is measured.
    pub fn store(&self) -> &str {
        unlabelled(&self.name)
    }

    /// Splits `NAME=URL` or `NAME=DIRECTORY`; without a name, returns the whole text.
    pub fn parts(text: &str) -> (Option<&str>, &str) {
        let equals = text.find('=').filter(|e| text.find("://").is_none_or(|s| *e < s));
        equals.map_or((None, text), |at| (Some(&text[..at]), &text[at + 1..]))
    }

    /// The product at the URL, or the product that a bare name starts, with its program if that is
    /// not the product's own. `None` if no product or program has this name.
    pub fn server(&self) -> Option<(Product, Option<Program>)> {
        if let Some(endpoint) = &self.endpoint {
            return Some((endpoint.product(), None));
        }
        let own = Product::ALL.into_iter().find(|p| p.name() == self.store());
        let program = || Program::of_target(self.store());
        own.map(|p| (p, None)).or_else(|| Some((Program::PRODUCT, Some(program()?))))
    }
}

/// True for a valid target name, with or without a label. Names are printed and inserted into
/// commands.
pub(crate) fn is_target_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !part.is_empty() && part.len() <= 40 && part.chars().all(good)
    };
    match name.split_once(':') {
        Some((label, store)) => is_part(label) && is_part(store) && !is_store_scheme(label),
        None => is_part(name),
    }
}

/// True if `of` is the name of a target or its label.
pub fn is_name_or_label(of: &str, target: &str) -> bool {
    target == of || label(target) == Some(of)
}

/// The label of a target's name; `None` for a name without one.
pub fn label(name: &str) -> Option<&str> {
    name.split_once(':').map(|(label, _)| label)
}

/// A target's name without its label.
pub fn unlabelled(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, store)| store)
}

/// What a target name must be, for errors.
pub(super) const NAME_EXPECTED: &str = "1 to 40 letters, digits, `-`, `_` or `.`, and such a label \
                                        before it where one is wanted, as in `nvme:zend-file`";

fn checked_name(name: &str) -> Result<String, StudyError> {
    if is_target_name(name) {
        return Ok(name.into());
    }
    let shown = mask_text(name);
    let scheme = name.split_once(':').filter(|(label, _)| is_store_scheme(label));
    Err(StudyError::Choice(match scheme {
        Some((scheme, _)) => format!(
            "--target `{shown}` has the label `{scheme}`, with which a URL begins (expected \
             another label as in `nvme:zend-file`, or `{scheme}://`)"
        ),
        None => format!("invalid --target name `{shown}` (expected {NAME_EXPECTED})"),
    }))
}

/// True if the text after `NAME=` is a path, not a URL.
fn is_directory(place: &str) -> bool {
    !place.contains("://") && place.starts_with(['/', '.', '~'])
}

/// An absolute directory; `None` for anything else.
pub(super) fn absolute(place: &str) -> Option<PathBuf> {
    let is_plain = place.starts_with('/') && !place.contains(|c: char| c.is_control());
    is_plain.then(|| place.into())
}

fn checked_directory(name: &str, place: &str) -> Result<PathBuf, StudyError> {
    absolute(place).ok_or_else(|| {
        StudyError::Choice(format!(
            "--target `{name}`: `{}` is not an absolute directory (expected one for the data of a \
             private store, as in --target {name}=/mnt/nvme)",
            mask_text(place).escape_default()
        ))
    })
}

/// The error for something after `NAME=` that is neither a URL nor a directory.
fn no_place(name: &str, error: &UrlError) -> StudyError {
    let directory = match error {
        UrlError::NotUrl(_) => format!(
            "; or an absolute directory for the data of a private store, as in --target \
             {name}=/mnt/nvme"
        ),
        _ => String::new(),
    };
    StudyError::Choice(format!("--target: {error}{directory}"))
}
