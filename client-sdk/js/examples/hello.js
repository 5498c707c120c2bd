// Says what is nearest to the robot, and how fast its wheels turn.

import { Robot, nearest } from "amber-robot";

const robot = await Robot.connect();
const object = nearest(await robot.laser().scan());
if (object) {
  const { distance, angle } = object;
  console.log(`an object is ${distance} mm away, at ${angle.toFixed()} degrees`);
}
console.log(await robot.wheels().speeds());
await robot.close();
