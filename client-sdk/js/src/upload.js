// Sends requests that are longer than a frame: in pieces, as the receipts of the driver allow. PURE: times
// are arguments, in milliseconds. docs/notes/pieces.md in the repository has the rules.

// The same numbers as in proto/pieces/upload.rs.
const AHEAD = 64;
const AHEAD_BYTES = 256_000;
const PATIENCE_MS = 100;
const TRIES = 3;
const GIVE_UP_MS = 5000;

/** A request in pieces, under way to a driver. */
class Upload {
  /**
   * @param {number} now
   * @param {{ device: string, message: number, synNum: number | undefined, bytes: Uint8Array, pieceBytes: number }} given
   */
  constructor(now, { device, message, synNum, bytes, pieceBytes }) {
    this.device = device;
    this.message = message;
    /** The number of the request; undefined without a call. */
    this.synNum = synNum;
    this.bytes = bytes;
    this._pieceBytes = pieceBytes;
    this.count = Math.ceil(bytes.length / pieceBytes);
    /** The next piece that was never sent. */
    this._next = 0;
    /** All pieces before this one have arrived; undefined before the first receipt. @type {number | undefined} */
    this._upto = undefined;
    /** @type {number[]} */
    this._again = [];
    this._progressAt = now;
    this.due = now + PATIENCE_MS;
    this._tries = 0;
  }

  /** The next piece that may be sent now. */
  poll() {
    const index = this._again.shift() ?? (this._next < this._end ? this._next++ : undefined);
    if (index === undefined) return undefined;
    const start = index * this._pieceBytes;
    const data = this.bytes.subarray(start, start + this._pieceBytes);
    return { message: this.message, index, count: this.count, data };
  }

  /** A receipt. Returns whether all pieces have arrived. @param {number} now @param {number} told */
  receipt(now, told) {
    const upto = Math.min(told, this._next);
    if (this._upto === undefined || upto > this._upto) {
      this._upto = upto;
      this._progressAt = now;
      this.due = now + PATIENCE_MS;
      this._tries = 0;
      this._again = this._again.filter((index) => index >= upto);
    }
    return this._upto === this.count;
  }

  /** The driver calls for pieces. @param {number[]} all */
  missing(all) {
    const upto = this._upto ?? 0;
    for (const index of all) {
      if (index >= upto && index < this._next && !this._again.includes(index)) this._again.push(index);
    }
  }

  /**
   * The time of `due` may have come.
   * @param {number} now
   * @returns {"goes on" | "not understood" | "stuck"}
   */
  timeout(now) {
    if (now < this.due) return "goes on";
    if (this._upto === undefined && this._tries === TRIES) return "not understood";
    if (now >= this._progressAt + GIVE_UP_MS) return "stuck";
    const first = this._upto ?? 0;
    if (first < this._next && !this._again.includes(first)) this._again.push(first);
    this.due = now + PATIENCE_MS * 2 ** Math.min(this._tries, TRIES);
    this._tries += 1;
    return "goes on";
  }

  /** The end of the pieces that may be under way: the first one alone, until the driver joins it. */
  get _end() {
    if (this._upto === undefined) return 1;
    const ahead = Math.max(1, Math.min(AHEAD, Math.floor(AHEAD_BYTES / this._pieceBytes)));
    return Math.min(this.count, this._upto + ahead);
  }
}

/** All requests in pieces of a client. */
export class Uploads {
  /** @param {number} lastNumber messages have the numbers after this one */
  constructor(lastNumber = Math.floor(Math.random() * 2 ** 32)) {
    this._lastNumber = lastNumber;
    /** @type {Upload[]} */
    this._all = [];
  }

  /**
   * @param {number} now
   * @param {string} device
   * @param {number | undefined} synNum
   * @param {Uint8Array} bytes
   * @param {number} pieceBytes
   */
  begin(now, device, synNum, bytes, pieceBytes) {
    this._lastNumber = (this._lastNumber + 1) >>> 0;
    this._all.push(new Upload(now, { device, message: this._lastNumber, synNum, bytes, pieceBytes }));
  }

  /** The pieces to send now, each with its device. The first one has the number of the request. */
  poll() {
    return this._all.flatMap((upload) => {
      const pieces = [];
      for (let piece = upload.poll(); piece; piece = upload.poll()) {
        pieces.push({ device: upload.device, synNum: piece.index === 0 ? upload.synNum : undefined, piece });
      }
      return pieces;
    });
  }

  /**
   * @param {number} now
   * @param {string} device
   * @param {{ message: number, upto: number }} told
   */
  receipt(now, device, { message, upto }) {
    const upload = this._find(device, message);
    if (upload?.receipt(now, upto)) this.end((it) => it === upload);
  }

  /** @param {string} device @param {{ message: number, index: number[] }} told */
  missing(device, { message, index }) {
    this._find(device, message)?.missing(index);
  }

  /** The time of `nextTimeout` may have come. Returns the uploads whose drivers cannot join pieces.
   * @param {number} now */
  timeout(now) {
    const verdicts = new Map(this._all.map((it) => [it, it.timeout(now)]));
    this.end((it) => verdicts.get(it) !== "goes on");
    return [...verdicts].filter(([, verdict]) => verdict === "not understood").map(([it]) => it);
  }

  /** When to call `timeout`; Infinity for never. */
  get nextTimeout() {
    return Math.min(Infinity, ...this._all.map((it) => it.due));
  }

  /** Ends those that are over, such as those of calls that have ended. @param {(upload: Upload) => boolean} isOver */
  end(isOver) {
    this._all = this._all.filter((it) => !isOver(it));
  }

  /** @param {string} device @param {number} message */
  _find(device, message) {
    return this._all.find((it) => it.device === device && it.message === message);
  }
}
