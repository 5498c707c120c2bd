// A driver between two streams, as its mediator sees it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Refused } from "../src/driver/requests.js";
import { FrameReader, headerTo } from "../src/driver/frames.js";
import { driverMsg } from "../src/driver/messages.js";
import { encodeFrame } from "../src/frame.js";
import { Joiner } from "../src/pieces.js";
import { fromBinary } from "../src/protobuf.js";
import { readDescription } from "../src/schemas.js";
import { Uploads } from "../src/upload.js";
import { Bench, CRANE, Crane, described } from "./crane.js";
import { until } from "./fake.js";

const TEST = { timeout: 60_000 };
const [DATA, PING, PONG, CLIENT_DIED, SUBSCRIBE, UNSUBSCRIBE] = [1, 2, 3, 4, 6, 7];

test("frames come out of a stream whatever its parts are", () => {
  const frames = [[new Uint8Array(), new Uint8Array()], [headerTo([5]), new Uint8Array(300)], [headerTo([]), Uint8Array.of(1)]];
  const all = Buffer.concat(frames.map(([header, message]) => encodeFrame(header, message)));
  for (const size of [1, 2, 3, 7, 100, all.length]) {
    const reader = new FrameReader();
    const found = [];
    for (let at = 0; at < all.length; at += size) found.push(...reader.feed(new Uint8Array(all.subarray(at, at + size))));
    assert.deepEqual(found.map(({ header, message }) => [header, message]), frames, String(size));
  }
  assert.throws(() => [...new FrameReader().feed(Uint8Array.of(0xff, 0xff, 0, 0))], RangeError);
});

test("a PING is answered at once, with its header, also while a method runs", TEST, async () => {
  const crane = new Crane();
  let isWriting = false;
  crane.write = () => {
    isWriting = true;
    return new Promise(() => {});
  };
  const bench = new Bench(crane);
  bench.send(5, {}, { write: "for ever" });
  await until(() => isWriting, "it writes");
  bench.send([], { type: PING, synNum: 7 });
  bench.send(5, { type: PING });
  bench.send(5, { type: PING, synNum: 8 }, { want_outcome: true });
  const withOutcome = await bench.answer(8);
  const pongs = bench.written.filter(({ message }) => message.type === PONG);
  assert.deepEqual(pongs.map(({ clients, message }) => [clients, Object.hasOwn(message, "ackNum") && message.ackNum]),
    [[[], 7], [[5], false], [[5], 8]]);
  assert.deepEqual(withOutcome.get("outcome"), {});
  assert.equal(pongs[0].get("outcome"), undefined);
  // The end does not wait for it for ever.
  assert.equal(await bench.end(), 0);
  assert.deepEqual(crane.events, ["start", "stop"]);
});

test("requests are answered if they have a number, in their order", TEST, async () => {
  const crane = new Crane();
  const bench = new Bench(crane);
  bench.send(5, {}, { write: "a" });
  bench.send([6, 7], { synNum: 300 }, { write: "b" });
  bench.send(8, { synNum: 4_294_967_295 }, { get_height: true });
  const height = await bench.answer(4_294_967_295);
  assert.deepEqual([height.clients, height.message.type, height.get("height")], [[8], DATA, 1.5]);
  const written = await bench.answer(300);
  assert.deepEqual([written.clients, written.get("written")], [[6, 7], "b"]);
  assert.deepEqual(crane.events, ["start", "5 writes", "6 writes"]);
  assert.equal(bench.written.filter(({ message }) => Object.hasOwn(message, "ackNum")).length, 2);
  await bench.end();
});

test("refusals and failures reach the client, and nobody else", TEST, async () => {
  const crane = new Crane();
  crane.write = async (text) => {
    if (text === "refuse") throw new Refused("too long", { hint: "say less" });
    throw new TypeError("no display");
  };
  crane.lift = () => {
    throw new Refused("too heavy");
  };
  crane.height = () => /** @type {any} */ ("high");
  const bench = new Bench(crane);
  bench.send(5, { synNum: 1 }, { write: "refuse" });
  bench.send(5, { synNum: 2 }, { write: "fail" });
  bench.send(5, { synNum: 3 }, { lift: { speed: 1 }, want_outcome: true });
  bench.send(5, { synNum: 4 }, { lift: { speed: 1 } }); // not asked for the outcome
  bench.send(5, { synNum: 5 }, { get_height: true, want_outcome: true });
  bench.send(5, { synNum: 6 }, { why_not: "?", want_outcome: true });
  assert.match((await bench.answer(6)).get("outcome").refused, /not a request for this device/);
  assert.equal((await bench.answer(1)).get("why_not"), "too long");
  assert.equal((await bench.answer(2)).get("why_not"), "the driver failed: TypeError: no display; `amber logs 230:0` shows where");
  assert.equal((await bench.answer(3)).get("outcome").refused, "too heavy");
  assert.match((await bench.answer(5)).get("outcome").refused, /^the driver failed: TypeError: height is a number/);
  assert.ok(!bench.written.some(({ message }) => message.ackNum === 4));
  assert.ok(bench.logged.some((line) => line.includes("no display") && line.includes("driver.test.js")), "where it failed");
  assert.ok(bench.logged.some((line) => line.includes("refused lift: too heavy")));
  assert.equal(await bench.end(), 0);
});

test("what is not understood leaves the driver unharmed", TEST, async () => {
  const bench = new Bench(new Crane());
  const good = bench.bytes({ synNum: 9 }, { get_height: true });
  bench.sendBytes(5, new Uint8Array());
  bench.sendBytes(5, Uint8Array.of(0xff, 0xff));
  bench.sendBytes(5, Uint8Array.of(0x10, 0x63)); // an unknown type
  bench.sendBytes(5, Uint8Array.of(0x10, 1, 0x18, 1, 0x92, 0x08, 2, 0x08)); // lift, cut off
  bench.sendBytes(5, Uint8Array.of(0x10, 1, 0x18, 2, 0x92, 0x08, 0)); // lift without its speed
  bench.sendBytes([], good); // without a client
  bench.input.write(encodeFrame(Uint8Array.of(0xff), good)); // an invalid header
  for (const type of [PONG, 5, UNSUBSCRIBE, CLIENT_DIED]) bench.send(5, { type });
  bench.sendBytes(5, bench.bytes({ synNum: 10 }, { get_height: true }));
  assert.equal((await bench.answer(10)).get("height"), 1.5);
  assert.equal(bench.written.filter(({ message }) => Object.hasOwn(message, "ackNum")).length, 1);
  assert.deepEqual(/** @type {any} */ (bench.pipe)._driver.speeds, []);
  assert.ok(bench.logged.length >= 4, bench.logged.join("\n"));
  await bench.end();
});

test("thousands of changed messages leave the driver unharmed", TEST, async () => {
  const crane = new Crane();
  crane.periodMs = 3_600_000;
  const bench = new Bench(crane);
  // The same numbers in each run.
  let seed = 1;
  const below = (/** @type {number} */ most) => (seed = (seed * 48_271) % 2_147_483_647) % most;
  const joins = { pieceBytes: 1180 };
  const good = [
    bench.bytes({ synNum: 1, joins }, { lift: { speed: 10 }, valid_ms: 100, want_outcome: true, for_client: 3 }),
    bench.bytes({ synNum: 2 }, { get_height: true }),
    bench.bytes({ synNum: 3 }, { write: "text" }),
    bench.bytes({ synNum: 4 }, { watch: { period: 3_000_000_000, on: true } }),
    bench.bytes({ synNum: 5 }, { lease_request: { action: "WAIT", name: "a", periodMs: 500 } }),
    bench.bytes({ synNum: 6 }, { halt_request: { halt: true, name: "b" } }),
    bench.bytes({ piece: { message: 1, index: 0, count: 3, data: new Uint8Array(20) } }),
    bench.bytes({ missing: { message: 1, index: [1, 2, 3] } }),
    bench.bytes({ type: SUBSCRIBE, joins: { longest: 1, pieceBytes: 2 } }),
    bench.bytes({ type: PING, synNum: 7 }),
    bench.bytes({ type: CLIENT_DIED }),
  ];
  for (let i = 0; i < 5000; i++) {
    const bytes = good[below(good.length)].slice(0, below(4) === 0 ? below(20) : undefined);
    for (let n = below(3); n >= 0 && bytes.length > 0; n--) bytes[below(bytes.length)] = below(256);
    const header = headerTo([below(5)]);
    if (below(20) === 0) header[below(header.length)] = below(256);
    bench.input.write(encodeFrame(header, bytes));
    if (i % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  bench.send(5, { synNum: 4711 }, { get_height: true });
  assert.equal((await bench.answer(4711)).get("height"), 1.5);
  assert.equal(await bench.end(), 0);
  // A stack would be a mistake of this package: each of them is about a value that does not fit.
  const mistakes = bench.logged.filter((line) => /TypeError: Cannot|is not a function|is not iterable/.test(line));
  assert.deepEqual(mistakes, []);
});

test("what is no frame ends the driver, which stops the device", TEST, async () => {
  const crane = new Crane();
  const bench = new Bench(crane);
  bench.input.write(Uint8Array.of(0xff, 0xff, 0xff, 0xff));
  assert.equal(await bench.ended, 1);
  assert.deepEqual(crane.events, ["start", "stop"]);
});

test("subscribers get what the methods of streams return", TEST, async () => {
  const crane = new Crane();
  const bench = new Bench(crane);
  bench.send(6, { type: SUBSCRIBE });
  bench.send(5, { type: SUBSCRIBE });
  await bench.find(({ clients }) => String(clients) === "5,6", "both get it");
  const data = bench.written.find(({ clients }) => clients.length > 0);
  assert.deepEqual([data?.message.ackNum, data?.get("height")], [0, 2.5]);
  assert.deepEqual(bench.port.subscribers, [5, 6]);
  bench.send(5, { type: UNSUBSCRIBE });
  bench.send(6, { type: CLIENT_DIED });
  await until(() => crane.events.includes("6 is gone"), "it hears of it");
  const { length } = bench.written;
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(bench.written.length, length);
  await bench.end();
});

test("a driver publishes whenever it likes", TEST, async () => {
  const crane = new Crane();
  crane.periodMs = 3_600_000;
  const bench = new Bench(crane);
  bench.port.publishHeights(1); // nobody listens
  bench.send(5, { type: SUBSCRIBE });
  await until(() => bench.port.subscribers.length > 0, "a subscriber");
  bench.port.publishHeights(7);
  const data = await bench.find((it) => it.get("height") !== undefined, "the height");
  assert.deepEqual([data.clients, data.get("height"), data.message.ackNum], [[5], 7, 0]);
  assert.throws(() => bench.port.publishHeights("high"), TypeError);
  await bench.end();
});

test("each client has its period of a stream that it starts by a request", TEST, async () => {
  const crane = new Crane();
  crane.text = "hello";
  const bench = new Bench(crane);
  bench.send(5, {}, { watch: { period: 20, on: true } });
  bench.send(6, {}, { watch: { on: true } });
  await bench.find((it) => it.get("written") === "hello" && String(it.clients) === "5", "the text");
  // Those without a period get what the driver publishes.
  bench.port.publishTexts("now");
  const now = await bench.find((it) => it.get("written") === "now", "the other text");
  assert.deepEqual(now.clients, [6]);
  bench.send(5, {}, { watch: { on: false } });
  bench.send(6, { type: CLIENT_DIED });
  bench.send(5, { synNum: 1 }, { get_height: true });
  await bench.answer(1);
  const { length } = bench.written;
  bench.port.publishTexts("later");
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(bench.written.length, length);
  await bench.end();
});

test("a slow driver drops the oldest requests, and says so", TEST, async () => {
  const crane = new Crane();
  /** @type {(() => void)[]} */
  const releases = [];
  crane.write = (text) => new Promise((resolve) => releases.push(() => resolve(text)));
  const bench = new Bench(crane);
  bench.send(5, { synNum: 1 }, { write: "slow" });
  await until(() => releases.length === 1, "it writes");
  for (let synNum = 2; synNum <= 260; synNum++) bench.send(5, { synNum }, { get_height: true });
  bench.send([], { type: PING, synNum: 7777 });
  await bench.answer(7777);
  releases[0]();
  await bench.answer(260);
  const answered = bench.written.map(({ message }) => message.ackNum).filter((it) => it > 0 && it < 7777);
  assert.deepEqual(answered, [1, ...Array.from({ length: 256 }, (_, i) => i + 5)]);
  assert.deepEqual(bench.logged.filter((line) => line.startsWith("too slow")), [
    "too slow: 1 requests were dropped so far",
    "too slow: 2 requests were dropped so far",
  ]);
  await bench.end();
});

test("only a mediator of this project gets description and health", TEST, async () => {
  for (const environment of [{ AMBER_DEVICE: "230:0" }, {}]) {
    const bench = new Bench(new Crane(), /** @type {any} */ (environment));
    bench.port.trouble("no\n power");
    bench.port.trouble("no power");
    bench.port.recovered();
    bench.port.trouble(" ");
    bench.send(5, { synNum: 1 }, { get_height: true });
    await bench.answer(1);
    await bench.end();
    const told = bench.written.slice(0, -1);
    if (environment.AMBER_DEVICE === undefined) assert.equal(told.length, 0);
    else {
      const { names } = readDescription(told[0].get("description").files);
      assert.deepEqual(names, ["crane.proto"]);
      // What was said before the start is told once, after it.
      assert.deepEqual(told.slice(1).map((it) => it.get("health")), [{ state: "TROUBLE", text: "the device does not work" }]);
    }
  }
});

test("a driver that cannot start ends, and is stopped", TEST, async () => {
  const crane = new Crane();
  crane.start = async () => {
    throw new Error("no crane");
  };
  const bench = new Bench(crane);
  assert.equal(await bench.ended, 1);
  assert.deepEqual(crane.events, ["stop"]);
  assert.match(bench.logged.join("\n"), /no crane/);
});

test("requests wait until the driver has started", TEST, async () => {
  const crane = new Crane();
  /** @type {(value?: unknown) => void} */
  let go = () => {};
  const started = new Promise((resolve) => (go = resolve));
  crane.start = () => started.then(() => void crane.events.push("start"));
  const bench = new Bench(crane);
  bench.send(5, { synNum: 1 }, { write: "a" });
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(crane.events, []);
  go();
  await bench.answer(1);
  assert.deepEqual(crane.events, ["start", "5 writes"]);
  await bench.end();
});

test("a driver without a method, or with a wrong one, is refused before it runs", () => {
  /** @type {[any, RegExp][]} */
  const table = [
    [{}, /the driver of Crane needs the methods lift, height, write, texts/],
    [{ lift() {}, height() {}, write() {}, texts: 3 }, /needs the method texts/],
    [Object.assign(new Crane(), { periodMs: 0 }), /periodMs is a number of ms, at least 1, not 0/],
  ];
  for (const [driver, message] of table) assert.throws(() => new Bench(driver, {}), { message });
});

test("methods with the names of a driver's own end with _", () => {
  const text = CRANE.replaceAll("rpc Write", "rpc Stop");
  assert.deepEqual(described(text).device.methods.map(({ name }) => name)[2], "stop");
  assert.throws(() => new Bench(new Crane(), {}, text), /needs the method stop_/);
});

test("long requests and answers travel in pieces", TEST, async () => {
  const crane = new Crane();
  const bench = new Bench(crane);
  const text = "amber ".repeat(30_000);
  const request = bench.bytes({ synNum: 77, joins: { pieceBytes: 1180 } }, { write: text });
  const uploads = new Uploads(0);
  uploads.begin(0, "crane", 77, request, 1180);
  const joiner = new Joiner();
  let answer;
  let seen = 0;
  const work = () => {
    for (; seen < bench.written.length; seen++) {
      const { message } = bench.written[seen];
      if (Object.hasOwn(message, "receipt")) uploads.receipt(0, "crane", message.receipt);
      if (Object.hasOwn(message, "missing")) uploads.missing("crane", message.missing);
      if (Object.hasOwn(message, "piece")) answer = joiner.piece(0, "crane", message.piece) ?? answer;
    }
    for (const { synNum, piece } of uploads.poll()) {
      const { message, index, count, data } = piece;
      bench.send(5, { piece: { message, index, count, data }, ...(synNum === undefined ? {} : { synNum }) });
    }
    return answer !== undefined;
  };
  work();
  await until(work, "the answer", bench.waiting);
  const whole = fromBinary(driverMsg, /** @type {any} */ (answer));
  assert.equal(whole.ackNum, 77);
  assert.equal(crane.text, text);
  assert.equal(bench.codec.read(whole, [bench.extension("written")]), text);
  // A client that joins nothing does not get it.
  bench.send(6, { synNum: 1 }, { watch: { period: 20, on: true } });
  await until(() => bench.logged.some((line) => line.includes("too long for clients that do not join pieces")), "a warning");
  assert.equal(await bench.end(), 0);
});

test("while the mediator does not read, publications are dropped and memory is bounded", TEST, async () => {
  const crane = new Crane();
  const bench = new Bench(crane);
  bench.send(5, { type: SUBSCRIBE });
  bench.send(6, { synNum: 2 }, { watch: { on: true } });
  await until(() => bench.port.subscribers.length > 0, "a subscriber");
  bench.output.pause();
  const text = "x".repeat(30_000);
  for (let i = 0; i < 200; i++) bench.port.publishTexts(text);
  assert.ok(bench.output.writableLength < 2_000_000, String(bench.output.writableLength));
  assert.ok(bench.logged.some((line) => line.includes("the mediator does not read")));
  bench.output.resume();
  bench.send(5, { synNum: 1 }, { get_height: true });
  assert.equal((await bench.answer(1)).get("height"), 1.5);
  await bench.end();
});
