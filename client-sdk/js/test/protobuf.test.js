// The messages of all devices, compared with the library of Buf.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as buf from "@bufbuild/protobuf";
import { INTERFACES } from "../src/ours.js";
import { FileDescriptorSet, create, fromBinary, getExtension, hasExtension, setExtension, toBinary } from "../src/protobuf.js";
import { OURS, extensionOf, messageOf } from "../src/schemas.js";
import { reference } from "./reference.js";

/** The same numbers in each run. */
function generator(seed = 1) {
  return (/** @type {number} */ below) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
}

/** A message with random fields. @param {any} type @param {(below: number) => number} random @param {number} [depth] @returns {any} */
function randomMessage(type, random, depth = 0) {
  const message = create(type);
  for (const field of type.fields) {
    if (!field.isRequired && random(3) === 0) continue;
    if (field.oneof?.fields.some((/** @type {any} */ it) => Object.hasOwn(message, it.localName))) continue;
    const one = () => randomValue(field, random, depth);
    if (field.fieldKind === "map" || (field.message && depth > 3 && !field.isRequired)) continue;
    message[field.localName] = field.fieldKind === "list" ? Array.from({ length: random(4) }, one) : one();
  }
  return message;
}

/** @param {any} field @param {(below: number) => number} random @param {number} depth */
function randomValue(field, random, depth) {
  if (field.message) return randomMessage(field.message, random, depth + 1);
  if (field.enum) return field.enum.values[random(field.enum.values.length)].number;
  const wide = BigInt(random(2 ** 31)) * BigInt(random(2 ** 31));
  switch (field.scalar) {
    case 1:
      return random(2 ** 30) / 1024 - 5000;
    case 2:
      return Math.fround(random(2 ** 30) / 1024 - 5000);
    case 8:
      return random(2) === 1;
    case 9:
      return "grüße ".slice(random(6));
    case 12:
      return Uint8Array.from({ length: random(200) }, () => random(256));
    case 3:
    case 16:
    case 18:
      return random(2) ? wide : -wide;
    case 4:
    case 6:
      return wide;
    case 5:
    case 15:
    case 17:
      return random(2) ? random(2 ** 31) : -random(2 ** 31) - 1;
    default:
      return random(3) ? random(300) : random(2 ** 32);
  }
}

test("all messages have the bytes that the library of Buf writes, and are read again", () => {
  const random = generator();
  let compared = 0;
  for (const { name, service } of INTERFACES) {
    const types = new Set(service.file.proto.messageType.map((/** @type {any} */ it) => `${service.file.proto.package}.${it.name}`));
    for (const typeName of types) {
      const [ours, theirs] = [messageOf(OURS, typeName), reference.getMessage(typeName)];
      if (!theirs) assert.fail(`${name}: ${typeName}`);
      for (let round = 0; round < 20; round++) {
        const bytes = toBinary(ours, randomMessage(ours, random));
        const read = buf.fromBinary(theirs, bytes);
        assert.deepEqual(buf.toBinary(theirs, read), bytes, typeName);
        assert.deepEqual(toBinary(ours, fromBinary(ours, bytes)), bytes, typeName);
        compared += bytes.length > 0 ? 1 : 0;
      }
    }
  }
  assert.ok(compared > 1000, `${compared} messages`);
});

test("extensions are read and written as by the library of Buf", () => {
  const ours = messageOf(OURS, "amber.DriverMsg");
  const theirs = reference.getMessage("amber.DriverMsg") ?? assert.fail();
  const random = generator(2);
  for (const { service } of INTERFACES) {
    for (const { name } of service.file.proto.extension) {
      const typeName = `${service.file.proto.package}.${name}`;
      const [extension, other] = [extensionOf(OURS, typeName), reference.getExtension(typeName)];
      if (!other) assert.fail(typeName);
      const message = create(ours, { type: 1, synNum: 7 });
      assert.ok(!hasExtension(message, extension));
      const value = extension.fieldKind === "list"
        ? [randomValue(extension, random, 0), randomValue(extension, random, 0)]
        : randomValue(extension, random, 0);
      setExtension(message, extension, value);
      setExtension(message, extension, value); // it is replaced
      const bytes = toBinary(ours, message);
      const read = buf.fromBinary(theirs, bytes);
      assert.ok(buf.hasExtension(read, other), typeName);
      const again = buf.create(theirs, /** @type {any} */ ({ type: 1, synNum: 7 }));
      buf.setExtension(again, other, buf.getExtension(read, other));
      assert.deepEqual(buf.toBinary(theirs, again), bytes, typeName);
      const back = create(ours, { type: 1, synNum: 7 });
      setExtension(back, extension, getExtension(fromBinary(ours, bytes), extension));
      assert.deepEqual(toBinary(ours, back), bytes, typeName);
    }
  }
});

test("bytes that are no message are an error, and nothing else happens", () => {
  const type = messageOf(OURS, "amber.DriverMsg");
  const bad = [[0x08], [0x00, 0x00], [0x12, 0x05, 0x01], [0x0d, 1, 2, 3], [0x0c], [0x0b, 0x08, 0x01], [0x0e],
    [0x18, ...Array(11).fill(0x80), 1]];
  for (const bytes of bad) assert.throws(() => fromBinary(type, Uint8Array.from(bytes)), String(bytes));
  // A known field in another form is an unknown one, as groups are.
  const strange = fromBinary(type, Uint8Array.from([0x10, 0x01, 0x1a, 0x00, 0x0b, 0x08, 0x01, 0x0c]));
  assert.deepEqual([strange.type, strange.synNum, strange.$rest.length], [1, 0, 2]);
  assert.deepEqual([...toBinary(type, strange)], [0x10, 0x01, 0x1a, 0x00, 0x0b, 0x08, 0x01, 0x0c]);

  const random = generator(3);
  let read = 0;
  for (let round = 0; round < 5000; round++) {
    const bytes = Uint8Array.from({ length: random(12) }, () => random(3) ? random(40) : random(256));
    let message;
    try {
      message = fromBinary(type, bytes);
    } catch (error) {
      assert.ok(error instanceof RangeError, String(error));
      continue;
    }
    read += 1;
    message.type = 1;
    const written = toBinary(type, message);
    assert.deepEqual(toBinary(type, fromBinary(type, written)), written, `${bytes}`);
  }
  assert.ok(read > 100, `${read}`);
});

test("a required field that is missing, and messages that nest too deeply, are errors", () => {
  const type = messageOf(OURS, "amber.DriverMsg");
  assert.throws(() => toBinary(type, create(type)), /needs type/);
  let bytes = [0x0a, 0x00];
  for (let depth = 0; depth < 99; depth++) bytes = [0x1a, ...varint(bytes.length), ...bytes];
  const file = (/** @type {number[]} */ inner) => {
    const described = [0x22, ...varint(inner.length), ...inner];
    return Uint8Array.from([0x0a, ...varint(described.length), ...described]);
  };
  assert.throws(() => fromBinary(FileDescriptorSet, file(bytes)), /too deeply/);
  assert.equal(fromBinary(FileDescriptorSet, file(bytes.slice(6))).file.length, 1);
});

test("of a oneof, the last one counts", () => {
  const type = messageOf(OURS, "amber.mediator_proto.Request");
  const both = fromBinary(type, Uint8Array.from([0x0a, 0x00, 0x22, 0x00]));
  assert.deepEqual(Object.keys(both), ["getStatistics"]);
});

/** @param {number} value */
function varint(value) {
  return value < 128 ? [value] : [(value % 128) | 0x80, ...varint(Math.floor(value / 128))];
}
