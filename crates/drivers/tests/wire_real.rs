//! The codecs of the event loop on real servers that the tests start, and compared with real
//! clients.

#[cfg(test)]
mod wire_real {
    mod cluster;
    mod common;
    mod ketama;
    mod memcached;
    mod redis;
}
