// Made by scripts/types.js from the descriptions in proto/. Do not edit.

import type { arm, base, batteryState, board, bumper, busServos, camera, collisionAvoidance, driveToPoint, gamepad, gateway, gps, hokuyo, location, maestro, mapping, markers, ninedof, order, pidFollowTrajectory, roboclaw, robot, stargazer, teleop } from "../devices.js";
import type { Caller, Driver, Port } from "./index.js";

/** An accelerometer, a gyroscope and a magnetometer. */
export interface NineDofDriver extends Driver<NineDofPort> {
  /** One reading of some sensors. */
  data(request: ninedof.DataRequest, caller: Caller): ninedof.SensorDataInit | Promise<ninedof.SensorDataInit>;
  /**
   * Readings of some sensors, one each period. The first comes after one period. The device keeps
   * one period and one set of sensors per client: those of the last request.
   */
  readings(request: ninedof.SubscribeAction, caller: Caller): ninedof.SensorDataInit | undefined | Promise<ninedof.SensorDataInit | undefined>;
  /**
   * Tests whether the sensors respond with plausible values. The robot must stand still.
   * Drivers of the original system do not answer.
   */
  selfTest(request: ninedof.ServiceRequest, caller: Caller): ninedof.ServiceReportInit | Promise<ninedof.ServiceReportInit>;
  /**
   * Measures the bias of the gyroscope and subtracts it from then on. The robot must stand still.
   * Drivers of the original system do not answer.
   */
  calibrateGyro(request: ninedof.ServiceRequest, caller: Caller): ninedof.ServiceReportInit | Promise<ninedof.ServiceReportInit>;
  /**
   * Measures the magnetic field of the robot itself and subtracts it from then on. During this time
   * the robot must make a full turn on level ground. Drivers of the original system do not answer.
   */
  calibrateMagnet(request: ninedof.ServiceRequest, caller: Caller): ninedof.ServiceReportInit | Promise<ninedof.ServiceReportInit>;
}

/** What the driver of `NineDof` may do by itself. */
export interface NineDofPort extends Port {
  /**
   * Readings of some sensors, one each period. The first comes after one period. The device keeps
   * one period and one set of sensors per client: those of the last request.
   */
  publishReadings(value: ninedof.SensorDataInit): void;
}

/**
 * Four driven wheels on two motor controllers.
 *
 * The driver stops the wheels when the client that drives leaves, and a few seconds after the last
 * command. Therefore a program that drives must repeat its command.
 */
export interface RoboclawDriver extends Driver<RoboclawPort> {
  /**
   * Sets the speeds of the wheels. The driver drops a command with a speed beyond its limit
   * (1200 mm/s unless configured otherwise).
   */
  drive(request: roboclaw.MotorsSpeed, caller: Caller): void | Promise<void>;
  /** The measured speeds of the wheels. */
  speeds(caller: Caller): roboclaw.MotorsSpeedInit | Promise<roboclaw.MotorsSpeedInit>;
  /**
   * The measured speeds of the wheels, 20 times per second. All subscribers share the measurements.
   * Drivers of the original system do not publish. Once a second, the main battery is with them.
   */
  speedUpdates?(): { currentSpeed: roboclaw.MotorsSpeedInit; speedAge?: number; battery?: batteryState.BatteryStateInit } | undefined | Promise<{ currentSpeed: roboclaw.MotorsSpeedInit; speedAge?: number; battery?: batteryState.BatteryStateInit } | undefined>;
  /**
   * The main battery, as the controllers measured it last. The device `battery` publishes it.
   * Drivers of the original system do not answer.
   */
  battery(caller: Caller): batteryState.BatteryStateInit | Promise<batteryState.BatteryStateInit>;
}

/** What the driver of `Roboclaw` may do by itself. */
export interface RoboclawPort extends Port {
  /**
   * The measured speeds of the wheels, 20 times per second. All subscribers share the measurements.
   * Drivers of the original system do not publish. Once a second, the main battery is with them.
   */
  publishSpeedUpdates(value: { currentSpeed: roboclaw.MotorsSpeedInit; speedAge?: number; battery?: batteryState.BatteryStateInit }): void;
}

/** A sensor that finds the robot's position from markers on the ceiling. */
export interface StargazerDriver extends Driver<StargazerPort> {
  /** The most recent pose, which may be old (`lostMs`). None if there has been none yet. */
  pose(caller: Caller): stargazer.LocalizationDataInit | undefined | Promise<stargazer.LocalizationDataInit | undefined>;
  /**
   * Every pose, about ten per second, or the most recent one each period. None while no marker is
   * in view.
   */
  poses(request: stargazer.SubscribeAction, caller: Caller): stargazer.LocalizationDataInit | undefined | Promise<stargazer.LocalizationDataInit | undefined>;
}

/** What the driver of `Stargazer` may do by itself. */
export interface StargazerPort extends Port {
  /**
   * Every pose, about ten per second, or the most recent one each period. None while no marker is
   * in view.
   */
  publishPoses(value: stargazer.LocalizationDataInit): void;
}

/** A laser scanner. */
export interface HokuyoDriver extends Driver<HokuyoPort> {
  /**
   * One scan. It takes 25 to 100 ms, and more than a second over a slow serial line or if the laser
   * was off.
   */
  scan(caller: Caller): hokuyo.ScanInit & { timestamp?: number | bigint } | Promise<hokuyo.ScanInit & { timestamp?: number | bigint }>;
  /** Every scan, about ten per second. */
  scans?(): hokuyo.ScanInit & { timestamp?: number | bigint } | undefined | Promise<hokuyo.ScanInit & { timestamp?: number | bigint } | undefined>;
  /**
   * What the scanner can measure, as it says itself. The device refuses while no scanner is
   * connected. Drivers of the original system do not answer.
   */
  scanner(caller: Caller): hokuyo.ScannerInit | Promise<hokuyo.ScannerInit>;
}

/** What the driver of `Hokuyo` may do by itself. */
export interface HokuyoPort extends Port {
  /** Every scan, about ten per second. */
  publishScans(value: hokuyo.ScanInit & { timestamp?: number | bigint }): void;
}

/** A device without hardware, for experiments. All clients share its flag and its text. */
export interface DummyDriver extends Driver<DummyPort> {
  /** The flag and the text. */
  status(caller: Caller): { enable: boolean; message: string } | Promise<{ enable: boolean; message: string }>;
  /** Sets the flag. */
  enable(enable: boolean, caller: Caller): void | Promise<void>;
  /** Sets the text. */
  message(message: string, caller: Caller): void | Promise<void>;
  /** A text ten times a second: "Response N". */
  messages?(): string | undefined | Promise<string | undefined>;
}

/** What the driver of `Dummy` may do by itself. */
export interface DummyPort extends Port {
  /** A text ten times a second: "Response N". */
  publishMessages(value: string): void;
}

/** The pose of the robot on a map. */
export interface LocationServiceDriver extends Driver<LocationServicePort> {
  /** The pose. All zero means that it is not known yet. */
  pose(caller: Caller): location.LocationInit | Promise<location.LocationInit>;
  /** The pose after each update, at most ten per second, and its quality. */
  poses?(): { currentLocation: location.LocationInit; quality?: location.QualityInit } | undefined | Promise<{ currentLocation: location.LocationInit; quality?: location.QualityInit } | undefined>;
  /** The quality of the pose, with details. Drivers of the original system do not answer. */
  quality(caller: Caller): location.QualityInit | Promise<location.QualityInit>;
  /** Hypotheses of the particle filter, at most 700. Drivers of the original system do not answer. */
  particles(caller: Caller): location.ParticlesInit | Promise<location.ParticlesInit>;
  /**
   * The map in use. The driver refuses if it has no map, or if the map does not fit into a message of
   * 32 kB. Drivers of the original system do not answer.
   */
  map(caller: Caller): location.MapInit | Promise<location.MapInit>;
  /** Replaces the map by this .roson text of at most 32 kB. An invalid map changes nothing. */
  uploadMap(uploadMap: string, caller: Caller): void | Promise<void>;
  /**
   * Whether the configured geometry of the robot is right: the delay of the scans, the angle of the
   * laser, the track, and the signs of all. The driver measures it whenever the robot drives; it needs
   * no map. Drivers of the original system do not answer.
   */
  geometry(request: location.GeometryRequest, caller: Caller): location.GeometryInit | Promise<location.GeometryInit>;
  /**
   * Tells where the robot is. The next scans must agree: a pose that does not explain them does not
   * become a known one, and the search goes on. The driver refuses without a map, and for a place
   * where the robot cannot be. Drivers of the original system ignore it.
   */
  setPose(request: location.KnownPose, caller: Caller): void | Promise<void>;
}

/** What the driver of `LocationService` may do by itself. */
export interface LocationServicePort extends Port {
  /** The pose after each update, at most ten per second, and its quality. */
  publishPoses(value: { currentLocation: location.LocationInit; quality?: location.QualityInit }): void;
}

/**
 * Hobby servos, numbered from 0. Commands have no answer. The driver drops and logs invalid ones,
 * such as a servo that does not exist or an angle beyond its limits. Servos keep their position
 * when a client leaves. Those that turn like motors stop then.
 */
export interface MaestroDriver extends Driver<MaestroPort> {
  /** Turns one servo. */
  setAngle(request: maestro.SetAngleCommand, caller: Caller): void | Promise<void>;
  /** Turns several servos to the same angle; all or none. */
  setSameAngle(request: maestro.SetSameAngleCommand, caller: Caller): void | Promise<void>;
  /** Turns several servos, each to its own angle; all or none. */
  setAngles(request: maestro.SetDifferentAnglesCommand, caller: Caller): void | Promise<void>;
  /**
   * Stops what turns like a motor. The other servos keep their position. Drivers of the original
   * system ignore it.
   */
  stop_(caller: Caller): void | Promise<void>;
  /**
   * The last angle that the driver sent to each servo since its start. Hobby servos do not report
   * their position. A servo without a command is absent. Drivers of the original system do not
   * answer.
   */
  angles(caller: Caller): maestro.ServoAnglesInit | Promise<maestro.ServoAnglesInit>;
  /** Sets the speed of a servo. */
  setSpeed(request: maestro.SetSpeedCommand, caller: Caller): void | Promise<void>;
}

/** What the driver of `Maestro` may do by itself. */
export interface MaestroPort extends Port {}

/** Drives to targets, one after the other. */
export interface DriveToPointDriver extends Driver<DriveToPointPort> {
  /** Replaces all targets and starts. An empty list stops the robot. */
  setTargets(request: driveToPoint.Targets, caller: Caller): void | Promise<void>;
  /**
   * Replaces all targets and starts, as an order with an id. `Order` tells how it ends.
   *
   * Choose an id from 2^32 to 2^53 that was not used before, for example at random. If the answer is
   * lost, repeat the request: an order that the driver knows is not started again.
   */
  go(request: driveToPoint.Go, caller: Caller): order.OrderInit | Promise<order.OrderInit>;
  /**
   * The order with this id: its progress, or how it ended. 0 means the one that runs, else the last
   * one. The driver remembers the last 16 ended orders.
   */
  order(orderId: number, caller: Caller): order.OrderInit | Promise<order.OrderInit>;
  /** Stops the robot if the order with this id runs. Returns the order. */
  cancelOrder(cancelId: number, caller: Caller): order.OrderInit | Promise<order.OrderInit>;
  /** The orders that the driver remembers, the newest first. */
  orders(caller: Caller): order.OrdersInit | Promise<order.OrdersInit>;
  /** The next target, and the pose of the robot. Without a target: a target at 0, 0 with radius 0. */
  nextTarget(caller: Caller): { targets: driveToPoint.TargetsInit; location: driveToPoint.LocationInit } | Promise<{ targets: driveToPoint.TargetsInit; location: driveToPoint.LocationInit }>;
  /** All targets that are still to be reached, and the pose of the robot. */
  nextTargets(caller: Caller): { targets: driveToPoint.TargetsInit; location: driveToPoint.LocationInit } | Promise<{ targets: driveToPoint.TargetsInit; location: driveToPoint.LocationInit }>;
  /** The last visited target, and the pose of the robot. Without one: as in NextTarget. */
  visitedTarget(caller: Caller): { targets: driveToPoint.TargetsInit; location: driveToPoint.LocationInit } | Promise<{ targets: driveToPoint.TargetsInit; location: driveToPoint.LocationInit }>;
  /** All visited targets, and the pose of the robot. */
  visitedTargets(caller: Caller): { targets: driveToPoint.TargetsInit; location: driveToPoint.LocationInit } | Promise<{ targets: driveToPoint.TargetsInit; location: driveToPoint.LocationInit }>;
  /** The settings of the driver. */
  configuration(caller: Caller): driveToPoint.ConfigurationInit | Promise<driveToPoint.ConfigurationInit>;
  /**
   * The activity, the path and the pose of the robot, and the order that runs, or the last one.
   * Drivers of the original system do not answer.
   */
  progress(caller: Caller): { progress: driveToPoint.ProgressInit; location: driveToPoint.LocationInit; order?: order.OrderInit } | Promise<{ progress: driveToPoint.ProgressInit; location: driveToPoint.LocationInit; order?: order.OrderInit }>;
  /** The same, five times per second. The original does not publish. */
  progressUpdates?(): { progress: driveToPoint.ProgressInit; location: driveToPoint.LocationInit; order?: order.OrderInit } | undefined | Promise<{ progress: driveToPoint.ProgressInit; location: driveToPoint.LocationInit; order?: order.OrderInit } | undefined>;
}

/** What the driver of `DriveToPoint` may do by itself. */
export interface DriveToPointPort extends Port {
  /** The same, five times per second. The original does not publish. */
  publishProgressUpdates(value: { progress: driveToPoint.ProgressInit; location: driveToPoint.LocationInit; order?: order.OrderInit }): void;
}

/**
 * Drives like the Roboclaw and avoids collisions.
 *
 * The driver slows the wheels down near obstacles. It stops them before a contact, half a second
 * after the last command, and when scans or wheel speeds are missing. Therefore a program that
 * drives must repeat its command.
 */
export interface CollisionAvoidanceDriver extends Driver<CollisionAvoidancePort> {
  /** Sets the speeds of the wheels. The driver reduces them near obstacles. */
  drive(request: collisionAvoidance.MotorsSpeed, caller: Caller): void | Promise<void>;
  /** The measured speeds of the wheels. */
  speeds(caller: Caller): collisionAvoidance.MotorsSpeedInit | Promise<collisionAvoidance.MotorsSpeedInit>;
  /** The last scan of the laser scanner. */
  scan(caller: Caller): collisionAvoidance.ScanInit | Promise<collisionAvoidance.ScanInit>;
  /** The measured speeds and the last scan together. */
  speedsAndScan(caller: Caller): { motorsSpeed: collisionAvoidance.MotorsSpeedInit; scan: collisionAvoidance.ScanInit } | Promise<{ motorsSpeed: collisionAvoidance.MotorsSpeedInit; scan: collisionAvoidance.ScanInit }>;
  /** The measured speeds and the scan, with every scan. The original does not publish. */
  readings?(): { motorsSpeed: collisionAvoidance.MotorsSpeedInit; scan: collisionAvoidance.ScanInit } | undefined | Promise<{ motorsSpeed: collisionAvoidance.MotorsSpeedInit; scan: collisionAvoidance.ScanInit } | undefined>;
  /** The same as Drive, with the message of Roboclaw. */
  driveAsRoboclaw(request: roboclaw.MotorsSpeed, caller: Caller): void | Promise<void>;
  /** The same as Speeds, with the messages of Roboclaw. */
  speedsAsRoboclaw(caller: Caller): roboclaw.MotorsSpeedInit | Promise<roboclaw.MotorsSpeedInit>;
}

/** What the driver of `CollisionAvoidance` may do by itself. */
export interface CollisionAvoidancePort extends Port {
  /** The measured speeds and the scan, with every scan. The original does not publish. */
  publishReadings(value: { motorsSpeed: collisionAvoidance.MotorsSpeedInit; scan: collisionAvoidance.ScanInit }): void;
}

/** Follows a trajectory, which is a list of points. */
export interface PidFollowTrajectoryDriver extends Driver<PidFollowTrajectoryPort> {
  /** Replaces the trajectory and the settings. Ignored while the robot follows a trajectory. */
  setTargets(request: { targets: pidFollowTrajectory.Targets; configuration: pidFollowTrajectory.Configuration }, caller: Caller): void | Promise<void>;
  /**
   * Replaces the trajectory and the settings and starts, as an order with an id. `Order` tells how it
   * ends. Unlike `SetTargets`, it also replaces a trajectory that the robot follows.
   *
   * Choose an id from 2^32 to 2^53 that was not used before, for example at random. If the answer is
   * lost, repeat the request: an order that the driver knows is not started again.
   */
  follow(request: pidFollowTrajectory.Follow, caller: Caller): order.OrderInit | Promise<order.OrderInit>;
  /**
   * The order with this id: its progress, or how it ended. 0 means the one that runs, else the last
   * one. The driver remembers the last 16 ended orders.
   */
  order(orderId: number, caller: Caller): order.OrderInit | Promise<order.OrderInit>;
  /** Stops the robot if the order with this id runs. Returns the order. */
  cancelOrder(cancelId: number, caller: Caller): order.OrderInit | Promise<order.OrderInit>;
  /** The orders that the driver remembers, the newest first. */
  orders(caller: Caller): order.OrdersInit | Promise<order.OrdersInit>;
  /** The points that are still to be reached. */
  nextTargets(caller: Caller): pidFollowTrajectory.TargetsInit | Promise<pidFollowTrajectory.TargetsInit>;
  /** The points that were reached. */
  visitedTargets(caller: Caller): pidFollowTrajectory.TargetsInit | Promise<pidFollowTrajectory.TargetsInit>;
  /** Starts to follow the trajectory. */
  start_(caller: Caller): void | Promise<void>;
  /** Stops the robot. */
  stop_(caller: Caller): void | Promise<void>;
  /** Follows the trajectory for one period (`loopSleepTime`), then stops the robot. */
  step(caller: Caller): void | Promise<void>;
  /** The activity of the robot and the order, five times per second. The original does not publish. */
  progressUpdates?(): { progress: pidFollowTrajectory.ProgressInit; order?: order.OrderInit } | undefined | Promise<{ progress: pidFollowTrajectory.ProgressInit; order?: order.OrderInit } | undefined>;
}

/** What the driver of `PidFollowTrajectory` may do by itself. */
export interface PidFollowTrajectoryPort extends Port {
  /** The activity of the robot and the order, five times per second. The original does not publish. */
  publishProgressUpdates(value: { progress: pidFollowTrajectory.ProgressInit; order?: order.OrderInit }): void;
}

/**
 * The shape of the robot, and which device has which role. Everything that needs the geometry of the
 * robot asks this device for it.
 */
export interface RobotDriver extends Driver<RobotPort> {
  /** The shape. */
  shape(caller: Caller): robot.ShapeInit | Promise<robot.ShapeInit>;
  /** The shape after each change. */
  shapeUpdates?(): robot.ShapeInit | undefined | Promise<robot.ShapeInit | undefined>;
  /** The same as URDF: the format in which ROS, RViz and Foxglove read the shape of a robot. */
  urdf(caller: Caller): string | Promise<string>;
  /**
   * The pose and the motion of the robot by its wheels alone. The device refuses while the wheels
   * report no speeds.
   */
  odometry(caller: Caller): robot.OdometryInit | Promise<robot.OdometryInit>;
  /**
   * The same, once each period, while the wheels report speeds. The wheels report them 20 times per
   * second. The device keeps one period per client: that of the last request.
   */
  odometryUpdates(request: robot.OdometryRequest, caller: Caller): robot.OdometryInit | undefined | Promise<robot.OdometryInit | undefined>;
}

/** What the driver of `Robot` may do by itself. */
export interface RobotPort extends Port {
  /** The shape after each change. */
  publishShapeUpdates(value: robot.ShapeInit): void;
  /**
   * The same, once each period, while the wheels report speeds. The wheels report them 20 times per
   * second. The device keeps one period per client: that of the last request.
   */
  publishOdometryUpdates(value: robot.OdometryInit): void;
}

/** Makes a map from laser scans and wheel speeds while the robot drives. */
export interface MappingServiceDriver extends Driver<MappingServicePort> {
  /** Begins a map. The driver refuses while another map grows. A stopped map is discarded. */
  startMap(request: mapping.StartMap, caller: Caller): void | Promise<void>;
  /** Ends the exploration and the growth of the map. It can still be saved. */
  stopMap(caller: Caller): void | Promise<void>;
  /**
   * Drives autonomously through unknown places while a map grows, and back to the place where the
   * exploration began. With `on: false`, stops the robot; the map goes on. The exploration ends
   * with its client.
   */
  explore(request: mapping.Explore, caller: Caller): void | Promise<void>;
  /**
   * Finishes a copy of the map: writes it to files on the robot, hands it to the location driver,
   * or keeps it for MapPiece. The map goes on.
   */
  saveMap(request: mapping.SaveMap, caller: Caller): mapping.SavedMapInit | Promise<mapping.SavedMapInit>;
  /** The state of the map and of the exploration. */
  progress(caller: Caller): mapping.ProgressInit | Promise<mapping.ProgressInit>;
  /** The same, five times per second while a map grows, else once per second. */
  progressUpdates?(): mapping.ProgressInit | undefined | Promise<mapping.ProgressInit | undefined>;
  /**
   * The parts of the grid that have changed, at most about 1200 bytes in an answer. The request
   * has `map` and `number` of the last answer; without them the answer has the first parts. Ask
   * again while `left` is not 0, then when `grid` in Progress changes, at most every 2 seconds.
   */
  grid(request: mapping.Grid, caller: Caller): mapping.GridInit | Promise<mapping.GridInit>;
  /**
   * A piece of the last saved map. The request has `saved`, `file` and `offset`. The answer also
   * has the data, at most 1200 bytes, and the length of the file, or a length of 0 if this map is
   * no longer there.
   */
  mapPiece(request: mapping.Piece, caller: Caller): mapping.PieceInit | Promise<mapping.PieceInit>;
}

/** What the driver of `MappingService` may do by itself. */
export interface MappingServicePort extends Port {
  /** The same, five times per second while a map grows, else once per second. */
  publishProgressUpdates(value: mapping.ProgressInit): void;
}

/** The battery of the robot. */
export interface BatteryDriver extends Driver<BatteryPort> {
  /** The state. */
  state(caller: Caller): batteryState.BatteryStateInit | Promise<batteryState.BatteryStateInit>;
  /** The state, once a second. The device publishes nothing while the state is unknown. */
  stateUpdates?(): batteryState.BatteryStateInit | undefined | Promise<batteryState.BatteryStateInit | undefined>;
}

/** What the driver of `Battery` may do by itself. */
export interface BatteryPort extends Port {
  /** The state, once a second. The device publishes nothing while the state is unknown. */
  publishStateUpdates(value: batteryState.BatteryStateInit): void;
}

/** A receiver of navigation satellites. */
export interface GpsDriver extends Driver<GpsPort> {
  /** What the receiver told last. While it has no position, the kind is NONE. */
  fix(caller: Caller): gps.FixInit | Promise<gps.FixInit>;
  /** The same, each time the receiver tells it: most do so once a second. */
  fixUpdates?(): gps.FixInit | undefined | Promise<gps.FixInit | undefined>;
}

/** What the driver of `Gps` may do by itself. */
export interface GpsPort extends Port {
  /** The same, each time the receiver tells it: most do so once a second. */
  publishFixUpdates(value: gps.FixInit): void;
}

/** A gamepad. */
export interface GamepadDriver extends Driver<GamepadPort> {
  /** What is held, and how far. Without a gamepad, nothing is. */
  state(caller: Caller): gamepad.GamepadStateInit | Promise<gamepad.GamepadStateInit>;
  /** The same at each change, at most every 20 ms, and twice a second without one. */
  stateUpdates?(): gamepad.GamepadStateInit | undefined | Promise<gamepad.GamepadStateInit | undefined>;
}

/** What the driver of `Gamepad` may do by itself. */
export interface GamepadPort extends Port {
  /** The same at each change, at most every 20 ms, and twice a second without one. */
  publishStateUpdates(value: gamepad.GamepadStateInit): void;
}

/**
 * The pins of a microcontroller. The configuration of the driver says which pins are used, and how. A
 * pin is named by its name there, by its number, or by a label such as A0.
 *
 * Outputs that move something have a safe value in the configuration. They get it when the client that
 * has set them is gone, and when the driver ends or is killed.
 */
export interface BoardDriver extends Driver<BoardPort> {
  /** All configured pins with their values. The device refuses while the board is not connected. */
  pins(caller: Caller): board.PinsInit | Promise<board.PinsInit>;
  /**
   * The same at once when a digital pin changes or an output is set, ten times a second if there are
   * analog inputs, and else once a second. Nothing is published while the board is not connected.
   */
  pinUpdates?(): board.PinsInit | undefined | Promise<board.PinsInit | undefined>;
  /** What the board is, and what each of its pins can do. */
  info(caller: Caller): board.BoardInfoInit | Promise<board.BoardInfoInit>;
  /**
   * Sets a digital output. A halt or a lease of another client refuses it for every pin: the device
   * cannot know what is connected.
   */
  setDigital(request: board.DigitalCommand, caller: Caller): void | Promise<void>;
  /** Sets a PWM output. */
  setPwm(request: board.PwmCommand, caller: Caller): void | Promise<void>;
  /** Turns a servo to an angle. */
  setServo(request: board.ServoCommand, caller: Caller): void | Promise<void>;
  /** Sets the pulse of a servo, or of a motor controller that takes the same pulses. */
  setServoPulse(request: board.PulseCommand, caller: Caller): void | Promise<void>;
  /** Brings all outputs that were set and have a safe value to it. */
  stop_(caller: Caller): void | Promise<void>;
}

/** What the driver of `Board` may do by itself. */
export interface BoardPort extends Port {
  /**
   * The same at once when a digital pin changes or an output is set, ten times a second if there are
   * analog inputs, and else once a second. Nothing is published while the board is not connected.
   */
  publishPinUpdates(value: board.PinsInit): void;
}

/** A camera. */
export interface CameraDriver extends Driver<CameraPort> {
  /** One picture. A camera that nobody uses is switched on first, which takes up to three seconds. */
  picture(request: camera.PictureRequest, caller: Caller): camera.PictureInit | Promise<camera.PictureInit>;
  /**
   * The newest picture, once each period; a period shorter than that of the camera means each
   * picture. The device keeps one period and one kind of picture per client: those of the last
   * request.
   */
  pictures(request: camera.PictureStream, caller: Caller): camera.PictureInit | undefined | Promise<camera.PictureInit | undefined>;
  /** What is known of the camera. It is not switched on for this. */
  info(caller: Caller): camera.CameraInfoInit | Promise<camera.CameraInfoInit>;
  /** The same, once per second. */
  infoUpdates?(): camera.CameraInfoInit | undefined | Promise<camera.CameraInfoInit | undefined>;
  /**
   * Changes a control, such as the exposure, for as long as the camera is plugged in. Only cameras of
   * which Info shows controls have some.
   */
  setControl(request: camera.ControlValue, caller: Caller): camera.ControlInit | Promise<camera.ControlInit>;
}

/** What the driver of `Camera` may do by itself. */
export interface CameraPort extends Port {
  /**
   * The newest picture, once each period; a period shorter than that of the camera means each
   * picture. The device keeps one period and one kind of picture per client: those of the last
   * request.
   */
  publishPictures(value: camera.PictureInit): void;
  /** The same, once per second. */
  publishInfoUpdates(value: camera.CameraInfoInit): void;
}

/**
 * A robot that drives: ahead, to the left, and around itself, all at the same time.
 *
 * The base stops when the client that drives leaves, and half a second after the last command unless
 * the driver is told otherwise. Therefore a program that drives must repeat its command.
 */
export interface BaseDriver extends Driver<BasePort> {
  /**
   * Drives with a velocity. If a wheel would be too fast, the base drives the same way more slowly. It
   * refuses while its wheels cannot be used.
   */
  drive(request: base.Velocity, caller: Caller): void | Promise<void>;
  /**
   * How the base moves, as it was measured last, and where it is by its wheels. The device refuses
   * while its wheels are not measured.
   */
  state(caller: Caller): base.BaseStateInit | Promise<base.BaseStateInit>;
  /**
   * The same for each measurement of the wheels, usually twenty times per second. Nothing is
   * published while the wheels are not measured.
   */
  stateUpdates?(): base.BaseStateInit | undefined | Promise<base.BaseStateInit | undefined>;
}

/** What the driver of `Base` may do by itself. */
export interface BasePort extends Port {
  /**
   * The same for each measurement of the wheels, usually twenty times per second. Nothing is
   * published while the wheels are not measured.
   */
  publishStateUpdates(value: base.BaseStateInit): void;
}

/**
 * Servos on one bus, known by their ids. The configuration of the driver says which ids are used, and
 * which of these servos turn like motors. Commands concern all servos that they name, or none.
 *
 * What a client moves stops when that client is gone, and when the driver ends or is killed: a servo
 * holds the angle that it has then, and one that turns like a motor stands still. Torque stays on, so
 * that an arm does not fall.
 */
export interface BusServosDriver extends Driver<BusServosPort> {
  /**
   * All configured servos, as they were measured last. The device refuses while the bus cannot be
   * used.
   */
  servos(caller: Caller): busServos.ServoStatesInit | Promise<busServos.ServoStatesInit>;
  /**
   * The same for each measurement, twenty times a second unless the driver is told otherwise. Nothing
   * is published while the bus cannot be used.
   */
  servoUpdates?(): busServos.ServoStatesInit | undefined | Promise<busServos.ServoStatesInit | undefined>;
  /**
   * Turns servos to angles, and switches their motors on. The driver refuses angles beyond the limits
   * that are stored in a servo.
   */
  moveTo(request: busServos.MoveServos, caller: Caller): void | Promise<void>;
  /**
   * Turns servos on and on, if the driver is configured so for them. They stop by themselves some time
   * after the last command, four seconds unless the driver is told otherwise.
   */
  turn(request: busServos.ServoSpeeds, caller: Caller): void | Promise<void>;
  /** Stops all servos: each one holds the angle that it has. Motors that are off stay off. */
  stop_(caller: Caller): void | Promise<void>;
  /**
   * Switches the motors of servos on or off. On: each one holds the angle that it has. Off: it can be
   * moved by hand, and an arm falls.
   */
  setTorque(request: busServos.ServoTorque, caller: Caller): void | Promise<void>;
}

/** What the driver of `BusServos` may do by itself. */
export interface BusServosPort extends Port {
  /**
   * The same for each measurement, twenty times a second unless the driver is told otherwise. Nothing
   * is published while the bus cannot be used.
   */
  publishServoUpdates(value: busServos.ServoStatesInit): void;
}

/**
 * An arm. Commands concern all joints that they name, or none; other joints stay where they are. A
 * joint does not turn faster than the driver is told, and its motor must be on.
 *
 * What a client moves stops when that client is gone, and when the driver ends or is killed. Torque
 * stays on, so that the arm does not fall.
 */
export interface ArmDriver extends Driver<ArmPort> {
  /**
   * What the arm does, and all joints, as they were measured last. The device refuses while its servos
   * cannot be reached.
   */
  state(caller: Caller): arm.ArmStateInit | Promise<arm.ArmStateInit>;
  /** The same for each measurement of the servos. Nothing is published while they cannot be reached. */
  stateUpdates?(): arm.ArmStateInit | undefined | Promise<arm.ArmStateInit | undefined>;
  /** The joints, their limits, and what the arm is. */
  description(caller: Caller): arm.ArmDescriptionInit | Promise<arm.ArmDescriptionInit>;
  /**
   * Moves joints to these positions at once, as fast as they may: for leaders, policies and sliders
   * that repeat it 10 to 100 times a second. Positions beyond the limits of a joint become the limit.
   * A joint whose servo does not answer is left out. At first, the arm approaches slowly until it has
   * caught up. Without another command for half a second, or for as long as the command is valid, it
   * holds where it is.
   */
  follow(request: arm.JointPositions, caller: Caller): void | Promise<void>;
  /**
   * Moves joints to positions, together: they start and arrive at the same time. Answers when the arm
   * is there, or does not come any further. Positions beyond the limits of a joint are refused.
   */
  moveTo(request: arm.MoveArm, caller: Caller): arm.ArmOutcomeInit | Promise<arm.ArmOutcomeInit>;
  /** Stops the arm: each joint holds the position that it has. Motors that are off stay off. */
  stop_(caller: Caller): void | Promise<void>;
  /**
   * Switches the motors of joints on or off. On: each one holds the position that it has. Off: it can be
   * moved by hand, and the arm falls. Answers when the servos have done so.
   */
  setTorque(request: arm.ArmTorque, caller: Caller): arm.ArmStateInit | Promise<arm.ArmStateInit>;
}

/** What the driver of `Arm` may do by itself. */
export interface ArmPort extends Port {
  /** The same for each measurement of the servos. Nothing is published while they cannot be reached. */
  publishStateUpdates(value: arm.ArmStateInit): void;
}

/**
 * Two arms: the leader, whose motors are off, so that a person can move it, and the follower. The
 * configuration of the driver says which arms they are, and which joint follows which.
 *
 * The follower keeps its own rules: its limits, its speed, and that it approaches slowly at first. It
 * stops when the client is gone, and when the driver ends or is killed.
 */
export interface TeleopDriver extends Driver<TeleopPort> {
  /** What both arms do. The device refuses while one of them is not known. */
  state(caller: Caller): teleop.TeleopStateInit | Promise<teleop.TeleopStateInit>;
  /** The same for each measurement of the leader. Nothing is published while an arm is not known. */
  stateUpdates?(): teleop.TeleopStateInit | undefined | Promise<teleop.TeleopStateInit | undefined>;
  /**
   * Lets the follower follow the leader. Answers when that ends. The device refuses while a motor of the
   * leader is on, or one of the follower is off.
   */
  follow(request: teleop.FollowLeader, caller: Caller): teleop.TeleopOutcomeInit | Promise<teleop.TeleopOutcomeInit>;
  /** Stops the follower: each joint holds the position that it has. */
  stop_(caller: Caller): void | Promise<void>;
}

/** What the driver of `Teleop` may do by itself. */
export interface TeleopPort extends Port {
  /** The same for each measurement of the leader. Nothing is published while an arm is not known. */
  publishStateUpdates(value: teleop.TeleopStateInit): void;
}

/** The bumpers of a robot, and its sensors for cliffs and for wheels that hang in the air. */
export interface BumperDriver extends Driver<BumperPort> {
  /** What each of them feels now. */
  contacts(caller: Caller): bumper.ContactsInit | Promise<bumper.ContactsInit>;
  /**
   * The same at each change, and four times per second. The device publishes nothing while it is
   * unknown: a silence of a second means that nobody knows what the robot touches.
   */
  contactUpdates?(): bumper.ContactsInit | undefined | Promise<bumper.ContactsInit | undefined>;
}

/** What the driver of `Bumper` may do by itself. */
export interface BumperPort extends Port {
  /**
   * The same at each change, and four times per second. The device publishes nothing while it is
   * unknown: a silence of a second means that nobody knows what the robot touches.
   */
  publishContactUpdates(value: bumper.ContactsInit): void;
}

/** What finds markers in pictures. */
export interface MarkersDriver extends Driver<MarkersPort> {
  /**
   * The markers in a new picture. A camera that nobody uses is switched on first, which takes up to
   * three seconds.
   */
  sightings(caller: Caller): markers.SightingsInit | Promise<markers.SightingsInit>;
  /**
   * The same for each picture, five times per second unless the driver is told otherwise. The camera is
   * only used while somebody has subscribed.
   */
  sightingsUpdates?(): markers.SightingsInit | undefined | Promise<markers.SightingsInit | undefined>;
}

/** What the driver of `Markers` may do by itself. */
export interface MarkersPort extends Port {
  /**
   * The same for each picture, five times per second unless the driver is told otherwise. The camera is
   * only used while somebody has subscribed.
   */
  publishSightingsUpdates(value: markers.SightingsInit): void;
}

/** Lets programs for another robot protocol use Amber's devices. */
export interface GatewayDriver extends Driver<GatewayPort> {
  /** The sessions of the gateway, and its counters. */
  status(caller: Caller): gateway.GatewayStatusInit | Promise<gateway.GatewayStatusInit>;
  /** The same, once a second. */
  statusUpdates?(): gateway.GatewayStatusInit | undefined | Promise<gateway.GatewayStatusInit | undefined>;
  /** Sends an image to the peers, if the protocol has images. */
  sendImage(request: gateway.RelayImage, caller: Caller): void | Promise<void>;
  /** Images from the peers, in pieces. */
  images?(): gateway.RelayImageInit | undefined | Promise<gateway.RelayImageInit | undefined>;
}

/** What the driver of `Gateway` may do by itself. */
export interface GatewayPort extends Port {
  /** The same, once a second. */
  publishStatusUpdates(value: gateway.GatewayStatusInit): void;
  /** Images from the peers, in pieces. */
  publishImages(value: gateway.RelayImageInit): void;
}

/** The drivers by the names of their devices. */
export interface DriversByName {
  "ninedof": NineDofDriver;
  "imu": NineDofDriver;
  "roboclaw": RoboclawDriver;
  "wheels": RoboclawDriver;
  "stargazer": StargazerDriver;
  "hokuyo": HokuyoDriver;
  "laser": HokuyoDriver;
  "dummy": DummyDriver;
  "location": LocationServiceDriver;
  "maestro": MaestroDriver;
  "servos": MaestroDriver;
  "drive-to-point": DriveToPointDriver;
  "collision-avoidance": CollisionAvoidanceDriver;
  "pid-follow-trajectory": PidFollowTrajectoryDriver;
  "robot": RobotDriver;
  "mapping": MappingServiceDriver;
  "battery": BatteryDriver;
  "gps": GpsDriver;
  "gamepad": GamepadDriver;
  "board": BoardDriver;
  "camera": CameraDriver;
  "base": BaseDriver;
  "bus-servos": BusServosDriver;
  "arm": ArmDriver;
  "teleop": TeleopDriver;
  "bumper": BumperDriver;
  "markers": MarkersDriver;
  "gateway": GatewayDriver;
}

/** What `serve` returns, by the names of the devices. */
export interface PortsByName {
  "ninedof": NineDofPort;
  "imu": NineDofPort;
  "roboclaw": RoboclawPort;
  "wheels": RoboclawPort;
  "stargazer": StargazerPort;
  "hokuyo": HokuyoPort;
  "laser": HokuyoPort;
  "dummy": DummyPort;
  "location": LocationServicePort;
  "maestro": MaestroPort;
  "servos": MaestroPort;
  "drive-to-point": DriveToPointPort;
  "collision-avoidance": CollisionAvoidancePort;
  "pid-follow-trajectory": PidFollowTrajectoryPort;
  "robot": RobotPort;
  "mapping": MappingServicePort;
  "battery": BatteryPort;
  "gps": GpsPort;
  "gamepad": GamepadPort;
  "board": BoardPort;
  "camera": CameraPort;
  "base": BasePort;
  "bus-servos": BusServosPort;
  "arm": ArmPort;
  "teleop": TeleopPort;
  "bumper": BumperPort;
  "markers": MarkersPort;
  "gateway": GatewayPort;
}
