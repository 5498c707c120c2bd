//! The outcome of the requests of one client to one driver. PURE.
//!
//! Requests are numbered from 0 and stay in order. A reply is correct if it answers the oldest open
//! request, or a later one; in that case the requests before it are lost. Every other reply is
//! wrong: a duplicate, a late one, or one without a request.

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Requests sent; also the number of the next request.
    pub sent: u64,
    /// Correct replies.
    pub answered: u64,
    /// Requests that can no longer be answered.
    pub lost: u64,
}

/// The error of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// This request, or a later one, was already answered.
    Again(u64),
    /// There was no such request.
    NeverAsked(u64),
}

impl Ledger {
    /// The oldest request that may still be answered.
    pub fn oldest(&self) -> u64 {
        self.answered + self.lost
    }

    /// Requests that may still be answered.
    pub fn open(&self) -> u64 {
        self.sent - self.oldest()
    }

    /// Records a request and returns its number.
    pub fn send(&mut self) -> u64 {
        self.sent += 1;
        self.sent - 1
    }

    /// Records a reply.
    ///
    /// # Errors
    /// The reply is wrong.
    pub fn answer(&mut self, number: u64) -> Result<(), Wrong> {
        if number < self.oldest() {
            return Err(Wrong::Again(number));
        }
        if number >= self.sent {
            return Err(Wrong::NeverAsked(number));
        }
        self.lost += number - self.oldest();
        self.answered += 1;
        Ok(())
    }

    /// No more replies arrive: open requests are lost.
    pub fn close(&mut self) {
        self.lost += self.open();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_answered_once_or_lost() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.answer(0), Err(Wrong::NeverAsked(0)));
        for number in 0..5 {
            assert_eq!(ledger.send(), number);
        }
        ledger.answer(0).unwrap();
        // 1 and 2 are lost and can no longer be answered.
        ledger.answer(3).unwrap();
        for number in 0..=3 {
            assert_eq!(ledger.answer(number), Err(Wrong::Again(number)));
        }
        assert_eq!((ledger.answered, ledger.lost, ledger.open()), (2, 2, 1));
        ledger.close();
        assert_eq!((ledger.lost, ledger.open()), (3, 0));
        assert_eq!(ledger.sent, ledger.answered + ledger.lost);
    }
}
