//! A bus with simulated chips for tests, with controllable time and faults. PURE.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use amber_sim::i2c::{Reply, Transfer};
use amber_sim::ninedof::{Errors, Motion, NineDof as Chips};

use super::bus::{Bus, BusError};

/// At rest on level ground, facing north.
pub(super) const RESTING: Motion = Motion {
    specific_force_g: [0.0, 0.0, 1.0],
    turn_deg_s: [0.0; 3],
    field_gauss: [0.0, 0.2, -0.45],
    speed_m_s: 0.0,
};

/// The chips and the faults of the bus; clones share them.
#[derive(Clone, Debug)]
pub(super) struct Fake(Arc<Mutex<FakeState>>);

#[derive(Debug)]
pub(super) struct FakeState {
    pub(super) chips: Chips,
    pub(super) now: Duration,
    pub(super) truth: Motion,
    /// Addresses without a chip.
    pub(super) missing: Vec<u8>,
    /// This many transfers get no answer, whatever the address.
    pub(super) naks: usize,
    pub(super) broken: Option<String>,
    /// The bytes written so far.
    pub(super) written: Vec<(u8, Vec<u8>)>,
}

impl Fake {
    pub(super) fn new(errors: Errors) -> Self {
        Self(Arc::new(Mutex::new(FakeState {
            chips: Chips::new(errors, Duration::ZERO),
            now: Duration::ZERO,
            truth: RESTING,
            missing: Vec::new(),
            naks: 0,
            broken: None,
            written: Vec::new(),
        })))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, FakeState> {
        self.0.lock().unwrap()
    }

    pub(super) fn pass(&self, time: Duration) {
        self.state().now += time;
    }
}

impl Bus for Fake {
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
