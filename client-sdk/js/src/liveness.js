// Notices that the mediator or a driver was restarted, or has forgotten this client. IO through the robot.

import { setExtension } from "./protobuf.js";
import { AmberError } from "./errors.js";
import { INTERFACES } from "./ours.js";
import { pause } from "./pause.js";
import { OURS, extensionOf } from "./schemas.js";

/** The time between two requests to the mediator, and that for its answer. */
const PERIOD_MS = 2000;
/** Missing answers that count as an outage: one may get lost. */
const MISSES = 2;
/** During an outage, requests do not wait for the answers to earlier ones. */
const PERIOD_IN_OUTAGE_MS = 500;
/** A datagram of so many bytes passes every network whole. */
const UNFRAGMENTED = 1200;
/** The answer may take this long, and clocks drift. */
const SLACK_MS = 1050;

const MEDIATOR = { type: 0, id: 0 };
const maxAnswerBytes = extensionOf(OURS, "amber.mediator_proto.max_answer_bytes");
const statistics = /** @type {import("./interface.js").Method} */ (
  INTERFACES[0].methods.find((method) => method.name === "statistics")
);

/** Asks the mediator while there are subscriptions. */
export class Liveness {
  /** @param {import("./robot.js").Robot} robot */
  constructor(robot) {
    this._robot = robot;
    this._ending = new AbortController();
    /** @type {AbortController | undefined} */
    this._asking = undefined;
    /** @type {number | undefined} when the mediator was started */
    this._started = undefined;
    this._knownAs = 0;
    this._isOutage = false;
    /** @type {Promise<any> | undefined} the first answer of those that were asked for in an outage */
    this._first = undefined;
  }

  begin() {
    this._follow();
    this._askAgain();
  }

  end() {
    this._ending.abort();
    this._asking?.abort();
  }

  /** The mediator does not know this client any more: asks it at once. */
  moved() {
    this._isOutage = true;
    this._askAgain();
  }

  _askAgain() {
    this._asking?.abort();
    this._asking = new AbortController();
    this._ask(this._asking.signal).catch(() => {}); // only when it ends
  }

  /** @param {AbortSignal} signal */
  async _ask(signal) {
    let missed = 0;
    while (!signal.aborted) {
      try {
        const answer = await (this._isOutage ? this._firstAnswer(signal) : this._uptimeAndId(signal));
        this._answered(answer, this._isOutage || missed >= MISSES);
        this._isOutage = false;
        missed = 0;
        await pause(PERIOD_MS, signal);
      } catch (error) {
        if (signal.aborted || !(error instanceof AmberError)) throw error;
        missed += 1;
        // A mediator of the original system never answers, and gets few requests.
        this._isOutage = missed >= MISSES && this._robot._mediatorAnswers;
        await pause(PERIOD_MS / 2, signal);
      }
    }
  }

  /**
   * @param {{ uptimeMs: number, clientId?: number }} answer
   * @param {boolean} wasLost
   */
  _answered({ uptimeMs, clientId = 0 }, wasLost) {
    const started = performance.now() - uptimeMs;
    const isRestarted = this._started !== undefined && started > this._started + SLACK_MS;
    const isForgotten = this._knownAs !== 0 && clientId !== 0 && clientId !== this._knownAs;
    this._started = started;
    this._knownAs = clientId || this._knownAs;
    if (isRestarted || isForgotten || wasLost) this._robot._renew();
  }

  /** The first answer to one of many requests. @param {AbortSignal} signal */
  async _firstAnswer(signal) {
    const ending = new AbortController();
    const abort = () => ending.abort(signal.reason);
    signal.addEventListener("abort", abort);
    try {
      for (;;) {
        signal.throwIfAborted();
        const asked = this._uptimeAndId(ending.signal);
        const first = this._first ? Promise.any([this._first, asked]) : asked;
        first.catch(() => {});
        this._first = first;
        const answer = await Promise.race([first, pause(PERIOD_IN_OUTAGE_MS, ending.signal)]).catch((error) => {
          // While there is no network, requests fail at once.
          if (signal.aborted) throw error;
          return pause(PERIOD_IN_OUTAGE_MS / 2, signal);
        });
        if (answer) return answer;
      }
    } finally {
      this._first = undefined;
      signal.removeEventListener("abort", abort);
      ending.abort();
    }
  }

  /**
   * @param {AbortSignal} signal
   * @returns {Promise<any>}
   */
  async _uptimeAndId(signal) {
    const order = statistics.order(undefined);
    // Whether the mediator lives must not depend on whether the network loses fragments.
    setExtension(order, maxAnswerBytes, UNFRAGMENTED);
    const bytes = this._robot._encode(statistics.device, order);
    const answer = await this._robot._ask(MEDIATOR, bytes, { timeoutMs: PERIOD_MS, signal });
    return statistics.answer(answer, "mediator:0");
  }

  async _follow() {
    const { signal } = this._ending;
    try {
      for await (const event of this._robot.device(MEDIATOR).events({ signal })) {
        if (event.kind === "DEVICE_UP" && event.device) this._robot._isUp(event.device);
      }
    } catch {
      // The robot was closed.
    }
  }
}
