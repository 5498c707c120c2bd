import type { Devices, DevicesByName, motion, order } from "./devices.js";
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

/**
 * A client of one mediator, with a method for each of its devices. It keeps a program in Node running until
 * it is closed.
 *
 * @example
 * const robot = await Robot.connect();
 * await robot.wheels().drive(sides(200, 250)); // mm/s
 * await robot.close();
 */
export class Robot {
  /**
   * Connects to a mediator.
   *
   * @param address in Node `HOST` or `HOST:PORT`; by default that in `AMBER_MEDIATOR`, or else this computer. In
   *   a page, the address that a dashboard prints, `http://HOST:PORT/#TOKEN`; by default that of the page itself.
   * @throws {UnreachableError} No mediator answers within `connectTimeoutMs`, or the dashboard refuses the page.
   * @throws {TypeError} The address is invalid.
   */
  static connect(address?: string, options?: RobotOptions): Promise<Robot>;
  private constructor();

  /** The address of the mediator, or of the dashboard, without its token. */
  readonly mediatorAddress: string;
  /** The number of answers that were late or doubled. */
  readonly lateAnswers: number;
  /** The number of datagrams that were not valid. */
  readonly malformed: number;

  /**
   * A device by its name and number. Sends nothing.
   *
   * @param device `wheels`, `wheels:0`, or `2:0` by the number of its type
   * @throws {TypeError} The name is unknown: `load` finds devices of your own.
   */
  device<Name extends keyof DevicesByName>(device: Name | `${Name}:${number}`): DevicesByName[Name];
  device(device: string | { type: number; id: number }): AnyDevice;

  /**
   * A device of which this package has no description, by its number or its name: the mediator has the
   * description from the driver. From then on, `device` knows it as well.
   *
   * @param device `lamp:0`, or `201:0` by the number of its type
   * @throws {RefusedError} There is no such device, or its driver has sent no description.
   * @throws {BadAnswerError} The description is invalid.
   * @throws {TypeError} No device of the robot has this name.
   */
  load(device: string, options?: CallOptions): Promise<AnyDevice>;

  /**
   * Stops all devices that move, whoever moves them. They refuse motion until `releaseHalt`, also after a
   * restart of their drivers. Anybody may halt. This is no emergency stop: it needs the network, the
   * mediator and the drivers.
   *
   * @param name who halts them, for people
   * @returns the devices, such as `["roboclaw:0"]`
   * @throws {AmberError} No running driver has a device that moves, or one of them could not be halted.
   *   The others are.
   */
  halt(name: string, options?: CallOptions): Promise<string[]>;

  /**
   * Releases the halts of all devices, whoever has halted them.
   *
   * @param name who releases them, for people
   * @returns the devices, such as `["roboclaw:0"]`
   * @throws {RefusedError} Another client holds the lease of a device: only it may release the halt. The
   *   other devices may move again.
   * @throws {AmberError} No running driver has a device that moves.
   */
  releaseHalt(name: string, options?: CallOptions): Promise<string[]>;

  /**
   * Tells all used devices that this client leaves: what it moves stops. Calls without an answer throw a
   * `ClosedError`, and loops over subscriptions end.
   */
  close(): Promise<void>;
}
export interface Robot extends Devices {}

/**
 * One device.
 *
 * Each call may throw a `TimedOutError`, `DeviceDiedError`, `UnreachableError`, `BadAnswerError` or
 * `ClosedError`. If an argument does not fit the description, it throws a `TypeError` or a `RangeError`, and
 * sends nothing.
 */
export class Device {
  private constructor();
  readonly robot: Robot;
  /** The device, such as `hokuyo:0`. */
  readonly address: string;

  /**
   * The same device with other defaults for its calls.
   *
   * @example
   * const wheels = robot.wheels().with({ validMs: 500 });
   */
  with(defaults: CommandOptions): this;

  /** Measures the round-trip time of a PING to the driver, in ms. */
  ping(options?: CallOptions): Promise<number>;

  /**
   * Takes the lease of a device that moves: nobody else moves it until the lease is released.
   *
   * @param name who drives, for people
   * @throws {RefusedError} Another client holds it; `words` names the holder.
   * @throws {TimedOutError} The device does not move, or its driver keeps no leases.
   */
  lease(name: string, options?: LeaseOptions): Promise<Lease>;

  /**
   * Who moves the device, and who has halted it.
   *
   * @throws {TimedOutError} The device does not move, or its driver knows neither leases nor halts.
   */
  motionState(options?: CallOptions): Promise<motion.MotionState>;

  /**
   * Stops the device. It refuses motion until `releaseHalt`, also after a restart of its driver. Anybody may
   * halt it. This is no emergency stop.
   *
   * @param name who halts it, for people
   * @throws {TimedOutError} As for `motionState`: cut the power if the device moves.
   */
  halt(name: string, options?: CallOptions): Promise<motion.MotionState>;

  /**
   * Releases a halt, whoever has halted the device.
   *
   * @param name who releases it, for people
   * @throws {RefusedError} Another client holds the lease: only it may release the halt.
   */
  releaseHalt(name: string, options?: CallOptions): Promise<motion.MotionState>;
}

/** A device that is known at run time only. */
export type AnyDevice = Device & { [method: string]: any };

/** A request or a stream of a device. */
export interface Method {
  /** Its name: `device[name](...)`. */
  readonly name: string;
  /**
   * `ask` has an answer, `tell` has none. `subscribe` and `stream` return a subscription; the second one may
   * have arguments, and a client has one of them per device.
   */
  readonly kind: "ask" | "tell" | "subscribe" | "stream";
  /** Whether it changes nothing, with any arguments. */
  readonly reads: boolean;
  /** Whether it may move something. */
  readonly moves: boolean;
  /** Whether it cannot be called without arguments. */
  readonly needsArguments: boolean;
  /**
   * The arguments for all parts of a stream: those of type boolean are true, and others are absent. `periodMs`
   * is for a stream with a period.
   */
  whole(periodMs: number): any;
  /** Calls it. Without arguments, `given` does not matter. */
  call(given?: any, options?: CommandOptions & StreamOptions): any;
}

/**
 * The requests and streams of a device, in the order of its description: for programs that show any device.
 * Others write `device.name(...)`.
 *
 * @example
 * for (const method of methodsOf(await robot.load("lamp:0"))) console.log(method.name, method.kind);
 */
export function methodsOf(device: Device): Method[];

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

export interface ClaimsOptions {
  /** How long a lease is kept after the last command, in ms. 1000 by default. */
  holdMs?: number;
  /** The device stops if nothing comes from this client for this time: see `LeaseOptions`. 500 by default. */
  periodMs?: number;
  /** Called when a lease is lost, such as to a client that took it by force. */
  onLost?: (device: string, error: Error) => void;
}

/**
 * The leases of a program that moves devices now and then, such as a page with a joystick: each is taken
 * with the first command, and released a while after the last one.
 *
 * @example
 * const claims = new Claims("my joystick");
 * async function onStick(left, right) {
 *   await claims.claim(robot.wheels()); // throws while another program drives
 *   await robot.wheels().drive(sides(left, right));
 * }
 */
export class Claims {
  /** @param name who drives, for people */
  constructor(name: string, options?: ClaimsOptions);

  /**
   * Call it before each command that moves a device. It waits only until the lease is taken: for one
   * round trip, or for 0.4 s with a driver that keeps no leases.
   *
   * @param options.errand the motion goes on without commands, such as to a target: the lease is kept until
   *   `release`
   * @param options.force takes the lease from its holder
   * @throws {RefusedError} Another client holds it; `words` names the holder. Do not send the command.
   */
  claim(device: Device, options?: { errand?: boolean; force?: boolean }): Promise<void>;

  /**
   * Whether another client holds the lease, as far as is known. Then do not stop the device either, unless
   * a person asks for it.
   */
  isDenied(device: Device): boolean;

  /** The devices whose leases are held, such as `["roboclaw:0"]`. */
  readonly held: string[];

  /** An errand is over, or this program no longer moves the device, which stops. */
  release(device: Device): Promise<void>;

  /** Releases all leases. */
  close(): Promise<void>;
}

/**
 * The publications of a device. It starts with the first `for await`, continues after a restart of the
 * driver or the mediator, and ends with the loop or with `close`.
 *
 * @example
 * for await (const scan of robot.laser().scans()) {
 *   console.log(nearest(scan, -30, 30));
 *   break; // unsubscribes
 * }
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
  /** Unsubscribes. The loop that reads ends. */
  close(): void;
  /** The next value. Throws the reason of the signal. */
  next(): Promise<IteratorResult<T, undefined>>;
  /** What `break` in a loop does: unsubscribes. */
  return(): Promise<IteratorResult<T, undefined>>;
  /** What `for await` does: this subscription. */
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
  /** How long the call has waited, in ms. */
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

/**
 * Wheel speeds for each side, for `wheels().drive`; the robot turns to its slower side.
 *
 * @param left in mm/s
 * @param right in mm/s
 */
export function sides(left: number, right: number): {
  frontLeftSpeed: number;
  frontRightSpeed: number;
  rearLeftSpeed: number;
  rearRightSpeed: number;
};

/** One beam of a scan. */
export interface Point {
  /** In degrees: 0 is ahead, positive to the right. */
  angle: number;
  /** In mm. */
  distance: number;
}
/** The points of a scan with a valid distance: 20 mm to 60 m. */
export function points(scan: { angles: number[]; distances: number[] }): Point[];
/**
 * The nearest point of a scan between two angles; undefined if there is none.
 *
 * @param from in degrees; -180 by default
 * @param to in degrees; 180 by default
 */
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
