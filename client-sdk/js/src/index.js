// Clients for robots with Amber.

export {
  AmberError,
  BadAnswerError,
  ClosedError,
  DeviceDiedError,
  RefusedError,
  TimedOutError,
  UnreachableError,
} from "./errors.js";
export { Claims } from "./claims.js";
export { Device, methodsOf } from "./device.js";
export { Lease } from "./lease.js";
export { Robot } from "./robot.js";
export { Subscription } from "./subscription.js";
export { nearest, newOrderId, points, sides } from "./values.js";
