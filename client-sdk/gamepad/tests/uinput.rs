//! A gamepad that Linux itself has, made by /dev/uinput, where that may be opened.

#![cfg(target_os = "linux")]

use std::fs::OpenOptions;
use std::io::Write;
use std::time::{Duration, Instant};

use amber_gamepad::{DEAD_ZONE, Gamepad, Pad};
use amber_proto::gamepad::gamepad_state::Button;
use evdev::uinput::VirtualDevice;
use evdev::{
    AbsInfo, AbsoluteAxisCode, AttributeSet, EventType, InputEvent, KeyCode, UinputAbsSetup,
};

#[test]
fn a_gamepad_of_the_system_is_found_and_read() {
    if let Err(error) = OpenOptions::new().write(true).open("/dev/uinput") {
        // The harness of the tests does not capture this.
        let _ = writeln!(
            std::io::stderr(),
            "SKIP gamepad of Linux: /dev/uinput cannot be opened: {error}"
        );
        return;
    }
    let mut keys = AttributeSet::new();
    keys.insert(KeyCode::BTN_SOUTH);
    keys.insert(KeyCode::BTN_TL);
    let axis = |code| UinputAbsSetup::new(code, AbsInfo::new(128, 0, 255, 0, 0, 0));
    let builder = VirtualDevice::builder().unwrap().name("Amber test pad");
    let builder = builder.with_keys(&keys).unwrap();
    let builder = builder.with_absolute_axis(&axis(AbsoluteAxisCode::ABS_X));
    let builder = builder.unwrap();
    let builder = builder.with_absolute_axis(&axis(AbsoluteAxisCode::ABS_Y));
    let mut device = builder.unwrap().build().unwrap();
    let path = device.enumerate_dev_nodes_blocking().unwrap().next();
    let path = path.unwrap().unwrap();
    // udev may still be at work on its permissions.
    let begin = Instant::now();
    let mut gamepad = loop {
        match Gamepad::open(Some(&path)) {
            Ok(gamepad) => break gamepad,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(5), "{error}"),
        }
        std::thread::yield_now();
    };
    assert_eq!(gamepad.description().name, "Amber test pad");
    let mut pad = Pad::new(gamepad.description().clone(), DEAD_ZONE);
    let (key, axis) = (EventType::KEY.0, EventType::ABSOLUTE.0);
    for (kind, code, value) in [(axis, 1, 120), (axis, 1, 0), (key, 0x136, 1)] {
        device.emit(&[InputEvent::new(kind, code, value)]).unwrap();
    }
    while pad.state().buttons.is_empty() {
        for event in gamepad.read().unwrap() {
            pad.handle(event);
        }
    }
    let state = pad.state();
    assert_eq!(state.left_y, Some(1.0));
    assert_eq!(state.buttons().collect::<Vec<_>>(), [Button::LeftShoulder]);
    drop(device);
    // The kernel may still report the release of the button.
    while gamepad.read().is_ok() {}
}
