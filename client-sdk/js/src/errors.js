// The errors. PURE.

/** Base class of all errors between this program and a device. */
export class AmberError extends Error {
  /**
   * @param {string} text what happened
   * @param {{ hint?: string, device?: string }} [more]
   */
  constructor(text, { hint, device } = {}) {
    super(hint ? `${text}\nhint: ${hint}` : text);
    this.name = new.target.name;
    this.hint = hint;
    this.device = device;
  }
}

/** There was no answer in time. UDP may have lost the request or its answer. */
export class TimedOutError extends AmberError {
  /**
   * @param {string} text
   * @param {{ hint?: string, device?: string, timeoutMs: number }} more
   */
  constructor(text, more) {
    super(text, more);
    this.timeoutMs = more.timeoutMs;
  }
}

/** No driver serves the device, or the driver died before it answered. */
export class DeviceDiedError extends AmberError {
  /**
   * @param {string} text
   * @param {{ hint?: string, device?: string, reason?: string }} more
   */
  constructor(text, more) {
    super(text, more);
    this.reason = more.reason;
  }
}

/** The device understood the request and refused it. */
export class RefusedError extends AmberError {
  /**
   * @param {string} text
   * @param {{ hint?: string, device?: string, reason?: string, words: string }} more
   */
  constructor(text, more) {
    super(text, more);
    this.words = more.words;
    this.reason = more.reason;
  }
}

/** No mediator can be reached. */
export class UnreachableError extends AmberError {}

/** The answer of a device is invalid or does not fit the request. */
export class BadAnswerError extends AmberError {}

/** The robot has been closed. */
export class ClosedError extends AmberError {}
