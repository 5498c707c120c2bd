//! Calls in flight, with their numbers and deadlines. PURE.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use amber_proto::{Device, SynNum};

/// One call of this process; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CallId(pub(crate) u64);

/// A call that waits for its answer.
#[derive(Debug)]
pub(crate) struct Call<W> {
    pub(crate) id: CallId,
    pub(crate) device: Device,
    pub(crate) started: Instant,
    pub(crate) deadline: Instant,
    /// The receiver of the answer.
    pub(crate) waiter: W,
}

/// All calls in flight.
///
/// An answer belongs to the call with the same device and number. Numbers increase
/// over all devices and skip 0, which marks published data. They begin at a random
/// one: a program may get the port of another that has just ended, and must not
/// accept the late answers to that program.
#[derive(Debug)]
pub(crate) struct Pending<W> {
    calls: HashMap<(Device, SynNum), Call<W>>,
    numbers: HashMap<CallId, (Device, SynNum)>,
    deadlines: BTreeSet<(Instant, CallId)>,
    last: u32,
}

impl<W> Call<W> {
    pub(crate) fn waited(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }
}

impl<W> Pending<W> {
    /// No calls; numbers begin after `last`.
    pub(crate) fn new(last: u32) -> Self {
        Self {
            calls: HashMap::new(),
            numbers: HashMap::new(),
            deadlines: BTreeSet::new(),
            last,
        }
    }

    /// A number that no call in flight to the device has.
    pub(crate) fn number(&mut self, device: Device) -> SynNum {
        loop {
            self.last = self.last.wrapping_add(1);
            let number = SynNum(self.last);
            if number.0 != 0 && !self.calls.contains_key(&(device, number)) {
                return number;
            }
        }
    }

    /// Adds a call; its request must carry the number.
    pub(crate) fn insert(&mut self, call: Call<W>) -> SynNum {
        let number = self.number(call.device);
        self.numbers.insert(call.id, (call.device, number));
        self.deadlines.insert((call.deadline, call.id));
        self.calls.insert((call.device, number), call);
        number
    }

    /// Whether a call waits for an answer with this number.
    pub(crate) fn has(&self, device: Device, number: SynNum) -> bool {
        self.calls.contains_key(&(device, number))
    }

    /// The call that an answer belongs to.
    pub(crate) fn answered(&mut self, device: Device, ack: SynNum) -> Option<Call<W>> {
        let call = self.calls.remove(&(device, ack))?;
        self.numbers.remove(&call.id);
        self.deadlines.remove(&(call.deadline, call.id));
        Some(call)
    }

    /// Removes a call that was cancelled.
    pub(crate) fn cancelled(&mut self, id: CallId) -> Option<Call<W>> {
        let (device, number) = *self.numbers.get(&id)?;
        self.answered(device, number)
    }

    /// Removes all calls to a device that will not answer them.
    pub(crate) fn take_device(&mut self, device: Device) -> Vec<Call<W>> {
        self.take_where(|call| call.device == device)
    }

    /// All calls.
    pub(crate) fn take_all(&mut self) -> Vec<Call<W>> {
        self.take_where(|_| true)
    }

    /// Removes the calls whose deadline has passed.
    pub(crate) fn take_overdue(&mut self, now: Instant) -> Vec<Call<W>> {
        let mut overdue = Vec::new();
        while let Some((deadline, id)) = self.deadlines.first().copied() {
            if deadline > now {
                break;
            }
            overdue.extend(self.cancelled(id));
        }
        overdue
    }

    /// The time of the next deadline.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    fn take_where(&mut self, wanted: impl Fn(&Call<W>) -> bool) -> Vec<Call<W>> {
        let mut ids: Vec<_> = self
            .calls
            .values()
            .filter(|call| wanted(call))
            .map(|c| c.id)
            .collect();
        ids.sort();
        ids.into_iter()
            .filter_map(|id| self.cancelled(id))
            .collect()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.numbers.is_empty() && self.deadlines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;

    const DUMMY: Device = Device::new(DeviceType::DUMMY, 0);
    const HOKUYO: Device = Device::new(DeviceType::HOKUYO, 0);

    fn call(id: u64, device: Device, started: Instant, ms: u64) -> Call<()> {
        Call {
            id: CallId(id),
            device,
            started,
            deadline: started + Duration::from_millis(ms),
            waiter: (),
        }
    }

    #[test]
    fn answers_find_their_call_by_device_and_number() {
        let now = Instant::now();
        let mut pending = Pending::new(0);
        let first = pending.insert(call(1, DUMMY, now, 10));
        let second = pending.insert(call(2, HOKUYO, now, 10));
        assert_eq!((first, second), (SynNum(1), SynNum(2)));
        assert!(pending.answered(HOKUYO, first).is_none());
        assert_eq!(pending.answered(DUMMY, first).unwrap().id, CallId(1));
        assert!(pending.answered(DUMMY, first).is_none());
        assert_eq!(pending.answered(HOKUYO, second).unwrap().id, CallId(2));
        assert!(pending.is_empty());
    }

    #[test]
    fn late_answers_to_the_previous_program_on_a_port_are_ignored() {
        let now = Instant::now();
        let (mut before, mut after) = (Pending::new(17), Pending::new(4_000_000_000));
        let asked = before.insert(call(1, DUMMY, now, 10));
        after.insert(call(1, DUMMY, now, 10));
        assert!(after.answered(DUMMY, asked).is_none());
    }

    #[test]
    fn deadlines_come_in_order() {
        let now = Instant::now();
        let mut pending = Pending::new(0);
        pending.insert(call(1, DUMMY, now, 20));
        pending.insert(call(2, DUMMY, now, 10));
        let ms = |ms| now + Duration::from_millis(ms);
        assert_eq!(pending.next_timeout(), Some(ms(10)));
        assert!(pending.take_overdue(ms(9)).is_empty());
        let overdue = pending.take_overdue(ms(10));
        assert_eq!(overdue[0].id, CallId(2));
        assert_eq!(overdue[0].waited(ms(10)), Duration::from_millis(10));
        assert_eq!(pending.next_timeout(), Some(ms(20)));
        assert_eq!(pending.take_overdue(ms(90)).len(), 1);
        assert!(pending.is_empty());
    }

    #[test]
    fn a_dead_device_takes_only_its_own_calls() {
        let now = Instant::now();
        let mut pending = Pending::new(0);
        pending.insert(call(1, DUMMY, now, 10));
        pending.insert(call(2, HOKUYO, now, 10));
        pending.insert(call(3, DUMMY, now, 10));
        let ids: Vec<_> = pending
            .take_device(DUMMY)
            .iter()
            .map(|call| call.id.0)
            .collect();
        assert_eq!(ids, [1, 3]);
        assert!(pending.cancelled(CallId(1)).is_none());
        assert!(pending.cancelled(CallId(2)).is_some());
        assert!(pending.is_empty());
    }

    #[test]
    fn numbers_skip_0_and_those_in_use() {
        let now = Instant::now();
        let mut pending = Pending::new(0);
        assert_eq!(pending.insert(call(1, DUMMY, now, 10)), SynNum(1));
        pending.last = u32::MAX - 1;
        assert_eq!(pending.number(DUMMY), SynNum(u32::MAX));
        assert_eq!(pending.number(DUMMY), SynNum(2));
    }
}
