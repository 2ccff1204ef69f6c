//! The percent-encoding of URLs.

/// Decodes percent-encoding.
pub(super) fn decode(text: &str) -> String {
    // A query pair decodes `%XX`; a `+` in a password or path stays a plus.
    url::form_urlencoded::parse(
        format!("v={}", text.replace('+', "%2B").replace('&', "%26")).as_bytes(),
    )
    .next()
    .map(|(_, v)| v.into_owned())
    .unwrap_or_default()
}

/// True if decoding the text yields invalid UTF-8.
pub(super) fn is_invalid_utf8(text: &str) -> bool {
    let lost = |text: &str| text.matches(char::REPLACEMENT_CHARACTER).count();
    let encoded = text.to_ascii_uppercase().matches("%EF%BF%BD").count();
    lost(&decode(text)) > lost(text) + encoded
}
