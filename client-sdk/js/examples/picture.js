// Takes a picture.

import { writeFile } from "node:fs/promises";
import { Robot } from "amber-robot";

const robot = await Robot.connect();
const { data, width, height } = await robot.camera().picture();
await writeFile("picture.jpg", data);
console.log(`picture.jpg has ${width} x ${height} pixels`);
await robot.close();
