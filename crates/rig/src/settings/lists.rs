//! The settings that a plan may choose, by server; docs/FORMAT.md repeats them.
//!
//! A name belongs here when it changes how fast a server is or how much it holds, its value is a
//! number or keywords, and it can neither load code, run a command, name a file, open an address
//! nor change who may do what. Sources: `redis.conf` of Redis 6.0 to 8.0; `mariadbd
//! --verbose --help` of 10.6 to 11.4.

use super::form::Form::{Count, Number, Servers, Words, YesNo};
use super::form::Names;

/// What `redis-server` takes, and programs in its place besides what their rows in
/// [`model::program`] say.
pub(super) const REDIS: [Names; 5] = [
    // How many others are started with it, and when the Sentinels act.
    (Servers, "replicas sentinels"),
    (Count, "down-after-milliseconds failover-timeout parallel-syncs"),
    (
        Number,
        "active-defrag-cycle-max active-defrag-cycle-min active-defrag-ignore-bytes \
         active-defrag-max-scan-fields active-defrag-threshold-lower \
         active-defrag-threshold-upper active-expire-effort auto-aof-rewrite-min-size \
         auto-aof-rewrite-percentage busy-reply-threshold client-query-buffer-limit \
         hash-max-listpack-entries hash-max-listpack-value hash-max-ziplist-entries \
         hash-max-ziplist-value hll-sparse-max-bytes hz io-threads latency-monitor-threshold \
         lfu-decay-time lfu-log-factor list-compress-depth list-max-listpack-size \
         list-max-ziplist-size lua-time-limit maxclients maxmemory maxmemory-clients \
         maxmemory-eviction-tenacity maxmemory-samples proto-max-bulk-len \
         set-max-intset-entries set-max-listpack-entries set-max-listpack-value \
         slowlog-log-slower-than slowlog-max-len stream-node-max-bytes \
         stream-node-max-entries tcp-backlog tcp-keepalive timeout tracking-table-max-keys \
         zset-max-listpack-entries zset-max-listpack-value zset-max-ziplist-entries \
         zset-max-ziplist-value",
    ),
    (
        YesNo,
        "activedefrag activerehashing aof-rewrite-incremental-fsync aof-timestamp-enabled \
         aof-use-rdb-preamble appendonly disable-thp dynamic-hz io-threads-do-reads \
         jemalloc-bg-thread latency-tracking lazyfree-lazy-eviction lazyfree-lazy-expire \
         lazyfree-lazy-server-del lazyfree-lazy-user-del lazyfree-lazy-user-flush \
         no-appendfsync-on-rewrite rdb-del-sync-files rdb-save-incremental-fsync rdbchecksum \
         rdbcompression stop-writes-on-bgsave-error",
    ),
    (
        Words,
        "appendfsync client-output-buffer-limit latency-tracking-info-percentiles loglevel \
         maxmemory-policy notify-keyspace-events save",
    ),
];

/// What `mariadbd` takes, with `_` for `-`.
pub(super) const MARIADB: [Names; 2] = [
    (
        Number,
        "aria_checkpoint_interval aria_log_file_size aria_pagecache_buffer_size \
         aria_sort_buffer_size back_log bulk_insert_buffer_size connect_timeout \
         eq_range_index_dive_limit host_cache_size innodb_adaptive_flushing_lwm \
         innodb_adaptive_hash_index_parts innodb_autoextend_increment \
         innodb_buffer_pool_chunk_size innodb_buffer_pool_instances innodb_buffer_pool_size \
         innodb_buffer_pool_size_auto_min innodb_buffer_pool_size_max \
         innodb_change_buffer_max_size innodb_compression_level innodb_concurrency_tickets \
         innodb_fast_shutdown innodb_fill_factor innodb_flush_log_at_timeout \
         innodb_flush_log_at_trx_commit innodb_flush_neighbors innodb_flushing_avg_loops \
         innodb_io_capacity innodb_io_capacity_max innodb_lock_wait_timeout \
         innodb_log_buffer_size innodb_log_file_size innodb_log_files_in_group \
         innodb_log_spin_wait_delay innodb_log_write_ahead_size innodb_lru_scan_depth \
         innodb_max_dirty_pages_pct innodb_max_dirty_pages_pct_lwm innodb_max_purge_lag \
         innodb_max_purge_lag_delay innodb_max_undo_log_size innodb_old_blocks_pct \
         innodb_old_blocks_time innodb_open_files innodb_page_cleaners \
         innodb_purge_batch_size innodb_purge_threads innodb_read_ahead_threshold \
         innodb_read_io_threads innodb_sort_buffer_size innodb_spin_wait_delay \
         innodb_stats_persistent_sample_pages innodb_stats_transient_sample_pages \
         innodb_sync_spin_loops innodb_thread_concurrency innodb_thread_sleep_delay \
         innodb_undo_tablespaces innodb_write_io_threads interactive_timeout join_buffer_size \
         join_buffer_space_limit join_cache_level key_buffer_size key_cache_block_size \
         key_cache_segments lock_wait_timeout max_allowed_packet max_connect_errors \
         max_connections max_heap_table_size max_prepared_stmt_count max_session_mem_used \
         max_statement_time mrr_buffer_size myisam_sort_buffer_size net_buffer_length \
         net_read_timeout net_write_timeout open_files_limit optimizer_prune_level \
         optimizer_search_depth optimizer_use_condition_selectivity preload_buffer_size \
         query_alloc_block_size query_cache_limit query_cache_min_res_unit query_cache_size \
         query_prealloc_size range_alloc_block_size read_buffer_size read_rnd_buffer_size \
         sort_buffer_size stored_program_cache sync_binlog table_definition_cache \
         table_open_cache table_open_cache_instances tcp_keepalive_interval \
         tcp_keepalive_probes tcp_keepalive_time thread_cache_size thread_pool_idle_timeout \
         thread_pool_max_threads thread_pool_oversubscribe thread_pool_prio_kickup_timer \
         thread_pool_size thread_pool_stall_limit thread_stack tmp_disk_table_size \
         tmp_memory_table_size tmp_table_size transaction_alloc_block_size \
         transaction_prealloc_size wait_timeout",
    ),
    (
        Words,
        "autocommit character_set_server collation_server innodb_adaptive_flushing \
         innodb_adaptive_hash_index innodb_autoinc_lock_mode \
         innodb_buffer_pool_dump_at_shutdown innodb_buffer_pool_load_at_startup \
         innodb_change_buffering innodb_checksum_algorithm innodb_compression_algorithm \
         innodb_deadlock_detect innodb_default_row_format innodb_doublewrite \
         innodb_file_per_table innodb_flush_method innodb_flush_sync \
         innodb_log_file_buffering innodb_log_file_mmap innodb_numa_interleave \
         innodb_random_read_ahead innodb_snapshot_isolation innodb_stats_auto_recalc \
         innodb_stats_persistent innodb_strict_mode innodb_undo_log_truncate \
         innodb_use_atomic_writes innodb_use_native_aio large_pages optimizer_switch \
         performance_schema query_cache_strip_comments query_cache_type \
         query_cache_wlock_invalidate skip_name_resolve sql_mode tcp_nodelay thread_handling \
         thread_pool_dedicated_listener thread_pool_priority transaction_isolation \
         tx_isolation use_stat_tables userstat",
    ),
];

/// What `memcached` takes, under the names that [`crate::memcached::SETTINGS`] gives its options.
pub(super) const MEMCACHED: [Names; 3] =
    [(Number, "growth item_size memory"), (Count, "connections threads"), (YesNo, "evictions")];
