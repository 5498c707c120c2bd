use std::time::Duration;

use super::*;
use crate::bus_servos::{Kind, Rules};
use crate::connection::Endpoint;
use crate::options::OptionsError;

fn of(text: &str) -> Result<(Rules, Endpoint), OptionsError> {
    toml::from_str::<Options>(text).unwrap().settings()
}

#[test]
fn options_have_defaults_and_limits() {
    let (rules, endpoint) = of("ids = [1, 2]\nwheels = [7]").unwrap();
    let servos = [(1, Kind::Joint), (2, Kind::Joint), (7, Kind::Wheel)];
    assert_eq!(rules.servos, servos);
    assert_eq!(
        (rules.max_speed_deg_s, rules.max_wheel_speed_deg_s),
        (120, 270)
    );
    assert_eq!(rules.interval, Duration::from_millis(50));
    assert_eq!(rules.idle_stop, Some(Duration::from_secs(4)));
    assert_eq!(endpoint.to_string(), "/dev/ttyACM0 at 1000000 baud");
    for (text, error) in [
        ("", "ids"),
        ("ids = [1, 1]", "ids"),
        ("ids = [1]\nwheels = [1]", "wheels"),
        ("ids = [253]", "ids"),
        ("ids = [1]\nbaud = 2000000", "baud"),
        ("ids = [1]\ninterval_ms = 9", "interval_ms"),
        ("ids = [1]\nmax_speed_deg_s = 0", "max_speed_deg_s"),
        ("ids = [1]\nreply_timeout_ms = 1", "reply_timeout_ms"),
    ] {
        let found = of(text).unwrap_err().to_string();
        assert!(found.contains(error), "{text}: {found}");
    }
    assert!(toml::from_str::<Options>("id = [1]").is_err());
}

#[test]
fn a_preset_names_the_servos_of_a_robot() {
    let count = |text| of(text).unwrap().0.servos.len();
    assert_eq!(count("preset = 'so101'"), 6);
    assert_eq!(count("preset = 'lekiwi'"), 9);
    assert_eq!(count("preset = 'lekiwi'\nids = [3]"), 1);
    let (rules, _) = of("preset = 'lekiwi'\nidle_stop_ms = 0").unwrap();
    assert_eq!(rules.servos[8], (9, Kind::Wheel));
    assert_eq!(rules.idle_stop, None);
}
