// Frames in a stream of bytes. PURE.

import { MAX_PART } from "../frame.js";
import { create, fromBinary, toBinary } from "../protobuf.js";
import { OURS, messageOf } from "../schemas.js";

const driverHdr = messageOf(OURS, "amber.DriverHdr");

/** A frame, with its header as bytes and its message as bytes. @typedef {{ header: Uint8Array, message: Uint8Array }} Frame */

/** Splits a stream, received in parts of any size, into frames. */
export class FrameReader {
  constructor() {
    /** @type {Uint8Array[]} */
    this._parts = [];
    this._length = 0;
    /** How many bytes the next frame has at least. */
    this._needed = 4;
  }

  /**
   * The frames that a part of the stream completes. Throws a RangeError if the stream is no sequence of
   * frames: nothing that follows can be read.
   * @param {Uint8Array} part
   * @returns {Generator<Frame>}
   */
  *feed(part) {
    this._parts.push(part);
    this._length += part.length;
    if (this._length < this._needed) return;
    const all = new Uint8Array(this._length);
    let end = 0;
    for (const it of this._parts) {
      all.set(it, end);
      end += it.length;
    }
    let at = 0;
    try {
      for (;;) {
        const rest = all.length - at;
        this._needed = 4;
        if (rest < this._needed) return;
        const header = lengthAt(all, at);
        this._needed += header;
        if (rest < this._needed) return;
        const message = lengthAt(all, at + 2 + header);
        this._needed += message;
        if (rest < this._needed) return;
        const start = at;
        at += this._needed;
        yield { header: all.subarray(start + 2, start + 2 + header), message: all.subarray(start + 4 + header, at) };
      }
    } finally {
      this._parts = at < all.length ? [all.subarray(at)] : [];
      this._length = all.length - at;
    }
  }
}

/** @param {Uint8Array} bytes @param {number} at */
function lengthAt(bytes, at) {
  const length = (bytes[at] << 8) | bytes[at + 1];
  if (length > MAX_PART) throw new RangeError(`a part of ${length} bytes is no part of a frame (at most ${MAX_PART})`);
  return length;
}

/**
 * The device and the clients in a header. Throws if the bytes are not one.
 * @param {Uint8Array} bytes
 * @returns {{ hasDevice: boolean, clients: number[] }}
 */
export function readHeader(bytes) {
  const header = fromBinary(driverHdr, bytes);
  return { hasDevice: Object.hasOwn(header, "deviceType"), clients: header.clientIDs };
}

/** The header of a frame to these clients, or to the mediator. @param {number[]} clients */
export function headerTo(clients) {
  return toBinary(driverHdr, create(driverHdr, { clientIDs: clients }));
}
