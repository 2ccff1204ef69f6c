//! A number of one trial, of which facts are made.

/// Source of numbers derived from the clients' measurements.
const CLIENTS: &str = "clients";

/// Source of numbers derived from the roles that servers report.
const SERVERS: &str = "servers";

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

    /// One that servers reported.
    pub(crate) fn by_servers(name: String, value: Option<f64>) -> Self {
        Self { name, source: SERVERS.into(), value }
    }
}
