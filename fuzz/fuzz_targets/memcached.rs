//! Parses arbitrary bytes as memcached replies.

#![no_main]

use cachedyno_fuzz::check;
use drivers::memcached::Replies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check::<Replies>(bytes));
