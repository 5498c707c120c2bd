//! Tests of third-party libraries against the simulated devices.
//!
//! They need `pip install basicmicro==2.0.10 tcr-roboclaw==0.1.5 hokuyolx==0.9.0 lds2d==0.7.0
//! pyrplidar==0.1.2 pyserial==3.5 pynmea2==1.19.0 pynmeagps==1.1.8 pycreate2==0.8.0
//! pyfirmata2==2.5.1 feetech-servo-sdk==1.0.0 dynamixel-sdk==4.1.0 rustypot==1.13.1
//! opencv-python-headless==5.0.0.93`, and the packages that `.ci/run` installs with `--no-deps`, because
//! packages for chips depend on packages for boards, and pyvesc on another one than it needs. A test whose package is missing prints a line that starts with `SKIP`.

use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use amber_map::{Map, MapPose, Point, Pose, Walls};
use amber_sim::camera::markers::{SIDE_M, WallMarker, WallMarkers};
use amber_sim::camera::render::Optics;
use amber_sim::hokuyo::{self, Model};
use amber_sim::roboclaw::Firmware;
use amber_sim::robot::Device;
use amber_sim::simulator::{Config, Simulator};
use amber_sim::world::find_start;
use amber_sim::{
    Devices, bno055, camera, create2, diffdrive, dynamixel, feetech, firmata, gps, icm20948,
    ina2xx, ldrobot, lsm6dsox, mpu, ninedof, odrive, pca9685, roboclaw, rplidar, vesc, ydlidar,
};
use tokio::sync::oneshot;

#[test]
fn basicmicro_drives_the_roboclaws() {
    for (firmware, name) in [(Firmware::V4_2_4, "4.2.4"), (Firmware::Mcp, "mcp")] {
        check(
            "basicmicro",
            "foreign_basicmicro.py",
            with_firmware(firmware),
            |devices| vec![of(devices, roboclaw::DEVICE), name.to_owned()],
        );
    }
}

#[test]
fn tcr_roboclaw_drives_the_roboclaws() {
    check(
        "tcr_roboclaw",
        "foreign_tcr_roboclaw.py",
        with_firmware(Firmware::V4_1_34),
        |devices| vec![of(devices, roboclaw::DEVICE)],
    );
}

#[test]
fn hokuyolx_reads_the_scanners() {
    for model in [Model::Utm30Lx, Model::Urg04Lx] {
        let twins = Devices {
            hokuyo: hokuyo::Options {
                model,
                tcp: Some((Ipv4Addr::LOCALHOST, 0).into()),
                ..hokuyo::Options::default()
            },
            ..Devices::default()
        };
        check("hokuyolx", "foreign_hokuyolx.py", twins, |devices| {
            let address = of(devices, hokuyo::TCP_DEVICE);
            let (_, port) = address.rsplit_once(':').expect("an address with a port");
            vec![port.to_owned(), model.name().to_owned()]
        });
    }
}

#[test]
fn lds2d_reads_the_scanners_of_ldrobot() {
    for (model, name) in [
        (ldrobot::Model::Ld06, "LDROBOT-LD06"),
        (ldrobot::Model::Ld19, "LDROBOT-LD19"),
    ] {
        let twins = Devices {
            ldrobot: ldrobot::Options { model: Some(model) },
            ..Devices::default()
        };
        check("lds2d, serial", "foreign_lds2d.py", twins, |devices| {
            among_walls(of(devices, ldrobot::DEVICE), name)
        });
    }
}

#[test]
fn pyserial_talks_to_the_arduinos() {
    for (firmware, name) in [
        (diffdrive::Firmware::Bridge, "bridge"),
        (diffdrive::Firmware::Andino, "andino"),
    ] {
        let twins = Devices {
            diffdrive: diffdrive::Options {
                firmware: Some(firmware),
            },
            ..Devices::default()
        };
        check("serial", "foreign_pyserial.py", twins, |devices| {
            vec![of(devices, diffdrive::DEVICE), name.to_owned()]
        });
    }
}

#[test]
fn pyfirmata2_uses_the_pins_of_an_arduino() {
    let twins = Devices {
        firmata: firmata::Options {
            model: Some(firmata::Model::Uno),
        },
        ..Devices::default()
    };
    check("pyfirmata2", "foreign_firmata.py", twins, |devices| {
        vec![of(devices, firmata::DEVICE)]
    });
}

#[test]
fn scservo_sdk_moves_an_arm() {
    let twins = Devices {
        feetech: feetech::Options {
            model: Some(feetech::Model::So101),
        },
        ..Devices::default()
    };
    check("scservo_sdk", "foreign_feetech.py", twins, |devices| {
        vec![of(devices, feetech::DEVICE)]
    });
}

#[test]
fn dynamixel_sdk_moves_an_arm() {
    let twins = Devices {
        dynamixel: dynamixel::Options {
            model: Some(dynamixel::Model::Koch),
        },
        ..Devices::default()
    };
    check("dynamixel_sdk", "foreign_dynamixel.py", twins, |devices| {
        vec![of(devices, dynamixel::DEVICE)]
    });
}

#[test]
fn rustypot_moves_arms_of_both_makers() {
    let twins = Devices {
        dynamixel: dynamixel::Options {
            model: Some(dynamixel::Model::Koch),
        },
        feetech: feetech::Options {
            model: Some(feetech::Model::So101),
        },
        ..Devices::default()
    };
    check("rustypot", "foreign_rustypot.py", twins, |devices| {
        [dynamixel::DEVICE, feetech::DEVICE]
            .map(|it| of(devices, it))
            .to_vec()
    });
}

#[test]
fn pycreate2_drives_a_create_2() {
    let twins = Devices {
        create2: create2::Options { is_fitted: true },
        ..Devices::default()
    };
    check("pycreate2", "foreign_pycreate2.py", twins, |devices| {
        vec![of(devices, create2::DEVICE)]
    });
}

#[test]
fn pyvesc_drives_the_vescs() {
    let twins = Devices {
        vesc: vesc::Options {
            firmware: Some(vesc::Firmware::V6_02),
        },
        ..Devices::default()
    };
    check("pyvesc, serial", "foreign_pyvesc.py", twins, |devices| {
        vec![of(devices, vesc::DEVICE), vesc::CAN_ID.to_string()]
    });
}

#[test]
fn pyserial_talks_to_an_odrive() {
    let twins = Devices {
        odrive: odrive::Options {
            variant: Some(odrive::Variant::Calibrated),
        },
        ..Devices::default()
    };
    check("serial", "foreign_odrive.py", twins, |devices| {
        vec![of(devices, odrive::DEVICE)]
    });
}

#[test]
fn pyrplidar_and_lds2d_read_an_rplidar() {
    let twins = Devices {
        rplidar: rplidar::Options {
            model: Some(rplidar::Model::A1),
        },
        ..Devices::default()
    };
    check(
        "lds2d, pyrplidar, serial",
        "foreign_rplidar.py",
        twins,
        |devices| among_walls(of(devices, rplidar::DEVICE), "a1"),
    );
}

#[test]
fn lds2d_reads_the_scanners_of_ydlidar() {
    for (model, name) in [
        (ydlidar::Model::X2, "x2"),
        (ydlidar::Model::X4, "x4"),
        (ydlidar::Model::X4Pro, "x4-pro"),
        (ydlidar::Model::G4, "g4"),
    ] {
        let twins = Devices {
            ydlidar: ydlidar::Options { model: Some(model) },
            ..Devices::default()
        };
        check("lds2d, serial", "foreign_ydlidar.py", twins, |devices| {
            among_walls(of(devices, ydlidar::DEVICE), name)
        });
    }
}

#[test]
fn adafruits_libraries_read_the_chips() {
    check(
        "adafruit_bus_device, adafruit_register",
        "foreign_adafruit.py",
        Devices::default(),
        |devices| vec![of(devices, ninedof::DEVICE)],
    );
}

#[test]
fn libraries_read_the_motion_sensors() {
    use mpu::Model::{Copy, Mpu6050, Mpu9250};
    for (library, model, name) in [
        ("adafruit_mpu6050", Mpu6050, "mpu6050"),
        ("mpu6050", Mpu6050, "mpu6050"),
        ("mpu6050", Copy, "copy"),
        ("mpu9250_jmdev.mpu_9250", Mpu9250, "mpu9250"),
    ] {
        // They need the module of the bus to be imported first.
        let package = format!("simbus, {library}");
        let twins = Devices {
            mpu: mpu::Options { model: Some(model) },
            ..Devices::default()
        };
        check(&package, "foreign_mpu.py", twins, |devices| {
            let arguments = [&of(devices, mpu::DEVICE), name, library];
            arguments.map(str::to_owned).into()
        });
    }
}

#[test]
fn adafruits_libraries_turn_the_servos() {
    let twins = Devices {
        pca9685: pca9685::Options { is_fitted: true },
        ..Devices::default()
    };
    let package = "simbus, adafruit_pca9685, adafruit_motor.servo";
    check(package, "foreign_pca9685.py", twins, |devices| {
        vec![of(devices, pca9685::DEVICE)]
    });
}

#[test]
fn adafruits_library_reads_the_sensor_of_the_battery() {
    let twins = Devices {
        ina2xx: ina2xx::Options {
            model: Some(ina2xx::Model::Ina219),
            // The current flows into the battery.
            fixed: Some((12.104, -0.32)),
        },
        ..Devices::default()
    };
    // It needs the module of the bus to be imported first.
    let package = "simbus, adafruit_ina219";
    check(package, "foreign_ina219.py", twins, |devices| {
        vec![of(devices, ina2xx::DEVICE)]
    });
}

#[test]
fn adafruits_libraries_read_an_lsm6dsox_and_its_relatives() {
    use lsm6dsox::Model::{Alone, Lsm6ds33, Lsm6dsox};
    for (model, name) in [
        (Lsm6dsox, "lsm6dsox"),
        (Lsm6ds33, "lsm6ds33"),
        (Alone, "alone"),
    ] {
        let twins = Devices {
            lsm6dsox: lsm6dsox::Options { model: Some(model) },
            ..Devices::default()
        };
        let package = "simbus, adafruit_lsm6ds, adafruit_lis3mdl";
        check(package, "foreign_lsm6dsox.py", twins, |devices| {
            vec![of(devices, lsm6dsox::DEVICE), name.to_owned()]
        });
    }
}

#[test]
fn adafruits_library_reads_an_icm_20948() {
    let model = Some(icm20948::Model::Icm20948);
    let twins = Devices {
        icm20948: icm20948::Options { model },
        ..Devices::default()
    };
    let package = "simbus, adafruit_icm20x";
    check(package, "foreign_icm20948.py", twins, |devices| {
        vec![of(devices, icm20948::DEVICE)]
    });
}

#[test]
fn adafruits_library_reads_a_bno055() {
    let model = Some(bno055::Model::Bno055);
    let twins = Devices {
        bno055: bno055::Options { model },
        ..Devices::default()
    };
    let package = "simbus, adafruit_bno055";
    check(package, "foreign_bno055.py", twins, |devices| {
        vec![of(devices, bno055::DEVICE)]
    });
}

#[test]
fn libraries_read_the_sentences_of_a_gps_receiver() {
    use gps::Model::{L76, NeoM8, ZedF9p};
    // The last digit is rounded.
    for (model, origin, error_deg, quality) in [
        (NeoM8, "50.0682,19.9126", 1e-7, 1),
        (L76, "-33.85,-70.5,45", 1e-6, 1),
        (ZedF9p, "-0.00001,179.999999", 1e-9, 4),
    ] {
        let origin: gps::Origin = origin.parse().expect("a place");
        let twins = Devices {
            gps: gps::Options {
                model: Some(model),
                origin: Some(origin),
                is_exact: true,
            },
            ..Devices::default()
        };
        let map = Map::flat();
        let start = find_start(&map.faces(), &map.robots).expect("the map has a start");
        let receiver = gps::Receiver::new(model, origin, 1, Duration::ZERO);
        let [latitude_deg, longitude_deg] = receiver.truth([start.at.x, start.at.y]);
        let package = "pynmea2, pynmeagps, serial";
        check(package, "foreign_gps.py", twins, |devices| {
            let numbers = [latitude_deg, longitude_deg, error_deg].map(|it| it.to_string());
            let port = of(devices, gps::DEVICE);
            [vec![port], numbers.into(), vec![quality.to_string()]].concat()
        });
    }
}

#[test]
fn opencv_finds_the_robot_by_the_markers_on_the_walls() {
    let segments = Map::flat().faces();
    let markers = WallMarkers::on(&segments);
    let walls = Walls::new(segments);
    let (robot, visible) = viewpoint(&walls, &markers);
    let optics = Optics::new(camera::Size::default(), camera::VIEW_DEG);
    let calibration: Vec<_> = optics.calibration().lines().map(str::to_owned).collect();
    let matrix = calibration
        .iter()
        .find_map(|line| line.trim().strip_prefix("data: "));
    let matrix: Vec<f64> = serde_json::from_str(matrix.expect("a matrix")).expect("numbers");
    let seen_from = robot.global(Point::new(camera::AHEAD_M, 0.0));
    let all: Vec<_> = (markers.all().iter())
        .map(|WallMarker { id, pose }| {
            serde_json::json!({ "id": id, "x": pose.at.x, "y": pose.at.y, "heading": pose.heading })
        })
        .collect();
    let twins = Devices {
        camera: camera::Options {
            address: Some((Ipv4Addr::LOCALHOST, 0).into()),
            ..camera::Options::default()
        },
        ..Devices::default()
    };
    check_at(
        "cv2, numpy",
        "foreign_camera.py",
        Some(robot),
        twins,
        |devices| {
            let told = serde_json::json!({
                "url": format!("http://{}/stream", of(devices, camera::DEVICE)),
                "f": matrix[0], "cx": matrix[2], "cy": matrix[5],
                "side": SIDE_M, "height": camera::HEIGHT_M,
                "markers": all, "visible": visible,
                "pose": [seen_from.x, seen_from.y, robot.heading],
            });
            vec![told.to_string()]
        },
    );
}

/// A place for the robot from which its camera sees two markers well, and their ids.
fn viewpoint(walls: &Walls, markers: &WallMarkers) -> (Pose, Vec<u8>) {
    let nodes = Map::flat().nodes;
    let headings = (0..36).map(|step| f64::from(step) * 10f64.to_radians());
    let poses = headings.flat_map(|heading| nodes.iter().map(move |at| Pose { at: *at, heading }));
    let seen = |pose: Pose| -> Vec<u8> {
        let at = pose.global(Point::new(camera::AHEAD_M, 0.0));
        let from = Pose { at, ..pose };
        let is_seen = |marker: &&WallMarker| {
            let local = from.local(marker.pose.at);
            let in_front = marker.pose.global(Point::new(0.01, 0.0));
            // Neither far away, nor at the edge of the picture, nor aslant.
            let aslant = marker.pose.local(at);
            (0.5..3.5).contains(&local.x)
                && local.y.abs() < 0.55 * local.x
                && aslant.x > 0.7 * aslant.y.abs()
                && walls.is_open(at, in_front)
        };
        let seen = markers.all().iter().filter(is_seen);
        seen.map(|marker| marker.id).collect()
    };
    let found = poses
        .map(|pose| (pose, seen(pose)))
        .find(|(_, seen)| seen.len() >= 2);
    found.expect("two markers are in view somewhere")
}

fn with_firmware(firmware: Firmware) -> Devices {
    Devices {
        roboclaw: roboclaw::Options {
            firmware,
            ..roboclaw::Options::default()
        },
        ..Devices::default()
    }
}

/// The arguments of a script that compares a scanner with the walls.
fn among_walls(port: String, model: &str) -> Vec<String> {
    let map = Map::flat();
    let walls = map.faces();
    let start = find_start(&walls, &map.robots).expect("the map has a start");
    let pose = format!("{},{},{}", start.at.x, start.at.y, start.heading);
    let walls = walls.iter().map(|wall| {
        let (from, to) = (wall.from, wall.to);
        format!("{},{},{},{}", from.x, from.y, to.x, to.y)
    });
    [port, model.to_owned(), pose]
        .into_iter()
        .chain(walls)
        .collect()
}

/// Runs a script that imports a package, against its own simulation.
fn check(
    package: &str,
    script: &str,
    twins: Devices,
    arguments: impl Fn(&[(Device, String)]) -> Vec<String>,
) {
    check_at(package, script, None, twins, arguments);
}

/// The same with the robot at a place.
fn check_at(
    package: &str,
    script: &str,
    start: Option<Pose>,
    twins: Devices,
    arguments: impl Fn(&[(Device, String)]) -> Vec<String>,
) {
    if let Err(reason) = import(package) {
        // Not eprintln!, whose output a passing test hides.
        let _ = writeln!(std::io::stderr(), "SKIP foreign {package}: {reason}");
        return;
    }
    let folder = tempfile::tempdir().expect("the test is set up");
    let start = start.map(|pose| {
        let MapPose {
            x_m,
            y_m,
            heading_rad,
            ..
        } = pose.into();
        (x_m, y_m, heading_rad.to_degrees())
    });
    let config = Config {
        map: Map::flat(),
        folder: folder.path().to_owned(),
        start,
        seed: 1,
        speed: 1.0,
        devices: twins,
    };
    let (end, ended) = oneshot::channel::<()>();
    let (ready, devices) = std::sync::mpsc::channel();
    let simulation = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("the test is set up");
        runtime.block_on(async {
            let simulator = Simulator::open(config).await.expect("the test is set up");
            ready.send(simulator.devices()).expect("the test is set up");
            let end = async { drop(ended.await) };
            simulator.run(end).await.expect("the test is set up");
        });
    });
    let devices = devices.recv().expect("the test is set up");
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(script);
    let output = Command::new("python3")
        .arg("-B")
        .arg(path)
        .args(arguments(&devices))
        .stdin(Stdio::null())
        .output()
        .expect("the test is set up");
    drop(end);
    simulation.join().expect("the test is set up");
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {said}{complaints}");
    assert_eq!(said.trim_end(), "ok", "{complaints}");
}

/// Whether Python has the package.
fn import(package: &str) -> Result<(), String> {
    let output = Command::new("python3")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"))
        .args(["-B", "-c", &format!("import {package}")])
        .output()
        .map_err(|error| format!("python3: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(text.lines().last().unwrap_or("import failed").to_owned())
}

fn of(devices: &[(Device, String)], wanted: Device) -> String {
    let found = devices.iter().find(|(device, _)| *device == wanted);
    found
        .map(|(_, path)| path.clone())
        .expect("the device exists")
}
