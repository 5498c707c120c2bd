// Sends messages that are longer than a frame: in pieces, in bursts, and again what is called for. PURE: times
// are arguments, in milliseconds. docs/notes/pieces.md in the repository has the rules.

import { create, toBinary } from "../protobuf.js";
import { TYPE } from "../interface.js";
import { LOCAL_PIECE_BYTES, MAX_LONG, PIECE_BYTES } from "../pieces.js";
import { OURS, messageOf } from "../schemas.js";

/** @typedef {import("../convert.js").Message} Message */

const driverMsg = messageOf(OURS, "amber.DriverMsg");

/** The fewest bytes in a piece that a client may ask for. */
const MIN_PIECE_BYTES = 1024;
/** `picture` of camera.proto: pictures go in pieces as soon as they do not fit into a datagram. */
const PICTURE = 261;
/** Longer messages in one frame are more than old clients can receive, and the mediator warns of them. */
const LONGEST_WHOLE = 16_384 - 2 * 11;
/** The last of the fields that all messages share. */
const LAST_BASE_FIELD = 9;

// The same numbers as in proto/pieces/paced.rs.
const BURST = 16;
const BURST_BYTES = 256_000;
const PAUSE_MS = 5;
const SHORTEST_PAUSE_MS = 1;
const KEEP_MS = 500;

/** The stream of published data: the number of its first field behind the base fields. @param {Message} message */
export function streamOf(message) {
  const numbers = message.$rest.map(({ number }) => number).filter((number) => number > LAST_BASE_FIELD);
  return numbers.length > 0 ? Math.min(...numbers) : 0;
}

/** What a client joins. */
export class Ability {
  /**
   * What a request or SUBSCRIBE says; undefined if its client joins nothing.
   * @param {{ joins?: { longest?: number, pieceBytes?: number } }} message with own fields only if they are set
   */
  static stated(message) {
    return Object.hasOwn(message, "joins") && message.joins ? new Ability(message.joins) : undefined;
  }

  /** @param {{ longest?: number, pieceBytes?: number }} joins */
  constructor(joins) {
    const longest = Object.hasOwn(joins, "longest") ? Number(joins.longest) : MAX_LONG;
    const size = Object.hasOwn(joins, "pieceBytes") ? Number(joins.pieceBytes) : PIECE_BYTES;
    /** The longest message, in bytes. */
    this.longest = Math.min(longest, MAX_LONG);
    this.pieceBytes = Math.min(Math.max(size, MIN_PIECE_BYTES), LOCAL_PIECE_BYTES);
  }

  /** Whether it gets a message of this length in pieces although that fits into a frame.
   * @param {Message} message @param {number} length */
  cuts(message, length) {
    const whole = Math.min(this.pieceBytes, LONGEST_WHOLE);
    return whole < length && length <= this.longest && streamOf(message) === PICTURE;
  }

  /** The bytes in a piece of a message. There are at least two pieces. @param {number} length */
  size(length) {
    return length <= this.pieceBytes ? Math.ceil(length / 2) : this.pieceBytes;
  }
}

/** What the clients of a driver join. */
export class Abilities {
  constructor() {
    /** @type {Map<number, Ability>} */
    this._known = new Map();
  }

  /** A request or SUBSCRIBE of these clients. @param {number[]} clients @param {any} message */
  note(clients, message) {
    const ability = Ability.stated(message);
    for (const client of clients) {
      if (ability) this._known.set(client, ability);
      else this._known.delete(client);
    }
  }

  /** @param {number} client */
  forget(client) {
    this._known.delete(client);
  }

  /**
   * Whether a message goes in pieces although it fits into a frame. Not if one of the clients does not join
   * them: a recording would have it twice.
   * @param {number[]} clients
   * @param {Message} message
   * @param {number} length
   */
  cuts(clients, message, length) {
    if (length < MIN_PIECE_BYTES) return false;
    const known = clients.map((client) => this._known.get(client));
    return known.every((it) => it && length <= it.longest) && known.some((it) => it?.cuts(message, length));
  }

  /**
   * The clients that get a message of this length, by the bytes of their pieces.
   * @param {number[]} clients
   * @param {number} length
   */
  groups(clients, length) {
    /** @type {Map<number, number[]>} */
    const groups = new Map();
    for (const client of clients) {
      const ability = this._known.get(client);
      if (!ability || length > ability.longest) continue;
      const size = ability.size(length);
      groups.set(size, [...(groups.get(size) ?? []), client]);
    }
    return groups;
  }
}

/** Pieces to send now to the same clients. @typedef {{ clients: number[], pieces: Uint8Array[] }} Burst */

/** A message that is being sent, or may have to be sent again. */
class Kept {
  /** @param {{ now: number, number: number, stream?: number, bytes: Uint8Array, clients: number[], pieceBytes: number, periodMs?: number }} given */
  constructor({ now, number, stream, bytes, clients, pieceBytes, periodMs }) {
    this.number = number;
    this.stream = stream;
    this.bytes = bytes;
    this.clients = clients;
    this.pieceBytes = pieceBytes;
    this.count = Math.ceil(bytes.length / pieceBytes);
    const bursts = Math.ceil(this.count / burstOf(pieceBytes));
    const most = periodMs === undefined ? PAUSE_MS : (0.8 * periodMs) / Math.max(1, bursts);
    this.pauseMs = Math.min(Math.max(most, SHORTEST_PAUSE_MS), PAUSE_MS);
    this.next = 0;
    /** When to send the next burst, and behind the last one, when to forget the message. */
    this.due = now;
    /** How many pieces each client got again. @type {Map<number, number>} */
    this.again = new Map();
  }

  get isSent() {
    return this.next === this.count;
  }

  /** @param {number} index */
  piece(index) {
    const start = index * this.pieceBytes;
    const data = this.bytes.subarray(start, start + this.pieceBytes);
    /** @type {Record<string, any>} */
    const piece = { message: this.number, index, count: this.count, data };
    if (this.stream !== undefined) piece.stream = this.stream;
    return toBinary(driverMsg, create(driverMsg, { type: TYPE.DATA, piece }));
  }

  /** @param {number} now @returns {Burst} */
  burst(now) {
    const end = Math.min(this.count, this.next + burstOf(this.pieceBytes));
    const pieces = [];
    for (; this.next < end; this.next++) pieces.push(this.piece(this.next));
    this.due = this.isSent ? now + KEEP_MS : Math.max(this.due + this.pauseMs, now);
    return { clients: this.clients, pieces };
  }
}

/** The long messages of a driver: when to send which pieces, to whom, and again. */
export class Paced {
  /** @param {number} [lastNumber] messages have the numbers after this one */
  constructor(lastNumber = Math.floor(Math.random() * 2 ** 20)) {
    this._lastNumber = lastNumber;
    /** @type {Kept[]} */
    this._kept = [];
    /** @type {Burst[]} */
    this._again = [];
    /** When the latest message of a stream was added, by stream and first client. @type {Map<string, number>} */
    this._latest = new Map();
  }

  /**
   * Begins to send a message.
   * @param {number} now
   * @param {Uint8Array} bytes
   * @param {number | undefined} stream undefined for answers
   * @param {Map<number, number[]>} groups the clients by the bytes of their pieces
   */
  push(now, bytes, stream, groups) {
    this._lastNumber = (this._lastNumber + 1) >>> 0;
    for (const [pieceBytes, clients] of groups) {
      let periodMs;
      if (stream !== undefined) {
        const key = `${stream}/${clients[0]}`;
        const latest = this._latest.get(key);
        periodMs = latest === undefined ? undefined : now - latest;
        this._latest.set(key, now);
        this._dropOvertaken(stream, clients);
      }
      this._kept.push(new Kept({ now, number: this._lastNumber, stream, bytes, clients, pieceBytes, periodMs }));
    }
    while (this._kept.length > 1 && this._bytes > MAX_LONG) this._kept.shift();
  }

  /** The next burst, if one is due. @param {number} now @returns {Burst | undefined} */
  poll(now) {
    const again = this._again.shift();
    if (again) return again;
    this._kept = this._kept.filter((it) => it.due > now || !it.isSent);
    const due = this._kept.filter((it) => it.due <= now);
    if (due.length === 0) return undefined;
    return due.reduce((first, it) => (it.due < first.due ? it : first)).burst(now);
  }

  /** When `poll` has something to do; Infinity for never. */
  get nextTimeout() {
    return this._again.length > 0 ? 0 : Math.min(Infinity, ...this._kept.map(({ due }) => due));
  }

  /**
   * A client calls for missing pieces. Each client gets as many pieces again as the message has.
   * @param {number} client
   * @param {{ message: number, index: number[] }} call
   */
  missing(client, { message, index }) {
    const kept = this._kept.find((it) => it.number === message && it.clients.includes(client));
    if (!kept) return;
    const sent = kept.again.get(client) ?? 0;
    const wanted = index.filter((it) => it < kept.next).slice(0, kept.count - sent);
    kept.again.set(client, sent + wanted.length);
    const size = burstOf(kept.pieceBytes);
    for (let start = 0; start < wanted.length; start += size) {
      const pieces = wanted.slice(start, start + size).map((it) => kept.piece(it));
      this._again.push({ clients: [client], pieces });
    }
  }

  /** A client is gone. @param {number} client */
  forget(client) {
    for (const kept of this._kept) kept.clients = kept.clients.filter((it) => it !== client);
    this._kept = this._kept.filter(({ clients }) => clients.length > 0);
    this._again = this._again.filter(({ clients }) => !clients.includes(client));
    for (const key of this._latest.keys()) if (key.endsWith(`/${client}`)) this._latest.delete(key);
  }

  /** The bytes of all messages, each counted once. */
  get _bytes() {
    const lengths = new Map(this._kept.map(({ number, bytes }) => [number, bytes.length]));
    return [...lengths.values()].reduce((sum, it) => sum + it, 0);
  }

  /** Two messages of a stream may be under way to the same clients. @param {number} stream @param {number[]} clients */
  _dropOvertaken(stream, clients) {
    const isSame = (/** @type {Kept} */ it) => it.stream === stream && String(it.clients) === String(clients);
    const waiting = this._kept.filter((it) => isSame(it) && !it.isSent);
    if (waiting.length >= 2) this._kept.splice(this._kept.indexOf(waiting[0]), 1);
  }
}

/** The pieces in a burst. @param {number} pieceBytes */
function burstOf(pieceBytes) {
  return Math.max(1, Math.min(BURST, Math.floor(BURST_BYTES / pieceBytes)));
}
