//! Scans as other robot systems get them, compared with what the simulated scanner did.

use amber_sim::hokuyo as sim;
use amber_values::{LearnedLaser, Scan};

use super::*;

/// The scans of a scanner for some time: the time at which each was read, its message, and the turn
/// in which it was measured. `far_mm` is the distance of all points but the nearest.
struct Trial {
    laser: LearnedLaser,
    scans: Vec<(Measured, sim::Sweep)>,
}

fn scans(model: sim::Model, far_mm: u32) -> Trial {
    let (settings, _) = Options::default().settings().unwrap();
    let begin = Instant::now();
    let mut logic = ScannerLogic::new(settings, begin);
    let mut scanner = sim::Hokuyo::new(model, sim::Transport::Serial, Duration::ZERO);
    let mut last = None;
    let mut laser = LearnedLaser::new(None);
    let mut scans = Vec::new();
    for ms in 0..6_000 {
        let time = Duration::from_millis(ms);
        let now = begin + time;
        // Nothing is late, so each scan is read at the millisecond at which it is complete.
        while let Some(sweep) = scanner.poll_sweep(time) {
            let count = model.last_step() as usize + 1;
            let mut distances = vec![far_mm; count];
            distances[count / 2] = 500;
            let intensities = vec![100; count];
            last = Some(sweep);
            scanner.handle_scan(
                time,
                sweep,
                sim::Scan {
                    distances,
                    intensities,
                },
            );
        }
        while let Some(bytes) = scanner.poll_output() {
            logic.handle_bytes(now, ms as i64, &bytes);
        }
        logic.handle_timeout(now);
        if ms == 3_000 {
            laser.describe(logic.scanner().unwrap());
            logic.handle_listeners(now, 1);
        }
        while let Some(output) = logic.poll_output() {
            match output {
                Output::Open => logic.opened(now),
                Output::Write(bytes) => scanner.handle_bytes(time, &bytes),
                Output::Publish(measured) => scans.push((measured, last.unwrap())),
                Output::Close | Output::Answer(..) | Output::End => panic!("{output:?}"),
                Output::Say(_) => {}
            }
        }
    }
    Trial { laser, scans }
}

#[test]
fn scans_have_the_limits_of_their_scanner_and_the_time_of_the_first_ray() {
    for (model, max_m, turn_ms) in [
        (sim::Model::Urg04Lx, 5.6, 100.0),
        (sim::Model::Utm30Lx, 60.0, 25.0),
    ] {
        let Trial { mut laser, scans } = scans(model, 5_000);
        assert!(scans.len() > 15, "{model:?}: {}", scans.len());
        for (measured, sweep) in scans {
            let Measured { scan, timestamp_ms } = measured;
            let scan = Scan::new(&scan.angles, &scan.distances, Some(timestamp_ms)).unwrap();
            let ended = Duration::from_millis(timestamp_ms as u64);
            let laser = laser.handle(&scan, ended);
            assert_eq!(laser.max_m, max_m, "{model:?}");
            assert_eq!(laser.turn.as_secs_f64() * 1000.0, turn_ms, "{model:?}");
            let ros = laser.scan(&scan);
            let count = ros.ranges_m.len();
            // Rays are at their angles and times. The scan is read within the next millisecond.
            for index in [0, count / 3, count - 1] {
                let step = model.first_step() + index as u32;
                let true_s = model.beam_time(sweep, step).as_secs_f64();
                let first_s = (ended - ros.duration).as_secs_f64();
                let late_s = first_s + index as f64 * ros.step_s - true_s;
                assert!((-0.0005..0.0015).contains(&late_s), "{model:?}: {late_s} s");
                let angle = ros.first_rad + index as f64 * ros.step_rad;
                let off_rad = (angle - model.angle(step)).abs();
                // The angles of the original are up to 0.35 degrees off.
                assert!(off_rad < 0.007, "{model:?}: {off_rad} rad");
            }
        }
    }
}

#[test]
fn no_ray_is_beyond_the_limit() {
    // The URG-04LX cannot see so far, but it says so.
    let Trial { mut laser, scans } = scans(sim::Model::Urg04Lx, 5_700);
    let (measured, _) = &scans[0];
    let scan = Scan::new(&measured.scan.angles, &measured.scan.distances, None).unwrap();
    let ros = laser.handle(&scan, Duration::ZERO).scan(&scan);
    assert_eq!(ros.max_m, 5.6);
    let near = ros.ranges_m.iter().filter(|range| range.is_finite());
    assert_eq!(near.copied().collect::<Vec<_>>(), [0.5]);
    let beyond = ros.ranges_m.iter().filter(|range| range.is_infinite());
    assert_eq!(beyond.count(), ros.ranges_m.len() - 1);
}
