//! A bus with simulated chips for tests, with controllable time and faults. PURE.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use amber_sim::i2c::{Reply, Transfer};
use amber_sim::motion_sensor;
use amber_sim::ninedof::{Errors, Motion, NineDof, Truth};
use amber_sim::pca9685::Pca9685;

use super::{Bus, BusError};

/// At rest on level ground, facing north.
pub(crate) const RESTING: Motion = Motion {
    specific_force_g: [0.0, 0.0, 1.0],
    turn_deg_s: [0.0; 3],
    field_gauss: [0.0, 0.2, -0.45],
    speed_m_s: 0.0,
};

/// Simulated chips.
pub(crate) trait Chips: Send {
    fn transfer(&mut self, now: Duration, transfer: &Transfer, truth: Truth) -> Reply;
}

impl Chips for NineDof {
    fn transfer(&mut self, now: Duration, transfer: &Transfer, truth: Truth) -> Reply {
        NineDof::transfer(self, now, transfer, truth)
    }
}

impl<C: motion_sensor::Chips> Chips for motion_sensor::Board<C> {
    fn transfer(&mut self, now: Duration, transfer: &Transfer, truth: Truth) -> Reply {
        motion_sensor::Board::transfer(self, now, transfer, truth)
    }
}

impl Chips for Pca9685 {
    fn transfer(&mut self, now: Duration, transfer: &Transfer, _truth: Truth) -> Reply {
        Pca9685::transfer(self, now, transfer)
    }
}

/// The chips and the faults of the bus; clones share them.
#[derive(Debug)]
pub(crate) struct Fake<C = NineDof>(Arc<Mutex<FakeState<C>>>);

#[derive(Debug)]
pub(crate) struct FakeState<C> {
    pub(crate) chips: C,
    pub(crate) now: Duration,
    pub(crate) truth: Motion,
    /// Addresses without a chip.
    pub(crate) missing: Vec<u8>,
    /// This many transfers get no answer, whatever the address.
    pub(crate) naks: usize,
    pub(crate) broken: Option<String>,
    /// The bytes written so far.
    pub(crate) written: Vec<(u8, Vec<u8>)>,
}

impl Fake {
    pub(crate) fn new(errors: Errors) -> Self {
        Self::of(NineDof::new(errors, Duration::ZERO))
    }
}

impl<C> Clone for Fake<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> Fake<C> {
    pub(crate) fn of(chips: C) -> Self {
        Self(Arc::new(Mutex::new(FakeState {
            chips,
            now: Duration::ZERO,
            truth: RESTING,
            missing: Vec::new(),
            naks: 0,
            broken: None,
            written: Vec::new(),
        })))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, FakeState<C>> {
        self.0.lock().unwrap()
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.state().now += time;
    }
}

impl<C: Chips> Bus for Fake<C> {
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        let state = &mut *self.state();
        if let Some(why) = &state.broken {
            return Err(BusError::Broken(why.clone()));
        }
        if state.naks > 0 {
            state.naks -= 1;
            return Err(BusError::Nak);
        }
        if state.missing.contains(&address) {
            return Err(BusError::Nak);
        }
        state.written.push((address, written.to_vec()));
        let transfer = Transfer {
            address,
            written: written.to_vec(),
            read: read.len() as u8,
        };
        let truth = state.truth;
        match state.chips.transfer(state.now, &transfer, &|_| truth) {
            Reply::Ack(bytes) => read.copy_from_slice(&bytes),
            Reply::Nak => return Err(BusError::Nak),
        }
        Ok(())
    }
}
