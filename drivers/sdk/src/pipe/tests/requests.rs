//! Tests of requests, which are answered in order, and of PINGs, which are answered at once.

use super::*;

#[test]
fn requests_are_answered_in_order_until_the_end_of_stdin() {
    run(async {
        // The pipe holds far more requests than the queue of the driver.
        let mut mediator = Mediator::with_pipes(Probe::default(), 1 << 20);
        for syn in 1..=5_000 {
            mediator.ask(syn, "").await;
        }
        for syn in 1..=5_000 {
            mediator.expect(5, syn, "").await;
        }
        mediator.tell(5, MsgType::ClientDied).await;
        let notes = mediator.notes.clone();
        mediator.end().await.unwrap();
        assert_eq!(notes.borrow()[5_000..], ["5 died", "shutdown"]);
    });
}

#[test]
fn requests_before_the_end_are_answered() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.ask(1, "hello").await;
        mediator.ask(2, "bye").await;
        mediator.to_driver.shutdown().await.unwrap();
        mediator.expect(5, 1, "hello").await;
        mediator.expect(5, 2, "bye").await;
        mediator.end().await.unwrap();
    });
}

#[test]
fn frames_that_arrive_byte_by_byte_are_read() {
    run(async {
        let mut mediator = Mediator::with_pipes(Probe::default(), 1);
        mediator.ask(1, "hello").await;
        mediator.expect(5, 1, "hello").await;
        mediator.end().await.unwrap();
    });
}

#[test]
fn pings_are_answered_while_a_handler_waits() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.ask(1, "wait").await;
        mediator.ask(2, "next").await;
        mediator.ping(3).await;
        mediator.expect_pong(3).await;
        assert_eq!(*mediator.notes.borrow(), ["wait"]);
        mediator.go.notify_one();
        mediator.expect(5, 1, "wait").await;
        mediator.expect(5, 2, "next").await;
        mediator.end().await.unwrap();
    });
}

#[test]
fn a_message_that_is_too_long_is_an_error_and_the_stream_continues() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.ask(1, "answer too much").await;
        mediator.ask(2, "publish too much").await;
        mediator
            .expect(
                5,
                2,
                "a message of 8388616 bytes is too long: the limit is 32767, or 8388608 for \
                 clients that join pieces",
            )
            .await;
        mediator.end().await.unwrap();
    });
}

#[test]
fn a_mediator_that_does_not_read_blocks_the_driver_with_bounded_memory() {
    run(async {
        let mut mediator = Mediator::with_pipes(Probe::default(), 4096);
        let text = "x".repeat(10_000);
        let mut asked = 0;
        // Until the pipe is full and stays full.
        while timeout(Duration::from_secs(1), mediator.ask(asked, &text))
            .await
            .is_ok()
        {
            asked += 1;
        }
        let bound = (MAX_OUTPUT + READ) / 10_000 + 10 + MAX_REQUESTS;
        assert!((25..bound as u32).contains(&asked), "{asked}");
        for syn in 0..asked {
            mediator.expect(5, syn, &text).await;
        }
    });
}
