// A mediator for tests, which answers as a test tells it. IO.

import dgram from "node:dgram";
import { create, fromBinary, setExtension, toBinary } from "../src/protobuf.js";
import { decodeFrame, encodeFrame, header } from "../src/frame.js";
import { INTERFACES } from "../src/ours.js";
import { OURS, extensionOf, messageOf } from "../src/schemas.js";

const driverMsg = messageOf(OURS, "amber.DriverMsg");
const driverHdr = messageOf(OURS, "amber.DriverHdr");
const { codec } = INTERFACES[0];
/** After this time a test gives up, in ms. */
export const PATIENCE_MS = 20_000;

/** @typedef {{ device: string, type: number, synNum: number, message: any, get: (name: string) => any }} Seen */

/**
 * A message with base fields, and extensions by their full names.
 * @param {Record<string, any>} base
 * @param {Record<string, any>} [extensions]
 */
export function message(base, extensions = {}) {
  const made = create(driverMsg, /** @type {any} */ ({ type: 1, ...base }));
  for (const [name, value] of Object.entries(extensions)) {
    codec.write(made, [extensionOf(OURS, name)], value);
  }
  return toBinary(driverMsg, made);
}

export class FakeMediator {
  constructor() {
    /** @type {Seen[]} all but what is about the mediator itself */
    this.seen = [];
    /** What to send for a message. @type {(seen: Seen) => (Uint8Array | undefined)[]} */
    this.answer = () => [];
    this.uptimeMs = 1000;
    this.clientId = 3;
    this.isSilent = false;
    /** @type {dgram.RemoteInfo | undefined} */
    this.client = undefined;
    /** @type {Set<() => void>} */
    this.waiting = new Set();
  }

  /** @param {string} [host] @param {number} [port] */
  async start(host = "127.0.0.1", port = 0) {
    this.socket = dgram.createSocket("udp4");
    this.socket.on("message", (datagram, from) => this.take(datagram, from));
    await new Promise((resolve) => this.socket?.bind(port, host, () => resolve(undefined)));
    this.port = this.socket.address().port;
    this.address = `${host}:${this.port}`;
    return this;
  }

  /** @param {Uint8Array} datagram @param {dgram.RemoteInfo} from */
  take(datagram, from) {
    if (this.isSilent) return;
    this.client = from;
    const frame = decodeFrame(datagram);
    if (!frame) throw new Error("not a frame");
    const { deviceType, deviceID } = /** @type {any} */ (fromBinary(driverHdr, frame.header));
    const message = /** @type {any} */ (fromBinary(driverMsg, frame.message));
    const device = `${deviceType}:${deviceID}`;
    const get = (/** @type {string} */ name) => codec.read(message, [extensionOf(OURS, name)]);
    const seen = { device, type: message.type, synNum: message.synNum, message, get };
    if (device === "0:0" && message.type !== 4) this.answerOwn(seen);
    else {
      this.seen.push(seen);
      for (const reply of this.answer(seen)) if (reply) this.send(device, reply);
    }
    for (const check of this.waiting) check();
  }

  /** @param {Seen} seen */
  answerOwn({ type, synNum, get }) {
    if (type === 2) this.send("0:0", message({ type: 3, ackNum: synNum }));
    const request = get("amber.mediator_proto.request");
    if (request?.getStatistics) {
      const statistics = { uptimeMs: this.uptimeMs, clientId: this.clientId, version: "0" };
      this.send("0:0", message({ ackNum: synNum }, { "amber.mediator_proto.reply": { statistics: this.known(statistics) } }));
    } else if (request) {
      for (const reply of this.answer({ device: "0:0", type, synNum, message: undefined, get })) if (reply) this.send("0:0", reply);
    }
  }

  /** The statistics with all that they need. @param {Record<string, any>} given */
  known(given) {
    const type = messageOf(OURS, "amber.mediator_proto.Statistics");
    const all = type.fields.map((field) => [field.localName, given[field.localName] ?? codec.absent(field)]);
    return Object.fromEntries(all.filter(([, value]) => value !== undefined));
  }

  /** @param {string} device @param {Uint8Array} message */
  send(device, message) {
    const [type, id] = device.split(":").map(Number);
    this.socket?.send(encodeFrame(header(type, id), message), this.client?.port, this.client?.address);
  }

  /** @param {string} device */
  isUp(device) {
    const [type, id] = device.split(":").map(Number);
    const event = { kind: "DEVICE_UP", device: { type, id } };
    this.send("0:0", message({ ackNum: 0 }, { "amber.mediator_proto.event": event }));
  }

  /**
   * The first message that fits, from now or before. It is seen once.
   * @param {string} device
   * @param {number} type
   * @returns {Promise<Seen>}
   */
  async wait(device, type) {
    const find = () => this.seen.findIndex((it) => it.device === device && it.type === type);
    await until(() => find() >= 0, `${device} gets a message of type ${type}`, this.waiting);
    return this.seen.splice(find(), 1)[0];
  }

  close() {
    return new Promise((resolve) => this.socket?.close(() => resolve(undefined)));
  }
}

/**
 * Waits for a condition, with patience.
 * @param {() => boolean} condition
 * @param {string} what
 * @param {Set<() => void>} [checks] called when something has changed
 * @param {number} [patienceMs]
 * @returns {Promise<void>}
 */
export function until(condition, what, checks = new Set(), patienceMs = PATIENCE_MS) {
  return new Promise((resolve, reject) => {
    const check = () => {
      if (!condition()) return;
      end();
      resolve();
    };
    const end = () => {
      clearInterval(ticks);
      clearTimeout(timer);
      checks.delete(check);
    };
    const ticks = setInterval(check, 20);
    const timer = setTimeout(() => {
      end();
      reject(new Error(`in vain: ${what}`));
    }, patienceMs);
    checks.add(check);
    check();
  });
}
