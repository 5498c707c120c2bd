// Drives a robot that speaks Galileo one metre ahead, and prints what it reports.
//
//     node drive.mjs 127.0.0.1:3547 [token]

import { Robot } from "./robot.mjs";

const DISTANCE_M = 1.0;
const SPEED_M_S = 0.3;

const address = process.argv[2] ?? "127.0.0.1:3547";
const token = process.argv[3];
// As some programs do: without a token, the text is "undefined".
const url = (path) => `udp://${address}/${path}?token=${token}`;

/** A session, when the robot has accepted it. */
const open = (path) =>
  new Promise((resolve, reject) => {
    const robot = new Robot(url(path));
    robot.onOpen = () => resolve(robot);
    robot.onClose = () => reject(new Error(`no session for ${path} at ${address}`));
    robot.start();
  });

/** The next message of a session. */
const next = (robot) =>
  new Promise((resolve) => {
    robot.onMessage = (bytes, isBinary) => resolve(isBinary ? bytes : JSON.parse(bytes));
  });

const refused = await open("no/such/path").then(
  () => false,
  () => true,
);
const scanner = await open("scan");
const scan = await next(scanner);
scanner.stop();

// A message of Amber in a BINARY frame: DATA, synNum 1, currentSpeedRequest, for the wheels.
const wheels = await open("amber/2/0");
const request = Buffer.from("10011801a80101", "hex");
const length = Buffer.alloc(2);
length.writeUInt16BE(request.length);
wheels.sendBytes(Buffer.concat([length, request]));
const answer = await next(wheels);
wheels.stop();

const odometry = await open("odom");
const place = async () => (await next(odometry)).pose?.pose.position;
let begin;
while (!(begin = await place()));
const motion = await open("cmd_vel");
const drive = (speed) =>
  motion.send(JSON.stringify({ linear: { x: speed, y: 0, z: 0 }, angular: { x: 0, y: 0, z: 0 } }));
let way = 0;
while (way < DISTANCE_M) {
  drive(SPEED_M_S);
  const here = await place();
  way = here ? Math.hypot(here.x - begin.x, here.y - begin.y) : way;
}
drive(0);
motion.stop();
odometry.stop();
console.log(
  JSON.stringify({
    refused,
    ranges: scan.ranges.length,
    answer: answer.toString("hex"),
    way_m: way,
  }),
);
