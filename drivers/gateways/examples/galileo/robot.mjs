// A client for robots that speak Galileo (UDP), with nothing but Node: one object per topic.
//
//     const robot = new Robot("udp://127.0.0.1:3547/cmd_vel?token=");
//     robot.onOpen = () => robot.send(JSON.stringify({ linear: { x: 0.2 }, angular: { z: 0 } }));
//     robot.onMessage = (bytes) => console.log(bytes.toString());
//     robot.start();

import { createSocket } from "node:dgram";

const CONNECT = 0x01;
const SESSION = 0x02;
const TEXT = 0x01;
const BINARY = 0x02;
const CLOSE = 0x08;
const PING = 0x09;
const PONG = 0x0a;

/** Bytes of a message in one frame. */
const CHUNK = 512;
/** How long the robot may take to accept, in ms. */
const CONNECT_MS = 5000;
/** The time between two PINGs, in ms. */
const PING_MS = 100;
/** A robot that is silent for this time is lost, in ms. */
const SILENCE_MS = 10_000;

export class Robot {
  onOpen = () => {};
  onMessage = () => {};
  onClose = () => {};

  #url;
  #socket = createSocket("udp4");
  #port;
  #host;
  /** Undefined until the robot has accepted. */
  #id;
  #index = 0;
  #heard = 0;
  #timer;

  constructor(url) {
    this.#url = url;
    const [, host, port] = /^udp:\/\/([^:/]+):(\d+)/i.exec(url);
    [this.#host, this.#port] = [host, Number(port)];
  }

  /** Connects. The first datagram that arrives is the answer. */
  start() {
    this.#timer = setTimeout(() => this.#end(), CONNECT_MS);
    this.#socket.once("message", (bytes) => this.#answered(bytes));
    this.#socket.on("error", () => this.#end());
    this.#write(Buffer.concat([Buffer.of(CONNECT), Buffer.from(this.#url), Buffer.of(0)]));
  }

  /** Sends a text in one frame. */
  send(text) {
    this.#frame(TEXT, Buffer.from(text));
  }

  /** Sends bytes in frames of at most 512 bytes, each with its number. */
  sendBytes(bytes) {
    let at = 0;
    do {
      const index = Buffer.alloc(4);
      index.writeUInt32LE(this.#index++ >>> 0);
      this.#frame(BINARY, Buffer.concat([index, bytes.subarray(at, at + CHUNK)]));
      at += CHUNK;
    } while (at < bytes.length);
  }

  /** Ends the session. */
  stop() {
    this.#frame(CLOSE);
    this.#end();
  }

  #answered(bytes) {
    clearTimeout(this.#timer);
    let answer;
    try {
      // Whatever the first six bytes are. Nothing may follow the JSON.
      answer = JSON.parse(bytes.subarray(6).toString());
    } catch {
      return this.#end();
    }
    if (!answer.status) {
      return this.#end();
    }
    this.#id = Buffer.from(answer.client_id);
    this.#heard = Date.now();
    this.#socket.on("message", (frame) => this.#received(frame));
    this.#timer = setInterval(() => this.#beat(), PING_MS);
    this.onOpen();
  }

  #beat() {
    if (Date.now() - this.#heard > SILENCE_MS) {
      return this.stop();
    }
    this.#frame(PING);
  }

  #received(bytes) {
    if (bytes.length < 6 || bytes[0] !== SESSION || !bytes.subarray(1, 5).equals(this.#id)) {
      return;
    }
    this.#heard = Date.now();
    const body = bytes.subarray(6);
    switch (bytes[5]) {
      case TEXT:
      case BINARY:
        // Of a BINARY frame, this includes the number.
        return this.onMessage(body, bytes[5] === BINARY);
      case PING:
        return this.#frame(PONG);
      case CLOSE:
        return this.#end();
      default:
      // PONG and CONTINUATION only show that the robot is there.
    }
  }

  #frame(operation, body = Buffer.alloc(0)) {
    if (this.#id) {
      this.#write(Buffer.concat([Buffer.of(SESSION), this.#id, Buffer.of(operation), body]));
    }
  }

  #write(bytes) {
    this.#socket?.send(bytes, this.#port, this.#host);
  }

  #end() {
    clearTimeout(this.#timer);
    if (this.#socket) {
      const socket = this.#socket;
      this.#socket = undefined;
      // After what is still being sent.
      setImmediate(() => socket.close());
      this.onClose();
    }
  }
}
