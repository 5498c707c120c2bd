// `amber check-client` tests whether the client follows the protocol, with a mediator that misbehaves.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { amber } from "./amber.js";

test("the client follows the protocol", { timeout: 300_000 }, async () => {
  const client = fileURLToPath(new URL("check_client.js", import.meta.url));
  const args = ["check-client", "--strict", "--timeout", "60", "--", process.execPath, client, "{}"];
  const check = spawn(amber(), args);
  let output = "";
  check.stdout.on("data", (data) => (output += data));
  check.stderr.on("data", (data) => (output += data));
  const code = await new Promise((resolve) => check.once("close", resolve));
  assert.equal(code, 0, output);
  assert.match(output, /\d\d passed\n/);
});
