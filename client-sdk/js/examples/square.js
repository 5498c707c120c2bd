// Drives a square of 30 cm by time and speed alone.

import { setTimeout } from "node:timers/promises";
import { Robot, sides } from "amber-robot";

const robot = await Robot.connect();
const wheels = robot.wheels();
for (let side = 0; side < 4; side++) {
  await wheels.drive(sides(250, 250)); // mm/s
  await setTimeout(1200);
  await wheels.drive(sides(250, -250)); // to the right
  await setTimeout(1320);
}
await robot.close(); // the wheels stop
