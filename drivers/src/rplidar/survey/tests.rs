//! Surveys of scanners whose answers are known.

use super::*;

/// The answers of a real A1M8 with firmware 1.29.
const INFO: [u8; 20] = [
    0x18, 0x1D, 0x01, 0x07, 0x92, 0xD8, 0xED, 0x93, 0xC0, 0xEA, 0x98, 0xC9, 0xA5, 0xE6, 0x98, 0xF2,
    0x07, 0x06, 0x46, 0x69,
];
const MODES: [(&str, u32, u8); 5] = [
    ("Standard", 508, 0x81),
    ("Express", 254, 0x82),
    ("Boost", 127, 0x84),
    ("Sensitivity", 127, 0x84),
    ("Stability", 201, 0x84),
];

fn answer_of_a1(question: Question) -> Vec<u8> {
    let mode = |number: u16| MODES[usize::from(number)];
    match question {
        Question::Info => INFO.to_vec(),
        Question::Health => vec![0, 0, 0],
        Question::SampleTimes => vec![0xFC, 1, 0xFE, 0],
        Question::Board => vec![0; 4],
        Question::UsualSpeed => vec![0x58, 2, 0x94, 2],
        Question::ModeCount => vec![5, 0],
        Question::TypicalMode => vec![3, 0],
        Question::Name(number) => [mode(number).0.as_bytes(), &[0]].concat(),
        Question::SampleTime(number) => (mode(number).1 * 256).to_le_bytes().to_vec(),
        Question::MaxDistance(_) => 3_072_u32.to_le_bytes().to_vec(),
        Question::Answer(number) => vec![mode(number).2],
    }
}

/// Asks all questions; `None` is no answer.
fn survey(
    model: Option<Product>,
    mode: Option<&str>,
    answer: impl Fn(Question) -> Option<Vec<u8>>,
) -> Result<Plan, String> {
    let mut survey = Survey::new(model, mode);
    while let Some(question) = survey.question() {
        match answer(question) {
            Some(data) => survey.handle(&data)?,
            None => assert!(survey.handle_silence(), "{question:?}"),
        }
    }
    survey.plan()
}

fn a1(mode: Option<&str>) -> Result<Plan, String> {
    survey(None, mode, |question| Some(answer_of_a1(question)))
}

#[test]
fn the_typical_mode_of_a_real_a1_is_found() {
    let plan = a1(None).unwrap();
    assert_eq!(
        (plan.product, &*plan.name, &*plan.firmware),
        (Product::A1, "A1M8", "1.29")
    );
    assert_eq!(plan.serial, "92D8ED93C0EA98C9A5E698F207064669");
    assert_eq!((&*plan.mode, plan.format), ("Sensitivity", Format::Ultra));
    assert_eq!(plan.start, wire::express_scan(3));
    assert_eq!(plan.sample_time, Duration::from_micros(127));
    assert_eq!((plan.max_mm, plan.motor.clone()), (Some(12_000), None));
    assert_eq!(a1(Some("typical")), Ok(plan));
}

#[test]
fn a_mode_is_chosen_by_its_name() {
    let plan = a1(Some("stability")).unwrap();
    assert_eq!(
        (plan.start, &*plan.mode),
        (wire::express_scan(4), "Stability")
    );
    let plan = a1(Some("standard")).unwrap();
    assert_eq!(
        (plan.start, plan.format),
        (wire::SCAN.to_vec(), Format::Nodes)
    );
    assert_eq!(plan.sample_time, Duration::from_micros(508));
    assert_eq!(
        a1(Some("fast")).unwrap_err(),
        "the scanner has no mode fast, but Standard, Express, Boost, Sensitivity, Stability: \
         check --mode"
    );
}

#[test]
fn old_firmware_describes_no_modes() {
    for (minor, mode, expected) in [
        (20, None, Ok("Express")),
        (20, Some("standard"), Ok("Standard")),
        (15, None, Ok("Standard")),
        (
            15,
            Some("Express"),
            Err("the scanner has no mode Express, but Standard: check --mode"),
        ),
        (
            20,
            Some("Boost"),
            Err("the scanner has no mode Boost, but Standard, Express: check --mode"),
        ),
    ] {
        let plan = survey(None, mode, |question| match question {
            Question::Info => Some([&[0x18, minor][..], &INFO[2..]].concat()),
            Question::Health => Some(vec![1, 0, 0]),
            Question::SampleTimes if minor >= 17 => Some(answer_of_a1(question)),
            _ => panic!("it would not know {question:?}"),
        });
        let found = plan.as_ref().map(|it| &*it.mode).map_err(|error| &**error);
        assert_eq!(found, expected, "{minor} {mode:?}");
        if found == Ok("Express") {
            let plan = plan.unwrap();
            assert_eq!(plan.start, wire::express_scan(0));
            assert_eq!(plan.sample_time, Duration::from_micros(254));
        }
    }
}

#[test]
fn motors_are_started_by_what_the_model_needs() {
    let plan = |model: u8, board: Option<u8>| {
        survey(None, None, |question| match question {
            Question::Info => Some([&[model][..], &INFO[1..]].concat()),
            Question::Board => board.map(|flags| vec![flags, 0, 0, 0]),
            _ => Some(answer_of_a1(question)),
        })
        .unwrap()
    };
    let pwm = Some((wire::motor_pwm(660), wire::motor_pwm(0)));
    assert_eq!(plan(0x28, Some(1)).motor, pwm);
    assert_eq!(plan(0x28, Some(0)).motor, None);
    assert_eq!(plan(0x28, None).motor, None, "the board does not answer");
    let rpm = Some((wire::motor_rpm(600), wire::motor_rpm(0)));
    assert_eq!(plan(0x71, None).motor, rpm);
    assert_eq!(plan(0x41, None).motor, None);
}

#[test]
fn another_scanner_is_named() {
    let with = |model: u8, wanted| {
        survey(wanted, None, |question| match question {
            Question::Info => Some([&[model][..], &INFO[1..]].concat()),
            _ => Some(answer_of_a1(question)),
        })
    };
    assert_eq!(
        with(0x28, Some(Product::A1)).unwrap_err(),
        "the scanner is an RPLIDAR A2M8, not A1: check --model and --port"
    );
    let unknown = with(0x06, None).unwrap_err();
    assert!(
        unknown.contains("model 0x06, which is no known RPLIDAR"),
        "{unknown}"
    );
    assert_eq!(with(0x96, Some(Product::S3)).unwrap().name, "S3 (0x96)");
}

#[test]
fn a_protection_stop_and_silence_are_told() {
    let mut survey = Survey::new(None, None);
    survey.handle(&INFO).unwrap();
    survey.handle(&[2, 4, 0]).unwrap();
    assert_eq!(survey.fault(), Some(4));
    assert!(
        !Survey::new(None, None).handle_silence(),
        "each scanner knows this"
    );
}

#[test]
fn answers_that_say_nothing_do_no_harm() {
    // A mode that this driver cannot read, times of zero, and echoes without a value.
    let unknown = survey(None, None, |question| match question {
        Question::Answer(_) => Some(vec![0x83]),
        _ => Some(answer_of_a1(question)),
    });
    let unknown = unknown.unwrap_err();
    assert_eq!(
        unknown,
        "the mode Sensitivity sends data of type 83: choose another --mode"
    );
    let plan = survey(None, None, |question| match question {
        Question::SampleTime(_) | Question::MaxDistance(_) => Some(vec![0; 4]),
        Question::Name(_) => Some(Vec::new()),
        _ => Some(answer_of_a1(question)),
    });
    let plan = plan.unwrap();
    assert_eq!((&*plan.mode, plan.max_mm), ("mode 3", None));
    assert_eq!(plan.sample_time, Duration::from_micros(254));
}
