// Lease, halt and expiry: in tables with an own clock, and at a motor that only its description makes known.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Control, MOTION, NotAllowed, readHalt } from "../src/driver/control.js";
import { Bench, CRANE, Crane } from "./crane.js";
import { until } from "./fake.js";

const TEST = { timeout: 60_000 };

/** All timeouts until a time, each when it is due. @param {Control} control @param {number} now */
function letPass(control, now) {
  while (control.nextTimeout <= now) control.timeout(control.nextTimeout);
}

/** @param {Control} control @param {number} now @param {number} client @param {string} action @param {number} [forClient] */
function ask(control, now, client, action, forClient) {
  letPass(control, now);
  const leaseRequest = { action, periodMs: 1000 };
  return /** @type {any} */ (control.request(now, client, { leaseRequest, forClient }));
}

/** @param {Control} control @param {number} now @param {number} client @param {any} [terms] */
function refused(control, now, client, terms) {
  try {
    control.command(now, MOTION.MOVES, client, terms);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof NotAllowed);
    return error.message;
  }
}

test("without lease and validity, nothing is refused or stopped", () => {
  const control = new Control();
  for (const client of [7, 9, 7]) control.command(0, MOTION.MOVES, client);
  assert.equal(control.nextTimeout, Infinity);
  control.timeout(3_600_000);
  assert.equal(control.pollStop(), undefined);
  assert.equal(control.pollReport(0), undefined);
});

test("clients get the lease in turn", () => {
  const control = new Control();
  assert.ok(ask(control, 0, 1, "TAKE").yours);
  assert.ok(!ask(control, 0, 2, "WAIT").yours);
  assert.equal(ask(control, 100, 3, "WAIT").waiting.length, 2);
  assert.equal(ask(control, 200, 4, "TAKE").refused, "client 1 holds the lease of this device");
  ask(control, 900, 3, "WAIT");
  // Client 2 has fallen silent.
  assert.equal(ask(control, 1050, 3, "WAIT").holder.clientId, 3);
  control.command(1100, MOTION.MOVES, 3);
  letPass(control, 2150);
  const { client, outdated, isNeeded } = /** @type {any} */ (control.pollStop());
  assert.deepEqual([client, [...outdated], isNeeded], [3, [3], true]);
});

test("what each action does for each client", () => {
  // Who holds the lease before, who asks for what, why not, and who holds it then.
  /** @type {[number | undefined, number, string, string | undefined, number | undefined][]} */
  const table = [
    [undefined, 1, "TAKE", undefined, 1],
    [undefined, 1, "WAIT", undefined, 1],
    [undefined, 1, "TAKE_BY_FORCE", undefined, 1],
    [undefined, 1, "KEEP", "nobody holds the lease of this device", undefined],
    [undefined, 1, "RELEASE", undefined, undefined],
    [1, 1, "TAKE", undefined, 1],
    [1, 1, "KEEP", undefined, 1],
    [1, 1, "RELEASE", undefined, undefined],
    [1, 2, "TAKE", "client 1 holds the lease of this device", 1],
    [1, 2, "WAIT", undefined, 1],
    [1, 2, "TAKE_BY_FORCE", undefined, 2],
    [1, 2, "KEEP", "client 1 holds the lease of this device", 1],
    [1, 2, "RELEASE", undefined, 1],
  ];
  for (const [before, client, action, why, after] of table) {
    const control = new Control();
    if (before !== undefined) ask(control, 0, before, "TAKE");
    const state = ask(control, 10, client, action);
    const row = `${before} ${client} ${action}`;
    assert.equal(state.refused, why, row);
    assert.equal(state.holder?.clientId, after, row);
    assert.equal(state.yours, after === client, row);
  }
});

test("a driver may move the device for the client that holds the lease", () => {
  const control = new Control();
  ask(control, 0, 1, "TAKE");
  assert.equal(refused(control, 10, 5, { forClient: 1 }), undefined);
  assert.match(String(refused(control, 10, 5, { forClient: 2 })), /client 1 holds the lease/);
  assert.equal(ask(control, 900, 5, "KEEP", 1).refused, undefined);
  // That kept the lease of client 1.
  assert.equal(ask(control, 1800, 1, "KEEP").refused, undefined);
});

test("a command holds until its time, and a later one replaces it", () => {
  const control = new Control();
  control.command(0, MOTION.MOVES, 7, { validUntil: 300 });
  control.command(100, MOTION.MOVES, 7, { validUntil: 500 });
  letPass(control, 499);
  assert.equal(control.pollStop(), undefined);
  letPass(control, 500);
  assert.equal(control.pollStop()?.isNeeded, true);
  assert.match(String(control.pollReport(500)?.text), /the last command of client 7 is no longer valid/);
  // One that stops ends the motion, and nothing expires.
  control.command(600, MOTION.MOVES, 7, { validUntil: 700 });
  control.command(650, MOTION.STOPS, 7);
  letPass(control, 1000);
  assert.equal(control.pollStop(), undefined);
});

test("commands that waited too long move nothing", () => {
  const control = new Control();
  assert.match(String(refused(control, 1000, 7, { validUntil: 1000 })), /too late/);
  control.command(1000, MOTION.STOPS, 7, { validUntil: 1000 });
  const state = /** @type {any} */ (control.request(1000, 7, { getMotionState: true }));
  assert.deepEqual([state.tooLate, state.expired, state.refusedForHalt], [1, 0, 0]);
});

test("a halt keeps everybody from moving until it is released", () => {
  const control = new Control();
  control.command(0, MOTION.MOVES, 1);
  const halt = { halt: true, name: "the operator\u0007" };
  assert.deepEqual(control.request(10, 9, { haltRequest: halt })?.halt, { by: "the operator", sinceMs: 0 });
  assert.deepEqual([control.pollStop()?.client], [1]);
  assert.equal(refused(control, 20, 1), "the device was halted by the operator");
  control.command(20, MOTION.STOPS, 1);
  ask(control, 30, 1, "TAKE");
  // Only the holder of the lease releases it.
  const release = { halt: false };
  assert.match(String(control.request(40, 2, { haltRequest: release })?.refused), /client 1 holds the lease/);
  assert.equal(control.request(50, 1, { haltRequest: release })?.halt, undefined);
  assert.equal(refused(control, 60, 1), undefined);
});

test("a client that is gone moves nothing", () => {
  const control = new Control();
  ask(control, 0, 1, "TAKE");
  ask(control, 0, 2, "WAIT");
  control.command(0, MOTION.ERRAND, 1);
  control.clientGone(10, 1, true);
  const { client, outdated } = /** @type {any} */ (control.pollStop());
  assert.deepEqual([client, [...outdated]], [1, [1]]);
  assert.equal(control.request(10, 2, { getMotionState: true })?.yours, true);
  // The driver stops by itself what the client moved.
  control.command(20, MOTION.MOVES, 2);
  control.request(20, 2, { leaseRequest: { action: "RELEASE" } });
  control.pollStop();
  control.command(30, MOTION.MOVES, 3);
  control.clientGone(40, 3, false);
  assert.equal(control.pollStop(), undefined);
});

test("a lease gets another period, once, if the driver itself was late", () => {
  const control = new Control();
  assert.ok(ask(control, 0, 1, "TAKE").yours);
  control.timeout(1500);
  assert.equal(control.request(1500, 1, { getMotionState: true })?.yours, true);
  control.timeout(3000);
  assert.equal(control.request(3000, 1, { getMotionState: true })?.yours, false);
});

test("names are one printable line of at most 100 bytes", () => {
  for (const [given, told] of [["a\nb", "a b"], ["  ", "client 3"], ["ą".repeat(80), "ą".repeat(50)], [undefined, "client 3"]]) {
    const control = new Control();
    const leaseRequest = { action: "TAKE", name: given };
    assert.equal(/** @type {any} */ (control.request(0, 3, { leaseRequest })).holder.name, told);
  }
});

test("a new process knows the halt of the one before", () => {
  assert.equal(readHalt("230:0=the operator\n231:0=b"), "the operator");
  for (const none of ["", "nonsense", "a:0=b"]) assert.equal(readHalt(none), undefined);
});

// The rules at a motor

test("a motor stops when the last command is no longer valid", TEST, async () => {
  const crane = new Crane();
  const bench = new Bench(crane);
  const began = performance.now();
  bench.send(5, {}, { lift: { speed: 100 }, valid_ms: 300 });
  await until(() => crane.speeds.length === 2, "it stops");
  assert.deepEqual(crane.speeds, [100, 0]);
  assert.ok(performance.now() - began >= 299);
  await bench.find((it) => /no longer valid/.test(it.get("motion_report")?.text), "a report");
  assert.equal(await bench.end(), 0);
});

test("a lease keeps others away, and names its holder", TEST, async () => {
  const crane = new Crane();
  const bench = new Bench(crane);
  assert.ok((await bench.lease(5, { action: "TAKE", name: "amber goto" }, 1)).yours);
  bench.send(6, { synNum: 2 }, { lift: { speed: 50 }, want_outcome: true });
  assert.equal((await bench.answer(2)).get("outcome").refused, "amber goto holds the lease of this device");
  bench.send(5, {}, { lift: { speed: 70 } });
  // Everybody may stop it, and read.
  bench.send(6, {}, { lift: { speed: 0 } });
  bench.send(6, { synNum: 3 }, { get_height: true });
  assert.equal((await bench.answer(3)).get("height"), 1.5);
  assert.deepEqual(crane.speeds, [70, 0]);
  bench.send(5, { synNum: 4 }, { lift: { speed: 80 }, want_outcome: true });
  assert.equal((await bench.answer(4)).get("outcome").refused, undefined);
  assert.ok((await bench.lease(6, { action: "TAKE_BY_FORCE", name: "b" }, 5)).yours);
  await until(() => crane.speeds.length === 4, "it stops");
  assert.deepEqual(crane.speeds, [70, 0, 80, 0]);
  assert.ok(bench.news.includes("b took the lease from amber goto by force"), String(bench.news));
  await bench.end();
});

test("a motor stops when its client is gone, or its lease ends", TEST, async () => {
  const crane = new Crane();
  const bench = new Bench(crane);
  bench.send(5, {}, { lift: { speed: 60 } });
  bench.send(5, { type: 4 });
  await until(() => crane.events.includes("5 is gone"), "the driver hears of it");
  // Its command may still have waited: then it is dropped.
  assert.ok(["60,0", "0", ""].includes(String(crane.speeds)), String(crane.speeds));
  crane.speeds = [];
  await bench.lease(6, { action: "TAKE", periodMs: 200 }, 1);
  bench.send(6, {}, { lift: { speed: 90 } });
  await until(() => crane.speeds.length === 2, "it stops");
  assert.deepEqual(crane.speeds, [90, 0]);
  bench.send(6, { synNum: 2 }, { get_motion_state: true });
  assert.equal((await bench.answer(2)).get("motion_state").holder, undefined);
  await bench.end();
});

test("a halt stops a motor until the release", TEST, async () => {
  const crane = new Crane();
  const bench = new Bench(crane, { AMBER_DEVICE: "230:0", AMBER_HALTED: "230:0=the operator" });
  bench.send(5, { synNum: 1 }, { lift: { speed: 61 }, want_outcome: true });
  assert.match((await bench.answer(1)).get("outcome").refused, /halted by the operator/);
  bench.send(7, { synNum: 2 }, { halt_request: { halt: false } });
  assert.equal((await bench.answer(2)).get("motion_state").halt, undefined);
  bench.send(5, { synNum: 3 }, { lift: { speed: 62 }, want_outcome: true });
  await bench.answer(3);
  bench.send(7, { synNum: 4 }, { halt_request: { halt: true, name: "me" } });
  assert.equal((await bench.answer(4)).get("motion_state").halt.by, "me");
  await until(() => crane.speeds.length === 2, "it stops");
  assert.deepEqual(crane.speeds, [62, 0]);
  await bench.end();
});

test("a halt refuses what cannot be stopped", TEST, async () => {
  const crane = new Crane();
  const bench = new Bench(crane, undefined, CRANE.replace(/\{ stop: .* \};/, "{};"));
  bench.send(5, { synNum: 1 }, { lift: { speed: 10 }, valid_ms: 60_000, want_outcome: true });
  await bench.answer(1);
  bench.send(7, { synNum: 2 }, { halt_request: { halt: true, name: "me" } });
  await bench.answer(2);
  bench.send(5, { synNum: 3 }, { lift: { speed: 0 }, want_outcome: true });
  assert.match((await bench.answer(3)).get("outcome").refused, /halted by me/);
  assert.deepEqual(crane.speeds, [10]);
  await bench.end();
});

test("a stop goes before all requests that wait, and waits for the method that runs", TEST, async () => {
  const crane = new Crane();
  /** @type {((value?: unknown) => void) | undefined} */
  let release;
  crane.write = async (text) => {
    await new Promise((resolve) => (release = resolve));
    return text;
  };
  const bench = new Bench(crane);
  bench.send(5, { synNum: 1 }, { lift: { speed: 10 }, want_outcome: true });
  await bench.answer(1);
  bench.send(6, {}, { write: "slow" });
  await until(() => release !== undefined, "it writes");
  bench.send(5, {}, { lift: { speed: 20 } });
  bench.send(7, { synNum: 2 }, { halt_request: { halt: true } });
  await bench.answer(2);
  assert.deepEqual(crane.speeds, [10]);
  release?.();
  await until(() => crane.speeds.length === 2, "it stops");
  bench.send(5, { synNum: 3 }, { get_height: true });
  await bench.answer(3);
  assert.deepEqual(crane.speeds, [10, 0]);
  await bench.end();
});

test("a stop does not wait for a mediator that does not read", TEST, async () => {
  const crane = new Crane();
  const bench = new Bench(crane);
  bench.send(5, { synNum: 1 }, { lift: { speed: 10 }, want_outcome: true });
  await bench.answer(1);
  bench.output.pause();
  const text = "x".repeat(30_000);
  for (let synNum = 2; synNum < 30; synNum++) bench.send(6, { synNum }, { write: text });
  await until(() => bench.output.writableLength > 256_000, "it is full");
  bench.send(5, {}, { lift: { speed: 20 } }); // waits
  bench.send(7, {}, { halt_request: { halt: true } });
  await until(() => crane.speeds.length === 2, "it stops");
  assert.deepEqual(crane.speeds, [10, 0]);
  bench.output.resume();
  await bench.answer(29);
  await bench.end();
});

test("the validity of a command that waits for the start counts from its arrival", TEST, async () => {
  const crane = new Crane();
  crane.start = () => new Promise((resolve) => setTimeout(resolve, 200));
  const bench = new Bench(crane);
  bench.send(5, { synNum: 1 }, { lift: { speed: 10 }, valid_ms: 100, want_outcome: true });
  assert.match((await bench.answer(1)).get("outcome").refused, /too late/);
  assert.deepEqual(crane.speeds, []);
  await bench.end();
});

test("an invalid request for a halt changes nothing", TEST, async () => {
  const crane = new Crane();
  const bench = new Bench(crane, { AMBER_DEVICE: "230:0", AMBER_HALTED: "230:0=the operator" });
  // halt_request without its required field would read as a release.
  bench.sendBytes(5, new Uint8Array([0x10, 1, 0x18, 1, ...[0x9a, 0x0c], 0]));
  bench.send(5, { synNum: 2 }, { get_motion_state: true });
  assert.equal((await bench.answer(2)).get("motion_state").halt.by, "the operator");
  assert.ok(bench.logged.some((line) => line.includes("halt_request without halt")), String(bench.logged));
  await bench.end();
});
