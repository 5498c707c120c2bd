//! Tests with the transfers of the data sheet.

use super::*;

const MS: Duration = Duration::from_millis(1);

fn chip() -> Pca9685 {
    Pca9685::new(0x40, Duration::ZERO)
}

fn transfer(chip: &mut Pca9685, address: u8, written: &[u8], read: u8) -> Option<Vec<u8>> {
    let transfer = Transfer {
        address,
        written: written.to_vec(),
        read,
    };
    match chip.transfer(Duration::ZERO, &transfer) {
        Reply::Ack(bytes) => Some(bytes),
        Reply::Nak => None,
    }
}

fn write(chip: &mut Pca9685, bytes: &[u8]) {
    assert_eq!(transfer(chip, 0x40, bytes, 0), Some(Vec::new()));
}

fn read(chip: &mut Pca9685, register: u8) -> u8 {
    transfer(chip, 0x40, &[register], 1).unwrap()[0]
}

/// Awake at 50 Hz, with auto-increment.
fn started() -> Pca9685 {
    let mut chip = chip();
    for bytes in [[0x00, 0x10], [0xFE, 0x79], [0x00, 0x20]] {
        write(&mut chip, &bytes);
    }
    chip
}

#[test]
fn registers_begin_as_in_the_data_sheet() {
    let mut chip = chip();
    for (register, value) in [
        (0x00, 0x11),
        (0x01, 0x04),
        (0x02, 0xE2),
        (0x05, 0xE0),
        (0x09, 0x10),
        (0x45, 0x10),
        (0xFE, 0x1E),
    ] {
        assert_eq!(read(&mut chip, register), value, "{register:#04x}");
    }
    assert_eq!(transfer(&mut chip, 0x41, &[0], 1), None);
    // At the address of all boards, until that is switched off.
    assert_eq!(transfer(&mut chip, 0x70, &[0], 1), Some(vec![0x11]));
    write(&mut chip, &[0x00, 0x20]);
    assert_eq!(transfer(&mut chip, 0x70, &[0], 1), None);
}

#[test]
fn channels_get_the_pulses_that_were_written() {
    let mut chip = started();
    write(&mut chip, &[0x06, 0x00, 0x00, 0x33, 0x01]);
    assert!((chip.pulse_us(0) - 1498.2).abs() < 0.1);
    // Several channels in one transfer, with a pulse in the middle of the period.
    write(&mut chip, &[0x22, 0x00, 0x01, 0x33, 0x02, 0, 0, 0xCD, 0]);
    assert!((chip.pulse_us(7) - 1498.2).abs() < 0.1);
    assert!((chip.pulse_us(8) - 1000.4).abs() < 0.1);
    assert_eq!(
        transfer(&mut chip, 0x40, &[0x22], 5),
        Some(vec![0x00, 0x01, 0x33, 0x02, 0])
    );
    // Always on, always off, and off wins.
    write(&mut chip, &[0x22, 0x00, 0x10, 0x00, 0x00]);
    assert!((chip.pulse_us(7) - 19_988.5).abs() < 0.1);
    write(&mut chip, &[0x22, 0x00, 0x10, 0x00, 0x10]);
    assert_eq!(chip.pulse_us(7), 0.0);
    write(&mut chip, &[0xFA, 0x00, 0x00, 0x00, 0x10]);
    assert!((0..CHANNELS).all(|channel| chip.pulse_us(channel) == 0.0));
    assert_eq!(read(&mut chip, 0xFD), 0);
}

#[test]
fn without_auto_increment_a_burst_writes_one_register() {
    let mut chip = chip();
    write(&mut chip, &[0x00, 0x00]);
    write(&mut chip, &[0x06, 1, 2, 3]);
    assert_eq!([read(&mut chip, 0x06), read(&mut chip, 0x07)], [3, 0]);
}

#[test]
fn the_prescaler_is_writable_only_asleep() {
    let mut chip = started();
    write(&mut chip, &[0xFE, 0x65]);
    assert_eq!(read(&mut chip, 0xFE), 0x79);
    write(&mut chip, &[0x00, 0x30]);
    write(&mut chip, &[0xFE, 0x01]);
    assert_eq!(read(&mut chip, 0xFE), 0x03);
}

#[test]
fn after_sleep_pulses_need_a_restart() {
    let mut chip = started();
    write(&mut chip, &[0x06, 0x00, 0x00, 0x33, 0x01]);
    write(&mut chip, &[0x00, 0x30]);
    assert_eq!(read(&mut chip, 0x00), 0xB0);
    write(&mut chip, &[0x00, 0x20]);
    assert_eq!((chip.pulse_us(0), read(&mut chip, 0x00)), (0.0, 0xA0));
    write(&mut chip, &[0x00, 0xA0]);
    assert!(chip.pulse_us(0) > 1498.0);
    assert_eq!(read(&mut chip, 0x00), 0x20);
}

#[test]
fn a_general_call_resets_every_board() {
    let mut chip = started();
    assert_eq!(transfer(&mut chip, 0x00, &[0x06], 0), Some(Vec::new()));
    assert_eq!(read(&mut chip, 0x00), 0x11);
}

#[test]
fn shafts_follow_the_pulses() {
    let mut chip = started();
    write(&mut chip, &[0x06, 0x00, 0x00, 0xCD, 0x00]);
    chip.advance(100 * MS);
    let servo = chip.servos().next().unwrap();
    assert!((servo.angle_deg - 125.0).abs() < 0.1, "{servo:?}");
    chip.advance(1000 * MS);
    assert_eq!(chip.next_timeout(), None);
    let servo = chip.servos().next().unwrap();
    assert!((servo.angle_deg - 140.0).abs() < 0.1, "{servo:?}");
    // Without pulses it stays.
    write(&mut chip, &[0xFA, 0x00, 0x00, 0x00, 0x10]);
    chip.restart(2000 * MS);
    chip.advance(3000 * MS);
    assert_eq!(chip.servos().next().unwrap().angle_deg, servo.angle_deg);
}
