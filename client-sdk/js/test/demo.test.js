// The package with the robot of `amber demo`. The programs in README.md, and that in the README of the project, run
// there, in a folder in which the package is installed.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { DeviceDiedError, RefusedError, Robot, sides } from "../src/index.js";
import { INTERFACES } from "../src/ours.js";
import { amber, root } from "./amber.js";
import { until } from "./fake.js";

/** Whether drivers in Python can be started. */
const hasPython = spawnSync("python3", ["-c", "import grpc_tools, google.protobuf"]).status === 0;
const folder = mkdtempSync(join(tmpdir(), "amber-js-"));
/** A folder of a user, with the package. */
const programs = mkdtempSync(join(tmpdir(), "amber-js-programs-"));
copyFileSync(fileURLToPath(new URL("../examples/lamp.proto", import.meta.url)), join(programs, "lamp.proto"));
const TEST = { timeout: 120_000 };
/** For a busy machine. */
const PATIENT = { timeoutMs: 10_000, outcomeWaitMs: 10_000, connectTimeoutMs: 60_000 };
/** @type {import("node:child_process").ChildProcess} */
let demo;
let address = "";
/** @type {Robot} */
let robot;

before(async () => {
  install();
  const program = amber();
  const picture = join(folder, "picture.jpg");
  writeFileSync(picture, jpeg(90_000));
  const camera = `camera:1=${program} driver camera --command "sh -c 'while sleep 0.1; do cat ${picture}; done'"`;
  const args = ["demo", "--port", "0", "--no-dashboard", "--dir", join(folder, "robot"), "--driver", camera];
  if (hasPython) args.push("--driver", `201:2=python3 -u ${join(root, "client-sdk/js/test/lamp/lamp_driver.py")}`);
  const env = { ...process.env, PYTHONPATH: join(root, "client-sdk/python/src") };
  demo = spawn(program, args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  demo.stdout?.on("data", (data) => (output += data));
  demo.stderr?.on("data", (data) => (output += data));
  const listening = () => /listening on (\S+)/.exec(output)?.[1];
  await until(() => listening() !== undefined || demo.exitCode !== null, "the demo listens");
  address = listening() ?? assert.fail(output);
  robot = await Robot.connect(address, PATIENT);
  // Devices appear one after the other.
  for (const call of [() => robot.wheels().speeds(), () => robot.laser().scan(), () => robot.driveToPoint().progress()]) {
    await answering(call);
  }
}, TEST);

after(async () => {
  await robot?.close();
  if (demo?.exitCode === null) {
    const ended = new Promise((resolve) => demo.once("exit", resolve));
    demo.kill("SIGTERM");
    await ended;
  }
  rmSync(folder, { recursive: true });
  rmSync(programs, { recursive: true });
}, TEST);

test("wheels drive, refuse and stop", TEST, async () => {
  const wheels = robot.wheels();
  const updates = wheels.speedUpdates();
  await wheels.drive(sides(200, 200), { validMs: 5000 });
  for await (const { currentSpeed } of updates) if (currentSpeed.frontLeftSpeed > 50) break;
  await wheels.stop();
  for await (const { currentSpeed } of wheels.speedUpdates()) if (currentSpeed.frontLeftSpeed === 0) break;
  await assert.rejects(wheels.drive(sides(5000, 5000)), (error) => {
    assert.ok(error instanceof RefusedError);
    assert.match(error.words, /max_speed_mm_s/);
    return true;
  });
  assert.ok((await wheels.ping()) > 0);
});

test("each request that only reads is answered or refused", TEST, async () => {
  const { drivers } = await robot.mediator().listDrivers();
  const types = drivers.flatMap(({ devices }) => devices).map(({ type }) => type);
  let answered = 0;
  for (const device of INTERFACES.filter(({ type }) => type === 0 || types.includes(type))) {
    const { options, methods } = device;
    const reading = methods.filter(({ kind, described }) => kind === "ask" && options.get(described, "ask").reads);
    for (const { name, hasNoArguments, isBare } of reading) {
      if (!hasNoArguments && !isBare) continue;
      const one = robot.device({ type: device.type, id: 0 });
      const call = () => one[name]().then(() => 1, (/** @type {unknown} */ error) => {
        if (error instanceof RefusedError) return 0;
        throw new Error(`${device.name} ${name}`, { cause: error });
      });
      answered += await answering(call);
    }
  }
  assert.ok(answered > 20, `only ${answered} were answered`);
});

test("commands expire", TEST, async () => {
  const wheels = robot.wheels().with({ validMs: 1000 });
  await wheels.drive(sides(200, 200));
  for await (const { currentSpeed } of wheels.speedUpdates()) if (currentSpeed.frontLeftSpeed > 50) break;
  for await (const { currentSpeed } of wheels.speedUpdates()) if (currentSpeed.frontLeftSpeed === 0) break;
});

test("scans come as a loop", TEST, async () => {
  let count = 0;
  for await (const scan of robot.laser().scans()) {
    assert.equal(scan.angles.length, scan.distances.length);
    assert.ok(scan.angles.length > 100 && Number(scan.timestamp) > 0);
    if (++count === 3) break;
  }
});

test("pictures are longer than a frame", TEST, async () => {
  const picture = await answering(() => robot.camera(1).picture({ maxAge: 60_000 }));
  assert.ok(picture.data.length > 80_000);
  const pictures = robot.camera(1).pictures({ period: 100 });
  for await (const { data, format } of pictures) {
    assert.deepEqual([format, data[0], data[1]], ["JPEG", 0xff, 0xd8]);
    assert.ok(data.length > 80_000);
    break;
  }
});

test("requests may be longer than a frame", TEST, async () => {
  const map = readFileSync(join(root, "drivers/map/maps/flat.roson"), "utf8").padEnd(100_000);
  await robot.location().uploadMap(map);
  await assert.rejects(robot.location().uploadMap("x".repeat(100_000)), RefusedError);
});

test("another program that moves a leased device is refused", TEST, async () => {
  const other = await Robot.connect(address, PATIENT);
  const lease = await robot.wheels().lease("test of leases");
  await assert.rejects(other.wheels().drive(sides(10, 10)), /test of leases/);
  await assert.rejects(other.wheels().lease("other"), /test of leases/);
  await other.wheels().stop();
  const forced = await other.wheels().lease("other", { force: true });
  await assert.rejects(robot.wheels().drive(sides(10, 10)), RefusedError);
  if (!lease.signal.aborted) await new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
  assert.match(String(lease.lost), /other/);
  await lease.release();
  await forced.release();
  await other.close();
});

test("a halt keeps everything from moving until the release", TEST, async () => {
  const other = await Robot.connect(address, PATIENT);
  const halted = await robot.halt("test of halts");
  for (const device of ["roboclaw:0", "drive-to-point:0", "maestro:0"]) assert.ok(halted.includes(device), `${halted}`);
  assert.ok(!halted.includes("hokuyo:0"));
  await assert.rejects(other.wheels().drive(sides(10, 10)), /test of halts/);
  assert.equal((await other.wheels().motionState()).halt?.by, "test of halts");
  const { drivers } = await other.mediator().listDrivers();
  const motions = drivers.flatMap(({ motions }) => motions);
  assert.ok(motions.some(({ haltedBy }) => haltedBy === "test of halts"), JSON.stringify(motions));
  assert.deepEqual(await other.releaseHalt("other"), halted);
  assert.equal((await robot.wheels().motionState()).halt, undefined);
  await other.wheels().drive(sides(10, 10), { validMs: 100 });
  await other.close();
});

test("a device that is not there, and a driver that is restarted", TEST, async () => {
  await assert.rejects(robot.device("dummy:9").status(), (error) => {
    assert.ok(error instanceof DeviceDiedError);
    assert.equal(error.reason, "NO_SUCH_DEVICE");
    return true;
  });
  const messages = robot.dummy().messages();
  // It counts from 1.
  const next = async () => Number(/\d+/.exec(String((await messages.next()).value)));
  while ((await next()) < 5);
  await robot.mediator().changeDriver({ device: "dummy:0", action: "RESTART" });
  const { state } = await robot.mediator().describeDriver("dummy:0");
  assert.equal(typeof state, "string");
  // The new process publishes to this client again.
  while ((await next()) >= 5);
  messages.close();
});

const skip = hasPython ? false : "needs Python with protobuf and grpcio-tools";
test("a device of which only the driver has the description", { ...TEST, skip }, async () => {
  const lamp = await answering(() => robot.load("lamp:2"));
  const light = { brightnessPercent: 40, color: "WHITE", canBe: ["WHITE", "WARM_WHITE"] };
  assert.deepEqual(await lamp.setBrightness(40), light);
  await assert.rejects(lamp.setBrightness(101), (error) => {
    assert.ok(error instanceof RefusedError);
    assert.equal(error.words, "brighter than 100 %");
    return true;
  });
  assert.deepEqual(await lamp.light(), light);
  assert.deepEqual(await robot.device("lamp:2").light(), light);
  assert.equal((await robot.mediator().describeDriver("lamp:2")).state, "UP");
  for await (const one of lamp.lights()) {
    assert.deepEqual(one, light);
    break;
  }
});

/** Code blocks. @type {[string, string][]} */
const documented = ["README.md", "client-sdk/js/README.md"].flatMap((page) => {
  const found = [...readFileSync(join(root, page), "utf8").matchAll(/^```js\n(.*?)^```$/gms)];
  assert.ok(found.length, `programs in ${page}`);
  return found.map(([, program], i) => /** @type {[string, string]} */ ([`program ${i + 1} of ${page}`, program]));
});
for (const [i, [name, program]] of documented.entries()) {
  test(`${name} runs`, TEST, () => runs(`program-${i}.mjs`, program));
}

test("editors know the types in all these programs", TEST, () => {
  for (const [i, [, program]] of documented.entries()) writeFileSync(join(programs, `program-${i}.mjs`), program);
  const settings = {
    compilerOptions: {
      target: "ES2022", module: "NodeNext", lib: ["ES2022", "DOM"], types: [], allowJs: true, checkJs: true,
      strict: true, noImplicitAny: false, useUnknownInCatchVariables: false, noEmit: true,
    },
    include: ["program-*.mjs"],
  };
  writeFileSync(join(programs, "tsconfig.json"), JSON.stringify(settings));
  const tsc = fileURLToPath(new URL("../node_modules/.bin/tsc", import.meta.url));
  const checked = spawnSync(tsc, ["-p", programs], { encoding: "utf8" });
  assert.equal(checked.status, 0, checked.stdout + checked.stderr);
});

/** Installs what `npm publish` would publish. */
function install() {
  const npm = (/** @type {string[]} */ ...args) => {
    const done = spawnSync("npm", args, { cwd: programs, encoding: "utf8" });
    assert.equal(done.status, 0, `npm ${args.join(" ")}: ${done.stdout}${done.stderr}`);
    return done.stdout;
  };
  const [{ filename }] = JSON.parse(npm("pack", "--json", join(root, "client-sdk/js")));
  writeFileSync(join(programs, "package.json"), "{}");
  npm("install", "--offline", "--no-audit", "--no-fund", `./${filename}`);
}

/**
 * Runs a program.
 * @param {string} name
 * @param {string} program
 */
async function runs(name, program) {
  const path = join(programs, name);
  writeFileSync(path, program);
  const child = spawn(process.execPath, [path], { env: { ...process.env, AMBER_MEDIATOR: address } });
  child.stdin.end(); // ends drivers
  let output = "";
  child.stdout.on("data", (data) => (output += data));
  child.stderr.on("data", (data) => (output += data));
  const code = await new Promise((resolve) => child.once("close", resolve));
  assert.equal(code, 0, `${program}\n${output}`);
}

/**
 * The answer of a device that may still be starting.
 * @template T
 * @param {() => Promise<T>} call
 * @returns {Promise<T>}
 */
async function answering(call) {
  for (const until = Date.now() + 60_000; ; ) {
    try {
      return await call();
    } catch (error) {
      if (Date.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** A JPEG file of this length with the size 640x480 in its header. @param {number} length */
function jpeg(length) {
  const start = "ffd8 ffc0000b0801e00280010111 00 ffda0008010100003f00".replaceAll(" ", "");
  return Buffer.concat([Buffer.from(start, "hex"), Buffer.alloc(length, 0x55), Buffer.from("ffd9", "hex")]);
}
