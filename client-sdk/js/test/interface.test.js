// Tables for what the descriptions of devices mean, and checks that made files are up to date.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as buf from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import * as amber from "../src/index.js";
import { readSchemas } from "../src/node.js";
import { interfacesOf } from "../src/interface.js";
import { INTERFACES } from "../src/ours.js";
import { fromBinary, toBinary } from "../src/protobuf.js";
import { readDescription } from "../src/schemas.js";
import { types } from "../scripts/types.js";
import { LAMP } from "./lamp.js";

/** @param {string} device @param {string} name */
function method(device, name) {
  const found = INTERFACES.find((it) => it.name === device)?.methods.find((it) => it.name === name);
  return found ?? assert.fail(`${device} has no ${name}`);
}

/** @param {string} device @param {string} name @param {any} [given] */
function order(device, name, given) {
  const found = method(device, name);
  return Buffer.from(toBinary(found.device.message, found.order(given, found.start))).toString("hex");
}

/** @param {string} device @param {string} name @param {string} hex */
function answer(device, name, hex) {
  const found = method(device, name);
  const message = fromBinary(found.device.message, Uint8Array.from(Buffer.from(hex.replaceAll(" ", ""), "hex")));
  return found.isStream ? found.published(message, device) : found.answer(message, device);
}

test("requests have the bytes of their descriptions", () => {
  const speeds = { frontLeftSpeed: 5 };
  /** @type {[string, string, any, string][]} */
  const rows = [
    ["dummy", "status", undefined, "1001a00301"],
    ["dummy", "message", "hi", "10019a03026869"],
    ["roboclaw", "drive", speeds, "1001a201020805"],
    ["roboclaw", "drive", { frontLeftSpeed: -1 }, "1001a2010b08ffffffffffffffffff01"],
    ["mediator", "listDrivers", undefined, "1001a20b020a00"],
    ["mediator", "describeDriver", "laser:1", "1001a20b0612040804 1001"],
    ["mediator", "changeDriver", { device: { type: 4, id: 0 }, action: "STOP" }, "1001a20b0a2a080a04080410001002"],
    ["drive-to-point", "order", 2 ** 40, "1001c0138080808080 20"],
    ["drive-to-point", "setTargets", { longitudes: [], latitudes: [], radiuses: [] }, "1001800501aa0500"],
    ["camera", "picture", undefined, "1001a21000"],
    ["camera", "picture", { format: "GRAY8", maxWidth: 64 }, "1001a2100408401802"],
  ];
  for (const [device, name, given, hex] of rows) {
    assert.equal(order(device, name, given), hex.replaceAll(" ", ""), `${device} ${name}`);
  }
});

test("all of a stream can be asked for without knowing it", () => {
  const streams = INTERFACES.flatMap(({ name, methods }) => methods.filter(({ kind }) => kind === "stream").map((it) => ({ name, it })));
  assert.ok(streams.length > 3);
  for (const { name, it } of streams) {
    assert.doesNotThrow(() => it.order(it.whole(200), it.start), `${name} ${it.name}`);
  }
  assert.deepEqual(method("ninedof", "readings").whole(200), {
    accel: true, gyro: true, magnet: true, extended: true, freq: 200,
  });
  assert.deepEqual(method("camera", "pictures").whole(50), { period: 50 });
  assert.equal(method("hokuyo", "scans")?.whole(200), undefined);
});

test("any device tells its requests and streams", async () => {
  const robot = new amber.Robot("", {});
  const methods = amber.methodsOf(robot.device("hokuyo:1"));
  const { name, kind, reads, moves, needsArguments } = methods[0];
  assert.deepEqual({ name, kind, reads, moves, needsArguments }, {
    name: "scan", kind: "ask", reads: true, moves: false, needsArguments: false,
  });
  const drive = amber.methodsOf(robot.wheels()).find((it) => it.name === "drive") ?? assert.fail();
  assert.deepEqual([drive.kind, drive.reads, drive.moves, drive.needsArguments], ["tell", false, true, true]);
  await assert.rejects(drive.call({ wings: 2 }), /has no field wings/);
  await assert.rejects(methods[0].call(), amber.ClosedError);
});

test("arguments that do not fit are named", () => {
  /** @type {[string, string, any, RegExp][]} */
  const rows = [
    ["roboclaw", "drive", undefined, /drive needs its arguments/],
    ["roboclaw", "drive", 5, /MotorsSpeed is an object with fields, not 5/],
    ["roboclaw", "drive", { frontLeft: 1 }, /MotorsSpeed has no field frontLeft, only frontLeftSpeed/],
    ["roboclaw", "drive", { frontLeftSpeed: 1.5 }, /frontLeftSpeed is a whole number, not 1.5/],
    ["roboclaw", "drive", { frontLeftSpeed: "5" }, /frontLeftSpeed is a whole number, not "5"/],
    ["roboclaw", "drive", { frontLeftSpeed: NaN }, /frontLeftSpeed is a whole number, not NaN/],
    ["roboclaw", "drive", { frontLeftSpeed: 2 ** 31 }, /frontLeftSpeed is from -2147483648 to 2147483647/],
    ["dummy", "enable", 1, /enable is a boolean, not 1/],
    ["dummy", "message", undefined, /message needs its argument/],
    ["camera", "picture", { format: "PNG" }, /format is one of JPEG, GRAY8, not "PNG"/],
    ["camera", "picture", { maxWidth: -1 }, /maxWidth is from 0 to 4294967295, not -1/],
    ["mediator", "changeDriver", { device: "laser" }, /ChangeDriver needs action/],
    ["drive-to-point", "setTargets", { longitudes: [1] }, /lists of equal length, not 1 longitudes, 0 latitudes/],
    ["drive-to-point", "setTargets", { longitudes: 1 }, /longitudes is a list, not 1/],
    ["mediator", "describe", { files: "text" }, /is a Uint8Array, not "text"/],
  ];
  for (const [device, name, given, words] of rows) {
    assert.throws(() => order(device, name, given), words, `${device} ${name}`);
  }
});

test("answers are plain objects", () => {
  assert.deepEqual(answer("dummy", "status", "1001 2001 900301 9a03026869"), { enable: true, message: "hi" });
  // What is absent is 0 by its description.
  assert.deepEqual(answer("roboclaw", "speeds", "1001 2001 b201020805"), {
    frontLeftSpeed: 5, frontRightSpeed: 0, rearLeftSpeed: 0, rearRightSpeed: 0,
  });
  const scan = "ca020e 0a080000000000001440 1202b960".replaceAll(" ", "");
  assert.deepEqual(answer("hokuyo", "scans", `1001 2000 ${scan} 880364`), {
    angles: [5], distances: [12345], timestamp: 100,
  });
  assert.equal(answer("hokuyo", "scans", "1001 2000 900301"), undefined);
  const picture = answer("camera", "picture", "1001 2001 aa100e 0a02ffd8 1001 1805 2006 2807 3008");
  assert.deepEqual(picture, {
    data: new Uint8Array([0xff, 0xd8]), format: "JPEG", width: 5, height: 6, captured: 7, sequence: 8, damaged: false,
  });
});

test("answers that refuse, lack something or contradict themselves are errors", () => {
  assert.throws(() => answer("camera", "picture", "1001 2001 b2100464617 26b"), (error) => {
    assert.ok(error instanceof amber.RefusedError);
    assert.equal(error.words, "dark");
    assert.equal(error.message, "camera refused the request: dark");
    return true;
  });
  const refused = "aa0b0d 320b 0803 12026e6f 1a03747279".replaceAll(" ", "");
  assert.throws(() => answer("mediator", "reload", `1001 2001 ${refused}`), (error) => {
    assert.ok(error instanceof amber.RefusedError);
    assert.deepEqual([error.words, error.hint, typeof error.reason], ["no", "try", "string"]);
    assert.match(error.message, /no\nhint: try$/);
    return true;
  });
  assert.throws(() => answer("dummy", "status", "1001 2001 900301"), /dummy answered status without message/);
  assert.throws(() => answer("dummy", "status", "1001 2001 900301"), amber.BadAnswerError);
  assert.throws(() => answer("hokuyo", "scan", "1001 2001 ca02031201 05"), /Scan needs lists of equal length/);
});

test("each device that can stop has a request that does", () => {
  const stops = INTERFACES.filter((it) => it.stopper).map((it) => {
    const message = it.stopper?.stopOrder() ?? assert.fail(it.name);
    return `${it.name} ${Buffer.from(toBinary(it.message, message)).toString("hex")}`;
  });
  assert.ok(stops.includes("roboclaw 1001a201080800100018002000"), stops.join("\n"));
  assert.ok(stops.includes("drive-to-point 1001800501aa0500"), stops.join("\n"));
});

test("the description of another device", () => {
  const [lamp] = interfacesOf(readDescription(LAMP));
  assert.deepEqual([lamp.type, lamp.name, lamp.methods.map((it) => it.name)], [201, "lamp", ["setBrightness", "brightness"]]);
  assert.equal(Buffer.from(toBinary(lamp.message, lamp.methods[0].order(40))).toString("hex"), "1001900828");
  assert.throws(() => readDescription(new Uint8Array([1, 2, 3])));
});

test("the schemas are those of the Python package, without comments", () => {
  // If this fails, run scripts/python-schemas. A test of the Python package compares with proto/.
  const python = readFileSync(new URL("../../python/src/amber/schemas.binpb", import.meta.url));
  const theirs = buf.fromBinary(FileDescriptorSetSchema, python);
  for (const file of theirs.file) file.sourceCodeInfo = undefined;
  assert.deepEqual(readSchemas(), buf.toBinary(FileDescriptorSetSchema, theirs));
});

test("the types are up to date", () => {
  // If this fails, run scripts/python-schemas.
  const { devices, drivers } = types();
  assert.ok(readFileSync(new URL("../src/devices.d.ts", import.meta.url), "utf8") === devices);
  assert.ok(readFileSync(new URL("../src/driver/devices.d.ts", import.meta.url), "utf8") === drivers);
});

test("the types that are written by hand name what there is", () => {
  const text = readFileSync(new URL("../src/index.d.ts", import.meta.url), "utf8");
  const values = [...text.matchAll(/^export (?:class|function) (\w+)/gm)].map(([, name]) => name);
  assert.deepEqual(values.sort(), Object.keys(amber).sort());
  for (const [, name, body] of text.matchAll(/^export class (\w+)[^{]*\{\n(.*?)^\}/gms)) {
    const { prototype } = /** @type {any} */ (amber)[name];
    for (const [, member] of body.matchAll(/^  (?:get )?(\w+)[<(]/gm)) {
      if (member !== "constructor") assert.equal(typeof prototype[member], "function", `${name}.${member}`);
    }
  }
});
