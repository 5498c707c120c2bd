// What the panel of a device shows: its values and its driver. Each panel is a client of its own, because some devices
// keep one stream for each client.

import { amber, connect, pause } from "./client.js";

const DRIVER_MS = 1000;
const VALUE_MS = 200; // People cannot read faster.
const POLL_MS = 500;
const MAX_VALUE = 16_384; // Larger ones are pictures and the like, which are not useful as text.
const LARGE = 2048; // The next one of this size is asked for only after the last one, as a network may be slow.
const LINES = 30; // They fill the place of the log.

/**
 * Shows a device until the signal aborts: `show.driver(driver)` once a second, and `show.value(method, value, error)` after
 * `described`, which resolves to whether the device has a description.
 */
export async function watch(device, described, show, signal) {
  const robot = await connect(signal, (error) => show.driver({ error }));
  if (!robot) return;
  const values = async () => {
    if (!await described) return;
    try {
      await watchValues(await robot.load(device), show, signal);
    } catch (error) {
      if (!signal.aborted) show.value(device, undefined, error.message);
    }
  };
  await Promise.all([watchDriver(robot.mediator(), device, show, signal), values()]);
}

async function watchDriver(mediator, device, show, signal) {
  while (!signal.aborted) {
    try {
      const driver = await mediator.describeDriver(device);
      // Older mediators only have the lines of the driver itself, without times.
      const log = mediator.readLog({ device, last: LINES });
      const lines = await log.then((page) => page.lines, () => driver.lastWords.map((text) => ({ text })));
      if (!signal.aborted) show.driver({ ...driver, lines });
    } catch (error) {
      if (!signal.aborted) show.driver({ error: error.message });
    }
    await pause(DRIVER_MS, signal);
  }
}

/** The values that a device publishes, or else its answers to requests that only read. */
async function watchValues(device, show, signal) {
  const { methodsOf } = await amber();
  const methods = methodsOf(device);
  // A client has one set of arguments for each device, so one stream with arguments is enough.
  const byRequest = methods.find(({ kind }) => kind === "stream");
  const streams = methods.filter((method) => method.kind === "subscribe" || method === byRequest);
  const readable = methods.filter(({ kind, reads, needsArguments }) => kind === "ask" && reads && !needsArguments);
  await Promise.all(streams.map((method) => watchStream(method, show, signal)));
  while (!streams.length && readable.length && !signal.aborted) {
    for (const method of readable) {
      const [value, error] = await method.call().then((value) => [value], ({ message }) => [undefined, message]);
      if (signal.aborted) return;
      show.value(method.name, value, error);
      await pause(POLL_MS, signal);
    }
  }
}

async function watchStream(method, show, signal) {
  let at = -Infinity;
  try {
    while (!signal.aborted) {
      for await (const value of method.call(method.whole(VALUE_MS), { buffer: 1 })) {
        if (performance.now() - at < VALUE_MS) continue;
        at = performance.now();
        const size = JSON.stringify(value).length;
        // Nobody needs the next ones.
        if (size > MAX_VALUE) return show.value(method.name, undefined, "the value is too large for a panel");
        show.value(method.name, value);
        if (size > LARGE) break;
      }
      await pause(VALUE_MS, signal);
    }
  } catch (error) {
    if (!signal.aborted) show.value(method.name, undefined, error.message);
  }
}
