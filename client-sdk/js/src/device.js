// Devices with a method for each request and stream of their descriptions. IO only through the robot.

import { EXTRAS } from "./extras.js";
import { setExtension } from "./protobuf.js";
import { TYPE, refusal } from "./interface.js";
import { ClosedError, TimedOutError } from "./errors.js";
import { Lease } from "./lease.js";
import { askAboutMotion, changeHalt } from "./motion.js";
import { pause } from "./pause.js";
import { Subscription } from "./subscription.js";

/** How much longer than it was told to a device may take, in ms. */
const MARGIN_MS = 6000;

/**
 * What a call may say; the rest comes from the device and the robot.
 * @typedef {object} CallOptions
 * @property {AbortSignal} [signal]
 * @property {number} [timeoutMs]
 * @property {number} [validMs]
 * @property {(error: import("./errors.js").AmberError) => void} [onRefusal]
 */

/** Base class of all devices. */
export class Device {
  /**
   * @param {import("./robot.js").Robot} robot
   * @param {import("./address.js").Address} address
   * @param {CallOptions} [defaults]
   */
  constructor(robot, address, defaults = {}) {
    this.robot = robot;
    this._address = address;
    this._defaults = defaults;
  }

  /** The device, such as `hokuyo:0`. */
  get address() {
    return this.robot._names.show(this._address);
  }

  /**
   * The same device with other defaults for its calls.
   * @param {CallOptions} defaults
   * @returns {this}
   */
  with(defaults) {
    const made = /** @type {any} */ (this.constructor);
    return new made(this.robot, this._address, { ...this._defaults, ...defaults });
  }

  /**
   * Measures the round-trip time of a PING to the driver, in milliseconds.
   * @param {CallOptions} [options]
   */
  async ping(options) {
    const start = performance.now();
    await this.robot._ask(this._address, this.robot._plain(TYPE.PING), this._limits(options));
    return performance.now() - start;
  }

  /**
   * Takes the lease of the device: nobody else moves it. Throws RefusedError, which names the holder.
   * @param {string} name who drives, for people
   * @param {import("./lease.js").LeaseOptions} [options]
   */
  async lease(name, options) {
    return Lease.take(this, name, options);
  }

  /**
   * Who moves the device, and who has halted it.
   * @param {CallOptions} [options]
   */
  async motionState(options) {
    return askAboutMotion(this, "get_motion_state", true, options);
  }

  /**
   * Stops the device, which refuses motion until `releaseHalt`.
   * @param {string} name who halts it, for people
   * @param {CallOptions} [options]
   */
  async halt(name, options) {
    return changeHalt(this, true, name, options);
  }

  /**
   * Releases a halt.
   * @param {string} name who releases it, for people
   * @param {CallOptions} [options]
   */
  async releaseHalt(name, options) {
    return changeHalt(this, false, name, options);
  }

  /** @internal @param {CallOptions} [options] */
  _limits(options = {}) {
    const { signal, timeoutMs, validMs, onRefusal } = { ...this.robot.defaults, ...this._defaults, ...defined(options) };
    return { signal, timeoutMs, validMs, onRefusal };
  }
}

/**
 * The requests and streams of a device, for programs that show any device.
 * @param {Device} device
 */
export function methodsOf(device) {
  const found = /** @type {import("./interface.js").Interface} */ (device.robot._interfaces.get(device._address.type));
  return found.methods.map((method) => ({
    name: method.name,
    kind: method.kind,
    reads: method.reads,
    moves: method.moves,
    needsArguments: !method.hasNoArguments && !method.isBare,
    /** @param {number} periodMs */
    whole: (periodMs) => method.whole(periodMs),
    /** @param {any} [given] @param {CallOptions} [options] */
    call: (given, options) => CALLS[method.kind](device, method, given, options),
  }));
}

/**
 * The class of a device.
 * @param {import("./interface.js").Interface} device
 */
export function classOf(device) {
  const made = class extends Device {};
  Object.defineProperty(made, "name", { value: device.service.name });
  for (const method of device.methods) {
    const { [method.kind]: call } = CALLS;
    define(made, method.name, /** @this {Device} */ function (...given) {
      const [first, second] = method.hasNoArguments ? [undefined, given[0]] : given;
      return call(this, method, first, second);
    });
  }
  const { stopper } = device;
  if (stopper && !device.methods.some((method) => method.name === "stop")) {
    define(made, "stop", /** @this {Device} */ function (options) {
      const order = stopper.stopOrder();
      return stopper.kind === "tell"
        ? send(this, stopper, order, this._limits(options))
        : request(this, stopper, order, this._limits(options)).then(() => undefined);
    });
  }
  for (const [name, value] of Object.entries(EXTRAS[device.service.name] ?? {})) define(made, name, value);
  return made;
}

/** What the methods do. */
const CALLS = { ask, tell, subscribe: listen, stream: listen };

/**
 * @param {any} made
 * @param {string} name
 * @param {(this: Device, ...given: any[]) => any} value
 */
function define(made, name, value) {
  Object.defineProperty(value, "name", { value: name });
  Object.defineProperty(made.prototype, name, { value, writable: true, configurable: true });
}

/**
 * The request. Texts in it may name all devices that the robot knows.
 * @param {Device} device
 * @param {import("./interface.js").Method} method
 * @param {any} given
 * @param {import("./interface.js").Setting[]} [more]
 */
function orderOf(device, method, given, more) {
  method.codec.names = device.robot._names;
  return method.order(given, more);
}

/**
 * @param {Device} device
 * @param {import("./interface.js").Method} method
 * @param {any} given
 * @param {CallOptions} [options]
 */
async function ask(device, method, given, options) {
  const limits = device._limits(options);
  const { duration } = method;
  const durationMs = duration && given?.[duration[duration.length - 1].name];
  const longer = durationMs === undefined ? method.timeoutMs : durationMs + MARGIN_MS;
  const own = options?.timeoutMs ?? device._defaults.timeoutMs;
  if (longer > 0 && own === undefined) limits.timeoutMs = longer;
  return request(device, method, orderOf(device, method, given), limits);
}

/**
 * @param {Device} device
 * @param {import("./interface.js").Method} method
 * @param {any} order
 * @param {import("./robot.js").Limits} limits
 */
async function request(device, method, order, limits) {
  const { robot, _address: to } = device;
  hold(method, order, limits);
  // A driver that fails has no other way to say so.
  if (!method.refusal && to.type !== 0 && robot._mediatorAnswers) {
    setExtension(order, method.device.wantOutcome, true);
  }
  const answer = await robot._ask(to, robot._encode(method.device, order), limits);
  const refused = method.device.refusedBy(answer);
  if (refused) throw refusal(device.address, refused);
  return method.answer(answer, device.address);
}

/**
 * @param {Device} device
 * @param {import("./interface.js").Method} method
 * @param {any} given
 * @param {CallOptions} [options]
 */
async function tell(device, method, given, options) {
  await send(device, method, orderOf(device, method, given), device._limits(options));
}

/**
 * Sends a command, and asks the driver whether it carries the command out. A driver that does not
 * report is waited for once. A missing report is no error: it or the command may be lost.
 * @param {Device} device
 * @param {import("./interface.js").Method} method
 * @param {any} order
 * @param {import("./robot.js").Limits} limits
 */
async function send(device, method, order, limits) {
  const { robot, _address: to } = device;
  const { signal, onRefusal } = limits;
  signal?.throwIfAborted();
  hold(method, order, limits);
  if (to.type === 0 || !(onRefusal ? robot._mediatorAnswers : await robot._hearsMediator(signal))) {
    return robot._send(to, robot._encode(method.device, order)); // to the original system
  }
  setExtension(order, method.device.wantOutcome, true);
  const { outcomeWaitMs, reports } = robot._commands;
  const timeoutMs = Math.max(limits.timeoutMs, outcomeWaitMs);
  // Once it is sent, only the wait can be aborted.
  const call = robot._begin(to, robot._encode(method.device, order), { timeoutMs });
  await call.sent;
  const report = call.answer
    .then((answer) => {
      reports.set(device.address, true);
      const refused = method.device.refusedBy(answer);
      if (refused) throw refusal(device.address, refused);
    })
    .catch((error) => {
      if (!(error instanceof TimedOutError || error instanceof ClosedError)) throw error;
    });
  const late = onRefusal ?? robot._onRefusal;
  if (onRefusal || reports.get(device.address) === false) {
    report.catch(late);
    return;
  }
  const ending = new AbortController();
  const abort = () => ending.abort(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  try {
    const isDone = report.then(() => true);
    const wait = pause(outcomeWaitMs, ending.signal).then(() => false);
    wait.catch(() => {});
    if (await Promise.race([isDone, wait])) return;
    if (!reports.has(device.address)) reports.set(device.address, false);
    report.catch(late);
  } catch (error) {
    if (signal?.aborted) report.catch(late);
    throw error;
  } finally {
    signal?.removeEventListener("abort", abort);
    ending.abort();
  }
}

/**
 * @param {Device} device
 * @param {import("./interface.js").Method} method
 * @param {any} given
 * @param {{ signal?: AbortSignal, buffer?: number }} [options]
 */
function listen(device, method, given, options) {
  const { robot, _address: address } = device;
  const { device: described } = method;
  let start = robot._plain(TYPE.SUBSCRIBE);
  let stop = robot._plain(TYPE.UNSUBSCRIBE);
  let key = "";
  if (method.kind === "stream") {
    checkPeriod(method, given);
    start = robot._encode(described, orderOf(device, method, given, method.start));
    stop = robot._encode(described, orderOf(device, method, given, method.stop));
    key = String(Math.min(...[...method.flags, ...method.request].map(([it]) => it.number)));
  }
  const read = (/** @type {any} */ message) => method.published(message, device.address);
  const feed = { address, key: `${address.type}:${address.id}/${key}`, start, stop, device: described, read };
  return new Subscription(robot, feed, { signal: device._defaults.signal, ...defined(options) });
}

/**
 * @param {import("./interface.js").Method} method
 * @param {any} given
 */
function checkPeriod({ name, period }, given) {
  if (!period) return;
  const field = /** @type {any} */ (period.at(-1)).localName;
  const value = given?.[field];
  if (!(value >= 1)) throw new RangeError(`${name} needs ${field}, at least 1 ms, not ${value}`);
}

/**
 * A request that moves something holds only for a time.
 * @param {import("./interface.js").Method} method
 * @param {any} order
 * @param {import("./robot.js").Limits} limits
 */
function hold(method, order, { validMs }) {
  if (validMs === undefined || !method.moves || method.isErrand) return;
  if (!Number.isInteger(validMs) || validMs < 1) throw new RangeError("validMs is a whole number of ms, at least 1");
  setExtension(order, method.device.validMs, validMs);
}

/** The options without those that are undefined. @param {any} [options] */
function defined(options) {
  return Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined));
}
