//! What waits for the driver's handlers. PURE.

use std::collections::{BTreeMap, VecDeque};

use amber_proto::ClientId;

use crate::request::Request;

/// How many requests may wait.
///
/// More than one read from a pipe brings, so that nothing is dropped while the
/// handlers are quick; and with handlers that need a millisecond, nothing is
/// done that was asked for more than a second ago.
pub const MAX_REQUESTS: usize = 1024;

/// How many comings and goings of clients may wait before reading stops: these
/// are never dropped.
pub const MAX_CHANGES: usize = 1024;

/// Something that a handler of the driver is to be called for.
#[derive(Clone, Debug, PartialEq)]
pub enum Work<M> {
    /// Somebody asks.
    Request(Request<M>),
    /// Somebody listens from now on.
    Subscribed(ClientId),
    /// Somebody is gone.
    ClientDied(ClientId),
}

/// First come, first served; but when too many wait, then the oldest request
/// of whoever has most of them goes: an old motion command is worse than none,
/// and one who floods must not drive out the others.
#[derive(Debug)]
pub struct Queue<M> {
    waiting: VecDeque<Work<M>>,
    requests: usize,
    requests_of: BTreeMap<Option<ClientId>, usize>,
}

impl<M> Default for Queue<M> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            requests: 0,
            requests_of: BTreeMap::new(),
        }
    }
}

impl<M> Queue<M> {
    /// Adds to the end; gives back the request that had to go for it.
    pub fn push(&mut self, work: Work<M>) -> Option<Request<M>> {
        let mut dropped = None;
        if let Work::Request(request) = &work {
            if self.requests == MAX_REQUESTS {
                dropped = self.drop_one();
            }
            self.requests += 1;
            *self.requests_of.entry(request.client()).or_default() += 1;
        }
        self.waiting.push_back(work);
        dropped
    }

    /// Takes from the front.
    pub fn pop(&mut self) -> Option<Work<M>> {
        let work = self.waiting.pop_front()?;
        if let Work::Request(request) = &work {
            self.forget(request.client());
        }
        Some(work)
    }

    /// Whether nothing more should be read until something has been taken.
    pub fn is_full(&self) -> bool {
        self.waiting.len() - self.requests >= MAX_CHANGES
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn drop_one(&mut self) -> Option<Request<M>> {
        let (client, _) = self.requests_of.iter().max_by_key(|(_, count)| **count)?;
        let client = *client;
        let is_its = |work: &Work<M>| matches!(work, Work::Request(r) if r.client() == client);
        let oldest = self.waiting.iter().position(is_its)?;
        self.forget(client);
        match self.waiting.remove(oldest)? {
            Work::Request(request) => Some(request),
            _ => None,
        }
    }

    fn forget(&mut self, client: Option<ClientId>) {
        self.requests -= 1;
        if let Some(count) = self.requests_of.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.requests_of.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Origin;

    fn request(client: i32, message: usize) -> Work<usize> {
        Work::Request(Request {
            message,
            origin: Origin {
                clients: vec![ClientId(client)],
                ..Origin::default()
            },
        })
    }

    #[test]
    fn what_comes_first_is_served_first() {
        let mut queue = Queue::default();
        let works = [
            request(1, 1),
            Work::Subscribed(ClientId(2)),
            request(2, 2),
            Work::ClientDied(ClientId(1)),
        ];
        for work in works.clone() {
            assert_eq!(queue.push(work), None);
        }
        for work in works {
            assert_eq!(queue.pop(), Some(work));
        }
        assert_eq!(queue.pop(), None);
        assert!(queue.requests_of.is_empty());
    }

    #[test]
    fn who_floods_loses_its_own_oldest_requests() {
        let mut queue = Queue::default();
        queue.push(request(1, 0));
        for i in 0..MAX_REQUESTS + 10 {
            let dropped = queue.push(request(2, i)).map(|request| request.message);
            assert_eq!(dropped, i.checked_sub(MAX_REQUESTS - 1));
        }
        assert_eq!(queue.pop(), Some(request(1, 0)));
        assert_eq!(queue.pop(), Some(request(2, 11)));
        assert_eq!(queue.requests, MAX_REQUESTS - 2);
    }

    #[test]
    fn comings_and_goings_are_never_dropped() {
        let mut queue = Queue::default();
        for i in 0..MAX_CHANGES {
            assert!(!queue.is_full());
            assert_eq!(queue.push(Work::ClientDied(ClientId(1))), None);
            queue.push(request(1, i));
        }
        assert!(queue.is_full());
        assert_eq!(queue.waiting.len(), MAX_CHANGES + MAX_REQUESTS);
        queue.pop();
        assert!(!queue.is_full());
    }
}
