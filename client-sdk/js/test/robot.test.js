// A client with a mediator that a test scripts, over loopback.

import assert from "node:assert/strict";
import dgram from "node:dgram";
import { test } from "node:test";
import {
  BadAnswerError,
  ClosedError,
  DeviceDiedError,
  RefusedError,
  Robot,
  TimedOutError,
  UnreachableError,
} from "../src/index.js";
import { encodeFrame, header } from "../src/frame.js";
import { openTransport } from "../src/node.js";
import { INTERFACES } from "../src/ours.js";
import { create } from "../src/protobuf.js";
import { OURS, messageOf } from "../src/schemas.js";
import { UdpTransport } from "../src/udp.js";
import { FakeMediator, message, until } from "./fake.js";
import { LAMP } from "./lamp.js";

const TYPE = { DATA: 1, PING: 2, PONG: 3, CLIENT_DIED: 4, DRIVER_DIED: 5, SUBSCRIBE: 6, UNSUBSCRIBE: 7 };
const SPEEDS = { frontLeftSpeed: 1, frontRightSpeed: 2, rearLeftSpeed: 3, rearRightSpeed: 4 };
const speeds = (/** @type {number} */ ackNum) => message({ ackNum }, { "amber.roboclaw_proto.currentSpeed": SPEEDS });
const text = (/** @type {string} */ it) => message({ ackNum: 0 }, { "amber.dummy_proto.message": it });
/** Ends tests that would hang. */
const TEST = { timeout: 60_000 };

/**
 * A test with a mediator and a robot.
 * @param {string} name
 * @param {(mediator: FakeMediator, robot: Robot) => Promise<void>} body
 * @param {object} [options]
 */
function scripted(name, body, options) {
  test(name, TEST, async () => {
    const mediator = await new FakeMediator().start();
    const robot = await Robot.connect(mediator.address, options);
    try {
      await body(mediator, robot);
    } finally {
      await robot.close();
      await mediator.close();
    }
  });
}

scripted("an answer belongs to its request", async (mediator, robot) => {
  mediator.answer = ({ synNum }) => [speeds(synNum + 1), speeds(synNum), speeds(synNum)];
  assert.deepEqual(await robot.wheels().speeds(), SPEEDS);
  await until(() => robot.lateAnswers === 2, "the two others count");
  const { message: request } = await mediator.wait("2:0", TYPE.DATA);
  assert.equal(request.joins.pieceBytes, 32_000);
});

scripted("an answer of another device is not that of this one", async (mediator, robot) => {
  mediator.answer = ({ synNum }) => {
    mediator.send("2:1", speeds(synNum));
    return [];
  };
  await assert.rejects(robot.wheels().speeds({ timeoutMs: 100 }), TimedOutError);
});

scripted("numbers of requests are never 0", async (mediator, robot) => {
  robot._lastNumber = 0xffff_fffe;
  /** @type {number[]} */
  const numbers = [];
  mediator.answer = ({ synNum }) => (numbers.push(synNum), [speeds(synNum)]);
  for (let i = 0; i < 3; i++) await robot.wheels().speeds();
  assert.deepEqual(numbers, [0xffff_ffff, 1, 2]);
});

scripted("a missing answer times out", async (mediator, robot) => {
  await assert.rejects(robot.wheels(1).speeds(), (error) => {
    assert.ok(error instanceof TimedOutError);
    assert.equal(error.message, "no answer from roboclaw:1 within 80 ms");
    assert.deepEqual([error.device, error.timeoutMs], ["roboclaw:1", 80]);
    return true;
  });
  await assert.rejects(robot.wheels().with({ timeoutMs: 30 }).speeds(), /within 30 ms/);
  await assert.rejects(robot.wheels().speeds({ timeoutMs: 40 }), /within 40 ms/);
  await assert.rejects(robot.wheels().speeds({ timeoutMs: 0 }), RangeError);
  assert.equal(robot._pending.size, 0);
  assert.equal(mediator.seen.length, 3);
}, { timeoutMs: 80 });

scripted("a call can be aborted", async (mediator, robot) => {
  const ending = new AbortController();
  const call = robot.wheels().speeds({ signal: ending.signal, timeoutMs: 20_000 });
  await mediator.wait("2:0", TYPE.DATA);
  ending.abort(new Error("enough"));
  await assert.rejects(call, /enough/);
  await assert.rejects(robot.wheels().speeds({ signal: ending.signal }), /enough/);
  assert.equal(robot._pending.size, 0);
});

scripted("a device that dies ends the calls to it, with the reason", async (mediator, robot) => {
  const calls = [robot.wheels().speeds({ timeoutMs: 20_000 }), robot.wheels().battery({ timeoutMs: 20_000 })];
  const ended = Promise.allSettled(calls);
  await mediator.wait("2:0", TYPE.DATA);
  await mediator.wait("2:0", TYPE.DATA);
  const unavailable = { reason: "FAILED", message: "it exited", hint: "look" };
  mediator.send("2:0", message({ type: TYPE.DRIVER_DIED }, { "amber.mediator_proto.unavailable": unavailable }));
  for (const { reason } of /** @type {any[]} */ (await ended)) {
    assert.ok(reason instanceof DeviceDiedError);
    assert.equal(reason.message, "roboclaw:0 is unavailable: it exited\nhint: look");
    assert.deepEqual([reason.reason, reason.hint, reason.device], ["FAILED", "look", "roboclaw:0"]);
  }
  mediator.answer = ({ synNum }) => [message({ type: TYPE.DRIVER_DIED, ackNum: synNum })];
  await assert.rejects(robot.wheels().speeds(), /roboclaw:0 is unavailable\nhint: `amber status roboclaw:0`/);
});

scripted("a refused request throws the words", async (mediator, robot) => {
  mediator.answer = ({ synNum, get }) => {
    assert.equal(get("amber.mediator_proto.want_outcome"), true);
    return [message({ ackNum: synNum }, { "amber.mediator_proto.outcome": { refused: "too hot" } })];
  };
  for (const call of [() => robot.dummy().status(), () => robot.dummy().enable(true), () => robot.wheels().stop()]) {
    await assert.rejects(call(), (error) => {
      assert.ok(error instanceof RefusedError);
      assert.equal(error.words, "too hot");
      assert.match(error.message, /^(dummy|roboclaw):0 refused the request: too hot$/);
      return true;
    });
  }
}, { outcomeWaitMs: 20_000 });

scripted("a driver that reports nothing is waited for once, and its late refusal is passed on", async (mediator, robot) => {
  const wheels = robot.wheels();
  const { signal } = new AbortController();
  await wheels.drive(SPEEDS);
  robot._commands.outcomeWaitMs = 100_000; // longer than the test may take
  for (let i = 0; i < 3; i++) await wheels.drive(SPEEDS, { signal });
  assert.deepEqual(refusals, []);
  const { synNum } = await mediator.wait("2:0", TYPE.DATA);
  mediator.send("2:0", message({ ackNum: synNum }, { "amber.mediator_proto.outcome": { refused: "too late" } }));
  await until(() => refusals.length > 0, "the refusal is passed on");
  assert.match(refusals[0].message, /too late/);
}, { outcomeWaitMs: 40, timeoutMs: 20_000, onRefusal: (/** @type {Error} */ error) => refusals.push(error) });
/** @type {Error[]} */
const refusals = [];

scripted("a command with onRefusal does not wait", async (mediator, robot) => {
  /** @type {Error[]} */
  const told = [];
  await robot.wheels().drive(SPEEDS, { onRefusal: (/** @type {Error} */ error) => told.push(error) });
  const { synNum } = await mediator.wait("2:0", TYPE.DATA);
  mediator.send("2:0", message({ ackNum: synNum }, { "amber.mediator_proto.outcome": { refused: "no" } }));
  await until(() => told.length === 1, "the refusal is told");
}, { outcomeWaitMs: 20_000, timeoutMs: 20_000 });

scripted("commands that move something hold for a time, errands and questions do not", async (mediator, robot) => {
  mediator.answer = ({ synNum }) => [message({ ackNum: synNum }, { "amber.mediator_proto.outcome": {} })];
  const valid = async (/** @type {string} */ device) =>
    (await mediator.wait(device, TYPE.DATA)).get("amber.motion_proto.valid_ms");
  await robot.wheels().drive(SPEEDS);
  assert.equal(await valid("2:0"), 400);
  await robot.wheels().with({ validMs: 300 }).stop();
  assert.equal(await valid("2:0"), 300);
  await robot.wheels().drive(SPEEDS, { validMs: 200 });
  assert.equal(await valid("2:0"), 200);
  await robot.driveToPoint().setTargets({ longitudes: [], latitudes: [], radiuses: [] });
  assert.equal(await valid("8:0"), undefined);
  await robot.dummy().enable(true);
  assert.equal(await valid("5:0"), undefined);
  await assert.rejects(robot.wheels().drive(SPEEDS, { validMs: 0.5 }), RangeError);
}, { validMs: 400, outcomeWaitMs: 20_000 });

scripted("a loop subscribes, and unsubscribes when it is left", async (mediator, robot) => {
  const messages = robot.dummy().messages();
  const loop = (async () => {
    const found = [];
    for await (const it of messages) {
      found.push(it);
      if (found.length === 2) break;
    }
    return found;
  })();
  const { message: start } = await mediator.wait("5:0", TYPE.SUBSCRIBE);
  assert.equal(start.joins.pieceBytes, 32_000);
  mediator.send("5:0", speeds(0)); // of another stream
  mediator.send("5:0", text("a"));
  mediator.send("5:0", text("b"));
  assert.deepEqual(await loop, ["a", "b"]);
  await mediator.wait("5:0", TYPE.UNSUBSCRIBE);
  assert.deepEqual(await messages.next(), { done: true, value: undefined });
});

scripted("a slow reader misses the oldest values", async (mediator, robot) => {
  const messages = robot.dummy().messages({ buffer: 3 }).open();
  await mediator.wait("5:0", TYPE.SUBSCRIBE);
  for (const it of "abcdef") mediator.send("5:0", text(it));
  await until(() => messages.missed === 3, "three are dropped");
  const found = [];
  for (let i = 0; i < 3; i++) found.push((await messages.next()).value);
  assert.deepEqual(found, ["d", "e", "f"]);
  assert.throws(() => robot.dummy().messages({ buffer: 0 }), RangeError);
});

scripted("a subscription can be aborted, and ends with the robot", async (mediator, robot) => {
  const ending = new AbortController();
  const aborted = robot.dummy().messages({ signal: ending.signal }).next();
  const other = robot.dummy().messages().next();
  await mediator.wait("5:0", TYPE.SUBSCRIBE);
  ending.abort(new Error("enough"));
  await assert.rejects(aborted, /enough/);
  await assert.rejects(robot.dummy().messages({ signal: ending.signal }).next(), /enough/);
  mediator.send("5:0", text("a"));
  assert.equal((await other).value, "a");
  const last = robot.dummy().messages().next();
  const call = assert.rejects(robot.wheels().speeds(), ClosedError);
  await robot.close();
  assert.equal((await last).done, true);
  await call;
  await mediator.wait("5:0", TYPE.CLIENT_DIED);
  await mediator.wait("0:0", TYPE.CLIENT_DIED);
  await assert.rejects(robot.wheels().speeds(), ClosedError);
  await assert.rejects(robot.dummy().messages().next(), ClosedError);
});

scripted("the driver knows the latest of several subscriptions by request", async (mediator, robot) => {
  const period = async () => (await mediator.wait("17:0", TYPE.DATA)).get("amber.camera_proto.stream_pictures").period;
  const camera = robot.camera();
  const slow = camera.pictures({ period: 500 }).open();
  assert.equal(await period(), 500);
  const fast = camera.pictures({ period: 100 }).open();
  assert.equal(await period(), 0);
  assert.equal(await period(), 100);
  fast.close();
  assert.equal(await period(), 0);
  assert.equal(await period(), 500);
  slow.close();
  assert.equal(await period(), 0);
  assert.throws(() => camera.pictures({}), /pictures needs period, at least 1 ms/);
});

scripted("a subscription continues after a restart of the driver or the mediator", async (mediator, robot) => {
  const messages = robot.dummy().messages().open();
  await mediator.wait("5:0", TYPE.SUBSCRIBE);
  mediator.isUp("5:0");
  await mediator.wait("5:0", TYPE.SUBSCRIBE);
  mediator.clientId = 4; // the mediator has forgotten this client
  await mediator.wait("5:0", TYPE.SUBSCRIBE);
  mediator.send("5:0", text("a"));
  assert.equal((await messages.next()).value, "a");
});

scripted("after an outage, a client subscribes again at once", async (mediator, robot) => {
  robot.dummy().messages().open();
  await mediator.wait("5:0", TYPE.SUBSCRIBE);
  mediator.isSilent = true;
  await until(() => robot._liveness?._isOutage === true, "the client notices the outage");
  mediator.isSilent = false;
  await mediator.wait("5:0", TYPE.SUBSCRIBE);
});

scripted("messages in pieces are joined, and a lost piece is called for", async (mediator, robot) => {
  const picture = { data: new Uint8Array(5000).fill(7), format: "JPEG", width: 4, height: 3, captured: 1, sequence: 1 };
  const pictures = robot.camera().pictures({ period: 100 });
  const first = pictures.next();
  await mediator.wait("17:0", TYPE.DATA);
  const all = message({ ackNum: 0 }, { "amber.camera_proto.picture": picture });
  const pieces = [0, 1, 2, 3, 4].map((index) => {
    const data = all.subarray(index * 1180, (index + 1) * 1180);
    const piece = { message: 9, index, count: 5, data, stream: 261 };
    return message({ piece });
  });
  for (const i of [4, 0, 3, 1]) mediator.send("17:0", pieces[i]);
  const { message: call } = await mediator.wait("17:0", TYPE.DATA);
  assert.deepEqual([call.missing.message, [...call.missing.index]], [9, [2]]);
  assert.equal(call.joins, undefined);
  mediator.send("17:0", pieces[2]);
  assert.deepEqual((await first).value, { ...picture, damaged: false });
  // One of which the rest never comes.
  mediator.send("17:0", message({ piece: { message: 10, index: 0, count: 2, data: picture.data, stream: 261 } }));
  await until(() => pictures.missed === 1, "the second picture counts as missed");
});

scripted("an answer in pieces", async (mediator, robot) => {
  const picture = { data: new Uint8Array(40_000).fill(7), format: "JPEG", width: 4, height: 3, captured: 1, sequence: 1 };
  mediator.answer = ({ synNum, type }) => {
    if (type !== TYPE.DATA) return [];
    const all = message({ ackNum: synNum }, { "amber.camera_proto.picture": picture });
    return [0, 1].map((index) => {
      const data = all.subarray(index * 32_000, (index + 1) * 32_000);
      return message({ piece: { message: 9, index, count: 2, data } });
    });
  };
  assert.equal((await robot.camera().picture()).data.length, 40_000);
});

/** A driver that joins pieces: it loses the second one once, and answers the whole request. */
scripted("a long request is sent in pieces, as the driver allows", async (mediator, robot) => {
  /** @type {Map<number, Uint8Array>} */
  const had = new Map();
  let [synNum, isLost, calls] = [0, false, 0];
  /** @type {any} */
  let whole;
  mediator.answer = ({ message: seen }) => {
    if (!seen.piece) return [];
    const { message: number, index, count, data } = seen.piece;
    if (index === 0) synNum = seen.synNum;
    if (index === 1 && !isLost) {
      isLost = true;
      return [];
    }
    had.set(index, data);
    const answers = [];
    let upto = 0;
    while (had.has(upto)) upto += 1;
    answers.push(message({ receipt: { message: number, upto } }));
    if (index === count - 1 && !had.has(1)) {
      calls += 1;
      answers.push(message({ missing: { message: number, index: [1] } }));
    }
    if (had.size === count && !whole) {
      whole = Buffer.concat([...had].sort(([a], [b]) => a - b).map(([, one]) => one));
      answers.push(speeds(synNum));
    }
    return answers;
  };
  const order = robot._encode(INTERFACES[0], create(messageOf(OURS, "amber.DriverMsg"), { type: 1 }));
  const long = Buffer.concat([order, Buffer.from([0xa2, 0x06, 0xa0, 0x9c, 0x06]), Buffer.alloc(101_920, 7)]);
  const answer = await robot._ask({ type: 2, id: 0 }, long, { timeoutMs: 20_000 });
  assert.equal(answer.ackNum, synNum);
  assert.ok(synNum > 0 && isLost && calls > 0);
  assert.equal(had.get(0)?.length, 32_000);
  assert.deepEqual(whole.subarray(0, long.length), long);
  assert.equal(robot._uploads.nextTimeout, Infinity);
});

scripted("a driver that cannot join pieces gets one, and its caller an error", async (mediator, robot) => {
  await assert.rejects(
    robot._ask({ type: 2, id: 0 }, new Uint8Array(40_000).fill(0x10, 0, 1).fill(1, 1, 2), { timeoutMs: 20_000 }),
    (error) => error instanceof RangeError && /too long for roboclaw:0: its driver takes at most 32767/.test(error.message),
  );
  const indexes = mediator.seen.map(({ message }) => message.piece?.index);
  assert.deepEqual([...new Set(indexes)], [0]);
  const tooLong = new Uint8Array((8 << 20) + 1);
  tooLong.set([0x10, 1]);
  await assert.rejects(robot._ask({ type: 2, id: 0 }, tooLong, { timeoutMs: 1000 }), /too long \(at most 8388608\)/);
});

scripted("a PING of the mediator is answered, and what is no message counts", async (mediator, robot) => {
  await robot.dummy().ping({ timeoutMs: 50 }).catch(() => {});
  const pongs = new Promise((resolve) => {
    mediator.answerOwn = ({ type, message }) => type === TYPE.PONG && resolve(message.ackNum);
  });
  mediator.send("0:0", message({ type: TYPE.PING, synNum: 77 }));
  assert.equal(await pongs, 77);
  for (const bytes of [new Uint8Array([1]), new Uint8Array([0x10, 99]), new Uint8Array([0x18, 1])]) mediator.send("5:0", bytes);
  await until(() => robot.malformed === 3, "three malformed messages");
});

scripted("a device of which only the mediator has the description", async (mediator, robot) => {
  const lamps = [{ devices: [{ type: 5, id: 0 }, { type: 201, id: 2 }], state: "UP", restarts: 0 }];
  mediator.answer = ({ device, synNum, get, message: request }) => {
    // ackNum, and brightness = 40
    if (device === "201:2") return [Uint8Array.from([0x10, 1, 0x20, ...varint(synNum), 0xa0, 0x08, 40])];
    const asked = get("amber.mediator_proto.request");
    const reply = asked.getDescription
      ? { description: { files: LAMP } }
      : { drivers: { total: 1, drivers: lamps } };
    assert.equal(request, undefined);
    return [message({ ackNum: synNum }, { "amber.mediator_proto.reply": reply })];
  };
  assert.throws(() => robot.device("lamp"), /unknown device "lamp"/);
  assert.throws(() => robot.device("201:2"), /robot\.load\("201:2"\)/);
  await assert.rejects(robot.load("fridge"), /unknown device "fridge"/);
  const lamp = await robot.load("lamp:2");
  assert.equal(lamp.address, "lamp:2");
  assert.deepEqual(robot.device("201:2").address, "lamp:2");
  assert.equal(await lamp.setBrightness(40), 40);
  mediator.answer = ({ synNum }) => [message({ ackNum: synNum })];
  await assert.rejects(lamp.setBrightness(40), BadAnswerError);
});

/** @param {number} value */
function varint(value) {
  const bytes = [];
  for (; value > 0x7f; value = Math.floor(value / 128)) bytes.push((value % 128) | 0x80);
  return [...bytes, value];
}

scripted("a lease is kept, and its loss is told", async (mediator, robot) => {
  let state = { yours: true, refused: undefined };
  /** @type {string[]} */
  const actions = [];
  mediator.answer = ({ synNum, get }) => {
    const request = get("amber.motion_proto.lease_request");
    if (!request) return [];
    actions.push(request.action);
    const told = state.refused ? { yours: false, refused: state.refused } : { yours: state.yours };
    return [message({ ackNum: synNum }, { "amber.motion_proto.motion_state": told })];
  };
  const lease = await robot.wheels().lease("test", { periodMs: 200 });
  await until(() => actions.filter((it) => it === "KEEP").length >= 2, "it is kept");
  assert.equal(lease.lost, undefined);
  await lease.release();
  assert.deepEqual([actions[0], actions.at(-1)], ["TAKE", "RELEASE"]);
  const other = await robot.wheels().lease("test", { periodMs: 200, force: true });
  assert.equal(actions.at(-1), "TAKE_BY_FORCE");
  state = /** @type {any} */ ({ yours: false, refused: "held by `amber drive`" });
  await new Promise((resolve) => other.signal.addEventListener("abort", resolve));
  assert.equal(other.lost, "held by `amber drive`");
  await assert.rejects(robot.wheels().stop({ signal: other.signal }), /the lease is lost: held by/);
  await assert.rejects(robot.wheels().lease("test"), (error) => error instanceof RefusedError && error.words === state.refused);
  state = { yours: false, refused: undefined };
  const waiting = robot.wheels().lease("test", { wait: true });
  await until(() => actions.filter((it) => it === "WAIT").length >= 2, "it waits in turn");
  state = { yours: true, refused: undefined };
  await (await waiting).release();
}, { timeoutMs: 20_000 });

scripted("a halt reaches all that move, also if one fails, and is released", async (mediator, robot) => {
  const up = (/** @type {number[]} */ ...types) => types.map((type) => ({ devices: [{ type, id: 0 }], state: "UP", restarts: 0 }));
  // Wheels, a driver that follows trajectories, a dummy, a lamp with a description, a device without one, and wheels without a driver.
  const drivers = [...up(2, 10, 5, 201, 202), { devices: [{ type: 2, id: 1 }], state: "FAILED", restarts: 0 }];
  /** @type {{ device: string, halt: boolean, name: string }[]} */
  const asked = [];
  let isLost = true;
  /** @type {string | undefined} */
  let refused;
  mediator.answer = ({ device, synNum, get }) => {
    const request = get("amber.mediator_proto.request");
    const reply = (/** @type {object} */ it) => [message({ ackNum: synNum }, { "amber.mediator_proto.reply": it })];
    if (request?.listDrivers) return reply({ drivers: { total: drivers.length, drivers: drivers.slice(request.listDrivers.skip ?? 0).slice(0, 4) } });
    if (request) {
      const refusal = { refused: { reason: "FAILED", message: "its driver has sent none" } };
      return reply(request.getDescription.type === 201 ? { description: { files: LAMP } } : refusal);
    }
    const halting = get("amber.motion_proto.halt_request");
    if (halting) asked.push({ device, ...halting });
    if (halting && device === "2:0" && isLost) {
      isLost = false;
      return [];
    }
    const state = { ...(device === "2:0" && refused ? { refused } : {}), halt: { by: "me" } };
    return [message({ ackNum: synNum }, { "amber.motion_proto.motion_state": state })];
  };
  assert.deepEqual(await robot.halt("me", { timeoutMs: 1000 }), ["roboclaw:0", "pid-follow-trajectory:0"]);
  assert.ok(asked.every(({ halt, name }) => halt && name === "me"));
  // The request that was lost is repeated.
  assert.ok(asked.filter(({ device }) => device === "2:0").length >= 2);
  assert.deepEqual([...new Set(asked.map(({ device }) => device))].sort(), ["10:0", "2:0"]);
  const { halt, holder } = await robot.wheels().motionState();
  assert.deepEqual([halt?.by, holder], ["me", undefined]);
  assert.equal((await robot.wheels().halt("me")).halt?.by, "me");

  refused = "amber drive holds the lease of this device";
  asked.length = 0;
  await assert.rejects(robot.releaseHalt("me"), (error) => error instanceof RefusedError && error.words === refused);
  assert.deepEqual(asked.map(({ device, halt }) => [device, halt]).sort(), [["10:0", false], ["2:0", false]]);
  await assert.rejects(robot.wheels().releaseHalt("me"), /roboclaw:0 refused the request: amber drive/);

  drivers.splice(0, 2);
  await assert.rejects(robot.halt("me"), /no running driver has a device that moves/);
}, { timeoutMs: 20_000 });

scripted("drivers that know no halts do not answer", async (mediator, robot) => {
  await assert.rejects(robot.wheels().halt("me"), TimedOutError);
  mediator.answer = ({ synNum }) => [message({ ackNum: synNum })];
  await assert.rejects(robot.wheels().motionState({ timeoutMs: 20_000 }), /roboclaw:0 answered without the motion state/);
}, { timeoutMs: 60 });

test("without a mediator, connecting fails with a hint", TEST, async () => {
  const closed = await new FakeMediator().start();
  await closed.close();
  await assert.rejects(Robot.connect(closed.address), (error) => {
    assert.ok(error instanceof UnreachableError);
    assert.match(error.message, /no mediator is listening at .*\nhint: .*amber demo.*AMBER_MEDIATOR/);
    return true;
  });
  const silent = await new FakeMediator().start();
  silent.isSilent = true;
  await assert.rejects(Robot.connect(silent.address, { connectTimeoutMs: 300 }), /no mediator answers at/);
  const signal = AbortSignal.timeout(50);
  await assert.rejects(Robot.connect(silent.address, { signal }), { name: "TimeoutError" });
  await assert.rejects(Robot.connect("no-such-host.invalid"), /cannot find the mediator no-such-host.invalid/);
  await assert.rejects(Robot.connect("a:b:c"), TypeError);
  // It may also come later.
  const robot = await Robot.connect(silent.address, { connectTimeoutMs: 0 });
  silent.isSilent = false;
  silent.answer = ({ synNum }) => [speeds(synNum)];
  assert.deepEqual(await robot.wheels().speeds(), SPEEDS);
  await robot.close();
  await silent.close();
});

test("a mediator that ends is reported, and one that comes back is used", TEST, async () => {
  const first = await new FakeMediator().start();
  const robot = await Robot.connect(first.address);
  await first.close();
  const call = async () => robot.wheels().speeds({ timeoutMs: 500 });
  await assert.rejects(call(), (error) => error instanceof UnreachableError && /amber demo/.test(error.message));
  const second = await new FakeMediator().start("127.0.0.1", first.port);
  second.answer = ({ synNum }) => [speeds(synNum)];
  assert.deepEqual(await robot.wheels().speeds(), SPEEDS);
  await robot.close();
  await second.close();
});

test("a mediator whose name gets another address is found, and subscriptions move there", TEST, async () => {
  const first = await new FakeMediator().start("127.0.0.1");
  const second = await new FakeMediator().start("127.0.0.2", first.port);
  let address = "127.0.0.1";
  const system = { lookUp: async () => [{ address, family: 4 }], addresses: () => ["127.0.0.1"] };
  const open = (/** @type {string} */ text, /** @type {any} */ owner) => new UdpTransport(text, owner, system).open();
  const robot = await Robot.connect(`robot:${first.port}`, {}, open);
  robot.dummy().messages().open();
  await first.wait("5:0", TYPE.SUBSCRIBE);
  address = "127.0.0.2";
  first.isSilent = true;
  await second.wait("5:0", TYPE.SUBSCRIBE);
  await robot.close();
  await Promise.all([first.close(), second.close()]);
});

test("a socket whose local address is gone is replaced if there is another address", TEST, async () => {
  const mediator = await new FakeMediator().start("127.0.0.1");
  let addresses = ["127.0.0.1"];
  const system = { lookUp: async () => [{ address: "127.0.0.1", family: 4 }], addresses: () => addresses };
  let moves = 0;
  const owner = { received() {}, unreachable() {}, moved: () => (moves += 1) };
  const transport = new UdpTransport(`robot:${mediator.port}`, owner, system);
  Object.defineProperty(transport, "isLocal", { value: false });
  await transport.open();
  transport._local = "10.9.8.7"; // as after a change of the network
  addresses = ["127.0.0.1"];
  await until(() => moves === 1, "it has another socket");
  assert.equal(transport._local, "127.0.0.1");
  await transport.close();
  await mediator.close();
});

test("a datagram from elsewhere is not received", TEST, async () => {
  const mediator = await new FakeMediator().start();
  let count = 0;
  const transport = await openTransport(String(mediator.address), { received: () => (count += 1), unreachable() {}, moved() {} });
  await transport.send(encodeFrame(header(5, 0), new Uint8Array([0x10, TYPE.SUBSCRIBE])));
  await until(() => mediator.seen.length > 0, "the mediator knows the port");
  const stranger = dgram.createSocket("udp4");
  await new Promise((resolve) => stranger.send("x", mediator.client?.port ?? 0, "127.0.0.1", resolve));
  mediator.socket?.send("y", mediator.client?.port, "127.0.0.1");
  await until(() => count > 0, "that of the mediator arrives");
  assert.equal(count, 1);
  stranger.close();
  await transport.close();
  await mediator.close();
});
