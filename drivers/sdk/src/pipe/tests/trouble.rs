//! Tests of what a driver tells the mediator itself: health reports and a description.

use std::collections::HashMap;

use super::*;

#[test]
fn trouble_and_recovery_are_each_reported_once() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        for (syn, text) in [(1, "recover"), (2, "break")] {
            mediator.ask(syn, text).await;
            mediator.expect(5, syn, text).await;
        }
        mediator.expect_health(None, Some("it is broken")).await;
        for (syn, text) in [(3, "break"), (4, "break one")] {
            mediator.ask(syn, text).await;
            mediator.expect(5, syn, text).await;
        }
        mediator.expect_health(Some(0), Some("loose")).await;
        mediator.ask(5, "recover one").await;
        mediator.expect(5, 5, "recover one").await;
        mediator.expect_health(Some(0), None).await;
        mediator.ask(6, "recover").await;
        mediator.expect(5, 6, "recover").await;
        mediator.expect_health(None, None).await;
        mediator.end().await.unwrap();
    });
}

#[test]
fn reporting_trouble_never_blocks_and_the_last_state_arrives() {
    run(async {
        let mut mediator = Mediator::with_pipes(Probe::default(), 16);
        mediator.ask(1, "wait").await;
        while mediator.notes.borrow().is_empty() {
            tokio::task::yield_now().await;
        }
        // Fills the pipe, which is smaller than an answer.
        mediator.go.notify_one();
        for (syn, text) in [(2, "break"), (3, "recover"), (4, "break"), (5, "break one")] {
            mediator.ask(syn, text).await;
        }
        let asked = mediator.notes.clone();
        while asked.borrow().len() < 5 {
            tokio::task::yield_now().await;
        }
        let mut last = HashMap::new();
        mediator.to_driver.shutdown().await.unwrap();
        while let Some(packet) = mediator.read().await {
            let message = mediator::DriverMsg::decode(packet.message).unwrap();
            if let Some(health) = message.health {
                last.insert(packet.header.device_id, health.text);
            }
        }
        let expected = [(None, "it is broken"), (Some(0), "loose")];
        let expected = expected.map(|(id, text)| (id, Some(text.to_owned())));
        assert_eq!(last, HashMap::from(expected));
    });
}

#[test]
fn an_unknown_mediator_gets_no_health_reports() {
    run(async {
        let mut mediator = Mediator::of_peer(Peer::Unknown, Probe::default(), 4096);
        for (syn, text) in [(1, "break"), (2, "break one"), (3, "recover")] {
            mediator.ask(syn, text).await;
            mediator.expect(5, syn, text).await;
        }
        mediator.end().await.unwrap();
    });
}

impl Mediator {
    /// Expects a health report about all devices, or about the one with this id.
    async fn expect_health(&mut self, id: Option<i32>, trouble: Option<&str>) {
        let packet = self.read().await.expect("the driver still runs");
        let header = DriverHdr {
            device_type: id.map(|_| DeviceType::DUMMY.0),
            device_id: id,
            client_ids: Vec::new(),
        };
        assert_eq!(packet.header, header);
        let message = mediator::DriverMsg::decode(packet.message).unwrap();
        assert_eq!(message.kind(), Some(MsgType::Data));
        assert_eq!((message.syn(), message.ack()), (None, None));
        let trouble = Ok(trouble.map(str::to_owned));
        assert_eq!(message.health.unwrap().trouble(), trouble);
    }
}

#[test]
fn the_description_is_handed_over_once_to_mediators_that_know_it() {
    for peer in [Peer::Amber, Peer::Unknown] {
        run(async {
            let probe = Probe {
                description: Some(b"files"),
                ..Probe::default()
            };
            let mut mediator = Mediator::of_peer(peer, probe, 1024);
            if peer == Peer::Amber {
                let packet = mediator.read().await.unwrap();
                assert_eq!(packet.header, DriverHdr::default());
                let message = mediator::DriverMsg::decode(packet.message).unwrap();
                assert_eq!(message.description.unwrap().files[..], b"files"[..]);
            }
            mediator.ask(1, "hello").await;
            mediator.expect(5, 1, "hello").await;
            mediator.end().await.unwrap();
        });
    }
}
