//! The driver between the mediator and the scanner. IO.

use super::logic::ScannerLogic;
use crate::scanner::driver::LaserDriver;

/// The driver of a Hokuyo laser scanner.
pub type Hokuyo<C> = LaserDriver<ScannerLogic, C>;

#[cfg(test)]
mod tests;
