//! Asks a battery gauge for everything, with both clients.

use std::time::Duration;

use amber_sdk::{Client, Error, Subscription, blocking};
use ::battery::battery::{self, Battery};

fn main() -> Result<(), Error> {
    let mediator = std::env::args().nth(1).unwrap_or_default();

    let client = blocking::Client::connect(&mediator)?;
    let gauge = battery::blocking::Battery::of(&client, 0);
    gauge.set_capacity(1800)?;
    println!("blocking {:?}", gauge.charge()?);
    let charge = gauge.charges()?.next().map(|update| update.message);
    println!("blocking charges {charge:?}");
    client.close();

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let client = Client::connect(&mediator).await?;
        let gauge = Battery::of(&client, 0);
        println!("async {:?}", gauge.charge().await?);
        let mut voltages = gauge
            .voltages(Some(Duration::from_millis(20)), Some(2))
            .await?;
        let voltage = voltages.next().await.map(|update| update.message);
        println!("async voltages {voltage:?}");
        let mut charges = gauge.charges().await?;
        println!(
            "both {} {}",
            flows(&mut charges).await,
            flows(&mut voltages).await
        );
        drop(charges);
        println!("one {}", flows(&mut voltages).await);
        client.close().await;
        Ok(())
    })
}

/// Whether more messages come than may be on their way.
async fn flows<T>(stream: &mut Subscription<T>) -> bool {
    let messages = async {
        for _ in 0..10 {
            stream.next().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(15), messages)
        .await
        .is_ok()
}
