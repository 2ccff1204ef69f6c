//! What rules find while they are applied to a run.

use crate::view::Validity;

/// Broken rules, by what follows from them.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) invalid: Vec<String>,
    not_steady: Vec<String>,
    unreplicated: Vec<String>,
    /// What was not steady, in a few words, each once.
    pub(crate) unsteady: Vec<&'static str>,
    /// Where a rule cannot tell, or only warns.
    pub(crate) footnotes: Vec<String>,
}

impl Findings {
    /// Adds what makes a run NOT-STEADY, in a few words and in a sentence.
    pub(crate) fn not_steady(&mut self, words: &'static str, sentence: String) {
        if !self.unsteady.contains(&words) {
            self.unsteady.push(words);
        }
        self.not_steady.push(sentence);
    }

    /// Adds what makes a run UNREPLICATED, once.
    pub(crate) fn unreplicated(&mut self, sentence: String) {
        if !self.unreplicated.contains(&sentence) {
            self.unreplicated.push(sentence);
        }
    }

    /// The judgement and its reasons, the graver first.
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
