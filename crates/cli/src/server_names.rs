//! Names of supported servers for help and errors.

use model::program::BY_URL;
use model::{Product, Program, RedisCompatible};

/// Private servers that `bench` and `find-max` can start: "`redis`, `memcached` or `valkey`".
pub(crate) fn private_servers() -> String {
    listed(private_server_names().map(|name| format!("`{name}`")), "or")
}

/// Their names.
pub(crate) fn private_server_names() -> impl Iterator<Item = &'static str> {
    let products = Product::ALL.into_iter().filter(|product| product.keeps_keys());
    products.map(Product::name).chain(Program::ALL.map(|program| program.target))
}

/// Help text of `--target` for studies.
pub(crate) fn targets_help() -> String {
    let started = listed(Program::ALL.map(|program| program.target.into()), "and");
    let sessions = Product::ALL.into_iter().filter(|product| product.keeps_sessions());
    let sessions = listed(sessions.map(|product| product.name().into()), "and");
    format!(
        "Measure only this target; with a URL, an existing store; with a directory, data there\n\n\
         Studies of sessions accept {sessions}, even if the study does not list them. Studies of \
         sessions and ramps also start {started} as private servers; {} need a redis:// URL.\n\n\
         A label tells two targets with the same store apart, and an absolute directory holds the \
         data of one: nvme:zend-file=/mnt/nvme and hdd:zend-file=/mnt/hdd. Without a directory, \
         data are in that of --disk.\n\n\
         URLs: {}; in a directory, the run creates its own subdirectory. A password can also come \
         from the environment variable CACHEDYNO_PASSWORD_NAME or from --password-file.",
        titles(BY_URL),
        Product::all_urls()
    )
}

/// Titles as a list: "Valkey, KeyDB and Garnet".
pub(crate) fn titles(all: impl IntoIterator<Item = RedisCompatible>) -> String {
    listed(all.into_iter().map(|server| server.title.into()), "and")
}

/// Names as a list with the conjunction `last`: "a, b or c".
pub(crate) fn listed(names: impl IntoIterator<Item = String>, last: &str) -> String {
    let names: Vec<String> = names.into_iter().collect();
    match &names[..] {
        [] => String::new(),
        [only] => only.clone(),
        [rest @ .., end] => format!("{} {last} {end}", rest.join(", ")),
    }
}
