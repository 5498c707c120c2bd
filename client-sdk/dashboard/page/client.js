// The page as a client of the mediator itself, with the package of client-sdk/js.

const RETRY_MS = 1000;

/** The package. The stick and Stop do not wait for it: a slow network may bring it later. */
export const amber = () => import("/amber/index.js");

/** Resolves after a time, or at once if the signal aborts. */
export function pause(ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });
}

/**
 * A client that leaves when the signal aborts. It tries until the mediator answers, and tells why that fails. Undefined
 * if the signal aborts before.
 */
export async function connect(signal, tell = () => {}) {
  while (!signal.aborted) {
    try {
      const { Robot } = await amber();
      const robot = await Robot.connect(undefined, { signal });
      signal.addEventListener("abort", () => robot.close(), { once: true });
      if (!signal.aborted) return robot;
      await robot.close();
    } catch (error) {
      if (!signal.aborted) tell(error.message);
    }
    await pause(RETRY_MS, signal);
  }
  return undefined;
}

/** Starts, stops or restarts the driver of a device. Resolves to the words of the mediator. */
export async function changeDriver(device, action) {
  const { Robot } = await amber();
  const robot = await Robot.connect();
  try {
    return await robot.mediator().changeDriver({ device, action });
  } finally {
    await robot.close();
  }
}
