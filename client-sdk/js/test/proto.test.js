// The reader of `.proto` files: the same as protoc for the files of Amber, and errors that name the line.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { descriptionOf } from "../src/driver/messages.js";
import { readFiles } from "../src/driver/proto.js";
import { interfacesOf } from "../src/interface.js";
import { FileDescriptorSet, fromBinary } from "../src/protobuf.js";
import { OURS, readDescription } from "../src/schemas.js";
import { root } from "./amber.js";
import { CRANE } from "./crane.js";

const known = OURS.registry.files.map(({ proto }) => /** @type {any} */ (proto));

/** What a description says, without what is of no importance for devices. @param {any} value @returns {any} */
function plain(value) {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object") return value;
  const type = value.$type.name;
  const fields = Object.entries(value).map(([name, it]) => [name, plain(it)]);
  const found = Object.fromEntries(fields.filter(([, it]) => !(Array.isArray(it) && it.length === 0)));
  delete found.sourceCodeInfo;
  if (type === "FileDescriptorProto") delete found.options; // for Java
  if (type.endsWith("Options")) found.$rest = value.$rest.map((/** @type {any} */ it) => `${it.number} ${it.wire} ${[...it.bytes]}`).sort();
  return found;
}

/** The comments above what a driver or its users may want to know. @param {any} file */
function comments(file) {
  const all = file.sourceCodeInfo?.location ?? [];
  return Object.fromEntries(
    all
      .map((/** @type {any} */ it) => [it.path.join(), it.leadingComments])
      // protoc also notes those of whole blocks of extensions, of ranges and inside of options.
      .filter(([path, text]) => text && path.includes(",") && !/^4,\d+,5$|,4,52\d+$/.test(path)),
  );
}

test("the files of Amber mean what protoc says", () => {
  // With comments.
  const compiled = readFileSync(join(root, "client-sdk/python/src/amber/schemas.binpb"));
  let count = 0;
  for (const file of fromBinary(FileDescriptorSet, compiled).file) {
    const text = readFileSync(join(root, "proto", file.name), "utf8");
    if (text.includes("import public")) continue;
    const [read] = readFiles(file.name, () => text, known.filter(({ name }) => name !== file.name));
    assert.deepEqual(plain(read), plain(file), file.name);
    assert.deepEqual(comments(read), comments(file), file.name);
    count += 1;
  }
  assert.ok(count > 20, String(count));
});

test("the description of a device survives the way to its clients", () => {
  const files = readFiles("crane.proto", () => CRANE);
  const [crane] = interfacesOf(readDescription(descriptionOf(files)));
  assert.deepEqual([crane.type, crane.name, crane.stopper?.name], [230, "crane", "lift"]);
  assert.deepEqual(crane.methods.map(({ name, kind }) => `${name} ${kind}`),
    ["lift tell", "height ask", "write ask", "heights subscribe", "texts stream"]);
});

test("files import others of the same folder", () => {
  const files = /** @type {Record<string, string>} */ ({
    "a.proto": 'syntax = "proto2"; package a; import "b.proto"; message A { optional b.B b = 1; optional b.B.C c = 2; }',
    "b.proto": 'syntax = "proto2"; package b; message B { enum C { X = 1; } }',
  });
  const read = readFiles("a.proto", (name) => files[name]);
  assert.deepEqual(read.map(({ name }) => name), ["b.proto", "a.proto"]);
  const [b, c] = read[1].messageType[0].field;
  assert.deepEqual([b.typeName, b.type, c.typeName, c.type], [".b.B", 11, ".b.B.C", 14]);
});

test("texts, numbers and comments in all their forms", () => {
  const text = `// of nothing

/* of the syntax */ syntax = 'proto2'; // behind it
import "interface.proto"; import "drivermsg.proto";
/*
 * Of the message.
 */
message M {
  // first
  // second
  optional int32 a = 0x10 [(amber.unit) = "m" "m", (amber.min) = -1.5e1, deprecated = true];
  // detached

  oneof one { string b = 2; bool c = 3; }
  repeated int32 d = 4 [packed = true];
  reserved 5 to 7, "e";
}`;
  const [{ messageType: [m], sourceCodeInfo }] = readFiles("m.proto", () => text);
  assert.deepEqual(m.field.map((/** @type {any} */ it) => [it.name, it.number, it.label]),
    [["a", 16, 1], ["b", 2, 1], ["c", 3, 1], ["d", 4, 3]]);
  assert.deepEqual(m.field.map((/** @type {any} */ it) => Object.hasOwn(it, "oneofIndex")), [false, true, true, false]);
  assert.equal(m.field[3].options.packed, true);
  const found = sourceCodeInfo.location.map((/** @type {any} */ it) => [it.path.join(), it.leadingComments]);
  assert.deepEqual(found, [["4,0", "\n Of the message.\n"], ["4,0,2,0", " first\n second\n"]]);
});

test("what is wrong is told with its line", () => {
  const head = 'syntax = "proto2";\nimport "drivermsg.proto";\nimport "interface.proto";\n';
  /** @type {[string, RegExp][]} */
  const table = [
    ["", /^m\.proto:1: expected syntax.*\nhint: begin the file with/s],
    ['syntax = "proto3";', /m\.proto:1: the syntax must be proto2/],
    [`${head}message M {\n  int32 a = 1;\n}`, /m\.proto:5: .*int32.*\nhint: a field begins with/s],
    [`${head}message M { optional int32 a = 0; }`, /m\.proto:4: a field cannot have the number 0/],
    [`${head}message M { optional int32 a = 1; optional bool b = 1; }`, /a and b have the same name or number/],
    [`${head}message M { optional N a = 1; }`, /m\.proto:4: there is no message or enum N/],
    [`${head}message M { map<string, int32> a = 1; }`, /unexpected map/],
    [`${head}message M { optional group A = 1 {} }`, /groups are not supported/],
    [`${head}message M { optional int32 a = 1 [default = 3]; }`, /the option default is not supported\nhint: say `\(amber.absent_means\)`/],
    [`${head}message M { optional int32 a = 1 [(amber.units) = "m"]; }`, /there is no extension amber\.units/],
    [`${head}message M { optional int32 a = 1 [(amber.device) = { type: 1 }]; }`, /\(amber\.device\) is no option for this/],
    [`${head}message M { optional int32 a = 1 [(amber.max) = "m"]; }`, /max is a number/],
    [`${head}service S {\n option (amber.device) = { type: 201 };\n}`, /m\.proto:5: device needs name/],
    [`${head}service S { option (amber.device) = { typ: 201 }; }`, /DeviceInterface has no field typ/],
    [`${head}service S { option (amber.device) = { type: 1 name: "a" }; option (amber.device) = { type: 1 name: "b" }; }`, /is set twice/],
    [`${head}service S { option (amber.device).type = 201; }`, /options are not set by their parts/],
    [`${head}enum E { }`, /the enum E has no values/],
    [`${head}message M { } message M { }`, /M is declared twice/],
    [`${head}message M {`, /a } is missing/],
    [`${head}message M { optional string a = 1 [(amber.unit) = "m\n"]; }`, /m\.proto:4: unexpected "\\""/],
    [`${head}import "other.proto";`, /m\.proto:4: there is no file other\.proto/],
    [`${head}import "m.proto";`, /m\.proto imports itself/],
    ['syntax = "proto2";\nextend amber.DriverMsg { optional bool a = 130; }', /m\.proto:2: amber\.DriverMsg is declared in drivermsg\.proto\nhint: write `import "drivermsg\.proto";`/],
    [`${head}extend amber.DriverMsg { required bool a = 130; }`, /an extension cannot be required/],
    [`${head}#`, /m\.proto:4: unexpected "#"/],
  ];
  for (const [text, error] of table) {
    assert.throws(() => readFiles("m.proto", (name) => (name === "m.proto" ? text : undefined)), { message: error }, text);
  }
});
