'use strict';
// Frames and messages for drivers and clients of Amber on Node.js.
//
// A frame is   u16 length | DriverHdr | u16 length | DriverMsg   (big-endian lengths)
// on stdin, on stdout and in a datagram alike.

const fs = require('fs');
const path = require('path');
const protobuf = require('protobufjs');

const MAX_PART = 32767; // bytes; older programs read the lengths as signed numbers
const PROTO = path.join(__dirname, 'proto');

/** The parts of HOST, HOST:PORT or [IPV6]:PORT; without it, of AMBER_MEDIATOR, or of this computer. */
function address(text, port) {
  text = text || process.env.AMBER_MEDIATOR || '127.0.0.1';
  const parts = /^(?:\[(?<v6>.*)\]|(?<name>[^:]*))(?::(?<port>\d+))?$/.exec(text);
  const { v6, name, port: given = '26233' } = parts ? parts.groups : { name: text };
  return { host: v6 || name, port: Number(port || given) };
}

/** Loads .proto files. They and their imports are in the folder `proto`, or have a path. */
function load(...files) {
  const root = new protobuf.Root();
  root.resolvePath = (from, to) => {
    if (to.startsWith('google/protobuf/')) return require.resolve(`protobufjs/${to}`);
    const beside = path.resolve(path.dirname(from || ''), to);
    return fs.existsSync(beside) ? beside : path.join(PROTO, to);
  };
  root.loadSync(['drivermsg.proto', ...files], { keepCase: true });
  root.resolveAll();
  return {
    DriverHdr: root.lookupType('amber.DriverHdr'),
    DriverMsg: root.lookupType('amber.DriverMsg'),
    Type: root.lookupEnum('amber.DriverMsg.MsgType').values,
  };
}

function encodeFrame(header, message) {
  const parts = [];
  for (const part of [header, message]) {
    if (part.length > MAX_PART) throw new RangeError(`${part.length} bytes are too long for a frame`);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(part.length);
    parts.push(length, part);
  }
  return Buffer.concat(parts);
}

/** Splits a stream, received in pieces of any size, into frames. */
class FrameReader {
  constructor() {
    this.buffer = Buffer.alloc(0);
  }

  *feed(piece) {
    this.buffer = Buffer.concat([this.buffer, piece]);
    for (;;) {
      const frame = splitFrame(this.buffer);
      if (frame === null) return;
      this.buffer = this.buffer.subarray(frame.end);
      yield frame;
    }
  }
}

/** The frame at the start of some bytes; null if it is incomplete. */
function splitFrame(bytes) {
  const parts = [];
  let end = 0;
  for (let i = 0; i < 2; i++) {
    if (bytes.length < end + 2) return null;
    const length = bytes.readUInt16BE(end);
    end += 2 + length;
    if (bytes.length < end) return null;
    parts.push(bytes.subarray(end - length, end));
  }
  return { header: parts[0], message: parts[1], end };
}

/** Writes a line to stderr, which goes to the mediator's log. */
function log(...words) {
  console.error(...words);
}

/**
 * Runs a driver on stdin and stdout.
 *
 * `device` may have `periodMs`, `request(message, client)` that returns the fields of the
 * answer or nothing, `publish()` that returns the fields for subscribers, `clientGone(client)`, `stop()`.
 * An extension is a field with its full name, as in `{ '.amber.dummy_proto.message': 'hello' }`.
 */
function serve(device, { DriverHdr, DriverMsg, Type }) {
  console.log = log; // stdout is the wire
  const subscribers = new Set();

  function send(clientIDs, fields) {
    try {
      const header = DriverHdr.encode({ clientIDs }).finish();
      process.stdout.write(encodeFrame(header, DriverMsg.encode(fields).finish()));
    } catch (error) {
      log('not sent:', error.message);
    }
  }

  function handle(headerBytes, messageBytes) {
    let header, message;
    try {
      header = DriverHdr.decode(headerBytes);
      message = DriverMsg.decode(messageBytes);
    } catch (error) {
      return log('ignored a message that is not a DriverMsg:', error.message);
    }
    const clients = header.clientIDs;
    const numbered = Object.hasOwn(message, 'synNum');
    const ackNum = numbered ? { ackNum: message.synNum } : {};
    switch (message.type) {
      case Type.PING:
        return send(clients, { type: Type.PONG, ...ackNum });
      case Type.DATA: {
        let answer;
        try {
          answer = device.request && device.request(message, clients[0]);
        } catch (error) {
          log(error.stack); // an error in one request must not end the driver
        }
        if (answer && numbered) send(clients, { ...answer, type: Type.DATA, ...ackNum });
        return;
      }
      case Type.SUBSCRIBE:
        return clients.forEach((client) => subscribers.add(client));
      case Type.UNSUBSCRIBE:
        return clients.forEach((client) => subscribers.delete(client));
      case Type.CLIENT_DIED:
        for (const client of clients) {
          subscribers.delete(client);
          if (device.clientGone) device.clientGone(client);
        }
    }
  }

  function end() {
    if (device.stop) device.stop();
    process.exit(0);
  }

  if (device.periodMs) {
    setInterval(() => {
      if (subscribers.size === 0) return;
      const fields = device.publish();
      // An ackNum of 0 marks published data.
      if (fields) send([...subscribers], { ...fields, type: Type.DATA, ackNum: 0 });
    }, device.periodMs);
  }
  const reader = new FrameReader();
  process.stdin.on('data', (piece) => {
    for (const frame of reader.feed(piece)) handle(frame.header, frame.message);
  });
  process.stdin.on('end', end); // the end of stdin is the end of the driver
  process.stdout.on('error', end); // the mediator is gone
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
}

module.exports = { address, encodeFrame, load, log, serve, splitFrame };
