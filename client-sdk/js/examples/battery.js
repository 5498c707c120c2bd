// Shows the voltage of the battery, until it is low.

import { Robot } from "amber-robot";

const robot = await Robot.connect();
for await (const { voltage, health } of robot.battery().stateUpdates()) {
  console.log(`${(voltage / 1000).toFixed(1)} V`);
  if (health === "LOW") {
    console.log("the battery is low: charge it");
    break;
  }
}
await robot.close();
