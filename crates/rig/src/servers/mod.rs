//! The servers that can be started, by product.
//!
//! - [`mariadb`], [`memcached`], [`postgres`] and [`redis`] start a single server, [`sentinel`]
//!   several that replicate, `cluster` a cluster, `proxy` servers behind a proxy; `deployment`
//!   chooses among those of Redis.
//! - `group`: servers that reach each other; `listen`: where a server listens; `own`: description
//!   of a product's server.

use crate::error::Result;
use crate::guard::Guard;
use crate::server::ServerSpec;
use crate::settings;
use crate::template::Templates;
use model::{Product, Program};
use std::collections::BTreeMap;

mod cluster;
mod deployment;
mod group;
mod listen;
pub mod mariadb;
pub mod memcached;
mod own;
pub mod postgres;
mod proxy;
pub mod redis;
pub mod sentinel;

use own::ServerDescription;

pub use listen::free_port;
pub(crate) use own::Executable;
pub use own::StartedServers;

/// The server of a product; `None` if the product does not need one.
pub(crate) fn of(product: Product) -> Option<&'static ServerDescription> {
    match product {
        Product::Files | Product::Sqlite | Product::Disk => None,
        Product::Redis => Some(&deployment::DESCRIPTION),
        Product::Mysql => Some(&mariadb::DESCRIPTION),
        Product::Postgres => Some(&postgres::DESCRIPTION),
        Product::Memcached => Some(&memcached::DESCRIPTION),
    }
}

/// Name of the server program that is started for a product, or of `program` in its place; `None`
/// if the product does not need a server.
pub fn server_program(product: Product, program: Option<Program>) -> Option<&'static str> {
    of(product).map(|own| own.executable.or(program).name)
}

/// Checks the settings of a private server of the product, or of `program` in its place. The server
/// can still reject a value. Errors: [`RigError::Setting`].
///
/// [`RigError::Setting`]: crate::RigError::Setting
pub fn check_settings(
    product: Product,
    program: Option<Program>,
    settings: &BTreeMap<String, String>,
) -> Result<()> {
    of(product).map_or(Ok(()), |own| settings::check(&own.allowed(program), settings))
}

/// Starts the server of a product, or the program of the spec in its place, with its replicas and
/// Sentinels, and waits until it replies; `None` if the product does not need a server. Data
/// directories that are created once per run are kept in `templates`. Call it from a thread that
/// lives as long as the run; see [`Server`](crate::Server).
///
/// Errors: the program is missing; we or the server reject a setting (the message then contains the
/// server's log); no reply in time (the spec's deadline, or 10 to 30 seconds).
pub fn start_server(
    product: Product,
    guard: &Guard,
    templates: &mut Templates,
    spec: &ServerSpec,
) -> Result<Option<StartedServers>> {
    let Some(own) = of(product) else { return Ok(None) };
    settings::check(&own.allowed(spec.program), &spec.settings)?;
    (own.start)(guard, templates, spec).map(Some)
}
