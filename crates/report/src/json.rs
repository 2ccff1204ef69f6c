//! The summary as JSON: the view without the data of charts. docs/FORMAT.md describes it; keys are
//! stable.

use crate::view::View;

/// The summary, indented, with a line feed at the end.
///
/// # Panics
/// Never: the view is plain data whose keys are text.
pub fn render(view: &View) -> String {
    let mut text = serde_json::to_string_pretty(&view.without_charts())
        .expect("plain data with text as keys serialises");
    text.push('\n');
    text
}
