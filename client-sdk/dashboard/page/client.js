// The page as a client of the mediator itself, with the package of client-sdk/js.

const RETRY_MS = 1000;
// A button has time to tell that a driver refuses.
const OUTCOME_MS = 1000;

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

/** For what a button does: a client that leaves afterwards. Resolves to what `act` resolves to. */
export async function once(act) {
  const { Robot } = await amber();
  const robot = await Robot.connect(undefined, { outcomeWaitMs: OUTCOME_MS });
  try {
    return await act(robot);
  } finally {
    await robot.close();
  }
}

/** An error of the package in one line, with its hint. */
export function inWords({ message, hint }) {
  return hint ? `${message.split("\nhint: ")[0]} (${hint})` : message;
}
