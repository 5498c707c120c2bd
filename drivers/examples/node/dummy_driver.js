#!/usr/bin/env node
'use strict';
// A complete driver: the Dummy device, a flag and a text.
//
//     amber mediator --driver 'dummy:0=node dummy_driver.js'

const amber = require('./amber');

const schema = amber.load('dummy.proto');
const ENABLE = '.amber.dummy_proto.enable';
const MESSAGE = '.amber.dummy_proto.message';
const GET_STATUS = '.amber.dummy_proto.get_status';

// The device itself. All clients share it.
const state = { enable: false, message: 'Message', responses: 0 };

const dummy = {
  periodMs: 100,

  request(message, client) {
    if (Object.hasOwn(message, ENABLE)) {
      state.enable = message[ENABLE];
    } else if (Object.hasOwn(message, MESSAGE)) {
      state.message = message[MESSAGE];
    } else if (Object.hasOwn(message, GET_STATUS)) {
      return { [ENABLE]: state.enable, [MESSAGE]: state.message };
    } else {
      amber.log('not a request for the dummy, from client', client);
    }
  },

  publish() {
    state.responses += 1;
    return { [MESSAGE]: `Response ${state.responses}` };
  },
};

amber.serve(dummy, schema);
