//! The work queue of the driver's handlers. PURE.

use std::collections::{BTreeMap, VecDeque};

use amber_proto::ClientId;

use crate::request::Request;

/// The maximum number of waiting requests.
///
/// More than one read from a pipe brings, so nothing is dropped while the handlers are fast. With
/// handlers that need a millisecond, no executed request is older than a second.
pub const MAX_REQUESTS: usize = 1024;

/// The maximum number of waiting subscriptions and client deaths before reading stops. These are
/// never dropped.
pub const MAX_CHANGES: usize = 1024;

/// A reason to call a handler of the driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Work<M> {
    /// A client sent a request.
    Request(Request<M>),
    /// A client subscribed.
    Subscribed(ClientId),
    /// A client is gone.
    ClientDied(ClientId),
}

/// First come, first served. When too many requests wait, the oldest request of the client with the
/// most requests is dropped: an old motion command does harm, and a client that floods the queue
/// must not displace the others.
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
    /// Adds work at the end. Returns the request that was dropped for it, if any.
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

    /// Takes the first piece of work.
    pub fn pop(&mut self) -> Option<Work<M>> {
        let work = self.waiting.pop_front()?;
        if let Work::Request(request) = &work {
            self.forget(request.client());
        }
        Some(work)
    }

    /// Removes the requests of a client for which `is_outdated` is true.
    pub fn drop_requests(
        &mut self,
        client: ClientId,
        mut is_outdated: impl FnMut(&Request<M>) -> bool,
    ) {
        let waiting = std::mem::take(&mut self.waiting);
        for work in waiting {
            match work {
                Work::Request(request)
                    if request.client() == Some(client) && is_outdated(&request) =>
                {
                    self.forget(Some(client));
                }
                work => self.waiting.push_back(work),
            }
        }
    }

    /// Whether reading must pause until work has been taken.
    pub fn is_full(&self) -> bool {
        self.waiting.len() - self.requests >= MAX_CHANGES
    }

    /// Whether the queue is empty.
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
    fn work_is_served_in_order() {
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
    fn a_flooding_client_loses_its_own_oldest_requests() {
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
    fn subscriptions_and_deaths_are_never_dropped() {
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
