// What the dashboard costs, in a browser without a GPU: node measure.mjs AMBER [--quick] [--json]
//
// It starts a demo with this program. In each round it measures an almost empty page, the mediator without
// a page, and the dashboard while it drives the robot and shows the scan, the map and four plots.

import { readFile, readdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

import { launch } from "./browser.mjs";
import { withDemo } from "./demo.mjs";

const { values: options, positionals: [amber] } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: "boolean" }, json: { type: "boolean" } },
});
const rounds = options.quick ? 1 : 5;
const seconds = options.quick ? 2 : 10;

/** Points around the floor of the demo, in metres. The way is longer than the robot drives in a round. */
const TOUR = [[6, 4.8], [1, 2.6], [3, 4.6], [6, 2.6]];

const SIZE = { width: 1440, height: 900 };
const PLOTS = 4;
/** Steps of the trail after which the robot is on its way. */
const TRAIL_STEPS = 10;
/** Measurements of a robot that stands most of the time say too little. */
const DRIVES_PERCENT = 50;

/** A page without work: what this machine and browser can do. */
const EMPTY = "data:text/html,<canvas></canvas>";

/** The frames of a page, and the time that its own functions take in each of them. */
function meter() {
  const native = window.requestAnimationFrame.bind(window);
  const frames = [];
  let [cost, count] = [0, 0];
  window.requestAnimationFrame = (draw) => native((now) => {
    const start = performance.now();
    draw(now);
    cost += performance.now() - start;
    count += 1;
  });
  const tick = (now) => {
    frames.push({ now, cost, count });
    [cost, count] = [0, 0];
    native(tick);
  };
  native(tick);
  window.takeFrames = () => frames.splice(0);
}

/** Sends the robot from point to point as long as the page is open. */
function drive(points) {
  const { link, map } = window.amber;
  let number = 0;
  const go = () => {
    const [x, y] = points[number % points.length];
    link.ask({ t: "goal", x, y }).catch((why) => console.error(why));
  };
  go();
  setInterval(() => {
    const [x, y] = points[number % points.length];
    if (map.pose && Math.hypot(map.pose.x - x, map.pose.y - y) < 0.6) {
      number += 1;
      go();
    }
  }, 200);
}

/** The CPU time of all threads of a process, in seconds. */
async function processorTime(pid) {
  let ns = 0;
  for (const thread of await readdir(`/proc/${pid}/task`)) {
    const stat = await readFile(`/proc/${pid}/task/${thread}/schedstat`, "utf8").catch(() => "0");
    ns += Number(stat.split(" ")[0]);
  }
  return ns / 1e9;
}

/** Runs something, and returns the share of one core in percent that each process took meanwhile. */
async function shares(pids, run) {
  const times = () => Promise.all(pids.map(processorTime));
  const [before, start] = [await times(), performance.now()];
  await run();
  const [after, s] = [await times(), (performance.now() - start) / 1000];
  return after.map((time, index) => (100 * (time - before[index])) / s);
}

async function childOf(parent, command) {
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const read = (file) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "");
    const [stat, line] = await Promise.all([read("stat"), read("cmdline")]);
    if (Number(stat.split(") ").at(-1).split(" ")[1]) === parent && line.split("\0")[1] === command) return Number(pid);
  }
  throw new Error(`no child ${command}`);
}

const median = (values) => quantile(values, 0.5);
function quantile(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(Math.floor(part * sorted.length), sorted.length - 1)];
}

/** What frames say. A frame is late if it comes more than half a period after its time. */
function judged(frames) {
  const gaps = frames.slice(1).map((frame, index) => frame.now - frames[index].now);
  const costs = frames.map((frame) => frame.cost);
  return {
    per_s: (1000 * gaps.length) / (frames.at(-1).now - frames[0].now),
    late_percent: (100 * gaps.filter((gap) => gap > 25).length) / gaps.length,
    drawn_per_s: (1000 * frames.filter((frame) => frame.count).length) / (frames.at(-1).now - frames[0].now),
    cost_ms: median(costs.filter(Boolean)) || 0,
    cost_p99_ms: quantile(costs, 0.99),
  };
}

async function opened(browser, url) {
  const context = await browser.newContext({ viewport: SIZE });
  const page = await context.newPage();
  await page.addInitScript(meter);
  await page.goto(url);
  return page;
}

async function framesOf(page, ms) {
  await page.evaluate(() => window.takeFrames());
  await sleep(ms);
  return judged(await page.evaluate(() => window.takeFrames()));
}

/** What the page loads, and when something is to be seen. */
async function load(page) {
  return page.evaluate(() => {
    const loaded = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    return {
      first_paint_ms: performance.getEntriesByName("first-contentful-paint")[0].startTime,
      bytes: loaded.reduce((sum, entry) => sum + entry.encodedBodySize, 0),
    };
  });
}

async function measure(browser, url, mediator, dashboard) {
  const pids = [mediator, dashboard];
  const empty = await opened(browser, EMPTY);
  const reference = await framesOf(empty, 1000 * seconds / 2);
  await empty.context().close();
  const idle = await shares(pids, () => sleep(1000 * seconds / 2));

  const page = await opened(browser, url);
  await page.waitForFunction(() => window.amber.stick.isAllowed && window.amber.map.pose && window.amber.map.map);
  const loaded = await load(page);
  // Servos are plotted once they have been told something.
  await page.evaluate(async () => {
    for (const servo of [0, 1, 2, 3]) {
      const args = [`servo-address=${servo}`, `angle=${20 + 40 * servo}`];
      await window.amber.link.ask({ t: "call", device: "maestro:0", method: "set-angle", args });
    }
  });
  await page.waitForFunction((plots) => document.querySelectorAll(".plot:not([hidden])").length === plots, PLOTS);
  await page.evaluate(drive, TOUR);
  await page.waitForFunction((steps) => window.amber.map.trail.length > steps, TRAIL_STEPS);
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable");
  const metrics = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
  };
  const before = await metrics();
  let frames;
  const busy = await shares(pids, async () => { frames = await framesOf(page, 1000 * seconds); });
  const after = await metrics();
  const driving_percent = await page.evaluate((ms) => {
    const { points } = window.amber.plots.wheels.series[0];
    const measured = points.filter(([time]) => time > performance.now() - ms);
    return (100 * measured.filter(([, speed]) => Math.abs(speed) > 20).length) / measured.length;
  }, 1000 * seconds);
  if (!options.quick && driving_percent < DRIVES_PERCENT) {
    throw new Error(`the robot drove in ${driving_percent.toFixed(0)} % of the time only: is this machine busy?`);
  }
  const spent = (name) => 100 * (after[name] - before[name]) / (after.Timestamp - before.Timestamp);
  await page.context().close();
  return {
    reference, idle, busy, frames, driving_percent, ...loaded,
    script_percent: spent("ScriptDuration"),
    page_percent: spent("ThreadTime"),
  };
}

await withDemo(amber, async ({ url, pid }) => {
  const dashboard = await childOf(pid, "dashboard");
  const browser = await launch();
  const results = [];
  for (let round = 0; round < rounds; round++) results.push(await measure(browser, url, pid, dashboard));
  await browser.close();
  if (options.json) console.log(JSON.stringify(results));
  else print(results);
});

function print(results) {
  const of = (value, digits) => {
    const all = results.map(value);
    const shown = (number) => number.toFixed(digits);
    return `${shown(median(all))} (${shown(Math.min(...all))} to ${shown(Math.max(...all))})`;
  };
  // The first ones are the table of docs/see-and-record.md.
  const rows = [
    ["First paint, s", of((it) => it.first_paint_ms / 1000, 2)],
    ["Frames per second, with the scan, the map and four plots", of((it) => it.frames.per_s, 1)],
    ["Frames per second of an empty page", of((it) => it.reference.per_s, 1)],
    ["Script to draw a frame, ms", of((it) => it.frames.cost_ms, 2)],
    ["CPU of the mediator without a page, % of a core", of((it) => it.idle[0], 2)],
    ["CPU of the mediator with the page, % of a core", of((it) => it.busy[0], 2)],
    ["CPU of the dashboard without a page, % of a core", of((it) => it.idle[1], 2)],
    ["CPU of the dashboard with the page, % of a core", of((it) => it.busy[1], 2)],
    ["Page, kB", of((it) => it.bytes / 1000, 1)],
    ["The robot drives, % of the time", of((it) => it.driving_percent, 0)],
    ["Frames with something new, per second", of((it) => it.frames.drawn_per_s, 1)],
    ["Late frames, %", of((it) => it.frames.late_percent, 1)],
    ["Late frames of an empty page, %", of((it) => it.reference.late_percent, 1)],
    ["Script to draw a frame, 99 % of frames, ms", of((it) => it.frames.cost_p99_ms, 2)],
    ["All scripts of the page, % of a core", of((it) => it.script_percent, 1)],
    ["Main thread of the page, % of a core", of((it) => it.page_percent, 1)],
  ];
  console.log(`Medians of ${results.length} rounds of ${seconds} s, and their range\n`);
  console.log("| | |\n|---|---:|");
  for (const [name, shown] of rows) console.log(`| ${name} | ${shown} |`);
}
