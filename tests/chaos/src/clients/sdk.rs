//! Clients written with the SDK. IO.

use std::net::SocketAddr;
use std::time::Duration;

use amber_client::blocking::Client;
use amber_client::{Error, Result};
use amber_harness::PATIENCE;
use amber_proto::Device;
use amber_reflect::Schemas;
use amber_reflect::arguments::Given;
use amber_schema::{Harmless, Kind};
use bytes::Bytes;

use super::{Outcome, Pace, Promise, Worker, is_told};

/// Sets a text and reads it back, repeatedly.
pub fn dummy(mediator: SocketAddr, id: i32, promise: Promise, per_second: f64) -> Worker {
    let name = format!("client of dummy:{id}");
    Worker::start(&name, promise, move |stop, outcome| {
        let client = connect(mediator, promise)?;
        // The status tells whether a text arrived.
        let dummy = client.dummy(id).without_waiting(|_| ());
        let mut pace = Pace::per_second(per_second);
        while !is_told(stop) {
            let number = outcome.ledger.send();
            dummy.message(number.to_string())?;
            match dummy.status() {
                // Messages stay in order, so the text must be the last one set.
                Ok(status) if status.message == number.to_string() => {
                    let _ = outcome.ledger.answer(number);
                }
                // The set request was lost, but not the status request.
                Ok(status) if is_earlier(&status.message, number) => outcome.ledger.close(),
                Ok(status) => {
                    outcome.wrong(format!(
                        "{number} was set, but the text is {}",
                        status.message
                    ));
                    outcome.ledger.close();
                }
                Err(error) => fail(outcome, &error),
            }
            pace.sleep();
        }
        client.close();
        Ok(())
    })
}

/// The text of a driver that was restarted or missed the latest one.
fn is_earlier(text: &str, number: u64) -> bool {
    match text.parse::<u64>() {
        Ok(set) => set < number,
        Err(_) => text == "Message",
    }
}

/// Sends a request repeatedly.
pub fn asker(
    mediator: SocketAddr,
    what: &str,
    promise: Promise,
    per_second: f64,
    ask: impl Fn(&Client) -> Result<()> + Send + 'static,
) -> Worker {
    let name = format!("client of {what}");
    Worker::start(&name, promise, move |stop, outcome| {
        let client = connect(mediator, promise)?;
        let mut pace = Pace::per_second(per_second);
        while !is_told(stop) {
            let number = outcome.ledger.send();
            match ask(&client) {
                Ok(()) => {
                    let _ = outcome.ledger.answer(number);
                }
                Err(error) => fail(outcome, &error),
            }
            pace.sleep();
        }
        client.close();
        Ok(())
    })
}

/// Sends the first request of a device that only reads, by its description, and checks that the
/// answer has what it must have. `None` if there is no such request.
pub fn reading(device: Device) -> Option<impl Fn(&Client) -> Result<()> + Send + 'static> {
    let schemas = Schemas::built_in();
    let methods = schemas.interface(device.device_type)?.methods.iter();
    let mut reads =
        methods.filter(|it| matches!(it.kind, Kind::Ask { .. }) && it.harmless == Harmless::Any);
    let method = reads.next()?.clone();
    let request = Bytes::from(schemas.request(&method, &Given::default()).ok()?);
    Some(move |client: &Client| {
        let answer = client.device(device).request_raw(request.clone())?;
        let values = schemas.values(&answer).unwrap_or_default();
        let mut fields = method.answer.iter();
        match fields.find(|field| schemas.value_at(&values, &field.path).is_none()) {
            None => Ok(()),
            Some(missing) => Err(Error::BadAnswer {
                device,
                message: format!("there is no {}", missing.name),
            }),
        }
    })
}

/// Subscribes to a dummy, whose messages are numbered.
pub fn listener(mediator: SocketAddr, id: i32, promise: Promise) -> Worker {
    let name = format!("subscriber of dummy:{id}");
    Worker::start(&name, promise, move |stop, outcome| {
        let client = connect(mediator, promise)?;
        let mut updates = client.dummy(id).messages()?;
        let mut last = None;
        while !is_told(stop) {
            let Some(update) = updates.next_within(Duration::from_millis(200)) else {
                continue;
            };
            let number = update.message.strip_prefix("Response ");
            let Some(number) = number.and_then(|text| text.parse::<u64>().ok()) else {
                outcome.wrong(format!("unexpected message {:?}", update.message));
                continue;
            };
            // Count all since the last message, unless the driver was restarted.
            let missed = match last {
                Some(last) if last < number => number - last - 1,
                Some(last) if promise == Promise::Everything => {
                    outcome.wrong(format!("{number} came after {last}"));
                    0
                }
                _ => 0,
            };
            let ledger = &mut outcome.ledger;
            ledger.sent += missed + 1;
            ledger.lost += missed;
            ledger.answered += 1;
            last = Some(number);
        }
        if last.is_none() && promise == Promise::Everything {
            outcome.wrong("no message ever arrived".into());
        }
        client.close();
        Ok(())
    })
}

fn connect(mediator: SocketAddr, promise: Promise) -> Result<Client> {
    let deadline = match promise {
        Promise::Everything => PATIENCE,
        Promise::NothingWrong => Duration::from_millis(500),
    };
    Ok(Client::connect(mediator)?.with_deadline(deadline))
}

fn fail(outcome: &mut Outcome, error: &Error) {
    outcome.ledger.close();
    let is_promised = outcome.promise == Promise::Everything;
    if is_promised || matches!(error, Error::BadAnswer { .. }) {
        outcome.wrong(error.to_string());
    }
}

impl Pace {
    fn sleep(&mut self) {
        self.done();
        std::thread::sleep(self.wait());
    }
}
