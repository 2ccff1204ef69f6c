//! Prices of servers, from a file of the user:
//!
//! ```toml
//! currency = "EUR"
//!
//! [per_hour]             # of one server, by the name of its target in the records
//! redis = 0.12
//! C3 = 0.41
//! ```

use serde::Deserialize;
use std::collections::BTreeMap;

/// Prices of servers by the name of the target.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Name or symbol of the currency, not empty.
    pub currency: String,
    /// Price of one server per hour, in that currency, 0 or more; at least one.
    pub per_hour: BTreeMap<String, f64>,
}

/// Error of reading prices: what is wrong, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PricesError(String);

impl Prices {
    /// Parses the text of a file. Errors: it is not TOML of this form, or a price is negative or
    /// not a finite number.
    pub fn parse(text: &str) -> Result<Self, PricesError> {
        let prices: Self = toml::from_str(text).map_err(|e| {
            let before = e.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = 1 + before.matches('\n').count();
            PricesError(format!(
                "line {line}: {} (expected `currency = \"EUR\"` and a table [per_hour] with the \
                 price of one server by target)",
                e.message().replace('\n', ", ")
            ))
        })?;
        if prices.currency.trim().is_empty() {
            return Err(PricesError("`currency` is empty (expected a name, as in EUR)".into()));
        }
        if prices.per_hour.is_empty() {
            let problem = "[per_hour] has no target (expected the price of at least one)";
            return Err(PricesError(problem.into()));
        }
        let is_wrong = |price: &f64| !price.is_finite() || *price < 0.0;
        match prices.per_hour.iter().find(|(_, price)| is_wrong(price)) {
            Some((target, price)) => Err(PricesError(format!(
                "the price of `{target}` is `{price}` per hour (expected a number, 0 or more)"
            ))),
            None => Ok(prices),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_parsed() {
        let text = "currency = \"EUR\"\n[per_hour]\nredis = 0.12\n\"redis-tls\" = 1\n";
        let prices = Prices::parse(text).unwrap();
        assert_eq!(prices.currency, "EUR");
        assert_eq!(prices.per_hour["redis-tls"].to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn wrong_prices_are_named() {
        for (text, problem) in [
            ("", "missing field `currency`"),
            ("currency = \"EUR\"\n", "missing field `per_hour`"),
            ("currency = \" \"\n[per_hour]\nredis = 1\n", "`currency` is empty"),
            ("currency = \"EUR\"\n[per_hour]\n", "has no target"),
            ("currency = \"EUR\"\n[per_hour]\nredis = -1\n", "price of `redis` is `-1`"),
            ("currency = \"EUR\"\n[per_hour]\nredis = nan\n", "is `NaN` per hour"),
            ("currency = \"EUR\"\n[per_hour]\nredis = \"1\"\n", "line 3"),
            ("currency = \"EUR\"\nper_day = 1\n[per_hour]\nredis = 1\n", "unknown field `per_day`"),
        ] {
            let error = Prices::parse(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
