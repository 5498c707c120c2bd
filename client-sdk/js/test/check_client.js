// The client that `amber check-client` tests: reads the status of the Dummy and some of its messages.

import { Robot } from "../src/index.js";

const robot = await Robot.connect(process.argv[2]);
try {
  console.log(await robot.dummy().status());
  let count = 0;
  for await (const text of robot.dummy().messages()) {
    console.log(text);
    if (++count === 3) break;
  }
} finally {
  await robot.close();
}
