// Made by scripts/types.js from the descriptions in proto/. Do not edit.

import type { CallOptions, CommandOptions, Device, StreamOptions, Subscription } from "./index.js";

/** The mediator itself. Only programs on its machine may make changes. */
export interface Mediator extends Device {
  /**
   * The drivers with their state, in the order of the configuration.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  listDrivers(request?: mediator.ListDriversInit, options?: CallOptions): Promise<mediator.DriverList>;
  /**
   * Details of the driver that serves one device.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  describeDriver(request: mediator.DeviceInit | string, options?: CallOptions): Promise<mediator.Driver>;
  /**
   * The description that the driver of a device has sent, for clients that do not know the device.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  getDescription(request: mediator.DeviceInit | string, options?: CallOptions): Promise<mediator.Description>;
  /**
   * The known clients.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  listClients(request?: mediator.ListClientsInit, options?: CallOptions): Promise<mediator.ClientList>;
  /**
   * CPU time and memory of the mediator and its drivers.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  listProcesses(request?: mediator.ListProcessesInit, options?: CallOptions): Promise<mediator.ProcessList>;
  /**
   * Version, uptime and counters.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  statistics(options?: CallOptions): Promise<mediator.Statistics>;
  /**
   * The meanings of the counters of Statistics.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  explainCounters(options?: CallOptions): Promise<mediator.CounterList>;
  /**
   * The stderr output of drivers, and the mediator's messages about them. The mediator keeps the
   * last lines of each driver.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  readLog(request?: mediator.ReadLogInit, options?: CallOptions): Promise<mediator.LogPage>;
  /**
   * Starts, stops or restarts a driver. The answer describes the result.
   *
   * Waits 5 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  changeDriver(request: mediator.ChangeDriverInit, options?: CallOptions): Promise<string>;
  /**
   * Reloads the configuration. Changed drivers restart. The answer describes the result.
   *
   * Waits 5 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  reload(options?: CallOptions): Promise<string>;
  /**
   * Changes the log level of the mediator. The answer describes the result.
   *
   * Waits 5 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  setLogLevel(request: mediator.SetLogLevelInit, options?: CallOptions): Promise<string>;
  /**
   * Starts or stops copies of the frames of one driver, which come with Traced.
   *
   * Waits 5 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  trace(request: mediator.TraceInit, options?: CallOptions): Promise<string>;
  /**
   * Opens a feed of all messages between clients and drivers, for one reader on the mediator's
   * machine. The answer has the path of a Unix socket that only the mediator's user can open.
   * Connect within 5 seconds.
   *
   * Waits 5 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  openFeed(request?: mediator.OpenFeedInit, options?: CallOptions): Promise<mediator.Feed>;
  /** Events of drivers and clients. */
  events(options?: StreamOptions): Subscription<mediator.Event>;
  /** The frames of the drivers that this client has requested with Trace. */
  traced(options?: StreamOptions): Subscription<mediator.Traced>;
  /**
   * Sends the description of a device. From a driver only, without clientIDs. The header names the
   * device; without one, the description applies to all devices of the driver.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  describe(request: mediator.DescriptionInit, options?: CommandOptions): Promise<void>;
  /**
   * Reports whether a device works. From a driver only, without clientIDs.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  health(request: mediator.HealthInit, options?: CommandOptions): Promise<void>;
}

/** An accelerometer, a gyroscope and a magnetometer. */
export interface NineDof extends Device {
  /**
   * One reading of some sensors.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  data(request?: ninedof.DataRequestInit, options?: CallOptions): Promise<ninedof.SensorData>;
  /**
   * Readings of some sensors, one each period. The first comes after one period. The device keeps
   * one period and one set of sensors per client: those of the last request.
   *
   * @throws {RangeError} `freq`, in ms, is below 1.
   */
  readings(request: ninedof.SubscribeActionInit & { freq: number }, options?: StreamOptions): Subscription<ninedof.SensorData>;
  /**
   * Tests whether the sensors respond with plausible values. The robot must stand still.
   * Drivers of the original system do not answer.
   *
   * Waits 122 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  selfTest(request?: Omit<ninedof.ServiceRequestInit, "service">, options?: CallOptions): Promise<ninedof.ServiceReport>;
  /**
   * Measures the bias of the gyroscope and subtracts it from then on. The robot must stand still.
   * Drivers of the original system do not answer.
   *
   * Waits 122 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  calibrateGyro(request?: Omit<ninedof.ServiceRequestInit, "service">, options?: CallOptions): Promise<ninedof.ServiceReport>;
  /**
   * Measures the magnetic field of the robot itself and subtracts it from then on. During this time
   * the robot must make a full turn on level ground. Drivers of the original system do not answer.
   *
   * Waits 122 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  calibrateMagnet(request?: Omit<ninedof.ServiceRequestInit, "service">, options?: CallOptions): Promise<ninedof.ServiceReport>;
}

/**
 * Four driven wheels on two motor controllers.
 *
 * The driver stops the wheels when the client that drives leaves, and a few seconds after the last
 * command. Therefore a program that drives must repeat its command.
 */
export interface Roboclaw extends Device {
  /**
   * Sets the speeds of the wheels. The driver drops a command with a speed beyond its limit
   * (1200 mm/s unless configured otherwise).
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  drive(request: roboclaw.MotorsSpeedInit, options?: CommandOptions): Promise<void>;
  /**
   * The measured speeds of the wheels.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  speeds(options?: CallOptions): Promise<roboclaw.MotorsSpeed>;
  /**
   * The measured speeds of the wheels, 20 times per second. All subscribers share the measurements.
   * Drivers of the original system do not publish. Once a second, the main battery is with them.
   */
  speedUpdates(options?: StreamOptions): Subscription<{ currentSpeed: roboclaw.MotorsSpeed; speedAge?: number; battery?: batteryState.BatteryState }>;
  /**
   * The main battery, as the controllers measured it last. The device `battery` publishes it.
   * Drivers of the original system do not answer.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  battery(options?: CallOptions): Promise<batteryState.BatteryState>;
  /** Stops all motion of the device, whoever moves it. */
  stop(options?: CommandOptions): Promise<void>;
}

/** A sensor that finds the robot's position from markers on the ceiling. */
export interface Stargazer extends Device {
  /**
   * The most recent pose, which may be old (`lostMs`). None if there has been none yet.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  pose(options?: CallOptions): Promise<stargazer.LocalizationData | undefined>;
  /**
   * Every pose, about ten per second, or the most recent one each period. None while no marker is
   * in view.
   *
   * @throws {RangeError} `freq`, in ms, is below 1.
   */
  poses(request: Omit<stargazer.SubscribeActionInit, "action"> & { freq: number }, options?: StreamOptions): Subscription<stargazer.LocalizationData>;
}

/** A laser scanner. */
export interface Hokuyo extends Device {
  /**
   * One scan. It takes 25 to 100 ms, and more than a second over a slow serial line or if the laser
   * was off.
   *
   * Waits 3 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  scan(options?: CallOptions): Promise<hokuyo.Scan & { timestamp?: number }>;
  /** Every scan, about ten per second. */
  scans(options?: StreamOptions): Subscription<hokuyo.Scan & { timestamp?: number }>;
  /**
   * What the scanner can measure, as it says itself. The device refuses while no scanner is
   * connected. Drivers of the original system do not answer.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  scanner(options?: CallOptions): Promise<hokuyo.Scanner>;
}

/** A device without hardware, for experiments. All clients share its flag and its text. */
export interface Dummy extends Device {
  /**
   * The flag and the text.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  status(options?: CallOptions): Promise<{ enable: boolean; message: string }>;
  /**
   * Sets the flag.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  enable(enable: boolean, options?: CommandOptions): Promise<void>;
  /**
   * Sets the text.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  message(message: string, options?: CommandOptions): Promise<void>;
  /** A text ten times a second: "Response N". */
  messages(options?: StreamOptions): Subscription<string>;
}

/** The pose of the robot on a map. */
export interface LocationService extends Device {
  /**
   * The pose. All zero means that it is not known yet.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  pose(options?: CallOptions): Promise<location.Location>;
  /** The pose after each update, at most ten per second, and its quality. */
  poses(options?: StreamOptions): Subscription<{ currentLocation: location.Location; quality?: location.Quality }>;
  /**
   * The quality of the pose, with details. Drivers of the original system do not answer.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  quality(options?: CallOptions): Promise<location.Quality>;
  /**
   * Hypotheses of the particle filter, at most 700. Drivers of the original system do not answer.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  particles(options?: CallOptions): Promise<location.Particles>;
  /**
   * The map in use. The driver refuses if it has no map, or if the map does not fit into a message of
   * 32 kB. Drivers of the original system do not answer.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  map(options?: CallOptions): Promise<location.Map>;
  /**
   * Replaces the map by this .roson text of at most 32 kB. An invalid map changes nothing.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  uploadMap(uploadMap: string, options?: CommandOptions): Promise<void>;
  /**
   * Whether the configured geometry of the robot is right: the delay of the scans, the angle of the
   * laser, the track, and the signs of all. The driver measures it whenever the robot drives; it needs
   * no map. Drivers of the original system do not answer.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  geometry(request?: location.GeometryRequestInit, options?: CallOptions): Promise<location.Geometry>;
  /**
   * Tells where the robot is. The next scans must agree: a pose that does not explain them does not
   * become a known one, and the search goes on. The driver refuses without a map, and for a place
   * where the robot cannot be. Drivers of the original system ignore it.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  setPose(request: location.KnownPoseInit, options?: CommandOptions): Promise<void>;
}

/**
 * Hobby servos, numbered from 0. Commands have no answer. The driver drops and logs invalid ones,
 * such as a servo that does not exist or an angle beyond its limits. Servos keep their position
 * when a client leaves. Those that turn like motors stop then.
 */
export interface Maestro extends Device {
  /**
   * Turns one servo.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  setAngle(request: maestro.SetAngleCommandInit, options?: CommandOptions): Promise<void>;
  /**
   * Turns several servos to the same angle; all or none.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  setSameAngle(request: maestro.SetSameAngleCommandInit, options?: CommandOptions): Promise<void>;
  /**
   * Turns several servos, each to its own angle; all or none.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  setAngles(request: maestro.SetDifferentAnglesCommandInit, options?: CommandOptions): Promise<void>;
  /**
   * Stops what turns like a motor. The other servos keep their position. Drivers of the original
   * system ignore it.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  stop(options?: CommandOptions): Promise<void>;
  /**
   * The last angle that the driver sent to each servo since its start. Hobby servos do not report
   * their position. A servo without a command is absent. Drivers of the original system do not
   * answer.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  angles(options?: CallOptions): Promise<maestro.ServoAngles>;
  /**
   * Sets the speed of a servo.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  setSpeed(request: maestro.SetSpeedCommandInit, options?: CommandOptions): Promise<void>;
}

/** Drives to targets, one after the other. */
export interface DriveToPoint extends Device {
  /**
   * Replaces all targets and starts. An empty list stops the robot.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  setTargets(request: driveToPoint.TargetsInit, options?: CommandOptions): Promise<void>;
  /**
   * Replaces all targets and starts, as an order with an id. `Order` tells how it ends.
   *
   * Choose an id from 2^32 to 2^53 that was not used before, for example at random. If the answer is
   * lost, repeat the request: an order that the driver knows is not started again.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  go(request: driveToPoint.GoInit, options?: CallOptions): Promise<order.Order>;
  /**
   * The order with this id: its progress, or how it ended. 0 means the one that runs, else the last
   * one. The driver remembers the last 16 ended orders.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  order(orderId: number | bigint, options?: CallOptions): Promise<order.Order>;
  /**
   * Stops the robot if the order with this id runs. Returns the order.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  cancelOrder(cancelId: number | bigint, options?: CallOptions): Promise<order.Order>;
  /**
   * The orders that the driver remembers, the newest first.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  orders(options?: CallOptions): Promise<order.Orders>;
  /**
   * The next target, and the pose of the robot. Without a target: a target at 0, 0 with radius 0.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  nextTarget(options?: CallOptions): Promise<{ targets: driveToPoint.Targets; location: driveToPoint.Location }>;
  /**
   * All targets that are still to be reached, and the pose of the robot.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  nextTargets(options?: CallOptions): Promise<{ targets: driveToPoint.Targets; location: driveToPoint.Location }>;
  /**
   * The last visited target, and the pose of the robot. Without one: as in NextTarget.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  visitedTarget(options?: CallOptions): Promise<{ targets: driveToPoint.Targets; location: driveToPoint.Location }>;
  /**
   * All visited targets, and the pose of the robot.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  visitedTargets(options?: CallOptions): Promise<{ targets: driveToPoint.Targets; location: driveToPoint.Location }>;
  /**
   * The settings of the driver.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  configuration(options?: CallOptions): Promise<driveToPoint.Configuration>;
  /**
   * The activity, the path and the pose of the robot, and the order that runs, or the last one.
   * Drivers of the original system do not answer.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  progress(options?: CallOptions): Promise<{ progress: driveToPoint.Progress; location: driveToPoint.Location; order?: order.Order }>;
  /** The same, five times per second. The original does not publish. */
  progressUpdates(options?: StreamOptions): Subscription<{ progress: driveToPoint.Progress; location: driveToPoint.Location; order?: order.Order }>;
  /** Stops all motion of the device, whoever moves it. */
  stop(options?: CommandOptions): Promise<void>;
}

/**
 * Drives like the Roboclaw and avoids collisions.
 *
 * The driver slows the wheels down near obstacles. It stops them before a contact, half a second
 * after the last command, and when scans or wheel speeds are missing. Therefore a program that
 * drives must repeat its command.
 */
export interface CollisionAvoidance extends Device {
  /**
   * Sets the speeds of the wheels. The driver reduces them near obstacles.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  drive(request: collisionAvoidance.MotorsSpeedInit, options?: CommandOptions): Promise<void>;
  /**
   * The measured speeds of the wheels.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  speeds(options?: CallOptions): Promise<collisionAvoidance.MotorsSpeed>;
  /**
   * The last scan of the laser scanner.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  scan(options?: CallOptions): Promise<collisionAvoidance.Scan>;
  /**
   * The measured speeds and the last scan together.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  speedsAndScan(options?: CallOptions): Promise<{ motorsSpeed: collisionAvoidance.MotorsSpeed; scan: collisionAvoidance.Scan }>;
  /** The measured speeds and the scan, with every scan. The original does not publish. */
  readings(options?: StreamOptions): Subscription<{ motorsSpeed: collisionAvoidance.MotorsSpeed; scan: collisionAvoidance.Scan }>;
  /**
   * The same as Drive, with the message of Roboclaw.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  driveAsRoboclaw(request: roboclaw.MotorsSpeedInit, options?: CommandOptions): Promise<void>;
  /**
   * The same as Speeds, with the messages of Roboclaw.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  speedsAsRoboclaw(options?: CallOptions): Promise<roboclaw.MotorsSpeed>;
  /** Stops all motion of the device, whoever moves it. */
  stop(options?: CommandOptions): Promise<void>;
}

/** Follows a trajectory, which is a list of points. */
export interface PidFollowTrajectory extends Device {
  /**
   * Replaces the trajectory and the settings. Ignored while the robot follows a trajectory.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  setTargets(request: { targets?: pidFollowTrajectory.TargetsInit; configuration?: pidFollowTrajectory.ConfigurationInit }, options?: CommandOptions): Promise<void>;
  /**
   * Replaces the trajectory and the settings and starts, as an order with an id. `Order` tells how it
   * ends. Unlike `SetTargets`, it also replaces a trajectory that the robot follows.
   *
   * Choose an id from 2^32 to 2^53 that was not used before, for example at random. If the answer is
   * lost, repeat the request: an order that the driver knows is not started again.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  follow(request: pidFollowTrajectory.FollowInit, options?: CallOptions): Promise<order.Order>;
  /**
   * The order with this id: its progress, or how it ended. 0 means the one that runs, else the last
   * one. The driver remembers the last 16 ended orders.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  order(orderId: number | bigint, options?: CallOptions): Promise<order.Order>;
  /**
   * Stops the robot if the order with this id runs. Returns the order.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  cancelOrder(cancelId: number | bigint, options?: CallOptions): Promise<order.Order>;
  /**
   * The orders that the driver remembers, the newest first.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  orders(options?: CallOptions): Promise<order.Orders>;
  /**
   * The points that are still to be reached.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  nextTargets(options?: CallOptions): Promise<pidFollowTrajectory.Targets>;
  /**
   * The points that were reached.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  visitedTargets(options?: CallOptions): Promise<pidFollowTrajectory.Targets>;
  /**
   * Starts to follow the trajectory.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  start(options?: CommandOptions): Promise<void>;
  /**
   * Stops the robot.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  stop(options?: CommandOptions): Promise<void>;
  /**
   * Follows the trajectory for one period (`loopSleepTime`), then stops the robot.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  step(options?: CommandOptions): Promise<void>;
  /** The activity of the robot and the order, five times per second. The original does not publish. */
  progressUpdates(options?: StreamOptions): Subscription<{ progress: pidFollowTrajectory.Progress; order?: order.Order }>;
}

/**
 * The shape of the robot, and which device has which role. Everything that needs the geometry of the
 * robot asks this device for it.
 */
export interface RobotDevice extends Device {
  /**
   * The shape.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  shape(options?: CallOptions): Promise<robot.Shape>;
  /** The shape after each change. */
  shapeUpdates(options?: StreamOptions): Subscription<robot.Shape>;
  /**
   * The same as URDF: the format in which ROS, RViz and Foxglove read the shape of a robot.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  urdf(options?: CallOptions): Promise<string>;
  /**
   * The pose and the motion of the robot by its wheels alone. The device refuses while the wheels
   * report no speeds.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  odometry(options?: CallOptions): Promise<robot.Odometry>;
  /**
   * The same, once each period, while the wheels report speeds. The wheels report them 20 times per
   * second. The device keeps one period per client: that of the last request.
   *
   * @throws {RangeError} `period`, in ms, is below 1.
   */
  odometryUpdates(request: robot.OdometryRequestInit & { period: number }, options?: StreamOptions): Subscription<robot.Odometry>;
}

/** Makes a map from laser scans and wheel speeds while the robot drives. */
export interface MappingService extends Device {
  /**
   * Begins a map. The driver refuses while another map grows. A stopped map is discarded.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  startMap(request?: mapping.StartMapInit, options?: CommandOptions): Promise<void>;
  /**
   * Ends the exploration and the growth of the map. It can still be saved.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  stopMap(options?: CommandOptions): Promise<void>;
  /**
   * Drives autonomously through unknown places while a map grows, and back to the place where the
   * exploration began. With `on: false`, stops the robot; the map goes on. The exploration ends
   * with its client.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  explore(request: mapping.ExploreInit, options?: CommandOptions): Promise<void>;
  /**
   * Finishes a copy of the map: writes it to files on the robot, hands it to the location driver,
   * or keeps it for MapPiece. The map goes on.
   *
   * Waits 60 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  saveMap(request?: mapping.SaveMapInit, options?: CallOptions): Promise<mapping.SavedMap>;
  /**
   * The state of the map and of the exploration.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  progress(options?: CallOptions): Promise<mapping.Progress>;
  /** The same, five times per second while a map grows, else once per second. */
  progressUpdates(options?: StreamOptions): Subscription<mapping.Progress>;
  /**
   * The parts of the grid that have changed, at most about 1200 bytes in an answer. The request
   * has `map` and `number` of the last answer; without them the answer has the first parts. Ask
   * again while `left` is not 0, then when `grid` in Progress changes, at most every 2 seconds.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  grid(request?: mapping.GridInit, options?: CallOptions): Promise<mapping.Grid>;
  /**
   * A piece of the last saved map. The request has `saved`, `file` and `offset`. The answer also
   * has the data, at most 1200 bytes, and the length of the file, or a length of 0 if this map is
   * no longer there.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  mapPiece(request?: mapping.PieceInit, options?: CallOptions): Promise<mapping.Piece>;
  /** Stops all motion of the device, whoever moves it. */
  stop(options?: CommandOptions): Promise<void>;
}

/** The battery of the robot. */
export interface Battery extends Device {
  /**
   * The state.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  state(options?: CallOptions): Promise<batteryState.BatteryState>;
  /** The state, once a second. The device publishes nothing while the state is unknown. */
  stateUpdates(options?: StreamOptions): Subscription<batteryState.BatteryState>;
}

/** A receiver of navigation satellites. */
export interface Gps extends Device {
  /**
   * What the receiver told last. While it has no position, the kind is NONE.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  fix(options?: CallOptions): Promise<gps.Fix>;
  /** The same, each time the receiver tells it: most do so once a second. */
  fixUpdates(options?: StreamOptions): Subscription<gps.Fix>;
}

/** A gamepad. */
export interface Gamepad extends Device {
  /**
   * What is held, and how far. Without a gamepad, nothing is.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  state(options?: CallOptions): Promise<gamepad.GamepadState>;
  /** The same at each change, at most every 20 ms, and twice a second without one. */
  stateUpdates(options?: StreamOptions): Subscription<gamepad.GamepadState>;
}

/**
 * The pins of a microcontroller. The configuration of the driver says which pins are used, and how. A
 * pin is named by its name there, by its number, or by a label such as A0.
 *
 * Outputs that move something have a safe value in the configuration. They get it when the client that
 * has set them is gone, and when the driver ends or is killed.
 */
export interface Board extends Device {
  /**
   * All configured pins with their values. The device refuses while the board is not connected.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  pins(options?: CallOptions): Promise<board.Pins>;
  /**
   * The same at once when a digital pin changes or an output is set, ten times a second if there are
   * analog inputs, and else once a second. Nothing is published while the board is not connected.
   */
  pinUpdates(options?: StreamOptions): Subscription<board.Pins>;
  /**
   * What the board is, and what each of its pins can do.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  info(options?: CallOptions): Promise<board.BoardInfo>;
  /**
   * Sets a digital output. A halt or a lease of another client refuses it for every pin: the device
   * cannot know what is connected.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  setDigital(request: board.DigitalCommandInit, options?: CommandOptions): Promise<void>;
  /**
   * Sets a PWM output.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  setPwm(request: board.PwmCommandInit, options?: CommandOptions): Promise<void>;
  /**
   * Turns a servo to an angle.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  setServo(request: board.ServoCommandInit, options?: CommandOptions): Promise<void>;
  /**
   * Sets the pulse of a servo, or of a motor controller that takes the same pulses.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  setServoPulse(request: board.PulseCommandInit, options?: CommandOptions): Promise<void>;
  /**
   * Brings all outputs that were set and have a safe value to it.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  stop(options?: CommandOptions): Promise<void>;
}

/** A camera. */
export interface Camera extends Device {
  /**
   * One picture. A camera that nobody uses is switched on first, which takes up to three seconds.
   *
   * Waits 6 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  picture(request?: camera.PictureRequestInit, options?: CallOptions): Promise<camera.Picture>;
  /**
   * The newest picture, once each period; a period shorter than that of the camera means each
   * picture. The device keeps one period and one kind of picture per client: those of the last
   * request.
   *
   * @throws {RangeError} `period`, in ms, is below 1.
   */
  pictures(request: camera.PictureStreamInit & { period: number }, options?: StreamOptions): Subscription<camera.Picture>;
  /**
   * What is known of the camera. It is not switched on for this.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  info(options?: CallOptions): Promise<camera.CameraInfo>;
  /** The same, once per second. */
  infoUpdates(options?: StreamOptions): Subscription<camera.CameraInfo>;
  /**
   * Changes a control, such as the exposure, for as long as the camera is plugged in. Only cameras of
   * which Info shows controls have some.
   *
   * Waits 6 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  setControl(request?: camera.ControlValueInit, options?: CallOptions): Promise<camera.Control>;
}

/**
 * A robot that drives: ahead, to the left, and around itself, all at the same time.
 *
 * The base stops when the client that drives leaves, and half a second after the last command unless
 * the driver is told otherwise. Therefore a program that drives must repeat its command.
 */
export interface Base extends Device {
  /**
   * Drives with a velocity. If a wheel would be too fast, the base drives the same way more slowly. It
   * refuses while its wheels cannot be used.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  drive(request: base.VelocityInit, options?: CommandOptions): Promise<void>;
  /**
   * How the base moves, as it was measured last, and where it is by its wheels. The device refuses
   * while its wheels are not measured.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  state(options?: CallOptions): Promise<base.BaseState>;
  /**
   * The same for each measurement of the wheels, usually twenty times per second. Nothing is
   * published while the wheels are not measured.
   */
  stateUpdates(options?: StreamOptions): Subscription<base.BaseState>;
  /** Stops all motion of the device, whoever moves it. */
  stop(options?: CommandOptions): Promise<void>;
}

/**
 * Servos on one bus, known by their ids. The configuration of the driver says which ids are used, and
 * which of these servos turn like motors. Commands concern all servos that they name, or none.
 *
 * What a client moves stops when that client is gone, and when the driver ends or is killed: a servo
 * holds the angle that it has then, and one that turns like a motor stands still. Torque stays on, so
 * that an arm does not fall.
 */
export interface BusServos extends Device {
  /**
   * All configured servos, as they were measured last. The device refuses while the bus cannot be
   * used.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  servos(options?: CallOptions): Promise<busServos.ServoStates>;
  /**
   * The same for each measurement, twenty times a second unless the driver is told otherwise. Nothing
   * is published while the bus cannot be used.
   */
  servoUpdates(options?: StreamOptions): Subscription<busServos.ServoStates>;
  /**
   * Turns servos to angles, and switches their motors on. The driver refuses angles beyond the limits
   * that are stored in a servo.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  moveTo(request: busServos.MoveServosInit, options?: CommandOptions): Promise<void>;
  /**
   * Turns servos on and on, if the driver is configured so for them. They stop by themselves some time
   * after the last command, four seconds unless the driver is told otherwise.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  turn(request: busServos.ServoSpeedsInit, options?: CommandOptions): Promise<void>;
  /**
   * Stops all servos: each one holds the angle that it has. Motors that are off stay off.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  stop(options?: CommandOptions): Promise<void>;
  /**
   * Switches the motors of servos on or off. On: each one holds the angle that it has. Off: it can be
   * moved by hand, and an arm falls.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  setTorque(request: busServos.ServoTorqueInit, options?: CommandOptions): Promise<void>;
}

/**
 * An arm. Commands concern all joints that they name, or none; other joints stay where they are. A
 * joint does not turn faster than the driver is told, and its motor must be on.
 *
 * What a client moves stops when that client is gone, and when the driver ends or is killed. Torque
 * stays on, so that the arm does not fall.
 */
export interface Arm extends Device {
  /**
   * What the arm does, and all joints, as they were measured last. The device refuses while its servos
   * cannot be reached.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  state(options?: CallOptions): Promise<arm.ArmState>;
  /** The same for each measurement of the servos. Nothing is published while they cannot be reached. */
  stateUpdates(options?: StreamOptions): Subscription<arm.ArmState>;
  /**
   * The joints, their limits, and what the arm is.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  description(options?: CallOptions): Promise<arm.ArmDescription>;
  /**
   * Moves joints to these positions at once, as fast as they may: for leaders, policies and sliders
   * that repeat it 10 to 100 times a second. Positions beyond the limits of a joint become the limit.
   * A joint whose servo does not answer is left out. At first, the arm approaches slowly until it has
   * caught up. Without another command for half a second, or for as long as the command is valid, it
   * holds where it is.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  follow(request: arm.JointPositionsInit, options?: CommandOptions): Promise<void>;
  /**
   * Moves joints to positions, together: they start and arrive at the same time. Answers when the arm
   * is there, or does not come any further. Positions beyond the limits of a joint are refused.
   *
   * Waits 60 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  moveTo(request: arm.MoveArmInit, options?: CallOptions): Promise<arm.ArmOutcome>;
  /**
   * Stops the arm: each joint holds the position that it has. Motors that are off stay off.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  stop(options?: CommandOptions): Promise<void>;
  /**
   * Switches the motors of joints on or off. On: each one holds the position that it has. Off: it can be
   * moved by hand, and the arm falls. Answers when the servos have done so.
   *
   * Waits 4 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  setTorque(request: arm.ArmTorqueInit, options?: CallOptions): Promise<arm.ArmState>;
}

/**
 * Two arms: the leader, whose motors are off, so that a person can move it, and the follower. The
 * configuration of the driver says which arms they are, and which joint follows which.
 *
 * The follower keeps its own rules: its limits, its speed, and that it approaches slowly at first. It
 * stops when the client is gone, and when the driver ends or is killed.
 */
export interface Teleop extends Device {
  /**
   * What both arms do. The device refuses while one of them is not known.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  state(options?: CallOptions): Promise<teleop.TeleopState>;
  /** The same for each measurement of the leader. Nothing is published while an arm is not known. */
  stateUpdates(options?: StreamOptions): Subscription<teleop.TeleopState>;
  /**
   * Lets the follower follow the leader. Answers when that ends. The device refuses while a motor of the
   * leader is on, or one of the follower is off.
   *
   * Waits 610 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  follow(request: teleop.FollowLeaderInit, options?: CallOptions): Promise<teleop.TeleopOutcome>;
  /**
   * Stops the follower: each joint holds the position that it has.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  stop(options?: CommandOptions): Promise<void>;
}

/** The bumpers of a robot, and its sensors for cliffs and for wheels that hang in the air. */
export interface Bumper extends Device {
  /**
   * What each of them feels now.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  contacts(options?: CallOptions): Promise<bumper.Contacts>;
  /**
   * The same at each change, and four times per second. The device publishes nothing while it is
   * unknown: a silence of a second means that nobody knows what the robot touches.
   */
  contactUpdates(options?: StreamOptions): Subscription<bumper.Contacts>;
}

/** What finds markers in pictures. */
export interface Markers extends Device {
  /**
   * The markers in a new picture. A camera that nobody uses is switched on first, which takes up to
   * three seconds.
   *
   * Waits 8 s for the answer, unless `timeoutMs` says otherwise.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  sightings(options?: CallOptions): Promise<markers.Sightings>;
  /**
   * The same for each picture, five times per second unless the driver is told otherwise. The camera is
   * only used while somebody has subscribed.
   */
  sightingsUpdates(options?: StreamOptions): Subscription<markers.Sightings>;
}

/** Lets programs for another robot protocol use Amber's devices. */
export interface Gateway extends Device {
  /**
   * The sessions of the gateway, and its counters.
   *
   * @throws {RefusedError} The device refuses the request.
   */
  status(options?: CallOptions): Promise<gateway.GatewayStatus>;
  /** The same, once a second. */
  statusUpdates(options?: StreamOptions): Subscription<gateway.GatewayStatus>;
  /**
   * Sends an image to the peers, if the protocol has images.
   *
   * @throws {RefusedError} The driver reports that it refuses the command.
   */
  sendImage(request?: gateway.RelayImageInit, options?: CommandOptions): Promise<void>;
  /** Images from the peers, in pieces. */
  images(options?: StreamOptions): Subscription<gateway.RelayImage>;
}

/** A method for each of Amber's devices. */
export interface Devices {
  /** The mediator itself. Only programs on its machine may make changes. */
  mediator(): Mediator;
  /** An accelerometer, a gyroscope and a magnetometer. */
  ninedof(id?: number): NineDof;
  /** An accelerometer, a gyroscope and a magnetometer. */
  imu(id?: number): NineDof;
  /**
   * Four driven wheels on two motor controllers.
   *
   * The driver stops the wheels when the client that drives leaves, and a few seconds after the last
   * command. Therefore a program that drives must repeat its command.
   */
  roboclaw(id?: number): Roboclaw;
  /**
   * Four driven wheels on two motor controllers.
   *
   * The driver stops the wheels when the client that drives leaves, and a few seconds after the last
   * command. Therefore a program that drives must repeat its command.
   */
  wheels(id?: number): Roboclaw;
  /** A sensor that finds the robot's position from markers on the ceiling. */
  stargazer(id?: number): Stargazer;
  /** A laser scanner. */
  hokuyo(id?: number): Hokuyo;
  /** A laser scanner. */
  laser(id?: number): Hokuyo;
  /** A device without hardware, for experiments. All clients share its flag and its text. */
  dummy(id?: number): Dummy;
  /** The pose of the robot on a map. */
  location(id?: number): LocationService;
  /**
   * Hobby servos, numbered from 0. Commands have no answer. The driver drops and logs invalid ones,
   * such as a servo that does not exist or an angle beyond its limits. Servos keep their position
   * when a client leaves. Those that turn like motors stop then.
   */
  maestro(id?: number): Maestro;
  /**
   * Hobby servos, numbered from 0. Commands have no answer. The driver drops and logs invalid ones,
   * such as a servo that does not exist or an angle beyond its limits. Servos keep their position
   * when a client leaves. Those that turn like motors stop then.
   */
  servos(id?: number): Maestro;
  /** Drives to targets, one after the other. */
  driveToPoint(id?: number): DriveToPoint;
  /**
   * Drives like the Roboclaw and avoids collisions.
   *
   * The driver slows the wheels down near obstacles. It stops them before a contact, half a second
   * after the last command, and when scans or wheel speeds are missing. Therefore a program that
   * drives must repeat its command.
   */
  collisionAvoidance(id?: number): CollisionAvoidance;
  /** Follows a trajectory, which is a list of points. */
  pidFollowTrajectory(id?: number): PidFollowTrajectory;
  /**
   * The shape of the robot, and which device has which role. Everything that needs the geometry of the
   * robot asks this device for it.
   */
  robot(id?: number): RobotDevice;
  /** Makes a map from laser scans and wheel speeds while the robot drives. */
  mapping(id?: number): MappingService;
  /** The battery of the robot. */
  battery(id?: number): Battery;
  /** A receiver of navigation satellites. */
  gps(id?: number): Gps;
  /** A gamepad. */
  gamepad(id?: number): Gamepad;
  /**
   * The pins of a microcontroller. The configuration of the driver says which pins are used, and how. A
   * pin is named by its name there, by its number, or by a label such as A0.
   *
   * Outputs that move something have a safe value in the configuration. They get it when the client that
   * has set them is gone, and when the driver ends or is killed.
   */
  board(id?: number): Board;
  /** A camera. */
  camera(id?: number): Camera;
  /**
   * A robot that drives: ahead, to the left, and around itself, all at the same time.
   *
   * The base stops when the client that drives leaves, and half a second after the last command unless
   * the driver is told otherwise. Therefore a program that drives must repeat its command.
   */
  base(id?: number): Base;
  /**
   * Servos on one bus, known by their ids. The configuration of the driver says which ids are used, and
   * which of these servos turn like motors. Commands concern all servos that they name, or none.
   *
   * What a client moves stops when that client is gone, and when the driver ends or is killed: a servo
   * holds the angle that it has then, and one that turns like a motor stands still. Torque stays on, so
   * that an arm does not fall.
   */
  busServos(id?: number): BusServos;
  /**
   * An arm. Commands concern all joints that they name, or none; other joints stay where they are. A
   * joint does not turn faster than the driver is told, and its motor must be on.
   *
   * What a client moves stops when that client is gone, and when the driver ends or is killed. Torque
   * stays on, so that the arm does not fall.
   */
  arm(id?: number): Arm;
  /**
   * Two arms: the leader, whose motors are off, so that a person can move it, and the follower. The
   * configuration of the driver says which arms they are, and which joint follows which.
   *
   * The follower keeps its own rules: its limits, its speed, and that it approaches slowly at first. It
   * stops when the client is gone, and when the driver ends or is killed.
   */
  teleop(id?: number): Teleop;
  /** The bumpers of a robot, and its sensors for cliffs and for wheels that hang in the air. */
  bumper(id?: number): Bumper;
  /** What finds markers in pictures. */
  markers(id?: number): Markers;
  /** Lets programs for another robot protocol use Amber's devices. */
  gateway(id?: number): Gateway;
}

/** The devices by name. */
export interface DevicesByName {
  "mediator": Mediator;
  "ninedof": NineDof;
  "imu": NineDof;
  "roboclaw": Roboclaw;
  "wheels": Roboclaw;
  "stargazer": Stargazer;
  "hokuyo": Hokuyo;
  "laser": Hokuyo;
  "dummy": Dummy;
  "location": LocationService;
  "maestro": Maestro;
  "servos": Maestro;
  "drive-to-point": DriveToPoint;
  "collision-avoidance": CollisionAvoidance;
  "pid-follow-trajectory": PidFollowTrajectory;
  "robot": RobotDevice;
  "mapping": MappingService;
  "battery": Battery;
  "gps": Gps;
  "gamepad": Gamepad;
  "board": Board;
  "camera": Camera;
  "base": Base;
  "bus-servos": BusServos;
  "arm": Arm;
  "teleop": Teleop;
  "bumper": Bumper;
  "markers": Markers;
  "gateway": Gateway;
}

/** The messages of arm. */
export namespace arm {
  interface ArmDescription {
    /** What it is, such as "so101". Absent for an arm whose geometry is not known. */
    model?: string;
    /** From the foot to the hand. */
    joints: arm.JointDescription[];
    /** Whether the driver has a calibration. Without one, the arm cannot be moved. */
    calibrated: boolean;
  }
  interface ArmDescriptionInit {
    /** What it is, such as "so101". Absent for an arm whose geometry is not known. */
    model?: string;
    /** From the foot to the hand. */
    joints?: Iterable<arm.JointDescriptionInit>;
    /** Whether the driver has a calibration. Without one, the arm cannot be moved. */
    calibrated?: boolean;
  }
  /** How a motion ended. */
  interface ArmOutcome {
    end: arm.ArmOutcomeEnd;
    /** Why, as a sentence. */
    reason?: string;
    /** How far each joint of the motion is from its target: in degrees, and percent for a gripper. */
    errors?: arm.JointPositions;
  }
  /**
   * - `ARRIVED`: The arm is where it should be.
   * - `NOT_THERE`: Something holds a joint, or it is too weak.
   * - `STOPPED`: It was stopped.
   * - `REPLACED`: A newer command has replaced it.
   * - `FAILED`: Servos do not answer, or have switched their motor off.
   */
  type ArmOutcomeEnd = "ARRIVED" | "NOT_THERE" | "STOPPED" | "REPLACED" | "FAILED";
  /** How a motion ended. */
  interface ArmOutcomeInit {
    end: arm.ArmOutcomeEnd;
    /** Why, as a sentence. */
    reason?: string;
    /** How far each joint of the motion is from its target: in degrees, and percent for a gripper. */
    errors?: arm.JointPositionsInit;
  }
  /** A place on the way of a motion. */
  interface ArmPoint {
    /**
     * When to be there, from the start.
     *
     * In ms. At most 600000.
     */
    at: number;
    /** For the joints of `targets`, in their order. */
    positions: number[];
  }
  /** A place on the way of a motion. */
  interface ArmPointInit {
    /**
     * When to be there, from the start.
     *
     * In ms. At most 600000.
     */
    at: number;
    /** For the joints of `targets`, in their order. */
    positions?: Iterable<number>;
  }
  /** The earliest first. */
  interface ArmPoints {
    points: arm.ArmPoint[];
  }
  /** The earliest first. */
  interface ArmPointsInit {
    points?: Iterable<arm.ArmPointInit>;
  }
  interface ArmState {
    activity: arm.ArmStateActivity;
    joints: arm.JointState[];
    /** Absent if the geometry of the arm is not known, or a joint is missing. */
    hand?: arm.HandPose;
    /** Why the arm cannot be moved, as a sentence. */
    problem?: string;
    /**
     * When it was measured.
     *
     * In us since 1970.
     */
    time: number;
  }
  /**
   * - `LIMP`: All motors are off: the arm can be moved by hand.
   * - `HOLDING`: It holds its position, at least with some motors.
   * - `APPROACHING`: It follows commands slowly, because it was far from them.
   * - `FOLLOWING`: It follows commands.
   * - `MOVING`: It moves to positions.
   */
  type ArmStateActivity = "LIMP" | "HOLDING" | "APPROACHING" | "FOLLOWING" | "MOVING";
  interface ArmStateInit {
    activity?: arm.ArmStateActivity;
    joints?: Iterable<arm.JointStateInit>;
    /** Absent if the geometry of the arm is not known, or a joint is missing. */
    hand?: arm.HandPoseInit;
    /** Why the arm cannot be moved, as a sentence. */
    problem?: string;
    /**
     * When it was measured.
     *
     * In us since 1970.
     */
    time?: number | bigint;
  }
  interface ArmTorque {
    on: boolean;
    /** Only these joints. Absent: all of them. */
    only?: arm.JointNames;
  }
  interface ArmTorqueInit {
    on: boolean;
    /** Only these joints. Absent: all of them. */
    only?: arm.JointNamesInit;
  }
  /** Where the hand is, from the foot of the arm: a point between the tips of the gripper. */
  interface HandPose {
    /**
     * Ahead.
     *
     * In mm.
     */
    x: number;
    /**
     * To the left.
     *
     * In mm.
     */
    y: number;
    /**
     * Up.
     *
     * In mm.
     */
    z: number;
    /**
     * 0: the hand points ahead; 90: up; -90: down.
     *
     * In deg. From -180 to 180.
     */
    pitch: number;
    /**
     * How the hand is turned about its own direction: the position of the last joint before the
     * gripper. Absent in a request: as it is.
     *
     * In deg. From -180 to 180.
     */
    roll?: number;
  }
  /** Where the hand is, from the foot of the arm: a point between the tips of the gripper. */
  interface HandPoseInit {
    /**
     * Ahead.
     *
     * In mm.
     */
    x: number;
    /**
     * To the left.
     *
     * In mm.
     */
    y: number;
    /**
     * Up.
     *
     * In mm.
     */
    z: number;
    /**
     * 0: the hand points ahead; 90: up; -90: down.
     *
     * In deg. From -180 to 180.
     */
    pitch: number;
    /**
     * How the hand is turned about its own direction: the position of the last joint before the
     * gripper. Absent in a request: as it is.
     *
     * In deg. From -180 to 180.
     */
    roll?: number;
  }
  interface JointDescription {
    name: string;
    kind: arm.JointDescriptionKind;
    /**
     * The id of its servo.
     *
     * At most 252.
     */
    servo: number;
    /** Its limits. Absent without a calibration, and while its servo was not measured. */
    lowest?: number;
    highest?: number;
    /**
     * The fastest that the driver turns it, per second.
     *
     * At least 0.
     */
    fastest?: number;
  }
  interface JointDescriptionInit {
    name?: string;
    kind?: arm.JointDescriptionKind;
    /**
     * The id of its servo.
     *
     * At most 252.
     */
    servo?: number;
    /** Its limits. Absent without a calibration, and while its servo was not measured. */
    lowest?: number;
    highest?: number;
    /**
     * The fastest that the driver turns it, per second.
     *
     * At least 0.
     */
    fastest?: number;
  }
  /**
   * - `TURNING`: Its position is in degrees.
   * - `GRIPPER`: Its position is in percent: 0 is closed, 100 open.
   */
  type JointDescriptionKind = "TURNING" | "GRIPPER";
  interface JointNames {
    joints: string[];
  }
  interface JointNamesInit {
    joints?: Iterable<string>;
  }
  /** In degrees, and percent for a gripper. The lists have equal length. */
  interface JointPositions {
    joints: string[];
    positions: number[];
  }
  /** In degrees, and percent for a gripper. The lists have equal length. */
  interface JointPositionsInit {
    joints?: Iterable<string>;
    positions?: Iterable<number>;
  }
  /** A joint. What was not measured is absent. */
  interface JointState {
    name: string;
    /** In degrees, and percent for a gripper. Absent without a calibration. */
    position?: number;
    /** Per second. */
    speed?: number;
    /** Where it was told to be last. Absent if this driver has told it nothing. */
    target?: number;
    /**
     * The share of the supply that the motor gets, with its direction. It says little about the torque.
     *
     * In %. From -205 to 205.
     */
    load?: number;
    /**
     * The current of the motor. Absent for servos that do not measure it.
     *
     * In mA.
     */
    current?: number;
    /** In degC. */
    temperature?: number;
    /** Whether its motor is on. */
    torque?: boolean;
    /** What is wrong with it, as a sentence. */
    problem?: string;
  }
  /** A joint. What was not measured is absent. */
  interface JointStateInit {
    name?: string;
    /** In degrees, and percent for a gripper. Absent without a calibration. */
    position?: number;
    /** Per second. */
    speed?: number;
    /** Where it was told to be last. Absent if this driver has told it nothing. */
    target?: number;
    /**
     * The share of the supply that the motor gets, with its direction. It says little about the torque.
     *
     * In %. From -205 to 205.
     */
    load?: number;
    /**
     * The current of the motor. Absent for servos that do not measure it.
     *
     * In mA.
     */
    current?: number;
    /** In degC. */
    temperature?: number;
    /** Whether its motor is on. */
    torque?: boolean;
    /** What is wrong with it, as a sentence. */
    problem?: string;
  }
  interface MoveArm {
    /** Where the joints are at the end. May be empty if `hand` says it. */
    targets: arm.JointPositions;
    /**
     * The fastest turn of a joint. Absent: half of what the driver allows.
     *
     * In deg/s. From 1 to 1000.
     */
    speed?: number;
    /**
     * Where the hand is at the end, for an arm whose geometry is known. Then `targets` are for the
     * gripper alone.
     */
    hand?: arm.HandPose;
    /** Positions on the way, such as those of a recording, and when to be there. */
    via?: arm.ArmPoints;
    /**
     * When to be at the targets, from the start. Needed with `via`.
     *
     * In ms. At most 600000.
     */
    at?: number;
    /**
     * The motion ends after this time, wherever the arm is. Absent: 3 s after it should be there.
     *
     * In ms. At most 600000.
     */
    limit?: number;
  }
  interface MoveArmInit {
    /** Where the joints are at the end. May be empty if `hand` says it. */
    targets: arm.JointPositionsInit;
    /**
     * The fastest turn of a joint. Absent: half of what the driver allows.
     *
     * In deg/s. From 1 to 1000.
     */
    speed?: number;
    /**
     * Where the hand is at the end, for an arm whose geometry is known. Then `targets` are for the
     * gripper alone.
     */
    hand?: arm.HandPoseInit;
    /** Positions on the way, such as those of a recording, and when to be there. */
    via?: arm.ArmPointsInit;
    /**
     * When to be at the targets, from the start. Needed with `via`.
     *
     * In ms. At most 600000.
     */
    at?: number;
    /**
     * The motion ends after this time, wherever the arm is. Absent: 3 s after it should be there.
     *
     * In ms. At most 600000.
     */
    limit?: number;
  }
}

/** The messages of base. */
export namespace base {
  interface BaseState {
    /** How it moves, by its wheels. */
    measured: base.Velocity;
    /** What its wheels are told now: the last command, within the limits. */
    told: base.Velocity;
    /** The fastest that it can do of each, if it does nothing else. 0 is what it cannot do. */
    limits: base.Velocity;
    odometry: base.Odometry;
    /**
     * When the wheels were measured.
     *
     * In us since 1970.
     */
    time: number;
  }
  interface BaseStateInit {
    /** How it moves, by its wheels. */
    measured?: base.VelocityInit;
    /** What its wheels are told now: the last command, within the limits. */
    told?: base.VelocityInit;
    /** The fastest that it can do of each, if it does nothing else. 0 is what it cannot do. */
    limits?: base.VelocityInit;
    odometry?: base.OdometryInit;
    /**
     * When the wheels were measured.
     *
     * In us since 1970.
     */
    time?: number | bigint;
  }
  /**
   * Where the base is by its wheels, in the frame of the place where the driver was started. Wheels
   * slip, so the error grows with the way.
   */
  interface Odometry {
    /**
     * In the direction that was ahead.
     *
     * In mm.
     */
    x: number;
    /**
     * To the left of it.
     *
     * In mm.
     */
    y: number;
    /**
     * Counter-clockwise. It grows beyond a whole turn.
     *
     * In deg.
     */
    heading: number;
  }
  /**
   * Where the base is by its wheels, in the frame of the place where the driver was started. Wheels
   * slip, so the error grows with the way.
   */
  interface OdometryInit {
    /**
     * In the direction that was ahead.
     *
     * In mm.
     */
    x?: number;
    /**
     * To the left of it.
     *
     * In mm.
     */
    y?: number;
    /**
     * Counter-clockwise. It grows beyond a whole turn.
     *
     * In deg.
     */
    heading?: number;
  }
  /** What is absent in a command is 0. */
  interface Velocity {
    /**
     * Negative is backwards.
     *
     * In mm/s. From -10000 to 10000. Absent means 0.
     */
    forward: number;
    /**
     * Negative is to the right.
     *
     * In mm/s. From -10000 to 10000. Absent means 0.
     */
    left: number;
    /**
     * Counter-clockwise.
     *
     * In deg/s. From -3600 to 3600. Absent means 0.
     */
    turn: number;
  }
  /** What is absent in a command is 0. */
  interface VelocityInit {
    /**
     * Negative is backwards.
     *
     * In mm/s. From -10000 to 10000. Absent means 0.
     */
    forward?: number;
    /**
     * Negative is to the right.
     *
     * In mm/s. From -10000 to 10000. Absent means 0.
     */
    left?: number;
    /**
     * Counter-clockwise.
     *
     * In deg/s. From -3600 to 3600. Absent means 0.
     */
    turn?: number;
  }
}

/** The messages of batteryState. */
export namespace batteryState {
  /** The state of a battery. What is absent is unknown. */
  interface BatteryState {
    /** In mV. */
    voltage?: number;
    /**
     * Positive while the battery is charged, negative while it is used.
     *
     * In mA.
     */
    current?: number;
    /**
     * How full it is. If it is derived from the voltage, it is only a rough estimate.
     *
     * In %. From 0 to 100.
     */
    charge?: number;
    /** Whether there is a battery. */
    present?: boolean;
    health?: batteryState.BatteryStateHealth;
    chemistry?: batteryState.BatteryStateChemistry;
    /** The number of cells in series. */
    cells?: number;
    /**
     * The time of the measurement.
     *
     * In us since 1970.
     */
    time?: number;
  }
  type BatteryStateChemistry = "LI_ION" | "LI_PO" | "LI_FE" | "NI_MH" | "LEAD_ACID";
  /**
   * - `LOW`: The voltage is so low that the battery must be charged now.
   * - `OVERVOLTAGE`: The voltage is higher than the battery may have.
   */
  type BatteryStateHealth = "GOOD" | "LOW" | "OVERVOLTAGE" | "OVERHEATED" | "DEAD";
  /** The state of a battery. What is absent is unknown. */
  interface BatteryStateInit {
    /** In mV. */
    voltage?: number;
    /**
     * Positive while the battery is charged, negative while it is used.
     *
     * In mA.
     */
    current?: number;
    /**
     * How full it is. If it is derived from the voltage, it is only a rough estimate.
     *
     * In %. From 0 to 100.
     */
    charge?: number;
    /** Whether there is a battery. */
    present?: boolean;
    health?: batteryState.BatteryStateHealth;
    chemistry?: batteryState.BatteryStateChemistry;
    /** The number of cells in series. */
    cells?: number;
    /**
     * The time of the measurement.
     *
     * In us since 1970.
     */
    time?: number | bigint;
  }
}

/** The messages of board. */
export namespace board {
  /** What a pin can do. */
  interface Ability {
    /** At most 127. */
    number?: number;
    /** The label of an analog input, such as "A0". */
    label?: string;
    /** Empty if no program can use it. */
    modes: board.PinMode[];
  }
  /** What a pin can do. */
  interface AbilityInit {
    /** At most 127. */
    number?: number;
    /** The label of an analog input, such as "A0". */
    label?: string;
    /** Empty if no program can use it. */
    modes?: Iterable<board.PinMode>;
  }
  /** A board. What is absent is unknown. */
  interface BoardInfo {
    /** The version of its protocol, such as "Firmata 2.5". */
    protocol?: string;
    /** The name and the version of its program, such as "StandardFirmata 2.5". */
    firmware?: string;
    /**
     * How often it has restarted by itself since the start of the driver. Its outputs are low then until
     * the driver has set it up again.
     */
    restarts?: number;
    /** All of its pins, used or not. */
    pins: board.Ability[];
  }
  /** A board. What is absent is unknown. */
  interface BoardInfoInit {
    /** The version of its protocol, such as "Firmata 2.5". */
    protocol?: string;
    /** The name and the version of its program, such as "StandardFirmata 2.5". */
    firmware?: string;
    /**
     * How often it has restarted by itself since the start of the driver. Its outputs are low then until
     * the driver has set it up again.
     */
    restarts?: number;
    /** All of its pins, used or not. */
    pins?: Iterable<board.AbilityInit>;
  }
  interface DigitalCommand {
    pin: string;
    high: boolean;
  }
  interface DigitalCommandInit {
    pin: string;
    high: boolean;
  }
  /** A configured pin. What is absent is unknown, or makes no sense for it. */
  interface Pin {
    /**
     * The number by which the board knows it.
     *
     * At most 127.
     */
    number?: number;
    /** Its name in the configuration. */
    name?: string;
    mode: board.PinMode;
    /** The level of a digital input, or the one that an output was set to. */
    high?: boolean;
    /**
     * How often a digital input has changed since the start of the driver. A client that misses
     * a message still sees that there was a change.
     */
    changes?: number;
    /**
     * The voltage of an analog input.
     *
     * In V. At least 0.
     */
    voltage?: number;
    /**
     * The same as a share of the reference voltage.
     *
     * From 0 to 1.
     */
    fraction?: number;
    /**
     * What a PWM output was set to.
     *
     * In %. From 0 to 100.
     */
    duty?: number;
    /**
     * What a servo was set to; absent while it gets no pulses. Hobby servos do not report their
     * position.
     *
     * In deg.
     */
    angle?: number;
    /** In us. */
    pulse?: number;
    /** Why the pin cannot be used as it is configured, as a sentence. */
    problem?: string;
  }
  /** A configured pin. What is absent is unknown, or makes no sense for it. */
  interface PinInit {
    /**
     * The number by which the board knows it.
     *
     * At most 127.
     */
    number?: number;
    /** Its name in the configuration. */
    name?: string;
    mode?: board.PinMode;
    /** The level of a digital input, or the one that an output was set to. */
    high?: boolean;
    /**
     * How often a digital input has changed since the start of the driver. A client that misses
     * a message still sees that there was a change.
     */
    changes?: number;
    /**
     * The voltage of an analog input.
     *
     * In V. At least 0.
     */
    voltage?: number;
    /**
     * The same as a share of the reference voltage.
     *
     * From 0 to 1.
     */
    fraction?: number;
    /**
     * What a PWM output was set to.
     *
     * In %. From 0 to 100.
     */
    duty?: number;
    /**
     * What a servo was set to; absent while it gets no pulses. Hobby servos do not report their
     * position.
     *
     * In deg.
     */
    angle?: number;
    /** In us. */
    pulse?: number;
    /** Why the pin cannot be used as it is configured, as a sentence. */
    problem?: string;
  }
  /** - `INPUT_PULL_UP`: With a resistor to the supply: the pin is high while nothing is connected. */
  type PinMode = "INPUT" | "INPUT_PULL_UP" | "OUTPUT" | "ANALOG" | "PWM" | "SERVO";
  interface Pins {
    pins: board.Pin[];
  }
  interface PinsInit {
    pins?: Iterable<board.PinInit>;
  }
  interface PulseCommand {
    pin: string;
    /** In us. From 544 to 2500. */
    pulse: number;
  }
  interface PulseCommandInit {
    pin: string;
    /** In us. From 544 to 2500. */
    pulse: number;
  }
  interface PwmCommand {
    pin: string;
    /**
     * The share of the time for which the output is high.
     *
     * In %. From 0 to 100.
     */
    duty: number;
  }
  interface PwmCommandInit {
    pin: string;
    /**
     * The share of the time for which the output is high.
     *
     * In %. From 0 to 100.
     */
    duty: number;
  }
  interface ServoCommand {
    pin: string;
    /**
     * 0 to 180 unless the driver is configured otherwise.
     *
     * In deg.
     */
    angle: number;
  }
  interface ServoCommandInit {
    pin: string;
    /**
     * 0 to 180 unless the driver is configured otherwise.
     *
     * In deg.
     */
    angle: number;
  }
}

/** The messages of bumper. */
export namespace bumper {
  /** A sensor that feels something or nothing. */
  interface Contact {
    kind: bumper.ContactKind;
    /**
     * The middle of what the sensor covers.
     *
     * In deg. From -180 to 180.
     */
    angle: number;
    /**
     * The whole width of what it covers, half of it on either side of the angle.
     *
     * In deg. From 0 to 360.
     */
    arc: number;
    /** Whether it feels something now. */
    pressed: boolean;
  }
  /** A sensor that feels something or nothing. */
  interface ContactInit {
    kind?: bumper.ContactKind;
    /**
     * The middle of what the sensor covers.
     *
     * In deg. From -180 to 180.
     */
    angle?: number;
    /**
     * The whole width of what it covers, half of it on either side of the angle.
     *
     * In deg. From 0 to 360.
     */
    arc?: number;
    /** Whether it feels something now. */
    pressed?: boolean;
  }
  /**
   * - `BUMPER`: Something presses against the robot.
   * - `CLIFF`: There is no floor.
   * - `WHEEL_DROP`: A wheel hangs in the air.
   */
  type ContactKind = "BUMPER" | "CLIFF" | "WHEEL_DROP";
  /** All contacts of the robot, always in the same order. */
  interface Contacts {
    contacts: bumper.Contact[];
    /**
     * The time of the measurement.
     *
     * In us since 1970.
     */
    time?: number;
  }
  /** All contacts of the robot, always in the same order. */
  interface ContactsInit {
    contacts?: Iterable<bumper.ContactInit>;
    /**
     * The time of the measurement.
     *
     * In us since 1970.
     */
    time?: number | bigint;
  }
}

/** The messages of busServos. */
export namespace busServos {
  interface MoveServos {
    targets: busServos.ServoAngles;
    /**
     * The speed of all of them. The driver has its own limit, which is also the value that an absent
     * field means.
     *
     * In deg/s. From 1 to 1000.
     */
    speed?: number;
  }
  interface MoveServosInit {
    targets: busServos.ServoAnglesInit;
    /**
     * The speed of all of them. The driver has its own limit, which is also the value that an absent
     * field means.
     *
     * In deg/s. From 1 to 1000.
     */
    speed?: number;
  }
  /** The lists have equal length. */
  interface ServoAngles {
    /** At most 252. */
    ids: number[];
    /** In deg. */
    angles: number[];
  }
  /** The lists have equal length. */
  interface ServoAnglesInit {
    /** At most 252. */
    ids?: Iterable<number>;
    /** In deg. */
    angles?: Iterable<number>;
  }
  /** The lists have equal length. */
  interface ServoSpeeds {
    /** At most 252. */
    ids: number[];
    /** In deg/s. */
    speeds: number[];
  }
  /** The lists have equal length. */
  interface ServoSpeedsInit {
    /** At most 252. */
    ids?: Iterable<number>;
    /** In deg/s. */
    speeds?: Iterable<number>;
  }
  /** A configured servo. Everything but its id and its kind is absent while it does not answer. */
  interface ServoState {
    /** At most 252. */
    id: number;
    kind: busServos.ServoStateKind;
    /** The name of its model, such as "STS3215", or its number. */
    model?: string;
    /** In deg. */
    angle?: number;
    /** In deg/s. */
    speed?: number;
    /**
     * The share of the supply that the motor gets, with its direction. It says little about the torque.
     *
     * In %. From -205 to 205.
     */
    load?: number;
    /**
     * The current of the motor. Absent for models that do not measure it.
     *
     * In mA.
     */
    current?: number;
    /** In V. At least 0. */
    voltage?: number;
    /** In degC. */
    temperature?: number;
    /** Whether its motor is on. */
    torque?: boolean;
    moving?: boolean;
    /**
     * The angle that it was told last. Absent if this driver has told it none.
     *
     * In deg.
     */
    target?: number;
    /** What is wrong with it, as a sentence. */
    problem?: string;
    /**
     * The limits that are stored in it. A wheel has none.
     *
     * In deg.
     */
    lowest?: number;
    /** In deg. */
    highest?: number;
    /**
     * The homing offset that is stored in it, as it counts it itself. Absent for models without one.
     *
     * In deg.
     */
    homingOffset?: number;
  }
  /** A configured servo. Everything but its id and its kind is absent while it does not answer. */
  interface ServoStateInit {
    /** At most 252. */
    id?: number;
    kind?: busServos.ServoStateKind;
    /** The name of its model, such as "STS3215", or its number. */
    model?: string;
    /** In deg. */
    angle?: number;
    /** In deg/s. */
    speed?: number;
    /**
     * The share of the supply that the motor gets, with its direction. It says little about the torque.
     *
     * In %. From -205 to 205.
     */
    load?: number;
    /**
     * The current of the motor. Absent for models that do not measure it.
     *
     * In mA.
     */
    current?: number;
    /** In V. At least 0. */
    voltage?: number;
    /** In degC. */
    temperature?: number;
    /** Whether its motor is on. */
    torque?: boolean;
    moving?: boolean;
    /**
     * The angle that it was told last. Absent if this driver has told it none.
     *
     * In deg.
     */
    target?: number;
    /** What is wrong with it, as a sentence. */
    problem?: string;
    /**
     * The limits that are stored in it. A wheel has none.
     *
     * In deg.
     */
    lowest?: number;
    /** In deg. */
    highest?: number;
    /**
     * The homing offset that is stored in it, as it counts it itself. Absent for models without one.
     *
     * In deg.
     */
    homingOffset?: number;
  }
  /**
   * - `JOINT`: It turns to angles.
   * - `WHEEL`: It turns on and on, as motors do.
   */
  type ServoStateKind = "JOINT" | "WHEEL";
  interface ServoStates {
    servos: busServos.ServoState[];
    /**
     * When they were measured.
     *
     * In us since 1970.
     */
    time: number;
  }
  interface ServoStatesInit {
    servos?: Iterable<busServos.ServoStateInit>;
    /**
     * When they were measured.
     *
     * In us since 1970.
     */
    time?: number | bigint;
  }
  interface ServoTorque {
    on: boolean;
    /**
     * All servos if there are none.
     *
     * At most 252.
     */
    ids: number[];
  }
  interface ServoTorqueInit {
    on: boolean;
    /**
     * All servos if there are none.
     *
     * At most 252.
     */
    ids?: Iterable<number>;
  }
}

/** The messages of camera. */
export namespace camera {
  /** The optics, as ROS and OpenCV describe them. */
  interface Calibration {
    /**
     * The size of the pictures for which it holds. For pictures that were made smaller by a whole
     * factor n, fx and fy are a n-th, and cx becomes (cx + 0.5) / n - 0.5; the same holds for cy.
     */
    width: number;
    height: number;
    /** The focal lengths and the centre in pixels. */
    fx: number;
    fy: number;
    cx: number;
    cy: number;
    /** "plumb_bob", "rational_polynomial" or "equidistant". */
    distortionModel: string;
    /** For plumb_bob: k1, k2, p1, p2 and k3. */
    distortion: number[];
    /** The rotation to the rectified picture, row by row: nine numbers, or none for no rotation. */
    rectification: number[];
    /**
     * The projection of the rectified picture, row by row: twelve numbers, or none for that of the
     * camera itself.
     */
    projection: number[];
  }
  /** The optics, as ROS and OpenCV describe them. */
  interface CalibrationInit {
    /**
     * The size of the pictures for which it holds. For pictures that were made smaller by a whole
     * factor n, fx and fy are a n-th, and cx becomes (cx + 0.5) / n - 0.5; the same holds for cy.
     */
    width?: number;
    height?: number;
    /** The focal lengths and the centre in pixels. */
    fx?: number;
    fy?: number;
    cx?: number;
    cy?: number;
    /** "plumb_bob", "rational_polynomial" or "equidistant". */
    distortionModel?: string;
    /** For plumb_bob: k1, k2, p1, p2 and k3. */
    distortion?: Iterable<number>;
    /** The rotation to the rectified picture, row by row: nine numbers, or none for no rotation. */
    rectification?: Iterable<number>;
    /**
     * The projection of the rectified picture, row by row: twelve numbers, or none for that of the
     * camera itself.
     */
    projection?: Iterable<number>;
  }
  /** What is known of a camera. */
  interface CameraInfo {
    /** Where the pictures come from, such as "/dev/video0". */
    source: string;
    /** Whether it is switched on: somebody wants pictures. */
    isOn: boolean;
    /** The size of the last picture. Absent before the first. */
    width?: number;
    height?: number;
    /**
     * Pictures per second in the last seconds. In dim light, many cameras halve it.
     *
     * In Hz. At least 0.
     */
    measuredRate?: number;
    /** Absent: the camera is not calibrated. */
    calibration?: camera.Calibration;
    /** The sizes and rates that it offers. */
    modes: camera.Mode[];
    /** What can be set. */
    controls: camera.Control[];
  }
  /** What is known of a camera. */
  interface CameraInfoInit {
    /** Where the pictures come from, such as "/dev/video0". */
    source?: string;
    /** Whether it is switched on: somebody wants pictures. */
    isOn?: boolean;
    /** The size of the last picture. Absent before the first. */
    width?: number;
    height?: number;
    /**
     * Pictures per second in the last seconds. In dim light, many cameras halve it.
     *
     * In Hz. At least 0.
     */
    measuredRate?: number;
    /** Absent: the camera is not calibrated. */
    calibration?: camera.CalibrationInit;
    /** The sizes and rates that it offers. */
    modes?: Iterable<camera.ModeInit>;
    /** What can be set. */
    controls?: Iterable<camera.ControlInit>;
  }
  /** An entry of a menu. */
  interface Choice {
    value: number;
    name: string;
  }
  /** An entry of a menu. */
  interface ChoiceInit {
    value?: number | bigint;
    name?: string;
  }
  /** Something that can be set. */
  interface Control {
    /** The number, as the system has it. Names differ between versions of Linux. */
    id: number;
    /** The name in words, such as "Brightness". */
    name: string;
    value: number;
    minimum: number;
    maximum: number;
    step?: number;
    defaultValue?: number;
    /**
     * An automatic mode sets it now.
     *
     * Absent means false.
     */
    automatic: boolean;
    /** The values of a menu that it can have. Others between minimum and maximum are refused. */
    choices: camera.Choice[];
  }
  /** Something that can be set. */
  interface ControlInit {
    /** The number, as the system has it. Names differ between versions of Linux. */
    id?: number;
    /** The name in words, such as "Brightness". */
    name?: string;
    value?: number | bigint;
    minimum?: number | bigint;
    maximum?: number | bigint;
    step?: number | bigint;
    defaultValue?: number | bigint;
    /**
     * An automatic mode sets it now.
     *
     * Absent means false.
     */
    automatic?: boolean;
    /** The values of a menu that it can have. Others between minimum and maximum are refused. */
    choices?: Iterable<camera.ChoiceInit>;
  }
  interface ControlValue {
    /** The id of the control, or its name in lower case. */
    id?: number;
    name?: string;
    /** Absent: the default of the camera. */
    value?: number;
  }
  interface ControlValueInit {
    /** The id of the control, or its name in lower case. */
    id?: number;
    name?: string;
    /** Absent: the default of the camera. */
    value?: number | bigint;
  }
  /**
   * How the bytes of a picture are to be read.
   * - `JPEG`: A JPEG file with all its tables.
   * - `GRAY8`: One byte per pixel, row by row from the upper left corner: 0 is black.
   */
  type Format = "JPEG" | "GRAY8";
  /** A size of pictures that the camera offers. */
  interface Mode {
    /** As the camera names it: "MJPG" or "YUYV". */
    format: string;
    width: number;
    height: number;
    /** In Hz. At least 0. */
    maxRate?: number;
  }
  /** A size of pictures that the camera offers. */
  interface ModeInit {
    /** As the camera names it: "MJPG" or "YUYV". */
    format?: string;
    width?: number;
    height?: number;
    /** In Hz. At least 0. */
    maxRate?: number;
  }
  interface Picture {
    /** The whole file, or all pixels. */
    data: Uint8Array;
    format: camera.Format;
    width: number;
    height: number;
    /**
     * When the camera took it, as far as that is known.
     *
     * In us since 1970.
     */
    captured: number;
    /**
     * Counts the pictures of the camera since the driver started. Gaps are pictures that this client
     * was not sent.
     */
    sequence: number;
    /**
     * Whether the end of the file is missing, so that its lower part is grey or wrong.
     *
     * Absent means false.
     */
    damaged: boolean;
  }
  interface PictureInit {
    /** The whole file, or all pixels. */
    data?: Uint8Array;
    format?: camera.Format;
    width?: number;
    height?: number;
    /**
     * When the camera took it, as far as that is known.
     *
     * In us since 1970.
     */
    captured?: number | bigint;
    /**
     * Counts the pictures of the camera since the driver started. Gaps are pictures that this client
     * was not sent.
     */
    sequence?: number;
    /**
     * Whether the end of the file is missing, so that its lower part is grey or wrong.
     *
     * Absent means false.
     */
    damaged?: boolean;
  }
  /** The kind of picture that a client wants. What is absent is as the camera makes it. */
  interface PictureRequest {
    /**
     * A wider picture is made smaller: to a half, a third and so on of its size.
     *
     * From 16 to 8192.
     */
    maxWidth?: number;
    /**
     * The quality of JPEG.
     *
     * In %. From 1 to 100.
     */
    quality?: number;
    /** Absent means JPEG. */
    format: camera.Format;
    /**
     * An older picture will do, if it is not older than this.
     *
     * In ms. Absent means 0.
     */
    maxAge: number;
  }
  /** The kind of picture that a client wants. What is absent is as the camera makes it. */
  interface PictureRequestInit {
    /**
     * A wider picture is made smaller: to a half, a third and so on of its size.
     *
     * From 16 to 8192.
     */
    maxWidth?: number;
    /**
     * The quality of JPEG.
     *
     * In %. From 1 to 100.
     */
    quality?: number;
    /** Absent means JPEG. */
    format?: camera.Format;
    /**
     * An older picture will do, if it is not older than this.
     *
     * In ms. Absent means 0.
     */
    maxAge?: number;
  }
  /** The fields are those of PictureRequest. */
  interface PictureStream {
    /**
     * 0 or absent ends the subscription.
     *
     * In ms.
     */
    period?: number;
    /** From 16 to 8192. */
    maxWidth?: number;
    /** In %. From 1 to 100. */
    quality?: number;
    /** Absent means JPEG. */
    format: camera.Format;
  }
  /** The fields are those of PictureRequest. */
  interface PictureStreamInit {
    /**
     * 0 or absent ends the subscription.
     *
     * In ms.
     */
    period?: number;
    /** From 16 to 8192. */
    maxWidth?: number;
    /** In %. From 1 to 100. */
    quality?: number;
    /** Absent means JPEG. */
    format?: camera.Format;
  }
}

/** The messages of collisionAvoidance. */
export namespace collisionAvoidance {
  /** mm/s, positive = forward. */
  interface MotorsSpeed {
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    frontLeftSpeed: number;
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    frontRightSpeed: number;
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    rearLeftSpeed: number;
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    rearRightSpeed: number;
  }
  /** mm/s, positive = forward. */
  interface MotorsSpeedInit {
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    frontLeftSpeed?: number;
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    frontRightSpeed?: number;
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    rearLeftSpeed?: number;
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    rearRightSpeed?: number;
  }
  /** As in hokuyo.proto. */
  interface Scan {
    /** In deg. From -180 to 180. */
    angles: number[];
    /** In mm. From 0 to 65535. */
    distances: number[];
  }
  /** As in hokuyo.proto. */
  interface ScanInit {
    /** In deg. From -180 to 180. */
    angles?: Iterable<number>;
    /** In mm. From 0 to 65535. */
    distances?: Iterable<number>;
  }
}

/** The messages of driveToPoint. */
export namespace driveToPoint {
  interface Configuration {
    /**
     * mm/s.
     *
     * In mm/s. At least 0.
     */
    maxSpeed?: number;
  }
  interface ConfigurationInit {
    /**
     * mm/s.
     *
     * In mm/s. At least 0.
     */
    maxSpeed?: number;
  }
  interface Go {
    /** The id of the order. */
    id: number;
    targets: driveToPoint.Targets;
    /** The client in words, such as "amber goto". At most 100 bytes. */
    name?: string;
  }
  interface GoInit {
    /** The id of the order. */
    id: number | bigint;
    targets: driveToPoint.TargetsInit;
    /** The client in words, such as "amber goto". At most 100 bytes. */
    name?: string;
  }
  /** As in location.proto. */
  interface Location {
    /** In m. */
    x?: number;
    /** In m. */
    y?: number;
    /** From 0 to 1. */
    p?: number;
    /** In rad. */
    alfa?: number;
    /** In ms since 1970. */
    timeStamp?: number;
  }
  /** As in location.proto. */
  interface LocationInit {
    /** In m. */
    x?: number;
    /** In m. */
    y?: number;
    /** From 0 to 1. */
    p?: number;
    /** In rad. */
    alfa?: number;
    /** In ms since 1970. */
    timeStamp?: number | bigint;
  }
  /** Points on the map, in metres. */
  interface Path {
    /** In m. */
    xs: number[];
    /** In m. */
    ys: number[];
  }
  /** Points on the map, in metres. */
  interface PathInit {
    /** In m. */
    xs?: Iterable<number>;
    /** In m. */
    ys?: Iterable<number>;
  }
  /** The activity of the robot. */
  interface Progress {
    state?: driveToPoint.ProgressState;
    /** The reason for the current speed, as text, such as "an obstacle is in the way". */
    reason?: string;
    /** The rest of the path to the next target. */
    path?: driveToPoint.Path;
    /**
     * The length of the rest of the path.
     *
     * In m. At least 0.
     */
    remaining?: number;
    /** The targets that the robot gave up: unreachable or invalid ones. */
    skipped?: driveToPoint.Targets;
  }
  /** The activity of the robot. */
  interface ProgressInit {
    state?: driveToPoint.ProgressState;
    /** The reason for the current speed, as text, such as "an obstacle is in the way". */
    reason?: string;
    /** The rest of the path to the next target. */
    path?: driveToPoint.PathInit;
    /**
     * The length of the rest of the path.
     *
     * In m. At least 0.
     */
    remaining?: number;
    /** The targets that the robot gave up: unreachable or invalid ones. */
    skipped?: driveToPoint.TargetsInit;
  }
  /**
   * - `IDLE`: There are no targets.
   * - `NO_POSE`: No pose has arrived yet, or the robot does not know its pose and has looked around.
   * - `POSE_JUMPED`: The pose has jumped: the robot waits until the pose is reliable again.
   * - `POSE_LOST`: The last pose is old.
   * - `TURNING`: The robot turns on the spot.
   * - `FOLLOWING`: It follows its path.
   * - `BLOCKED`: An obstacle or a missing sensor stops it.
   * - `BACKING_UP`: It backs up.
   * - `WAITING`: It waits for an obstacle to go away.
   * - `SEARCHING`: The pose is undecided: the robot turns on the spot to see more of the room.
   */
  type ProgressState = "IDLE" | "NO_POSE" | "POSE_JUMPED" | "POSE_LOST" | "TURNING" | "FOLLOWING" | "BLOCKED" | "BACKING_UP" | "WAITING" | "SEARCHING";
  /**
   * Metres in the map's frame. Here longitude is x and latitude is y (in
   * PidFollowTrajectory it is the other way round).
   */
  interface Targets {
    /** In m. */
    longitudes: number[];
    /** In m. */
    latitudes: number[];
    /**
     * A target is reached when the robot is closer than this.
     *
     * In m. At least 0.
     */
    radiuses: number[];
  }
  /**
   * Metres in the map's frame. Here longitude is x and latitude is y (in
   * PidFollowTrajectory it is the other way round).
   */
  interface TargetsInit {
    /** In m. */
    longitudes?: Iterable<number>;
    /** In m. */
    latitudes?: Iterable<number>;
    /**
     * A target is reached when the robot is closer than this.
     *
     * In m. At least 0.
     */
    radiuses?: Iterable<number>;
  }
}

/** The messages of gamepad. */
export namespace gamepad {
  /** What a person does with a gamepad. */
  interface GamepadState {
    /** Whether there is a gamepad. Without one, everything is at rest. */
    connected: boolean;
    /** Its name, as the system has it. */
    name?: string;
    /** Why there is none, as a sentence. */
    trouble?: string;
    /**
     * The left stick: 1 is to the right. An axis counts only after it was at rest once. Absent without
     * such a stick.
     *
     * From -1 to 1.
     */
    leftX?: number;
    /**
     * 1 is up, or ahead.
     *
     * From -1 to 1.
     */
    leftY?: number;
    /**
     * The right stick: 1 is to the right.
     *
     * From -1 to 1.
     */
    rightX?: number;
    /**
     * 1 is up.
     *
     * From -1 to 1.
     */
    rightY?: number;
    /**
     * 1 is pressed as far as possible. Some gamepads tell only 0 and 1.
     *
     * From 0 to 1.
     */
    leftTrigger?: number;
    /**
     * The same.
     *
     * From 0 to 1.
     */
    rightTrigger?: number;
    /** The buttons that are held. One that was held at the start counts only after its release. */
    buttons: gamepad.GamepadStateButton[];
    /**
     * How long ago the gamepad told something. One without a wire may be out of reach without a word.
     *
     * In ms.
     */
    age?: number;
  }
  /**
   * The numbers are those of ROS: the places in sensor_msgs/Joy, as game_controller_node has them.
   * - `SELECT`: Back, Share or minus.
   * - `MODE`: The button of the maker, in the middle.
   * - `START`: Start, Options or plus.
   */
  type GamepadStateButton = "SOUTH" | "EAST" | "WEST" | "NORTH" | "SELECT" | "MODE" | "START" | "LEFT_STICK" | "RIGHT_STICK" | "LEFT_SHOULDER" | "RIGHT_SHOULDER" | "UP" | "DOWN" | "LEFT" | "RIGHT";
  /** What a person does with a gamepad. */
  interface GamepadStateInit {
    /** Whether there is a gamepad. Without one, everything is at rest. */
    connected?: boolean;
    /** Its name, as the system has it. */
    name?: string;
    /** Why there is none, as a sentence. */
    trouble?: string;
    /**
     * The left stick: 1 is to the right. An axis counts only after it was at rest once. Absent without
     * such a stick.
     *
     * From -1 to 1.
     */
    leftX?: number;
    /**
     * 1 is up, or ahead.
     *
     * From -1 to 1.
     */
    leftY?: number;
    /**
     * The right stick: 1 is to the right.
     *
     * From -1 to 1.
     */
    rightX?: number;
    /**
     * 1 is up.
     *
     * From -1 to 1.
     */
    rightY?: number;
    /**
     * 1 is pressed as far as possible. Some gamepads tell only 0 and 1.
     *
     * From 0 to 1.
     */
    leftTrigger?: number;
    /**
     * The same.
     *
     * From 0 to 1.
     */
    rightTrigger?: number;
    /** The buttons that are held. One that was held at the start counts only after its release. */
    buttons?: Iterable<gamepad.GamepadStateButton>;
    /**
     * How long ago the gamepad told something. One without a wire may be out of reach without a word.
     *
     * In ms.
     */
    age?: number;
  }
}

/** The messages of gateway. */
export namespace gateway {
  /** The sessions of a gateway, and its counters since it started. */
  interface GatewayStatus {
    /** The name of the protocol, such as "galileo". */
    protocol?: string;
    /** The number of sessions. */
    sessions?: number;
    /** Datagrams received, including those that are bad or dropped. */
    rx?: number;
    /** Datagrams sent. */
    tx?: number;
    /** Datagrams that violate the protocol. */
    bad?: number;
    /** Datagrams and commands that follow the protocol, but were not forwarded. */
    dropped?: number;
    /**
     * The time since the last datagram; absent if there was none.
     *
     * In ms.
     */
    lastRxMs?: number;
    /** The peers of the sessions, at most 64. */
    peers: gateway.Peer[];
    /** `bad` and `dropped` by reason. */
    reasons: gateway.Reason[];
    /** The addresses on which the gateway listens. */
    listening: string[];
    /** Further data of foreign vehicles, in addition to their devices (RflySim). */
    vehicles: gateway.Vehicle[];
  }
  /** The sessions of a gateway, and its counters since it started. */
  interface GatewayStatusInit {
    /** The name of the protocol, such as "galileo". */
    protocol?: string;
    /** The number of sessions. */
    sessions?: number;
    /** Datagrams received, including those that are bad or dropped. */
    rx?: number | bigint;
    /** Datagrams sent. */
    tx?: number | bigint;
    /** Datagrams that violate the protocol. */
    bad?: number | bigint;
    /** Datagrams and commands that follow the protocol, but were not forwarded. */
    dropped?: number | bigint;
    /**
     * The time since the last datagram; absent if there was none.
     *
     * In ms.
     */
    lastRxMs?: number | bigint;
    /** The peers of the sessions, at most 64. */
    peers?: Iterable<gateway.PeerInit>;
    /** `bad` and `dropped` by reason. */
    reasons?: Iterable<gateway.ReasonInit>;
    /** The addresses on which the gateway listens. */
    listening?: Iterable<string>;
    /** Further data of foreign vehicles, in addition to their devices (RflySim). */
    vehicles?: Iterable<gateway.VehicleInit>;
  }
  /** The peer of a session. */
  interface Peer {
    /** IP address and port. */
    address?: string;
    /** The purpose of the session, such as "cmd_vel". */
    purpose?: string;
    /**
     * The age of the session.
     *
     * In ms.
     */
    ageMs?: number;
    /**
     * The time since the last valid datagram of the peer.
     *
     * In ms.
     */
    silentMs?: number;
    /** Whether the peer holds the controls of the robot. */
    drives?: boolean;
    /** Why the robot does not obey the peer, such as another program that drives; absent if it does. */
    refused?: string;
  }
  /** The peer of a session. */
  interface PeerInit {
    /** IP address and port. */
    address?: string;
    /** The purpose of the session, such as "cmd_vel". */
    purpose?: string;
    /**
     * The age of the session.
     *
     * In ms.
     */
    ageMs?: number | bigint;
    /**
     * The time since the last valid datagram of the peer.
     *
     * In ms.
     */
    silentMs?: number | bigint;
    /** Whether the peer holds the controls of the robot. */
    drives?: boolean;
    /** Why the robot does not obey the peer, such as another program that drives; absent if it does. */
    refused?: string;
  }
  /** The reasons why datagrams or commands were not forwarded. */
  interface Reason {
    /** The reason as text, such as "unknown session". */
    text?: string;
    count?: number;
  }
  /** The reasons why datagrams or commands were not forwarded. */
  interface ReasonInit {
    /** The reason as text, such as "unknown session". */
    text?: string;
    count?: number | bigint;
  }
  /** An image, or a piece of one. */
  interface RelayImage {
    /** The peer that sent the image; absent in a request. */
    source?: string;
    /** In ms since 1970. */
    timestamp?: number;
    /** The bytes of the file, at most 12000 in one piece. */
    image?: Uint8Array;
    /** The format of the file, such as "jpeg" or "png". */
    format?: string;
    /** The number of this piece, from 1, and the number of pieces; absent if there is only one. */
    sequence?: number;
    total?: number;
  }
  /** An image, or a piece of one. */
  interface RelayImageInit {
    /** The peer that sent the image; absent in a request. */
    source?: string;
    /** In ms since 1970. */
    timestamp?: number | bigint;
    /** The bytes of the file, at most 12000 in one piece. */
    image?: Uint8Array;
    /** The format of the file, such as "jpeg" or "png". */
    format?: string;
    /** The number of this piece, from 1, and the number of pieces; absent if there is only one. */
    sequence?: number;
    total?: number;
  }
  /** A vehicle of RflySim that is shown as devices of Amber. */
  interface Vehicle {
    /** The number of the vehicle. */
    number?: number;
    /**
     * The last eight numbers that its autopilot has sent to programs (PX4ExtMsg). The program in the
     * autopilot defines their meaning. Empty if there were none.
     */
    controls: number[];
    /** In ms. */
    controlsAgeMs?: number;
    /** The id of the vehicle that it hit last; absent if there was none. */
    hit?: number;
    /** In ms. */
    hitAgeMs?: number;
  }
  /** A vehicle of RflySim that is shown as devices of Amber. */
  interface VehicleInit {
    /** The number of the vehicle. */
    number?: number;
    /**
     * The last eight numbers that its autopilot has sent to programs (PX4ExtMsg). The program in the
     * autopilot defines their meaning. Empty if there were none.
     */
    controls?: Iterable<number>;
    /** In ms. */
    controlsAgeMs?: number | bigint;
    /** The id of the vehicle that it hit last; absent if there was none. */
    hit?: number;
    /** In ms. */
    hitAgeMs?: number | bigint;
  }
}

/** The messages of gps. */
export namespace gps {
  /** A position on Earth. What is absent is unknown. */
  interface Fix {
    kind: gps.FixKind;
    /**
     * Absent without a position. Positive in the north.
     *
     * In deg. From -90 to 90.
     */
    latitude?: number;
    /**
     * Positive in the east.
     *
     * In deg. From -180 to 180.
     */
    longitude?: number;
    /**
     * Above the mean sea level.
     *
     * In m.
     */
    altitude?: number;
    /**
     * Above the ellipsoid WGS 84.
     *
     * In m.
     */
    height?: number;
    /**
     * The standard deviation of the position: that of both directions together.
     *
     * In m. At least 0.
     */
    horizontalAccuracy?: number;
    /**
     * The standard deviation of the altitude.
     *
     * In m. At least 0.
     */
    verticalAccuracy?: number;
    /**
     * Whether both follow from the directions of the satellites only, because the receiver does not
     * tell its errors.
     */
    accuracyIsEstimated?: boolean;
    correction?: gps.FixCorrection;
    /** The satellites that it uses. Many receivers count only to 12. */
    satellites?: number;
    /**
     * Horizontal dilution of precision: the smaller, the better the directions of the satellites.
     *
     * At least 0.
     */
    hdop?: number;
    /** In m/s. At least 0. */
    speed?: number;
    /**
     * The direction of the motion, clockwise from true north. Absent below 0.5 m/s, where it is noise.
     *
     * In deg. From 0 to 360.
     */
    course?: number;
    /**
     * The time of the measurement, by the satellites.
     *
     * In ms since 1970.
     */
    time?: number;
    /**
     * How long ago the driver received it. Only in answers.
     *
     * In ms.
     */
    age?: number;
  }
  /**
   * - `DIFFERENTIAL`: From satellites such as EGNOS, or from a station.
   * - `RTK_FLOAT`: Decimetres.
   * - `RTK_FIXED`: Centimetres.
   */
  type FixCorrection = "NO_CORRECTION" | "DIFFERENTIAL" | "RTK_FLOAT" | "RTK_FIXED";
  /** A position on Earth. What is absent is unknown. */
  interface FixInit {
    kind?: gps.FixKind;
    /**
     * Absent without a position. Positive in the north.
     *
     * In deg. From -90 to 90.
     */
    latitude?: number;
    /**
     * Positive in the east.
     *
     * In deg. From -180 to 180.
     */
    longitude?: number;
    /**
     * Above the mean sea level.
     *
     * In m.
     */
    altitude?: number;
    /**
     * Above the ellipsoid WGS 84.
     *
     * In m.
     */
    height?: number;
    /**
     * The standard deviation of the position: that of both directions together.
     *
     * In m. At least 0.
     */
    horizontalAccuracy?: number;
    /**
     * The standard deviation of the altitude.
     *
     * In m. At least 0.
     */
    verticalAccuracy?: number;
    /**
     * Whether both follow from the directions of the satellites only, because the receiver does not
     * tell its errors.
     */
    accuracyIsEstimated?: boolean;
    correction?: gps.FixCorrection;
    /** The satellites that it uses. Many receivers count only to 12. */
    satellites?: number;
    /**
     * Horizontal dilution of precision: the smaller, the better the directions of the satellites.
     *
     * At least 0.
     */
    hdop?: number;
    /** In m/s. At least 0. */
    speed?: number;
    /**
     * The direction of the motion, clockwise from true north. Absent below 0.5 m/s, where it is noise.
     *
     * In deg. From 0 to 360.
     */
    course?: number;
    /**
     * The time of the measurement, by the satellites.
     *
     * In ms since 1970.
     */
    time?: number | bigint;
    /**
     * How long ago the driver received it. Only in answers.
     *
     * In ms.
     */
    age?: number;
  }
  /**
   * - `NONE`: The receiver has no position.
   * - `TWO_D`: It sees too few satellites for the altitude.
   * - `DEAD_RECKONING`: It sees too few satellites, and continues the last motion.
   */
  type FixKind = "NONE" | "TWO_D" | "THREE_D" | "DEAD_RECKONING";
}

/** The messages of hokuyo. */
export namespace hokuyo {
  /** The two lists have equal length. */
  interface Scan {
    /**
     * Degrees, positive = clockwise = to the right, ascending.
     *
     * In deg. From -180 to 180.
     */
    angles: number[];
    /**
     * Millimetres; 0 = nothing within range.
     *
     * In mm. From 0 to 65535.
     */
    distances: number[];
  }
  /** The two lists have equal length. */
  interface ScanInit {
    /**
     * Degrees, positive = clockwise = to the right, ascending.
     *
     * In deg. From -180 to 180.
     */
    angles?: Iterable<number>;
    /**
     * Millimetres; 0 = nothing within range.
     *
     * In mm. From 0 to 65535.
     */
    distances?: Iterable<number>;
  }
  /** What a scanner can measure. What is absent is unknown. */
  interface Scanner {
    /** The model, such as "URG-04LX". */
    model?: string;
    firmware?: string;
    serialNumber?: string;
    /**
     * The limits of its distances.
     *
     * In mm.
     */
    minDistance?: number;
    /** In mm. */
    maxDistance?: number;
    /**
     * The field of view: the angles of the points at its ends, as in a scan.
     *
     * In deg. From -180 to 180.
     */
    firstAngle?: number;
    /** In deg. From -180 to 180. */
    lastAngle?: number;
    /**
     * The angle between two points.
     *
     * In deg. At least 0.
     */
    angleStep?: number;
    /**
     * The time of one turn.
     *
     * In us.
     */
    turnTime?: number;
    /**
     * The time between two points.
     *
     * In ns.
     */
    pointTime?: number;
    /** Whether it turns to the right. If not, the last point of a scan is measured first. */
    turnsRight?: boolean;
  }
  /** What a scanner can measure. What is absent is unknown. */
  interface ScannerInit {
    /** The model, such as "URG-04LX". */
    model?: string;
    firmware?: string;
    serialNumber?: string;
    /**
     * The limits of its distances.
     *
     * In mm.
     */
    minDistance?: number;
    /** In mm. */
    maxDistance?: number;
    /**
     * The field of view: the angles of the points at its ends, as in a scan.
     *
     * In deg. From -180 to 180.
     */
    firstAngle?: number;
    /** In deg. From -180 to 180. */
    lastAngle?: number;
    /**
     * The angle between two points.
     *
     * In deg. At least 0.
     */
    angleStep?: number;
    /**
     * The time of one turn.
     *
     * In us.
     */
    turnTime?: number;
    /**
     * The time between two points.
     *
     * In ns.
     */
    pointTime?: number;
    /** Whether it turns to the right. If not, the last point of a scan is measured first. */
    turnsRight?: boolean;
  }
}

/** The messages of location. */
export namespace location {
  /** The covariance of a pose: the mean products of its errors. */
  interface Covariance {
    /** In m^2. */
    xx?: number;
    /** In m^2. */
    xy?: number;
    /** In m^2. */
    yy?: number;
    /** In m*rad. */
    xAlfa?: number;
    /** In m*rad. */
    yAlfa?: number;
    /** In rad^2. */
    alfaAlfa?: number;
  }
  /** The covariance of a pose: the mean products of its errors. */
  interface CovarianceInit {
    /** In m^2. */
    xx?: number;
    /** In m^2. */
    xy?: number;
    /** In m^2. */
    yy?: number;
    /** In m*rad. */
    xAlfa?: number;
    /** In m*rad. */
    yAlfa?: number;
    /** In rad^2. */
    alfaAlfa?: number;
  }
  /** Whether the configured geometry of the robot agrees with its measurements. */
  interface Geometry {
    /** What is wrong. Empty while nothing was found. */
    found: location.GeometryFault[];
    /** How the robot must still move until all values are known, as words. Empty if all are known. */
    missing: string[];
    /** The delay of the scans in milliseconds. Absent while it is unknown. */
    scanDelay?: location.Measured;
    /** The rotation of the laser to the right in degrees. Absent while it is unknown. */
    laserAngle?: location.Measured;
    /** The effective distance between left and right wheels in millimetres. Absent while it is unknown. */
    track?: location.Measured;
    /**
     * The turns in both directions on which this rests: by the scans, and by the wheels.
     *
     * In rad.
     */
    seenTurns?: number;
    /** In rad. */
    drivenTurns?: number;
    /** How often the turn rate has changed. */
    turnChanges?: number;
    /**
     * The length of the straight ways on which this rests.
     *
     * In m.
     */
    straight?: number;
  }
  /** Something that is wrong with the geometry. */
  interface GeometryFault {
    /** A short name, such as "scan_delay". More may follow. */
    kind?: string;
    /** What disagrees, and by how much. */
    sentence?: string;
    /** The lines for robot.toml. None if the wiring is wrong. */
    lines: string[];
  }
  /** Something that is wrong with the geometry. */
  interface GeometryFaultInit {
    /** A short name, such as "scan_delay". More may follow. */
    kind?: string;
    /** What disagrees, and by how much. */
    sentence?: string;
    /** The lines for robot.toml. None if the wiring is wrong. */
    lines?: Iterable<string>;
  }
  /** Whether the configured geometry of the robot agrees with its measurements. */
  interface GeometryInit {
    /** What is wrong. Empty while nothing was found. */
    found?: Iterable<location.GeometryFaultInit>;
    /** How the robot must still move until all values are known, as words. Empty if all are known. */
    missing?: Iterable<string>;
    /** The delay of the scans in milliseconds. Absent while it is unknown. */
    scanDelay?: location.MeasuredInit;
    /** The rotation of the laser to the right in degrees. Absent while it is unknown. */
    laserAngle?: location.MeasuredInit;
    /** The effective distance between left and right wheels in millimetres. Absent while it is unknown. */
    track?: location.MeasuredInit;
    /**
     * The turns in both directions on which this rests: by the scans, and by the wheels.
     *
     * In rad.
     */
    seenTurns?: number;
    /** In rad. */
    drivenTurns?: number;
    /** How often the turn rate has changed. */
    turnChanges?: number;
    /**
     * The length of the straight ways on which this rests.
     *
     * In m.
     */
    straight?: number;
  }
  interface GeometryRequest {
    /** Forget what was measured so far, and begin again. */
    again?: boolean;
  }
  interface GeometryRequestInit {
    /** Forget what was measured so far, and begin again. */
    again?: boolean;
  }
  /** A grid of square cells, as a picture. */
  interface Grid {
    /**
     * The upper left corner of the picture.
     *
     * In m.
     */
    x?: number;
    /** In m. */
    y?: number;
    /**
     * The side length of a pixel.
     *
     * In m. At least 0.
     */
    resolution?: number;
    /** A PNG file: grey 0 is occupied, 254 is free, and 205 is unknown. */
    png?: Uint8Array;
  }
  /** A grid of square cells, as a picture. */
  interface GridInit {
    /**
     * The upper left corner of the picture.
     *
     * In m.
     */
    x?: number;
    /** In m. */
    y?: number;
    /**
     * The side length of a pixel.
     *
     * In m. At least 0.
     */
    resolution?: number;
    /** A PNG file: grey 0 is occupied, 254 is free, and 205 is unknown. */
    png?: Uint8Array;
  }
  /** Where the robot is, as somebody says. */
  interface KnownPose {
    /**
     * Metres.
     *
     * In m.
     */
    x: number;
    /** In m. */
    y: number;
    /**
     * Heading in radians, clockwise.
     *
     * In rad.
     */
    alfa: number;
    /**
     * The standard deviation of the position; 0.25 if absent.
     *
     * In m. At least 0. Absent means 0.25.
     */
    sigma: number;
    /**
     * The standard deviation of the heading; 0.26, or 15 degrees, if absent.
     *
     * In rad. At least 0. Absent means 0.26.
     */
    sigmaAlfa: number;
  }
  /** Where the robot is, as somebody says. */
  interface KnownPoseInit {
    /**
     * Metres.
     *
     * In m.
     */
    x: number;
    /** In m. */
    y: number;
    /**
     * Heading in radians, clockwise.
     *
     * In rad.
     */
    alfa: number;
    /**
     * The standard deviation of the position; 0.25 if absent.
     *
     * In m. At least 0. Absent means 0.25.
     */
    sigma?: number;
    /**
     * The standard deviation of the heading; 0.26, or 15 degrees, if absent.
     *
     * In rad. At least 0. Absent means 0.26.
     */
    sigmaAlfa?: number;
  }
  interface Location {
    /**
     * Metres.
     *
     * In m.
     */
    x?: number;
    /** In m. */
    y?: number;
    /**
     * Quality, 0 to 1: below 0.3 while the pose is unknown, above 0.9 while it is reliable.
     *
     * From 0 to 1.
     */
    p?: number;
    /**
     * Heading in radians, in (-pi, pi].
     *
     * In rad.
     */
    alfa?: number;
    /**
     * The time of this pose, in milliseconds since the Unix epoch: the middle of a scan.
     *
     * In ms since 1970.
     */
    timeStamp?: number;
  }
  interface LocationInit {
    /**
     * Metres.
     *
     * In m.
     */
    x?: number;
    /** In m. */
    y?: number;
    /**
     * Quality, 0 to 1: below 0.3 while the pose is unknown, above 0.9 while it is reliable.
     *
     * From 0 to 1.
     */
    p?: number;
    /**
     * Heading in radians, in (-pi, pi].
     *
     * In rad.
     */
    alfa?: number;
    /**
     * The time of this pose, in milliseconds since the Unix epoch: the middle of a scan.
     *
     * In ms since 1970.
     */
    timeStamp?: number | bigint;
  }
  /** A map: walls or a grid. */
  interface Map {
    /**
     * The walls as .roson text: that of the file, or a text without the keys that Amber ignores if
     * the file is too long.
     */
    roson?: string;
    /** The grid of a map of ROS. */
    grid?: location.Grid;
  }
  /** A map: walls or a grid. */
  interface MapInit {
    /**
     * The walls as .roson text: that of the file, or a text without the keys that Amber ignores if
     * the file is too long.
     */
    roson?: string;
    /** The grid of a map of ROS. */
    grid?: location.GridInit;
  }
  /** A measured value. */
  interface Measured {
    configured?: number;
    value?: number;
    /** Its standard deviation. */
    sigma?: number;
  }
  /** A measured value. */
  interface MeasuredInit {
    configured?: number;
    value?: number;
    /** Its standard deviation. */
    sigma?: number;
  }
  /** A pose where the robot may be. */
  interface Particle {
    /** In m. */
    x?: number;
    /** In m. */
    y?: number;
    /** In rad. */
    alfa?: number;
    /**
     * The weights of all particles sum up to 1.
     *
     * From 0 to 1.
     */
    weight?: number;
  }
  /** A pose where the robot may be. */
  interface ParticleInit {
    /** In m. */
    x?: number;
    /** In m. */
    y?: number;
    /** In rad. */
    alfa?: number;
    /**
     * The weights of all particles sum up to 1.
     *
     * From 0 to 1.
     */
    weight?: number;
  }
  /** Hypotheses of the particle filter. */
  interface Particles {
    particles: location.Particle[];
  }
  /** Hypotheses of the particle filter. */
  interface ParticlesInit {
    particles?: Iterable<location.ParticleInit>;
  }
  /** The quality of the pose, with details. */
  interface Quality {
    /** Whether one pose has explained the scans for a while. */
    decided?: boolean;
    /**
     * The part of the scan that the map explains at the pose.
     *
     * From 0 to 1.
     */
    matching?: number;
    /**
     * The part of all particles, by weight, that agrees with the pose.
     *
     * From 0 to 1.
     */
    agreement?: number;
    /** The number of particles. */
    particles?: number;
    /**
     * The part of the particles that a search for other poses has added in the last update.
     *
     * From 0 to 1.
     */
    injected?: number;
    /**
     * The age of the last scan that gave an estimate.
     *
     * In ms.
     */
    scanAgeMs?: number;
    /**
     * The age of the last wheel speeds.
     *
     * In ms.
     */
    wheelsAgeMs?: number;
    /** The number of scans that gave an estimate, since the driver started. */
    scans?: number;
    /** How often a known pose was lost, since the driver started. */
    lost?: number;
    /** The covariance of the pose. */
    covariance?: location.Covariance;
  }
  /** The quality of the pose, with details. */
  interface QualityInit {
    /** Whether one pose has explained the scans for a while. */
    decided?: boolean;
    /**
     * The part of the scan that the map explains at the pose.
     *
     * From 0 to 1.
     */
    matching?: number;
    /**
     * The part of all particles, by weight, that agrees with the pose.
     *
     * From 0 to 1.
     */
    agreement?: number;
    /** The number of particles. */
    particles?: number;
    /**
     * The part of the particles that a search for other poses has added in the last update.
     *
     * From 0 to 1.
     */
    injected?: number;
    /**
     * The age of the last scan that gave an estimate.
     *
     * In ms.
     */
    scanAgeMs?: number;
    /**
     * The age of the last wheel speeds.
     *
     * In ms.
     */
    wheelsAgeMs?: number;
    /** The number of scans that gave an estimate, since the driver started. */
    scans?: number | bigint;
    /** How often a known pose was lost, since the driver started. */
    lost?: number | bigint;
    /** The covariance of the pose. */
    covariance?: location.CovarianceInit;
  }
}

/** The messages of maestro. */
export namespace maestro {
  /** The lists have equal length. */
  interface ServoAngles {
    /** At most 23. */
    servoAddresses: number[];
    /** In deg. */
    angles: number[];
  }
  /** The lists have equal length. */
  interface ServoAnglesInit {
    /** At most 23. */
    servoAddresses?: Iterable<number>;
    /** In deg. */
    angles?: Iterable<number>;
  }
  /** Angles are whole degrees, 0 to 180 unless the driver is configured otherwise. */
  interface SetAngleCommand {
    /** At most 23. */
    servoAddress: number;
    /** In deg. */
    angle: number;
  }
  /** Angles are whole degrees, 0 to 180 unless the driver is configured otherwise. */
  interface SetAngleCommandInit {
    /** At most 23. */
    servoAddress: number;
    /** In deg. */
    angle: number;
  }
  interface SetDifferentAnglesCommand {
    /** At most 23. */
    servoAddresses: number[];
    /** In deg. */
    angles: number[];
  }
  interface SetDifferentAnglesCommandInit {
    /** At most 23. */
    servoAddresses?: Iterable<number>;
    /** In deg. */
    angles?: Iterable<number>;
  }
  interface SetSameAngleCommand {
    /** At most 23. */
    servoAddresses: number[];
    /** In deg. */
    angle: number;
  }
  interface SetSameAngleCommandInit {
    /** At most 23. */
    servoAddresses?: Iterable<number>;
    /** In deg. */
    angle: number;
  }
  interface SetSpeedCommand {
    /** At most 23. */
    servoAddress: number;
    /**
     * In the controller's unit: 20 is about 50 degrees per second. 0 is the maximum speed.
     *
     * In 25 us/s. From 0 to 16383.
     */
    speed: number;
  }
  interface SetSpeedCommandInit {
    /** At most 23. */
    servoAddress: number;
    /**
     * In the controller's unit: 20 is about 50 degrees per second. 0 is the maximum speed.
     *
     * In 25 us/s. From 0 to 16383.
     */
    speed: number;
  }
}

/** The messages of mapping. */
export namespace mapping {
  interface Explore {
    /**
     * Whether to explore, or to stop.
     *
     * Absent means true.
     */
    on: boolean;
    /**
     * The maximum speed. Absent: that of the driver.
     *
     * In mm/s. At least 0.
     */
    speed?: number;
  }
  interface ExploreInit {
    /**
     * Whether to explore, or to stop.
     *
     * Absent means true.
     */
    on?: boolean;
    /**
     * The maximum speed. Absent: that of the driver.
     *
     * In mm/s. At least 0.
     */
    speed?: number;
  }
  /** Parts of the grid of the growing map. */
  interface Grid {
    /**
     * The number of the map. It changes with each start_map, and when the cells become larger: then
     * all earlier parts are void.
     */
    map?: number;
    /** The number of the last change in this answer, or of the last one that the client has. */
    number?: number;
    /** The number of changed parts that did not fit into this answer. */
    left?: number;
    /**
     * The side length of a cell.
     *
     * In m. At least 0.
     */
    resolution?: number;
    tiles: mapping.Tile[];
  }
  /** Parts of the grid of the growing map. */
  interface GridInit {
    /**
     * The number of the map. It changes with each start_map, and when the cells become larger: then
     * all earlier parts are void.
     */
    map?: number;
    /** The number of the last change in this answer, or of the last one that the client has. */
    number?: number;
    /** The number of changed parts that did not fit into this answer. */
    left?: number;
    /**
     * The side length of a cell.
     *
     * In m. At least 0.
     */
    resolution?: number;
    tiles?: Iterable<mapping.TileInit>;
  }
  /** As in location.proto. */
  interface Location {
    /** In m. */
    x?: number;
    /** In m. */
    y?: number;
    /** From 0 to 1. */
    p?: number;
    /** In rad. */
    alfa?: number;
    /** In ms since 1970. */
    timeStamp?: number;
  }
  /** As in location.proto. */
  interface LocationInit {
    /** In m. */
    x?: number;
    /** In m. */
    y?: number;
    /** From 0 to 1. */
    p?: number;
    /** In rad. */
    alfa?: number;
    /** In ms since 1970. */
    timeStamp?: number | bigint;
  }
  /** A piece of a saved map. */
  interface Piece {
    saved?: number;
    file?: mapping.PieceFile;
    /**
     * The place of the data in the file, in bytes.
     *
     * In B.
     */
    offset?: number;
    data?: Uint8Array;
    /**
     * The length of the whole file.
     *
     * In B.
     */
    length?: number;
  }
  /**
   * - `ROSON`: Straight walls, as in a .roson file.
   * - `PNG`: The grid as a PNG file: grey 0 is occupied, 254 is free, and 205 is unknown.
   */
  type PieceFile = "ROSON" | "PNG";
  /** A piece of a saved map. */
  interface PieceInit {
    saved?: number;
    file?: mapping.PieceFile;
    /**
     * The place of the data in the file, in bytes.
     *
     * In B.
     */
    offset?: number;
    data?: Uint8Array;
    /**
     * The length of the whole file.
     *
     * In B.
     */
    length?: number;
  }
  /** Points on the map. Whole centimetres are short. */
  interface Points {
    /** In cm. */
    xs: number[];
    /** In cm. */
    ys: number[];
  }
  /** Points on the map. Whole centimetres are short. */
  interface PointsInit {
    /** In cm. */
    xs?: Iterable<number>;
    /** In cm. */
    ys?: Iterable<number>;
  }
  /** The state of the map. */
  interface Progress {
    state: mapping.ProgressState;
    exploration: mapping.ProgressExploration;
    /** Both in words, such as "exploring". */
    words: string;
    /** The reason why data is missing, or why the robot could not return. */
    trouble?: string;
    /**
     * The time since the start of the map, until its stop.
     *
     * In ms.
     */
    time?: number;
    /**
     * The way of the robot.
     *
     * In m. At least 0.
     */
    distance?: number;
    /**
     * The free area, every two seconds.
     *
     * In m^2. At least 0.
     */
    area?: number;
    scans?: number;
    /** The scans that make up the map. */
    keyScans?: number;
    /** How often the robot was recognized at a place where it had been. */
    loops?: number;
    /** Where the robot is. The quality is the part of the last scan that matches the map. */
    location?: mapping.Location;
    /** The number of the map, and the last number of its grid: see Grid. */
    map?: number;
    grid?: number;
    /** The points of the last scan, at most 150. */
    scan?: mapping.Points;
    /** The way of an exploring robot to its target, at most 50 points. */
    path?: mapping.Points;
    /**
     * The length of this way.
     *
     * In m. At least 0.
     */
    remaining?: number;
    target?: mapping.Target;
    /** The number of places that the exploring robot could not reach. */
    unreachable?: number;
  }
  /**
   * - `NEVER`: The robot has not explored since the start of the map.
   * - `WAITING`: It waits for the first look around.
   * - `EXPLORING`: It drives to a boundary of the known area.
   * - `RETURNING`: It has seen everything, and drives back.
   * - `FINISHED`: It stands where the exploration began.
   * - `NOT_RETURNED`: It stands, because it could not return.
   * - `STOPPED_EARLY`: A client has stopped it, or its client is gone.
   */
  type ProgressExploration = "NEVER" | "WAITING" | "EXPLORING" | "RETURNING" | "FINISHED" | "NOT_RETURNED" | "STOPPED_EARLY";
  /** The state of the map. */
  interface ProgressInit {
    state?: mapping.ProgressState;
    exploration?: mapping.ProgressExploration;
    /** Both in words, such as "exploring". */
    words?: string;
    /** The reason why data is missing, or why the robot could not return. */
    trouble?: string;
    /**
     * The time since the start of the map, until its stop.
     *
     * In ms.
     */
    time?: number | bigint;
    /**
     * The way of the robot.
     *
     * In m. At least 0.
     */
    distance?: number;
    /**
     * The free area, every two seconds.
     *
     * In m^2. At least 0.
     */
    area?: number;
    scans?: number | bigint;
    /** The scans that make up the map. */
    keyScans?: number | bigint;
    /** How often the robot was recognized at a place where it had been. */
    loops?: number | bigint;
    /** Where the robot is. The quality is the part of the last scan that matches the map. */
    location?: mapping.LocationInit;
    /** The number of the map, and the last number of its grid: see Grid. */
    map?: number;
    grid?: number;
    /** The points of the last scan, at most 150. */
    scan?: mapping.PointsInit;
    /** The way of an exploring robot to its target, at most 50 points. */
    path?: mapping.PointsInit;
    /**
     * The length of this way.
     *
     * In m. At least 0.
     */
    remaining?: number;
    target?: mapping.TargetInit;
    /** The number of places that the exploring robot could not reach. */
    unreachable?: number;
  }
  /**
   * - `NONE`: There is no map.
   * - `GROWING`: The map grows.
   * - `STOPPED`: The map grows no longer, and can be saved.
   */
  type ProgressState = "NONE" | "GROWING" | "STOPPED";
  interface SaveMap {
    /**
     * The name of files in the folder of the driver for maps, without folder and ending: NAME.pgm
     * and NAME.yaml, as for map_server of ROS, and NAME.roson. Absent: no files are written.
     */
    name?: string;
    /** Whether to replace existing files. */
    replace?: boolean;
    /** Whether to hand the map to the location driver, as its UploadMap does. */
    upload?: boolean;
    /**
     * The size of the cells of the grid.
     *
     * In mm. Absent means 25.
     */
    cell: number;
  }
  interface SaveMapInit {
    /**
     * The name of files in the folder of the driver for maps, without folder and ending: NAME.pgm
     * and NAME.yaml, as for map_server of ROS, and NAME.roson. Absent: no files are written.
     */
    name?: string;
    /** Whether to replace existing files. */
    replace?: boolean;
    /** Whether to hand the map to the location driver, as its UploadMap does. */
    upload?: boolean;
    /**
     * The size of the cells of the grid.
     *
     * In mm. Absent means 25.
     */
    cell?: number;
  }
  interface SavedMap {
    /** The number of this map for MapPiece. */
    saved: number;
    /** The written files, with their paths on the robot. */
    files: string[];
    /** Whether the location driver has the map. */
    uploaded?: boolean;
    /**
     * The free area.
     *
     * In m^2.
     */
    area?: number;
    walls?: number;
    /** What was missing while the map was made, as sentences. Empty if there was nothing. */
    missing: string[];
    /** The state when the map was saved. */
    progress?: mapping.Progress;
    /**
     * The upper left corner of the grid, and the side length of its cells.
     *
     * In m.
     */
    x?: number;
    /** In m. */
    y?: number;
    /** In m. At least 0. */
    resolution?: number;
    /**
     * What is wrong with the configured geometry of the robot, as sentences: the map is bent. See
     * Geometry of the location driver.
     */
    wrong: string[];
    /** The lines for robot.toml that correct it. */
    lines: string[];
  }
  interface SavedMapInit {
    /** The number of this map for MapPiece. */
    saved?: number;
    /** The written files, with their paths on the robot. */
    files?: Iterable<string>;
    /** Whether the location driver has the map. */
    uploaded?: boolean;
    /**
     * The free area.
     *
     * In m^2.
     */
    area?: number;
    walls?: number;
    /** What was missing while the map was made, as sentences. Empty if there was nothing. */
    missing?: Iterable<string>;
    /** The state when the map was saved. */
    progress?: mapping.ProgressInit;
    /**
     * The upper left corner of the grid, and the side length of its cells.
     *
     * In m.
     */
    x?: number;
    /** In m. */
    y?: number;
    /** In m. At least 0. */
    resolution?: number;
    /**
     * What is wrong with the configured geometry of the robot, as sentences: the map is bent. See
     * Geometry of the location driver.
     */
    wrong?: Iterable<string>;
    /** The lines for robot.toml that correct it. */
    lines?: Iterable<string>;
  }
  /** Settings of one map. Absent ones are those of the driver. */
  interface StartMap {
    /** The map stops when the client that has started it is gone. */
    endsWithClient?: boolean;
    /** The laser scanner and the driver of the wheels, such as "hokuyo:0" and "roboclaw:0". */
    laser?: string;
    wheels?: string;
    /**
     * The position of the laser: ahead of the centre between the wheels, to the left of it, and its
     * rotation to the right.
     *
     * In mm.
     */
    laserOffset?: number;
    /** In mm. */
    laserLeft?: number;
    /** In deg. */
    laserAngle?: number;
    /**
     * The effective distance between left and right wheels in turns.
     *
     * In mm.
     */
    track?: number;
    /**
     * The time of one turn of the laser.
     *
     * In ms.
     */
    scanTurn?: number;
    /**
     * The time from the end of a scan to its timestamp.
     *
     * In ms.
     */
    scanDelay?: number;
    /**
     * Longer distances in scans are ignored.
     *
     * In mm.
     */
    maxRange?: number;
    /**
     * The size of the robot, for exploring.
     *
     * In mm.
     */
    length?: number;
    /** In mm. */
    width?: number;
    /** Whether the laser is mounted upside down. */
    laserMirrored?: boolean;
  }
  /** Settings of one map. Absent ones are those of the driver. */
  interface StartMapInit {
    /** The map stops when the client that has started it is gone. */
    endsWithClient?: boolean;
    /** The laser scanner and the driver of the wheels, such as "hokuyo:0" and "roboclaw:0". */
    laser?: string;
    wheels?: string;
    /**
     * The position of the laser: ahead of the centre between the wheels, to the left of it, and its
     * rotation to the right.
     *
     * In mm.
     */
    laserOffset?: number;
    /** In mm. */
    laserLeft?: number;
    /** In deg. */
    laserAngle?: number;
    /**
     * The effective distance between left and right wheels in turns.
     *
     * In mm.
     */
    track?: number;
    /**
     * The time of one turn of the laser.
     *
     * In ms.
     */
    scanTurn?: number;
    /**
     * The time from the end of a scan to its timestamp.
     *
     * In ms.
     */
    scanDelay?: number;
    /**
     * Longer distances in scans are ignored.
     *
     * In mm.
     */
    maxRange?: number;
    /**
     * The size of the robot, for exploring.
     *
     * In mm.
     */
    length?: number;
    /** In mm. */
    width?: number;
    /** Whether the laser is mounted upside down. */
    laserMirrored?: boolean;
  }
  /** A place to which the robot drives. */
  interface Target {
    /** In m. */
    x?: number;
    /** In m. */
    y?: number;
    /** In m. */
    radius?: number;
  }
  /** A place to which the robot drives. */
  interface TargetInit {
    /** In m. */
    x?: number;
    /** In m. */
    y?: number;
    /** In m. */
    radius?: number;
  }
  /**
   * A square part of the grid with 64 times 64 cells. Its upper left corner is at x * 64 *
   * resolution and y * 64 * resolution.
   */
  interface Tile {
    x?: number;
    y?: number;
    /** A PNG file: grey 0 is occupied, 254 is free, and 205 is unknown. */
    png?: Uint8Array;
  }
  /**
   * A square part of the grid with 64 times 64 cells. Its upper left corner is at x * 64 *
   * resolution and y * 64 * resolution.
   */
  interface TileInit {
    x?: number;
    y?: number;
    /** A PNG file: grey 0 is occupied, 254 is free, and 205 is unknown. */
    png?: Uint8Array;
  }
}

/** The messages of markers. */
export namespace markers {
  /** A place in a picture. */
  interface Corner {
    /** To the right, in pixels. */
    x: number;
    /** Down, in pixels. */
    y: number;
  }
  /** A place in a picture. */
  interface CornerInit {
    /** To the right, in pixels. */
    x?: number;
    /** Down, in pixels. */
    y?: number;
  }
  interface Quaternion {
    x: number;
    y: number;
    z: number;
    w: number;
  }
  interface QuaternionInit {
    x?: number;
    y?: number;
    z?: number;
    w?: number;
  }
  /** Where the robot was when the picture was taken. */
  interface RobotPose {
    /**
     * To the right on the map, and down.
     *
     * In m.
     */
    x: number;
    /** In m. */
    y: number;
    /**
     * Clockwise, in (-pi, pi].
     *
     * In rad.
     */
    heading: number;
    /**
     * The standard deviations of the position, in both directions together, and of the heading.
     *
     * In m. At least 0.
     */
    positionSigma: number;
    /** In rad. At least 0. */
    headingSigma: number;
    /** The markers on which it rests. */
    used: number[];
  }
  /** Where the robot was when the picture was taken. */
  interface RobotPoseInit {
    /**
     * To the right on the map, and down.
     *
     * In m.
     */
    x?: number;
    /** In m. */
    y?: number;
    /**
     * Clockwise, in (-pi, pi].
     *
     * In rad.
     */
    heading?: number;
    /**
     * The standard deviations of the position, in both directions together, and of the heading.
     *
     * In m. At least 0.
     */
    positionSigma?: number;
    /** In rad. At least 0. */
    headingSigma?: number;
    /** The markers on which it rests. */
    used?: Iterable<number>;
  }
  /** A marker in a picture. */
  interface Sighting {
    id: number;
    /** The four corners, clockwise from the upper left one of the marker. */
    corners: markers.Corner[];
    /**
     * Where its centre is, relative to the camera. Absent if the corners tell no pose.
     *
     * In m.
     */
    x?: number;
    /** In m. */
    y?: number;
    /** In m. */
    z?: number;
    /**
     * How it is turned: the quaternion from its own axes, x to its right as one sees it, y up and z out of
     * it, to those of the camera.
     */
    rotation?: markers.Quaternion;
    /**
     * The distance from the camera to its centre.
     *
     * In m. At least 0.
     */
    distance?: number;
    /**
     * How many pixels the corners are from where they should be by this pose: the root of the mean
     * square.
     *
     * At least 0.
     */
    error?: number;
    /**
     * Whether the corners fit another rotation as well. From afar, that is usual.
     *
     * Absent means false.
     */
    ambiguous: boolean;
    /**
     * Whether it is in the file of known markers.
     *
     * Absent means false.
     */
    known: boolean;
  }
  /** A marker in a picture. */
  interface SightingInit {
    id?: number;
    /** The four corners, clockwise from the upper left one of the marker. */
    corners?: Iterable<markers.CornerInit>;
    /**
     * Where its centre is, relative to the camera. Absent if the corners tell no pose.
     *
     * In m.
     */
    x?: number;
    /** In m. */
    y?: number;
    /** In m. */
    z?: number;
    /**
     * How it is turned: the quaternion from its own axes, x to its right as one sees it, y up and z out of
     * it, to those of the camera.
     */
    rotation?: markers.QuaternionInit;
    /**
     * The distance from the camera to its centre.
     *
     * In m. At least 0.
     */
    distance?: number;
    /**
     * How many pixels the corners are from where they should be by this pose: the root of the mean
     * square.
     *
     * At least 0.
     */
    error?: number;
    /**
     * Whether the corners fit another rotation as well. From afar, that is usual.
     *
     * Absent means false.
     */
    ambiguous?: boolean;
    /**
     * Whether it is in the file of known markers.
     *
     * Absent means false.
     */
    known?: boolean;
  }
  /** The markers in one picture. */
  interface Sightings {
    /**
     * When the camera took the picture.
     *
     * In us since 1970.
     */
    captured: number;
    /** The number of the picture, as the camera counts them. */
    sequence: number;
    /** The size of the picture in which the corners are. */
    width: number;
    height: number;
    /** The markers, by their numbers. None if none is in view. */
    found: markers.Sighting[];
    /** Where the robot is. Absent if the markers do not tell it. */
    robot?: markers.RobotPose;
    /** Why there is no pose of the robot, as a sentence. */
    noPose?: string;
    /** Markers that stand elsewhere than in the file of known markers, as far as pictures have shown. */
    moved: number[];
  }
  /** The markers in one picture. */
  interface SightingsInit {
    /**
     * When the camera took the picture.
     *
     * In us since 1970.
     */
    captured?: number | bigint;
    /** The number of the picture, as the camera counts them. */
    sequence?: number;
    /** The size of the picture in which the corners are. */
    width?: number;
    height?: number;
    /** The markers, by their numbers. None if none is in view. */
    found?: Iterable<markers.SightingInit>;
    /** Where the robot is. Absent if the markers do not tell it. */
    robot?: markers.RobotPoseInit;
    /** Why there is no pose of the robot, as a sentence. */
    noPose?: string;
    /** Markers that stand elsewhere than in the file of known markers, as far as pictures have shown. */
    moved?: Iterable<number>;
  }
}

/** The messages of mediator. */
export namespace mediator {
  type ChangeDriverAction = "START" | "STOP" | "RESTART";
  interface ChangeDriverInit {
    device: mediator.DeviceInit;
    action: mediator.ChangeDriverAction;
  }
  interface ClientInfo {
    id: number;
    address: string;
    /** Whether it has contacted the mediator itself. */
    announced?: boolean;
    /**
     * Milliseconds since it was last heard.
     *
     * In ms.
     */
    silentMs?: number;
    framesReceived?: number;
    framesSent?: number;
    /** Devices that it uses. */
    devices: mediator.Device[];
    /** Whether its address is verified. */
    proved?: boolean;
  }
  interface ClientList {
    clients: mediator.ClientInfo[];
    total: number;
  }
  interface Counter {
    name: string;
    value: number;
  }
  interface CounterHelp {
    name: string;
    /** Its meaning, as a sentence. */
    help: string;
  }
  interface CounterList {
    counters: mediator.CounterHelp[];
  }
  /** The description of a device, for programs that do not have its `.proto` file. */
  interface Description {
    /**
     * A serialized google.protobuf.FileDescriptorSet: the file with the `service` of the device, and
     * the files that it imports, except drivermsg.proto, interface.proto and those of google.protobuf.
     * At most 16000 bytes. The mediator does not decode it.
     */
    files: Uint8Array;
  }
  /** The description of a device, for programs that do not have its `.proto` file. */
  interface DescriptionInit {
    /**
     * A serialized google.protobuf.FileDescriptorSet: the file with the `service` of the device, and
     * the files that it imports, except drivermsg.proto, interface.proto and those of google.protobuf.
     * At most 16000 bytes. The mediator does not decode it.
     */
    files: Uint8Array;
  }
  interface Device {
    type: number;
    id: number;
  }
  interface DeviceInit {
    type: number;
    id: number;
  }
  /** Who moves a device. */
  interface DeviceMotion {
    device: mediator.Device;
    /** The holder of its lease, in words. */
    holder?: string;
    /** Who halted it, in words. */
    haltedBy?: string;
    /** The number of clients that wait for the lease. */
    waiting?: number;
  }
  interface Driver {
    /** The devices that this process serves. */
    devices: mediator.Device[];
    state: mediator.DriverState;
    pid?: number;
    /**
     * Milliseconds in the current state.
     *
     * In ms.
     */
    stateMs?: number;
    /** The number of restarts since the mediator started. */
    restarts?: number;
    /** The last exit of the process, as text. */
    lastExit?: string;
    /**
     * Milliseconds until the next start (state BACKOFF).
     *
     * In ms.
     */
    nextStartMs?: number;
    /** The reason why it is not up (states BACKOFF and FAILED). */
    reason?: string;
    /** What to check, as text. */
    hint?: string;
    counters?: mediator.DriverCounters;
    /** Only in the answer to describe_driver: */
    command: string[];
    /** The last lines that it wrote to stderr. */
    lastWords: string[];
    restartPolicy?: string;
    /** Whether it has ever answered a PING, and so is expected to answer. */
    answersPing?: boolean;
    /** Devices that do not work although the driver does, at most 10. */
    troubles: mediator.Trouble[];
    /** What to check about its last failure, as text, while it runs again. */
    lastExitHint?: string;
    /** Devices with a lease or a halt, at most 10. */
    motions: mediator.DeviceMotion[];
  }
  interface DriverCounters {
    /** Frames and bytes that were queued for its stdin. */
    framesIn?: number;
    /** In B. */
    bytesIn?: number;
    /** Frames and bytes that it wrote to stdout. */
    framesOut?: number;
    /** In B. */
    bytesOut?: number;
    /**
     * Frames for it that were dropped because its queue was full, and frames that
     * were not queued because it was not running.
     */
    droppedFull?: number;
    droppedDown?: number;
    /** Frames that are waiting now. */
    queued?: number;
    stderrLines?: number;
    /** Lines of stderr not logged because there were too many. */
    stderrDropped?: number;
    /**
     * At any time, frames_in is the sum of dropped_full, queued and these:
     * frames written to its pipe, ...
     */
    framesWritten?: number;
    /** ... frames that waited when their client died ... */
    droppedClientGone?: number;
    /** ... and frames that waited when it ended. */
    droppedEnded?: number;
    /**
     * Frames from its stdout, counted in frames_out, that were not forwarded because
     * it was being stopped.
     */
    droppedStopping?: number;
  }
  interface DriverList {
    drivers: mediator.Driver[];
    /** The total number of entries. */
    total: number;
  }
  /**
   * - `DOWN`: Not running, and not wanted.
   * - `STARTING`: The process runs, but has not shown yet that it works.
   * - `STOPPING`: Being stopped.
   * - `BACKOFF`: Ended, and will be started again after a wait.
   * - `FAILED`: Given up; `amber start` starts it again.
   */
  type DriverState = "DOWN" | "STARTING" | "UP" | "STOPPING" | "BACKOFF" | "FAILED";
  interface Event {
    kind: mediator.EventKind;
    device?: mediator.Device;
    clientId?: number;
    text?: string;
    /**
     * Milliseconds since the Unix epoch.
     *
     * In ms since 1970.
     */
    timeMs?: number;
    /** Counted per mediator, so that a listener can detect gaps. */
    number?: number;
  }
  /**
   * - `DEVICE_UP`: A driver works: `device` is available.
   * - `DEVICE_DOWN`: A driver is gone: `device` is unavailable.
   * - `DEVICE_FAILED`: A driver was given up.
   * - `CLIENT_GONE`: A client left or was lost.
   * - `DEVICE_TROUBLE`: A driver reports that `device` does not work; the text contains the reason.
   * - `DEVICE_RECOVERED`: A driver reports that `device` works again.
   * - `DEVICE_LEASE`: The lease of `device` has a new holder, or none; the text says who.
   * - `DEVICE_HALTED`: `device` was halted: it refuses motion. The text says by whom.
   * - `DEVICE_HALT_RELEASED`: The halt of `device` was released.
   * - `DEVICE_MOTION_REFUSED`: `device` has refused motion of a client; the text says why.
   * - `DEVICE_MOTION_STOPPED`: The motion of `device` was stopped; the text says why.
   */
  type EventKind = "DEVICE_UP" | "DEVICE_DOWN" | "DEVICE_FAILED" | "CLIENT_GONE" | "CONFIGURATION_RELOADED" | "DEVICE_TROUBLE" | "DEVICE_RECOVERED" | "DEVICE_LEASE" | "DEVICE_HALTED" | "DEVICE_HALT_RELEASED" | "DEVICE_MOTION_REFUSED" | "DEVICE_MOTION_STOPPED";
  interface Feed {
    /** The Unix stream socket to read from. It takes one connection. */
    path: string;
  }
  /**
   * A driver's report about a device that it serves. Needed only when the state
   * changes, but repeating it does no harm. Forgotten when the driver ends.
   */
  interface HealthInit {
    state: mediator.HealthState;
    /**
     * The problem, as a sentence, such as "/dev/ttyACM0 does not exist";
     * the mediator keeps 200 bytes of it.
     */
    text?: string;
  }
  type HealthState = "OK" | "TROUBLE";
  interface ListClientsInit {
    skip?: number;
  }
  /**
   * Long lists come in pages: repeat the request with `skip` increased by the
   * number of entries received.
   */
  interface ListDriversInit {
    skip?: number;
  }
  interface ListProcessesInit {
    skip?: number;
  }
  interface LogLine {
    /** Counted over the lines of one driver if the request names a device, else over all lines. */
    number: number;
    /** The first device that the driver serves. */
    device: mediator.Device;
    /** In ms since 1970. */
    timeMs: number;
    source: mediator.LogLineSource;
    /** Absent if the line of the driver does not begin with a level. */
    level?: mediator.LogLineLevel;
    /** The line as the driver wrote it, with the level. */
    text: string;
    /**
     * The number of bytes of the text that the mediator has cut off.
     *
     * In B.
     */
    cutBytes?: number;
  }
  type LogLineLevel = "ERROR" | "WARN" | "INFO";
  /**
   * - `DRIVER`: A line that the driver wrote to stderr.
   * - `MEDIATOR`: A message of the mediator about the driver.
   */
  type LogLineSource = "DRIVER" | "MEDIATOR";
  interface LogPage {
    /** The oldest first. */
    lines: mediator.LogLine[];
    /** Whether further lines follow these. */
    more: boolean;
    /**
     * The number of the newest requested line, of one driver or of all; 0 if there were none. The
     * mediator forgets old lines: a gap in the numbers shows how many.
     */
    newest: number;
    /**
     * The start time of this mediator. Its numbers begin with 1.
     *
     * In ms since 1970.
     */
    startedMs: number;
  }
  interface OpenFeedInit {
    /** The devices to record; all if there are none. */
    devices?: Iterable<mediator.DeviceInit>;
  }
  interface ProcessList {
    processes: mediator.ProcessUsage[];
    /** The total number of entries. */
    total: number;
  }
  /** A running process. Its child processes are included after they have ended. */
  interface ProcessUsage {
    pid: number;
    /** The first device that the driver serves; absent for the mediator itself. */
    device?: mediator.Device;
    /**
     * CPU time of all its threads since its start.
     *
     * In ms.
     */
    cpuMs?: number;
    /**
     * Resident memory.
     *
     * In B.
     */
    memoryBytes?: number;
  }
  /**
   * A log comes in pages: while an answer has `more`, request again with the number of the last line
   * as `after`. To follow a log, repeat this.
   */
  interface ReadLogInit {
    /** Only lines about the driver that serves this device, instead of all lines. */
    device?: mediator.DeviceInit;
    /** Only lines with a number above this one. */
    after?: number | bigint;
    /**
     * Only lines that are at most this many milliseconds old.
     *
     * In ms.
     */
    sinceMs?: number | bigint;
    /** Only the newest of these lines, at most this many. At most 1000 lines. */
    last?: number;
  }
  interface SetLogLevelInit {
    filter: string;
  }
  interface Statistics {
    version?: string;
    /** In ms. */
    uptimeMs?: number;
    listening: string[];
    clients?: number;
    drivers?: number;
    /** Named counters: `counters` of forwarded messages, `dropped` of drops by reason. */
    counters: mediator.Counter[];
    dropped: mediator.Counter[];
    /**
     * The client id of the sender of the request. If it changes, the mediator and
     * all drivers have forgotten the client in between.
     */
    clientId?: number;
    /** The most clients that the mediator knows at once: of all hosts, and of one. */
    mostClients?: number;
    mostClientsPerHost?: number;
    /**
     * The host with the most clients: "this machine", an IPv4 address, or an IPv6 network of 64 bits;
     * and how many clients it has.
     */
    fullestHost?: string;
    fullestHostClients?: number;
  }
  /** It ends when the client leaves, or by a request with `off`. */
  interface TraceInit {
    device: mediator.DeviceInit;
    off?: boolean;
  }
  /**
   * A frame between the mediator and a driver. The mediator drops frames instead of
   * waiting; `lost` contains their number.
   */
  interface Traced {
    /** The requested device. */
    device: mediator.Device;
    direction: mediator.TracedDirection;
    /** As on the driver's pipe, without the length. */
    header: Uint8Array;
    /** Long messages are cut; then `message_bytes` is the whole length. */
    message: Uint8Array;
    /** In B. */
    messageBytes?: number;
    /**
     * Microseconds since the Unix epoch.
     *
     * In us since 1970.
     */
    timeUs?: number;
    /** The number of frames that were not sent to this client since the trace began. */
    lost?: number;
  }
  type TracedDirection = "TO_DRIVER" | "FROM_DRIVER";
  interface Trouble {
    device: mediator.Device;
    text: string;
    /**
     * Milliseconds since the device last worked.
     *
     * In ms.
     */
    sinceMs: number;
  }
}

/** The messages of motion. */
export namespace motion {
  interface Halt {
    /** Who halted the device, in words. */
    by?: string;
    /**
     * The time since then; absent if the driver was restarted in between.
     *
     * In ms.
     */
    sinceMs?: number;
  }
  /** A client that holds a lease or waits for it. */
  interface LeaseClient {
    clientId: number;
    /** In words, such as "amber goto"; empty if the client said nothing. */
    name?: string;
    /**
     * The time since it took the lease, or since it began to wait.
     *
     * In ms.
     */
    sinceMs?: number;
    /**
     * The time until the lease ends unless it is kept.
     *
     * In ms.
     */
    leftMs?: number;
    /** The client for which it moves the device, if it is a driver. */
    forClient?: number;
  }
  interface MotionState {
    /** Absent: nobody holds the lease, and the newest command counts. */
    holder?: motion.LeaseClient;
    /** Those that wait for the lease, the next one first. */
    waiting: motion.LeaseClient[];
    /** Absent: the device may move. */
    halt?: motion.Halt;
    /** Whether the client that receives this answer holds the lease. */
    yours?: boolean;
    /** The reason why the request was not carried out, as a sentence; absent if it was. */
    refused?: string;
    /** Requests that were refused because another client holds the lease, since the start. */
    refusedForHolder?: number;
    /** Requests that were refused because the device is halted. */
    refusedForHalt?: number;
    /** Requests that were no longer valid when the driver could handle them. */
    tooLate?: number;
    /** How often the device was stopped because the last command was no longer valid. */
    expired?: number;
  }
}

/** The messages of ninedof. */
export namespace ninedof {
  /** Valid for a robot at rest or at constant speed: acceleration looks like a tilt. */
  interface Attitude {
    /**
     * Clockwise from magnetic north, in [0, 360).
     *
     * In deg. From 0 to 360.
     */
    headingDeg?: number;
    /**
     * Positive when the front is up.
     *
     * In deg. From -90 to 90.
     */
    pitchDeg?: number;
    /**
     * Positive when the right side is down.
     *
     * In deg. From -180 to 180.
     */
    rollDeg?: number;
    /**
     * Whether the magnetometer has been calibrated on this robot. If not, or if absent, the heading is
     * wrong by tens of degrees; pitch and roll are not affected.
     *
     * Absent means false.
     */
    headingCalibrated: boolean;
  }
  /** Valid for a robot at rest or at constant speed: acceleration looks like a tilt. */
  interface AttitudeInit {
    /**
     * Clockwise from magnetic north, in [0, 360).
     *
     * In deg. From 0 to 360.
     */
    headingDeg?: number;
    /**
     * Positive when the front is up.
     *
     * In deg. From -90 to 90.
     */
    pitchDeg?: number;
    /**
     * Positive when the right side is down.
     *
     * In deg. From -180 to 180.
     */
    rollDeg?: number;
    /**
     * Whether the magnetometer has been calibrated on this robot. If not, or if absent, the heading is
     * wrong by tens of degrees; pitch and roll are not affected.
     *
     * Absent means false.
     */
    headingCalibrated?: boolean;
  }
  /** One value per axis of the chip. */
  interface AxisData {
    xAxis: number;
    yAxis: number;
    zAxis: number;
  }
  /** One value per axis of the chip. */
  interface AxisDataInit {
    xAxis: number;
    yAxis: number;
    zAxis: number;
  }
  interface DataRequest {
    /** Absent means false. */
    accel: boolean;
    /** Absent means false. */
    gyro: boolean;
    /** Absent means false. */
    magnet: boolean;
    /**
     * Also send the fields that only new clients know: gyroMilli, attitude.
     *
     * Absent means false.
     */
    extended: boolean;
  }
  interface DataRequestInit {
    /** Absent means false. */
    accel?: boolean;
    /** Absent means false. */
    gyro?: boolean;
    /** Absent means false. */
    magnet?: boolean;
    /**
     * Also send the fields that only new clients know: gyroMilli, attitude.
     *
     * Absent means false.
     */
    extended?: boolean;
  }
  interface Finding {
    /** The subject: accel, gyro, magnet, file. */
    about?: string;
    good?: boolean;
    /** A text for people. */
    text?: string;
  }
  interface FindingInit {
    /** The subject: accel, gyro, magnet, file. */
    about?: string;
    good?: boolean;
    /** A text for people. */
    text?: string;
  }
  interface SensorData {
    /**
     * Acceleration in thousandths of g.
     *
     * In mgn. From -100000 to 100000.
     */
    accel?: ninedof.AxisData;
    /**
     * Turn rate in degrees per second.
     *
     * In deg/s. From -36000 to 36000.
     */
    gyro?: ninedof.AxisData;
    /**
     * Magnetic field in thousandths of gauss.
     *
     * In mG. From -100000 to 100000.
     */
    magnet?: ninedof.AxisData;
    /**
     * Milliseconds since the driver started; the original never sets it.
     *
     * In ms.
     */
    timestamp?: number;
    /**
     * If requested by `extended`: turn rate in thousandths of a degree per second.
     *
     * In mdeg/s. From -36000000 to 36000000.
     */
    gyroMilli?: ninedof.AxisData;
    /** If requested by `extended` with accel and magnet. */
    attitude?: ninedof.Attitude;
  }
  interface SensorDataInit {
    /**
     * Acceleration in thousandths of g.
     *
     * In mgn. From -100000 to 100000.
     */
    accel?: ninedof.AxisDataInit;
    /**
     * Turn rate in degrees per second.
     *
     * In deg/s. From -36000 to 36000.
     */
    gyro?: ninedof.AxisDataInit;
    /**
     * Magnetic field in thousandths of gauss.
     *
     * In mG. From -100000 to 100000.
     */
    magnet?: ninedof.AxisDataInit;
    /**
     * Milliseconds since the driver started; the original never sets it.
     *
     * In ms.
     */
    timestamp?: number;
    /**
     * If requested by `extended`: turn rate in thousandths of a degree per second.
     *
     * In mdeg/s. From -36000000 to 36000000.
     */
    gyroMilli?: ninedof.AxisDataInit;
    /** If requested by `extended` with accel and magnet. */
    attitude?: ninedof.AttitudeInit;
  }
  interface ServiceReport {
    findings: ninedof.Finding[];
  }
  interface ServiceReportInit {
    findings?: Iterable<ninedof.FindingInit>;
  }
  interface ServiceRequest {
    service?: ninedof.ServiceRequestService;
    /**
     * The time limit. If absent, the driver decides.
     *
     * In ms. At most 120000.
     */
    milliseconds?: number;
  }
  interface ServiceRequestInit {
    service?: ninedof.ServiceRequestService;
    /**
     * The time limit. If absent, the driver decides.
     *
     * In ms. At most 120000.
     */
    milliseconds?: number;
  }
  /**
   * - `SELF_TEST`: Tests whether the sensors respond with plausible values. The robot stands still.
   * - `CALIBRATE_GYRO`: Measures the bias of the gyroscope. The robot stands still.
   * - `CALIBRATE_MAGNET`: Measures the magnetic field of the robot itself. The robot makes a full turn.
   */
  type ServiceRequestService = "SELF_TEST" | "CALIBRATE_GYRO" | "CALIBRATE_MAGNET";
  interface SubscribeAction {
    /**
     * In spite of its name a period in milliseconds; 0 or absent ends the subscription.
     *
     * In ms.
     */
    freq?: number;
    /** Absent means false. */
    accel: boolean;
    /** Absent means false. */
    gyro: boolean;
    /** Absent means false. */
    magnet: boolean;
    /**
     * As in DataRequest.
     *
     * Absent means false.
     */
    extended: boolean;
  }
  interface SubscribeActionInit {
    /**
     * In spite of its name a period in milliseconds; 0 or absent ends the subscription.
     *
     * In ms.
     */
    freq?: number;
    /** Absent means false. */
    accel?: boolean;
    /** Absent means false. */
    gyro?: boolean;
    /** Absent means false. */
    magnet?: boolean;
    /**
     * As in DataRequest.
     *
     * Absent means false.
     */
    extended?: boolean;
  }
}

/** The messages of order. */
export namespace order {
  /** An order with its progress, and with its end if it has ended. */
  interface Order {
    /**
     * The number that its client chose, or one below 2^32 that the driver chose for a client that
     * knows no orders.
     */
    id: number;
    state: order.OrderState;
    /** The client that gave it. */
    clientId?: number;
    /** This client in words, such as "amber goto"; absent if it said nothing. */
    name?: string;
    /** The number of its targets or points. */
    targets?: number;
    /** The number of those that the robot has visited. */
    visited?: number;
    /**
     * The number of those that it gave up. While the order runs, the next target has the number
     * visited + skipped, counted from 0.
     */
    skipped?: number;
    /**
     * The length of the rest of the path: to the next target, or to the end of a trajectory.
     *
     * In m. At least 0.
     */
    remaining?: number;
    /** Why it ended, as a sentence; absent while it runs and if the robot has arrived. */
    reason?: string;
    /** The client that ended it, if it was one; with LEASE_LOST, the client that has taken the lease. */
    endedBy?: number;
  }
  /** An order with its progress, and with its end if it has ended. */
  interface OrderInit {
    /**
     * The number that its client chose, or one below 2^32 that the driver chose for a client that
     * knows no orders.
     */
    id?: number | bigint;
    state?: order.OrderState;
    /** The client that gave it. */
    clientId?: number;
    /** This client in words, such as "amber goto"; absent if it said nothing. */
    name?: string;
    /** The number of its targets or points. */
    targets?: number;
    /** The number of those that the robot has visited. */
    visited?: number;
    /**
     * The number of those that it gave up. While the order runs, the next target has the number
     * visited + skipped, counted from 0.
     */
    skipped?: number;
    /**
     * The length of the rest of the path: to the next target, or to the end of a trajectory.
     *
     * In m. At least 0.
     */
    remaining?: number;
    /** Why it ended, as a sentence; absent while it runs and if the robot has arrived. */
    reason?: string;
    /** The client that ended it, if it was one; with LEASE_LOST, the client that has taken the lease. */
    endedBy?: number;
  }
  /**
   * - `UNKNOWN`: The driver does not know the order: it was never given, or is older than the last 16 ended
   *   ones, or the driver was restarted.
   * - `RUNNING`: The robot carries it out.
   * - `ARRIVED`: All its targets were visited.
   * - `SKIPPED`: It is over, and at least one target was skipped.
   * - `REPLACED`: A newer order has replaced it.
   * - `STOPPED`: A client has stopped the robot.
   * - `CANCELLED`: A client has cancelled this order.
   * - `REFUSED`: The device did not accept it.
   * - `CLIENT_LOST`: The client that gave it is gone.
   * - `HALTED`: The device was halted.
   * - `LEASE_LOST`: The client that gave it has lost the lease of the device, or another client has taken it.
   */
  type OrderState = "UNKNOWN" | "RUNNING" | "ARRIVED" | "SKIPPED" | "REPLACED" | "STOPPED" | "CANCELLED" | "REFUSED" | "CLIENT_LOST" | "HALTED" | "LEASE_LOST";
  interface Orders {
    /** The newest first: the one that runs, if any, and at most 16 that have ended. */
    orders: order.Order[];
  }
  interface OrdersInit {
    /** The newest first: the one that runs, if any, and at most 16 that have ended. */
    orders?: Iterable<order.OrderInit>;
  }
}

/** The messages of pidFollowTrajectory. */
export namespace pidFollowTrajectory {
  interface Configuration {
    /**
     * Metres.
     *
     * In m. At least 0.
     */
    maxLookahead?: number;
    weightAngular?: number;
    /** The spelling is intentional: it is that of the original schema. */
    weighLinear?: number;
    /**
     * m/s^2.
     *
     * In m/s^2. At least 0.
     */
    maxCentricAcceleration?: number;
    /**
     * m/s.
     *
     * In m/s. At least 0.
     */
    maxLinearVelocity?: number;
    /**
     * 1/m per unit of error.
     *
     * In 1/m.
     */
    scale?: number;
    /**
     * Milliseconds.
     *
     * In ms. At least 0.
     */
    loopSleepTime?: number;
  }
  interface ConfigurationInit {
    /**
     * Metres.
     *
     * In m. At least 0.
     */
    maxLookahead?: number;
    weightAngular?: number;
    /** The spelling is intentional: it is that of the original schema. */
    weighLinear?: number;
    /**
     * m/s^2.
     *
     * In m/s^2. At least 0.
     */
    maxCentricAcceleration?: number;
    /**
     * m/s.
     *
     * In m/s. At least 0.
     */
    maxLinearVelocity?: number;
    /**
     * 1/m per unit of error.
     *
     * In 1/m.
     */
    scale?: number;
    /**
     * Milliseconds.
     *
     * In ms. At least 0.
     */
    loopSleepTime?: number;
  }
  interface Follow {
    /** The id of the order. */
    id: number;
    targets: pidFollowTrajectory.Targets;
    configuration: pidFollowTrajectory.Configuration;
    /** The client in words, such as "my program". At most 100 bytes. */
    name?: string;
  }
  interface FollowInit {
    /** The id of the order. */
    id: number | bigint;
    targets: pidFollowTrajectory.TargetsInit;
    configuration: pidFollowTrajectory.ConfigurationInit;
    /** The client in words, such as "my program". At most 100 bytes. */
    name?: string;
  }
  /** The activity of the robot. */
  interface Progress {
    state?: pidFollowTrajectory.ProgressState;
    /** The number of points that the robot has passed. */
    visited?: number;
    /**
     * The distance of the robot to the left of the trajectory.
     *
     * In m.
     */
    left?: number;
    /** The reason for the current speed, as text, such as "an obstacle is in the way". */
    reason?: string;
  }
  /** The activity of the robot. */
  interface ProgressInit {
    state?: pidFollowTrajectory.ProgressState;
    /** The number of points that the robot has passed. */
    visited?: number;
    /**
     * The distance of the robot to the left of the trajectory.
     *
     * In m.
     */
    left?: number;
    /** The reason for the current speed, as text, such as "an obstacle is in the way". */
    reason?: string;
  }
  /**
   * - `EMPTY`: There is no trajectory.
   * - `READY`: The trajectory waits for its start.
   * - `RUNNING`: The robot follows it.
   * - `WAITING_FOR_POSE`: The robot waits for a pose.
   * - `FINISHED`: The robot is at the last point.
   */
  type ProgressState = "EMPTY" | "READY" | "RUNNING" | "WAITING_FOR_POSE" | "FINISHED";
  /**
   * Metres in the map's frame. Here latitude is x and longitude is y (in
   * DriveToPoint it is the other way round).
   */
  interface Targets {
    /** In m. */
    longitudes: number[];
    /** In m. */
    latitudes: number[];
    /**
     * Milliseconds from the start.
     *
     * In ms. At least 0.
     */
    times: number[];
  }
  /**
   * Metres in the map's frame. Here latitude is x and longitude is y (in
   * DriveToPoint it is the other way round).
   */
  interface TargetsInit {
    /** In m. */
    longitudes?: Iterable<number>;
    /** In m. */
    latitudes?: Iterable<number>;
    /**
     * Milliseconds from the start.
     *
     * In ms. At least 0.
     */
    times?: Iterable<number | bigint>;
  }
}

/** The messages of roboclaw. */
export namespace roboclaw {
  /** Wheel speeds in mm/s, positive = forward; an absent one is 0. */
  interface MotorsSpeed {
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    frontLeftSpeed: number;
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    frontRightSpeed: number;
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    rearLeftSpeed: number;
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    rearRightSpeed: number;
  }
  /** Wheel speeds in mm/s, positive = forward; an absent one is 0. */
  interface MotorsSpeedInit {
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    frontLeftSpeed?: number;
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    frontRightSpeed?: number;
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    rearLeftSpeed?: number;
    /** In mm/s. From -10000 to 10000. Absent means 0. */
    rearRightSpeed?: number;
  }
}

/** The messages of robot. */
export namespace robot {
  /** The covariance of a pose: the mean products of its errors. */
  interface Covariance {
    /** In m^2. */
    xx?: number;
    /** In m^2. */
    xy?: number;
    /** In m^2. */
    yy?: number;
    /** In m*rad. */
    xHeading?: number;
    /** In m*rad. */
    yHeading?: number;
    /** In rad^2. */
    headingHeading?: number;
  }
  /** The covariance of a pose: the mean products of its errors. */
  interface CovarianceInit {
    /** In m^2. */
    xx?: number;
    /** In m^2. */
    xy?: number;
    /** In m^2. */
    yy?: number;
    /** In m*rad. */
    xHeading?: number;
    /** In m*rad. */
    yHeading?: number;
    /** In rad^2. */
    headingHeading?: number;
  }
  /**
   * The pose and the motion of the robot by its wheels alone. The pose is zero when the driver of this
   * device starts. It continues when clients come and go, and it drifts: only differences over a short
   * time are certain.
   */
  interface Odometry {
    /**
     * The pose: x ahead and y to the left of the start.
     *
     * In m.
     */
    x?: number;
    /** In m. */
    y?: number;
    /**
     * In (-pi, pi].
     *
     * In rad.
     */
    heading?: number;
    /**
     * The speed ahead, and the turn rate.
     *
     * In m/s.
     */
    forward?: number;
    /** In rad/s. */
    turn?: number;
    /**
     * The time of the measurement.
     *
     * In us since 1970.
     */
    time?: number;
    /** The covariance of the pose. It grows with the way. */
    covariance?: robot.Covariance;
    /**
     * The variances of speed and turn rate.
     *
     * In m^2/s^2. At least 0.
     */
    forwardVariance?: number;
    /** In rad^2/s^2. At least 0. */
    turnVariance?: number;
  }
  /**
   * The pose and the motion of the robot by its wheels alone. The pose is zero when the driver of this
   * device starts. It continues when clients come and go, and it drifts: only differences over a short
   * time are certain.
   */
  interface OdometryInit {
    /**
     * The pose: x ahead and y to the left of the start.
     *
     * In m.
     */
    x?: number;
    /** In m. */
    y?: number;
    /**
     * In (-pi, pi].
     *
     * In rad.
     */
    heading?: number;
    /**
     * The speed ahead, and the turn rate.
     *
     * In m/s.
     */
    forward?: number;
    /** In rad/s. */
    turn?: number;
    /**
     * The time of the measurement.
     *
     * In us since 1970.
     */
    time?: number | bigint;
    /** The covariance of the pose. It grows with the way. */
    covariance?: robot.CovarianceInit;
    /**
     * The variances of speed and turn rate.
     *
     * In m^2/s^2. At least 0.
     */
    forwardVariance?: number;
    /** In rad^2/s^2. At least 0. */
    turnVariance?: number;
  }
  interface OdometryRequest {
    /**
     * 0 or absent ends the subscription.
     *
     * In ms.
     */
    period?: number;
  }
  interface OdometryRequestInit {
    /**
     * 0 or absent ends the subscription.
     *
     * In ms.
     */
    period?: number;
  }
  /** The place of a device on the robot. */
  interface Place {
    /** In m. */
    x?: number;
    /** In m. */
    y?: number;
    /**
     * The height above the floor.
     *
     * In m.
     */
    z?: number;
    /**
     * The direction of its front: 0 is that of the robot.
     *
     * In rad.
     */
    yaw?: number;
    /**
     * How far its front points downwards.
     *
     * In rad.
     */
    pitch?: number;
    /** Whether it is mounted upside down: turned by pi around the direction of its front. */
    upsideDown?: boolean;
  }
  /** The place of a device on the robot. */
  interface PlaceInit {
    /** In m. */
    x?: number;
    /** In m. */
    y?: number;
    /**
     * The height above the floor.
     *
     * In m.
     */
    z?: number;
    /**
     * The direction of its front: 0 is that of the robot.
     *
     * In rad.
     */
    yaw?: number;
    /**
     * How far its front points downwards.
     *
     * In rad.
     */
    pitch?: number;
    /** Whether it is mounted upside down: turned by pi around the direction of its front. */
    upsideDown?: boolean;
  }
  /** A device with a role. */
  interface Role {
    /** "wheels", "laser", "imu", "bumper", "camera" or "location". More may follow. */
    role: string;
    type: number;
    id: number;
  }
  /** A device with a role. */
  interface RoleInit {
    /** "wheels", "laser", "imu", "bumper", "camera" or "location". More may follow. */
    role: string;
    type: number;
    id: number;
  }
  /**
   * A sector of the laser, from its front counter-clockwise as its scans show it: for a laser that is
   * upside down, this is clockwise on the robot.
   */
  interface Sector {
    /**
     * Where it begins, and where it ends, counter-clockwise of the beginning. It may cross the rear.
     *
     * In rad.
     */
    begin: number;
    /** In rad. */
    end: number;
  }
  /**
   * A sector of the laser, from its front counter-clockwise as its scans show it: for a laser that is
   * upside down, this is clockwise on the robot.
   */
  interface SectorInit {
    /**
     * Where it begins, and where it ends, counter-clockwise of the beginning. It may cross the rear.
     *
     * In rad.
     */
    begin: number;
    /** In rad. */
    end: number;
  }
  /** The shape of the robot. What is absent is unknown. */
  interface Shape {
    /** The name of the robot, for people. */
    name?: string;
    /**
     * The outline: a rectangle around the origin.
     *
     * In m. At least 0.
     */
    length?: number;
    /** In m. At least 0. */
    width?: number;
    /** In m. At least 0. */
    height?: number;
    /**
     * The effective distance between left and right wheels: that at which turns come out right. If the
     * wheels skid, it is larger than the real one.
     *
     * In m. At least 0.
     */
    track?: number;
    /**
     * The maximum speed of a wheel.
     *
     * In m/s. At least 0.
     */
    maxWheelSpeed?: number;
    /** In m. At least 0. */
    wheelRadius?: number;
    /**
     * The real distance between left and right wheels, from middle to middle.
     *
     * In m. At least 0.
     */
    wheelDistance?: number;
    /**
     * The distance between front and rear axle.
     *
     * In m. At least 0.
     */
    wheelBase?: number;
    /** The laser scanner. Without its place, a scan cannot be drawn around the robot. */
    laser?: robot.Place;
    /**
     * The time of one turn of the laser.
     *
     * In s. At least 0.
     */
    scanTurn?: number;
    /** The camera. */
    camera?: robot.Place;
    /** The motion sensors. */
    imu?: robot.Place;
    /** Whether the robot drives backwards only into areas that the laser has seen or where it has been. */
    looksBeforeReversing?: boolean;
    /** Which device has which role. */
    roles: robot.Role[];
    /**
     * Whether the robot works in rooms that are larger than the range of its laser, so that it also
     * drives where the laser has never seen anything.
     */
    largeRooms?: boolean;
    /**
     * The time from the end of a scan to its timestamp.
     *
     * In s. At least 0.
     */
    scanDelay?: number;
    /** The sectors in which the laser sees parts of the robot itself. Its driver reports nothing there. */
    masked: robot.Sector[];
  }
  /** The shape of the robot. What is absent is unknown. */
  interface ShapeInit {
    /** The name of the robot, for people. */
    name?: string;
    /**
     * The outline: a rectangle around the origin.
     *
     * In m. At least 0.
     */
    length?: number;
    /** In m. At least 0. */
    width?: number;
    /** In m. At least 0. */
    height?: number;
    /**
     * The effective distance between left and right wheels: that at which turns come out right. If the
     * wheels skid, it is larger than the real one.
     *
     * In m. At least 0.
     */
    track?: number;
    /**
     * The maximum speed of a wheel.
     *
     * In m/s. At least 0.
     */
    maxWheelSpeed?: number;
    /** In m. At least 0. */
    wheelRadius?: number;
    /**
     * The real distance between left and right wheels, from middle to middle.
     *
     * In m. At least 0.
     */
    wheelDistance?: number;
    /**
     * The distance between front and rear axle.
     *
     * In m. At least 0.
     */
    wheelBase?: number;
    /** The laser scanner. Without its place, a scan cannot be drawn around the robot. */
    laser?: robot.PlaceInit;
    /**
     * The time of one turn of the laser.
     *
     * In s. At least 0.
     */
    scanTurn?: number;
    /** The camera. */
    camera?: robot.PlaceInit;
    /** The motion sensors. */
    imu?: robot.PlaceInit;
    /** Whether the robot drives backwards only into areas that the laser has seen or where it has been. */
    looksBeforeReversing?: boolean;
    /** Which device has which role. */
    roles?: Iterable<robot.RoleInit>;
    /**
     * Whether the robot works in rooms that are larger than the range of its laser, so that it also
     * drives where the laser has never seen anything.
     */
    largeRooms?: boolean;
    /**
     * The time from the end of a scan to its timestamp.
     *
     * In s. At least 0.
     */
    scanDelay?: number;
    /** The sectors in which the laser sees parts of the robot itself. Its driver reports nothing there. */
    masked?: Iterable<robot.SectorInit>;
  }
}

/** The messages of stargazer. */
export namespace stargazer {
  interface LocalizationData {
    /**
     * Position in centimetres: seen from the marker, or on a map where the
     * driver has one (x to the right, y down). z is the height of the marker.
     *
     * In cm. From -100000 to 100000.
     */
    xPos: number;
    /** In cm. From -100000 to 100000. */
    yPos: number;
    /** In cm. From -100000 to 100000. */
    zPos: number;
    /**
     * Heading in degrees, clockwise: relative to the marker, or on a map.
     *
     * In deg. From -360 to 360.
     */
    angle: number;
    markerID: number;
    /**
     * Milliseconds since the driver started.
     *
     * In ms.
     */
    timestamp?: number;
    /**
     * Not in the original. Only in answers while no marker is in view: how many
     * milliseconds ago the fix was.
     *
     * In ms.
     */
    lostMs?: number;
  }
  interface LocalizationDataInit {
    /**
     * Position in centimetres: seen from the marker, or on a map where the
     * driver has one (x to the right, y down). z is the height of the marker.
     *
     * In cm. From -100000 to 100000.
     */
    xPos: number;
    /** In cm. From -100000 to 100000. */
    yPos: number;
    /** In cm. From -100000 to 100000. */
    zPos: number;
    /**
     * Heading in degrees, clockwise: relative to the marker, or on a map.
     *
     * In deg. From -360 to 360.
     */
    angle: number;
    markerID: number;
    /**
     * Milliseconds since the driver started.
     *
     * In ms.
     */
    timestamp?: number;
    /**
     * Not in the original. Only in answers while no marker is in view: how many
     * milliseconds ago the fix was.
     *
     * In ms.
     */
    lostMs?: number;
  }
  interface SubscribeAction {
    action: stargazer.SubscribeActionAction;
    /**
     * In spite of its name a period in milliseconds; 0 or absent: every fix.
     *
     * In ms. Absent means 0.
     */
    freq: number;
  }
  type SubscribeActionAction = "SUBSCRIBE" | "UNSUBSCRIBE";
  interface SubscribeActionInit {
    action: stargazer.SubscribeActionAction;
    /**
     * In spite of its name a period in milliseconds; 0 or absent: every fix.
     *
     * In ms. Absent means 0.
     */
    freq?: number;
  }
}

/** The messages of teleop. */
export namespace teleop {
  interface FollowLeader {
    /**
     * It ends after this time. Absent: ten minutes.
     *
     * In ms. At most 86400000.
     */
    limit?: number;
  }
  interface FollowLeaderInit {
    /**
     * It ends after this time. Absent: ten minutes.
     *
     * In ms. At most 86400000.
     */
    limit?: number;
  }
  interface TeleopJoint {
    /** As the follower calls it. */
    name: string;
    /** Where it should be. Absent if the joint of the leader is not measured. */
    target?: number;
    /** Where it is. Absent if it is not measured. */
    position?: number;
  }
  interface TeleopJointInit {
    /** As the follower calls it. */
    name?: string;
    /** Where it should be. Absent if the joint of the leader is not measured. */
    target?: number;
    /** Where it is. Absent if it is not measured. */
    position?: number;
  }
  /** How it ended. */
  interface TeleopOutcome {
    end: teleop.TeleopOutcomeEnd;
    /** Why, as a sentence. */
    reason?: string;
  }
  /**
   * - `LIMIT`: Its time is over.
   * - `STOPPED`: It was stopped.
   * - `REPLACED`: A newer request has replaced it.
   * - `FAILED`: One of the arms is not known any more, or cannot be used so.
   */
  type TeleopOutcomeEnd = "LIMIT" | "STOPPED" | "REPLACED" | "FAILED";
  /** How it ended. */
  interface TeleopOutcomeInit {
    end: teleop.TeleopOutcomeEnd;
    /** Why, as a sentence. */
    reason?: string;
  }
  interface TeleopState {
    activity: teleop.TeleopStateActivity;
    /** The joints of the follower that follow. */
    joints: teleop.TeleopJoint[];
    /**
     * How old the last measurement of the leader was when it came. Between two computers, what is more
     * than usual.
     *
     * In ms.
     */
    delay: number;
    /** How often the follower was told where to be in the last second. */
    rate: number;
    /** Why the follower cannot follow now, as a sentence. */
    problem?: string;
  }
  /**
   * - `IDLE`: The follower is left alone.
   * - `APPROACHING`: The follower comes slowly to where the leader is.
   * - `FOLLOWING`: It follows the leader.
   * - `WAITING`: The leader says nothing for a moment, or says it too late: the follower waits.
   */
  type TeleopStateActivity = "IDLE" | "APPROACHING" | "FOLLOWING" | "WAITING";
  interface TeleopStateInit {
    activity?: teleop.TeleopStateActivity;
    /** The joints of the follower that follow. */
    joints?: Iterable<teleop.TeleopJointInit>;
    /**
     * How old the last measurement of the leader was when it came. Between two computers, what is more
     * than usual.
     *
     * In ms.
     */
    delay?: number;
    /** How often the follower was told where to be in the last second. */
    rate?: number;
    /** Why the follower cannot follow now, as a sentence. */
    problem?: string;
  }
}
