// Keeps what happened before and after the robot came close to something.

import { execFileSync } from "node:child_process";
import { setTimeout } from "node:timers/promises";
import { Robot, nearest } from "amber-robot";

const robot = await Robot.connect();
for await (const scan of robot.laser().scans()) {
  const near = nearest(scan, -30, 30);
  if (near?.distance < 400) {
    console.log(`${near.distance} mm ahead`);
    await setTimeout(2000); // record what happens next
    execFileSync("amber", ["snapshot", "close"], { stdio: "inherit" });
    break;
  }
}
await robot.close();
