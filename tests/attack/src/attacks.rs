//! All attacks, by topic.

pub mod control;
pub mod edge;
pub mod fairness;
pub mod files;
pub mod forged;
pub mod pages;
pub mod ports;
pub mod processes;
pub mod receivers;
pub mod work;
