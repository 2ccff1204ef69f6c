//! Origin of a study: its publication, and the conditions under which the publication measured.

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// Origin of a study. In a file it is a table, or just the text of [`Source::publication`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Source {
    /// Author, title and date.
    pub publication: String,
    /// Model of the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Number of CPUs or cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<String>,
    /// Size of the memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Model of the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// Versions of the stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<String>,
    /// What lies between clients and stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Size of the data set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Duration of the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// Conditions of the source that no run can match, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<String>,
}

impl Source {
    /// A publication of which no conditions are known.
    pub fn publication(publication: impl Into<String>) -> Self {
        Self { publication: publication.into(), ..Self::default() }
    }

    /// The stated conditions with their names, in reading order.
    pub fn conditions(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("CPU", &self.cpu),
            ("cores", &self.cores),
            ("memory", &self.memory),
            ("disk", &self.disk),
            ("versions", &self.versions),
            ("network", &self.network),
            ("size", &self.size),
            ("duration", &self.duration),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if *self == Self::publication(self.publication.as_str()) {
            self.publication.serialize(to)
        } else {
            Self::serialize(self, to)
        }
    }
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TextOrTable)
    }
}

struct TextOrTable;

impl<'de> Visitor<'de> for TextOrTable {
    type Value = Source;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or a table with `publication`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Source, E> {
        Ok(Source::publication(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Source, A::Error> {
        Source::deserialize(MapAccessDeserializer::new(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_text_or_a_table() {
        let text: Source = serde_json::from_str("\"a blog\"").unwrap();
        assert_eq!(text, Source::publication("a blog"));
        assert_eq!(serde_json::to_string(&text).unwrap(), "\"a blog\"");
        let table =
            r#"{"publication":"a blog","cores":"4","duration":"5 min","unmatched":["PHP"]}"#;
        let source: Source = serde_json::from_str(table).unwrap();
        let conditions: Vec<_> = source.conditions().collect();
        assert_eq!(conditions, [("cores", "4"), ("duration", "5 min")]);
        assert_eq!(serde_json::to_string(&source).unwrap(), table);
        let error = serde_json::from_str::<Source>(r#"{"publication":"a","disc":"b"}"#);
        assert!(error.unwrap_err().to_string().contains("unknown field `disc`"));
        assert!(
            serde_json::from_str::<Source>("4").unwrap_err().to_string().contains("a text, or")
        );
    }
}
