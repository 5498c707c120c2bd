// A driver at its pipe: frames in, calls of its methods, frames out. IO: streams and timers.
//
// One method of the driver runs at a time; while it waits for something, PINGs, leases and halts are answered
// all the same, and requests wait in a queue. A stop goes before all requests that wait.

import { RefusedError } from "../errors.js";
import { TYPE } from "../interface.js";
import { pause } from "../pause.js";
import { Joiner } from "../pieces.js";
import { Control, MOTION, NotAllowed, readHalt } from "./control.js";
import { FrameReader, headerTo, readHeader } from "./frames.js";
import {
  aboutPieces,
  descriptionMessage,
  healthMessage,
  isAboutPieces,
  pong,
  readMessage,
  reportMessage,
  stateMessage,
  termsOf,
} from "./messages.js";
import { streamOf } from "./paced.js";
import { Queue } from "./queue.js";
import { Handled, Refused, failure, outcome } from "./requests.js";
import { Writer } from "./writer.js";

/** @typedef {import("../convert.js").Message} Message */
/** @typedef {import("../interface.js").Interface} Interface */

/** The maximum size of a description that a mediator keeps. */
const DESCRIPTION_BYTES = 16_000;
/** The longest text about the health of a device, in characters. */
const TROUBLE = 200;
/** How long the end waits for a method that runs. */
const PATIENCE_MS = 500;
/** How often the rules look whether more requests have come, before a lease ends. */
const LOOKS = 20;
/** The longest time that a timer can have. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * @typedef {object} Given
 * @property {Interface} device
 * @property {any} driver
 * @property {import("node:stream").Readable} input
 * @property {import("node:stream").Writable} output
 * @property {Record<string, string | undefined>} environment
 * @property {(...words: unknown[]) => void} log
 * @property {Uint8Array} [description] of a device of one's own
 */

export class Pipe {
  /** @param {Given} given */
  constructor({ device, driver, input, output, environment, log, description }) {
    this._device = device;
    this._driver = driver;
    this._input = input;
    this._output = output;
    this._writer = new Writer(output, log);
    this._log = log;
    this._description = description;
    this._name = environment.AMBER_DEVICE ?? "DEVICE";
    /** Whether the mediator understands reports; only one of this project sets this variable. */
    this._isUnderAmber = environment.AMBER_DEVICE !== undefined;
    this._handled = device.methods.map((method) => new Handled(method));
    /** @type {Set<number>} */
    this._subscribers = new Set();
    /** For each stream by a request and each of its clients.
     * @type {Map<string, { handled: Handled, client: number, timer?: NodeJS.Timeout }>} */
    this._streams = new Map();
    this._queue = new Queue();
    this._isWorking = false;
    /** The calls that are being made. @type {Promise<void> | undefined} */
    this._running = undefined;
    this._isRunning = false;
    /** What has arrived before the driver has started, and when. @type {{ part: Uint8Array, at: number }[] | undefined} */
    this._early = [];
    /** When the present request has arrived. */
    this._arrivedAt = 0;
    /** @type {NodeJS.Timeout | undefined} */
    this._publishing = undefined;
    /** @type {string | undefined} */
    this._trouble = undefined;
    this._congested = 0;
    this._frames = new FrameReader();
    this._arrivals = 0;
    // Lease, halt and expiry, if the device moves.
    this._control = device.methods.some(({ moves }) => moves)
      ? new Control(readHalt(environment.AMBER_HALTED ?? ""))
      : undefined;
    /** The request that stops all motion, if there is one. */
    this._stopOrder = device.stopper?.stopOrder();
    /** @type {NodeJS.Timeout | undefined} */
    this._motionTimer = undefined;
    // Messages that are longer than a frame.
    this._joiner = new Joiner({ givesReceipts: true });
    /** @type {(code: number) => void} */
    this._finish = () => {};
    /** Resolves at the end, to the exit code. @type {Promise<number>} */
    this._ended = new Promise((resolve) => (this._finish = resolve));
    this._isEnding = false;
    /** @type {Record<string, any> | undefined} */
    this._port = undefined;
    this._checkMethods();
  }

  /** Runs the driver until its input ends, or `end` is called. Resolves to the exit code. */
  async run() {
    let code = 1;
    let hasStarted = false;
    this._output.on("error", () => this.end());
    this._input.on("data", (part) => this._read(part));
    this._input.on("error", (error) => this.end(error));
    this._input.on("end", () => this.end());
    this._input.on("close", () => this.end());
    try {
      if (!this._isEnding) {
        hasStarted = true;
        await Promise.race([this._driver.start?.(this.port), this._ended]);
        this._begin();
      }
      code = await this._ended;
    } catch (error) {
      this._log(error);
    }
    this._isEnding = true;
    this._stopTimers();
    await Promise.race([this._running, pause(PATIENCE_MS)]);
    try {
      if (hasStarted) await this._driver.stop?.();
    } catch (error) {
      this._log(error);
      code = 1;
    }
    this._isRunning = false;
    await this._writer.flush();
    return code;
  }

  /** The driver has started. */
  _begin() {
    this._isRunning = true;
    if (this._description) this._describe(this._description);
    if (this._trouble !== undefined) this._tellHealth();
    const early = this._early ?? [];
    this._early = undefined;
    for (const { part, at } of early) this._read(part, at);
  }

  /** Ends the driver. @param {unknown} [error] why, if something has failed */
  end(error) {
    if (error !== undefined) this._log(error);
    if (this._isEnding) return;
    this._isEnding = true;
    // Nothing can receive the answers to waiting requests any more.
    this._queue.clear();
    this._finish(error === undefined ? 0 : 1);
  }

  /** What the driver may do by itself. @type {Record<string, any>} */
  get port() {
    if (this._port) return this._port;
    const pipe = this;
    /** @type {Record<string, any>} */
    const port = {
      get subscribers() {
        return [...pipe._subscribers].sort((a, b) => a - b);
      },
      trouble: (/** @type {string} */ why) => {
        const words = String(why).split(/\s+/).filter(Boolean).join(" ").slice(0, TROUBLE);
        pipe._sayHealth(words || "the device does not work");
      },
      recovered: () => pipe._sayHealth(undefined),
    };
    for (const handled of this._handled.filter(({ method }) => method.isStream)) {
      const { name } = handled.method;
      port[`publish${name[0].toUpperCase()}${name.slice(1)}`] = (/** @type {any} */ value) => this._publishNow(handled, value);
    }
    this._port = port;
    return port;
  }

  _checkMethods() {
    const { service } = this._device;
    const missing = this._handled.filter(({ isNeeded, name }) => isNeeded && typeof this._driver[name] !== "function");
    if (missing.length > 0) {
      const names = missing.map(({ name }) => name).join(", ");
      throw new TypeError(`the driver of ${service.name} needs the method${missing.length > 1 ? "s" : ""} ${names}`);
    }
    const { periodMs } = this._driver;
    if (periodMs !== undefined && !(Number.isFinite(periodMs) && periodMs >= 1)) {
      throw new RangeError(`periodMs is a number of ms, at least 1, not ${periodMs}`);
    }
  }

  // Reading

  /** @param {Uint8Array} part @param {number} [at] when it has arrived */
  _read(part, at = performance.now()) {
    if (this._isEnding) return;
    if (this._early) {
      this._early.push({ part, at });
      return;
    }
    this._arrivals += 1;
    this._arrivedAt = at;
    try {
      for (const { header, message } of this._frames.feed(part)) this._handleOne(header, message);
    } catch (error) {
      this.end(error); // nothing that follows can be read
    }
    if (!this._writer.isBlocked) return;
    this._input.pause();
    this._writer.drained().then(() => this._input.resume());
  }

  /** A message must not end the driver for other clients. @param {Uint8Array} header @param {Uint8Array} message */
  _handleOne(header, message) {
    try {
      this._handle(header, message);
    } catch (error) {
      this._log("ignored an invalid message:", error);
    }
  }

  /** @param {Uint8Array} header @param {Uint8Array} bytes */
  _handle(header, bytes) {
    let read;
    try {
      read = readHeader(header);
    } catch {
      this._log("ignored a frame with an invalid header");
      return;
    }
    const { clients } = read;
    const message = readMessage(bytes);
    if (!message) {
      this._log("ignored an invalid message, or one of an unknown type");
      return;
    }
    switch (message.type) {
      case TYPE.PING:
        this._writer.write(header, pong(message));
        break;
      case TYPE.DATA:
        if (clients.length === 0) break; // the answer of another device
        if (isAboutPieces(message)) this._handlePieces(header, clients, message);
        else {
          this._writer.note(clients, message);
          this._handleRequest(header, clients, message);
        }
        break;
      case TYPE.SUBSCRIBE:
        this._writer.note(clients, message);
        this._enqueue({ call: () => this._subscribe(clients) });
        break;
      case TYPE.UNSUBSCRIBE:
        this._enqueue({ call: () => this._unsubscribe(clients) });
        break;
      case TYPE.CLIENT_DIED:
        this._handleGone(clients);
        break;
      default:
    }
  }

  /** @param {Uint8Array} header @param {number[]} clients @param {Message} message */
  _handlePieces(header, clients, message) {
    const [client] = clients;
    if (Object.hasOwn(message, "missing")) {
      this._writer.missing(client, message.missing);
    }
    if (!Object.hasOwn(message, "piece")) return;
    const now = performance.now();
    const stream = Object.hasOwn(message.piece, "stream") ? message.piece.stream : undefined;
    const { message: number, index, count, data } = message.piece;
    const joined = this._joiner.piece(now, String(client), { message: number, index, count, data, stream });
    this._joiner.timeout(now);
    for (const { sender, message: of, upto } of this._joiner.receipts.splice(0)) {
      this._writer.write(headerTo([Number(sender)]), aboutPieces("receipt", { message: of, upto }));
    }
    for (const { sender, message: of, index: all } of this._joiner.calls.splice(0)) {
      this._writer.write(headerTo([Number(sender)]), aboutPieces("missing", { message: of, index: all }));
    }
    this._joiner.lost = [];
    if (!joined) return;
    const whole = readMessage(joined);
    if (whole && isAboutPieces(whole)) this._log("ignored a piece in pieces");
    else this._handle(header, joined);
  }

  /** @param {Uint8Array} header @param {number[]} clients @param {Message} message */
  _handleRequest(header, clients, message) {
    const [client] = clients;
    const request = { header, clients, client, message };
    if (!this._control) {
      this._enqueue({ call: () => this._answer(request), mayDrop: true });
      return;
    }
    let terms;
    try {
      terms = termsOf(message);
    } catch (error) {
      this._log(`ignored an invalid request: ${/** @type {Error} */ (error).message}`);
      return;
    }
    const now = performance.now();
    const state = this._control.request(now, client, terms);
    if (state) {
      this._settle();
      if (Object.hasOwn(message, "synNum")) this._writer.write(header, stateMessage(message.synNum, state));
      return;
    }
    const { forClient, validMs } = terms;
    const validUntil = validMs === undefined ? undefined : this._arrivedAt + validMs;
    const motion = this._motionOf(message);
    const call = async () => {
      try {
        this._control?.command(performance.now(), motion, client, { forClient, validUntil });
      } catch (error) {
        if (!(error instanceof NotAllowed)) throw error;
        this._refuse(request, error.message);
        this._settle();
        return;
      }
      this._settle();
      await this._answer(request);
    };
    this._enqueue({ call, mayDrop: true, movedBy: motion > MOTION.STOPS ? client : undefined });
  }

  /** @param {number[]} clients */
  _handleGone(clients) {
    for (const client of clients) {
      this._writer.forget(client);
      this._joiner.forget(String(client));
      this._control?.clientGone(performance.now(), client, !this._driver.handlesGoneClients);
    }
    this._settle();
    this._enqueue({
      call: async () => {
        this._unsubscribe(clients);
        for (const [key, { client }] of this._streams) if (clients.includes(client)) this._endStream(key);
        for (const client of clients) await this._driver.clientGone?.(client);
      },
    });
  }

  // Calls of the driver, one after the other

  /** @param {import("./queue.js").Work} work */
  _enqueue(work) {
    if (this._isEnding) return;
    if (this._queue.push(work)) {
      const { dropped } = this._queue;
      // The first one, and then ever more rarely.
      if ((dropped & (dropped - 1)) === 0) this._log(`too slow: ${dropped} requests were dropped so far`);
    }
    this._work();
  }

  _work() {
    if (this._isWorking) return;
    this._isWorking = true;
    this._running = this._workThrough();
  }

  async _workThrough() {
    for (;;) {
      if (this._control && this._control.nextTimeout <= performance.now()) await this._motionTimeout();
      // A stop does not wait for a mediator that does not read.
      await this._writer.drained(() => this._queue.isUrgent);
      const work = this._isEnding ? undefined : this._queue.shift();
      if (!work) {
        this._isWorking = false;
        return;
      }
      try {
        await work.call();
      } catch (error) {
        // An error in one request must not end the driver for other clients.
        this._log(error);
      }
    }
  }

  /**
   * A request of a client.
   * @typedef {{ header: Uint8Array, clients: number[], client: number, message: Message }} Request
   */

  /** @param {Request} request */
  async _answer({ header, clients, client, message }) {
    const answer = await this._call(message, client);
    if (answer) this._reply(header, clients, message, answer);
  }

  /**
   * Calls the methods of a request. Resolves to the answer.
   * @param {Message} message
   * @param {number} client
   * @returns {Promise<Message | undefined>}
   */
  async _call(message, client) {
    /** @type {Handled[]} */
    let fitting = [];
    /** @type {Message | undefined} */
    let answer;
    /** @type {RefusedError | undefined} */
    let refused;
    try {
      fitting = this._handled.filter((it) => it.fits(message));
      if (fitting.length === 0) refused = new Refused("not a request for this device");
    } catch (error) {
      refused = new Refused(`the request is invalid: ${/** @type {Error} */ (error).message}`);
    }
    if (refused) this._log(`ignored a request: ${refused.words}; fields ${fieldsOf(message)}`);
    for (const handled of fitting) {
      let reply;
      try {
        reply = await this._callOne(handled, message, client);
      } catch (error) {
        if (!(error instanceof RefusedError)) this._log(error);
        refused = error instanceof RefusedError ? error : failure(error, this._name);
        reply = handled.refuse(refused);
        if (error instanceof RefusedError && !reply) this._log(`refused ${handled.name}: ${error.words}`);
      }
      answer ??= reply;
    }
    return answer ?? outcome(this._device, message, refused);
  }

  /** @param {Handled} handled @param {Message} message @param {number} client */
  async _callOne(handled, message, client) {
    const given = handled.read(message);
    if (handled.method.kind === "stream") {
      this._changeStream(handled, message, client, given);
      return undefined;
    }
    const value = await this._driver[handled.name](...given, { client });
    return handled.method.kind === "ask" ? handled.reply(value) : undefined;
  }

  /** @param {Handled} handled @param {Message} message @param {number} client @param {any[]} given */
  _changeStream(handled, message, client, given) {
    const key = `${handled.name}/${client}`;
    this._endStream(key);
    if (handled.isStop(message)) return;
    const periodMs = handled.periodMs(message);
    const call = async () => {
      const value = await this._driver[handled.name](...given, { client });
      if (value !== undefined && value !== null) this._publish([client], handled.reply(value));
    };
    const isOpen = () => this._streams.has(key);
    this._streams.set(key, { handled, client, timer: periodMs ? this._repeat(periodMs, call, isOpen) : undefined });
  }

  /** @param {string} key */
  _endStream(key) {
    clearInterval(this._streams.get(key)?.timer);
    this._streams.delete(key);
  }

  /**
   * Calls the driver again and again. If it is too slow, some calls are left out.
   * @param {number} periodMs
   * @param {() => unknown} call
   * @param {() => boolean} isWanted
   */
  _repeat(periodMs, call, isWanted) {
    let isWaiting = false;
    const once = async () => {
      isWaiting = false;
      if (isWanted()) await call();
    };
    return setInterval(() => {
      if (isWaiting || this._isEnding) return;
      isWaiting = true;
      this._enqueue({ call: once });
    }, Math.min(periodMs, LONGEST_MS));
  }

  /** @param {number[]} clients */
  _subscribe(clients) {
    for (const client of clients) this._subscribers.add(client);
    const { periodMs } = this._driver;
    if (periodMs === undefined || this._subscribers.size === 0 || this._isEnding) return;
    this._publishing ??= this._repeat(periodMs, () => this._publishAll(), () => this._subscribers.size > 0);
  }

  /** @param {number[]} clients */
  _unsubscribe(clients) {
    for (const client of clients) this._subscribers.delete(client);
    if (this._subscribers.size > 0) return;
    clearInterval(this._publishing);
    this._publishing = undefined;
  }

  /** Calls the methods of all streams by SUBSCRIBE. */
  async _publishAll() {
    for (const handled of this._handled) {
      const { method: { kind }, name } = handled;
      if (kind !== "subscribe" || typeof this._driver[name] !== "function") continue;
      const value = await this._driver[name]();
      if (value !== undefined && value !== null) this._publishNow(handled, value);
    }
  }

  // Lease, halt and expiry

  /** What a request does to things that move: a value of MOTION. @param {Message} message */
  _motionOf(message) {
    try {
      const all = this._handled.filter((it) => it.fits(message)).map((it) => it.motion(message));
      return Math.max(MOTION.NOTHING, ...all);
    } catch {
      return MOTION.NOTHING; // an invalid request does nothing
    }
  }

  /** @param {Request} request @param {string} why */
  _refuse({ header, clients, message }, why) {
    const refused = new Refused(why);
    const moving = this._handled.filter((it) => it.method.moves && it.fits(message));
    const refusals = moving.flatMap((it) => it.refuse(refused) ?? []);
    const answer = refusals[0] ?? outcome(this._device, message, refused);
    if (answer) this._reply(header, clients, message, answer);
  }

  /** Carries out what lease, halt and expiry have decided. */
  _settle() {
    const control = this._control;
    if (!control) return;
    const stop = control.pollStop();
    if (stop) {
      this._queue.outdate(stop.outdated);
      const { _stopOrder: order } = this;
      if (stop.isNeeded && order && !this._isEnding) {
        this._queue.pushFirst({ call: () => this._call(order, stop.client), isUrgent: true });
        this._writer.wake();
        this._work();
      }
    }
    const now = performance.now();
    for (let report = control.pollReport(now); report; report = control.pollReport(now)) {
      if (this._isUnderAmber) this._writer.write(headerTo([]), reportMessage(report));
    }
    clearTimeout(this._motionTimer);
    if (this._isEnding || control.nextTimeout === Infinity) return;
    const wait = Math.max(0, control.nextTimeout - now);
    this._motionTimer = setTimeout(() => this._motionTimeout(), Math.min(wait, LONGEST_MS));
  }

  async _motionTimeout() {
    // A request that waits in the pipe may keep a lease that ends now.
    for (let i = 0; i < LOOKS; i++) {
      const { _arrivals: before } = this;
      await new Promise((resolve) => setImmediate(resolve));
      if (this._arrivals === before) break;
    }
    this._control?.timeout(performance.now());
    this._settle();
  }

  // Writing

  /** @param {Handled} handled @param {any} value */
  _publishNow(handled, value) {
    const { kind } = handled.method;
    const listeners = [...this._streams.values()].filter((it) => it.handled === handled && !it.timer);
    const clients = kind === "subscribe" ? [...this._subscribers] : listeners.map(({ client }) => client);
    this._publish(clients, handled.reply(value));
  }

  /** @param {number[]} clients @param {Message} message */
  _publish(clients, message) {
    if (clients.length === 0 || !this._isRunning) return;
    if (this._writer.isCongested) {
      this._congested += 1;
      const isPower = (this._congested & (this._congested - 1)) === 0;
      if (isPower) this._log(`the mediator does not read: ${this._congested} publications were dropped so far`);
      return;
    }
    message.type = TYPE.DATA;
    message.ackNum = 0; // marks published data
    const sorted = [...clients].sort((a, b) => a - b);
    this._writer.send(headerTo(sorted), sorted, message, streamOf(message));
  }

  /** @param {Uint8Array} header @param {number[]} clients @param {Message} request @param {Message} answer */
  _reply(header, clients, request, answer) {
    if (!Object.hasOwn(request, "synNum")) return;
    answer.type = TYPE.DATA;
    answer.ackNum = request.synNum;
    this._writer.send(header, clients, answer);
  }

  /** @param {Uint8Array} description */
  _describe(description) {
    if (description.length > DESCRIPTION_BYTES) {
      this._log(`the description of the device has ${description.length} bytes, more than a mediator keeps`);
    } else if (this._isUnderAmber) this._writer.write(headerTo([]), descriptionMessage(description));
  }

  /** @param {string | undefined} trouble */
  _sayHealth(trouble) {
    if (trouble === this._trouble) return;
    this._trouble = trouble;
    if (this._isRunning) this._tellHealth();
  }

  _tellHealth() {
    if (this._isUnderAmber) this._writer.write(headerTo([]), healthMessage(this._trouble));
  }

  _stopTimers() {
    clearInterval(this._publishing);
    clearTimeout(this._motionTimer);
    this._writer.end();
    for (const { timer } of this._streams.values()) clearInterval(timer);
  }
}

/** The numbers of the fields of a message, for the log. @param {Message} message */
function fieldsOf(message) {
  const numbers = [...new Set(message.$rest.map(({ number }) => number))];
  return numbers.length > 0 ? numbers.join(", ") : "(none)";
}
