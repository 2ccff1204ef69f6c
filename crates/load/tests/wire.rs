//! Integration tests of the wire engine, against servers with scripted behaviour.

#[cfg(test)]
mod wire {
    mod engine;
    mod stages;
    mod updates;
}
