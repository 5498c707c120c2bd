// The program `amber`: AMBER, or the one that cargo has built. IO.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The top folder of the repository. */
export const root = fileURLToPath(new URL("../../..", import.meta.url));

export function amber() {
  const found = process.env.AMBER ?? join(root, "target/debug/amber");
  assert.ok(existsSync(found), `error: there is no ${found}\nhint: run cargo build, or set AMBER to the program`);
  return found;
}
