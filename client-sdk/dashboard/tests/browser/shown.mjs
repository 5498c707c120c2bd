// Checks the page on screens of many sizes, and its words when parts of the robot do not work:
// node shown.mjs http://ADDRESS

import assert from "node:assert/strict";

import { launch } from "./browser.mjs";
import { PHONE, expectRoom } from "./room.mjs";
import { clickMap, step } from "./steps.mjs";

const browser = await launch();
const context = await browser.newContext();
context.setDefaultTimeout(180_000);
const page = await context.newPage();
const errors = [];
page.on("pageerror", (error) => errors.push(String(error)));
await page.goto(process.argv[2]);
await page.waitForFunction(() => window.amber.stick.isAllowed && window.amber.map.pose);

const tab = (name) => page.locator(`nav [data-tab="${name}"]`);
const says = (place, words) => page.locator(place, { hasText: words }).waitFor();
const isMarked = async (name) => /there is a problem/.test(await tab(name).innerText()) && await tab(name).evaluate((it) => it.classList.contains("marked"));

await expectRoom(page, "usual");
// On a busy machine, a device may have answered late.
await page.waitForFunction(() => !document.querySelector("nav .marked"));
assert.match(await page.locator("#scale-text").innerText(), /^\d+ (m|cm)$/);
const bar = () => page.locator("#scale-bar").evaluate((it) => it.clientWidth);
const before = await bar();
assert.ok(before >= 38, `the scale has ${before} pixels`);

// A map is made here.
await page.locator("#mapping-open").click();
await page.getByRole("button", { name: "Begin a map" }).click();
await page.getByRole("button", { name: "End the map" }).waitFor();
await page.waitForFunction(() => window.amber.map.map?.grid);
await says("#mapping-shown", "m² free");
await expectRoom(page, "mapping");
await page.getByRole("button", { name: "End the map" }).click();
await page.getByRole("button", { name: "Begin a map" }).waitFor();
await page.keyboard.press("Escape");
await page.locator("#mapping").waitFor({ state: "hidden" });
await page.waitForFunction(() => window.amber.map.map?.walls.length);

// A click outside the map.
await page.evaluate(() => window.amber.map.zoom(0.4));
const onScreen = (place) => page.evaluate(({ x, y }) => {
  const { view, canvas } = window.amber.map;
  const box = canvas.getBoundingClientRect();
  return [box.left + box.width / 2 + (x - view.x) * view.scale, box.top + box.height / 2 + (y - view.y) * view.scale];
}, place);
const click = async (place) => clickMap(page, ...await onScreen(place));
const [left, top, right, bottom] = await page.evaluate(() => window.amber.map.map.bounds);
// A busy machine may end it for another reason, such as a lost lease, or a late device hides the words.
do {
  await click({ x: left - 1, y: (top + bottom) / 2 });
  await page.waitForFunction(() => window.amber.goal.problem || !window.amber.goal.place);
} while (!/This point is outside the map/.test(await page.locator("#map-problem").innerText()));
assert.equal(await page.evaluate(() => window.amber.map.goal), null);

// Another page drives: this one may take over. The address is as long as they get.
await page.evaluate(() => {
  const { link, state } = window.amber;
  const say = (seat) => link.dispatchEvent(new CustomEvent("seat", { detail: seat }));
  const seat = state.seat;
  window.restore = () => say(seat);
  say({ ...seat, holder: 99, address: "fd00:1234:5678:9abc:def0:1234:5678:9abc", viewers: 2 });
});
await page.locator("#take-over").waitFor();
await expectRoom(page, "another");
await page.evaluate(() => window.restore());
await page.locator("#take-over").waitFor({ state: "hidden" });

// The longest words, at all places at once. The page itself is silent meanwhile.
await page.evaluate(() => {
  const { link, state, goal } = window.amber;
  const say = (name, detail) => EventTarget.prototype.dispatchEvent.call(link, new CustomEvent(name, { detail }));
  window.speak = () => delete link.dispatchEvent;
  link.dispatchEvent = () => true;
  const problem = "roboclaw:0: cannot open /dev/serial/by-id/usb-Basicmicro_Inc._RoboClaw: No such file or directory (os error 2)";
  say("path", { t: "path", state: "following", reason: "obstacle ahead", remaining: 3.2, path: [], targets: [[1, 1, 0.2]] });
  say("drivers", {
    mediator: "amber", parts: state.parts, problems: { wheels: problem, guard: problem, targets: problem, map: problem },
    cameras: [{ device: "camera:0", problem }],
    devices: state.devices.map((it) => ({ ...it, holder: it.device === state.parts.wheels ? "amber goto (pid 12345 on raspberrypi)" : null })),
  });
  goal.refuse(problem);
});
await page.locator("#cancel").waitFor();
await says("#drive-hint.problem", "os error 2");
await expectRoom(page, "long");
await page.evaluate(() => window.speak());
await says("#drive-hint", "Drag the stick");

// Everything is halted, until the release.
await page.evaluate(() => window.amber.link.send({ t: "halt", halt: true }));
await page.locator("#release").waitFor();
await says("#drive-hint.problem", "Halted by dashboard");
await says("#seat", "halted");
await expectRoom(page, "halted");
await page.locator("#release").click();
await page.locator("#release").waitFor({ state: "hidden" });
await says("#drive-hint", "Drag the stick");

// Wheels without a cable.
await step("unplug the wheels");
await says("#drive-hint.problem", "roboclaw:0: ");
assert.ok(await isMarked("drive"));
await page.waitForFunction(() => document.querySelector('nav [data-tab="devices"]').classList.contains("marked"));
const box = await page.locator("#stick").boundingBox();
await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
await page.mouse.down();
await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2 - 30);
await says("#seat", "the robot does not drive");
await page.mouse.up();
await expectRoom(page, "unplugged");
await step("plug the wheels in");
await says("#drive-hint", "Drag the stick");

// A laser without a cable.
await step("unplug the laser");
await says("#drive-hint.problem", "hokuyo:0: ");
await says("#drive-hint.problem", 'Without "Stop before obstacles", the stick works.');
await says("#map-problem", "hokuyo:0: ");
assert.ok(await isMarked("drive") && await isMarked("devices"));
// The robot stays where it was, in grey.
await says("#pose", "position unknown");
await page.waitForFunction(() => !window.amber.map.pose && window.amber.map.lost && !window.amber.map.frame);
const body = () => page.evaluate(() => {
  const { map } = window.amber;
  const { x, y, heading } = map.pose ?? map.lost;
  const [canvas, { view, robot }] = [map.canvas, map];
  const ratio = canvas.width / canvas.clientWidth;
  // Behind the arrow.
  const back = 0.2 * robot.length;
  const at = [
    ratio * (canvas.clientWidth / 2 + (x - back * Math.cos(heading) - view.x) * view.scale),
    ratio * (canvas.clientHeight / 2 + (y - back * Math.sin(heading) - view.y) * view.scale),
  ];
  return [...canvas.getContext("2d").getImageData(...at.map(Math.round), 1, 1).data];
});
const isBlue = ([red, , blue]) => blue > red + 60;
assert.ok(!isBlue(await body()), `${await body()}`);
await expectRoom(page, "blind");
await page.locator("#guard").click();
await says("#drive-hint", "Drag the stick");
await page.locator("#guard").click();
await step("plug the laser in");
await says("#drive-hint", "Drag the stick");
await page.waitForFunction(() => !document.querySelector("#map-problem").textContent);
await page.waitForFunction(() => window.amber.map.pose && !window.amber.map.lost && !window.amber.map.frame);
assert.ok(isBlue(await body()), `${await body()}`);

// A drag says where the robot is: where it already was, and where no robot can be.
async function say({ x, y, heading }) {
  await page.locator("#pose").click();
  const [left, top] = await onScreen({ x, y });
  await page.mouse.move(left, top);
  await page.mouse.down();
  await page.mouse.move(left + 40 * Math.cos(heading), top + 40 * Math.sin(heading), { steps: 4 });
  assert.ok(await page.evaluate(() => window.amber.map.placed));
  await page.mouse.up();
  assert.equal(await page.evaluate(() => window.amber.map.placed), null);
}
// Words that are shown for a moment.
await page.evaluate(() => {
  window.noticed = "";
  const take = (records) => records.forEach(({ addedNodes }) => addedNodes.forEach((it) => window.noticed += `${it.textContent}\n`));
  new MutationObserver(take).observe(document.querySelector("#notices"), { childList: true });
});
// A busy machine may answer late: then it is said again.
async function sayUntil(words, pose) {
  const late = "no answer from";
  do {
    await page.evaluate(() => window.noticed = "");
    await say(pose);
    await page.waitForFunction((any) => any.some((it) => window.noticed.includes(it)), [words, late]);
  } while (await page.evaluate((late) => window.noticed.includes(late), late));
}
const known = await page.evaluate(() => window.amber.map.pose);
await sayUntil("The robot compares this place with what it sees.", known);
await page.waitForFunction(() => window.amber.map.pose && !window.amber.map.lost);
await sayUntil("the robot cannot be at", { x: left - 1, y: (top + bottom) / 2, heading: 0 });
await page.locator("#pose").click();
await page.keyboard.press("Escape");
assert.equal(await page.evaluate(() => window.amber.map.isPlacing), false);

// Drivers that are stopped here. That of the wheels only after a question.
await tab("devices").click();
await page.getByRole("button", { name: "Stop drive-to-point:0" }).click();
await says("#map-problem", "drive-to-point:0 is stopped");
await click({ x: (left + right) / 2, y: (top + bottom) / 2 });
await page.waitForFunction(() => window.amber.goal.problem?.includes("drive-to-point:0"));
const stopWheels = page.getByRole("button", { name: "Stop roboclaw:0" });
await stopWheels.click();
const question = page.getByRole("dialog", { name: "Stop the driver of the wheels, roboclaw:0?" });
await question.getByRole("button", { name: "Cancel" }).click();
await question.waitFor({ state: "hidden" });
await stopWheels.click();
await page.keyboard.press("Escape");
await question.waitFor({ state: "hidden" });
assert.equal(await page.evaluate(() => window.amber.stick.isAllowed), true);
await stopWheels.click();
await question.getByRole("button", { name: "Stop the driver" }).click();
await page.getByRole("button", { name: "Start roboclaw:0" }).waitFor();
await tab("drive").click();
await says("#drive-hint.problem", "roboclaw:0 is stopped: start it under Devices");
assert.equal(await page.evaluate(() => window.amber.stick.isAllowed), false);

// The layers close like everything else.
await page.locator("#layers summary").click();
await page.getByText("Particles").waitFor();
await page.keyboard.press("Escape");
await page.getByText("Particles").waitFor({ state: "hidden" });

// A refused request, and a list of one value.
await tab("devices").click();
await page.getByRole("button", { name: "maestro:0", exact: true }).click();
await page.locator("#panel summary", { hasText: "set-angle" }).first().click();
await page.getByLabel("servo-address").first().fill("3");
await page.getByLabel(/^angle/).first().fill("4500");
await page.getByRole("button", { name: "Send" }).first().click();
await page.locator("#panel .error", { hasText: "4500" }).waitFor();
await page.evaluate(() => window.amber.panel.takeValue({ device: "maestro:0", method: "made-up", value: { few: [7.5], many: [1, 2, 3, 4, 5] } }));
const value = (name) => page.locator("#panel .values tr", { hasText: name }).locator("td").nth(1).innerText();
assert.deepEqual([await value("few"), await value("many")], ["7.500", "5 values"]);

assert.deepEqual(errors, []);
await browser.close();
console.log("shown");
process.exit(0);
