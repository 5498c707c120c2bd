// Reads the robot as Foxglove does: with the client library of Foxglove, and with the schemas that
// the server sends. Prints what a 3D panel would draw.
//
//     npm install && node read.mjs ws://127.0.0.1:8765

import { createRequire } from "node:module";

import { drawing, transform, typeOf, WANTED } from "./drawing.mjs";

const require = createRequire(import.meta.url);
const { FoxgloveClient } = require("@foxglove/ws-protocol");
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

const channels = new Map();
const last = new Map();
let rawTime;

client.on("advertise", (advertised) => {
  for (const { id, topic, schema, schemaName } of advertised) {
    if (WANTED.includes(topic)) {
      const type = typeOf(Buffer.from(schema, "base64"), schemaName);
      channels.set(client.subscribe(id), { topic, type });
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
  last.set(topic, type.decode(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)));
  if (topic === "/hokuyo/0/scan") rawTime = timestamp;
  const isComplete = last.size === WANTED.length && answer;
  if (isComplete && transform(last.get("/foxglove/tf"), "map", "base_link")) {
    const raw_age_ms = Date.now() - Number(rawTime / 1_000_000n);
    console.log(JSON.stringify({ ...drawing(last), raw_age_ms, answer }));
    process.exit(0);
  }
});

setTimeout(() => {
  fail(`missing: ${answer ? "" : called} ${WANTED.filter((topic) => !last.has(topic)).join(", ")}`);
}, 40_000).unref();
