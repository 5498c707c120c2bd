#!/usr/bin/env node
'use strict';
// A driver for a user-defined device: the warmest sensor of this computer.
//
//     amber mediator --driver '201:0=node thermometer_driver.js'
//
// Its messages are in proto/thermometer.proto.

const fs = require('fs');
const path = require('path');
const amber = require('./amber');

const schema = amber.load('thermometer.proto');
const ZONES = '/sys/class/thermal';

function readLine(...parts) {
  return fs.readFileSync(path.join(ZONES, ...parts), 'utf8').trim();
}

/** All sensors of Linux, as { celsius, sensor }. */
function readings() {
  let zones = [];
  try {
    zones = fs.readdirSync(ZONES).filter((name) => name.startsWith('thermal_zone'));
  } catch {
    return []; // no such folder, so no sensors
  }
  return zones.flatMap((zone) => {
    try {
      const celsius = Number(readLine(zone, 'temp')) / 1000; // the kernel reports thousandths
      return Number.isFinite(celsius) ? [{ celsius, sensor: readLine(zone, 'type') }] : [];
    } catch {
      return []; // the sensor is switched off
    }
  });
}

const thermometer = {
  periodMs: 1000,

  request(message, client) {
    if (Object.hasOwn(message, '.thermometer.get_temperature')) return this.publish();
    amber.log('not a request for the thermometer, from client', client);
  },

  publish() {
    const warmest = readings().sort((a, b) => b.celsius - a.celsius)[0];
    return { '.thermometer.temperature': warmest || {} };
  },
};

amber.serve(thermometer, schema);
