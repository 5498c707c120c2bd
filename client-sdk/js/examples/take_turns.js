// Turns the robot once nobody else drives it. Start it twice.

import { setTimeout } from "node:timers/promises";
import { Robot, sides } from "amber-robot";

const robot = await Robot.connect();
console.log("waiting");
const lease = await robot.wheels().lease("take_turns", { wait: true });
console.log("driving");
await robot.wheels().drive(sides(150, -150)); // mm/s
await setTimeout(2000);
console.log("done");
await lease.release(); // the wheels stop
await robot.close();
