// Uses a device of a user in two pages: node own_device.mjs http://ADDRESS/#TOKEN http://ADDRESS/#VIEW_ONLY_TOKEN
// It prints a line when all is done.

import assert from "node:assert/strict";

import { launch } from "./browser.mjs";

const [driveUrl, lookUrl] = process.argv.slice(2);
const browser = await launch();

/** Runs something in a page, with a robot. */
async function inPage(url, run) {
  const page = await browser.newPage();
  page.setDefaultTimeout(180_000);
  // A page that does nothing itself.
  await page.goto(url.replace("/#", "/manifest.json#"));
  return page.evaluate(`(async () => {
    const { Robot } = await import("/amber/index.js");
    const robot = await Robot.connect(undefined, { timeoutMs: 30_000, connectTimeoutMs: 30_000 });
    const refusal = (call) => call.then(() => "not refused", (error) => error.words ?? String(error));
    return (${run})(robot, refusal);
  })()`);
}

const driven = await inPage(driveUrl, async (robot, refusal) => {
  await robot.load("lamp");
  const lamp = robot.device("lamp:0");
  const set = await lamp.setBrightness(40);
  const tooBright = await refusal(lamp.setBrightness(101));
  const { value } = await lamp.lights().next();
  await robot.close();
  return { address: lamp.address, set, tooBright, value };
});
const light = { brightnessPercent: 40, color: "WHITE", canBe: ["WHITE", "WARM_WHITE"] };
assert.deepEqual(driven, { address: "lamp:0", set: light, tooBright: "brighter than 100 %", value: light });

// A view-only page finds it by its name, and reads.
const looked = await inPage(lookUrl, async (robot, refusal) => {
  const lamp = await robot.load("lamp");
  const read = await lamp.light();
  const changed = await refusal(lamp.setBrightness(10));
  const { value } = await lamp.lights().next();
  const { command } = await robot.mediator().describeDriver("lamp:0");
  await robot.close();
  return { read, changed, value, command };
});
assert.deepEqual(looked, { read: light, changed: "this page is view-only", value: light, command: [] });
console.log("used");
await browser.close();
process.exit(0);
