'use strict';
// Joins the pieces of one answer that is longer than a frame: see docs/PROTOCOL.md.

const MAX_LONG = 8 << 20; // bytes of a long message
const MAX_PIECES = 8192;
const MAX_PART = 32767; // bytes of a piece
const MAX_MISSING = 400; // pieces in one call for missing ones

class Joiner {
  constructor() {
    this.parts = null; // those that have come, by their index; null before the first
  }

  get hasBegun() {
    return this.parts !== null;
  }

  /** Takes a piece. Returns the message, a complete DriverMsg, if it was the last missing one; else null. */
  join(piece) {
    const { message, index, count, data } = piece;
    if (Object.hasOwn(piece, 'stream')) return null; // published data, not an answer
    // A piece that contradicts itself.
    if (count < 2 || count > MAX_PIECES || index >= count) return null;
    if (data.length === 0 || data.length > MAX_PART) return null;
    const isLast = index + 1 === count;
    if (this.parts === null || ((message - this.number) | 0) > 0) {
      // How long the others are is known only with one of them: the last one is called for.
      if (isLast || (count - 1) * data.length >= MAX_LONG) return null;
      Object.assign(this, { number: message, count, length: data.length, parts: new Map() });
    }
    // A piece of an older message, one that contradicts the others, or one that came twice.
    if (message !== this.number || count !== this.count || this.parts.has(index)) return null;
    if (isLast ? data.length > this.length : data.length !== this.length) return null;
    this.parts.set(index, data);
    if (this.parts.size < count) return null;
    return Buffer.concat(Array.from({ length: count }, (_, i) => this.parts.get(i)));
  }

  /** The fields of the call for the pieces that have not come. */
  call() {
    const index = [];
    for (let i = 0; i < this.count && index.length < MAX_MISSING; i++) {
      if (!this.parts.has(i)) index.push(i);
    }
    return { missing: { message: this.number, index } };
  }
}

module.exports = { Joiner };
