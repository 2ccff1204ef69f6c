//! Parser for scripts.

use super::script::{ConnectionStall, Drip, Fault, Script, Service, Stall};
use stats::{parse_bytes, parse_duration_ns};
use std::str::FromStr;

/// All directives of a script.
const WORDS: [&str; 21] = [
    "service",
    "servers",
    "stall",
    "stall-once",
    "stall-connection",
    "rate",
    "drip",
    "error",
    "wrong",
    "short",
    "malformed",
    "gigantic",
    "endless",
    "hang",
    "reset",
    "faults-on",
    "faults-after",
    "reset-after",
    "close-on-accept",
    "max-connections",
    "seed",
];
/// Options that can be repeated.
const REPEATABLE: [&str; 4] = ["stall", "stall-once", "stall-connection", "error"];
/// Maximum number of parallel servers.
const SERVERS_MAX: usize = 1024;
/// Maximum time in a script: a year is longer than any measurement.
const TIME_NS_MAX: u64 = 366 * 86_400 * 1_000_000_000;

/// An error in a script, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptError(String);

/// The known directives as a list for messages.
fn known() -> String {
    WORDS.map(|word| format!("`{word}`")).join(", ")
}

impl FromStr for Script {
    type Err = ScriptError;

    /// Parses comma-separated directives; ignores surrounding blanks and empty directives.
    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let mut script = Self::default();
        let mut seen = Vec::new();
        for given in text.split(',').map(str::trim).filter(|given| !given.is_empty()) {
            let (name, value) = given.split_once('=').unwrap_or((given, ""));
            let Some(word) = WORDS.into_iter().find(|word| *word == name) else {
                let known = known();
                return Err(ScriptError(format!(
                    "unknown directive `{name}` in a script, expected one of {known}"
                )));
            };
            if seen.contains(&word) && !REPEATABLE.contains(&word) {
                return Err(ScriptError(format!(
                    "`{word}` appears twice in a script, expected once"
                )));
            }
            seen.push(word);
            add(&mut script, word, value).map_err(|expected| {
                ScriptError(format!("`{given}` in a script, expected {expected}"))
            })?;
        }
        let sum: f64 = script.faults.iter().map(|(_, share)| share).sum();
        // Ten times 0.1 is slightly more than 1.
        if sum > 1.0 + 1e-9 {
            return Err(ScriptError(format!(
                "the shares of faults in a script add up to `{sum}`, expected at most 1"
            )));
        }
        Ok(script)
    }
}

/// Adds one directive to the script; the error is the expected form.
fn add(script: &mut Script, word: &str, value: &str) -> Result<(), &'static str> {
    match word {
        "service" => script.service = service(value).ok_or(SERVICE)?,
        "servers" => {
            let servers = value.parse().ok().filter(|n| (1..=SERVERS_MAX).contains(n));
            script.servers = servers.ok_or("servers=N from 1 to 1024")?;
        }
        "stall" => script.stalls.push(stall(value).ok_or(STALL)?),
        "stall-once" => script.stalls.push(stall_once(value).ok_or(STALL_ONCE)?),
        "stall-connection" => {
            script.connection_stalls.push(connection_stall(value).ok_or(STALL_CONNECTION)?);
        }
        "rate" => {
            let rate = value.parse().ok().filter(|rate| (1e-3..=1e9).contains(rate));
            script.rate_per_s = Some(rate.ok_or("rate=N per second, from 0.001 to 1e9")?);
        }
        "drip" => script.drip = Some(drip(value).ok_or("drip=SIZE/TIME such as drip=1B/10ms")?),
        "error" => script.faults.push(error(value).ok_or(ERROR)?),
        "faults-on" if !value.is_empty() => script.faults_on = Some(value.to_ascii_lowercase()),
        "faults-on" => return Err("faults-on=COMMAND such as faults-on=get"),
        "faults-after" => script.faults_after = value.parse().map_err(|_| "faults-after=N")?,
        "reset-after" => script.reset_after = Some(value.parse().map_err(|_| "reset-after=N")?),
        "close-on-accept" if value.is_empty() => script.close_on_accept = true,
        "close-on-accept" => return Err("close-on-accept without a value"),
        "max-connections" => {
            let most = value.parse().map_err(|_| "max-connections=N")?;
            script.connections_max = Some(most);
        }
        "seed" => script.seed = value.parse().map_err(|_| "seed=N")?,
        fault => {
            let share = share(value).ok_or("a share from 0 to 1, such as 0.001")?;
            script.faults.extend(plain_fault(fault).map(|fault| (fault, share)));
        }
    }
    Ok(())
}

const SERVICE: &str = "service=constant:TIME, service=exponential:TIME or \
    service=bimodal:TIME:TIME:SHARE, such as service=bimodal:100us:10ms:0.01";
const STALL: &str = "stall=LENGTH/PERIOD, the period longer, such as stall=200ms/2s";
const STALL_ONCE: &str = "stall-once=LENGTH@TIME, such as stall-once=1s@5s";
const STALL_CONNECTION: &str = "stall-connection=TIME@N, such as stall-connection=2s@3";
const ERROR: &str = "error=SHARE:TEXT on one line, such as error=0.01:LOADING";

/// The fault of a directive whose only value is a share.
fn plain_fault(word: &str) -> Option<Fault> {
    Some(match word {
        "wrong" => Fault::Wrong,
        "short" => Fault::Short,
        "malformed" => Fault::Malformed,
        "gigantic" => Fault::Gigantic,
        "endless" => Fault::Endless,
        "hang" => Fault::Hang,
        "reset" => Fault::Reset,
        _ => return None,
    })
}

fn time(text: &str) -> Option<u64> {
    parse_duration_ns(text).ok().filter(|ns| *ns <= TIME_NS_MAX)
}

/// A time greater than zero.
fn positive_time(text: &str) -> Option<u64> {
    time(text).filter(|ns| *ns > 0)
}

fn share(text: &str) -> Option<f64> {
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share))
}

fn service(text: &str) -> Option<Service> {
    let parts: Vec<&str> = text.split(':').collect();
    Some(match parts[..] {
        ["constant", ns] => Service::Constant { ns: time(ns)? },
        ["exponential", mean] => Service::Exponential { mean_ns: time(mean)? },
        ["bimodal", fast, slow, slow_share] => Service::Bimodal {
            fast_ns: time(fast)?,
            slow_ns: time(slow)?,
            slow_share: share(slow_share)?,
        },
        _ => return None,
    })
}

fn stall(text: &str) -> Option<Stall> {
    let (for_, every) = text.split_once('/')?;
    let (for_ns, every_ns) = (positive_time(for_)?, positive_time(every)?);
    (for_ns < every_ns).then_some(Stall::Every { for_ns, every_ns })
}

fn stall_once(text: &str) -> Option<Stall> {
    let (for_, after) = text.split_once('@')?;
    Some(Stall::Once { for_ns: positive_time(for_)?, after_ns: time(after)? })
}

fn connection_stall(text: &str) -> Option<ConnectionStall> {
    let (for_, number) = text.split_once('@')?;
    let connection = number.parse().ok().filter(|n| *n > 0)?;
    Some(ConnectionStall { connection, for_ns: positive_time(for_)? })
}

fn drip(text: &str) -> Option<Drip> {
    let (bytes, every) = text.split_once('/')?;
    let bytes = usize::try_from(parse_bytes(bytes).ok()?).ok().filter(|bytes| *bytes > 0)?;
    Some(Drip { bytes, every_ns: positive_time(every)? })
}

fn error(text: &str) -> Option<(Fault, f64)> {
    let (of, text) = text.split_once(':')?;
    let good = !text.is_empty() && !text.contains(char::is_control);
    Some((Fault::Error(text.into()), share(of)?)).filter(|_| good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directive_is_parsed() {
        let text = "service=bimodal:100us:10ms:0.01, servers=2,stall=200ms/2s,stall-once=1s@5s,\
                    stall-connection=2s@3,rate=5000,drip=1B/10ms,error=0.01:LOADING it all,\
                    wrong=0.001,short=0.002,malformed=0.003,gigantic=0.004,endless=0.005,\
                    hang=0.006,reset=0.007,faults-on=GET,faults-after=50,reset-after=100,\
                    close-on-accept,max-connections=9,seed=42";
        let service = Service::Bimodal { fast_ns: 100_000, slow_ns: 10_000_000, slow_share: 0.01 };
        let (second, faults) = (
            1_000_000_000,
            [
                (Fault::Error("LOADING it all".into()), 0.01),
                (Fault::Wrong, 0.001),
                (Fault::Short, 0.002),
                (Fault::Malformed, 0.003),
                (Fault::Gigantic, 0.004),
                (Fault::Endless, 0.005),
                (Fault::Hang, 0.006),
                (Fault::Reset, 0.007),
            ],
        );
        let expected = Script {
            service,
            servers: 2,
            stalls: vec![
                Stall::Every { for_ns: second / 5, every_ns: 2 * second },
                Stall::Once { for_ns: second, after_ns: 5 * second },
            ],
            connection_stalls: vec![ConnectionStall { connection: 3, for_ns: 2 * second }],
            rate_per_s: Some(5000.0),
            drip: Some(Drip { bytes: 1, every_ns: 10_000_000 }),
            faults: faults.into(),
            faults_on: Some("get".into()),
            faults_after: 50,
            reset_after: Some(100),
            close_on_accept: true,
            connections_max: Some(9),
            seed: 42,
        };
        assert_eq!(text.parse(), Ok(expected));
        assert_eq!(text.split(',').count(), WORDS.len(), "a directive is not tested");
    }

    #[test]
    fn an_empty_script_is_the_default() {
        assert_eq!("".parse(), Ok(Script::default()));
        let constant = Service::Constant { ns: 1_000_000 };
        let expected = Script { service: constant, ..Script::default() };
        assert_eq!(" service=constant:1ms ,, ".parse(), Ok(expected));
        assert!("error=0.5:A,error=0.5:B".parse::<Script>().is_ok());
    }

    fn error_of(text: &str) -> String {
        text.parse::<Script>().unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_directive_and_the_expected_form() {
        let unknown = error_of("sevice=constant:1ms");
        assert!(
            unknown
                .starts_with("unknown directive `sevice` in a script, expected one of `service`")
        );
        for (text, expected) in [
            ("service=constant", "service=constant:TIME"),
            ("service=constant:1", "service=constant:TIME"),
            ("service=bimodal:1us:1ms:1.1", "service=bimodal:100us:10ms:0.01"),
            ("servers=0", "1 to 1024"),
            ("stall=2s/200ms", "the period longer"),
            ("stall=0s/1s", "stall=200ms/2s"),
            ("stall-once=1s", "stall-once=1s@5s"),
            ("stall-once=1s@367d", "stall-once=1s@5s"),
            ("stall-connection=1s@0", "stall-connection=2s@3"),
            ("rate=0", "0.001 to 1e9"),
            ("rate=NaN", "0.001 to 1e9"),
            ("drip=0B/1ms", "drip=1B/10ms"),
            ("error=0.1", "error=0.01:LOADING"),
            ("error=0.1:a\r\nb", "error=0.01:LOADING"),
            ("wrong=-0.1", "from 0 to 1"),
            ("hang=NaN", "from 0 to 1"),
            ("faults-on=", "faults-on=get"),
            ("faults-after=-1", "faults-after=N"),
            ("close-on-accept=1", "close-on-accept without a value"),
            ("max-connections=x", "max-connections=N"),
        ] {
            let error = error_of(text);
            assert!(error.starts_with(&format!("`{text}` in a script, expected ")), "{error}");
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(error_of("seed=1,seed=2"), "`seed` appears twice in a script, expected once");
        let sum = error_of("wrong=0.75,reset=0.5");
        let expected = "the shares of faults in a script add up to `1.25`, expected at most 1";
        assert_eq!(sum, expected);
    }
}
