//! What a user adds to a study on the command line.

use std::collections::BTreeMap;

use super::wire::{Defaults, ScaleSize, Study, StudyWorkload};
use super::{StudyError, keys, quoted_list, sizes};
use crate::app_cache::{CM_PREFIX, CM_SETTINGS, DataFiles, DataSize, Fill};
use crate::memory::MemoryLimit;
use crate::plan::{Generation, Product, Scale};
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

/// Everything a user chose.
#[derive(Clone, Debug)]
pub struct Choices {
    /// How much is measured.
    pub scale: Scale,
    /// Seconds for all blocks instead of the scale's own.
    pub budget_s: Option<f64>,
    /// `--set` pairs in order.
    pub sets: Vec<(String, String)>,
    /// Targets to measure; empty for all of the study.
    pub targets: Vec<TargetChoice>,
    /// Adds the A/A control.
    pub control: bool,
    /// Seed of order, keys and values.
    pub seed: u64,
    /// Time-out of an operation in milliseconds instead of the study's own.
    pub timeout_ms: Option<u64>,
    /// Application cache: files to read records and lists from.
    pub files: Option<DataFiles>,
}

/// `--set` keys that files of a data set decide.
const OF_FILES: [&str; 9] = [
    "keys",
    "tags",
    "min_tags",
    "max_tags",
    "min_rec_size",
    "max_rec_size",
    "ops",
    "write_chance",
    "clean_chance",
];

/// `--set` keys that are not server settings, of all workloads.
pub const KEYS: [&str; 35] = [
    "profile",
    "clients",
    "keys",
    "tags",
    "sizes",
    "min_tags",
    "max_tags",
    "min_rec_size",
    "max_rec_size",
    "ops",
    "write_chance",
    "clean_chance",
    "magento",
    "fill",
    "memory_limit",
    "value_bytes",
    "ttl_s",
    "generation",
    "think_ms",
    "limit",
    "order",
    "rates",
    "stage_ms",
    "stages",
    "step",
    "threads",
    "verify_one_in",
    "equivalence_zone",
    "timeout_ms",
    "sessions",
    "warmup_ms",
    "measure_ms",
    "blocks_min",
    "blocks_max",
    "budget_s",
];

/// Whether files of a data set decide what this `--set` key does elsewhere.
pub fn decided_by_files(key: &str) -> bool {
    OF_FILES.contains(&key)
}

impl Study {
    /// Errors where a data set's files mean nothing to the study.
    pub fn takes_files(&self) -> Result<(), StudyError> {
        if self.workload == StudyWorkload::AppCache {
            return Ok(());
        }
        Err(StudyError::Choice(format!(
            "--data-set is for studies of application caches (study `{}` measures {})",
            self.name,
            self.workload.name()
        )))
    }
}

impl TargetChoice {
    /// Reads `NAME`, `NAME=URL` or a bare URL (named after its product).
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

    /// `NAME` and `URL` of `NAME=URL`; without a name, the whole text.
    pub fn parts(text: &str) -> (Option<&str>, &str) {
        let equals = text.find('=').filter(|e| text.find("://").is_none_or(|s| *e < s));
        equals.map_or((None, text), |at| (Some(&text[..at]), &text[at + 1..]))
    }

    /// The product at its URL; or what its bare name starts, with the program where that is not
    /// the product's own. `None` for a name that starts nothing.
    pub fn server(&self) -> Option<(Product, Option<Program>)> {
        if let Some(endpoint) = &self.endpoint {
            return Some((endpoint.product(), None));
        }
        let own = Product::ALL.into_iter().find(|p| p.name() == self.name);
        let program = || Program::ALL.into_iter().find(|p| p.target() == self.name);
        own.map(|p| (p, None)).or_else(|| Some((Product::Redis, Some(program()?))))
    }
}

/// Whether a target can have this name: it is printed, and becomes a part of commands.
pub(super) fn is_target_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.len() <= 40 && name.chars().all(good)
}

fn checked_name(name: &str) -> Result<String, StudyError> {
    if !is_target_name(name) {
        return Err(StudyError::Choice(format!(
            "--target name `{}` is not a name (expected 1 to 40 letters, digits, `-`, `_` or `.`)",
            mask_text(name)
        )));
    }
    Ok(name.into())
}

/// The study's values after `--set`, `--budget` and `--timeout`.
pub(super) struct Resolved {
    pub(super) defaults: Defaults,
    pub(super) profiles: Vec<String>,
    pub(super) size: ScaleSize,
    /// Rates of a ramp, instead of its profile's.
    pub(super) rates: Option<Vec<u64>>,
    /// Data sets of the profile with sizes, instead of its own.
    pub(super) sizes: Option<Vec<DataSize>>,
    pub(super) settings: BTreeMap<Product, BTreeMap<String, String>>,
    pub(super) files: Option<DataFiles>,
    /// Of `Cm_Cache_Backend_Redis`, with their prefix.
    pub(super) cm_settings: BTreeMap<String, String>,
}

impl Resolved {
    pub(super) fn new(study: &Study, choices: &Choices) -> Result<Self, StudyError> {
        let Some(size) = study.scales.get(&choices.scale) else {
            let known = quoted_list(study.scales.keys().map(|s| s.name()));
            let scale = choices.scale.name();
            return Err(StudyError::Choice(format!(
                "study `{}` has no scale `{scale}` (known: {known})",
                study.name
            )));
        };
        let mut resolved = Self {
            profiles: study.defaults.profile.get_ref().clone(),
            defaults: study.defaults.clone(),
            size: size.clone(),
            sizes: None,
            rates: None,
            settings: BTreeMap::new(),
            files: choices.files.clone(),
            cm_settings: BTreeMap::new(),
        };
        for (key, value) in &choices.sets {
            resolved.set(study, key, value)?;
        }
        resolved.read_from_files(study, &choices.sets)?;
        if let Some(budget_s) = choices.budget_s {
            resolved.size.budget_s = budget_s;
            // Who sets a time means it, also where fewer blocks fit than the scale would demand.
            if choices.sets.iter().all(|(key, _)| key != "blocks_min") {
                resolved.size.blocks_min = 1;
            }
        }
        if let Some(timeout_ms) = choices.timeout_ms {
            resolved.defaults.timeout_ms = timeout_ms;
        }
        resolved.agree_on_blocks(&choices.sets)?;
        resolved.agree_on_sizes(study, choices)?;
        if study.workload == StudyWorkload::AppCache
            && let Some(problem) = resolved.defaults.fault_in_data()
        {
            return Err(StudyError::Choice(format!("--set: {problem}")));
        }
        if study.workload == StudyWorkload::Ramp {
            resolved.agree_on_pace(study, choices)?;
            resolved.agree_on_times()?;
        }
        Ok(resolved)
    }

    fn set(&mut self, study: &Study, key: &str, value: &str) -> Result<(), StudyError> {
        if keys::of_others(study.workload, key) {
            return Err(unknown(study, key));
        }
        if study.workload == StudyWorkload::Ramp
            && let Some(set) = self.set_of_ramp(key, value)
        {
            return set;
        }
        let defaults = &mut self.defaults;
        let size = &mut self.size;
        match key {
            "profile" => self.profiles = profiles(study, value)?,
            "clients" => {
                defaults.clients = value
                    .split(',')
                    .map(|v| within(key, v, &(1..=4096), CLIENTS))
                    .collect::<Result<_, _>>()
                    .map_err(|_| bad(key, value, CLIENTS))?;
            }
            "value_bytes" => {
                defaults.value_bytes =
                    within(key, value, &(32..=16 << 20), "32 to 16777216 bytes")?;
            }
            "ttl_s" => {
                defaults.ttl_s = within(key, value, &(1..=31_536_000), "1 to 31536000 seconds")?;
            }
            "generation" => {
                defaults.generation = match value {
                    "inside" => Generation::Inside,
                    "outside" => Generation::Outside,
                    _ => return Err(bad(key, value, "`inside` or `outside`")),
                }
            }
            "think_ms" => {
                defaults.think_ms =
                    within(key, value, &(0.0..=60_000.0), "0 to 60000 milliseconds")?;
            }
            "verify_one_in" => {
                defaults.verify_one_in = within(key, value, &(1..=1_000_000), "1 to 1000000")?;
            }
            "equivalence_zone" => {
                defaults.equivalence_zone = within(key, value, &(0.001..=1.0), "0.001 to 1")?;
            }
            "timeout_ms" => {
                defaults.timeout_ms = within(key, value, &(1..=3_600_000), "1 to 3600000")?;
            }
            "sessions" => size.sessions = within(key, value, &(1..=100_000_000), "1 to 100000000")?,
            "warmup_ms" => size.warmup_ms = within(key, value, &(0..=3_600_000), "0 to 3600000")?,
            "measure_ms" => {
                size.measure_ms = within(key, value, &(1..=86_400_000), "1 to 86400000")?;
            }
            "blocks_min" => size.blocks_min = within(key, value, &(1..=10_000), "1 to 10000")?,
            "blocks_max" => size.blocks_max = within(key, value, &(1..=10_000), "1 to 10000")?,
            "budget_s" => {
                size.budget_s = within(key, value, &(0.0..=604_800.0), "0 to 604800 seconds")?;
            }
            _ => return self.of_records(study, key, value),
        }
        Ok(())
    }

    /// The values of an application cache; other keys are settings of servers.
    fn of_records(&mut self, study: &Study, key: &str, value: &str) -> Result<(), StudyError> {
        let number = |range, expected| within(key, value, &range, expected);
        let defaults = &mut self.defaults;
        match key {
            "keys" => self.size.keys = number(1..=100_000_000, "1 to 100000000")?,
            "ops" => self.size.ops = number(1..=100_000_000, "1 to 100000000")?,
            "tags" => defaults.tags = number(1..=100_000_000, "1 to 100000000")?,
            "sizes" => {
                self.sizes = Some(sizes::parse(value).ok_or_else(|| bad(key, value, SIZES))?);
            }
            "min_tags" => defaults.min_tags = number(0..=1000, "0 to 1000")?,
            "max_tags" => defaults.max_tags = number(0..=1000, "0 to 1000")?,
            "min_rec_size" => defaults.min_rec_size = number(1..=16 << 20, RECORD)?,
            "max_rec_size" => defaults.max_rec_size = number(1..=16 << 20, RECORD)?,
            "write_chance" => defaults.write_chance = number(1..=1_000_000, "1 to 1000000")?,
            "clean_chance" => defaults.clean_chance = number(1..=1_000_000, "1 to 1000000")?,
            "magento" => {
                defaults.magento = match value {
                    "on" | "true" => true,
                    "off" | "false" => false,
                    _ => return Err(bad(key, value, "`on` or `off`")),
                }
            }
            "fill" => {
                defaults.fill = match value {
                    "save" => Fill::Save,
                    "fast" => Fill::Fast,
                    _ => return Err(bad(key, value, "`save` or `fast`")),
                }
            }
            "memory_limit" => {
                let limit = MemoryLimit::parse(value);
                let wrong = || bad(key, value, MemoryLimit::EXPECTED);
                defaults.memory_limit = Some(limit.ok_or_else(wrong)?);
            }
            _ => return self.server_setting(study, key, value),
        }
        Ok(())
    }

    /// Files decide records, tags and lists, and how long these are.
    fn read_from_files(
        &mut self,
        study: &Study,
        sets: &[(String, String)],
    ) -> Result<(), StudyError> {
        let Some(files) = &self.files else { return Ok(()) };
        study.takes_files()?;
        if let Some((key, value)) = sets.iter().find(|(key, _)| decided_by_files(key)) {
            return Err(StudyError::Choice(format!(
                "--set {key}=`{value}` cannot be: the files of --data-set `{}` decide it (leave \
                 one of the two out; `cachedyno data-set` writes files of other sizes)",
                files.directory
            )));
        }
        self.size.keys = files.keys;
        if files.ops > 0 {
            self.size.ops = files.ops;
        }
        Ok(())
    }

    /// The one that the user set wins over the scale's own.
    fn agree_on_blocks(&mut self, sets: &[(String, String)]) -> Result<(), StudyError> {
        let set = |key: &str| sets.iter().any(|(k, _)| k == key);
        let size = &mut self.size;
        match (set("blocks_min"), set("blocks_max")) {
            _ if size.blocks_min <= size.blocks_max => {}
            (true, true) => {
                return Err(StudyError::Choice(format!(
                    "--set blocks_min=`{}` is more than blocks_max=`{}`",
                    size.blocks_min, size.blocks_max
                )));
            }
            (false, true) => size.blocks_min = size.blocks_max,
            (true | false, false) => size.blocks_max = size.blocks_min,
        }
        Ok(())
    }

    fn server_setting(&mut self, study: &Study, key: &str, value: &str) -> Result<(), StudyError> {
        if study.workload == StudyWorkload::AppCache && key.starts_with(CM_PREFIX) {
            check_cm_setting(key, value)?;
            self.cm_settings.insert(key.into(), value.into());
            return Ok(());
        }
        let product = key.split_once('.').and_then(|(product, name)| {
            let product = Product::ALL.into_iter().find(|p| p.name() == product)?;
            let has_server = servers(study).contains(&product);
            (has_server && !name.is_empty()).then_some((product, name))
        });
        if let Some((product, name)) = product {
            let settings = self.settings.entry(product).or_default();
            settings.insert(name.into(), value.into());
            return Ok(());
        }
        Err(unknown(study, key))
    }
}

const SIZES: &str = "numbers of records and tags, as in `2000x200,20000x2000`";
const CLIENTS: &str = "1 to 4096, or several as in `1,8`";
const RECORD: &str = "1 to 16777216 bytes";

/// Products whose servers the study's workload can run on.
fn servers(study: &Study) -> &'static [Product] {
    match study.workload {
        StudyWorkload::Sessions => &[Product::Redis, Product::Mysql],
        StudyWorkload::AppCache => &[Product::Redis, Product::Mysql, Product::Memcached],
        StudyWorkload::Ramp => &[Product::Redis, Product::Memcached],
    }
}

/// Whether a setting of `Cm_Cache_Backend_Redis` exists and takes that value.
pub(super) fn check_cm_setting(key: &str, value: &str) -> Result<(), StudyError> {
    let name = key.strip_prefix(CM_PREFIX).unwrap_or(key);
    let Some((_, values)) = CM_SETTINGS.iter().find(|(known, _)| *known == name) else {
        let known: Vec<String> =
            CM_SETTINGS.iter().map(|(known, _)| format!("{CM_PREFIX}{known}")).collect();
        return Err(StudyError::Choice(format!(
            "unknown setting `{key}` (known: {})",
            quoted_list(known.iter().map(String::as_str))
        )));
    };
    if !values.contains(&value) {
        let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
        return Err(bad(key, value, &values.join(" or ")));
    }
    Ok(())
}

fn unknown(study: &Study, key: &str) -> StudyError {
    let mut settings: Vec<String> =
        servers(study).iter().map(|product| format!("{}.NAME", product.name())).collect();
    if study.workload == StudyWorkload::AppCache {
        settings.push(format!("{CM_PREFIX}NAME"));
    }
    StudyError::Choice(format!(
        "unknown key `{key}` in --set for study `{}` (known: {}, and {} for settings of servers \
         and software)",
        study.name,
        quoted_list(KEYS.into_iter().filter(|key| !keys::of_others(study.workload, key))),
        quoted_list(settings.iter().map(String::as_str))
    ))
}

pub(super) fn bad(key: &str, value: &str, expected: &str) -> StudyError {
    StudyError::Choice(format!("--set {key}=`{value}` does not fit (expected {expected})"))
}

pub(super) fn within<T: std::str::FromStr + PartialOrd>(
    key: &str,
    text: &str,
    range: &std::ops::RangeInclusive<T>,
    expected: &str,
) -> Result<T, StudyError> {
    match text.trim().parse::<T>() {
        Ok(value) if range.contains(&value) => Ok(value),
        _ => Err(bad(key, text, expected)),
    }
}

fn profiles(study: &Study, value: &str) -> Result<Vec<String>, StudyError> {
    if value == "all" {
        return Ok(study.profile_names().map(String::from).collect());
    }
    let mut chosen: Vec<String> = Vec::new();
    for name in value.split(',') {
        if !study.profile_names().any(|p| p == name) {
            let known = quoted_list(study.profile_names());
            return Err(StudyError::Choice(format!(
                "unknown profile `{name}` in --set profile (known: {known}; several with commas, \
                 or `all`)"
            )));
        }
        if !chosen.iter().any(|c| c == name) {
            chosen.push(name.into());
        }
    }
    Ok(chosen)
}
