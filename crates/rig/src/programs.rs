//! Names of the programs that are servers, which errors about their settings name too.

/// Redis, as Debian names it.
pub(crate) const REDIS: &str = "redis-server";
/// The server of MariaDB.
pub(crate) const MARIADB: &str = "mariadbd";
/// The one of memcached.
pub(crate) const MEMCACHED: &str = "memcached";
