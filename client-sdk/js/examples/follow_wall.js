// Keeps a wall 60 cm away on the right-hand side, until Ctrl-C.

import { Robot, nearest, sides } from "amber-robot";

// Without new scans, the wheels stop after half a second.
const robot = await Robot.connect(undefined, { validMs: 500 });
const wheels = robot.wheels();
for await (const scan of robot.laser().scans()) {
  const nearestMm = (from, to) => nearest(scan, from, to)?.distance ?? 5000;
  if (nearestMm(-25, 25) < 700) {
    await wheels.drive(sides(-100, 100)); // mm/s; turn left
  } else {
    // Far from the wall, the left wheels are faster: to the right.
    const turn = Math.max(-100, Math.min((nearestMm(40, 120) - 600) / 4, 100));
    await wheels.drive(sides(200 + turn, 200 - turn));
  }
}
