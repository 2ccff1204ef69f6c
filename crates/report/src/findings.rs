//! Rule violations found in a run.

use crate::view::Validity;

/// Broken rules, by their consequence.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) invalid: Vec<String>,
    not_steady: Vec<String>,
    unreplicated: Vec<String>,
    /// Short descriptions of what was not steady, without duplicates.
    pub(crate) unsteady: Vec<&'static str>,
    /// Warnings, and rules that could not be checked.
    pub(crate) footnotes: Vec<String>,
}

impl Findings {
    /// Adds a reason for NOT-STEADY: a short description and a sentence.
    pub(crate) fn not_steady(&mut self, words: &'static str, sentence: String) {
        if !self.unsteady.contains(&words) {
            self.unsteady.push(words);
        }
        self.not_steady.push(sentence);
    }

    /// Adds a reason for UNREPLICATED unless it is already present.
    pub(crate) fn unreplicated(&mut self, sentence: String) {
        if !self.unreplicated.contains(&sentence) {
            self.unreplicated.push(sentence);
        }
    }

    /// The judgement and its reasons, the most severe first.
    pub(crate) fn judgement(self) -> (Validity, Vec<String>) {
        let graded = [
            (Validity::Invalid, &self.invalid),
            (Validity::NotSteady, &self.not_steady),
            (Validity::Unreplicated, &self.unreplicated),
        ];
        let worst = graded.iter().find(|(_, reasons)| !reasons.is_empty());
        let validity = worst.map_or(Validity::Valid, |(validity, _)| *validity);
        (validity, [self.invalid, self.not_steady, self.unreplicated].concat())
    }
}
