//! Requests from clients that have yet to prove their address. PURE.

use std::collections::VecDeque;

use crate::address::{ClientAddress, PackedAddress};
use crate::limits::{UNPROVED_REQUEST_BYTES, UNPROVED_REQUESTS};

/// A few short requests, the oldest first.
#[derive(Debug, Default)]
pub(super) struct UnprovedRequests(VecDeque<(ClientAddress, Vec<u8>)>);

/// A request that is too long to wait.
#[derive(Debug)]
pub(super) struct TooLong;

impl UnprovedRequests {
    /// Keeps a request. Returns the number of requests that were dropped for it: at most one.
    ///
    /// # Errors
    /// It is too long, and was dropped itself.
    pub(super) fn push(&mut self, from: ClientAddress, request: &[u8]) -> Result<u64, TooLong> {
        if request.len() > UNPROVED_REQUEST_BYTES {
            return Err(TooLong);
        }
        let is_full = self.0.len() == UNPROVED_REQUESTS;
        if is_full {
            self.0.pop_front();
        }
        self.0.push_back((from, request.to_vec()));
        Ok(u64::from(is_full))
    }

    /// Takes the requests of a client that has proved its address.
    pub(super) fn take(&mut self, from: ClientAddress) -> Vec<Vec<u8>> {
        let all = std::mem::take(&mut self.0).into_iter();
        let (theirs, others): (VecDeque<_>, _) = all.partition(|(address, _)| *address == from);
        self.0 = others;
        theirs.into_iter().map(|(_, request)| request).collect()
    }

    /// Forgets the requests of a client that is gone. Returns how many there were.
    pub(super) fn forget(&mut self, from: PackedAddress) -> u64 {
        let before = self.0.len();
        self.0
            .retain(|(address, _)| PackedAddress::from(*address) != from);
        (before - self.0.len()) as u64
    }

    #[cfg(test)]
    pub(super) fn requests(&self) -> impl Iterator<Item = &(ClientAddress, Vec<u8>)> {
        self.0.iter()
    }
}
