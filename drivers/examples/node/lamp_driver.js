// A driver of one's own: a lamp, which `proto/lamp.proto` describes.

const amber = require('./amber');

let percent = 0;

const lamp = {
  periodMs: 1000, // between publications

  request(message) {
    if (Object.hasOwn(message, '.lamp.set_brightness')) {
      percent = message['.lamp.set_brightness']; // your hardware here
    }
    return this.publish();
  },

  publish() {
    return { '.lamp.brightness': percent };
  },
};

amber.serve(lamp, amber.load('lamp.proto'));
