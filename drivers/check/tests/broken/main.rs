//! `amber check` and `amber check-client` against programs with one mistake each. One program:
//! these tests wait most of the time, so they run side by side.

mod clients;
mod drivers;
