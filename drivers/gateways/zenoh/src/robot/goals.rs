//! Goals of ROS 2 nodes that the robot does not carry out: a topic has no answer, so this is said in the
//! log and in `/diagnostics`. IO.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::limits::{GOAL_SHOWN, RETRY};

/// The last refusal.
#[derive(Clone, Default)]
pub(super) struct Goals(Arc<Mutex<Option<Refusal>>>);

struct Refusal {
    why: String,
    at: Instant,
    said: Instant,
}

impl Goals {
    /// A goal was refused. A node that repeats it does not fill the log.
    pub(super) fn refused(&self, why: &str) {
        let mut last = self.lock();
        let now = Instant::now();
        let said = last.as_ref().filter(|it| it.why == why).map(|it| it.said);
        let is_new = said.is_none_or(|said| now.duration_since(said) > GOAL_SHOWN);
        let said = said.filter(|_| !is_new).unwrap_or(now);
        if is_new {
            tracing::warn!("a goal of ROS 2 is not carried out: {why}");
        }
        *last = Some(Refusal {
            why: why.to_owned(),
            at: now,
            said,
        });
    }

    /// A goal was accepted.
    pub(super) fn accepted(&self) {
        // That of another node may be refused at the same time.
        let mut last = self.lock();
        if last.as_ref().is_some_and(|it| it.at.elapsed() > RETRY) {
            *last = None;
        }
    }

    /// Why the last goal was refused, for a while.
    pub(super) fn last(&self) -> Option<String> {
        let last = self.lock();
        let recent = last.as_ref().filter(|it| it.at.elapsed() < GOAL_SHOWN)?;
        Some(recent.why.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Refusal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_refusal_is_known() {
        let goals = Goals::default();
        assert_eq!(goals.last(), None);
        goals.refused("occupied by bob");
        goals.refused("in the wrong frame");
        assert_eq!(goals.last().unwrap(), "in the wrong frame");
        // Accepted at the same moment: perhaps that of another node.
        goals.accepted();
        assert!(goals.last().is_some());
    }
}
