//! Tests of the client SDK with a real mediator and real drivers.

use std::time::Duration;

use amber_client::{Client, Error, Event, Interruption};
use amber_proto::mediator::DriverState;
use nix::sys::signal::Signal;

use crate::common::{Mediator, PATIENCE, device, signal, wait_for};

const DUMMY: &str = "dummy:0=amber driver dummy";

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("in time") });
}

#[test]
fn requests_are_answered_or_fail_at_once_without_a_driver() {
    let mediator = Mediator::start(&[DUMMY]);
    run(async {
        let client = Client::connect(mediator.address).await.unwrap();
        // The deadline is long, so only a refusal can be this quick.
        let client = client.with_deadline(PATIENCE * 2);
        let dummy = client.dummy(0);
        dummy.message("hello").await.unwrap();
        dummy.enable(true).await.unwrap();
        let status = dummy.status().await.unwrap();
        assert_eq!((status.message.as_str(), status.enable), ("hello", true));

        let error = client.dummy(7).status().await.unwrap_err();
        assert!(matches!(error, Error::NoSuchDevice { .. }), "{error:?}");
        assert!(error.hint().is_some());
        client.close().await;
    });
}

#[test]
fn messages_may_be_longer_than_a_frame() {
    let mediator = Mediator::start(&[DUMMY]);
    run(async {
        let client = Client::connect(mediator.address).await.unwrap();
        let client = client.with_deadline(PATIENCE);
        let dummy = client.dummy(0);
        // More than the mediator queues for a driver.
        let text = "zażółć ".repeat(100_000);
        dummy.message(&text).await.unwrap();
        let status = dummy.status().await.unwrap();
        assert!(status.message == text, "{} bytes", status.message.len());
        let error = dummy.message(&"x".repeat(9_000_000)).await.unwrap_err();
        assert!(matches!(error, Error::TooLong { .. }), "{error:?}");
        client.close().await;
    });
}

#[test]
fn a_subscription_resumes_after_a_restart() {
    let mediator = Mediator::start(&[DUMMY]);
    run(async {
        let client = Client::connect(mediator.address).await.unwrap();
        let mut updates = client.dummy(0).messages().await.unwrap();
        updates.next().await.unwrap();
        signal(mediator.describe("dummy:0").pid(), Signal::SIGKILL);
        let mut interrupted = false;
        loop {
            match updates.next_event().await.unwrap() {
                Event::Interrupted(_) => interrupted = true,
                Event::Message(_) if interrupted => break,
                _ => {}
            }
        }
        client.close().await;
    });
    wait_for("its goodbye", || (mediator.gone() > 0).then_some(()));
}

#[test]
fn an_evicted_client_is_served_again() {
    let (mediator, _folder) = Mediator::configured(
        "[limits]\nclients = 1\n[[driver]]\ndevice = 'dummy:0'\ncommand = ['amber', 'driver', 'dummy']\n",
    );
    run(async {
        let client = Client::connect(mediator.address).await.unwrap();
        let mut updates = client.dummy(0).messages().await.unwrap();
        updates.next().await.unwrap();
        let forgotten = Event::Interrupted(Interruption::Forgotten);
        loop {
            // This request takes its place.
            mediator.statistics();
            let event = tokio::time::timeout(Duration::from_millis(100), updates.next_event());
            if event.await.ok().flatten().as_ref() == Some(&forgotten) {
                break;
            }
        }
        while !matches!(updates.next_event().await.unwrap(), Event::Message(_)) {}
        client.close().await;
    });
}

#[test]
fn a_client_that_leaves_is_forgotten_everywhere() {
    let mediator = Mediator::start(&[DUMMY]);
    let frames = || mediator.describe("dummy:0").counters.unwrap().frames_out();
    run(async {
        let client = Client::connect(mediator.address).await.unwrap();
        let mut updates = client.dummy(0).messages().await.unwrap();
        updates.next().await.unwrap();
        client.close().await;
    });
    wait_for("its goodbye", || (mediator.gone() > 0).then_some(()));
    // The driver was notified, too, and stops publishing 10 frames per second.
    wait_for("silence", || {
        let before = frames();
        std::thread::sleep(Duration::from_millis(350));
        (frames() <= before + 1).then_some(())
    });
}

#[test]
fn the_blocking_facade() {
    let mediator = Mediator::start(&[DUMMY]);
    let client = amber_client::blocking::Client::connect(mediator.address).unwrap();
    let dummy = client.dummy(0);
    dummy.message("hello").unwrap();
    assert_eq!(dummy.status().unwrap().message, "hello");
    let updates = dummy.messages().unwrap();
    assert_eq!(updates.take(3).count(), 3);
    let drivers = client.mediator().drivers().unwrap();
    assert_eq!(drivers.len(), 1);
    client.close();
}

#[test]
fn user_defined_devices_take_raw_bytes() {
    // `cat` answers a request with the request itself, which has no ackNum, so the reply counts as
    // a publication.
    let mediator = Mediator::start(&["77:3=cat"]);
    run(async {
        let client = Client::connect(mediator.address).await.unwrap();
        let mut all = client.device(device("77:3")).subscribe_raw().await.unwrap();
        let message = bytes::Bytes::from_static(b"\x10\x01\xba\x0c\x02hi");
        client
            .device(device("77:3"))
            .send_raw(message.clone())
            .await
            .unwrap();
        // The number that every request gets follows the message.
        while !all.next().await.unwrap().message.starts_with(&message) {}
        client.close().await;
    });
    mediator.wait_for_state("77:3", DriverState::Up);
}
