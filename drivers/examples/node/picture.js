#!/usr/bin/env node
'use strict';
// Saves a picture of a camera, which is usually longer than a frame.
//
//     node picture.js FILE [HOST [PORT]]
//
// The default address is AMBER_MEDIATOR: HOST, HOST:PORT or [IPV6]:PORT.

const dgram = require('dgram');
const fs = require('fs');
const net = require('net');
const amber = require('./amber');
const { Joiner } = require('./pieces');

const { DriverHdr, DriverMsg, Type } = amber.load('camera.proto');

const [MEDIATOR, CAMERA] = [0, 17];
const TRIES = 3;
const PATIENCE_MS = 6000; // a camera that nobody uses is switched on first
const PAUSE_MS = 50; // so long after a piece, the missing ones are called for
const CALLS = 3;

const file = process.argv[2];
const { host, port } = amber.address(process.argv[3], process.argv[4]);
const socket = dgram.createSocket(net.isIPv6(host) ? 'udp6' : 'udp4');
let received = () => {}; // what to do with a message

function send(deviceType, fields) {
  const header = DriverHdr.encode({ deviceType, deviceID: 0 }).finish();
  socket.send(amber.encodeFrame(header, DriverMsg.encode(fields).finish()));
}

function parsed(bytes) {
  try {
    return DriverMsg.decode(bytes);
  } catch {
    return null; // any program can send to this port
  }
}

socket.on('message', (datagram) => {
  const frame = amber.splitFrame(datagram);
  if (frame === null || frame.end !== datagram.length) return;
  const message = parsed(frame.message);
  if (message === null) return;
  if (message.type !== Type.PING) return received(message);
  // The mediator checks that this client is alive.
  const ackNum = Object.hasOwn(message, 'synNum') ? { ackNum: message.synNum } : {};
  send(MEDIATOR, { type: Type.PONG, ...ackNum });
});
socket.on('error', () => {}); // the port is closed: the request times out

/** The answer to a request for a picture: a short message, or the joined one. Null if none came. */
function request(synNum) {
  const joiner = new Joiner();
  let calls = 0;
  let timer, pause;
  return new Promise((resolve) => {
    timer = setTimeout(() => resolve(null), PATIENCE_MS);
    const callForMissing = () => {
      calls += 1;
      send(CAMERA, { type: Type.DATA, ...joiner.call() });
      waitForMore();
    };
    const waitForMore = () => {
      clearTimeout(pause);
      if (joiner.hasBegun && calls < CALLS) pause = setTimeout(callForMissing, PAUSE_MS);
    };
    received = (message) => {
      if (Object.hasOwn(message, 'piece') && message.piece) {
        const joined = joiner.join(message.piece);
        waitForMore();
        message = joined && parsed(joined);
      }
      if (message && message.ackNum === synNum) resolve(message);
    };
    // `joins` says that this client joins pieces, of the usual length.
    const fields = { joins: {}, '.amber.camera_proto.get_picture': {} };
    send(CAMERA, { ...fields, type: Type.DATA, synNum });
  }).finally(() => {
    received = () => {};
    clearTimeout(timer);
    clearTimeout(pause);
  });
}

/** Saves the picture. Returns why there is none. */
function save(answer) {
  if (!answer) return 'no answer; is a mediator with a camera running there?';
  const refused = answer['.amber.camera_proto.picture_refused'];
  if (refused) return `no picture: ${refused}`;
  const picture = answer['.amber.camera_proto.picture'];
  if (!picture) return 'the camera is not available; `amber status camera` shows the reason';
  fs.writeFileSync(file, picture.data);
  console.log(`${file}: ${picture.data.length} bytes`);
  return null;
}

async function main() {
  if (!file) {
    console.error('usage: node picture.js FILE [HOST [PORT]]');
    process.exit(2);
  }
  await new Promise((resolve) => socket.connect(port, host, resolve));
  // After this, the mediator reports missing devices at once, so no request waits for a timeout.
  send(MEDIATOR, { type: Type.PING });
  let answer = null;
  for (let number = 1; number <= TRIES && !answer; number++) answer = await request(number);
  send(MEDIATOR, { type: Type.CLIENT_DIED }); // tells all devices that this client leaves
  setImmediate(() => socket.close());
  const error = save(answer);
  if (error) {
    console.error(`error: ${error}`);
    process.exitCode = 1;
  }
}

main();
