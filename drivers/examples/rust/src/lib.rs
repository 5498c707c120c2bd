//! The example devices: their messages, their clients, and the traits of their drivers.

// A thermometer.
amber_sdk::device!("../thermometer.proto");

// A wall follower.
amber_sdk::device!("../follow_wall.proto");
