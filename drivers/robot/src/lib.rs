//! What programs share that drive a robot of Amber: gateways, the dashboard, and bridges of a fleet.
//!
//! ```text
//!  a program's sessions -> Helm (who drives, for how long) -> UserOrder -> Users: one client per session
//!                                                             Feeds -> News: measurements, answers
//! ```
//!
//! PURE: [`robot`] (its devices, orders and measurements), [`controls`] (the seat, and how long motion
//! lasts), [`helm`] (the same for all devices of a robot), [`errand`] (motion that goes on without
//! further commands), [`motion`] (which messages move wheels), [`lag`] (how late a message is),
//! [`bucket`] (rates), [`here`] (the pose that a program knows), [`battery`] (in the terms of ROS),
//! [`pictures`] (who wants which of a camera), [`limits`]. IO: [`hands`] (the orders of one user, with leases), [`users`] (sessions as clients of the
//! mediator), [`trips`] (errands of which somebody wants to know the end), [`feeds`] (measurements),
//! [`maps`].

pub mod battery;
pub mod bucket;
pub mod controls;
pub mod errand;
pub mod feeds;
pub mod hands;
pub mod helm;
pub mod here;
pub mod lag;
pub mod limits;
pub mod maps;
pub mod motion;
pub mod pictures;
pub mod robot;
pub mod trips;
pub mod users;
