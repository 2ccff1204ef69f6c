//! The wire engine as a whole, against servers that behave as the test says.

#[cfg(test)]
mod wire {
    mod engine;
    mod stages;
    mod updates;
}
