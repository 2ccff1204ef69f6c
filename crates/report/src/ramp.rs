//! Ramps: what a store answers while its load is raised in stages, where it breaks, and whether it
//! comes back.
//!
//! - `ladder`: a record's stages, each set against the rule of [`stats::knee`].
//! - `figures`: the highest rates, the shares of the knee and the stages over all blocks.
//! - `limited`: whose limit it was.
//! - `notes`: what is to be known of a ramp beside the rules.
//! - `place`: what the place of an operation in a pair takes, apart from the operation.
//! - `against`: highest rates of two targets, compared like any other result.
//! - `claims`: statements that only a ramp can judge.
//! - `saturation`: samples made small enough to be drawn.

mod against;
mod claims;
mod figures;
mod ladder;
mod limited;
mod notes;
mod place;
mod saturation;

pub(crate) use against::{comparisons, lower_bound_reason};
pub(crate) use claims::judge as judge_claim;
pub(crate) use figures::judged;
pub(crate) use ladder::{Ladder, Ramp};
pub(crate) use limited::near_null;
pub(crate) use notes::{against_words, note};
