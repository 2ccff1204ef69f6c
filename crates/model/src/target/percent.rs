//! The percent-encoding of URLs.

/// The text without percent-encoding.
pub(super) fn decode(text: &str) -> String {
    // A query pair decodes `%XX`; a `+` in a password or path stays a plus.
    url::form_urlencoded::parse(
        format!("v={}", text.replace('+', "%2B").replace('&', "%26")).as_bytes(),
    )
    .next()
    .map(|(_, v)| v.into_owned())
    .unwrap_or_default()
}

/// Whether the text is no longer UTF-8 when it is decoded.
pub(super) fn hides_bytes(text: &str) -> bool {
    let lost = |text: &str| text.matches(char::REPLACEMENT_CHARACTER).count();
    let told = text.to_ascii_uppercase().matches("%EF%BF%BD").count();
    lost(&decode(text)) > lost(text) + told
}
