//! What a run that was killed may have left in a store that it did not start, and how to remove
//! just that.
//!
//! The run's id and the store's address come from a record, which may be somebody else's, and they
//! become commands that a user copies. So both are read into what they are, each word of a command
//! is quoted, and where one cannot be read there is no command.

use crate::plan::{Layout, Plan, PlannedTarget, Product, Workload};
use crate::record::is_run_id;
use crate::shell::shell_words;
use crate::target::NetAddress;
use std::path::Path;

/// What phpredis puts before the keys of sessions.
pub const PAGE_KEYS: &str = "PHPREDIS_SESSION:";

/// What the names of a run's keys and tables begin with in an existing store; empty for files,
/// which lie in a directory of the run's own.
pub fn own_names(product: Product, run: &str) -> String {
    match product {
        Product::Redis | Product::Memcached => format!("cachedyno-{run}-"),
        Product::Mysql => format!("cachedyno_{run}_"),
        Product::Files => String::new(),
    }
}

/// What the run `run` may have left in a target that was there before it, in a sentence with the
/// command that removes it; `None` for private servers and for directories, which the guard clears.
pub fn leftovers(plan: &Plan, run: &str, target: &PlannedTarget) -> Option<String> {
    let address = target.address.as_ref()?;
    let own = own_names(target.product, run);
    let start = "the run was killed and may have left";
    if target.product == Product::Files {
        return None;
    }
    let place = Place::read(target.product, address).filter(|_| is_run_id(run));
    let Some(place) = place else {
        return Some(format!(
            "{start} data in a store whose address, as the record has it, is none that cachedyno \
             writes: so there is no command here that removes it"
        ));
    };
    let again = match plan.search {
        None if target.backend.is_none() => {
            format!(", or `cachedyno run --resume {run}`, which removes them before it goes on")
        }
        _ => String::new(),
    };
    let text = match (target.backend.map(crate::Backend::own_names), target.product) {
        (_, Product::Files) => return None,
        (Some(names), _) => {
            let names = names.unwrap_or_default();
            format!(
                "{start} records in {address}: keys that begin with `{names}` as those of every \
                 such cache do, so that they cannot be told from others. The database was empty \
                 when the run began; where nobody else has used it since, this removes them: {}",
                place.removal(&[names.into()])
            )
        }
        (None, Product::Redis) => {
            let prefixes = key_prefixes(plan, target, &own);
            let begins: Vec<String> = prefixes.iter().map(|p| format!("`{p}`")).collect();
            format!(
                "{start} keys in {address} that begin with {}; this removes exactly those: \
                 {}{again}",
                begins.join(" or "),
                place.removal(&prefixes)
            )
        }
        (None, Product::Mysql) => format!(
            "{start} tables in {address} whose names begin with `{own}`; this removes exactly \
             those: {}{again}",
            place.removal(std::slice::from_ref(&own))
        ),
        (None, Product::Memcached) => format!(
            "{start} keys in {address} that begin with `{own}`; memcached cannot list keys, so \
             that only their lifetime, a restart, or `flush_all`, which removes those of others \
             too, ends them{again}"
        ),
    };
    Some(text)
}

/// What the keys of plain and of page layouts begin with, as far as the plan has them.
fn key_prefixes(plan: &Plan, target: &PlannedTarget, own: &str) -> Vec<String> {
    let own_cells = plan.cells.iter().filter(|cell| cell.target == target.name);
    let is_page = |w: &Workload| matches!(w, Workload::Sessions(s) if s.layout == Layout::Page);
    let (pages, others): (Vec<_>, Vec<_>) = own_cells.partition(|cell| is_page(&cell.workload));
    let of_others = (!others.is_empty()).then(|| own.to_string());
    let of_pages = (!pages.is_empty()).then(|| format!("{PAGE_KEYS}{own}"));
    [of_others, of_pages].into_iter().flatten().collect()
}

/// A store's address as a record has it.
struct Place {
    product: Product,
    /// Where servers listen; of all but memcached one.
    servers: Vec<NetAddress>,
    /// Number or name of the database; empty for memcached.
    database: String,
    is_tls: bool,
    is_cluster: bool,
}

impl Place {
    /// Reads what [`crate::Endpoint`] prints; `None` for anything else.
    fn read(product: Product, text: &str) -> Option<Self> {
        let (place, rest) = match product {
            Product::Memcached => text.split_once(", ").unwrap_or((text, "")),
            _ => text.rsplit_once(" database ")?,
        };
        let mut words = rest.split(", ");
        let database = match product {
            Product::Memcached => String::new(),
            _ => words.next()?.to_string(),
        };
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let known = ["TLS", "TLS without verification", "cluster", "RESP3", "meta commands"];
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
        let fits = match product {
            Product::Redis => database.parse::<u32>().is_ok_and(|n| n.to_string() == database),
            Product::Mysql => !database.starts_with('-') && database.chars().all(is_name),
            Product::Memcached => true,
            Product::Files => false,
        };
        let servers: Option<Vec<NetAddress>> = match product {
            Product::Memcached => place.split(" and ").map(server).collect(),
            _ => Some(vec![server(place)?]),
        };
        let is_known = words.iter().all(|word| known.contains(word));
        (fits && is_known && (product == Product::Memcached || !database.is_empty())).then_some(
            Self {
                product,
                servers: servers?,
                database,
                is_tls: words.iter().any(|word| word.starts_with("TLS")),
                is_cluster: words.contains(&"cluster"),
            },
        )
    }

    /// The commands that remove what begins with these names, one a name.
    fn removal(&self, prefixes: &[String]) -> String {
        let of_mysql = self.product == Product::Mysql;
        let commands = prefixes
            .iter()
            .map(|prefix| if of_mysql { self.tables(prefix) } else { self.keys(prefix) });
        let commands: Vec<String> = commands.map(|command| format!("`{command}`")).collect();
        let login = if of_mysql {
            " (with -u NAME, and its password in MYSQL_PWD)"
        } else if self.is_cluster {
            " (on each server of the cluster, with -c; a password in REDISCLI_AUTH)"
        } else {
            " (a password in REDISCLI_AUTH)"
        };
        commands.join(" and ") + login
    }

    fn keys(&self, prefix: &str) -> String {
        let mut cli = vec!["redis-cli".to_string()];
        cli.extend(self.flags(["-h", "-p", "-s"]));
        cli.extend(self.is_tls.then(|| "--tls".into()));
        cli.extend(["-n".into(), self.database.clone()]);
        let cli = shell_words(cli);
        let scan = shell_words(["--scan", "--pattern", &format!("{prefix}*")]);
        format!("{cli} {scan} | xargs -r -n 100 {cli} UNLINK")
    }

    /// Only tables whose names need no quotes, as ours do not.
    fn tables(&self, prefix: &str) -> String {
        let mut client = vec!["mysql".to_string()];
        client.extend(self.flags(["-h", "-P", "-S"]));
        let client = shell_words(client);
        let select = format!(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND \
             table_name REGEXP \"^{prefix}[0-9A-Za-z_]+$\""
        );
        let select = shell_words(["-Ne", &select, &self.database]);
        let drop = shell_words(["-e", "DROP TABLE {}", &self.database]);
        format!("{client} {select} | xargs -r -I{{}} {client} {drop}")
    }

    /// The flags by which a client reaches the server.
    fn flags(&self, [host_flag, port_flag, socket_flag]: [&str; 3]) -> Vec<String> {
        match self.servers.first() {
            Some(NetAddress::Unix(path)) => {
                vec![socket_flag.into(), path.to_string_lossy().into_owned()]
            }
            Some(NetAddress::Tcp(host, port)) => {
                vec![host_flag.into(), host.clone(), port_flag.into(), port.to_string()]
            }
            None => Vec::new(),
        }
    }
}

/// Reads what [`NetAddress`] prints; `None` for anything else.
fn server(text: &str) -> Option<NetAddress> {
    if let Some(path) = text.strip_prefix("unix socket ") {
        let is_path = Path::new(path).is_absolute() && !path.contains(char::is_control);
        // A backquote would end the command in the text that it stands in.
        return (is_path && !path.contains('`')).then(|| NetAddress::Unix(path.into()));
    }
    let (host, port) = text.rsplit_once(':')?;
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    let is_host = !host.is_empty() && !host.starts_with('-') && host.chars().all(good);
    is_host.then_some(NetAddress::Tcp(host.into(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Scale;
    use crate::study::{Choices, Study, TargetChoice};

    /// What is told of a target of a shipped study.
    fn told(study: &str, target: &str, sets: &[(&str, &str)]) -> Option<String> {
        let plan = Study::parse("study", study).unwrap().plan(&Choices {
            scale: Scale::Quick,
            budget_s: None,
            sets: sets.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            targets: vec![TargetChoice::parse(target).unwrap()],
            control: false,
            seed: 1,
            timeout_ms: None,
            files: None,
        });
        let plan = plan.unwrap();
        leftovers(&plan, "0123abcd", &plan.targets[0])
    }

    const SESSIONS: &str = include_str!("../../../studies/sessions.toml");
    const APP_CACHE: &str = include_str!("../../../studies/app-cache.toml");

    #[test]
    fn keys_with_the_runs_name_are_removed_exactly() {
        let text = told(SESSIONS, "x=redis://:hush@10.0.0.5:6379/9", &[]).unwrap();
        assert_eq!(
            text,
            "the run was killed and may have left keys in 10.0.0.5:6379 database 9 that begin with \
             `cachedyno-0123abcd-`; this removes exactly those: `redis-cli -h 10.0.0.5 -p 6379 -n \
             9 --scan --pattern 'cachedyno-0123abcd-*' | xargs -r -n 100 redis-cli -h 10.0.0.5 -p \
             6379 -n 9 UNLINK` (a password in REDISCLI_AUTH), or `cachedyno run --resume \
             0123abcd`, which removes them before it goes on"
        );
        let pages = told(SESSIONS, "x=redis+unix:///run/r.sock?db=3", &[("profile", "page")]);
        let pages = pages.unwrap();
        let pattern = "-s /run/r.sock -n 3 --scan --pattern \
                       'PHPREDIS_SESSION:cachedyno-0123abcd-*'";
        assert!(pages.contains(pattern) && !pages.contains("`cachedyno-0123"), "{pages}");
    }

    #[test]
    fn tables_with_the_runs_name_are_removed_exactly() {
        let text = told(SESSIONS, "x=mysql://shop:hush@db:3307/shop", &[]).unwrap();
        let command = "`mysql -h db -P 3307 -Ne 'SELECT table_name FROM information_schema.tables \
                       WHERE table_schema = DATABASE() AND table_name REGEXP \
                       \"^cachedyno_0123abcd_[0-9A-Za-z_]+$\"' shop | xargs -r -I{} mysql -h db -P \
                       3307 -e 'DROP TABLE {}' shop`";
        assert!(text.contains(command) && !text.contains("hush"), "{text}");
    }

    #[test]
    fn records_of_a_cache_cannot_be_told_from_those_of_others() {
        let text = told(APP_CACHE, "cm-redis=redis://10.0.0.5:6379/9", &[]).unwrap();
        for part in [
            "records in 10.0.0.5:6379 database 9: keys that begin with `zc:`",
            "cannot be told from others. The database was empty",
            "-n 9 --scan --pattern 'zc:*' | xargs",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        assert!(!text.contains("--resume"), "{text}");
    }

    #[test]
    fn what_a_run_started_itself_is_cleared_by_the_guard() {
        assert_eq!(told(SESSIONS, "redis", &[]), None);
        assert_eq!(told(SESSIONS, "x=file:///srv/sessions", &[]), None);
    }

    #[test]
    fn every_address_that_is_printed_is_read() {
        for (url, product) in [
            ("redis://h", Product::Redis),
            ("rediss://[::1]:7000/3?protocol=3", Product::Redis),
            ("redis+cluster://a_b.example:7000", Product::Redis),
            ("redis+unix:///run/a%20b's.sock?db=2", Product::Redis),
            ("mysql://u@db:3307/shop-1$", Product::Mysql),
            ("mysql+unix:///run/m.sock?database=d", Product::Mysql),
            ("memcacheds://a:1,[::1]:2?protocol=meta", Product::Memcached),
            ("memcached+unix:///m.sock", Product::Memcached),
        ] {
            let address = crate::Endpoint::parse(url).unwrap().to_string();
            assert!(Place::read(product, &address).is_some(), "{address}");
        }
    }

    #[test]
    fn what_is_no_address_or_no_run_becomes_no_command() {
        let plan = Study::parse("study", SESSIONS).unwrap().plan(&Choices {
            scale: Scale::Quick,
            budget_s: None,
            sets: Vec::new(),
            targets: vec![TargetChoice::parse("x=redis://h/1").unwrap()],
            control: false,
            seed: 1,
            timeout_ms: None,
            files: None,
        });
        let plan = plan.unwrap();
        let told = |product, address: &str, run| {
            let target =
                PlannedTarget { product, address: Some(address.into()), ..plan.targets[0].clone() };
            leftovers(&plan, run, &target).unwrap()
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
            (Product::Mysql, "h:1 database -x"),
            (Product::Mysql, "h:1 database "),
            (Product::Memcached, "h:1 and `touch x`"),
        ] {
            let text = told(product, address, "0123abcd");
            assert!(text.contains("no command here") && !text.contains("touch"), "{text}");
        }
        for run in ["", "*", "0123abcd; touch x", "0123ABCD", "$(touch x)"] {
            let text = told(Product::Redis, "h:1 database 1", run);
            assert!(text.contains("no command here") && !text.contains("touch"), "{text}");
        }
        let text = told(Product::Redis, "unix socket /a b'$(touch x) database 1", "0123abcd");
        assert!(text.contains(r"-s '/a b'\''$(touch x)' -n 1"), "{text}");
    }
}
