// A rule: while the laser does not work, nobody drives.

import { Robot } from "amber-robot";

const FAILS = ["DEVICE_DOWN", "DEVICE_FAILED", "DEVICE_TROUBLE"];
const WORKS = ["DEVICE_UP", "DEVICE_RECOVERED"];

const robot = await Robot.connect();
let lease;
for await (const { kind, device } of robot.mediator().events()) {
  if (device?.type !== 4 || device.id !== 0) continue; // not the laser
  if (FAILS.includes(kind) && !lease) {
    lease = await robot.wheels().lease("no laser", { force: true });
    console.log("no laser: the robot stands");
  } else if (WORKS.includes(kind) && lease) {
    await lease.release();
    lease = undefined;
    console.log("the laser works: drive on");
  }
}
