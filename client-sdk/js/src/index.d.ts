import type { Devices, DevicesByName, order } from "./devices.js";
export type * from "./devices.js";

/** What a single call may say. */
export interface CallOptions {
  /** Ends the wait: the call throws the reason of the signal. The device may have got the request. */
  signal?: AbortSignal;
  /** How long to wait for the answer, in ms. The default is that of the device or of the robot. */
  timeoutMs?: number;
  /**
   * For how long a command that moves something holds, in ms. The driver stops the device then, unless
   * a later command came, also if this program has frozen. Repeat commands at least three times in
   * this time.
   */
  validMs?: number;
}

export interface CommandOptions extends CallOptions {
  /**
   * Does not wait for the driver: the command resolves once it is sent. If the driver reports later
   * that it refuses the command, this is called.
   */
  onRefusal?: (error: AmberError) => void;
}

export interface StreamOptions {
  /** Ends the subscription: the loop throws the reason of the signal. */
  signal?: AbortSignal;
  /** The most values that wait; then the oldest is dropped, and `missed` counts it. 64 by default. */
  buffer?: number;
}

export interface RobotOptions {
  /** How long calls wait for their answers, in ms, unless the device needs more time. 1000 by default. */
  timeoutMs?: number;
  /**
   * For how long commands hold: see `CallOptions`. By default, until the device stops by its own rules; in
   * a page, for 500 ms.
   */
  validMs?: number;
  /**
   * How long to wait for the mediator, in ms. 3000 by default. 0 waits for nothing: the mediator may
   * come later, or be one of the original system, which answers no PING.
   */
  connectTimeoutMs?: number;
  /** How long a command waits for the report of its driver, in ms. 250 by default. */
  outcomeWaitMs?: number;
  /** Called if a driver refuses a command too late for its caller. By default, a warning is written. */
  onRefusal?: (error: AmberError) => void;
  /** Ends the wait for the mediator. */
  signal?: AbortSignal;
}

/** A client of one mediator. It keeps a program in Node running until it is closed. */
export class Robot {
  /**
   * Connects to a mediator at `HOST` or `HOST:PORT`; by default to AMBER_MEDIATOR, or else to this
   * computer. In a page, through a dashboard at `http://HOST:PORT/#TOKEN`; by default the one that the
   * page comes from. Throws UnreachableError, with a hint.
   */
  static connect(address?: string, options?: RobotOptions): Promise<Robot>;
  private constructor();

  /** The address of the mediator, or of the dashboard, without its token. */
  readonly mediatorAddress: string;
  /** The number of answers that were late or doubled. */
  readonly lateAnswers: number;
  /** The number of datagrams that were not valid. */
  readonly malformed: number;

  /** A device by its name and number, such as `wheels:0`. Sends nothing. Throws TypeError. */
  device<Name extends keyof DevicesByName>(device: Name | `${Name}:${number}`): DevicesByName[Name];
  device(device: string | { type: number; id: number }): AnyDevice;

  /**
   * A device of which this package has no description, by its number or its name: the mediator has the
   * description from the driver. From then on, `device` knows it as well. Throws RefusedError if there
   * is no description.
   */
  load(device: string, options?: CallOptions): Promise<AnyDevice>;

  /** Tells all used devices that this client leaves. Calls throw ClosedError, and loops end. */
  close(): Promise<void>;
}
export interface Robot extends Devices {}

/** One device. */
export class Device {
  private constructor();
  readonly robot: Robot;
  /** The device, such as `hokuyo:0`. */
  readonly address: string;

  /** The same device with other defaults for its calls. */
  with(defaults: CommandOptions): this;

  /** Measures the round-trip time of a PING to the driver, in ms. */
  ping(options?: CallOptions): Promise<number>;

  /**
   * Takes the lease of a device that moves: nobody else moves it until the lease is released. Throws
   * RefusedError, which names the holder, or TimedOutError: the device does not move, or its driver
   * keeps no leases.
   */
  lease(name: string, options?: LeaseOptions): Promise<Lease>;
}

/** A device that is known at run time only. */
export type AnyDevice = Device & { [method: string]: any };

export interface LeaseOptions {
  /** Take it from its holder. */
  force?: boolean;
  /** Wait in turn. */
  wait?: boolean;
  /** The device stops if nothing comes from this client for this time. 200 to 10000; 2000 by default. */
  periodMs?: number;
  /** Ends the wait. */
  signal?: AbortSignal;
}

/** A lease, which is kept until `release`. */
export class Lease {
  private constructor();
  /** Why the lease was lost, such as that another client took it; undefined while it is held. */
  readonly lost: string | undefined;
  /** Aborts when the lease is lost. */
  readonly signal: AbortSignal;
  /** Releases the lease. The device stops if this client moved it. */
  release(): Promise<void>;
}

/**
 * The publications of a device. It starts with the first `for await`, continues after a restart of the
 * driver or the mediator, and ends with the loop or with `close`.
 */
export class Subscription<T> implements AsyncIterableIterator<T> {
  private constructor();
  /**
   * The number of values that are lost: the reader was too slow, or a message that is longer than a
   * frame did not arrive completely. Of such messages, only the newest waits.
   */
  readonly missed: number;
  /** The number of messages that did not fit the device. */
  readonly unreadable: number;
  /** Subscribes now, if that has not been done yet. Returns the subscription. */
  open(): this;
  /** Unsubscribes. */
  close(): void;
  next(): Promise<IteratorResult<T, undefined>>;
  return(): Promise<IteratorResult<T, undefined>>;
  [Symbol.asyncIterator](): this;
}

/** Base class of all errors between this program and a device. */
export class AmberError extends Error {
  /** What may help; also in the message. */
  readonly hint: string | undefined;
  /** The device, such as `hokuyo:0`. */
  readonly device: string | undefined;
}
/** There was no answer in time. UDP may have lost the request or its answer. Nothing is repeated. */
export class TimedOutError extends AmberError {
  readonly timeoutMs: number;
}
/** No driver serves the device, or the driver died before it answered. */
export class DeviceDiedError extends AmberError {
  /** Such as `NO_SUCH_DEVICE`, `STOPPED`, `RESTARTING`, `FAILED`; undefined if unknown. */
  readonly reason: string | undefined;
}
/** The device understood the request and refused it. */
export class RefusedError extends AmberError {
  /** Why, in the words of the device. */
  readonly words: string;
  /** The reason as a name, such as `NOT_ALLOWED`; undefined if there is none. */
  readonly reason: string | undefined;
}
/** No mediator can be reached. */
export class UnreachableError extends AmberError {}
/** The answer of a device is invalid or does not fit the request. */
export class BadAnswerError extends AmberError {}
/** The robot has been closed. */
export class ClosedError extends AmberError {}

/** Wheel speeds for each side in mm/s; the robot turns to its slower side. */
export function sides(left: number, right: number): {
  frontLeftSpeed: number;
  frontRightSpeed: number;
  rearLeftSpeed: number;
  rearRightSpeed: number;
};

/** One beam of a scan: degrees, positive to the right, and mm. */
export interface Point {
  angle: number;
  distance: number;
}
/** The points of a scan with a valid distance. */
export function points(scan: { angles: number[]; distances: number[] }): Point[];
/** The nearest point of a scan between two angles in degrees; undefined if there is none. */
export function nearest(scan: { angles: number[]; distances: number[] }, from?: number, to?: number): Point | undefined;
/** A new id for an order, at random: two clients do not choose the same one. */
export function newOrderId(): number;

/** A target on the map, in m, with y down. It is reached within `radius`, 0.2 by default. */
export interface Target {
  x: number;
  y: number;
  radius?: number;
}
declare module "./devices.js" {
  interface DriveToPoint {
    /**
     * Drives to a target, or to several, and waits for the end. This replaces all other targets. Returns
     * the order: its state is ARRIVED, or tells with its reason why the robot is not there.
     *
     * An error, or aborting, does not stop the robot: call `stop`, or close the robot.
     */
    driveTo(targets: Target | Iterable<Target>, options?: CallOptions): Promise<order.Order>;
  }
}
