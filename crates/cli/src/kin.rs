//! Names of supported servers for help and errors.

use model::program::BY_URL;
use model::{Kin, Product, Program};

/// Private servers of `bench` and `find-max`: "`redis`, `memcached` or `valkey`".
pub(crate) fn private_servers() -> String {
    let products = Product::ALL.into_iter().filter(|product| product.keeps_keys());
    let names = products.map(Product::name).chain(Program::ALL.map(|program| program.target));
    listed(names.map(|name| format!("`{name}`")), "or")
}

/// Help about targets of studies.
pub(crate) fn targets_help() -> String {
    let started = listed(Program::ALL.map(|program| program.target.into()), "and");
    let sessions = Product::ALL.into_iter().filter(|product| product.keeps_sessions());
    let sessions = listed(sessions.map(|product| product.name().into()), "and");
    format!(
        "Measure only this target; with a URL, an existing store\n\n\
         In studies of sessions, {sessions} can be named whether the study has them or not. In \
         studies of sessions and ramps, {started} are started as redis is; {} are measured \
         where they run, by a redis:// URL.\n\n\
         URLs: {}; in a directory, the run works in a new one. A password can also come from the \
         environment as CACHEDYNO_PASSWORD_NAME, or from --password-file.",
        titles(BY_URL),
        Product::all_urls()
    )
}

/// "Valkey, KeyDB and Garnet".
pub(crate) fn titles(all: impl IntoIterator<Item = Kin>) -> String {
    listed(all.into_iter().map(|kin| kin.title.into()), "and")
}

/// "a, b or c", or with another conjunction.
pub(crate) fn listed(names: impl IntoIterator<Item = String>, last: &str) -> String {
    let names: Vec<String> = names.into_iter().collect();
    match &names[..] {
        [] => String::new(),
        [only] => only.clone(),
        [rest @ .., end] => format!("{} {last} {end}", rest.join(", ")),
    }
}
