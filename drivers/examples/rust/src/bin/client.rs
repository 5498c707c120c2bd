//! Queries a Dummy and a thermometer, if they are available.
//!
//! ```sh
//! target/debug/client [HOST:PORT]
//! ```

use std::env;
use std::process::ExitCode;

use amber_examples::thermometer::Thermometer;
use amber_sdk::{Client, Result};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let address = env::args()
        .nth(1)
        .or_else(|| env::var("AMBER_MEDIATOR").ok());
    let address = address.unwrap_or_else(|| "127.0.0.1".into());
    let client = match Client::connect(address).await {
        Ok(client) => client,
        Err(error) => {
            eprintln!("{}", error.explained());
            return ExitCode::FAILURE;
        }
    };
    let mut answers = 0;
    for answer in [dummy(&client).await, thermometer(&client).await] {
        match answer {
            Ok(text) => {
                println!("{text}");
                answers += 1;
            }
            Err(error) => eprintln!("{}", error.explained()),
        }
    }
    // Announces the end, so that drivers stop working for this client.
    client.close().await;
    match answers {
        0 => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// A device of Amber has typed methods.
async fn dummy(client: &Client) -> Result<String> {
    let status = client.dummy(0).status().await?;
    Ok(format!("the dummy says: {}", status.message))
}

/// So has a user-defined device, from its `.proto` file.
async fn thermometer(client: &Client) -> Result<String> {
    let reading = Thermometer::of(client, 0).temperature().await?;
    Ok(match reading.celsius {
        Some(celsius) => format!("the thermometer says: {celsius:.1} degrees"),
        None => "the thermometer has no sensor".to_owned(),
    })
}
