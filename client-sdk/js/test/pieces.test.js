// Tables for messages that arrive in pieces.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Joiner } from "../src/pieces.js";

/**
 * @param {number} message
 * @param {string} text
 * @param {number} length of a piece
 * @param {number} [stream]
 */
function cut(message, text, length, stream) {
  const all = Buffer.from(text);
  const count = Math.ceil(all.length / length);
  return Array.from({ length: count }, (_, index) => {
    const data = new Uint8Array(all.subarray(index * length, (index + 1) * length));
    return { message, index, count, data, stream };
  });
}

/** @param {Uint8Array | undefined} joined */
const text = (joined) => joined && Buffer.from(joined).toString();

test("pieces in any order, also doubled, make the message once", () => {
  const pieces = cut(7, "abcdefgh", 3);
  for (const order of [[0, 1, 2], [2, 1, 0], [1, 1, 0, 2], [2, 0, 0, 1]]) {
    const joiner = new Joiner();
    const joined = order.map((i) => text(joiner.piece(0, "17:0", pieces[i])));
    assert.deepEqual(joined.filter(Boolean), ["abcdefgh"], String(order));
    assert.ok(joined.at(-1));
    // A late copy starts nothing.
    assert.equal(joiner.piece(1, "17:0", pieces[0]), undefined);
    assert.equal(joiner.nextTimeout, Infinity);
    assert.equal(joiner.malformed, 0);
  }
});

test("pieces of two senders do not mix", () => {
  const joiner = new Joiner();
  const [a, b] = [cut(7, "abcd", 2), cut(7, "efgh", 2)];
  joiner.piece(0, "17:0", a[0]);
  joiner.piece(0, "17:1", b[1]);
  assert.equal(text(joiner.piece(0, "17:1", b[0])), "efgh");
  assert.equal(text(joiner.piece(0, "17:0", a[1])), "abcd");
});

test("pieces that contradict themselves or others are dropped", () => {
  const [first, middle, last] = cut(7, "abcdefgh", 3);
  const bad = [
    { ...first, count: 1 },
    { ...first, count: 8193 },
    { ...first, index: 3 },
    { ...first, data: new Uint8Array() },
    { ...first, data: new Uint8Array(4) },
    { ...last, data: new Uint8Array(4) },
    { ...first, stream: 261 },
  ];
  for (const piece of bad) {
    const joiner = new Joiner();
    joiner.piece(0, "17:0", middle);
    assert.equal(joiner.piece(0, "17:0", piece), undefined);
    assert.equal(joiner.malformed, 1, JSON.stringify(piece));
    joiner.piece(0, "17:0", first);
    assert.equal(text(joiner.piece(0, "17:0", last)), "abcdefgh");
  }
});

test("a gap is called for after 5 ms, a missing end after 10 ms, and the same again after 12 ms", () => {
  const pieces = cut(7, "abcdefgh", 2);
  const joiner = new Joiner();
  joiner.piece(0, "17:0", pieces[0]);
  assert.equal(joiner.nextTimeout, 10);
  joiner.piece(1, "17:0", pieces[2]);
  assert.equal(joiner.nextTimeout, 6);
  joiner.timeout(5);
  assert.deepEqual(joiner.calls, []);
  joiner.timeout(6);
  joiner.timeout(11);
  joiner.timeout(18);
  assert.deepEqual(joiner.calls, [
    { sender: "17:0", message: 7, index: [1] },
    { sender: "17:0", message: 7, index: [1, 3] },
  ]);
  joiner.piece(19, "17:0", pieces[3]);
  assert.equal(text(joiner.piece(20, "17:0", pieces[1])), "abcdefgh");
});

test("a message of a stream is called for three times, and given up after a second", () => {
  const joiner = new Joiner();
  joiner.piece(0, "17:0", cut(7, "abcdefgh", 2, 261)[0]);
  for (let now = 0; now < 1000; now++) joiner.timeout(now);
  assert.equal(joiner.calls.length, 3);
  assert.deepEqual(joiner.lost, []);
  joiner.timeout(1000);
  assert.deepEqual(joiner.lost, [{ sender: "17:0", stream: 261 }]);
  assert.equal(joiner.nextTimeout, Infinity);
});

test("nothing is called for if much of a message of a stream is missing", () => {
  const joiner = new Joiner();
  joiner.piece(0, "17:0", cut(7, "abcdefgh", 1, 261)[0]);
  joiner.timeout(10);
  assert.deepEqual(joiner.calls, []);
});

test("a newer message of a stream ends the older ones", () => {
  const joiner = new Joiner();
  const [old, next] = [cut(0xffff_ffff, "abcd", 2, 261), cut(0, "efgh", 2, 261)];
  joiner.piece(0, "17:0", old[0]);
  joiner.piece(0, "17:0", next[0]);
  assert.equal(text(joiner.piece(0, "17:0", next[1])), "efgh");
  assert.deepEqual(joiner.lost, [{ sender: "17:0", stream: 261 }]);
  assert.equal(joiner.piece(1, "17:0", old[1]), undefined);
  assert.equal(joiner.nextTimeout, Infinity);
});

test("memory is bounded", () => {
  const joiner = new Joiner();
  for (let i = 0; i < 400; i++) {
    const data = new Uint8Array(32_000);
    for (let index = 0; index < 20; index++) {
      joiner.piece(0, `17:${i}`, { message: i, index, count: 100, data, stream: undefined });
    }
    assert.ok(joiner.memory <= 16 << 20);
  }
  assert.ok(joiner.lost.length > 300);
  for (let number = 0; number < 9; number++) joiner.piece(0, "1:0", cut(number, "abcd", 2)[0]);
  joiner.forget("1:0");
  assert.equal(joiner.lost.filter(({ sender }) => sender === "1:0").length, 9);
});

test("a message that would be too long is given up", () => {
  const joiner = new Joiner();
  const data = new Uint8Array(32_000);
  joiner.piece(0, "1:0", { message: 1, index: 0, count: 8192, data, stream: undefined });
  assert.deepEqual(joiner.lost, [{ sender: "1:0", stream: undefined }]);
  joiner.piece(0, "1:0", { message: 1, index: 1, count: 8192, data, stream: undefined });
  assert.equal(joiner.memory, 0);
});
