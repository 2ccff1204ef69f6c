//! Content negotiation: the format a scraper gets for its `Accept` (RFC 9110, section 12.5.1).

/// An exposition format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Text, version 0.0.4.
    Text,
    /// The text of `OpenMetrics`, version 1.0.0.
    OpenMetrics,
    /// Length-delimited protobuf messages, with native histograms.
    Protobuf,
}

impl Form {
    /// The supported format that `accept` prefers, the first one of equals; text if it names none.
    pub(crate) fn preferred(accept: &str) -> Self {
        let mut best = (0.0, Self::Text);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let parameters: Vec<&str> = parts.collect();
            let quality = parameters.iter().find_map(|p| p.strip_prefix("q=")?.parse::<f64>().ok());
            let quality = quality.unwrap_or(1.0);
            let form = match kind {
                "text/plain" => Self::Text,
                "application/openmetrics-text" => Self::OpenMetrics,
                "application/vnd.google.protobuf" if parameters.contains(&"encoding=delimited") => {
                    Self::Protobuf
                }
                _ => continue,
            };
            if quality > best.0 {
                best = (quality, form);
            }
        }
        best.1
    }

    /// The format's `Content-Type`.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
                 encoding=delimited"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrapers_get_their_preferred_format() {
        let protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                        encoding=delimited";
        let text =
            "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5";
        for (accept, expected) in [
            ("", Form::Text),
            ("*/*", Form::Text),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Form::Text),
            (text, Form::OpenMetrics),
            (&format!("{protobuf},{text},*/*;q=0.1"), Form::Protobuf),
            (&format!("{protobuf};q=0.3,{text}"), Form::OpenMetrics),
            ("application/vnd.google.protobuf;encoding=text,text/plain;q=0.1", Form::Text),
            ("text/plain, application/openmetrics-text", Form::Text),
        ] {
            assert_eq!(Form::preferred(accept), expected, "{accept}");
        }
    }
}
