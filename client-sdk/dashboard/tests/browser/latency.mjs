// How old a picture is when the dashboard has drawn it, by the time code of the simulated camera:
// node latency.mjs AMBER [--pictures N] [--rate HZ] [--quick] [--json]
//
// For each size, it starts a simulated camera, a mediator with the driver, and the dashboard, all of this program.
// The time counts from when the camera takes the picture: the simulation then draws it and encodes it as JPEG, as the
// chip of a camera does. "driver" is the part from when the driver has it.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

import { launch } from "./browser.mjs";
import { drawn, noteDrawn, signed } from "./timecode.mjs";

const { values: options, positionals: [given] } = parseArgs({
  allowPositionals: true,
  options: {
    pictures: { type: "string", default: "300" },
    rate: { type: "string", default: "10" }, // one that the page offers
    quick: { type: "boolean" }, // only shows that it works
    json: { type: "boolean" },
  },
});
const amber = resolve(given);
const count = options.quick ? 20 : Number(options.pictures);
const rateHz = Number(options.rate);
const SIZES = [[640, 480], [320, 240]];
/** The demand: so much, and one period of the camera. */
const MOST_MS = 60;
/** Questions to the simulation: the answer is right up to the time of the fastest one. */
const QUESTIONS = 50;
const SAMPLE_MS = 50;

/** Programs, until this is stopped. */
class Programs {
  #all = [];

  /** Starts a program; resolves with what follows a text in one of its lines. */
  start(args, text) {
    const program = spawn(amber, args, { stdio: ["pipe", "pipe", "inherit"] });
    const ended = new Promise((resolve) => program.once("exit", resolve).once("error", resolve));
    this.#all.unshift({ program, ended });
    return new Promise((found, failed) => {
      createInterface({ input: program.stdout }).on("line", (line) => {
        const at = line.indexOf(text);
        if (at >= 0) found(line.slice(at + text.length).split(" ")[0]);
      });
      ended.then((why) => failed(new Error(`amber ${args.join(" ")} has ended: ${why}`)));
    });
  }

  /** The last one first. */
  async stop() {
    for (const { program, ended } of this.#all) {
      program.kill("SIGINT");
      await ended;
    }
  }
}

/** The state of the simulation in a folder. */
function state(folder) {
  return new Promise((found, failed) => {
    const socket = createConnection(join(folder, "control"));
    socket.on("error", failed);
    createInterface({ input: socket }).once("line", (line) => {
      socket.destroy();
      found(JSON.parse(line).state);
    });
    socket.write('{"do":"state"}\n');
  });
}

/** How far our clock is ahead of that of a simulation, which leaves time out if the machine is too busy. */
class Clock {
  #folder;
  /** What it has left out at its times, in milliseconds, with the oldest first. */
  #samples = [];
  #ends = false;
  #ended;
  #aheadMs;

  constructor(folder) {
    this.#folder = folder;
  }

  async #sample() {
    const { time_s: time, left_out_s: leftOut } = await state(this.#folder);
    this.#samples.push({ timeMs: 1000 * time, leftOutMs: 1000 * leftOut });
    return 1000 * (time + leftOut);
  }

  async begin() {
    let [least, most] = [-Infinity, Infinity];
    for (let question = 0; question < QUESTIONS; question++) {
      const before = Date.now();
      const simulated = await this.#sample();
      // Date has no fractions.
      least = Math.max(least, before - simulated);
      most = Math.min(most, Date.now() + 1 - simulated);
    }
    this.#aheadMs = (least + most) / 2;
    this.#ended = (async () => {
      while (!this.#ends) {
        await this.#sample();
        await sleep(SAMPLE_MS);
      }
    })();
  }

  async end() {
    this.#ends = true;
    await this.#ended;
  }

  /** Our time at a time of the simulation of which 24 bits are known. */
  at(codeMs) {
    const { leftOutMs } = this.#samples.findLast(({ timeMs }) => signed(codeMs - timeMs) >= 0) ?? this.#samples[0];
    return codeMs + leftOutMs + this.#aheadMs;
  }

  get leftOutMs() {
    return this.#samples.at(-1).leftOutMs - this.#samples[0].leftOutMs;
  }
}

function summary(times) {
  const sorted = times.toSorted((a, b) => a - b);
  const quantile = (part) => Math.round(sorted[Math.min(Math.floor(part * sorted.length), sorted.length - 1)]);
  return { median_ms: quantile(0.5), p99_ms: quantile(0.99), worst_ms: Math.round(sorted.at(-1)) };
}

async function measure(browser, [width, height]) {
  const folder = await mkdtemp(join(tmpdir(), "amber-latency-"));
  const sim = join(folder, "sim");
  const programs = new Programs();
  try {
    const size = ["--camera-size", `${width}x${height}`, "--camera-rate", String(rateHz)];
    const place = await programs.start(["sim", "--until-eof", "--camera", ...size, "--dir", sim], "camera ");
    const driver = `camera:0='${amber}' driver camera --url http://${place}/stream`;
    const mediator = await programs.start(["mediator", "--listen", "127.0.0.1:0", "--log", "error", "--driver", driver], "listening on ");
    const dashboard = ["dashboard", "--listen", "127.0.0.1:0", "-m", mediator];
    const url = await programs.start(dashboard, "dashboard: ");

    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    await page.addInitScript(noteDrawn);
    await page.addInitScript((rate) => Object.assign(localStorage, { cameraRate: rate, cameraWidth: "own" }), rateHz);
    await page.goto(url);
    await page.waitForFunction((width) => window.amber.camera.shown?.width === width, width);
    await page.evaluate(() => window.note());
    await drawn(page, rateHz);

    const clock = new Clock(sim);
    await clock.begin();
    const seen = await drawn(page, count);
    await clock.end();
    const seconds = (seen.at(-1).nowMs - seen[0].nowMs) / 1000;
    await context.close();
    return {
      width, height, pictures: seen.length, hertz: (seen.length - 1) / seconds,
      capture: summary(seen.map(({ codeMs, nowMs }) => signed(nowMs - clock.at(codeMs)))),
      driver: summary(seen.map(({ capturedMs, nowMs }) => nowMs - capturedMs)),
      left_out_ms: Math.round(clock.leftOutMs),
    };
  } finally {
    await programs.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function row({ width, height, pictures, hertz, capture, driver, left_out_ms }) {
  const cells = ({ median_ms, p99_ms, worst_ms }) => [median_ms, p99_ms, worst_ms];
  const all = [`${width} x ${height}`, pictures, hertz.toFixed(1), ...cells(capture), ...cells(driver), left_out_ms];
  return `| ${all.join(" | ")} |`;
}

const browser = await launch();
const results = [];
for (const size of SIZES) results.push(await measure(browser, size));
await browser.close();
if (options.json) {
  console.log(JSON.stringify(results));
} else {
  console.log(`| picture | pictures | Hz | capture to page: median, ms | 99th percentile | worst | driver to page: median, ms | 99th percentile | worst | left out by the simulation, ms |
|---|${"---:|".repeat(9)}`);
  for (const result of results) console.log(row(result));
}
const mostMs = MOST_MS + 1000 / rateHz;
const late = results.filter(({ capture }) => capture.median_ms > mostMs);
if (late.length && !options.quick) {
  console.error(`the median is above ${mostMs.toFixed(0)} ms`);
  process.exitCode = 1;
}
