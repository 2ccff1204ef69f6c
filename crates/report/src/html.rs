//! One self-contained page: the template of web/, or a plain one if that was not built, with the
//! view as JSON in its `<script type="application/json" id="cachedyno-view">`.

use serde::Serialize;

use crate::section::Section;
use crate::sheet;
use crate::text;
use crate::view::View;

/// The page without data; build.rs chose it.
const TEMPLATE: &str = include_str!(concat!(env!("OUT_DIR"), "/page.html"));

/// Start of the data element.
const DATA_START: &str = r#"<script type="application/json" id="cachedyno-view">"#;

/// End of the data element.
const DATA_END: &str = "</script>";

/// Placeholder for the result as text in the plain template.
const TEXT_PLACE: &str = "<!-- cachedyno-text -->";

/// Columns of the text in the plain template.
const TEXT_COLUMNS: usize = 140;

/// Error of an invalid template.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HtmlError {
    /// The data element is missing.
    #[error(
        "the page template has no `{DATA_START}`, expected exactly that element; build it again \
         with `make web`"
    )]
    NoPlace,
}

/// The page with its data; it needs no other file and no network.
pub fn render(view: &View) -> Result<String, HtmlError> {
    fill(TEMPLATE, view)
}

fn fill(template: &str, view: &View) -> Result<String, HtmlError> {
    let start = template.find(DATA_START).ok_or(HtmlError::NoPlace)? + DATA_START.len();
    let length = template[start..].find(DATA_END).ok_or(HtmlError::NoPlace)?;
    let (before, after) = (&template[..start], &template[start + length..]);
    // Replace the placeholder only in the template itself, not in the data.
    let with_text = |part: &str| {
        if part.contains(TEXT_PLACE) {
            part.replace(TEXT_PLACE, &escape_text(&text::render(view, TEXT_COLUMNS, false)))
        } else {
            part.to_string()
        }
    };
    Ok([with_text(before), data(view), with_text(after)].concat())
}

/// Data of the page: the view and its sheet.
#[derive(Serialize)]
struct Page<'a> {
    #[serde(flatten)]
    view: &'a View,
    sheet: Vec<Section>,
}

/// The page's data as JSON, escaped so that it cannot end its element.
fn data(view: &View) -> String {
    let page = Page { view, sheet: sheet::sections(view) };
    let json =
        serde_json::to_string(&page).expect("plain data with text as keys can be serialized");
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn escape_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{run, usual};
    use crate::judge;

    #[test]
    fn the_plain_template_contains_text_and_data() {
        let mut recorded = run(&["files"], 1, usual);
        recorded.header.plan.title = "a <b> & c".into();
        let page = fill(include_str!("plain.html"), &judge(&recorded)).unwrap();
        assert!(page.contains("run <code>make web</code>"));
        assert!(page.contains("a &lt;b&gt; &amp; c"));
        assert!(page.contains(r#""title":"a \u003cb\u003e \u0026 c""#));
        assert!(!page.contains(TEXT_PLACE) && !page.contains("placeholder"));
    }

    #[test]
    fn a_template_without_a_place_is_refused() {
        let view = judge(&run(&["files"], 1, usual));
        let refused = fill("<html></html>", &view).unwrap_err();
        assert_eq!(refused, HtmlError::NoPlace);
        assert!(refused.to_string().contains("make web"));
    }
}
