// A demo with its dashboard, in a folder of its own.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Runs something with the address of the dashboard and the process of the mediator; returns its result. */
export async function withDemo(amber, run) {
  const folder = await mkdtemp(join(tmpdir(), "amber-dashboard-"));
  const args = ["demo", "--port", "0", "--dir", join(folder, "robot")];
  const demo = spawn(amber, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => demo.once("exit", resolve).once("error", resolve));
  try {
    const url = await new Promise((found, failed) => {
      createInterface({ input: demo.stdout }).on("line", (line) => {
        // The camera of the demo has an address, too.
        const url = line.match(/^Open (http:\S+) in a browser/)?.[1];
        if (url) found(url);
      });
      ended.then((why) => failed(why instanceof Error ? why : new Error("the demo has ended")));
    });
    return await run({ url, pid: demo.pid });
  } finally {
    demo.kill("SIGINT");
    await ended;
    await rm(folder, { recursive: true, force: true });
  }
}
