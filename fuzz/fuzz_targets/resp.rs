//! Parses arbitrary bytes as RESP replies.

#![no_main]

use cachedyno_fuzz::check;
use drivers::redis::Replies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check::<Replies>(bytes));
