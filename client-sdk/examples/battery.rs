//! Shows the voltage of the battery, until it is low.

use amber_sdk::proto::battery_state::battery_state::Health;
use amber_sdk::{Result, Robot};

#[amber_sdk::main]
async fn main(robot: Robot) -> Result<()> {
    let mut states = robot.battery(0).state_updates().await?;
    while let Some(state) = states.next().await {
        println!("{:.1} V", f64::from(state.message.voltage()) / 1000.0);
        if state.message.health() == Health::Low {
            println!("the battery is low: charge it");
            break;
        }
    }
    Ok(())
}
