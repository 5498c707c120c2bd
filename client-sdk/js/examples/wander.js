#!/usr/bin/env node
// Drives around, and turns away from what is near: `node wander.js [SECONDS]`.
//
// Try it with `amber demo`. Each command holds for half a second: if this program ends or freezes, the
// robot stops.

import { Robot, nearest, sides } from "amber-robot";

const seconds = Number(process.argv[2] ?? 60);
const robot = await Robot.connect();
const lease = await robot.wheels().lease("wander.js");
const wheels = robot.wheels().with({ validMs: 500, signal: lease.signal });
const until = Date.now() + seconds * 1000;
try {
  for await (const scan of robot.laser().scans()) {
    if (Date.now() > until) break;
    const ahead = nearest(scan, -40, 40);
    const isFree = !ahead || ahead.distance > 600;
    // An object on the right makes it turn to the left.
    const turn = ahead && ahead.angle > 0 ? sides(-150, 150) : sides(150, -150);
    await wheels.drive(isFree ? sides(250, 250) : turn);
    if (ahead) console.log(`the nearest object ahead: ${ahead.distance} mm`);
  }
} finally {
  await lease.release();
  await robot.close();
}
