// Joins messages that are longer than a frame: they arrive in pieces. PURE: times are arguments, in
// milliseconds. docs/notes/pieces.md in the repository has the fields, the limits and their reasons.

/** The longest message, in bytes. */
export const MAX_LONG = 8 << 20;
/** The bytes in a piece for mediators on other computers: no network cuts the datagram. */
export const PIECE_BYTES = 1180;
/** The bytes in a piece for mediators on this computer. */
export const LOCAL_PIECE_BYTES = 32_000;

// The same numbers as in proto/pieces/join.rs.
const MAX_PIECES = 8192;
const MAX_PART = 32_767;
const MAX_MISSING = 400;
const MAX_OF_SENDER = 4;
const MAX_PARTIALS = 64;
const MAX_BYTES = 2 * MAX_LONG;
const MAX_FINISHED = 256;
const OVERHEAD = 256;
const OVERHEAD_OF_PIECE = 64;
const OUTDATES_MS = 1000;
const GAP_MS = 5;
const TAIL_MS = 10;
const AGAIN_MS = 12;
const STREAM_CALLS = 3;
const OTHER_CALLS = 8;
const FEW = 4;
/** A driver sends a receipt after so many bytes. */
const RECEIPT_BYTES = 32_000;
const STREAM_AGE_MS = 1000;
const OTHER_AGE_MS = 5000;

/**
 * One piece. `stream` is undefined in answers.
 * @typedef {{ message: number, index: number, count: number, data: Uint8Array, stream?: number }} Piece
 */

/**
 * A message of which nothing more is needed.
 * @typedef {{ sender: string, number: number, stream?: number, at: number, isJoined?: boolean }} Finished
 */

/** A message of which pieces are missing. */
class Partial {
  /**
   * @param {number} now
   * @param {string} sender
   * @param {Piece} piece
   */
  constructor(now, sender, piece) {
    this.sender = sender;
    this.number = piece.message;
    this.count = piece.count;
    this.stream = piece.stream;
    /** @type {number | undefined} of each piece but the last */
    this.length = undefined;
    /** @type {number | undefined} of the last piece */
    this.lastLength = undefined;
    /** @type {Map<number, Uint8Array>} */
    this.data = new Map();
    this.memory = OVERHEAD;
    /** All pieces before this one have arrived. */
    this.upto = 0;
    this.highest = 0;
    this.lastAt = now;
    /** @type {number | undefined} when a gap was noticed */
    this.gapAt = undefined;
    /** @type {number | undefined} */
    this.calledAt = undefined;
    this.calls = 0;
    /** What the last receipt said. @type {number | undefined} */
    this.told = undefined;
  }

  get isOfStream() {
    return this.stream !== undefined;
  }

  /** Whether a new piece agrees with the others. @param {Piece} piece */
  fits(piece) {
    if (piece.stream !== this.stream) return false;
    const length = piece.data.length;
    if (piece.index + 1 === this.count) return this.length === undefined || length <= this.length;
    if (this.length !== undefined) return length === this.length;
    return this.lastLength === undefined || this.lastLength <= length;
  }

  get isTooLong() {
    if (this.length === undefined) return false;
    return (this.count - 1) * this.length + (this.lastLength ?? 1) > MAX_LONG;
  }

  /**
   * @param {number} now
   * @param {Piece} piece
   */
  add(now, piece) {
    if (piece.index + 1 === this.count) this.lastLength = piece.data.length;
    else this.length = piece.data.length;
    this.data.set(piece.index, piece.data);
    this.memory += piece.data.length + OVERHEAD_OF_PIECE;
    this.lastAt = now;
    this.highest = Math.max(this.highest, piece.index);
    const before = this.upto;
    while (this.data.has(this.upto)) this.upto += 1;
    if (this.upto > before && !this.isOfStream) this.calls = 0;
    if (this.upto > this.highest) this.gapAt = undefined;
    else this.gapAt ??= now;
  }

  get endsAt() {
    return this.lastAt + (this.isOfStream ? STREAM_AGE_MS : OTHER_AGE_MS);
  }

  /** When to call for missing pieces; Infinity for never. */
  get callAt() {
    if (this.calls >= (this.isOfStream ? STREAM_CALLS : OTHER_CALLS)) return Infinity;
    const due = Math.min(this.lastAt + TAIL_MS, (this.gapAt ?? Infinity) + GAP_MS);
    return Math.max(due, (this.calledAt ?? -Infinity) + AGAIN_MS);
  }

  /**
   * The pieces to call for now.
   * @param {number} now
   * @param {boolean} isUpload the sender waits for receipts
   */
  call(now, isUpload) {
    const end = this.lastAt + TAIL_MS <= now && !isUpload ? this.count : this.highest;
    this.gapAt = undefined;
    this.calledAt = now;
    this.calls += 1;
    const missing = [];
    for (let i = this.upto; i < end && missing.length < MAX_MISSING; i++) {
      if (!this.data.has(i)) missing.push(i);
    }
    return missing;
  }
}

/** Joins the pieces of any number of senders, within bounds. */
export class Joiner {
  /** @param {{ givesReceipts?: boolean }} [options] drivers give receipts for requests */
  constructor({ givesReceipts = false } = {}) {
    this._givesReceipts = givesReceipts;
    /** Receipts to send. The user of the joiner takes them.
     * @type {{ sender: string, message: number, upto: number }[]} */
    this.receipts = [];
    /** @type {Partial[]} the oldest first */
    this._partials = [];
    /** @type {Finished[]} */
    this._finished = [];
    /** Calls for pieces to send. The user of the joiner takes them.
     * @type {{ sender: string, message: number, index: number[] }[]} */
    this.calls = [];
    /** Messages that were given up. The user of the joiner takes them.
     * @type {{ sender: string, stream?: number }[]} */
    this.lost = [];
    /** Pieces that contradict themselves or others. */
    this.malformed = 0;
  }

  /**
   * A piece has arrived. Returns the bytes of the message if it was the last missing one.
   * @param {number} now
   * @param {string} sender
   * @param {Piece} piece
   */
  piece(now, sender, piece) {
    const { message, index, count, data } = piece;
    const isPossible = count >= 2 && count <= MAX_PIECES && index < count;
    if (!isPossible || data.length < 1 || data.length > MAX_PART) {
      this.malformed += 1;
      return undefined;
    }
    let partial = this._partials.find(
      (it) => it.number === message && it.count === count && it.sender === sender,
    );
    if (!partial) {
      const over = this._finished.find((done) => isOver(done, now, sender, piece));
      if (over) {
        if (over.isJoined && over.number === message) this._receipt(sender, message, count);
        return undefined;
      }
      partial = this._begin(now, sender, piece);
    }
    if (partial.data.has(index)) {
      this._receipt(sender, message, partial.upto);
      return undefined;
    }
    if (!partial.fits(piece)) {
      this.malformed += 1;
      return undefined;
    }
    partial.add(now, piece);
    if (partial.isTooLong) {
      this._giveUp(partial);
      this._note({ sender, number: message, at: now });
      return undefined;
    }
    if (partial.data.size === count) return this._finish(now, partial);
    const every = Math.max(1, Math.floor(RECEIPT_BYTES / (partial.length ?? RECEIPT_BYTES)));
    if (partial.told === undefined || partial.upto >= partial.told + every) {
      partial.told = partial.upto;
      this._receipt(sender, message, partial.upto);
    }
    while (this.memory > MAX_BYTES) this._giveUpOne();
    return undefined;
  }

  /** The time of `nextTimeout` may have come. @param {number} now */
  timeout(now) {
    for (const it of this._partials.filter((it) => it.endsAt <= now)) this._giveUp(it);
    for (const partial of this._partials) {
      if (partial.callAt > now) continue;
      const index = partial.call(now, this._givesReceipts);
      if (partial.isOfStream && index.length > Math.max(Math.floor(partial.count / 4), FEW)) {
        partial.calls = STREAM_CALLS; // the network is congested
      } else if (index.length > 0) {
        this.calls.push({ sender: partial.sender, message: partial.number, index });
      }
    }
  }

  /** When to call `timeout`; Infinity for never. */
  get nextTimeout() {
    return Math.min(Infinity, ...this._partials.map((it) => Math.min(it.endsAt, it.callAt)));
  }

  /** A sender is gone, and another one may get its name and numbers. @param {string} sender */
  forget(sender) {
    for (const it of this._partials.filter((it) => it.sender === sender)) this._giveUp(it);
    this._finished = this._finished.filter((it) => it.sender !== sender);
  }

  /** The memory of all unfinished messages, in bytes. */
  get memory() {
    return this._partials.reduce((sum, it) => sum + it.memory, 0);
  }

  /**
   * @param {number} now
   * @param {string} sender
   * @param {Piece} piece
   */
  _begin(now, sender, piece) {
    const own = this._partials.filter((it) => it.sender === sender);
    if (own.length >= MAX_OF_SENDER) this._giveUp(own[0]);
    if (this._partials.length >= MAX_PARTIALS) this._giveUpOne();
    const partial = new Partial(now, sender, piece);
    this._partials.push(partial);
    return partial;
  }

  /**
   * @param {number} now
   * @param {Partial} done
   */
  _finish(now, done) {
    const { sender, number, stream } = done;
    this._partials = this._partials.filter(
      (it) => it !== done && !(it.sender === sender && it.number === number),
    );
    for (const other of [...this._partials]) {
      const isOfSame = done.isOfStream && other.sender === sender && other.stream === stream;
      if (isOfSame && isNewer(number, other.number)) this._giveUp(other);
    }
    this._receipt(sender, number, done.count);
    this._note({ sender, number, stream, at: now, isJoined: true });
    const bytes = new Uint8Array([...done.data.values()].reduce((sum, it) => sum + it.length, 0));
    let at = 0;
    for (let i = 0; i < done.count; i++) {
      const data = /** @type {Uint8Array} */ (done.data.get(i));
      bytes.set(data, at);
      at += data.length;
    }
    return bytes;
  }

  /** @param {string} sender @param {number} message @param {number} upto */
  _receipt(sender, message, upto) {
    if (this._givesReceipts) this.receipts.push({ sender, message, upto });
  }

  /** @param {Finished} finished */
  _note(finished) {
    this._finished.push(finished);
    if (this._finished.length > MAX_FINISHED) this._finished.shift();
  }

  /** The oldest message of the sender that needs most memory. */
  _giveUpOne() {
    /** @type {Map<string, number>} */
    const memory = new Map();
    for (const it of this._partials) memory.set(it.sender, (memory.get(it.sender) ?? 0) + it.memory);
    const [greedy] = [...memory].reduce((most, it) => (it[1] > most[1] ? it : most));
    const oldest = this._partials.find((it) => it.sender === greedy);
    if (oldest) this._giveUp(oldest);
  }

  /** @param {Partial} partial */
  _giveUp(partial) {
    this._partials.splice(this._partials.indexOf(partial), 1);
    this.lost.push({ sender: partial.sender, stream: partial.stream });
  }
}

/**
 * Whether a piece belongs to a message that is finished, or outdated by a finished one.
 * @param {Finished} done
 * @param {number} now
 * @param {string} sender
 * @param {Piece} piece
 */
function isOver(done, now, sender, piece) {
  if (done.sender !== sender) return false;
  if (done.number === piece.message) return true;
  const isOfSame = done.stream !== undefined && done.stream === piece.stream;
  return isOfSame && isNewer(done.number, piece.message) && now < done.at + OUTDATES_MS;
}

/**
 * Numbers wrap around after 32 bits.
 * @param {number} number
 * @param {number} than
 */
function isNewer(number, than) {
  const ahead = (number - than) >>> 0;
  return ahead > 0 && ahead < 2 ** 31;
}
