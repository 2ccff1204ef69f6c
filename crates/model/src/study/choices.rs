//! Command-line choices for a study.

use super::StudyError;
use crate::app_cache::DataFiles;
use crate::plan::Scale;
use crate::product::Product;
use crate::program::Program;
use crate::target::{Endpoint, mask_text};

/// One `--target NAME[=URL]`.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetChoice {
    /// Name in the run.
    pub name: String,
    /// The store to measure; `None` starts a private server.
    pub endpoint: Option<Endpoint>,
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
    /// Application cache: files with records and lists.
    pub files: Option<DataFiles>,
}

impl TargetChoice {
    /// Parses `NAME`, `NAME=URL` or a bare URL (named after its product).
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let choice = |e: crate::target::UrlError| StudyError::Choice(format!("--target: {e}"));
        if let (Some(name), url) = Self::parts(text) {
            let endpoint = Endpoint::parse(url).map_err(choice)?;
            return Ok(Self { name: checked_name(name)?, endpoint: Some(endpoint) });
        }
        if text.contains("://") {
            let endpoint = Endpoint::parse(text).map_err(choice)?;
            return Ok(Self { name: endpoint.product().name().into(), endpoint: Some(endpoint) });
        }
        Ok(Self { name: checked_name(text)?, endpoint: None })
    }

    /// Splits `NAME=URL`; without a name, returns the whole text.
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
        let own = Product::ALL.into_iter().find(|p| p.name() == self.name);
        let program = || Program::of_target(&self.name);
        own.map(|p| (p, None)).or_else(|| Some((Program::PRODUCT, Some(program()?))))
    }
}

/// True for a valid target name. Names are printed and inserted into commands.
pub(super) fn is_target_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.len() <= 40 && name.chars().all(good)
}

fn checked_name(name: &str) -> Result<String, StudyError> {
    if !is_target_name(name) {
        return Err(StudyError::Choice(format!(
            "invalid --target name `{}` (expected 1 to 40 letters, digits, `-`, `_` or `.`)",
            mask_text(name)
        )));
    }
    Ok(name.into())
}
