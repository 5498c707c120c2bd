// Drives the robot in a browser: node drive.mjs http://ADDRESS
// It prints a line after each step, and goes on after a line on stdin.

import assert from "node:assert/strict";
import { createInterface } from "node:readline";

import { launch } from "./browser.mjs";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
async function step(name) {
  console.log(name);
  await lines.next();
}

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, hasTouch: true });
const page = await context.newPage();
const errors = [];
page.on("pageerror", (error) => errors.push(String(error)));
page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
await page.goto(process.argv[2]);
const stick = page.getByRole("application", { name: "Driving stick" });
await page.waitForFunction(() => window.amber.stick.isAllowed && window.amber.map.pose);
const box = await stick.boundingBox();
const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
const ahead = { x: middle.x, y: middle.y - 30 };
const back = { x: middle.x, y: middle.y + 30 };

await page.mouse.move(middle.x, middle.y);
await page.mouse.down();
await page.mouse.move(ahead.x, ahead.y);
await step("held by mouse");
await page.mouse.up();
await step("released by mouse");

const devtools = await context.newCDPSession(page);
const touch = (type, ...touchPoints) => devtools.send("Input.dispatchTouchEvent", { type, touchPoints });
await touch("touchStart", middle);
await touch("touchMove", back);
await step("held by touch");
await touch("touchEnd");
await step("released by touch");

await page.keyboard.down("ArrowUp");
await step("held by keys");
await page.keyboard.up("ArrowUp");
await step("released by keys");

// A hidden page stops although the mouse is still held.
await page.mouse.move(middle.x, middle.y);
await page.mouse.down();
await page.mouse.move(back.x, back.y);
await page.waitForFunction(() => window.amber.stick.isDriving);
await page.evaluate(() => {
  Object.defineProperty(document, "hidden", { value: true, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
});
await step("hidden while held");
await page.mouse.up();
await page.evaluate(() => delete document.hidden);

// A click on the map, half a metre ahead of the robot.
const goal = await page.evaluate(() => {
  const { map } = window.amber;
  const { pose, view, canvas } = map;
  const box = canvas.getBoundingClientRect();
  const target = { x: pose.x + 0.5 * Math.cos(pose.heading), y: pose.y + 0.5 * Math.sin(pose.heading) };
  return {
    ...target,
    clientX: box.left + box.width / 2 + (target.x - view.x) * view.scale,
    clientY: box.top + box.height / 2 + (target.y - view.y) * view.scale,
  };
});
await page.mouse.click(goal.clientX, goal.clientY);
await step("clicked on the map");
await page.waitForFunction(() => window.amber.map.path?.targets.length);
await page.waitForFunction(() => !window.amber.map.path?.targets.length);
const left = await page.evaluate(({ x, y }) => Math.hypot(window.amber.map.pose.x - x, window.amber.map.pose.y - y), goal);
assert.ok(left < 0.35, `${left} m from the target`);
await step("arrived");

await page.mouse.move(middle.x, middle.y);
await page.mouse.down();
await page.mouse.move(back.x, back.y);
await step("held before closing");
assert.deepEqual(errors, []);
await page.close();
console.log("closed");
await browser.close();
process.exit(0);
