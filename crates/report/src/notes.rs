//! Footnotes: warnings that accompany the numbers they concern.

/// Numbered texts without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Notes(Vec<String>);

impl Notes {
    /// Adds a text, unless it exists, and returns its number, from 0.
    pub(crate) fn add(&mut self, text: impl Into<String>) -> usize {
        let text = text.into();
        if let Some(known) = self.0.iter().position(|t| *t == text) {
            return known;
        }
        self.0.push(text);
        self.0.len() - 1
    }

    /// All texts by number.
    pub(crate) fn into_texts(self) -> Vec<String> {
        self.0
    }
}
