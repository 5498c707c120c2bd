//! Tests of subscribers and publication times.

use amber_proto::DeviceType;

use super::*;

const PERIOD: Duration = Duration::from_millis(100);
const A: ClientId = ClientId(1);
const B: ClientId = ClientId(2);

/// The times in milliseconds of publications, when the clock is read at these times.
fn published(subscribers: &mut Subscribers, start: Instant, looks: &[u64]) -> Vec<u64> {
    let is_due = |look: &&u64| {
        let now = start + Duration::from_millis(**look);
        subscribers.take_due(now, PERIOD).is_some()
    };
    looks.iter().filter(is_due).copied().collect()
}

#[test]
fn repeated_subscriptions_count_once() {
    let mut subscribers = Subscribers::default();
    let now = Instant::now();
    assert!(subscribers.subscribe(None, A, now));
    assert!(!subscribers.subscribe(None, A, now));
    assert!(subscribers.subscribe(None, B, now));
    assert_eq!(subscribers.of(None).collect::<Vec<_>>(), [A, B]);
    assert!(subscribers.unsubscribe(None, A));
    assert!(!subscribers.unsubscribe(None, A));
    assert_eq!(subscribers.of(None).collect::<Vec<_>>(), [B]);
}

#[test]
fn each_device_has_its_own_subscribers() {
    let mut subscribers = Subscribers::default();
    let now = Instant::now();
    let [left, right] = [0, 1].map(|id| Some(Device::new(DeviceType::DUMMY, id)));
    subscribers.subscribe(left, A, now);
    subscribers.subscribe(right, A, now);
    subscribers.subscribe(right, B, now);
    assert_eq!(subscribers.count(), 3);
    assert!(!subscribers.unsubscribe(None, A));
    subscribers.remove(A);
    assert_eq!(subscribers.devices().collect::<Vec<_>>(), [right]);
    assert_eq!(subscribers.take_due(now, PERIOD), Some(right));
    assert_eq!(subscribers.take_due(now, PERIOD), None);
}

#[test]
fn nothing_is_due_without_subscribers() {
    let mut subscribers = Subscribers::default();
    let now = Instant::now();
    assert_eq!(subscribers.next_due(), None);
    subscribers.subscribe(None, A, now);
    assert_eq!(subscribers.next_due(), Some(now));
    subscribers.unsubscribe(None, A);
    assert_eq!(subscribers.next_due(), None);
    assert_eq!(subscribers.take_due(now + PERIOD, PERIOD), None);
}

#[test]
fn small_delays_do_not_add_up() {
    let mut subscribers = Subscribers::default();
    let start = Instant::now();
    subscribers.subscribe(None, A, start);
    assert_eq!(
        published(
            &mut subscribers,
            start,
            &[0, 99, 103, 199, 201, 299, 304, 400]
        ),
        [0, 103, 201, 304, 400]
    );
}

#[test]
fn being_late_causes_no_burst() {
    let mut subscribers = Subscribers::default();
    let start = Instant::now();
    subscribers.subscribe(None, A, start);
    assert_eq!(
        published(
            &mut subscribers,
            start,
            &[0, 1050, 1051, 1099, 1100, 1101, 1200]
        ),
        [0, 1050, 1100, 1200]
    );
}

#[test]
fn a_millisecond_timer_suffices_for_a_thousand_publications_per_second() {
    let mut subscribers = Subscribers::default();
    let mut now = Instant::now();
    let end = now + Duration::from_secs(1);
    subscribers.subscribe(None, A, now);
    let period = Duration::from_millis(1);
    let mut turns = 0;
    while let Some(due) = subscribers.next_due().filter(|due| *due < end) {
        // The worst case: a whole tick after the next whole tick.
        now = now.max(due + Duration::from_micros(1999));
        while subscribers.take_due(now, period).is_some() {
            turns += 1;
        }
    }
    assert!((999..=1001).contains(&turns), "{turns}");
    // A long delay is different.
    now += Duration::from_secs(1);
    assert!(subscribers.take_due(now, period).is_some());
    assert!(subscribers.take_due(now, period).is_none());
}

#[test]
fn subscribing_and_leaving_does_not_increase_the_rate() {
    let mut subscribers = Subscribers::default();
    let start = Instant::now();
    subscribers.subscribe(None, A, start);
    assert_eq!(published(&mut subscribers, start, &[0]), [0]);
    subscribers.unsubscribe(None, A);
    subscribers.subscribe(None, B, start + Duration::from_millis(10));
    assert_eq!(
        published(&mut subscribers, start, &[10, 50, 99, 100]),
        [100]
    );
    subscribers.remove(B);
    subscribers.subscribe(None, B, start + Duration::from_millis(1234));
    assert_eq!(
        published(&mut subscribers, start, &[1234, 1300, 1334]),
        [1234, 1334]
    );
}

#[test]
fn years_of_delay_and_a_zero_period_are_survived() {
    let mut subscribers = Subscribers::default();
    let start = Instant::now();
    subscribers.subscribe(None, A, start);
    let later = start + Duration::from_secs(300_000_000);
    for period in [Duration::ZERO, Duration::from_nanos(1), PERIOD] {
        assert_eq!(subscribers.take_due(later, period), Some(None));
        assert!(subscribers.next_due() > Some(later));
        subscribers.topics.get_mut(&None).unwrap().due = start;
    }
}
