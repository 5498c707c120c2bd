use super::*;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("/robot/amber.toml"), &|name| {
        (name == "lo").then_some(1)
    })
}

/// The error and its hint on one line.
#[track_caller]
fn check_error(text: &str, expected: &str) {
    let error = parse(text).expect_err("a wrong configuration");
    let hint = error
        .hint()
        .map_or(String::new(), |hint| format!(" | {hint}"));
    assert_eq!(format!("{error}{hint}"), expected);
}

#[test]
fn names_of_users_devices_come_from_their_descriptions() {
    let read = |text: &str| {
        let describe = |files: &[PathBuf]| match files == [Path::new("/robot/lamp.proto")] {
            true => Ok(Names::from([("ceiling-lamp".into(), DeviceType(201))])),
            false => Err("cannot read it".to_owned()),
        };
        Config::parse_with(text, Path::new("/robot/amber.toml"), &|_| None, &describe)
    };
    let text = "[mediator]\nproto = [\"lamp.proto\"]\n\
                [[access]]\naction = \"deny\"\ndevices = [\"ceiling-lamp:*\", \"Ceiling_Lamp:1\"]\n\
                [[driver]]\ndevice = \"ceiling_lamp:2\"\ncommand = [\"lamp\"]\n";
    let mut config = read(text).unwrap();
    // The shown configuration has the same devices.
    assert_eq!(read(&config.to_toml()).unwrap(), config);
    let lamp = |id| Device::new(DeviceType(201), id);
    assert_eq!(config.drivers[0].devices, [lamp(2)]);
    let from = "10.0.0.1:5".parse().unwrap();
    assert!(!config.access.allows(from, lamp(7)));
    config.add_driver("ceiling-lamp:3,hokuyo:0=lamp").unwrap();
    let hokuyo = Device::new(DeviceType::HOKUYO, 0);
    assert_eq!(config.drivers[1].devices, [lamp(3), hokuyo]);

    let error = read(&text.replace("lamp.proto", "x.proto")).unwrap_err();
    assert_eq!(error.to_string(), "/robot/amber.toml:2:9: cannot read it");
    let error = read(&text.replace("ceiling_lamp:2", "lamp:2")).unwrap_err();
    assert!(
        error.to_string().contains("unknown device type 'lamp'"),
        "{error}"
    );
    let mut config = Config::default();
    let lamps = |_: &[PathBuf]| Ok(Names::from([("lamp".into(), DeviceType(201))]));
    config.add_proto(&["lamp.proto".into()], &lamps).unwrap();
    config.add_driver("lamp=lamp").unwrap();
    assert_eq!(config.drivers[0].devices, [lamp(0)]);
}

#[test]
fn an_empty_file_is_the_default() {
    let config = parse("").unwrap();
    assert_eq!(
        Config {
            path: None,
            ..config
        },
        Config::default()
    );
    assert_eq!(Config::default().listen, default_listen());
}

#[test]
fn the_example_in_the_manual_is_accepted() {
    let config = parse(
        r#"
        [mediator]
        listen = ["127.0.0.1:0"]
        admin = "anyone"

        [[driver]]
        device  = "hokuyo:0"
        command = ["amber", "driver", "hokuyo", "--port", "/dev/ttyACM0"]

        [[driver]]
        devices = ["5:0", "dummy:1"]
        command = ["python3", "-u", "my_dummy.py"]
        restart = "on-failure"
        env     = { MY_SETTING = "1" }
        directory = "drivers"
        "#,
    )
    .unwrap();
    assert_eq!(config.listen, [SocketAddr::from(([127, 0, 0, 1], 0))]);
    assert_eq!(config.admin, Admin::Anyone);
    let [hokuyo, dummy] = &config.drivers[..] else {
        panic!("two drivers")
    };
    assert_eq!(hokuyo.devices, [Device::new(DeviceType::HOKUYO, 0)]);
    assert_eq!(hokuyo.directory.as_deref(), Some(Path::new("/robot")));
    assert_eq!(dummy.devices.len(), 2);
    assert_eq!(dummy.policy.restart, Restart::OnFailure);
    assert_eq!(dummy.env["MY_SETTING"], "1");
    assert_eq!(
        dummy.directory.as_deref(),
        Some(Path::new("/robot/drivers"))
    );
}

#[test]
fn a_robot_has_a_name_that_fits_into_dns() {
    let config = parse("[mediator]\nname = 'Robot 2'\nannounce = false\n").unwrap();
    assert_eq!(config.name.as_deref(), Some("Robot 2"));
    assert!(!config.announce);
    let again = parse(&config.to_toml()).unwrap();
    assert_eq!((again.name, again.announce), (config.name, false));
    assert!(parse("").unwrap().announce, "unless the key says no");
    for name in ["", "  ", "a\tb", &"x".repeat(64)] {
        let error = parse(&format!("[mediator]\nname = {name:?}\n")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("cannot be the name of a robot"), "{text}");
        assert!(text.contains(":2:8"), "{text}");
    }
}

#[test]
fn the_printed_configuration_means_the_same() {
    let mut config = parse("[[driver]]\ndevice = '77:3'\ncommand = ['x']\n").unwrap();
    config
        .add_driver("5:0,5:1=python3 -u 'my driver.py'")
        .unwrap();
    let again = parse(&config.to_toml()).unwrap();
    assert_eq!(again.listen, config.listen);
    assert_eq!(again.limits, config.limits);
    // The one from the command line had no file to be relative to.
    config.drivers[1].directory = Some("/robot".into());
    assert_eq!(again.drivers, config.drivers);
}

#[test]
fn a_file_can_say_that_there_are_no_drivers() {
    for (text, says_so) in [("", false), ("[limits]\n", false), ("driver = []\n", true)] {
        let config = parse(text).unwrap();
        assert_eq!(config.no_drivers, says_so, "{text}");
        assert_eq!(parse(&config.to_toml()).unwrap(), config, "{text}");
    }
    let some = parse("[[driver]]\ndevice = '77:3'\ncommand = ['x']\n").unwrap();
    assert!(!some.no_drivers);
}

#[test]
fn invalid_files_are_reported_with_place_and_hint() {
    check_error(
        "\n[[driver]]\ndevise = \"5:0\"\n",
        "/robot/amber.toml:3:1: unknown field `devise`, expected one of `device`, `devices`, \
         `command`, `directory`, `restart`, `backoff_min_ms`, `backoff_max_ms`, `deaths`, \
         `deaths_window_s`, `grace_ms`, `ping_interval_ms`, `env` | did you mean `device`?",
    );
    check_error(
        "[mediator]\nlisten = [\"here\"]\n",
        "/robot/amber.toml:2:11: invalid socket address syntax | write an address and a port, such \
         as \"127.0.0.1:26233\"",
    );
    check_error(
        "[driver]\ndevice = \"5:0\"\n",
        "/robot/amber.toml:1:1: invalid type: map, expected a sequence | write [[access]] or \
         [[driver]], with two brackets",
    );
    check_error(
        "[[driver]]\ndevice = '5:0'\nrestart = 'allways'\n",
        "/robot/amber.toml:3:11: unknown variant `allways`, expected one of `always`, \
         `on-failure`, `never` | did you mean `always`?",
    );
    check_error(
        "[mediator",
        "/robot/amber.toml:1:10: unclosed table, expected `]`",
    );
    check_error(
        "[[driver]]\ndevice = \"hokujo:0\"\ncommand = [\"x\"]",
        "/robot/amber.toml:2:10: device 'hokujo:0': unknown device type \
         'hokujo'; did you mean 'hokuyo'? | write a name and an id such as 'hokuyo:0', or \
         numbers: '4:0'; [mediator] proto = [\"lamp.proto\"] has names of your own",
    );
    check_error(
        "[[driver]]\ndevice = \"5:0\"\n",
        "/robot/amber.toml:1:1: `command` is missing | \
         command = [\"amber\", \"driver\", \"dummy\"]",
    );
    check_error(
        "[[driver]]\ncommand = [\"x\"]\n",
        "/robot/amber.toml:1:1: `device` is missing | device = \"hokuyo:0\"",
    );
    check_error(
        "[[driver]]\ndevice='5:0'\ncommand=['x']\n[[driver]]\ndevice='dummy'\ncommand=['y']\n",
        "/robot/amber.toml:4:1: device dummy:0 is served by two drivers; the first is in line 1 \
         | give one of them another id, such as ':1'",
    );
    check_error(
        "[[driver]]\ndevice='5:0'\ncommand=['x']\nbackoff_min_ms=0\n",
        "/robot/amber.toml:1:1: backoff_min_ms = 0 and backoff_max_ms = 10000 \
         | backoff_min_ms must be above 0 and at most backoff_max_ms",
    );
    check_error(
        "[[driver]]\ndevice='0:0'\ncommand=['x']\n",
        "/robot/amber.toml:2:8: device type 0 is the mediator itself",
    );
    // Nothing that may stand there resembles it.
    check_error(
        "listen = ['127.0.0.1:26233']\n",
        "/robot/amber.toml:1:1: unknown field `listen`, expected one of `mediator`, `limits`, \
         `access`, `driver`",
    );
    check_error(
        "[limits]\nclients = -1\n",
        "/robot/amber.toml:2:11: invalid value: integer `-1`, expected usize | write a whole number, \
         0 or more, that is not too large",
    );
    check_error(
        "[limits]\nclients = 0\n",
        "/robot/amber.toml:2:11: [limits] clients must be above 0",
    );
    check_error(
        "[limits]\nclients_per_host = 0\n",
        "/robot/amber.toml:2:20: [limits] clients_per_host must be above 0",
    );
    check_error(
        "[limits]\nforget_clients_s = 0\n",
        "/robot/amber.toml:2:20: [limits] forget_clients_s must be above 0",
    );
}

#[test]
fn invalid_access_rules_are_reported_with_place_and_hint() {
    check_error(
        "[[access]]\nfrom = ['10.0.0.0/8', '192.168.1.7/24']\naction = 'allow'\n",
        "/robot/amber.toml:2:23: '192.168.1.7/24' is an address within a network | write \
         \"192.168.1.0/24\" for the network, or \"192.168.1.7\" for the address",
    );
    check_error(
        "[[access]]\ndevices = ['hokujo:*']\naction = 'allow'\n",
        "/robot/amber.toml:2:12: device 'hokujo:*': unknown device type 'hokujo'; did you \
         mean 'hokuyo'? | write 'hokuyo:0' or '4:0', 'hokuyo:*' for all of a kind, 'mediator' or '*'",
    );
    check_error(
        "[[access]]\nfrom = ['10.0.0.0/8']\n",
        "/robot/amber.toml:1:1: missing field `action` | action = \"allow\", or \"deny\"",
    );
    check_error(
        "[[access]]\naction = 'denny'\n",
        "/robot/amber.toml:2:10: unknown variant `denny`, expected `allow` or `deny` | did you \
         mean `deny`?",
    );
    check_error(
        "[[access]]\naction = 'deny'\nform = ['10.0.0.0/8']\n",
        "/robot/amber.toml:3:1: unknown field `form`, expected one of `action`, `from`, `devices` \
         | did you mean `from`?",
    );
    check_error(
        "[access]\naction = 'deny'\n",
        "/robot/amber.toml:1:1: invalid type: map, expected a sequence | write [[access]] or \
         [[driver]], with two brackets",
    );
}

#[test]
fn access_rules_keep_their_order() {
    let text = "
        [[access]]
        action = 'allow'
        from = ['loopback', '192.168.1.0/24', '::1']
        devices = ['hokuyo:*', '5:0', 'mediator']

        [[access]]
        action = 'deny'
    ";
    let config = parse(text).unwrap();
    let [first, second] = &config.access.0[..] else {
        panic!("two rules")
    };
    assert_eq!((first.from.len(), first.devices.len()), (3, 3));
    assert!(second.from.is_empty() && second.devices.is_empty());
    assert_eq!(parse(&config.to_toml()).unwrap().access, config.access);
}

#[test]
fn limits_are_the_defaults_of_drivers() {
    let config = parse(
        "
        [limits]
        clients = 7
        clients_per_host = 6
        forget_clients_s = 12
        datagrams_per_second = 8
        log_lines_per_second = 9
        stderr_lines_per_second = 10
        deaths = 3
        deaths_window_s = 11

        [[driver]]
        device = '5:0'
        command = ['x']

        [[driver]]
        device = '5:1'
        command = ['x']
        deaths = 4
        ",
    )
    .unwrap();
    let limits = config.limits;
    assert_eq!((limits.clients.get(), limits.datagrams_per_second), (7, 8));
    assert_eq!(limits.clients_per_host.get(), 6);
    assert_eq!(limits.forget_clients, Duration::from_secs(12));
    assert_eq!(
        (limits.log_lines_per_second, limits.stderr_lines_per_second),
        (9, 10)
    );
    let rules: Vec<_> = config.drivers.iter().map(|driver| driver.policy).collect();
    assert_eq!((rules[0].deaths, rules[1].deaths), (3, 4));
    assert_eq!(rules[1].deaths_window, Duration::from_secs(11));
    let again = parse(&config.to_toml()).unwrap();
    assert_eq!(again.limits, config.limits);
}

proptest::proptest! {
    #[test]
    fn no_text_causes_a_panic(text in "[\\[\\]{}='\"\\\\.#\na0é€😀driver]{0,40}") {
        let _ = parse(&text);
        let _ = parse(&format!("[[driver]]\ndevice = {text}\n"));
        let _ = Config::default().add_driver(&text);
    }
}

#[test]
fn commands_are_split_into_shell_words() {
    let mut config = Config::default();
    for (i, (text, words)) in [
        ("amber driver dummy", vec!["amber", "driver", "dummy"]),
        (
            "python3 -u 'my driver.py' \"a b\"",
            vec!["python3", "-u", "my driver.py", "a b"],
        ),
        (r"a\ b ''", vec!["a b", ""]),
        ("echo $HOME; rm *", vec!["echo", "$HOME;", "rm", "*"]),
    ]
    .into_iter()
    .enumerate()
    {
        config.add_driver(&format!("77:{i}={text}")).unwrap();
        assert_eq!(config.drivers[i].command, words);
    }
    for (text, expected) in [
        (
            "dummy",
            "--driver 'dummy': '=' is missing between device and command",
        ),
        ("78:0='x", "--driver '78:0='x': a quote is not closed"),
        ("78:0=", "--driver '78:0=': `command` is missing"),
        (
            "77:0=x",
            "--driver '77:0=x': device 77:0 is already served by another driver",
        ),
    ] {
        let mut config = config.clone();
        assert_eq!(config.add_driver(text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn too_many_addresses_are_an_error() {
    let addresses = |count| {
        let address = |port: usize| format!("'127.0.0.1:{}'", 30_000 + port);
        let all: Vec<String> = (0..count).map(address).collect();
        format!("[mediator]\nlisten = [{}]\n", all.join(", "))
    };
    parse(&addresses(limits::LISTEN_ADDRESSES)).unwrap();
    check_error(
        &addresses(300),
        "/robot/amber.toml:2:10: 300 addresses to listen on, more than 16 | 0.0.0.0 and [::] stand \
         for all addresses of the machine",
    );
    let listen = vec![([127, 0, 0, 1], 0).into(); limits::LISTEN_ADDRESSES + 1];
    let error = Config::default().set_listen(&listen).unwrap_err();
    assert!(error.to_string().starts_with("--listen: 17 addresses"));
}
