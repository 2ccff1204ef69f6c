//! The servers that can be started: a row for each product that is one.
//!
//! - [`mariadb`], [`memcached`], [`postgres`] and [`redis`] start one, [`sentinel`] several that
//!   copy each other.
//! - `own`: what a row says.

use crate::error::Result;
use crate::guard::Guard;
use crate::server::ServerSpec;
use crate::settings;
use crate::template::Templates;
use model::{Product, Program};
use std::collections::BTreeMap;

pub mod mariadb;
pub mod memcached;
mod own;
pub mod postgres;
pub mod redis;
pub mod sentinel;

use own::Own;

pub(crate) use own::Executable;
pub use own::Started;

/// The server of a product; `None` where it needs none.
pub(crate) fn of(product: Product) -> Option<&'static Own> {
    match product {
        Product::Files | Product::Sqlite => None,
        Product::Redis => Some(&sentinel::OWN),
        Product::Mysql => Some(&mariadb::OWN),
        Product::Postgres => Some(&postgres::OWN),
        Product::Memcached => Some(&memcached::OWN),
    }
}

/// Name of the server that is started for a product, or of the program in its place; `None` where
/// none is needed.
pub fn server_program(product: Product, program: Option<Program>) -> Option<&'static str> {
    of(product).map(|own| own.executable.or(program).name)
}

/// Whether a private server of the product, or that program of its kin, may be started with these
/// settings. The server itself may still refuse a value. Errors: [`RigError::Setting`].
///
/// [`RigError::Setting`]: crate::RigError::Setting
pub fn check_settings(
    product: Product,
    program: Option<Program>,
    settings: &BTreeMap<String, String>,
) -> Result<()> {
    of(product).map_or(Ok(()), |own| settings::check(&own.allowed(program), settings))
}

/// Starts the server of a product, or the program of the spec in its place, with what belongs to
/// it, and waits until it answers; `None` where the product needs no server. What a server needs
/// made once is kept in `templates`. Call it from a thread that lives as long as the run; see
/// [`Server`](crate::Server).
///
/// Errors: the program is missing; a setting is refused, by us or by the server, whose own words
/// are then in the message; no answer in time (the spec's deadline, or 10 to 30 seconds).
pub fn start_server(
    product: Product,
    guard: &Guard,
    templates: &mut Templates,
    spec: &ServerSpec,
) -> Result<Option<Started>> {
    let Some(own) = of(product) else { return Ok(None) };
    settings::check(&own.allowed(spec.program), &spec.settings)?;
    (own.start)(guard, templates, spec).map(Some)
}
