// Steps of a test in Rust: a script prints a line after each, and goes on after a line on stdin, which it returns.

import assert from "node:assert/strict";
import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export async function step(name) {
  console.log(name);
  return (await lines.next()).value;
}

/**
 * Clicks on the map until the dashboard has an opinion: it drops clicks that a busy machine delays, and a page that
 * has to connect again forgets its own.
 */
export async function clickMap(page, x, y) {
  const isLost = () => {
    const { order, problem } = window.amber.goal;
    return problem ? problem.includes("the network delays") : !order;
  };
  let clicks = 0;
  do {
    assert.ok((clicks += 1) <= 20, "the page forgets each click");
    const target = await page.evaluate(([x, y]) => document.elementFromPoint(x, y)?.id, [x, y]);
    assert.equal(target, "map-canvas", `what is at ${x}, ${y}`);
    await page.mouse.click(x, y);
    await page.waitForFunction(() => {
      const { place, order, problem } = window.amber.goal;
      return !place || order || problem;
    });
  } while (await page.evaluate(isLost));
}
