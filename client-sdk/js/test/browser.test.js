// The half for browsers, in Node: a dashboard that answers as a test tells it, without a network.

import assert from "node:assert/strict";
import { test } from "node:test";
import { WebSocketTransport, parts } from "../src/browser.js";
import { RefusedError, Robot, UnreachableError, sides } from "../src/index.js";
import { encodeFrame, header } from "../src/frame.js";
import { TYPE } from "../src/interface.js";
import { FakeMediator, message, until } from "./fake.js";
import { LAMP } from "./lamp.js";

const TEST = { timeout: 60_000 };
const SPEEDS = { frontLeftSpeed: 1, frontRightSpeed: 2, rearLeftSpeed: 3, rearRightSpeed: 4 };

/** The page's end of a WebSocket. */
class FakeSocket {
  /** @param {FakeDashboard} dashboard @param {string} url */
  constructor(dashboard, url) {
    this.dashboard = dashboard;
    this.url = url;
    this.bufferedAmount = 0;
    this.isOpen = true;
    /** @type {any} */ this.onopen = undefined;
    /** @type {any} */ this.onmessage = undefined;
    /** @type {any} */ this.onclose = undefined;
    setTimeout(() => (dashboard.isDown ? this.end(1006) : this.onopen?.()));
  }

  /** @param {string | Uint8Array} data */
  send(data) {
    if (this.isOpen) this.dashboard.said(this, data);
  }

  close() {
    this.end(1000);
  }

  /** @param {number} code @param {string} [reason] */
  end(code, reason = "") {
    if (!this.isOpen) return;
    this.isOpen = false;
    setTimeout(() => this.onclose?.({ code, reason }));
  }

  /** @param {any} data */
  get(data) {
    setTimeout(() => this.isOpen && this.onmessage?.({ data }));
  }
}

/** A dashboard with a mediator. */
class FakeDashboard extends FakeMediator {
  constructor() {
    super();
    /** @type {FakeSocket[]} */
    this.sockets = [];
    /** @type {any[]} */
    this.texts = [];
    /** @type {number[]} */
    this.times = [];
    this.isDown = false;
    /** @type {{ code: number, reason: string } | undefined} */
    this.refuses = undefined;
  }

  /** @param {string} url */
  make(url) {
    const socket = new FakeSocket(this, url);
    this.sockets.push(socket);
    return /** @type {any} */ (socket);
  }

  /** @param {FakeSocket} socket @param {string | Uint8Array} data */
  said(socket, data) {
    if (typeof data === "string") {
      this.texts.push(JSON.parse(data));
      if (this.refuses) socket.end(this.refuses.code, this.refuses.reason);
      else if (this.texts.at(-1).t === "hello") this.tell({ t: "hello", role: "drive", local: true });
      return;
    }
    this.times.push(new DataView(data.buffer).getFloat64(0, true));
    this.take(data.subarray(8), /** @type {any} */ (undefined));
  }

  /** @param {object} told */
  tell(told) {
    this.sockets.at(-1)?.get(JSON.stringify(told));
  }

  /** @override @param {string} device @param {Uint8Array} message */
  send(device, message) {
    const [type, id] = device.split(":").map(Number);
    this.sockets.at(-1)?.get(encodeFrame(header(type, id), message).buffer);
  }

  /** @param {string} [address] @param {object} [options] */
  connect(address = "http://robot:8026/drive.html#secret", options = {}) {
    return Robot.connect(address, options, (text, owner) =>
      new WebSocketTransport(text, owner, (url) => this.make(url)).open());
  }
}

/** @param {number} ackNum */
function speeds(ackNum) {
  return message({ ackNum }, { "amber.roboclaw_proto.currentSpeed": SPEEDS });
}

test("addresses are those that a dashboard prints", () => {
  /** @type {[string, string, string | null][]} */
  const rows = [
    ["http://robot:8026", "ws://robot:8026/robot", null],
    ["http://192.168.2.201:8026/#abc_-9", "ws://192.168.2.201:8026/robot", "abc_-9"],
    ["https://robot.example/any/page.html?x=1#t", "wss://robot.example/robot", "t"],
    ["ws://[::1]:1", "ws://[::1]:1/robot", null],
  ];
  for (const [address, url, token] of rows) {
    const found = parts(address);
    assert.deepEqual([found.url, found.token], [url, token], address);
  }
  for (const bad of ["192.168.2.201", "robot:8026", "file:///page.html", ""]) {
    assert.throws(() => parts(bad), /is not an address of a dashboard/, bad);
  }
});

test("requests and answers are frames with a time, after the token", TEST, async () => {
  const dashboard = new FakeDashboard();
  dashboard.answer = ({ synNum }) => [speeds(synNum)];
  const robot = await dashboard.connect();
  assert.equal(dashboard.sockets[0].url, "ws://robot:8026/robot");
  assert.deepEqual([dashboard.texts[0].t, dashboard.texts[0].token], ["hello", "secret"]);
  assert.ok(!robot.mediatorAddress.includes("secret"), "a token is in no message");
  assert.deepEqual(await robot.wheels().speeds(), SPEEDS);
  const { message: request } = await dashboard.wait("2:0", TYPE.DATA);
  assert.equal(request.joins.pieceBytes, 32_000, "the mediator is on the computer of the dashboard");
  assert.ok(dashboard.times.every((time) => Math.abs(time - performance.now()) < 60_000));
  await robot.close();
  assert.ok(!dashboard.sockets[0].isOpen);
  await dashboard.wait("2:0", TYPE.CLIENT_DIED);
});

test("a refused page is told why, and does not try again", TEST, async () => {
  const dashboard = new FakeDashboard();
  dashboard.refuses = { code: 1008, reason: "wrong or missing token" };
  await assert.rejects(dashboard.connect(), (error) => {
    assert.ok(error instanceof UnreachableError);
    assert.match(error.message, /robot:8026: wrong or missing token\nhint: .*with its token.*--origin/);
    assert.ok(!error.message.includes("secret"));
    return true;
  });
  assert.equal(dashboard.sockets.length, 1);
  await assert.rejects(dashboard.connect("robot:8026"), TypeError);
});

test("without a dashboard, connecting fails; later it is used", TEST, async () => {
  const dashboard = new FakeDashboard();
  dashboard.isDown = true;
  await assert.rejects(dashboard.connect(), /there is no connection to the dashboard at robot:8026/);
  const robot = await dashboard.connect(undefined, { connectTimeoutMs: 0 });
  await assert.rejects(robot.wheels().speeds(), UnreachableError);
  dashboard.isDown = false;
  dashboard.answer = ({ synNum }) => [speeds(synNum)];
  await until(() => dashboard.texts.length > 0, "it connects by itself");
  await until(() => robot._mediatorAnswers, "it announces itself");
  assert.deepEqual(await robot.wheels().speeds(), SPEEDS);
  await robot.close();
});

test("after a lost connection, requests fail at once and subscriptions go on", TEST, async () => {
  const dashboard = new FakeDashboard();
  const robot = await dashboard.connect(undefined, { timeoutMs: 30_000 });
  const scans = robot.laser().scans().open();
  await dashboard.wait("4:0", TYPE.SUBSCRIBE);
  const asked = robot.wheels().speeds();
  await dashboard.wait("2:0", TYPE.DATA);
  dashboard.sockets[0].end(1006);
  await assert.rejects(asked, UnreachableError);
  await dashboard.wait("4:0", TYPE.SUBSCRIBE);
  assert.equal(dashboard.sockets.length, 2);
  dashboard.send("4:0", message({}, { "amber.hokuyo_proto.scan": { angles: [0], distances: [100] } }));
  const { value } = await scans.next();
  assert.deepEqual(value?.distances, [100]);
  // The dashboard has left for a page that was silent.
  dashboard.tell({ t: "moved" });
  await dashboard.wait("4:0", TYPE.SUBSCRIBE);
  await robot.close();
});

test("a new connection brings the descriptions of users' own devices again", TEST, async () => {
  const dashboard = new FakeDashboard();
  let described = 0;
  dashboard.answer = ({ synNum, get }) => {
    if (!get("amber.mediator_proto.request")?.getDescription) return [];
    described += 1;
    const reply = { description: { files: LAMP } };
    return [message({ ackNum: synNum }, { "amber.mediator_proto.reply": reply })];
  };
  const robot = await dashboard.connect();
  await robot.load("201:0");
  assert.equal(robot.device("lamp:0").address, "lamp:0");
  assert.equal(described, 1);
  dashboard.sockets[0].end(1006);
  // The dashboard knows them by these answers.
  await until(() => described === 2, "it asks again");
  await robot.close();
});

test("what the dashboard does not pass on is an error of its call", TEST, async () => {
  const dashboard = new FakeDashboard();
  /** @type {Error[]} */
  const late = [];
  const onRefusal = (/** @type {Error} */ error) => late.push(error);
  const robot = await dashboard.connect(undefined, { timeoutMs: 30_000, outcomeWaitMs: 30_000, onRefusal });
  dashboard.answer = ({ synNum }) => {
    dashboard.tell({ t: "refused", type: 2, id: 0, number: synNum, text: "this page is view-only" });
    return [];
  };
  await assert.rejects(robot.wheels().drive(sides(1, 1)), (error) => {
    assert.ok(error instanceof RefusedError);
    assert.equal(error.words, "this page is view-only");
    return true;
  });
  dashboard.tell({ t: "refused", type: 4, id: 0, number: 0, text: "this page uses too many devices" });
  await until(() => late.length === 1, "one without a call is reported");
  dashboard.answer = () => [];
  const asked = robot.wheels().speeds();
  await dashboard.wait("2:0", TYPE.DATA);
  dashboard.tell({ t: "unreachable", text: "Connection refused" });
  await assert.rejects(asked, /the dashboard cannot reach the mediator: Connection refused/);
  await robot.close();
});

test("commands do not queue up in a slow network", TEST, async () => {
  const dashboard = new FakeDashboard();
  const robot = await dashboard.connect();
  dashboard.sockets[0].bufferedAmount = 300_000;
  await assert.rejects(robot.wheels().drive(sides(1, 1)), /too slow: earlier messages still wait/);
  dashboard.sockets[0].bufferedAmount = 0;
  await robot.close();
});
