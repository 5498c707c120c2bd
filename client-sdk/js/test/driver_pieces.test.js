// Long messages of drivers, with an own clock.

import assert from "node:assert/strict";
import { test } from "node:test";
import { driverMsg } from "../src/driver/messages.js";
import { Abilities, Paced } from "../src/driver/paced.js";
import { Joiner } from "../src/pieces.js";
import { Uploads } from "../src/upload.js";
import { create, fromBinary } from "../src/protobuf.js";

/** @param {Uint8Array} message */
const pieceOf = (message) => fromBinary(driverMsg, message).piece;
/** @param {number} length */
const bytes = (length) => Uint8Array.from({ length }, (_, i) => i % 251);

test("a message goes in bursts, and a client joins it", () => {
  const paced = new Paced(6);
  const long = bytes(40_000);
  paced.push(0, long, undefined, new Map([[1180, [3, 4]]]));
  const joiner = new Joiner();
  let joined;
  let now = 0;
  let bursts = 0;
  while (!joined && now < 1000) {
    const burst = paced.poll(now);
    if (burst) {
      assert.deepEqual(burst.clients, [3, 4]);
      assert.ok(burst.pieces.length <= 16);
      bursts += 1;
      for (const piece of burst.pieces) joined = joiner.piece(now, "1:0", pieceOf(piece)) ?? joined;
    } else now = paced.nextTimeout;
  }
  assert.deepEqual(joined, long);
  assert.deepEqual([bursts, now], [3, 10]);
});

test("what is called for comes again, but not without an end", () => {
  const paced = new Paced(6);
  paced.push(0, bytes(5000), undefined, new Map([[1180, [3]]]));
  const first = paced.poll(0);
  assert.equal(first?.pieces.length, 5);
  const call = { message: 7, index: [1, 4, 9] };
  paced.missing(4, call); // another client
  assert.equal(paced.poll(1), undefined);
  for (let i = 0; i < 2; i++) {
    paced.missing(3, call);
    assert.deepEqual(paced.poll(1)?.pieces.map((it) => pieceOf(it).index), [1, 4]);
  }
  // As many pieces again as the message has.
  paced.missing(3, call);
  assert.deepEqual(paced.poll(1)?.pieces.map((it) => pieceOf(it).index), [1]);
  paced.missing(3, call);
  assert.equal(paced.poll(1), undefined);
  // After a while it is forgotten.
  assert.equal(paced.poll(600), undefined);
  assert.equal(paced.nextTimeout, Infinity);
});

test("a message of a stream drops one that is overtaken, and a client that is gone gets nothing", () => {
  const paced = new Paced(0);
  for (let i = 0; i < 3; i++) paced.push(i, bytes(60_000), 261, new Map([[1180, [3]]]));
  const numbers = new Set();
  for (let now = 3; now < 2000; now++) {
    for (let burst = paced.poll(now); burst; burst = paced.poll(now)) {
      for (const piece of burst.pieces) numbers.add(pieceOf(piece).message);
    }
  }
  assert.deepEqual([...numbers], [2, 3]);
  paced.push(0, bytes(60_000), 261, new Map([[1180, [3]]]));
  paced.forget(3);
  assert.equal(paced.poll(1), undefined);
});

test("clients get what they join", () => {
  const abilities = new Abilities();
  const joins = (/** @type {any} */ one) => create(driverMsg, { type: 1, ...(one ? { joins: one } : {}) });
  abilities.note([1], joins(undefined));
  abilities.note([2], joins({}));
  abilities.note([3], joins({ pieceBytes: 99_000 }));
  abilities.note([4], joins({ longest: 50_000, pieceBytes: 10 }));
  /** @type {[number, [number, number[]][]][]} */
  const table = [
    [40_000, [[1180, [2]], [32_000, [3]], [1024, [4]]]],
    [60_000, [[1180, [2]], [32_000, [3]]]],
    [1100, [[550, [2, 3]], [1024, [4]]]],
    [9 << 20, []],
  ];
  for (const [length, groups] of table) assert.deepEqual([...abilities.groups([1, 2, 3, 4], length)], groups, String(length));
  abilities.note([2], joins(undefined));
  abilities.forget(3);
  assert.deepEqual([...abilities.groups([1, 2, 3, 4], 40_000)], [[1024, [4]]]);
});

test("only pictures go in pieces although they fit into a frame, to clients that join them", () => {
  const abilities = new Abilities();
  abilities.note([2], create(driverMsg, { type: 1, joins: {} }));
  const message = (/** @type {number} */ field) => {
    const made = create(driverMsg, { type: 1 });
    made.$rest = [{ number: field, wire: 2, bytes: new Uint8Array(1) }];
    return made;
  };
  assert.equal(abilities.cuts([2], message(261), 2000), true);
  assert.equal(abilities.cuts([2], message(262), 2000), false);
  assert.equal(abilities.cuts([2], message(261), 1100), false);
  assert.equal(abilities.cuts([1, 2], message(261), 2000), false);
});

test("a request in pieces goes on with the receipts of the driver", () => {
  const joiner = new Joiner({ givesReceipts: true });
  const uploads = new Uploads(0);
  const long = bytes(300_000);
  uploads.begin(0, "230:0", 5, long, 1180);
  let joined;
  let rounds = 0;
  for (let all = uploads.poll(); all.length > 0 && rounds < 100; all = uploads.poll()) {
    rounds += 1;
    for (const { piece } of all) joined = joiner.piece(rounds, "3", piece) ?? joined;
    for (const receipt of joiner.receipts.splice(0)) uploads.receipt(rounds, "230:0", receipt);
  }
  assert.deepEqual(joined, long);
  assert.ok(rounds > 3, String(rounds));
  assert.equal(uploads.nextTimeout, Infinity);
  // A piece that comes again gets a receipt: the one before may be lost.
  assert.equal(joiner.piece(101, "3", { message: 1, index: 0, count: 255, data: long.subarray(0, 1180) }), undefined);
  assert.deepEqual(joiner.receipts, [{ sender: "3", message: 1, upto: 255 }]);
});

test("a joiner of clients gives no receipts", () => {
  const joiner = new Joiner();
  const data = new Uint8Array(10);
  joiner.piece(0, "3", { message: 1, index: 0, count: 2, data });
  joiner.piece(0, "3", { message: 1, index: 1, count: 2, data });
  assert.deepEqual(joiner.receipts, []);
});
