import type { DriversByName, PortsByName } from "./devices.js";
import { RefusedError } from "../index.js";
export type * from "./devices.js";
export type * from "../devices.js";
export { RefusedError };

/** The client of a request. */
export interface Caller {
  /** A number that is valid until `clientGone`. */
  readonly client: number;
}

/**
 * What every driver may have besides the methods of its device.
 *
 * One method runs at a time, so they need no locks. They may be async; while one of them waits,
 * further requests wait, and of more than 256 the oldest are dropped. PINGs, leases and halts are answered
 * meanwhile. A method that computes for long without `await` delays even those.
 */
export interface Driver<P extends Port = AnyPort> {
  /** Milliseconds between two calls of the methods of streams, while there are subscribers. */
  periodMs?: number;
  /** Called once, before anything else. Open the device here. If it fails, the driver ends. */
  start?(port: P): void | Promise<void>;
  /** A client has left or was lost: stop what it has set in motion. */
  clientGone?(client: number): void | Promise<void>;
  /**
   * Whether `clientGone` stops what the client moved. If not, the driver gets the request that stops, as the
   * option `moves` of the description says.
   */
  handlesGoneClients?: boolean;
  /**
   * Called last, whatever the reason: stdin has ended, SIGTERM has arrived, or an error was not caught. Bring the
   * device to a safe state. It has about a second.
   */
  stop?(): void | Promise<void>;
}

/** What a driver may do by itself. Nothing of this waits, and it may be used at any time. */
export interface Port {
  /** The clients that subscribe, in order of their numbers. */
  readonly subscribers: number[];
  /**
   * Reports that the device does not work although the driver does. `amber devices` and `amber status` show it until
   * `recovered`. Saying the same again does nothing. It is not logged.
   *
   * @param why one sentence for people, such as "/dev/ttyACM0 does not exist"; the first 200 characters count
   */
  trouble(why: string): void;
  /** Reports that the device works, which is the initial state. */
  recovered(): void;
}

/** The driver of a device that only its file describes. */
export type AnyDriver = Driver & { [method: string]: any };

/** What it may do, such as `publishBrightness(40)` for a stream `Brightness`. */
export type AnyPort = Port & { [method: string]: any };

/**
 * Runs a driver on stdin and stdout, until stdin ends or SIGTERM comes. Then the process ends. `start` is called
 * after the present code has run.
 *
 * Each request of the device is a method with the arguments that clients of this package give, and a `Caller` as
 * the last one. What it returns is the answer. To refuse a request, throw `Refused`. Any other error is logged,
 * and the client is told that the driver failed.
 *
 * A stream is a method, too: it returns what is published, or undefined for nothing. It is called every `periodMs`
 * while there are subscribers. Instead of it, call `publish...` of what this function returns. A stream that
 * clients start by a request has its arguments, and is called in the period of each client.
 *
 * A device that moves, by the option `moves` of its description, keeps leases, halts and the validity of commands by
 * itself. The method that stops is called like by a client.
 *
 * What the program prints goes to stderr from the import of this module on, because stdout carries frames.
 *
 * @param device the name of a device of Amber, such as `wheels`, or the `.proto` file of one of your own
 * @throws {TypeError} There is no such device, or the driver lacks a method.
 * @throws {Error} The file is not a valid description. The message names the line.
 *
 * @example
 * let percent = 0;
 * serve(new URL("lamp.proto", import.meta.url), {
 *   setBrightness(wanted) {
 *     if (wanted > 100) throw new Refused("brighter than 100 %");
 *     percent = wanted;
 *     return percent;
 *   },
 *   getBrightness: () => percent,
 * });
 */
export function serve<Name extends keyof DriversByName, D extends DriversByName[Name]>(device: Name, driver: D): PortsByName[Name];
export function serve(device: URL | `${string}.proto`, driver: AnyDriver): AnyPort;

/** A driver throws this to refuse a request. */
export class Refused extends RefusedError {
  /**
   * @param words why, as a sentence; the first 200 characters count
   * @param more.reason one of the reasons in the description, if it has any
   * @param more.hint what to do about it
   */
  constructor(words: string, more?: { reason?: string; hint?: string });
}
