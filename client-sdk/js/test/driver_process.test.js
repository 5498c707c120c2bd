// Drivers as programs: with `amber check`, with a mediator and a client of this package, and by hand.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { FrameReader, headerTo } from "../src/driver/frames.js";
import { encodeFrame } from "../src/frame.js";
import { DeviceDiedError, RefusedError, Robot } from "../src/index.js";
import { amber, root } from "./amber.js";
import { CRANE } from "./crane.js";
import { until } from "./fake.js";

// For a busy machine, on which a program may take a minute to start.
const TEST = { timeout: 600_000 };
const PATIENT = { timeoutMs: 60_000, outcomeWaitMs: 60_000, connectTimeoutMs: 120_000 };
/** @param {() => boolean} condition @param {string} what */
const eventually = (condition, what) => until(condition, what, undefined, 120_000);
const folder = mkdtempSync(join(tmpdir(), "amber-js-driver-"));
const proto = join(folder, "crane.proto");
const example = fileURLToPath(new URL("../examples/lamp_driver.js", import.meta.url));
const crane = fileURLToPath(new URL("crane_driver.js", import.meta.url));
writeFileSync(proto, CRANE);
after(() => rmSync(folder, { recursive: true }));

/** A process, with what it writes. @param {string} program @param {string[]} args @param {Record<string, string>} [environment] */
function run(program, args, environment = {}) {
  const child = spawn(program, args, { env: { ...process.env, ...environment } });
  const output = { out: "", err: "" };
  /** @type {Uint8Array[]} */
  const parts = [];
  child.stdout.on("data", (data) => {
    output.out += data;
    parts.push(data);
  });
  child.stderr.on("data", (data) => (output.err += data));
  // What it does not read any more is of no importance.
  child.stdin.on("error", () => {});
  const ended = new Promise((resolve) => child.once("close", (code) => resolve(code)));
  return { child, output, parts, ended };
}

test("the example is a driver, by `amber check`", TEST, async () => {
  const words = ["check", "--timeout", "120", "--proto", join(root, "client-sdk/examples/lamp.proto"), "--request", "set_brightness=10"];
  const { output, ended } = run(amber(), [...words, "--", process.execPath, example]);
  assert.equal(await ended, 0, output.out + output.err);
  assert.match(output.out, /\d\d passed/);
});

test("so is one with a motor and streams of all kinds", TEST, async () => {
  const words = ["check", "--timeout", "120", "--proto", proto, "--request", "write=hello"];
  const { output, ended } = run(amber(), [...words, "--", process.execPath, crane, proto]);
  assert.equal(await ended, 0, output.out + output.err);
  assert.match(output.out, /pass +streams /);
});

test("the lamp has the description of the other languages", () => {
  const [own, others] = [join(example, "../lamp.proto"), join(root, "client-sdk/examples/lamp.proto")];
  assert.equal(readFileSync(own, "utf8"), readFileSync(others, "utf8"));
});

test("a client and a driver of this package, with a mediator between them", TEST, async () => {
  const words = [process.execPath, crane, proto].map((it) => `'${it}'`).join(" ");
  const mediator = run(amber(), ["mediator", "--listen", "127.0.0.1:0", "--driver", `230:0=${words}`]);
  /** @type {Robot | undefined} */
  let robot;
  try {
    const said = () => mediator.output.out + mediator.output.err;
    const listening = () => /listening on (\S+)/.exec(said())?.[1];
    await eventually(() => listening() !== undefined || mediator.child.exitCode !== null, "the mediator listens");
    robot = await Robot.connect(listening() ?? assert.fail(said()), PATIENT);
    await eventually(() => /up driver=230:0/.test(said()), "the driver is up");
    const device = await loaded(robot);
    // Other programs know it by its description, too.
    const called = run(amber(), ["call", "crane", "height", "--timeout", "120"], { AMBER_MEDIATOR: String(listening()) });
    assert.equal(await called.ended, 0, called.output.err);
    assert.equal(called.output.out, "height: 1.5\n");
    assert.equal(await device.height(), 1.5);
    for await (const height of device.heights()) {
      assert.equal(height, 2.5);
      break;
    }
    // Longer than a frame, both ways.
    const text = "ą".repeat(100_000);
    assert.equal(await device.write(text), text);
    for await (const shown of device.texts({ period: 50 })) {
      assert.equal(shown, text);
      break;
    }
    await assert.rejects(device.write("refuse"), (error) => error instanceof RefusedError && error.words === "not this text");
    await assert.rejects(device.write("fail"), (error) => {
      assert.ok(error instanceof RefusedError);
      assert.equal(error.words, "the driver failed: Error: no display; `amber logs 230:0` shows where");
      return true;
    });
    await device.lift({ speed: 10 }, { validMs: 5000 });
    await eventually(() => /speed 10[^]*speed 0/.test(said()), "it stops");
    assert.deepEqual(await robot.halt("the test"), ["crane:0"]);
    await assert.rejects(device.lift({ speed: 11 }), (error) => error instanceof RefusedError && /halted by the test/.test(error.words));
    await device.write("trouble");
    const driver = await robot.mediator().describeDriver("crane:0");
    assert.match(JSON.stringify(driver), /no power/);
    // An error that nobody has caught ends the driver, which stops the device. The halt survives.
    await assert.rejects(device.write("crash"), DeviceDiedError);
    await eventually(() => /SyntaxError[^]*stopped/.test(said()), "the device is stopped");
    await eventually(() => (said().match(/up driver=230:0/g) ?? []).length === 2, "the driver is up again");
    assert.equal((await device.motionState()).halt?.by, "the test");
    await robot.releaseHalt("the test");
  } finally {
    await robot?.close();
    mediator.child.kill("SIGTERM");
    await mediator.ended;
  }
});

/** The crane, once the mediator has its description. @param {Robot} robot */
async function loaded(robot) {
  for (let tries = 0; ; tries++) {
    try {
      return await robot.load("crane:0");
    } catch (error) {
      if (!(error instanceof TypeError) || tries === 5000) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

test("it ends with stdin or a signal, after it has stopped the device", TEST, async () => {
  for (const signal of /** @type {const} */ ([undefined, "SIGTERM", "SIGINT"])) {
    const { child, output, parts, ended } = run(process.execPath, [crane, proto]);
    child.stdin.write(encodeFrame(headerTo([5]), Uint8Array.of(0x10, 2, 0x18, 9))); // PING 9
    await eventually(() => output.out.length > 0, "a PONG");
    if (signal) child.kill(signal);
    else child.stdin.end();
    assert.equal(await ended, 0, output.err);
    // stdout has frames only; what was printed is on stderr.
    const frames = [...new FrameReader().feed(new Uint8Array(Buffer.concat(parts)))];
    assert.deepEqual(frames.map(({ message }) => [...message]), [[0x10, 3, 0x20, 9]]);
    assert.match(output.err, /^this goes to stderr\nand this, too\n[^]*stopped\n$/);
  }
});

test("a driver that cannot start or is incomplete says why", TEST, async () => {
  const failing = run(process.execPath, [crane, proto, "start"]);
  assert.equal(await failing.ended, 1);
  assert.match(failing.output.err, /Error: no crane\n[^]*stopped\n$/);
  const serve = (/** @type {string} */ rest) => {
    const source = `import { serve } from ${JSON.stringify(new URL("../src/driver/index.js", import.meta.url).href)}; serve(${rest});`;
    return run(process.execPath, ["--input-type=module", "-e", source]);
  };
  /** @type {[string, RegExp][]} */
  const table = [
    ['"wings", {}', /Amber has no device "wings", only ninedof, roboclaw, .*\nhint: for a device of your own/],
    ['"wheels", {}', /the driver of Roboclaw needs the methods drive, speeds, battery/],
    [`${JSON.stringify(proto)}, {}`, /the driver of Crane needs the methods lift, height, write, texts/],
    ['"missing.proto", {}', /there is no file missing\.proto/],
  ];
  for (const [rest, message] of table) {
    const { ended, output, child } = serve(rest);
    child.stdin.end();
    assert.equal(await ended, 1);
    assert.match(output.err, message);
    assert.equal(output.out, "");
  }
});

test("the types name what there is", TEST, async () => {
  const types = readFileSync(new URL("../src/driver/index.d.ts", import.meta.url), "utf8");
  const named = [...types.matchAll(/^export (?:declare )?(?:class|function) (\w+)|^export \{ (\w+) \}/gm)].map(([, a, b]) => a ?? b);
  const module = JSON.stringify(new URL("../src/driver/index.js", import.meta.url).href);
  const source = `import(${module}).then((all) => console.log(Object.keys(all).sort().join()))`;
  const { ended, output } = run(process.execPath, ["--input-type=module", "-e", source]);
  assert.equal(await ended, 0, output.err);
  // The module has taken stdout.
  assert.equal(output.err, `${[...new Set(named)].sort().join()}\n`);
});
