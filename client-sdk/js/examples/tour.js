// Goes round the rooms of the demo's flat.

import { Robot } from "amber-robot";

const ROOMS = {
  kitchen: { x: 1.4, y: 1 }, // metres on the map, y down
  bath: { x: 3.35, y: 1 },
  bedroom: { x: 5.5, y: 1 },
  hall: { x: 3.5, y: 2.6 },
};

const robot = await Robot.connect();
const drive = robot.driveToPoint();
for (const [room, target] of Object.entries(ROOMS)) {
  const { state, reason } = await drive.driveTo(target);
  console.log(`${room}: ${state === "ARRIVED" ? "arrived" : reason}`);
}
await robot.close();
