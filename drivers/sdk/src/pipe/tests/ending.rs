//! Tests of the end of a driver, and of a failed start.

use super::*;

#[test]
fn a_handler_that_hangs_does_not_outlive_stdin() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.ask(1, "wait").await;
        mediator.ask(2, "never").await;
        let start = Instant::now();
        let notes = mediator.notes.clone();
        mediator.end().await.unwrap();
        assert_eq!(*notes.borrow(), ["wait", "shutdown"]);
        assert!(start.elapsed() >= LAST_REQUESTS);
    });
}

#[test]
fn stopping_cancels_the_handler() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.ask(1, "wait").await;
        mediator.ping(2).await;
        mediator.expect_pong(2).await;
        mediator.stop.notify_one();
        (&mut mediator.served).await.unwrap().unwrap();
        assert_eq!(*mediator.notes.borrow(), ["wait", "shutdown"]);
    });
}

#[test]
fn an_invalid_frame_ends_it_with_an_error_after_a_clean_shutdown() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.write_bytes(b"Hello, driver!\n").await;
        match mediator.end().await {
            Err(ServeError::Read(error)) => assert_eq!(error.kind(), io::ErrorKind::InvalidData),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_mediator_that_has_exited_is_not_an_error() {
    run(async {
        let Mediator {
            mut to_driver,
            from_driver,
            served,
            notes,
            ..
        } = Mediator::start(Probe::default());
        drop(from_driver);
        let request = packet(
            5,
            &DriverMsg {
                syn_num: Some(1),
                ..data("hello")
            },
        );
        to_driver
            .write_all(&request.encode().unwrap())
            .await
            .unwrap();
        served.await.unwrap().unwrap();
        assert_eq!(*notes.borrow(), ["hello", "shutdown"]);
    });
}

#[test]
fn a_driver_that_cannot_start_reports_the_reason() {
    struct Broken;

    impl Driver for Broken {
        type Message = DriverMsg;

        async fn start(&mut self, _: Link<DriverMsg>) -> Result<(), Box<dyn Error + Send + Sync>> {
            Err("no such port".into())
        }

        async fn request(&mut self, _: Request<DriverMsg>) -> Option<DriverMsg> {
            None
        }
    }

    run(async {
        match serve_on(Broken, tokio::io::empty(), tokio::io::sink()).await {
            Err(ServeError::Start(error)) => assert_eq!(error.to_string(), "no such port"),
            other => panic!("{other:?}"),
        }
    });
}
