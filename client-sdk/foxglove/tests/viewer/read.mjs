// Reads the robot as Foxglove does: with the client library of Foxglove, and with the schemas that
// the server sends. Prints what a 3D panel would draw.
//
//     npm install && node read.mjs ws://127.0.0.1:8765

import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { FoxgloveClient } = require("@foxglove/ws-protocol");
const protobuf = require("protobufjs");
const descriptor = require("protobufjs/ext/descriptor");
const WebSocket = require("ws");

const url = process.argv[2] ?? "ws://127.0.0.1:8765";
// Lichtblick offers both names.
const socket = new WebSocket(url, ["foxglove.websocket.v1", "foxglove.sdk.v1"]);
const client = new FoxgloveClient({ ws: socket });

const fail = (why) => {
  console.error(`error: ${why}`);
  process.exit(1);
};
client.on("error", (error) => fail(error.message));
client.on("status", (status) => fail(status.message));

/** The type of the messages of a channel. */
const typeOf = (channel) => {
  const set = descriptor.FileDescriptorSet.decode(Buffer.from(channel.schema, "base64"));
  const root = protobuf.Root.fromDescriptor(set);
  root.resolveAll();
  return root.lookupType(channel.schemaName);
};

// The last message of each topic, and the first of the map, which comes only once.
const wanted = [
  "/foxglove/hokuyo/0/scan",
  "/foxglove/location/0/pose",
  "/foxglove/location/0/walls",
  "/foxglove/robot",
  "/foxglove/tf",
  "/hokuyo/0/scan",
  "/roboclaw/0/currentSpeed",
];
const channels = new Map();
const last = new Map();

client.on("advertise", (advertised) => {
  for (const channel of advertised) {
    if (wanted.includes(channel.topic)) {
      const id = client.subscribe(channel.id);
      channels.set(id, { topic: channel.topic, type: typeOf(channel) });
    }
  }
});

// A viewer that may call requests calls this one.
const called = "/roboclaw/0/speeds";
let answer;
client.on("advertiseServices", (services) => {
  const service = services.find(({ name }) => name === called);
  if (service) {
    const data = new TextEncoder().encode("{}");
    client.sendServiceCallRequest({ serviceId: service.id, callId: 1, encoding: "json", data });
  }
});
client.on("serviceCallResponse", ({ callId, encoding, data }) => {
  answer = { callId, encoding, speeds: JSON.parse(new TextDecoder().decode(data)) };
});
client.on("serviceCallFailure", ({ message }) => fail(message));

client.on("message", ({ subscriptionId, timestamp, data }) => {
  const { topic, type } = channels.get(subscriptionId);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  last.set(topic, { message: type.decode(bytes), timestamp });
  if (last.size === wanted.length && answer && transform("map", "base_link")) {
    report();
  }
});

setTimeout(() => {
  fail(`missing: ${answer ? "" : called} ${wanted.filter((topic) => !last.has(topic)).join(", ")}`);
}, 40_000).unref();

const transform = (parent, child) => {
  const { message } = last.get("/foxglove/tf");
  const found = message.transforms.find(
    (it) => it.parentFrameId === parent && it.childFrameId === child,
  );
  return found && { at: found.translation, heading: headingOf(found.rotation) };
};
const headingOf = (turn) => 2 * Math.atan2(turn.z, turn.w);
/** A place in a frame, in the frame above it. */
const above = ({ at, heading }, { x, y }) => ({
  x: at.x + x * Math.cos(heading) - y * Math.sin(heading),
  y: at.y + x * Math.sin(heading) + y * Math.cos(heading),
});

const report = () => {
  const scan = last.get("/foxglove/hokuyo/0/scan").message;
  const step = (scan.endAngle - scan.startAngle) / (scan.ranges.length - 1);
  const points = scan.ranges
    .map((range, index) => {
      const angle = scan.startAngle + index * step;
      return { x: range * Math.cos(angle), y: range * Math.sin(angle) };
    })
    .filter(({ x }) => Number.isFinite(x))
    .map((point) => above(transform("base_link", scan.frameId), point))
    .map((point) => above(transform("map", "base_link"), point));
  const walls = last.get("/foxglove/location/0/walls").message.entities[0].cubes;
  const distance = (point, wall) => {
    const { position, orientation } = wall.pose;
    const heading = headingOf(orientation);
    const [dx, dy] = [point.x - position.x, point.y - position.y];
    const x = dx * Math.cos(heading) + dy * Math.sin(heading);
    const y = dy * Math.cos(heading) - dx * Math.sin(heading);
    const outside = (place, size) => Math.max(0, Math.abs(place) - size / 2);
    return Math.hypot(outside(x, wall.size.x), outside(y, wall.size.y));
  };
  const isOnWall = (point) => walls.some((wall) => distance(point, wall) < 0.1);
  const pose = last.get("/foxglove/location/0/pose").message.pose;
  const raw = last.get("/hokuyo/0/scan");
  console.log(
    JSON.stringify({
      x: pose.position.x,
      y: pose.position.y,
      heading: headingOf(pose.orientation),
      points: points.length,
      on_walls: points.filter(isOnWall).length,
      robot_frame: last.get("/foxglove/robot").message.entities[0].frameId,
      raw_distances: raw.message.scan.distances.length,
      raw_age_ms: Date.now() - Number(raw.timestamp / 1_000_000n),
      answer,
      speeds: Object.keys(last.get("/roboclaw/0/currentSpeed").message.currentSpeed.toJSON()),
    }),
  );
  process.exit(0);
};
