//! Magento's cache in tables through `Varien_Cache_Backend_Database` on PDO, which quotes values on
//! the client and sends statements as text.
//!
//! `core_cache` contains the records, `core_cache_tag` a row for each record and tag. A load is one
//! statement. A save writes the record, reads its tags and adds missing ones. A clean reads IDs by
//! tag and deletes them in batches from both tables.
//!
//! Surprising behaviour of the software is reproduced here:
//! - A record keeps its previous tags when it is saved again.
//! - A clean by missing tags removes records with any other tag, and never records without tags.
//! - A clean stops at a batch whose rows are all gone already, as when a record is found by two
//!   tags. A record without its row keeps its tags.
//!
//! One difference: saving the same value again within a second does not add its tags.

use ::mysql::prelude::Queryable;
use ::mysql::{Conn, Row};
use model::Endpoint;
use workloads::app_cache::{CleanMode, Effort, Record, TaggedCache};
use workloads::store::{Found, StoreError};

use super::server::Server;
use super::sql;
use crate::CacheOptions;
use crate::clock::now_s;

/// Its tables, the one with the records first.
pub(super) const TABLES: [&str; 2] = ["core_cache", "core_cache_tag"];

/// The statements that create them, as in Magento's installer since 1.6: without the foreign key of
/// earlier versions, which prevents truncating the table of records.
pub(super) const SCHEMA: [&str; 2] = [
    "CREATE TABLE core_cache (id VARCHAR(200) NOT NULL, data MEDIUMBLOB, create_time INT, \
     update_time INT, expire_time INT, PRIMARY KEY (id), KEY (expire_time)) \
     ENGINE = InnoDB DEFAULT CHARSET = utf8",
    "CREATE TABLE core_cache_tag (tag VARCHAR(100) NOT NULL, cache_id VARCHAR(200) NOT NULL, \
     PRIMARY KEY (tag, cache_id), KEY (cache_id)) ENGINE = InnoDB DEFAULT CHARSET = utf8",
];

/// Counts tag rows whose record is gone; not a statement of the software.
const STALE: &str = "SELECT COUNT(*) FROM `core_cache_tag` LEFT JOIN `core_cache` \
                     ON `core_cache`.`id` = `core_cache_tag`.`cache_id` \
                     WHERE `core_cache`.`id` IS NULL";

/// IDs deleted per batch; the software flushes a batch only once it exceeds a hundred.
const IDS_AT_ONCE: usize = 101;

pub(super) struct Magento {
    server: Server,
    conn: Conn,
    sql: String,
    effort: Effort,
}

impl Magento {
    pub(super) fn open(endpoint: &Endpoint, options: &CacheOptions) -> Result<Self, StoreError> {
        let names = vec!["SET NAMES utf8".into()];
        let server = Server::with_statements(endpoint, options.timeout, names)?;
        let conn = server.connect()?;
        Ok(Self { server, conn, sql: String::new(), effort: Effort::default() })
    }

    /// Starts a statement.
    fn begin(&mut self, text: &str) -> &mut Self {
        self.sql.clear();
        self.text(text)
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.sql.push_str(text);
        self
    }

    fn value(&mut self, value: &[u8]) -> &mut Self {
        sql::push_value(&mut self.sql, value, self.conn.no_backslash_escape());
        self
    }

    /// Appends values separated by commas and spaces, in parentheses.
    fn values<'a>(&mut self, values: impl IntoIterator<Item = &'a str>) -> &mut Self {
        self.text("(");
        for (at, value) in values.into_iter().enumerate() {
            self.text(if at == 0 { "" } else { ", " }).value(value.as_bytes());
        }
        self.text(")")
    }

    fn count(&mut self) {
        self.effort.round_trips += 1;
        self.effort.commands += 1;
    }

    /// Runs the statement and returns the number of changed rows.
    fn run(&mut self) -> Result<u64, StoreError> {
        self.count();
        self.conn.query_drop(&self.sql).map_err(|e| self.server.error(&e))?;
        Ok(self.conn.affected_rows())
    }

    /// Runs the statement and returns the texts of its only column.
    fn column(&mut self) -> Result<Vec<String>, StoreError> {
        self.count();
        self.conn.query(&self.sql).map_err(|e| self.server.error(&e))
    }

    fn save_tags(&mut self, id: &str, tags: &[String]) -> Result<(), StoreError> {
        if tags.is_empty() {
            return Ok(());
        }
        self.begin("SELECT `core_cache_tag`.`tag` FROM `core_cache_tag` WHERE (cache_id=");
        self.value(id.as_bytes()).text(") AND (tag IN").values(tags.iter().map(String::as_str));
        let there = self.text(")").column()?;
        let missing: Vec<_> = tags.iter().filter(|tag| !there.contains(tag)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        self.begin("INSERT IGNORE INTO core_cache_tag (tag, cache_id) VALUES ");
        for (at, tag) in missing.into_iter().enumerate() {
            self.text(if at == 0 { "" } else { "," }).values([tag.as_str(), id]);
        }
        self.run().map(drop)
    }

    /// Deletes records in batches; stops at a batch that deletes nothing.
    fn delete(&mut self, ids: &[String]) -> Result<(), StoreError> {
        for ids in ids.chunks(IDS_AT_ONCE) {
            let ids = || ids.iter().map(String::as_str);
            self.begin("DELETE FROM `core_cache` WHERE (id IN ").values(ids()).text(")");
            if self.run()? == 0 {
                return Ok(());
            }
            self.begin("DELETE FROM `core_cache_tag` WHERE (cache_id IN ").values(ids()).text(")");
            if self.run()? == 0 {
                return Ok(());
            }
        }
        Ok(())
    }

    fn clean_by_tags(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError> {
        let what = if mode == CleanMode::NotMatchingTag { "NOT IN " } else { "IN " };
        self.begin("SELECT `core_cache_tag`.`cache_id` FROM `core_cache_tag` WHERE (tag ");
        self.text(what).values(tags.iter().map(String::as_str)).text(")");
        if mode == CleanMode::MatchingTag {
            let number = tags.len();
            self.text(&format!(" GROUP BY `cache_id` HAVING (COUNT(cache_id) = {number})"));
        }
        let ids = self.column()?;
        self.delete(&ids)
    }
}

impl TaggedCache for Magento {
    fn load(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        self.begin("SELECT `core_cache`.`data` FROM `core_cache` WHERE (id=").value(id.as_bytes());
        self.text(&format!(") AND (expire_time=0 OR expire_time>{})", now_s())).count();
        let row: Option<Row> =
            self.conn.query_first(&self.sql).map_err(|e| self.server.error(&e))?;
        super::plain::take(row, 0, value)
    }

    fn save(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        let Record { id, value, tags, lifetime_s } = record;
        let now = now_s();
        let ends = lifetime_s.filter(|s| *s > 0).map_or(0, |s| now + s);
        self.begin(
            "INSERT INTO core_cache (`id`, `data`, `create_time`, `update_time`, `expire_time`) \
             VALUES (",
        );
        self.value(id.as_bytes()).text(", ").value(value);
        self.text(&format!(
            ", '{now}', '{now}', '{ends}') ON DUPLICATE KEY UPDATE `data`=VALUES(`data`), \
             `expire_time`=VALUES(`expire_time`)"
        ));
        self.run()?;
        self.save_tags(id, tags)
    }

    fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        self.begin("DELETE FROM `core_cache` WHERE (id = ").value(id.as_bytes()).text(")");
        if self.run()? == 0 {
            return Ok(Found::No);
        }
        self.begin("DELETE FROM `core_cache_tag` WHERE (cache_id = ").value(id.as_bytes());
        self.text(")").run()?;
        Ok(Found::Yes)
    }

    fn clean(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError> {
        match mode {
            CleanMode::All => {
                self.begin("TRUNCATE TABLE core_cache").run()?;
                self.begin("TRUNCATE TABLE core_cache_tag").run().map(drop)
            }
            CleanMode::Old => {
                self.begin("SELECT `core_cache`.`id` FROM `core_cache` WHERE (expire_time > 0)");
                self.text(&format!(" AND (expire_time <= {})", now_s()));
                let ids = self.column()?;
                self.delete(&ids)
            }
            _ => self.clean_by_tags(mode, tags),
        }
    }

    fn stale_members(&mut self) -> Result<Option<u64>, StoreError> {
        self.begin(STALE);
        self.count();
        let number = self.conn.query_first(&self.sql).map_err(|e| self.server.error(&e))?;
        Ok(number)
    }

    fn effort(&self) -> Effort {
        self.effort
    }
}
