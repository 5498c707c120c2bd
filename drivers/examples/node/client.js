#!/usr/bin/env node
'use strict';
// Queries a Dummy and a thermometer, if they are available.
//
//     node client.js [HOST [PORT]]
//
// The default address is AMBER_MEDIATOR: HOST, HOST:PORT or [IPV6]:PORT.

const dgram = require('dgram');
const net = require('net');
const amber = require('./amber');

const { DriverHdr, DriverMsg, Type } = amber.load('dummy.proto', 'thermometer.proto');

const { host, port } = amber.address(process.argv[2], process.argv[3]);

const [MEDIATOR, DUMMY, THERMOMETER] = [0, 5, 201];

const socket = dgram.createSocket(net.isIPv6(host) ? 'udp6' : 'udp4');
const waiting = new Map(); // pending requests, by their number
let lastNumber = 0;

function send(deviceType, fields) {
  const header = DriverHdr.encode({ deviceType, deviceID: 0 }).finish();
  socket.send(amber.encodeFrame(header, DriverMsg.encode(fields).finish()));
}

/** Sends a request; the answer, or null if the device is missing or UDP lost a packet. */
function request(deviceType, fields) {
  const synNum = ++lastNumber;
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), 1000);
    waiting.set(synNum, (answer) => {
      clearTimeout(timer);
      resolve(answer);
    });
    send(deviceType, { ...fields, type: Type.DATA, synNum });
  }).finally(() => waiting.delete(synNum));
}

socket.on('message', (datagram) => {
  const frame = amber.splitFrame(datagram);
  if (frame === null || frame.end !== datagram.length) return;
  let message;
  try {
    message = DriverMsg.decode(frame.message);
  } catch {
    return; // any program can send to this port
  }
  if (message.type === Type.PING) {
    // The mediator checks that this client is alive.
    const ackNum = Object.hasOwn(message, 'synNum') ? { ackNum: message.synNum } : {};
    return send(MEDIATOR, { type: Type.PONG, ...ackNum });
  }
  const found = waiting.get(message.ackNum);
  // DRIVER_DIED instead of an answer: the device is not available.
  if (found) found(message.type === Type.DATA ? message : null);
});
socket.on('error', () => {}); // the port is closed: the request times out

async function main() {
  await new Promise((resolve) => socket.connect(port, host, resolve));
  // After this, the mediator reports missing devices at once, so no request waits for a timeout.
  send(MEDIATOR, { type: Type.PING });
  let answers = 0;
  const dummy = await request(DUMMY, { '.amber.dummy_proto.get_status': true });
  if (dummy) {
    answers += 1;
    console.log('the dummy says:', dummy['.amber.dummy_proto.message']);
  }
  const thermometer = await request(THERMOMETER, { '.thermometer.get_temperature': true });
  if (thermometer) {
    answers += 1;
    const { celsius } = thermometer['.thermometer.temperature'];
    console.log('the thermometer says:', celsius ? `${celsius.toFixed(1)} degrees` : 'no sensor');
  }
  send(MEDIATOR, { type: Type.CLIENT_DIED }); // tells all devices that this client leaves
  setImmediate(() => socket.close());
  if (answers === 0) {
    console.error('error: no answer; is a mediator with a dummy or a thermometer running there?');
    process.exitCode = 1;
  }
}

main();
