//! The simulated devices from outside. One program: linking costs more than these tests.

mod foreign;
