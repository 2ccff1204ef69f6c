//! Tests every store for real: files, Redis and MariaDB servers that the tests start, and PHP's own
//! handlers.

#[cfg(test)]
mod stores {
    mod cache_files;
    mod cache_memcached;
    mod caches;
    mod capabilities;
    mod cm_redis;
    mod common;
    mod counters;
    mod disk;
    mod files;

    mod fill;
    mod hostile;
    mod hostile_mysql;
    mod hostile_postgres;
    mod laravel_redis;
    mod magento_mysql;
    mod mysql;
    mod php;
    mod postgres;
    mod redis;
    mod rows;
    mod sqlite;
    mod symfony_file;
    mod symfony_redis;
}
