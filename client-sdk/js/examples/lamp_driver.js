// A driver of one's own: a lamp, which `lamp.proto` describes.

import { serve } from "amber-robot/driver";

let percent = 0;

serve(new URL("lamp.proto", import.meta.url), {
  periodMs: 1000, // between publications

  setBrightness(wanted) {
    percent = wanted; // your hardware here
    return percent;
  },

  getBrightness: () => percent,
  brightness: () => percent,
});
