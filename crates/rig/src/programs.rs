//! The programs that are servers, by product.

use crate::error::RigError;
use model::{Product, Program};

/// A product's own server.
#[derive(Clone, Copy)]
pub(crate) struct Own {
    /// Name of the program.
    pub(crate) name: &'static str,
    /// The Debian package that brings it.
    pub(crate) package: &'static str,
}

/// Redis, as Debian names it.
pub(crate) const REDIS: Own = Own { name: "redis-server", package: "redis-server" };
/// The server of MariaDB.
pub(crate) const MARIADB: Own = Own { name: "mariadbd", package: "mariadb-server" };
/// The one of memcached.
pub(crate) const MEMCACHED: Own = Own { name: "memcached", package: "memcached" };

impl Own {
    /// The server of a product; `None` where it needs none.
    pub(crate) fn of(product: Product) -> Option<Self> {
        match product {
            Product::Files => None,
            Product::Redis => Some(REDIS),
            Product::Mysql => Some(MARIADB),
            Product::Memcached => Some(MEMCACHED),
        }
    }

    /// This one, or the program in its place.
    pub(crate) fn or(self, program: Option<Program>) -> Self {
        program.map_or(self, |p| Self { name: p.name(), package: p.package })
    }

    pub(crate) fn missing(self) -> RigError {
        RigError::Missing { program: self.name, package: self.package }
    }
}

/// Name of the server that is started for a product, or of the program in its place; `None` where
/// none is needed.
pub fn server_program(product: Product, program: Option<Program>) -> Option<&'static str> {
    Own::of(product).map(|own| own.or(program).name)
}
