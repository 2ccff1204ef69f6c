//! Tiers in studies and on the command line.

use std::collections::BTreeMap;

use super::choices::is_name_or_label;
use super::published::PublishedFigure;
use super::set::bad;
use super::targets::no_effect;
use super::wire::Study;
use super::{Fault, StudyError, quoted_list};
use crate::plan::PlannedTarget;
use crate::tier::Tier;

/// Key of a tier in `--set`, followed by a label or a target's name.
pub(super) const TIER: &str = "tier";

impl Study {
    /// A tier that two have the name of, or that a target names and the study does not have.
    pub(super) fn fault_in_tiers(&self) -> Option<Fault> {
        let twice = self.tiers.iter().enumerate().find_map(|(i, tier)| {
            let name = tier.name.get_ref();
            let is_known = self.tiers[..i].iter().any(|other| other.name.get_ref() == name);
            is_known.then(|| (tier.name.span().start, format!("duplicate tier `{name}`")))
        });
        twice.or_else(|| {
            self.targets.iter().filter_map(|target| target.tier.as_ref()).find_map(|name| {
                let unknown = self.tier(name.get_ref()).is_none();
                let known = self.tiers.iter().map(|tier| tier.name.get_ref().as_str());
                unknown
                    .then(|| {
                        let (name, known) = (name.get_ref(), quoted_list(known));
                        format!("unknown tier `{name}` (known: {known})")
                    })
                    .map(|problem| (name.span().start, problem))
            })
        })
    }

    /// A figure that a target names and the study's tables do not have.
    pub(super) fn fault_in_figures(&self) -> Option<Fault> {
        let tables: Vec<_> = self.tables.iter().map(|table| table.get_ref().clone()).collect();
        let mut named = self.targets.iter().filter_map(|target| target.published.as_ref());
        let unknown = named.find(|figure| figure.get_ref().find(&tables).is_none())?;
        let PublishedFigure { table, row, column, .. } = unknown.get_ref();
        let problem = format!(
            "no table `{table}` has a figure in row `{row}` and column `{column}` (expected those \
             of a table of this study)"
        );
        Some((unknown.span().start, problem))
    }

    fn tier(&self, name: &str) -> Option<&Tier> {
        let own = self.tiers.iter().find(|tier| tier.name.get_ref() == name);
        own.map(|tier| &tier.limits)
    }

    /// The tier of `--set tier.NAME=VALUE`: one of the study, or limits.
    pub(super) fn chosen_tier(&self, key: &str, value: &str) -> Result<Tier, StudyError> {
        match self.tier(value) {
            Some(tier) => Ok(tier.clone()),
            None => Tier::parse(value).map_err(|problem| {
                let known = self.tiers.iter().map(|tier| tier.name.get_ref().as_str());
                bad(key, value, &format!("one of {} or limits: {problem}", quoted_list(known)))
            }),
        }
    }

    /// Puts the targets' own tiers and those that the user chose, by label or name, on the targets.
    /// Errors: no target has that name, or one cannot be limited.
    pub(super) fn put_tiers(
        &self,
        targets: &mut [PlannedTarget],
        chosen: &BTreeMap<String, Tier>,
    ) -> Result<(), StudyError> {
        for (of, tier) in chosen {
            if !targets.iter().any(|target| is_name_or_label(of, &target.name)) {
                let names = quoted_list(targets.iter().map(|target| target.name.as_str()));
                let why = format!(
                    "no chosen target has this label or name (chosen: {names}; choose one with \
                     --target)"
                );
                return Err(no_effect(&format!("{TIER}.{of}"), &tier.to_string(), &why));
            }
        }
        for target in targets {
            let of_user = chosen.iter().find(|(of, _)| is_name_or_label(of, &target.name));
            let of_user = of_user.map(|(_, tier)| tier);
            let own = self.target(&target.name).and_then(|own| own.tier.as_ref());
            let own = own.and_then(|name| self.tier(name.get_ref()));
            // A study's tier says nothing about another server of that name.
            let own = own.filter(|_| !target.is_at_url());
            // Nor is its figure that of other limits.
            let published = self.target(&target.name).and_then(|own| own.published.as_ref());
            let published = published.filter(|_| of_user.is_none() && own.is_some());
            target.published = published.map(|figure| figure.get_ref().clone());
            let Some(tier) = of_user.or(own) else { continue };
            target.limit(tier).map_err(StudyError::Choice)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "tiers_tests.rs"]
mod tests;
