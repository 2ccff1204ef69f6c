//! Tests of the whole way from a record to its outputs, on built runs.

mod advice;
mod alone;
mod best;
mod cache;
mod claims;
mod compare;
mod context;
mod explained;
mod failures;
mod few;
mod growth;
mod hits;
mod list;
mod outputs;
mod ramp;
mod ramp_faults;
mod ramp_place;
mod ramp_taken;
mod ranking;
mod read_back;
mod rows;
mod schedules;
mod search;
mod search_told;
mod validity;
mod width;
