// Frames: two parts, each after its length in two bytes. PURE.

/** The most bytes of a part. */
export const MAX_PART = 32_767;

/**
 * A header that names a device. Fields of 0 are written out.
 * @param {number} type
 * @param {number} id
 */
export function header(type, id) {
  return Uint8Array.from([0x08, ...varint(type), 0x10, ...varint(id)]);
}

/**
 * @param {Uint8Array} head
 * @param {Uint8Array} message
 */
export function encodeFrame(head, message) {
  const frame = new Uint8Array(4 + head.length + message.length);
  let at = 0;
  for (const part of [head, message]) {
    if (part.length > MAX_PART) {
      throw new RangeError(`${part.length} bytes are too long for a frame (at most ${MAX_PART})`);
    }
    frame[at] = part.length >> 8;
    frame[at + 1] = part.length & 0xff;
    frame.set(part, at + 2);
    at += 2 + part.length;
  }
  return frame;
}

/**
 * The parts of a datagram; undefined if it is not exactly one frame.
 * @param {Uint8Array} bytes
 */
export function decodeFrame(bytes) {
  const parts = [];
  let at = 0;
  for (let i = 0; i < 2; i++) {
    if (bytes.length < at + 2) return undefined;
    const length = (bytes[at] << 8) | bytes[at + 1];
    at += 2 + length;
    if (length > MAX_PART || bytes.length < at) return undefined;
    parts.push(bytes.subarray(at - length, at));
  }
  return at === bytes.length ? { header: parts[0], message: parts[1] } : undefined;
}

/** @param {number} value an int32; negative ones have ten bytes */
function varint(value) {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes = [];
  while (rest > 0x7fn) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  return [...bytes, Number(rest)];
}
