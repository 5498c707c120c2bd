// Leases that are taken with commands, with a mediator that a test scripts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Claims, RefusedError, Robot } from "../src/index.js";
import { FakeMediator, message, until } from "./fake.js";

const TEST = { timeout: 60_000 };

/**
 * A test with a device that grants leases unless somebody holds them.
 * @param {string} name
 * @param {(it: { robot: Robot, actions: string[], told: { holder?: string, isSilent?: boolean } }) => Promise<void>} body
 * @param {object} [options]
 */
function scripted(name, body, options) {
  test(name, TEST, async () => {
    const mediator = await new FakeMediator().start();
    /** @type {string[]} */
    const actions = [];
    /** @type {{ holder?: string, isSilent?: boolean }} */
    const told = {};
    mediator.answer = ({ synNum, get }) => {
      const request = get("amber.motion_proto.lease_request");
      if (!request || told.isSilent) return [];
      if (request.action !== "KEEP") actions.push(request.action);
      if (request.action === "TAKE_BY_FORCE") told.holder = undefined;
      const state = told.holder ? { yours: false, refused: `${told.holder} holds the lease` } : { yours: true };
      return [message({ ackNum: synNum }, { "amber.motion_proto.motion_state": state })];
    };
    const robot = await Robot.connect(mediator.address, { timeoutMs: 20_000, ...options });
    try {
      await body({ robot, actions, told });
    } finally {
      await robot.close();
      await mediator.close();
    }
  });
}

scripted("a lease is taken once, and released a while after the last command", async ({ robot, actions }) => {
  const claims = new Claims("test", { holdMs: 100 });
  await Promise.all([claims.claim(robot.wheels()), claims.claim(robot.wheels())]);
  await claims.claim(robot.device("roboclaw:0"));
  assert.deepEqual([actions, claims.held], [["TAKE"], ["roboclaw:0"]]);
  await until(() => actions.includes("RELEASE"), "it is released");
  assert.deepEqual(claims.held, []);
  await claims.claim(robot.wheels());
  assert.deepEqual(actions, ["TAKE", "RELEASE", "TAKE"]);
  await claims.close();
  assert.equal(actions.at(-1), "RELEASE");
});

scripted("an errand keeps its lease until the release", async ({ robot, actions }) => {
  const claims = new Claims("test", { holdMs: 20 });
  await claims.claim(robot.wheels(), { errand: true });
  await claims.claim(robot.wheels());
  await claims.claim(robot.servos());
  await until(() => actions.length === 3, "that of the other device is released");
  assert.deepEqual(claims.held, ["roboclaw:0"]);
  await claims.release(robot.wheels());
  await claims.release(robot.laser());
  assert.deepEqual(actions, ["TAKE", "TAKE", "RELEASE", "RELEASE"]);
  assert.deepEqual(claims.held, []);
});

scripted("another holder is named, and is asked for a moment later or by force", async ({ robot, actions, told }) => {
  const wheels = robot.wheels();
  const claims = new Claims("test");
  told.holder = "amber goto";
  const isRefused = (/** @type {unknown} */ error) => error instanceof RefusedError && /amber goto/.test(error.words);
  await assert.rejects(claims.claim(wheels), isRefused);
  assert.ok(actions.length > 1, "that client might have released it at once");
  assert.ok(claims.isDenied(wheels));
  const asked = actions.length;
  await assert.rejects(claims.claim(wheels), isRefused);
  assert.equal(actions.length, asked, "the answer is known");
  await claims.claim(wheels, { force: true });
  assert.deepEqual([actions.at(-1), claims.held], ["TAKE_BY_FORCE", ["roboclaw:0"]]);
  assert.ok(!claims.isDenied(wheels));
  await claims.close();
});

scripted("a lease that is lost is told, and taken again with the next command", async ({ robot, actions, told }) => {
  /** @type {string[]} */
  const lost = [];
  const claims = new Claims("test", { periodMs: 200, holdMs: 60_000, onLost: (device, error) => lost.push(`${device}: ${error.message}`) });
  await claims.claim(robot.wheels());
  told.holder = "you";
  await until(() => lost.length > 0, "the loss is told");
  assert.match(lost[0], /^roboclaw:0: .*the lease is lost: you holds the lease/);
  assert.deepEqual(claims.held, []);
  told.holder = undefined;
  await claims.claim(robot.wheels());
  assert.deepEqual(actions, ["TAKE", "TAKE"]);
  await claims.close();
});

scripted("a driver that keeps no leases gets the commands", async ({ robot, told }) => {
  told.isSilent = true;
  const claims = new Claims("test");
  await claims.claim(robot.wheels());
  await until(() => claims._claims.get("roboclaw:0")?.state === "without", "it is known");
  await claims.claim(robot.wheels());
  assert.deepEqual([claims.held, claims.isDenied(robot.wheels())], [[], false]);
  await claims.close();
}, { timeoutMs: 100 });

scripted("a lease that comes after its release is given back", async ({ robot, actions }) => {
  const claims = new Claims("test");
  const claimed = claims.claim(robot.wheels());
  await claims.release(robot.wheels());
  await claimed;
  await until(() => actions.includes("RELEASE"), "it is given back");
  assert.deepEqual(claims.held, []);
});
