//! What targets came to that nothing can be compared with.

use crate::view::{AloneView, View};

/// Their sentences, each behind its profile and load where there are several.
pub(crate) fn sentences(view: &View) -> impl Iterator<Item = String> {
    let many = view.alone.len() > 1;
    view.alone.iter().map(move |AloneView { workload, load, sentence, .. }| {
        if many { format!("{workload}, {load}: {sentence}") } else { sentence.clone() }
    })
}
