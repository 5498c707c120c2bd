// Tables for frames, names and addresses.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Names, split } from "../src/address.js";
import { camel } from "../src/convert.js";
import { MAX_PART, decodeFrame, encodeFrame, header } from "../src/frame.js";
import { hostAndPort } from "../src/udp.js";
import { nearest, newOrderId, points, sides } from "../src/values.js";

const bytes = (/** @type {string} */ hex) => Uint8Array.from(Buffer.from(hex.replaceAll(" ", ""), "hex"));
const hex = (/** @type {Uint8Array} */ all) => Buffer.from(all).toString("hex");

test("frames have the bytes of the protocol", () => {
  // docs/PROTOCOL.md has these.
  const frame = encodeFrame(header(5, 0), bytes("1001 18ac02 a00301"));
  assert.equal(hex(frame), "000408051000" + "0008100118ac02a00301");
  assert.equal(hex(header(201, 300)), "08c90110ac02");
  assert.equal(hex(header(-1, 0)), "08ffffffffffffffffff011000");
  const { header: head, message } = decodeFrame(frame) ?? assert.fail("a frame");
  assert.deepEqual([hex(head), hex(message)], ["08051000", "100118ac02a00301"]);
});

test("other bytes are not a frame", () => {
  for (const text of ["", "00", "0000", "000000", "0001", "00000000ff", "0001ff0001", "8000", "00008000"]) {
    assert.equal(decodeFrame(bytes(text)), undefined, text);
  }
  assert.ok(decodeFrame(bytes("00000000")));
  assert.ok(decodeFrame(encodeFrame(new Uint8Array(), new Uint8Array(MAX_PART))));
  assert.throws(() => encodeFrame(new Uint8Array(), new Uint8Array(MAX_PART + 1)), /32768 bytes are too long/);
});

test("names are those of JavaScript", () => {
  const names = { SetAngle: "setAngle", get_status: "getStatus", "drive-to-point": "driveToPoint", GPSFix: "gpsFix" };
  for (const [name, expected] of Object.entries({ ...names, urdf: "urdf", deviceID: "deviceID" })) {
    assert.equal(camel(name), expected);
  }
});

test("addresses of devices", () => {
  const names = new Names();
  names.add(4, "hokuyo", "laser");
  names.add(8, "drive-to-point");
  const rows = [
    ["hokuyo", 4, 0], ["laser:1", 4, 1], ["Drive_To_Point", 8, 0], ["4:1", 4, 1], ["201", 201, 0],
  ];
  for (const [text, type, id] of rows) assert.deepEqual(names.parse(String(text)), { type, id });
  assert.deepEqual(names.parse({ type: 4, id: 2 }), { type: 4, id: 2 });
  for (const text of ["", "lamp", "laser:", "laser:-1", "laser:x", "4:1:2", "9999999999"]) {
    assert.throws(() => names.parse(text), /unknown device .*hokuyo, laser/s, text);
  }
  assert.equal(names.show({ type: 4, id: 1 }), "hokuyo:1");
  assert.equal(names.show({ type: 77, id: 0 }), "77:0");
  assert.deepEqual(split("lamp:2"), { type: "lamp", id: 2 });
});

test("addresses of mediators", () => {
  const rows = [
    ["robot", "robot", 26233], ["10.0.0.1:5", "10.0.0.1", 5], ["[::1]:7", "::1", 7], ["[fe80::1%eth0]", "fe80::1%eth0", 26233],
    ["::1", "::1", 26233],
  ];
  for (const [text, host, port] of rows) assert.deepEqual(hostAndPort(String(text)), { host, port });
  for (const text of ["", ":5", "a:b", "a:70000", "a b:1:2"]) assert.throws(() => hostAndPort(text), TypeError, text);
});

test("values", () => {
  assert.deepEqual(sides(1.4, 2.6), { frontLeftSpeed: 1, frontRightSpeed: 3, rearLeftSpeed: 1, rearRightSpeed: 3 });
  const scan = { angles: [-90, 0, 10, 90], distances: [500, 0, 800, 700] };
  assert.equal(points(scan).length, 3);
  assert.deepEqual(nearest(scan), { angle: -90, distance: 500 });
  assert.deepEqual(nearest(scan, -30, 90), { angle: 90, distance: 700 });
  assert.equal(nearest(scan, -30, 5), undefined);
  const id = newOrderId();
  assert.ok(id >= 2 ** 32 && id < 2 ** 53 && id !== newOrderId());
});
