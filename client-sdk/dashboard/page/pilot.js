// The page's side of what moves the robot: helm.js does the work, in a worker.

export class Pilot extends EventTarget {
  constructor() {
    super();
    Object.assign(this, { isReady: false, problem: null, lastId: 0, waiting: new Map() });
    this.worker = new Worker("helm.js", { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.take(data));
    this.worker.addEventListener("error", () => this.fail("The page could not be loaded completely: load it again."));
  }

  /** Asks for something. Resolves to its result, and rejects with words, also after a time limit. */
  ask(act, given = {}, limitMs = undefined) {
    const id = (this.lastId += 1);
    this.worker.postMessage({ id, act, given });
    return new Promise((done, fail) => {
      this.waiting.set(id, { done, fail });
      if (limitMs) setTimeout(() => fail("no answer in time"), limitMs);
    });
  }

  /** The same, for what tells its problems by events. */
  tell(act, given) {
    this.ask(act, given).catch(() => {});
  }

  take({ id, value, error, event, detail }) {
    if (event) {
      if (event === "ready") this.isReady = detail;
      this.dispatchEvent(new CustomEvent(event, { detail }));
      return;
    }
    const { done, fail } = this.waiting.get(id);
    this.waiting.delete(id);
    if (error === undefined) done(value);
    else fail(error);
  }

  fail(problem) {
    this.problem = problem;
    this.dispatchEvent(new CustomEvent("ready", { detail: false }));
  }
}
