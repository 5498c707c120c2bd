// Steps of a test in Rust: a script prints a line after each, and goes on after a line on stdin.

import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export async function step(name) {
  console.log(name);
  await lines.next();
}

/** Clicks on the map until the dashboard has an opinion: it drops clicks that a busy machine delays. */
export async function clickMap(page, x, y) {
  do {
    await page.mouse.click(x, y);
    await page.waitForFunction(() => window.amber.goal.order || window.amber.goal.problem);
  } while (await page.evaluate(() => window.amber.goal.problem?.includes("the network delays")));
}
