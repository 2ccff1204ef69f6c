//! Users of a shop as rows of a table, and as the JSON object that the application caches.

use crate::values::{mix, pick, value_into};

/// Columns of a row besides its number, in order.
pub const COLUMNS: [&str; 6] = ["name", "email", "street", "city", "country", "note"];
/// Position of the note, which fills the row up to its size.
const NOTE: usize = 5;

const FIRST: [&str; 16] = [
    "Ada",
    "Alan",
    "Barbara",
    "Claude",
    "Donald",
    "Edsger",
    "Frances",
    "Grace",
    "Hedy",
    "Ida",
    "John",
    "Katherine",
    "Leslie",
    "Margaret",
    "Niklaus",
    "Tony",
];
const LAST: [&str; 16] = [
    "Allen",
    "Backus",
    "Church",
    "Dijkstra",
    "Engelbart",
    "Floyd",
    "Goldberg",
    "Hamilton",
    "Iverson",
    "Johnson",
    "Knuth",
    "Lamport",
    "Milner",
    "Naur",
    "Perlis",
    "Wilkes",
];
const STREETS: [&str; 8] = [
    "Garden Lane",
    "High Street",
    "Lake View",
    "Market Square",
    "Mill Road",
    "Park Avenue",
    "Station Road",
    "Victoria Street",
];
const CITIES: [(&str, &str); 8] = [
    ("Amsterdam", "NL"),
    ("Berlin", "DE"),
    ("Dublin", "IE"),
    ("Lisbon", "PT"),
    ("Madrid", "ES"),
    ("Oslo", "NO"),
    ("Paris", "FR"),
    ("Vienna", "AT"),
];

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Its primary key, from 0.
    pub number: u64,
    /// The other columns, in the order of [`COLUMNS`].
    pub columns: [String; COLUMNS.len()],
}

impl User {
    /// Writes the JSON object that the application caches, replacing the content of `json`. Names
    /// of columns and values need no escapes.
    pub fn json_into(&self, json: &mut Vec<u8>) {
        json.clear();
        json.extend_from_slice(b"{\"id\":");
        json.extend_from_slice(self.number.to_string().as_bytes());
        for (column, value) in COLUMNS.iter().zip(&self.columns) {
            for part in [",\"", column, "\":\"", value, "\""] {
                json.extend_from_slice(part.as_bytes());
            }
        }
        json.push(b'}');
    }
}

/// All rows, drawn from a seed.
#[derive(Clone, Debug)]
pub struct Users {
    seed: u64,
    bytes: usize,
}

impl Users {
    /// Rows of `bytes` bytes each as JSON, at least [`model::ROW_BYTES_MIN`].
    pub fn new(seed: u64, bytes: usize) -> Self {
        Self { seed, bytes }
    }

    /// Bytes of a row as JSON.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The row with this number, replacing the content of `user`.
    pub fn user_into(&self, user: &mut User, number: u64) {
        let draw = |part: u64, below: usize| pick(mix(&[self.seed, number, part]), below as u64);
        let one = |part, of: &[&'static str]| of[draw(part, of.len()) as usize];
        let (first, last) = (one(1, &FIRST), one(2, &LAST));
        let (city, country) = CITIES[draw(3, CITIES.len()) as usize];
        user.number = number;
        user.columns = [
            format!("{first} {last}"),
            format!("{first}.{last}.{number}@example.org").to_lowercase(),
            format!("{} {}", 1 + draw(4, 200), one(5, &STREETS)),
            format!("{:05} {city}", draw(6, 100_000)),
            country.into(),
            String::new(),
        ];
        let mut json = Vec::new();
        user.json_into(&mut json);
        let mut note = Vec::new();
        value_into(&mut note, self.seed, number, 0, self.bytes.saturating_sub(json.len()));
        note.truncate(self.bytes.saturating_sub(json.len()));
        user.columns[NOTE] = String::from_utf8(note).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_json_object_of_the_planned_size() {
        let (mut user, mut json) = (User::default(), Vec::new());
        for bytes in [model::ROW_BYTES_MIN, 512, 4_000] {
            let users = Users::new(7, bytes);
            for number in (0..2_000).chain([u64::MAX]) {
                users.user_into(&mut user, number);
                user.json_into(&mut json);
                assert_eq!(json.len(), bytes, "{user:?}");
            }
        }
    }

    #[test]
    fn rows_follow_from_seed_and_number() {
        let of = |seed, number| {
            let mut user = User::default();
            Users::new(seed, 300).user_into(&mut user, number);
            user
        };
        assert_eq!(of(1, 5), of(1, 5));
        assert_ne!(of(1, 5).columns, of(2, 5).columns);
        assert_ne!(of(1, 5).columns, of(1, 6).columns);
    }
}
