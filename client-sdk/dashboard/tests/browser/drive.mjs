// Drives the robot in a browser: node drive.mjs http://ADDRESS
// It prints a line after each step, and goes on after a line on stdin.

import assert from "node:assert/strict";

import { launch } from "./browser.mjs";
import { clickMap, step } from "./steps.mjs";

const CONTROLS = new Set([
  "application", "button", "checkbox", "combobox", "dialog", "DisclosureTriangle", "image", "link", "navigation",
  "slider", "spinbutton", "switch", "textbox",
]);

/** All controls have the names that screen readers say. */
async function expectNames(atLeast) {
  const { nodes } = await devtools.send("Accessibility.getFullAXTree");
  const controls = nodes.filter((it) => !it.ignored && CONTROLS.has(it.role?.value));
  assert.ok(controls.length > atLeast, `${controls.length} controls`);
  const unnamed = controls.filter((it) => !it.name?.value).map((it) => it.role.value);
  assert.deepEqual(unnamed, []);
}

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, hasTouch: true });
// A browser without a GPU on a busy machine draws a few frames per second, and a click waits for several.
context.setDefaultTimeout(180_000);
const page = await context.newPage();
const errors = [];
page.on("pageerror", (error) => errors.push(String(error)));
page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
// A gamepad of the test instead of a real one.
await page.addInitScript(() => {
  window.pad = { connected: false, axes: [0, 0] };
  navigator.getGamepads = () => [null, window.pad];
});
const devtools = await context.newCDPSession(page);
await page.goto(process.argv[2]);
const stick = page.getByRole("application", { name: "Joystick" });
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

// The gamepad: ahead, and what its axes mean. A new page needs its stick centred once.
const hold = (...axes) => page.evaluate((axes) => Object.assign(window.pad, { connected: true, axes }), axes);
await page.evaluate(() => {
  const { link } = window.amber;
  const send = link.send.bind(link);
  link.send = (message) => {
    if (message.t === "drive") window.commanded = [message.left, message.right];
    if (message.t === "stop") window.stops = (window.stops ?? 0) + 1;
    return send(message);
  };
});
const commands = async (axes, isExpected) => {
  await hold(...axes);
  await page.waitForFunction(isExpected);
};
await hold(0, 0);
await page.getByText("Gamepad connected.").waitFor();
await commands([0, -1], () => window.commanded?.[0] > 200 && window.commanded[0] === window.commanded[1]);
await step("held by gamepad");
await commands([0.05, 0], () => window.commanded.join() === "0,0");
await step("released by gamepad");
await commands([0.5, 0], () => window.commanded[0] > 50 && window.commanded[1] === -window.commanded[0]);
await commands([0, 0], () => window.commanded.join() === "0,0");

// Space and Escape stop the robot, whatever has the focus; only Space in a text field is a letter.
const isStopped = () => window.commanded.join() === "0,0" && !window.amber.stick.isDriving;
const drivesByPad = async () => {
  await commands([0, 0], () => !window.amber.stick.mustCentre && !window.amber.stick.isDriving);
  await commands([0, -1], () => window.commanded[0] > 0);
};
async function expectStop(element, key) {
  await drivesByPad();
  await element.focus();
  const before = await page.evaluate(() => [window.stops ?? 0, document.querySelector("#guard").checked]);
  await page.keyboard.press(key);
  await page.waitForFunction(isStopped);
  const after = await page.evaluate(() => [window.stops, document.querySelector("#guard").checked]);
  assert.deepEqual(after, [before[0] + 1, before[1]], `${key} on ${element}`);
}
await page.locator("#zoom-in").click();
await drivesByPad();
await step("held after a click on a button");
await page.keyboard.press("Space");
await step("stopped by the space bar");
for (const focus of ["#zoom-in", "#guard", "#speed", "#map-canvas", "#layers summary", "#log-list", "#device-list .name"]) {
  await expectStop(page.locator(focus).first(), "Space");
  await expectStop(page.locator(focus).first(), "Escape");
}
assert.ok(await page.locator("#panel").isHidden(), "the space bar has pressed a button");
await page.locator("#guard").focus();
await page.keyboard.press("Enter");
assert.equal(await page.locator("#guard").isChecked(), false);
await page.keyboard.press("Enter");
assert.equal(await page.locator("#guard").isChecked(), true);
await page.getByRole("button", { name: "maestro:0", exact: true }).click();
await page.locator("#panel summary").first().waitFor();
const request = page.locator("#panel .method", { hasText: "set-angle" }).first();
await request.locator("summary").click();
for (const focus of ["#panel-body", "#panel-close", "#panel .method summary", "#panel form button"]) {
  await expectStop(page.locator(focus).first(), "Space");
}
const field = request.getByLabel("servo-address");
await drivesByPad();
await field.focus();
const stopsBefore = await page.evaluate(() => window.stops);
await page.keyboard.press("Space");
assert.equal(await field.inputValue(), " ");
assert.equal(await page.evaluate(() => window.stops), stopsBefore);
await expectStop(field, "Escape");
await page.locator("#panel").waitFor({ state: "hidden" });

// A gamepad drives only the page that has the focus.
await commands([0, 0], isStopped);
await page.evaluate(() => {
  const { stick } = window.amber;
  const tick = stick.tick.bind(stick);
  stick.tick = () => { window.ticks += 1; tick(); };
  document.hasFocus = () => false;
  window.ticks = 0;
});
await hold(0, -1);
await page.waitForFunction(() => window.ticks > 5);
assert.ok(await page.evaluate(isStopped), "a page without the focus drives");
await page.evaluate(() => { delete document.hasFocus; window.ticks = 0; });
await page.waitForFunction(() => window.ticks > 5);
assert.ok(await page.evaluate(isStopped), "the focus must not start a motion");
await drivesByPad();
await commands([0, 0], isStopped);
await page.evaluate(() => { window.pad.connected = false; });

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
await page.evaluate(() => {
  delete document.hidden;
  document.dispatchEvent(new Event("visibilitychange"));
});

// The robot has been carried here: how far it drove before depends on the machine. Until it knows where it is, it has no
// pose. The click on the map is half a metre ahead of it.
const found = await page.waitForFunction(() => {
  const { map } = window.amber;
  const { pose, view, canvas } = map;
  if (!pose || Math.hypot(pose.x - 2, pose.y - 2.6) >= 0.2) return null;
  const box = canvas.getBoundingClientRect();
  const target = { x: pose.x + 0.5 * Math.cos(pose.heading), y: pose.y + 0.5 * Math.sin(pose.heading) };
  return {
    ...target,
    clientX: box.left + box.width / 2 + (target.x - view.x) * view.scale,
    clientY: box.top + box.height / 2 + (target.y - view.y) * view.scale,
  };
});
const goal = await found.jsonValue();
// The way is short: when the next step begins, the robot may already be there. So the page notes the targets.
await page.evaluate(() => {
  window.amber.link.addEventListener("path", ({ detail }) => { window.hadTargets ||= detail.targets?.length > 0; });
});
await clickMap(page, goal.clientX, goal.clientY);
await step("clicked on the map");
// The pose on the page may be older than the news that no target is left. On a busy machine, a page that is silent for
// too long loses the robot, and says so: then a person clicks again.
const hasEnded = ({ x, y }) => {
  const { goal, map } = window.amber;
  if (goal.problem) return "failed";
  const isThere = map.pose && Math.hypot(map.pose.x - x, map.pose.y - y) < 0.35;
  return window.hadTargets && !map.path?.targets.length && isThere ? "arrived" : null;
};
const shown = () => page.evaluate(() => {
  const { goal, map } = window.amber;
  return JSON.stringify({ order: goal.order, problem: goal.problem, pose: map.pose, lost: map.lost, path: map.path });
});
const ended = async () => {
  const end = page.waitForFunction(hasEnded, goal);
  return (await end.catch(async (why) => assert.fail(`${why}: ${await shown()}`))).jsonValue();
};
for (let clicks = 1; (await ended()) !== "arrived"; clicks += 1) {
  assert.ok(clicks < 10, await shown());
  await clickMap(page, goal.clientX, goal.clientY);
}
await step("arrived");

// Every control has a name, also in panels.
for (const device of ["ninedof:0", "maestro:0"]) {
  await page.getByRole("button", { name: device, exact: true }).click();
  // The requests come with the description.
  await page.locator("#panel summary").first().waitFor();
  for (const request of await page.locator("#panel summary").all()) await request.click();
  await expectNames(10);
  // What it publishes, or else what it answers. The stream of the plots stays fast beside that of the panel.
  await page.locator("#panel .values tr").first().waitFor();
  await page.waitForFunction(() => window.amber.state.devices.find((it) => it.device === "ninedof:0").out_per_s > 15);
  await page.getByRole("button", { name: "Close" }).click();
}
// The stop button is above the panel, and the servos are plotted after their first command.
await page.getByRole("button", { name: "maestro:0", exact: true }).click();
await page.locator("#panel summary", { hasText: "set-angle" }).first().click();
await page.getByLabel("servo-address").first().fill("3");
await page.getByLabel(/^angle/).first().fill("45");
await page.getByRole("button", { name: "Send" }).first().click();
await page.getByText("Sent. This request has no answer.").waitFor();
await page.getByText("#3 45").waitFor();
await page.getByRole("button", { name: "Stop", exact: true }).click();
await page.keyboard.press("Escape");
await page.locator("#panel").waitFor({ state: "hidden" });

await page.mouse.move(middle.x, middle.y);
await page.mouse.down();
await page.mouse.move(back.x, back.y);
await step("held before closing");
assert.deepEqual(errors, []);
await page.close();
console.log("closed");
await browser.close();
process.exit(0);
