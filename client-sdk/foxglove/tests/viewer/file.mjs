// Reads a recording as Foxglove and Lichtblick do: with the MCAP library of both, and with the schemas
// in the file. Prints what a 3D panel would draw at its end.
//
//     npm install && node file.mjs drive.mcap

import { open } from "node:fs/promises";
import { createRequire } from "node:module";

import { drawing, typeOf, WANTED } from "./drawing.mjs";

const require = createRequire(import.meta.url);
const { McapIndexedReader } = require("@mcap/core");
const { FileHandleReadable } = require("@mcap/nodejs");
const { loadDecompressHandlers } = require("@mcap/support");

const file = await open(process.argv[2]);
const reader = await McapIndexedReader.Initialize({
  readable: new FileHandleReadable(file),
  decompressHandlers: await loadDecompressHandlers(),
});

const types = new Map();
const last = new Map();
let messages = 0;
for await (const { channelId, data } of reader.readMessages({ validateCrcs: true })) {
  const { topic, schemaId } = reader.channelsById.get(channelId);
  messages += 1;
  if (!WANTED.includes(topic)) continue;
  if (!types.has(channelId)) {
    const schema = reader.schemasById.get(schemaId);
    types.set(channelId, typeOf(schema.data, schema.name));
  }
  last.set(topic, types.get(channelId).decode(data));
}
const missing = WANTED.filter((topic) => !last.has(topic));
if (missing.length) throw new Error(`missing: ${missing.join(", ")}`);
const compression = [...new Set(reader.chunkIndexes.map((it) => it.compression))];
const counted = Number(reader.statistics.messageCount);
console.log(JSON.stringify({ ...drawing(last), messages, counted, compression }));
await file.close();
