// What a driver writes: frames at once, and long messages in pieces, a few at a time. IO: a stream and timers.

import { MAX_PART, encodeFrame } from "../frame.js";
import { pause } from "../pause.js";
import { toBinary } from "../protobuf.js";
import { headerTo } from "./frames.js";
import { Abilities, Paced } from "./paced.js";

/** @typedef {import("../convert.js").Message} Message */

/** While so many bytes wait to be written, no method of the driver is called, and no pieces are sent. */
const BUSY_BYTES = 256_000;
/** How often to look whether the mediator reads again. */
const BUSY_MS = 20;
/** While so many wait, published data is dropped. */
const CONGESTED_BYTES = 1 << 20;
/** While so many wait, nothing is read. */
const BLOCKED_BYTES = 4 << 20;
/** How long the end waits for the last frames. */
const PATIENCE_MS = 500;

export class Writer {
  /**
   * @param {import("node:stream").Writable} output
   * @param {(...words: unknown[]) => void} log
   */
  constructor(output, log) {
    this._output = output;
    this._log = log;
    this._abilities = new Abilities();
    this._paced = new Paced();
    /** @type {NodeJS.Timeout | undefined} */
    this._pacing = undefined;
    this._hasWarned = false;
    this._isEnding = false;
    /** Ends the waits for the mediator to read. @type {Set<() => void>} */
    this._waiting = new Set();
    output.on("drain", () => this.wake());
  }

  /** Whether published data has to be dropped. */
  get isCongested() {
    return this._output.writableLength > CONGESTED_BYTES;
  }

  /** Whether nothing more can be read. */
  get isBlocked() {
    return this._output.writableLength > BLOCKED_BYTES;
  }

  /** A request or SUBSCRIBE says what its clients join. @param {number[]} clients @param {Message} message */
  note(clients, message) {
    this._abilities.note(clients, message);
  }

  /** @param {number} client */
  forget(client) {
    this._abilities.forget(client);
    this._paced.forget(client);
  }

  /** A client calls for missing pieces. @param {number} client @param {{ message: number, index: number[] }} call */
  missing(client, call) {
    this._paced.missing(client, call);
    this._pace();
  }

  /** Writes a frame. @param {Uint8Array} header @param {Uint8Array} message */
  write(header, message) {
    this._output.write(encodeFrame(header, message));
  }

  /**
   * Sends a message, in pieces if it is long.
   * @param {Uint8Array} header
   * @param {number[]} clients
   * @param {Message} message
   * @param {number} [stream] of published data
   */
  send(header, clients, message, stream) {
    const bytes = toBinary(message.$type, message);
    if (bytes.length <= MAX_PART && !this._abilities.cuts(clients, message, bytes.length)) {
      this.write(header, bytes);
      return;
    }
    const groups = this._abilities.groups(clients, bytes.length);
    const reached = [...groups.values()].reduce((sum, it) => sum + it.length, 0);
    if (reached < clients.length && !this._hasWarned) {
      this._hasWarned = true;
      this._log(`a message of ${bytes.length} bytes is too long for clients that do not join pieces: ` +
        `the limit is ${MAX_PART} (logged once)`);
    }
    if (groups.size === 0) return;
    this._paced.push(performance.now(), bytes, stream, groups);
    this._pace();
  }

  /**
   * Waits until the mediator reads.
   * @param {() => boolean} [isOver] whether to wait no longer, asked again after `wake`
   */
  async drained(isOver) {
    // So many bytes are more than the stream takes without a `drain` to follow.
    while (this._output.writableLength > BUSY_BYTES && !this._output.destroyed && !this._isEnding && !isOver?.()) {
      await new Promise((resolve) => this._waiting.add(() => resolve(undefined)));
    }
  }

  /** Those that wait look again. */
  wake() {
    const waiting = [...this._waiting];
    this._waiting.clear();
    for (const go of waiting) go();
  }

  /** Sends no more pieces, and ends the waits. */
  end() {
    this._isEnding = true;
    clearTimeout(this._pacing);
    this.wake();
  }

  /** Waits for the last frames, but not for a mediator that does not read. */
  async flush() {
    if (this._output.destroyed) return;
    const written = new Promise((resolve) => this._output.write("", resolve));
    await Promise.race([written, pause(PATIENCE_MS)]);
  }

  /** Sends the pieces that are due, when little else waits to be written. */
  _pace() {
    clearTimeout(this._pacing);
    const now = performance.now();
    while (this._output.writableLength < BUSY_BYTES) {
      const burst = this._paced.poll(now);
      if (!burst) break;
      for (const piece of burst.pieces) this.write(headerTo(burst.clients), piece);
    }
    const { nextTimeout } = this._paced;
    if (nextTimeout === Infinity || this._isEnding) return;
    const isBusy = this._output.writableLength >= BUSY_BYTES;
    this._pacing = setTimeout(() => this._pace(), Math.max(isBusy ? BUSY_MS : 1, nextTimeout - now));
  }
}
