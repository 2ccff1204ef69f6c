//! `cachedyno size`: which measured target carries a wanted rate, with how many servers and how
//! much memory, by the records of earlier runs.

use ::report::sizing::{Amount, Evidence, Mix, Outcome, Question, RateAsked, size, text};
use clap::{Args, ValueEnum};
use model::{Prices, Slo};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use workloads::kv::{VALUE_BYTES_MAX, Weights};

use super::bench::flags::read;
use crate::args::Records;
use crate::exit::{CliError, DONE, NOT_COVERED};
use crate::{foreign, output};

const AFTER_HELP: &str = "Examples:\n  \
    cachedyno size --rate 40k --slo 'p99<1ms' --value 1KiB --keys 5M\n  \
    cachedyno size --rate 40k --slo 'p99<1ms' --value 1KiB --tls --survive 1 --price p.toml\n  \
    cachedyno size --data 50GB --value 1000 --writes 20k\n\n\
    The answer follows from measurements only: from the lower end of the interval of a rate, and \
    from numbers of servers that were measured. If the records do not cover the question, it says \
    what is missing, prints the command of a run that would measure it, and the exit code is 6.";

const VALUE_HELP: &str = "Size of a value, such as 1KiB\n\n\
    It counts if it was measured, or lies between two sizes that were: then the larger one stands \
    for it.";

const SURVIVE_HELP: &str = "Number of servers that may fail at the same time: the others must \
    carry the rate\n\n\
    With 1, a record of `cachedyno run failover` of the same product, settings and size of values \
    limits the rate: to the share of the highest one at which clients were within the limits again \
    after every fault, and for each primary to the rate at which they were. Its replicas take the \
    place of spare servers. Without such a record the answer says that the failure was not \
    measured, and prints the command that measures it.";

const PRICE_HELP: &str = "Prices of servers: a TOML file with `currency` and a table `per_hour` by \
    target\n\n\
    currency = \"EUR\"\n\
    [per_hour]\n\
    redis = 0.12\n\n\
    A price is that of one server. Plans are then ordered by cost.";

/// Output format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SizeFormat {
    /// Tables for the terminal
    Text,
    /// The answer that docs/FORMAT.md describes
    Json,
}

/// Arguments of `size`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, allow_negative_numbers = true)]
#[group(id = "asked", required = true, multiple = true, args = ["rate", "keys", "data"])]
pub(crate) struct Size {
    /// Records to read: paths, ids or unique prefixes of ids [default: all]
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// Requests per second to answer, such as 40k
    #[arg(long, value_name = "RATE", requires_all = ["slos", "value"])]
    rate: Option<String>,
    /// Limit to meet at that rate, such as p99<1ms or error<0.01%; repeat to require several
    #[arg(long = "slo", value_name = "LIMIT", requires = "rate")]
    slos: Vec<String>,
    /// Size of a value, such as 1KiB
    #[arg(long, value_name = "BYTES", long_help = VALUE_HELP)]
    value: Option<String>,
    /// Operations and their weights, as in get=0.9,set=0.1 [default: the slowest that was measured]
    #[arg(long, value_name = "NAME=WEIGHT,...", requires = "rate")]
    op: Option<String>,
    /// Number of keys to keep in memory, such as 5M
    #[arg(long, value_name = "KEYS", conflicts_with = "data", requires = "value")]
    keys: Option<String>,
    /// Bytes of values to keep in memory, such as 50GB
    #[arg(long, value_name = "BYTES")]
    data: Option<String>,
    /// Writes per second while a store saves its data, to ask for the memory that is copied
    /// meanwhile
    #[arg(long, value_name = "RATE")]
    writes: Option<String>,
    /// Only targets that were measured with TLS
    #[arg(long, requires = "rate")]
    tls: bool,
    /// Share of a measured rate to use at most
    #[arg(long, value_name = "PERCENT", default_value = "80%", requires = "rate")]
    headroom: String,
    /// Number of servers that may fail at the same time: the others must carry the rate
    #[arg(long, value_name = "SERVERS", default_value_t = 0, requires = "rate")]
    #[arg(long_help = SURVIVE_HELP)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=100))]
    survive: u32,
    /// Prices of servers: a TOML file with `currency` and a table `per_hour` by target
    #[arg(long, value_name = "FILE", long_help = PRICE_HELP)]
    price: Option<PathBuf>,
    /// Format of the answer
    #[arg(long, value_enum, default_value = "text")]
    format: SizeFormat,
    #[command(flatten)]
    records: Records,
}

pub(crate) fn run(arguments: &Size) -> Result<ExitCode, CliError> {
    let question = question(arguments)?;
    let prices = arguments.price.as_deref().map(prices).transpose()?;
    let evidence = evidence(&arguments.records.out, &arguments.runs)?;
    if let (Some(prices), Some(file)) = (&prices, &arguments.price) {
        check_targets(prices, file, evidence.targets())?;
    }
    let out = &arguments.records.out;
    let records = (out != Path::new(archive::RECORDS)).then(|| out.to_string_lossy());
    let view = size(&question, &evidence, prices.as_ref(), records.as_deref());
    match arguments.format {
        SizeFormat::Text => {
            output::print_coloured(|colour| text::render(&view, super::columns(), colour))?;
        }
        SizeFormat::Json => output::print_json(&text::json(&view))?,
    }
    Ok(ExitCode::from(match view.outcome {
        Outcome::Covered => DONE,
        Outcome::PartlyCovered | Outcome::NotCovered => NOT_COVERED,
    }))
}

fn question(arguments: &Size) -> Result<Question, CliError> {
    let value_bytes = positive("--value", arguments.value.as_deref(), stats::parse_bytes)?;
    if value_bytes > Some(VALUE_BYTES_MAX) {
        let text = arguments.value.as_deref().unwrap_or_default();
        return Err(CliError::usage(format!(
            "--value is `{text}` (expected at most {})",
            stats::format_bytes(VALUE_BYTES_MAX)
        )));
    }
    let keys = positive("--keys", arguments.keys.as_deref(), stats::parse_count)?;
    let data = positive("--data", arguments.data.as_deref(), stats::parse_bytes)?;
    let question = Question {
        rate: rate_asked(arguments)?,
        amount: keys.map(Amount::Keys).or(data.map(Amount::Bytes)),
        value_bytes,
        writes_per_s: positive("--writes", arguments.writes.as_deref(), per_second)?,
        tls: arguments.tls,
    };
    if question.writes_per_s.is_some() && question.amount.is_none() {
        let problem =
            "--writes has no effect: no amount of data is given (expected --keys or --data)";
        return Err(CliError::usage(problem));
    }
    Ok(question)
}

fn rate_asked(arguments: &Size) -> Result<Option<RateAsked>, CliError> {
    let Some(per_s) = positive("--rate", arguments.rate.as_deref(), per_second)? else {
        return Ok(None);
    };
    let slos: Vec<Slo> =
        arguments.slos.iter().map(|text| read("--slo", text)).collect::<Result<_, _>>()?;
    let mix = |text: &String| -> Result<Option<Mix>, CliError> {
        let weights: Weights = read("--op", text)?;
        Ok(Mix::new(weights.pairs().iter().cloned()))
    };
    Ok(Some(RateAsked {
        per_s,
        slos,
        headroom: headroom(&arguments.headroom)?,
        survive: arguments.survive,
        mix: arguments.op.as_ref().map(mix).transpose()?.flatten(),
    }))
}

/// Parses an amount above 0.
fn positive<E: std::fmt::Display>(
    flag: &str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<u64, E>,
) -> Result<Option<u64>, CliError> {
    let Some(text) = text else { return Ok(None) };
    match parse(text).map_err(|e| CliError::usage(format!("{flag}: {e}")))? {
        0 => Err(CliError::usage(format!("{flag} is `{text}` (expected more than 0)"))),
        amount => Ok(Some(amount)),
    }
}

/// Parses a number per second: `40k` or `40k/s`.
fn per_second(text: &str) -> Result<u64, stats::UnitError> {
    stats::parse_count(text.trim().strip_suffix("/s").unwrap_or(text))
}

/// Parses a share in percent: `80%`.
fn headroom(text: &str) -> Result<f64, CliError> {
    let percent =
        text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let share =
        percent.map(|percent| percent / 100.0).filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| {
        CliError::usage(format!(
            "--headroom is `{text}` (expected percent above 0 and at most 100, as in 80%)"
        ))
    })
}

/// Reads the price file.
fn prices(file: &Path) -> Result<Prices, CliError> {
    let name = file.display();
    let text = fs::read_to_string(file)
        .map_err(|e| CliError::usage(format!("--price `{name}` cannot be read: {e}")))?;
    Prices::parse(&text).map_err(|e| CliError::usage(format!("--price `{name}`: {e}")))
}

/// Rejects prices of targets that no record has.
fn check_targets(prices: &Prices, file: &Path, known: &[String]) -> Result<(), CliError> {
    match prices.per_hour.keys().find(|target| !known.contains(target)) {
        None => Ok(()),
        Some(unknown) => {
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            Err(CliError::usage(format!(
                "--price `{}` has a price of `{unknown}`, which is in no record (targets with \
                 rates in the records: {known})",
                file.display()
            )))
        }
    }
}

/// Reads the named records, or all. One that is named and cannot be read is an error; any other is
/// left out.
fn evidence(records: &Path, runs: &[String]) -> Result<Evidence, CliError> {
    let mut reader = EvidenceReader::default();
    if !runs.is_empty() {
        let paths = runs.iter().map(|run| super::find(records, run));
        let mut paths = paths.collect::<Result<Vec<PathBuf>, _>>()?;
        paths.sort();
        paths.dedup();
        paths.iter().try_for_each(|path| reader.read(path))?;
        return Ok(reader.found);
    }
    let mut unreadable = Vec::new();
    let all = foreign::within(records, foreign::size(records, 2), || {
        Ok(archive::list(records, &mut |name, e| {
            unreadable.push((name.to_string_lossy().into_owned(), e.to_string()));
        })?)
    })?;
    for (name, problem) in unreadable {
        reader.found.unreadable(name, problem);
    }
    for listed in all {
        if let Err(e) = reader.read(&listed.path) {
            reader.found.unreadable(listed.run, e.to_string());
        }
    }
    Ok(reader.found)
}

/// Reads records one after another.
#[derive(Default)]
struct EvidenceReader {
    found: Evidence,
    /// Bytes of all records so far: memory of earlier ones may not have been returned.
    bytes: u64,
}

impl EvidenceReader {
    fn read(&mut self, path: &Path) -> Result<(), CliError> {
        self.bytes = self.bytes.saturating_add(foreign::size(path, 1));
        let found = foreign::within(path, self.bytes, || {
            let (recorded, view) = super::judged_record(path)?;
            let when = super::started(recorded.header.started_unix_ms);
            Ok(Evidence::of(&recorded, &view, &when))
        })?;
        self.found.add(found);
        Ok(())
    }
}
