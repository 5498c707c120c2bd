//! What a control has to say to the mediator, at a bounded rate. PURE.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_proto::motion::motion_report::News as Kind;

/// The interval of news about refused commands, and of those about stops: clients repeat commands
/// ten times per second.
const INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of waiting news. They are taken after each change.
const MAX_WAITING: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct News {
    waiting: VecDeque<(Kind, String)>,
    refused: Throttle,
    stopped: Throttle,
}

/// Lets one of several similar news pass in each interval.
#[derive(Debug, Default)]
struct Throttle {
    next: Option<Instant>,
}

impl Throttle {
    fn pass(&mut self, now: Instant) -> bool {
        let may = self.next.is_none_or(|next| next <= now);
        if may {
            self.next = Some(now + INTERVAL);
        }
        may
    }
}

impl News {
    /// Something has happened. Its text is only made if it is said.
    pub(crate) fn say(&mut self, now: Instant, kind: Kind, text: impl FnOnce() -> String) {
        let may = match kind {
            Kind::Refused => self.refused.pass(now),
            Kind::Stopped => self.stopped.pass(now),
            Kind::Lease | Kind::Halted | Kind::HaltReleased => true,
        };
        if may {
            if self.waiting.len() == MAX_WAITING {
                self.waiting.pop_front();
            }
            self.waiting.push_back((kind, text()));
        }
    }

    pub(crate) fn poll(&mut self) -> Option<(Kind, String)> {
        self.waiting.pop_front()
    }
}
