// Devices that only tests know, and a driver of them in this process. IO: streams and timers.

import { PassThrough } from "node:stream";
import { Codec, Options } from "../src/convert.js";
import { descriptionOf } from "../src/driver/messages.js";
import { FrameReader, headerTo, readHeader } from "../src/driver/frames.js";
import { Pipe } from "../src/driver/pipe.js";
import { readFiles } from "../src/driver/proto.js";
import { encodeFrame } from "../src/frame.js";
import { interfacesOf } from "../src/interface.js";
import { create, fromBinary, toBinary } from "../src/protobuf.js";
import { messageOf, schemasOf } from "../src/schemas.js";
import { until } from "./fake.js";

/** A motor, a request with a text, and streams of both kinds. */
export const CRANE = `syntax = "proto2";
package crane;
import "drivermsg.proto";
import "interface.proto";

extend amber.DriverMsg {
  optional Lift lift = 130;
  optional bool get_height = 131;
  optional double height = 132;
  optional string write = 133;
  optional string written = 134;
  optional Watch watch = 135;
  optional string why_not = 136;
}

message Lift {
  required int32 speed = 1 [(amber.unit) = "mm/s"];
}

message Watch {
  optional uint32 period = 1 [(amber.unit) = "ms"];
  optional bool on = 2;
}

// A crane.
service Crane {
  option (amber.device) = { type: 230 name: "crane" };

  // Lifts the hook.
  rpc Lift(amber.DriverMsg) returns (amber.Nothing) {
    option (amber.tell) = { request: "lift" };
    option (amber.moves) = { stop: { set: { field: "lift.speed" value: "0" } } };
  }
  // The height.
  rpc Height(amber.DriverMsg) returns (amber.DriverMsg) {
    option (amber.ask) = { flag: "get_height" answer: "height" reads: true };
  }
  // Writes on the display.
  rpc Write(amber.DriverMsg) returns (amber.DriverMsg) {
    option (amber.ask) = { request: "write" answer: "written" refusal: "why_not" };
  }
  // The height, ten times a second.
  rpc Heights(amber.DriverMsg) returns (stream amber.DriverMsg) {
    option (amber.stream) = { data: "height" };
  }
  // What is on the display.
  rpc Texts(amber.DriverMsg) returns (stream amber.DriverMsg) {
    option (amber.stream) = {
      data: "written" request: "watch" period: "watch.period"
      start: { field: "watch.on" value: "true" }
      stop: { field: "watch.on" value: "false" }
    };
  }
}
`;

/** The device that a file describes, and its files. @param {string} text */
export function described(text) {
  const files = readFiles("crane.proto", (name) => (name === "crane.proto" ? text : undefined));
  const [device] = interfacesOf({ ...schemasOf(files), names: ["crane.proto"] });
  return { device, files };
}

/** @typedef {{ clients: number[], message: any, get: (name: string) => any }} Written */

/** A driver in this process, between two streams. */
export class Bench {
  /**
   * @param {any} driver
   * @param {Record<string, string>} [environment]
   * @param {string} [text] the description
   */
  constructor(driver, environment = { AMBER_DEVICE: "230:0" }, text = CRANE) {
    const { device, files } = described(text);
    this.device = device;
    this.codec = new Codec(new Options(device.schemas));
    this.driverMsg = messageOf(device.schemas, "amber.DriverMsg");
    this.input = new PassThrough();
    this.output = new PassThrough({ highWaterMark: 1 << 16 });
    /** @type {string[]} */
    this.logged = [];
    /** @type {Written[]} */
    this.written = [];
    /** @type {Set<() => void>} */
    this.waiting = new Set();
    const log = (/** @type {unknown[]} */ ...words) => {
      this.logged.push(words.map((it) => (it instanceof Error ? it.stack : String(it))).join(" "));
    };
    this.pipe = new Pipe({
      device, driver, input: this.input, output: this.output, environment, log, description: descriptionOf(files),
    });
    this.port = this.pipe.port;
    const frames = new FrameReader();
    this.output.on("data", (part) => {
      for (const { header, message } of frames.feed(part)) this._take(readHeader(header).clients, message);
      for (const check of this.waiting) check();
    });
    this.ended = this.pipe.run();
  }

  /** @param {number[]} clients @param {Uint8Array} bytes */
  _take(clients, bytes) {
    const message = fromBinary(this.driverMsg, bytes);
    this.written.push({ clients, message, get: (name) => this.codec.read(message, [this.extension(name)]) });
  }

  /** @param {string} name @returns {any} */
  extension(name) {
    for (const prefix of ["crane", "amber.motion_proto", "amber.mediator_proto"]) {
      const found = this.device.schemas.registry.getExtension(`${prefix}.${name}`);
      if (found) return found;
    }
    throw new Error(`there is no ${name}`);
  }

  /** A message of a client, as bytes. @param {Record<string, any>} base @param {Record<string, any>} [extensions] */
  bytes(base, extensions = {}) {
    const message = create(this.driverMsg, { type: 1, ...base });
    for (const [name, value] of Object.entries(extensions)) this.codec.write(message, [this.extension(name)], value);
    return toBinary(this.driverMsg, message);
  }

  /** @param {number | number[]} clients @param {Record<string, any>} base @param {Record<string, any>} [extensions] */
  send(clients, base, extensions) {
    this.sendBytes(clients, this.bytes(base, extensions));
  }

  /** @param {number | number[]} clients @param {Uint8Array} bytes */
  sendBytes(clients, bytes) {
    this.input.write(encodeFrame(headerTo([clients].flat()), bytes));
  }

  /** The answer to a request. @param {number} number @returns {Promise<Written>} */
  async answer(number) {
    return this.find((it) => it.message.ackNum === number && Object.hasOwn(it.message, "ackNum"), `an answer to ${number}`);
  }

  /** The first frame that fits, from now or before. @param {(written: Written) => boolean} fits @param {string} what */
  async find(fits, what) {
    await until(() => this.written.some(fits), `${what}; ${this.logged.join("\n")}`, this.waiting);
    return /** @type {Written} */ (this.written.find(fits));
  }

  /** @param {number} client @param {Record<string, any>} lease @param {number} synNum */
  async lease(client, lease, synNum) {
    this.send(client, { synNum }, { lease_request: lease });
    return (await this.answer(synNum)).get("motion_state");
  }

  /** What the mediator has heard about who drives. */
  get news() {
    return this.written.map((it) => it.get("motion_report")?.text).filter(Boolean);
  }

  async end() {
    this.input.end();
    return this.ended;
  }
}

/** A driver of the crane that notes what it is asked. */
export class Crane {
  constructor() {
    /** @type {number[]} */
    this.speeds = [];
    /** @type {string[]} */
    this.events = [];
    this.periodMs = 20;
    this.text = "";
  }

  /** @param {any} port */
  start(port) {
    this.port = port;
    this.events.push("start");
  }

  /** @param {{ speed: number }} request */
  lift({ speed }) {
    this.speeds.push(speed);
  }

  height() {
    return 1.5;
  }

  heights() {
    return 2.5;
  }

  /** @param {string} text @param {{ client: number }} caller */
  async write(text, { client }) {
    await undefined;
    this.events.push(`${client} writes`);
    this.text = text;
    return text;
  }

  texts() {
    return this.text;
  }

  /** @param {number} client */
  clientGone(client) {
    this.events.push(`${client} is gone`);
  }

  stop() {
    this.events.push("stop");
  }
}
