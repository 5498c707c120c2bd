//! All attacks, by topic.

pub mod forged;
pub mod receivers;
pub mod work;
