//! What a run that was killed may have left in a store that it did not start, and how to remove
//! just that.

use crate::plan::{Layout, Plan, PlannedTarget, Product, Workload};

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
    let again = match plan.search {
        None if target.backend.is_none() => {
            format!(", or `cachedyno run --resume {run}`, which removes them before it goes on")
        }
        _ => String::new(),
    };
    let text = match (target.backend.map(crate::Backend::own_names), target.product) {
        (_, Product::Files) => return None,
        (Some(names), product) => {
            let names = names.unwrap_or_default();
            format!(
                "{start} records in {address}: keys that begin with `{names}` as those of every \
                 such cache do, so that they cannot be told from others. The database was empty \
                 when the run began; where nobody else has used it since, this removes them: {}",
                removal(product, address, &[names.into()])
            )
        }
        (None, Product::Redis) => {
            let prefixes = key_prefixes(plan, target, &own);
            let begins: Vec<String> = prefixes.iter().map(|p| format!("`{p}`")).collect();
            format!(
                "{start} keys in {address} that begin with {}; this removes exactly those: \
                 {}{again}",
                begins.join(" or "),
                removal(Product::Redis, address, &prefixes)
            )
        }
        (None, Product::Mysql) => format!(
            "{start} tables in {address} whose names begin with `{own}`; this removes exactly \
             those: {}{again}",
            removal(Product::Mysql, address, std::slice::from_ref(&own))
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

/// The commands that remove what begins with these names, one a name.
fn removal(product: Product, address: &str, prefixes: &[String]) -> String {
    let commands = prefixes.iter().map(|prefix| {
        if product == Product::Mysql {
            let (flags, database) = flags(address, ["-h", "-P", "-S"]);
            // An underscore stands for any character.
            let like = prefix.replace('_', "\\_");
            format!(
                "`mysql{flags} -Ne \"SHOW TABLES LIKE '{like}%'\" {database} | xargs -r -I{{}} \
                 mysql{flags} -e 'DROP TABLE {{}}' {database}`"
            )
        } else {
            let (flags, database) = flags(address, ["-h", "-p", "-s"]);
            let tls = if address.contains(", TLS") { " --tls" } else { "" };
            let cli = format!("redis-cli{flags}{tls} -n {database}");
            format!("`{cli} --scan --pattern '{prefix}*' | xargs -r -n 100 {cli} UNLINK`")
        }
    });
    let commands: Vec<String> = commands.collect();
    let login = match product {
        Product::Mysql => " (with -u NAME, and its password in MYSQL_PWD)",
        _ if address.contains(", cluster") => {
            " (on each server of the cluster, with -c; a password in REDISCLI_AUTH)"
        }
        _ => " (a password in REDISCLI_AUTH)",
    };
    commands.join(" and ") + login
}

/// The flags by which a client reaches an address as [`crate::Endpoint`] prints it, and the
/// database.
fn flags(address: &str, [host_flag, port_flag, socket_flag]: [&str; 3]) -> (String, String) {
    let (place, rest) = address.rsplit_once(" database ").unwrap_or((address, "0"));
    let database = rest.split(',').next().unwrap_or_default().to_string();
    let flags = match (place.strip_prefix("unix socket "), place.rsplit_once(':')) {
        (Some(path), _) => format!(" {socket_flag} '{path}'"),
        (None, Some((host, port))) => format!(" {host_flag} {host} {port_flag} {port}"),
        (None, None) => String::new(),
    };
    (flags, database)
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
        let pattern = "-s '/run/r.sock' -n 3 --scan --pattern \
                       'PHPREDIS_SESSION:cachedyno-0123abcd-*'";
        assert!(pages.contains(pattern) && !pages.contains("`cachedyno-0123"), "{pages}");
    }

    #[test]
    fn tables_with_the_runs_name_are_removed_exactly() {
        let text = told(SESSIONS, "x=mysql://shop:hush@db:3307/shop", &[]).unwrap();
        let command = "`mysql -h db -P 3307 -Ne \"SHOW TABLES LIKE 'cachedyno\\_0123abcd\\_%'\" \
                       shop | xargs -r -I{} mysql -h db -P 3307 -e 'DROP TABLE {}' shop`";
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
}
