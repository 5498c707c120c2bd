// A client of one mediator: requests without an answer so far, and subscriptions. IO through a transport.

import { split } from "./address.js";
import { camel } from "./convert.js";
import { classOf } from "./device.js";
import {
  BadAnswerError,
  ClosedError,
  DeviceDiedError,
  TimedOutError,
  UnreachableError,
} from "./errors.js";
import { repeated } from "./extras.js";
import { MAX_PART, decodeFrame, encodeFrame, header } from "./frame.js";
import { TYPE, interfacesOf, refusal } from "./interface.js";
import { Liveness } from "./liveness.js";
import { changeHalts } from "./motion.js";
import { INTERFACES, NAMES } from "./ours.js";
import { pause } from "./pause.js";
import { Joiner, LOCAL_PIECE_BYTES, MAX_LONG, PIECE_BYTES } from "./pieces.js";
import { VALID_MS, defaultAddress, openTransport } from "./platform.js";
import { create, fromBinary, getExtension, hasExtension, isSet, toBinary } from "./protobuf.js";
import { OURS, extensionOf, messageOf, readDescription } from "./schemas.js";
import { Uploads } from "./upload.js";

/** @typedef {import("./address.js").Address} Address */
/** @typedef {import("./subscription.js").Subscription<any>} AnySubscription */
/** @typedef {{ signal?: AbortSignal, timeoutMs: number, validMs?: number, onRefusal?: (error: any) => void }} Limits */

const MEDIATOR = { type: 0, id: 0 };
/** The time between two PINGs while the mediator has not answered. */
const GREETING_MS = 200;

const driverHdr = messageOf(OURS, "amber.DriverHdr");
const driverMsg = messageOf(OURS, "amber.DriverMsg");
const pieceType = messageOf(OURS, "amber.Piece");
const unavailable = extensionOf(OURS, "amber.mediator_proto.unavailable");

const TYPES = Object.values(TYPE);

/** @type {Map<import("./interface.js").Interface, any>} */
const classes = new Map();

export class Robot {
  /**
   * @param {string} [address]
   * @param {object} [options]
   * @param {number} [options.timeoutMs]
   * @param {number} [options.validMs]
   * @param {number} [options.connectTimeoutMs]
   * @param {number} [options.outcomeWaitMs]
   * @param {(error: import("./errors.js").AmberError) => void} [options.onRefusal]
   * @param {AbortSignal} [options.signal]
   * @param {typeof openTransport} [open] for tests
   */
  static async connect(address = defaultAddress(), options = {}, open = openTransport) {
    const { signal, connectTimeoutMs = 3000 } = options;
    signal?.throwIfAborted();
    const robot = new Robot(address, options);
    try {
      robot._transport = await open(address, robot);
      await robot._greet(connectTimeoutMs, signal);
    } catch (error) {
      await robot.close();
      throw error;
    }
    return robot;
  }

  /**
   * @private use `Robot.connect`
   * @param {string} mediator
   * @param {any} options
   */
  constructor(mediator, { timeoutMs = 1000, validMs = VALID_MS, outcomeWaitMs = 250, onRefusal } = {}) {
    /** The address of the mediator, or of the dashboard, without its token. */
    this.mediatorAddress = mediator.split("#")[0];
    /** Answers that were late or doubled. */
    this.lateAnswers = 0;
    /** Datagrams that are not valid. */
    this.malformed = 0;
    /** @internal What calls do unless they say otherwise. */
    this.defaults = { timeoutMs, validMs };
    /** @internal The names of Amber's devices, and of those that were loaded. */
    this._names = NAMES.copy();
    /** @internal Reports of drivers about commands, as far as they are known.
     * @type {{ outcomeWaitMs: number, reports: Map<string, boolean> }} */
    this._commands = { outcomeWaitMs, reports: new Map() };
    /** @internal */
    this._onRefusal = onRefusal ?? ((/** @type {Error} */ error) => {
      console.warn(`amber: a command was not carried out: ${error.message}`);
    });
    /** @internal */
    this._mediatorAnswers = false;
    this._hasWaitedForMediator = false;
    /** @type {(() => void) | undefined} */
    this._onFirstAnswer = undefined;
    /** @type {import("./platform.js").Transport | undefined} */
    this._transport = undefined;
    this._isClosed = false;
    this._lastNumber = Math.floor(Math.random() * 2 ** 20);
    /** @type {Map<number, { device: string, resolve: (message: any) => void, reject: (error: unknown) => void }>} */
    this._pending = new Map();
    /** The latest subscription of each feed is the one that the driver knows.
     * @type {Map<string, AnySubscription[]>} */
    this._feeds = new Map();
    /** @type {Map<string, Address>} */
    this._used = new Map();
    /** @type {Map<number, import("./interface.js").Interface>} */
    this._interfaces = new Map(INTERFACES.map((it) => [it.type, it]));
    /** The devices of which the mediator has sent the descriptions, by type.
     * @type {Map<number, Address>} */
    this._described = new Map();
    this._joiner = new Joiner();
    this._uploads = new Uploads();
    /** @type {{ at: number, timer: ReturnType<typeof setTimeout> } | undefined} */
    this._joinTimer = undefined;
    /** @type {Liveness | undefined} */
    this._liveness = undefined;
  }

  // Devices

  /**
   * A device by its name and number, such as `wheels:0` or `4:1`. Sends nothing.
   * @param {string | Address} device
   * @returns {any}
   */
  device(device) {
    const address = this._names.parse(device);
    const found = this._interfaces.get(address.type);
    if (!found) {
      throw new TypeError(
        `devices of type ${address.type} are not known\nhint: ` +
          `\`await robot.load("${address.type}:${address.id}")\` gets the description from the mediator`,
      );
    }
    const made = classes.get(found) ?? classOf(found);
    classes.set(found, made);
    return new made(this, address);
  }

  /**
   * A device of which this package has no description: the mediator has it from the driver. From then
   * on, `device` knows it as well.
   * @param {string} device its number, such as `201:0`, or its name
   * @param {{ signal?: AbortSignal, timeoutMs?: number }} [options]
   * @returns {Promise<any>}
   */
  async load(device, options) {
    const address = this._names.find(device);
    if (address && this._interfaces.has(address.type)) return this.device(address);
    if (address) {
      await this._describe(address, options);
      return this.device(address);
    }
    const drivers = split(device) ? await this._drivers(options) : [];
    for (const one of drivers.flatMap(({ devices }) => devices)) {
      if (this._interfaces.has(one.type)) continue;
      try {
        await this._describe(one, options);
      } catch (error) {
        if (error instanceof TimedOutError || error instanceof ClosedError) throw error;
        options?.signal?.throwIfAborted();
        continue; // its driver has sent no description
      }
    }
    return this.device(device);
  }

  /**
   * @param {Address} address
   * @param {{ signal?: AbortSignal, timeoutMs?: number }} [options]
   */
  async _describe(address, options) {
    const { files } = await this.device(MEDIATOR).getDescription(address, options);
    let found;
    try {
      found = interfacesOf(readDescription(files));
    } catch (error) {
      throw new BadAnswerError(`${this._names.show(address)}: ${/** @type {Error} */ (error).message}`);
    }
    for (const one of found) {
      if (this._interfaces.has(one.type)) continue;
      this._interfaces.set(one.type, one);
      this._names.add(one.type, one.name, one.alias);
      this._described.set(one.type, address);
    }
    if (!this._interfaces.has(address.type)) {
      throw new BadAnswerError(`the description of ${this._names.show(address)} is that of another device`);
    }
  }

  /**
   * All drivers.
   * @internal
   * @param {{ signal?: AbortSignal, timeoutMs?: number }} [options]
   */
  async _drivers(options) {
    /** @type {{ state: string, devices: Address[] }[]} */
    const found = [];
    for (;;) {
      const ask = () => this.device(MEDIATOR).listDrivers({ skip: found.length }, options);
      const page = await repeated(ask);
      found.push(...page.drivers);
      if (page.drivers.length === 0 || found.length >= page.total) return found;
    }
  }

  // Motion

  /**
   * Stops all devices that move, which refuse motion until `releaseHalt`. Resolves to their names.
   * @param {string} name who halts them, for people
   * @param {{ signal?: AbortSignal, timeoutMs?: number }} [options]
   */
  async halt(name, options) {
    return changeHalts(this, true, name, options);
  }

  /**
   * Releases the halts of all devices. Resolves to their names.
   * @param {string} name who releases them, for people
   * @param {{ signal?: AbortSignal, timeoutMs?: number }} [options]
   */
  async releaseHalt(name, options) {
    return changeHalts(this, false, name, options);
  }

  // Ending

  /** Tells all used devices that this client leaves. Loops over subscriptions end. */
  async close() {
    if (this._isClosed) return;
    this._isClosed = true;
    clearTimeout(this._joinTimer?.timer);
    this._liveness?.end();
    const left = [...this._used.values(), MEDIATOR].map((it) => this._trySend(it, this._plain(TYPE.CLIENT_DIED)));
    await Promise.all(left);
    await this._transport?.close();
    this._failAll(new ClosedError("the robot has been closed"));
    for (const subscription of this._subscriptions()) subscription._end();
  }

  // Incoming messages

  /** A datagram has arrived. @internal @param {Uint8Array} datagram */
  received(datagram) {
    const frame = decodeFrame(datagram);
    /** @type {any} */
    let message;
    /** @type {Address} */
    let address = MEDIATOR;
    try {
      if (!frame) throw new RangeError("not a frame");
      const { deviceType: type = 0, deviceID: id = 0 } = /** @type {any} */ (fromBinary(driverHdr, frame.header));
      address = { type, id };
      message = fromBinary(driverMsg, frame.message);
      // It is missing, or unknown.
      const isKnown = isSet(message, driverMsg.field.type) && TYPES.includes(message.type);
      if (!isKnown) throw new RangeError("not a message");
    } catch {
      this.malformed += 1;
      return;
    }
    const device = keyOf(address);
    if (device === keyOf(MEDIATOR)) this._hear();
    if (message.type === TYPE.DATA && message.piece) this._takePiece(device, message.piece);
    else if (message.type === TYPE.DATA && (message.receipt || message.missing)) this._takeReceipt(device, message);
    else if (message.type === TYPE.PING) this._pong(address, message);
    else if (message.type === TYPE.DRIVER_DIED) this._driverDied(address, message);
    else this._take(device, message);
  }

  /**
   * An answer or published data.
   * @param {string} device
   * @param {any} message
   * @param {number} [stream]
   */
  _take(device, message, stream) {
    if (message.ackNum !== 0) {
      const call = this._pending.get(message.ackNum);
      if (call?.device === device) call.resolve(message);
      else if (device !== keyOf(MEDIATOR)) this.lateAnswers += 1; // not that to a greeting
    } else if (message.type === TYPE.DATA) {
      for (const it of this._subscriptions(device)) it._deliver(message, stream);
    }
  }

  /**
   * @param {string} device
   * @param {any} piece
   */
  _takePiece(device, piece) {
    const stream = isSet(piece, pieceType.field.stream) ? piece.stream : undefined;
    const { message, index, count, data } = piece;
    const joined = this._joiner.piece(performance.now(), device, { message, index, count, data, stream });
    if (joined) {
      try {
        const whole = /** @type {any} */ (fromBinary(driverMsg, joined));
        if (whole.type !== TYPE.DATA || whole.piece) throw new RangeError("not the message of a device");
        this._take(device, whole, whole.ackNum === 0 ? (stream ?? 0) : undefined);
      } catch {
        this.malformed += 1;
      }
    }
    this._settlePieces();
  }

  /**
   * A driver joins a long request.
   * @param {string} device
   * @param {any} message
   */
  _takeReceipt(device, { receipt, missing }) {
    if (receipt) this._uploads.receipt(performance.now(), device, receipt);
    if (missing) this._uploads.missing(device, missing);
    this._settlePieces();
  }

  /** Sends pieces, calls for missing ones, and counts what is lost. */
  _settlePieces() {
    // Its call has ended.
    this._uploads.end(({ synNum }) => synNum !== undefined && !this._pending.has(synNum));
    for (const { device, synNum, piece } of this._uploads.poll()) {
      const fields = { type: TYPE.DATA, ...(synNum === undefined ? {} : { synNum }), piece };
      const bytes = toBinary(driverMsg, create(driverMsg, fields));
      this._trySend(addressOf(device), bytes, /* isAboutPieces */ true);
    }
    for (const { sender, message, index } of this._joiner.calls.splice(0)) {
      const bytes = toBinary(driverMsg, create(driverMsg, { type: TYPE.DATA, missing: { message, index } }));
      this._trySend(addressOf(sender), bytes, /* isAboutPieces */ true);
    }
    for (const { sender, stream } of this._joiner.lost.splice(0)) {
      if (stream === undefined) continue;
      for (const it of this._subscriptions(sender)) it.missed += 1;
    }
    const at = Math.min(this._joiner.nextTimeout, this._uploads.nextTimeout);
    // Waking up too early costs less than a timer for each piece.
    if (at === Infinity || this._isClosed || (this._joinTimer && this._joinTimer.at <= at)) return;
    clearTimeout(this._joinTimer?.timer);
    const timer = setTimeout(() => {
      this._joinTimer = undefined;
      this._joiner.timeout(performance.now());
      for (const { device, synNum, bytes } of this._uploads.timeout(performance.now())) {
        const name = this._names.show(addressOf(device));
        const why = `${bytes.length} bytes are too long for ${name}: its driver takes at most ${MAX_PART}`;
        this._pending.get(synNum ?? 0)?.reject(new RangeError(why));
      }
      this._settlePieces();
    }, Math.max(1, at - performance.now()));
    this._joinTimer = { at, timer };
  }

  /**
   * @param {Address} address
   * @param {any} ping
   */
  _pong(address, ping) {
    const isNumbered = isSet(ping, driverMsg.field.synNum);
    const ackNum = isNumbered ? [0x20, ...varint(ping.synNum)] : [];
    this._trySend(address, Uint8Array.from([0x10, TYPE.PONG, ...ackNum]));
  }

  /**
   * @param {Address} address
   * @param {any} message
   */
  _driverDied(address, message) {
    const [key, device] = [keyOf(address), this._names.show(address)];
    this._commands.reports.delete(device);
    if (message.ackNum === 0) {
      this._joiner.forget(key);
      this._uploads.end((upload) => upload.device === key);
    }
    const why = hasExtension(message, unavailable) ? /** @type {any} */ (getExtension(message, unavailable)) : {};
    const { enum: reasons } = /** @type {any} */ (unavailable).message.field.reason;
    const error = new DeviceDiedError(`${device} is unavailable${why.message ? `: ${why.message}` : ""}`, {
      device,
      reason: reasons.value[why.reason]?.name,
      hint: why.hint || `\`amber status ${device}\` shows more`,
    });
    for (const [number, call] of this._pending) {
      if (call.device === key && (message.ackNum === 0 || message.ackNum === number)) call.reject(error);
    }
  }

  _hear() {
    this._mediatorAnswers = true;
    this._onFirstAnswer?.();
  }

  /** The network reports that nothing reaches the mediator. @internal @param {UnreachableError} error */
  unreachable(error) {
    this._failAll(error);
  }

  /**
   * A request was not passed on to the mediator.
   * @internal
   * @param {Address} address
   * @param {number} number
   * @param {string} words
   */
  refused(address, number, words) {
    const error = refusal(this._names.show(address), words);
    const call = this._pending.get(number);
    if (call?.device === keyOf(address)) call.reject(error);
    else this._onRefusal(error);
  }

  /** The mediator does not know this client by its new address. @internal */
  moved() {
    this._announce().catch(() => {}); // it is sent again after the next move
    // A dashboard passes requests to users' own devices on as their descriptions say, which it sees on their way.
    for (const it of this._described.values()) this.device(MEDIATOR).getDescription(it).catch(() => {});
    if (this._liveness && this._mediatorAnswers) this._liveness.moved();
    else this._renew();
  }

  /** @param {Error} error */
  _failAll(error) {
    for (const call of [...this._pending.values()]) call.reject(error);
  }

  // Outgoing messages

  /** A message with a type and nothing else. @internal @param {number} type */
  _plain(type) {
    return Uint8Array.from([0x10, type]);
  }

  /**
   * @internal
   * @param {{ message: import("./protobuf.js").Type }} device
   * @param {any} order
   */
  _encode(device, order) {
    return toBinary(device.message, order);
  }

  /**
   * Sends a message. Rejects with UnreachableError if it could not be sent.
   * @internal
   * @param {Address} address
   * @param {Uint8Array} message
   * @param {boolean} [isAboutPieces]
   * @param {number} [synNum] of a request
   */
  async _send(address, message, isAboutPieces = false, synNum = undefined) {
    const transport = this._transport;
    if (!transport) throw new ClosedError("the robot is not connected; use `Robot.connect`");
    const device = keyOf(address);
    const isOwn = device === keyOf(MEDIATOR);
    if (!isOwn && !this._isClosed) this._used.set(device, address);
    const joins = isOwn || isAboutPieces ? [] : JOINS[String(transport.isLocal)][message[1]] ?? [];
    // An old driver may take the message only if it does not become longer.
    const fits = message.length + joins.length <= MAX_PART;
    if (message.length > MAX_PART && joins.length > 0) {
      const whole = concat(message, joins);
      if (whole.length > MAX_LONG) throw new RangeError(`${whole.length} bytes are too long (at most ${MAX_LONG})`);
      this._uploads.begin(performance.now(), device, synNum, whole, transport.isLocal ? LOCAL_PIECE_BYTES : PIECE_BYTES);
      this._settlePieces();
      return;
    }
    await transport.send(encodeFrame(header(address.type, address.id), fits ? concat(message, joins) : message));
  }

  /** Sends what is sent again later, or is of no use later. @internal
   * @param {Address} address
   * @param {Uint8Array} message
   * @param {boolean} [isAboutPieces]
   */
  async _trySend(address, message, isAboutPieces) {
    try {
      await this._send(address, message, isAboutPieces);
    } catch (error) {
      if (!(error instanceof UnreachableError || error instanceof ClosedError)) throw error;
    }
  }

  /**
   * Sends a request. `sent` resolves once it is handed to the system, `answer` with the answer.
   * @internal
   * @param {Address} address
   * @param {Uint8Array} message
   * @param {Limits} limits
   */
  _begin(address, message, { signal, timeoutMs }) {
    const device = keyOf(address);
    const number = this._nextNumber();
    /** @type {Promise<any>} */
    const answer = new Promise((resolve, reject) => {
      if (this._isClosed) throw new ClosedError("the robot has been closed");
      if (!(timeoutMs > 0)) throw new RangeError(`timeoutMs is above 0, not ${timeoutMs}`);
      signal?.throwIfAborted();
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        this._pending.delete(number);
      };
      const call = {
        device,
        resolve: (/** @type {any} */ it) => (end(), resolve(it)),
        reject: (/** @type {unknown} */ error) => (end(), reject(error)),
      };
      const abort = () => call.reject(signal?.reason);
      const timer = setTimeout(() => {
        call.reject(this._timedOut(address, timeoutMs));
        this._transport?.lookForAnotherWay();
      }, Math.min(timeoutMs, 2 ** 31 - 1));
      signal?.addEventListener("abort", abort, { once: true });
      this._pending.set(number, call);
    });
    // Both tell the same error; nobody has to wait for both.
    answer.catch(() => {});
    const call = this._pending.get(number);
    const sent = call
      ? this._send(address, concat(message, [0x18, ...varint(number)]), false, number)
      : answer.then(() => {});
    sent.catch((error) => call?.reject(error));
    return { sent, answer };
  }

  /**
   * Sends a request and waits for the answer.
   * @internal
   * @param {Address} address
   * @param {Uint8Array} message
   * @param {Limits} limits
   * @returns {Promise<any>}
   */
  _ask(address, message, limits) {
    return this._begin(address, message, limits).answer;
  }

  /** A number that no request without an answer has; 0 marks published data. */
  _nextNumber() {
    do {
      this._lastNumber = (this._lastNumber % 0xffff_ffff) + 1;
    } while (this._pending.has(this._lastNumber));
    return this._lastNumber;
  }

  /**
   * @param {Address} address
   * @param {number} timeoutMs
   */
  _timedOut(address, timeoutMs) {
    const device = this._names.show(address);
    const hint = this._mediatorAnswers ? undefined : `is a mediator running at ${this.mediatorAddress}?`;
    return new TimedOutError(`no answer from ${device} within ${timeoutMs} ms`, { device, timeoutMs, hint });
  }

  /** The mediator tells clients that have contacted it when drivers die. */
  _announce() {
    return this._send(MEDIATOR, concat(this._plain(TYPE.PING), [0x18, ...varint(this._nextNumber())]));
  }

  /**
   * Waits until the mediator answers. Any answer will do: on a busy machine each may take long.
   * @param {number} timeoutMs 0 waits for nothing
   * @param {AbortSignal} [signal]
   */
  async _greet(timeoutMs, signal) {
    const until = performance.now() + timeoutMs;
    /** @type {Promise<void>} */
    const heard = new Promise((resolve) => {
      this._onFirstAnswer = resolve;
    });
    if (timeoutMs === 0) {
      this._announce().catch(() => {});
      return;
    }
    // A datagram that nobody takes is reported after it was sent, to the calls that wait.
    /** @type {(error: unknown) => void} */
    let refuse = () => {};
    const refused = new Promise((_, reject) => {
      refuse = reject;
    });
    refused.catch(() => {});
    this._pending.set(0, { device: "", resolve: () => {}, reject: refuse });
    try {
      while (!this._mediatorAnswers) {
        if (performance.now() >= until) {
          throw new UnreachableError(`no mediator answers at ${this.mediatorAddress}`, {
            hint: "start one there with `amber demo`, or set AMBER_MEDIATOR to HOST or HOST:PORT",
          });
        }
        await this._announce();
        const wait = pause(Math.min(GREETING_MS, Math.max(1, until - performance.now())), signal);
        await Promise.race([wait, heard, refused]);
        wait.catch(() => {});
      }
    } finally {
      this._pending.delete(0);
    }
  }

  /** Whether the mediator answers. Waits for it once. @internal @param {AbortSignal} [signal] */
  async _hearsMediator(signal) {
    if (!this._mediatorAnswers && !this._hasWaitedForMediator) {
      this._hasWaitedForMediator = true;
      try {
        await this._ask(MEDIATOR, this._plain(TYPE.PING), { timeoutMs: this._commands.outcomeWaitMs, signal });
      } catch (error) {
        if (!(error instanceof TimedOutError || error instanceof UnreachableError)) throw error;
      }
    }
    return this._mediatorAnswers;
  }

  // Subscriptions

  /** @param {string} [device] */
  _subscriptions(device) {
    const all = [...this._feeds.values()].flat();
    return device === undefined ? all : all.filter((it) => keyOf(it._feed.address) === device);
  }

  /** @internal @param {AnySubscription} subscription */
  _add(subscription) {
    if (this._isClosed) throw new ClosedError("the robot has been closed");
    const { address, key, start } = subscription._feed;
    const feed = this._feeds.get(key) ?? [];
    this._feeds.set(key, feed);
    feed.push(subscription);
    if (feed.length === 1) this._trySend(address, start);
    else this._change(feed[feed.length - 2], subscription);
    if (!this._liveness) {
      this._liveness = new Liveness(this);
      this._liveness.begin(); // subscribes itself
    }
  }

  /** @internal @param {AnySubscription} subscription */
  _remove(subscription) {
    const { address, key, stop } = subscription._feed;
    const feed = this._feeds.get(key) ?? [];
    const wasLatest = feed.at(-1) === subscription;
    const others = feed.filter((it) => it !== subscription);
    const latest = others.at(-1);
    if (latest) {
      this._feeds.set(key, others);
      if (wasLatest && !this._isClosed) this._change(subscription, latest);
    } else {
      this._feeds.delete(key);
      if (!this._isClosed) this._trySend(address, stop);
    }
  }

  /**
   * @param {AnySubscription} old
   * @param {AnySubscription} next
   */
  _change(old, next) {
    if (String(old._feed.start) === String(next._feed.start)) return;
    this._trySend(old._feed.address, old._feed.stop);
    this._trySend(next._feed.address, next._feed.start);
  }

  /** The driver of a device is a new process. @internal @param {Address} address */
  _isUp(address) {
    this._commands.reports.delete(this._names.show(address));
    for (const feed of this._feeds.values()) {
      const latest = feed[feed.length - 1]._feed;
      if (keyOf(latest.address) === keyOf(address)) this._trySend(address, latest.start);
    }
  }

  /** Drivers may or may not have forgotten this client. @internal */
  _renew() {
    for (const feed of this._feeds.values()) {
      const { address, start, stop } = feed[feed.length - 1]._feed;
      // An old driver would keep a second subscription in addition to the first one.
      this._trySend(address, stop);
      this._trySend(address, start);
    }
  }
}

// A method for each of Amber's devices, by its name and its alias.
for (const { type, name, alias } of INTERFACES) {
  for (const one of alias ? [name, alias] : [name]) {
    Object.defineProperty(Robot.prototype, camel(one), {
      value: /** @this {Robot} */ function (id = 0) {
        return this.device({ type, id });
      },
      writable: true,
      configurable: true,
    });
  }
}

/** What a client says in its requests: which pieces it joins. By whether the mediator is on this
 * computer, and by the type of the message. @type {Record<string, Record<number, number[]>>} */
const JOINS = Object.fromEntries(
  [["true", LOCAL_PIECE_BYTES], ["false", PIECE_BYTES]].map(([isLocal, bytes]) => {
    const inner = [0x10, ...varint(Number(bytes))];
    const field = [0x4a, inner.length, ...inner];
    return [isLocal, { [TYPE.DATA]: field, [TYPE.SUBSCRIBE]: field }];
  }),
);

/** @param {Address} address */
function keyOf({ type, id }) {
  return `${type}:${id}`;
}

/** @param {string} key */
function addressOf(key) {
  const [type, id] = key.split(":").map(Number);
  return { type, id };
}

/**
 * @param {Uint8Array} bytes
 * @param {number[]} more
 */
function concat(bytes, more) {
  const all = new Uint8Array(bytes.length + more.length);
  all.set(bytes);
  all.set(more, bytes.length);
  return all;
}

/** @param {number} value a uint32 */
function varint(value) {
  const bytes = [];
  for (; value > 0x7f; value = Math.floor(value / 128)) bytes.push((value % 128) | 0x80);
  return [...bytes, value];
}
