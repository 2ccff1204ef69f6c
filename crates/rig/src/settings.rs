//! Allow-lists of the private servers' settings that a plan can choose.
//!
//! A study or a resumed record can come from an untrusted source, and servers have settings that
//! load code, run commands or write to arbitrary paths. Therefore only listed settings are passed
//! on: exact names, without the prefixes and abbreviations that some servers accept, and values
//! that are numbers or keywords.
//!
//! A name belongs on a list if it affects a server's speed or capacity, its value is a number or
//! keywords, and it cannot load code, run a command, name a file, open an address or change
//! permissions. docs/FORMAT.md repeats the lists.

use crate::error::{Result, RigError};
use model::Program;
use std::borrow::Cow;
use std::collections::BTreeMap;

mod form;

pub(crate) use form::{Form, Names};

/// The allowed settings of a server.
pub(crate) struct Allowed {
    program: &'static str,
    names: Vec<Names>,
    /// True if the server treats `-` and `_` as equal.
    mixes_dashes: bool,
}

impl Allowed {
    /// Settings of the server with the given program name, plus those of its replacement program.
    pub(crate) fn new(
        name: &'static str,
        (names, mixes_dashes): (&[Names], bool),
        program: Option<Program>,
    ) -> Self {
        let program_settings = program.map(|p| [(Form::Number, p.numbers), (Form::Words, p.words)]);
        let names = names.iter().copied().chain(program_settings.into_iter().flatten()).collect();
        Self { program: name, names, mixes_dashes }
    }
}

/// Checks that all settings are allowed. Errors: [`RigError::Setting`].
pub(crate) fn check(allowed: &Allowed, settings: &BTreeMap<String, String>) -> Result<()> {
    let mut checked = Vec::new();
    for (name, value) in settings {
        let wrong = |problem, expected| {
            let (program, name) = (allowed.program, name.clone());
            Err(RigError::Setting { program, name, problem, expected })
        };
        let plain = plain(name, allowed.mixes_dashes);
        let Some(form) = form_of(allowed, &plain) else {
            return wrong(
                "is not on the list of settings that a plan can choose",
                "one that docs/FORMAT.md lists under `Settings of private servers`",
            );
        };
        if checked.contains(&plain) {
            return wrong("is given twice", "one spelling, with `-` or with `_`");
        }
        if !form.fits(value) {
            return wrong("has a value that is not allowed", form.expected());
        }
        checked.push(plain);
    }
    Ok(())
}

/// Normalises a name to its spelling on the lists.
fn plain(name: &str, mixes_dashes: bool) -> Cow<'_, str> {
    if mixes_dashes { name.replace('-', "_").into() } else { name.into() }
}

fn form_of(allowed: &Allowed, plain: &str) -> Option<Form> {
    let is_on = |(_, names): &&Names| names.split_whitespace().any(|name| name == plain);
    allowed.names.iter().find(is_on).map(|(form, _)| *form)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::{self, check_settings};
    use model::Product;

    fn check(product: Product, program: Option<Program>, pairs: &[(&str, &str)]) -> Option<String> {
        let settings = pairs.iter().map(|(n, v)| ((*n).to_string(), (*v).to_string())).collect();
        check_settings(product, program, &settings).err().map(|e| e.to_string())
    }

    fn assert_rejected(product: Product, name: &str) {
        let error = check(product, None, &[(name, "1")]).unwrap_or_default();
        assert!(error.starts_with(&format!("setting `{name}` of ")), "{name}: {error}");
        assert!(error.contains("not on the list") && error.contains("docs/FORMAT.md"), "{error}");
    }

    #[test]
    fn tuning_settings_are_accepted() {
        for pair in [
            ("maxmemory", "64mb"),
            ("maxmemory-policy", "allkeys-lru"),
            ("save", ""),
            ("save", "900 1 300 10"),
            ("client-output-buffer-limit", "normal 0 0 0"),
            ("list-max-listpack-size", "-2"),
            ("io-threads-do-reads", "yes"),
        ] {
            assert_eq!(check(Product::Redis, None, &[pair]), None, "{pair:?}");
        }
        for pair in [
            ("innodb_buffer_pool_size", "1G"),
            ("innodb-buffer-pool-size", "1G"),
            ("innodb_flush_method", "O_DIRECT"),
            ("innodb_max_dirty_pages_pct", "0.5"),
            ("optimizer_switch", "mrr=on,mrr_sort_keys=off"),
            ("skip-name-resolve", ""),
            ("sql_mode", ""),
        ] {
            assert_eq!(check(Product::Mysql, None, &[pair]), None, "{pair:?}");
        }
        for pair in [("memory", "64"), ("item-size", "1m"), ("growth", "1.25")] {
            assert_eq!(check(Product::Memcached, None, &[pair]), None, "{pair:?}");
        }
        assert_eq!(
            check(Product::Redis, Program::of_target("keydb"), &[("server-threads", "2")]),
            None
        );
        assert!(check(Product::Redis, None, &[("server-threads", "2")]).is_some());
    }

    #[test]
    fn dangerous_settings_are_rejected_in_every_spelling() {
        for name in [
            "loose-innodb_buffer_pool_size",
            "loose_datadir",
            "skip-grant-tables",
            "enable-innodb_doublewrite",
            "maximum-innodb_buffer_pool_size",
            "innodb_buffer_pool_siz",
            "INNODB_BUFFER_POOL_SIZE",
            "pid_fil",
            "plugin-dir",
            "plugin-load-add",
            "plugin_load",
            "slow-query-log-file",
            "general_log_file",
            "version",
            "init-file",
            "init_connect",
            "wsrep-provider",
            "wsrep_notify_cmd",
            "innodb_data_file_path",
            "secure_file_priv",
            "tmpdir",
            "-innodb_buffer_pool_size",
            "",
            " ",
        ] {
            assert_rejected(Product::Mysql, name);
        }
        for name in [
            "loadmodule",
            "include",
            "dir",
            "dbfilename",
            "appenddirname",
            "appendfilename",
            "logfile",
            "pidfile",
            "aclfile",
            "rename-command",
            "unixsocket",
            "port",
            "bind",
            "enable-debug-command",
            "oom-score-adj",
            "syslog-enabled",
            "tls-key-file",
            "max_memory",
            "MaxMemory",
            "maxmemory\nport 1\n#",
            "save 1 1\nport",
        ] {
            assert_rejected(Product::Redis, name);
        }
        for name in ["port", "socket", "extended", "-s", "memor", "Memory"] {
            assert_rejected(Product::Memcached, name);
        }
    }

    #[test]
    fn only_numbers_and_keywords_are_accepted_as_values() {
        for (product, name, value) in [
            (Product::Redis, "save", "1 1\nport 1"),
            (Product::Redis, "save", "1 1\rport 1"),
            (Product::Redis, "maxmemory-policy", "\"x\""),
            (Product::Redis, "notify-keyspace-events", "../x"),
            (Product::Redis, "maxmemory", "1mb 2"),
            (Product::Redis, "maxmemory", ""),
            (Product::Redis, "maxmemory", "--port"),
            (Product::Redis, "appendonly", "maybe"),
            (Product::Redis, "sentinels", "99999"),
            (Product::Mysql, "sql_mode", "/etc/passwd"),
            (Product::Mysql, "sql_mode", "~"),
            (Product::Mysql, "sql_mode", "a\0b"),
            (Product::Mysql, "innodb_buffer_pool_size", "1G;x"),
            (Product::Memcached, "memory", "-s/x"),
            (Product::Memcached, "memory", "64 -s x"),
            (Product::Memcached, "threads", "0"),
            (Product::Memcached, "connections", "+1k"),
            (Product::Memcached, "evictions", "1"),
        ] {
            let error = check(product, None, &[(name, value)]).unwrap_or_default();
            assert!(error.contains("a value that is not allowed (expected"), "{value:?}: {error}");
        }
    }

    #[test]
    fn two_spellings_of_one_setting_are_rejected() {
        let twice = [("innodb_buffer_pool_size", "1G"), ("innodb-buffer-pool-size", "2G")];
        let error = check(Product::Mysql, None, &twice).unwrap();
        assert!(error.contains("is given twice"), "{error}");
    }

    #[test]
    fn the_documentation_lists_every_setting() {
        let document = include_str!("../../../docs/FORMAT.md");
        let (_, section) = document.split_once("#### Settings of private servers").unwrap();
        let section = section.split_once("\n##").map_or(section, |(section, _)| section);
        let listed: Vec<&str> = section.split('`').skip(1).step_by(2).collect();
        let program_settings =
            |program: Program| (program.server.title, [program.numbers, program.words]);
        let replacements = Program::ALL.map(program_settings);
        let own = Product::ALL.into_iter().filter_map(servers::of);
        let own =
            own.flat_map(|own| own.settings.iter().map(|(_, names)| (own.executable.name, *names)));
        let replacements =
            replacements.into_iter().flat_map(|(server, lists)| lists.map(|names| (server, names)));
        for (server, names) in own.chain(replacements) {
            for name in names.split_whitespace() {
                assert!(listed.contains(&name), "{server}: `{name}` is not in docs/FORMAT.md");
            }
        }
    }
}
