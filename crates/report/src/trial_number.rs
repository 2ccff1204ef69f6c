//! A number of one trial, of which facts are made.

/// Source of numbers derived from the clients' measurements.
const CLIENTS: &str = "clients";

/// A number of one trial; without a value if it exceeds the measured time.
pub(crate) struct TrialNumber {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) value: Option<f64>,
}

impl TrialNumber {
    /// One that clients measured.
    pub(crate) fn by_clients(name: String, value: Option<f64>) -> Self {
        Self { name, source: CLIENTS.into(), value }
    }
}
