//! What became of the requests of one client to one driver. PURE.
//!
//! Requests are numbered from 0. Nothing on the way changes their order, so an
//! answer is right when it is that to the oldest request which is still open, or
//! to a later one, and then those between them are lost. Everything else is
//! wrong: an answer that comes twice, late after a later one, or to nothing.

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Requests that were sent; the number of the next.
    pub sent: u64,
    /// Answers that were right.
    pub answered: u64,
    /// Requests that will not be answered any more.
    pub lost: u64,
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// This request, or a later one, was answered already.
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

    /// Notes a request and returns its number.
    pub fn send(&mut self) -> u64 {
        self.sent += 1;
        self.sent - 1
    }

    /// Notes an answer.
    ///
    /// # Errors
    /// It cannot be.
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

    /// Nothing comes any more: what is open is lost.
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
        // 1 and 2 are lost, and do not come any more.
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
