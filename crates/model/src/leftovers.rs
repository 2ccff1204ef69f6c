//! Data that a killed run may have left in a store that it did not start, and the command that
//! removes exactly that data.
//!
//! The run's id, the target's name and the store's address come from a record, possibly from an
//! untrusted source, and become part of a command that a user copies. So each is parsed and every
//! word of the command is quoted. If one cannot be parsed, no command is printed.

use crate::plan::{Layout, Plan, PlannedTarget, Product};
use crate::record::{Header, is_run_id};
use crate::shell::shell_words;
use crate::study::{TargetChoice, is_target_name};
use crate::target::{Endpoint, NetAddress};
use std::path::Path;

/// Part of an address that marks TLS without certificate verification.
const UNVERIFIED: &str = ", TLS without verification";
/// Flag that allows stores with foreign data.
const SHARED: &str = "--allow-shared";
/// Reason for leftovers of a run without a seal.
pub const KILLED: &str = "was killed";
/// Prefix that phpredis adds to session keys.
pub const PAGE_KEYS: &str = "PHPREDIS_SESSION:";

/// Prefix of a run's keys and tables in an existing store; empty for files, which are in a separate
/// directory per run.
pub fn own_names(product: Product, run: &str) -> String {
    match (product.has_server(), product.keeps_tables()) {
        (false, _) => String::new(),
        (true, false) => format!("cachedyno-{run}-"),
        (true, true) => format!("cachedyno_{run}_"),
    }
}

/// A sentence about what a run may have left in an existing store, with the reason `why` and the
/// command that removes it. `None` for private servers and directories, which the guard cleans up.
pub fn leftovers(header: &Header, target: &PlannedTarget, why: &str) -> Option<String> {
    let (run, plan, address) = (&header.run, &header.plan, target.address.as_ref()?);
    if !target.product.has_server() {
        return None;
    }
    let start = format!("the run {why} and may have left");
    let Some(command) = clean(header, target) else {
        return Some(format!(
            "{start} data in a store, but the name or address in the record was not written by \
             cachedyno, so no command here can remove the data"
        ));
    };
    if let Some(backend) = target.backend {
        let names = backend.own_names().unwrap_or_default();
        if names.is_empty() {
            return Some(format!(
                "{start} records in {address} that cannot be distinguished from foreign ones"
            ));
        }
        return Some(format!(
            "{start} records in {address}: keys that begin with `{names}`. Every such cache uses \
             this prefix, so they cannot be distinguished from foreign keys. The database was \
             empty when the run started; if nobody else has used it since, this removes them: \
             `{command} --i-own-this-server`"
        ));
    }
    let again = resume(header)
        .map_or_else(String::new, |c| format!(", and so does `{c}` before it continues"));
    let own = own_names(target.product, run);
    let (what, names) = if target.product.keeps_tables() {
        ("tables", vec![own])
    } else {
        ("keys", key_prefixes(plan, target, &own))
    };
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    Some(format!(
        "{start} {what} in {address} whose names begin with {}; this removes exactly those: \
         `{command}`{again}",
        names.join(" or ")
    ))
}

/// The command that resumes a run; `None` if the record lacks a valid part of it.
pub fn resume(header: &Header) -> Option<String> {
    let existing = header.plan.targets.iter().filter(|target| target.address.is_some());
    let stores = existing.map(|target| choice(header, target)).collect::<Option<Vec<_>>>()?;
    is_run_id(&header.run).then(|| resuming(header, records(&header.command), stores))
}

/// The command that resumes a run with its existing stores and its record below `out`.
pub fn resuming(
    header: &Header,
    out: Option<&str>,
    stores: impl IntoIterator<Item = String>,
) -> String {
    let mut words = ["cachedyno", "run", "--resume", &header.run].map(String::from).to_vec();
    words.extend(out.into_iter().flat_map(|out| ["--out".into(), out.into()]));
    words.extend(stores.into_iter().flat_map(|store| ["--target".into(), store]));
    words.extend(header.command.iter().find(|word| *word == SHARED).cloned());
    words.extend(places(header).into_iter().flatten());
    if header.plan.cells.iter().any(|cell| cell.workload.by_command().is_some()) {
        words.extend(["--fault-command", "COMMAND"].map(String::from));
    }
    shell_words(&words)
}

/// The `--target` value for a target's existing store; `None` if the record lacks a valid part of
/// it.
fn choice(header: &Header, target: &PlannedTarget) -> Option<String> {
    let verified = target.address.as_ref()?.replace(UNVERIFIED, ", TLS");
    match given_as(&header.command, &target.name, &verified) {
        Some(word) => Some(word),
        None if !target.product.has_server() => None,
        None => Some(format!("{}={}", target.name, url(target.product, &verified)?)),
    }
}

/// The command that removes the run's leftovers from a target; `None` if the record lacks a valid
/// part of it.
fn clean(header: &Header, target: &PlannedTarget) -> Option<String> {
    let address = target.address.as_ref()?;
    let fits =
        is_run_id(&header.run) && is_target_name(&target.name) && !target.name.starts_with('-');
    let choice = choice(header, target)?;
    let mut words = vec!["cachedyno", "clean", &header.run, "--target", &choice];
    words.extend(address.contains(UNVERIFIED).then_some("--tls-insecure"));
    words.extend(records(&header.command).into_iter().flat_map(|out| ["--out", out]));
    fits.then(|| shell_words(words))
}

/// The `--target` value of an existing store on its run's command line, if it leads to that address
/// and contains no masked password.
pub fn given_as(command: &[String], name: &str, address: &str) -> Option<String> {
    let value = |word: &String| word.strip_prefix("--target=").unwrap_or(word).to_string();
    command.iter().map(value).find(|word| {
        let is_it = |choice: TargetChoice| {
            let endpoint = choice.endpoint.filter(|_| choice.name == name);
            endpoint.is_some_and(|e| e.to_string() == address && is_plain(&e))
        };
        let is_whole = !word.contains("***") && !word.contains(['`', '\'']);
        is_whole && !word.contains(char::is_control) && TargetChoice::parse(word).is_ok_and(is_it)
    })
}

/// The options that say on which machines workers and private servers run, as the run had them.
fn places(header: &Header) -> Vec<[String; 2]> {
    let plan = &header.plan;
    let given =
        |option: &str| Some([option.to_string(), value_of(&header.command, option)?.to_string()]);
    let mut words = Vec::new();
    if plan.places.workers > 0 {
        let local = || ["--fleet".into(), format!("local:{}", plan.places.workers)];
        words.push(given("--fleet").unwrap_or_else(local));
        words.extend(["--token-file", "--fleet-wait"].into_iter().filter_map(given));
    }
    if plan.places.servers_on.is_some() {
        words.push(given("--rig-on").unwrap_or_else(|| ["--rig-on", "HOST:PORT"].map(Into::into)));
        words.extend(given("--rig-token"));
    }
    words
}

/// The record directory (`--out`) on a run's command line.
pub fn records(command: &[String]) -> Option<&str> {
    value_of(command, "--out")
}

/// The value of an option on a command line, if it is safe to print.
fn value_of<'a>(command: &'a [String], option: &str) -> Option<&'a str> {
    let mut words = command.iter().map(String::as_str).skip_while(|word| {
        !word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    });
    let value = match words.next()?.strip_prefix(option)? {
        "" => words.next()?,
        value => value.strip_prefix('=')?,
    };
    let is_plain = !value.is_empty() && !value.starts_with('-') && !value.contains("***");
    (is_plain && !value.contains(|c: char| c.is_control() || "`'".contains(c))).then_some(value)
}

/// The URL of the store at an address as [`Endpoint`] prints it; `None` for anything else.
fn url(product: Product, address: &str) -> Option<String> {
    let form = product.url()?;
    let before_comma = |text| str::split_once(text, ", ").unwrap_or((text, ""));
    let (place, database, more) = match form.database {
        None => {
            let (place, more) = before_comma(address);
            (place, None, more)
        }
        Some(key) => {
            let (place, rest) = address.rsplit_once(" database ")?;
            let (database, more) = before_comma(rest);
            (place, Some((key, database)), more)
        }
    };
    let has = |word: &str| more.split(", ").any(|own| own == word);
    let name = if has("TLS") { form.with_tls } else { form.scheme };
    let cluster = if has("cluster") { "+cluster" } else { "" };
    let protocol = match (has("RESP3"), has("meta commands")) {
        (true, _) => Some("protocol=3"),
        (_, true) => Some("protocol=meta"),
        _ => None,
    };
    let mut queries: Vec<String> = protocol.into_iter().map(Into::into).collect();
    if let Some(servers) = more.split(", ").find_map(|own| own.strip_prefix("a proxy of ")) {
        let servers = servers.split(" and ").map(bracketed).collect::<Option<Vec<_>>>()?;
        queries.push(format!("behind={}", servers.join(",")));
    }
    let url = if let Some(path) = place.strip_prefix("unix socket ") {
        queries.extend(database.map(|(key, database)| format!("{key}={database}")));
        format!("{name}+unix://{}", encoded(path))
    } else {
        let servers = place.split(" and ").map(bracketed).collect::<Option<Vec<_>>>()?;
        let database = database.map_or_else(String::new, |(_, database)| format!("/{database}"));
        format!("{name}{cluster}://{}{database}", servers.join(","))
    };
    let url = if queries.is_empty() { url } else { format!("{url}?{}", queries.join("&")) };
    let endpoint = Endpoint::parse(&url).ok()?;
    (endpoint.to_string() == address && is_plain(&endpoint)).then_some(url)
}

/// `host:port` for a URL: with brackets around an IPv6 address.
fn bracketed(server: &str) -> Option<String> {
    let (host, port) = server.rsplit_once(':')?;
    Some(if host.contains(':') { format!("[{host}]:{port}") } else { server.into() })
}

/// A path, percent-encoded for a URL.
fn encoded(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-_.~".contains(&b);
    let byte = |b: u8| if plain(b) { char::from(b).into() } else { format!("%{b:02X}") };
    path.bytes().map(byte).collect::<Vec<String>>().concat()
}

/// True if hosts are names or addresses and paths are absolute, so that both are safe to print.
fn is_plain(endpoint: &Endpoint) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    let is_path = |path: &Path| {
        let text = path.to_string_lossy();
        path.is_absolute() && !text.contains('`') && !text.contains(char::is_control)
    };
    let is_plain = |address: &NetAddress| match address {
        NetAddress::Tcp(host, _) => !host.starts_with('-') && host.chars().all(good),
        NetAddress::Unix(path) => is_path(path),
    };
    let mut addresses = endpoint.addresses().iter().chain(endpoint.behind());
    addresses.all(is_plain) && endpoint.directory().is_none_or(is_path)
}

/// Key prefixes of the plain and page layouts that the plan uses.
fn key_prefixes(plan: &Plan, target: &PlannedTarget, own: &str) -> Vec<String> {
    let prefix = |layout| match layout {
        Layout::Plain => own.to_string(),
        Layout::Page => format!("{PAGE_KEYS}{own}"),
    };
    plan.layouts(&target.name).into_iter().map(prefix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Scale;
    use crate::study::{Choices, Study, TargetChoice};

    fn header(plan: Plan, command: &[&str]) -> Header {
        Header {
            format: crate::record::RECORD_FORMAT,
            run: "0123abcd".into(),
            tool: String::new(),
            command: command.iter().map(ToString::to_string).collect(),
            started_unix_ms: 0,
            plan,
            conditions: crate::Conditions::default(),
            null_rates: Vec::new(),
            calibration: None,
            host_mark: None,
        }
    }

    /// The leftovers message for a target of a shipped study.
    fn message(study: &str, target: &str, sets: &[(&str, &str)]) -> Option<String> {
        let plan = Study::parse("study", study).unwrap().plan(&Choices {
            sets: sets.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            targets: vec![TargetChoice::parse(target).unwrap()],
            ..Choices::new(Scale::Quick, 1)
        });
        let plan = plan.unwrap();
        let header = header(plan, &[]);
        leftovers(&header, &header.plan.targets[0], KILLED)
    }

    const SESSIONS: &str = include_str!("../../../studies/sessions.toml");
    const APP_CACHE: &str = include_str!("../../../studies/app-cache.toml");

    #[test]
    fn command_for_keys_names_run_and_store() {
        let text = message(SESSIONS, "x=redis://:hush@10.0.0.5:6379/9", &[]).unwrap();
        assert_eq!(
            text,
            "the run was killed and may have left keys in 10.0.0.5:6379 database 9 whose names begin \
             with `cachedyno-0123abcd-`; this removes exactly those: `cachedyno clean 0123abcd \
             --target x=redis://10.0.0.5:6379/9`, and so does `cachedyno run --resume 0123abcd \
             --target x=redis://10.0.0.5:6379/9` before it continues"
        );
        let pages = message(SESSIONS, "x=redis+unix:///run/r.sock?db=3", &[("profile", "page")]);
        let pages = pages.unwrap();
        for part in [
            "begin with `PHPREDIS_SESSION:cachedyno-0123abcd-`;",
            "--target 'x=redis+unix:///run/r.sock?db=3'`",
        ] {
            assert!(pages.contains(part), "no `{part}` in {pages}");
        }
    }

    #[test]
    fn command_for_tables_names_run_and_store_without_password() {
        let text = message(SESSIONS, "x=mysql://shop:hush@db:3307/shop", &[]).unwrap();
        let command = "`cachedyno clean 0123abcd --target x=mysql://db:3307/shop`";
        assert!(text.contains(command) && !text.contains("hush"), "{text}");
    }

    #[test]
    fn cache_records_cannot_be_distinguished_from_foreign_ones() {
        let text = message(APP_CACHE, "cm-redis=redis://10.0.0.5:6379/9", &[]).unwrap();
        for part in [
            "records in 10.0.0.5:6379 database 9: keys that begin with `zc:`",
            "cannot be distinguished from foreign keys. The database was empty",
            "--target cm-redis=redis://10.0.0.5:6379/9 --i-own-this-server`",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        assert!(!text.contains("--resume"), "{text}");
    }

    #[test]
    fn private_servers_and_directories_have_no_message() {
        assert_eq!(message(SESSIONS, "redis", &[]), None);
        assert_eq!(message(SESSIONS, "x=file:///srv/sessions", &[]), None);
    }

    #[test]
    fn printed_addresses_are_parsed_back_to_urls() {
        for (given, product) in [
            ("redis://h:6379/0", Product::Redis),
            ("rediss://[::1]:7000/3?protocol=3", Product::Redis),
            ("redis+cluster://a_b.example:7000/0", Product::Redis),
            ("rediss+cluster://h:7000/0", Product::Redis),
            ("redis+unix:///run/a%20b%27s.sock?db=2", Product::Redis),
            ("redis://h:5/0?behind=a:1,[::1]:6379", Product::Redis),
            ("mysql://db:3307/shop-1$", Product::Mysql),
            ("mysql+unix:///run/m.sock?database=d", Product::Mysql),
            ("memcacheds://a:1,[::1]:2?protocol=meta", Product::Memcached),
            ("memcached+unix:///m.sock", Product::Memcached),
        ] {
            let address = Endpoint::parse(given).unwrap().to_string();
            assert_eq!(url(product, &address).as_deref(), Some(given), "{address}");
        }
    }

    #[test]
    fn target_values_are_taken_from_the_command_line() {
        let word = "--target=x=mysql+unix:///s?database=d&user=clerk";
        let words = ["cachedyno".to_string(), word.into()];
        let address = "unix socket /s database d";
        assert_eq!(given_as(&words, "x", address).as_deref(), word.strip_prefix("--target="));
        for (name, address) in [("y", address), ("x", "unix socket /s database e")] {
            assert_eq!(given_as(&words, name, address), None);
        }
        for word in ["x=mysql://***@h/d", "x=mysql://u`touch x`@h/d", "x=mysql://u'@h/d"] {
            assert_eq!(given_as(&[word.into()], "x", "h:3306 database d"), None, "{word}");
        }
    }

    #[test]
    fn invalid_addresses_runs_and_names_produce_no_command() {
        let plan = Study::parse("study", SESSIONS).unwrap().plan(&Choices {
            targets: vec![TargetChoice::parse("x=redis://h/1").unwrap()],
            ..Choices::new(Scale::Quick, 1)
        });
        let plan = plan.unwrap();
        let header = header(plan, &[]);
        let message = |product, address: &str, run: &str, name: &str| {
            let target = PlannedTarget {
                product,
                address: Some(address.into()),
                name: name.into(),
                ..header.plan.targets[0].clone()
            };
            leftovers(&Header { run: run.into(), ..header.clone() }, &target, KILLED).unwrap()
        };
        for (product, address) in [
            (Product::Redis, "h:1; touch x database 1"),
            (Product::Redis, "h:1 database 1; touch x"),
            (Product::Redis, "h:1 database 1, TLS; touch x"),
            (Product::Redis, "$(touch x):1 database 1"),
            (Product::Redis, "h:99999 database 1"),
            (Product::Redis, "-h:1 database 1"),
            (Product::Redis, "unix socket x database 1"),
            (Product::Redis, "unix socket /x`touch x` database 1"),
            (Product::Redis, "unix socket /x\n database 1"),
            (Product::Redis, ""),
            (Product::Mysql, "h:1 database x; touch x"),
            (Product::Mysql, "h:1 database "),
            (Product::Memcached, "h:1 and `touch x`"),
        ] {
            let text = message(product, address, "0123abcd", "x");
            assert!(text.contains("no command here") && !text.contains("touch"), "{text}");
        }
        for run in ["", "*", "0123abcd; touch x", "0123ABCD", "$(touch x)"] {
            let text = message(Product::Redis, "h:1 database 1", run, "x");
            assert!(text.contains("no command here") && !text.contains("touch"), "{text}");
        }
        for name in ["", "x; touch x", "`touch x`", "-x", "$(touch x)"] {
            let text = message(Product::Redis, "h:1 database 1", "0123abcd", name);
            assert!(text.contains("no command here") && !text.contains("touch"), "{text}");
        }
        let text =
            message(Product::Redis, "unix socket /a b'$(touch x) database 1", "0123abcd", "x");
        assert!(text.contains("'x=redis+unix:///a%20b%27%24%28touch%20x%29?db=1'"), "{text}");
    }
}
