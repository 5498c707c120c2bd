// Steps of a test in Rust: a script prints a line after each, and goes on after a line on stdin.

import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export async function step(name) {
  console.log(name);
  await lines.next();
}
