//! What a USB device is, by its ids. PURE.

use amber_drivers::probe::Kind;

use super::found::Usb;

/// A row of the table: what has these ids.
struct Model {
    vendor: u16,
    /// Empty: all products of the vendor.
    products: &'static [u16],
    /// The texts of the device contain this, in lower case. Some ids are borrowed.
    text: &'static str,
    meaning: Meaning,
}

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meaning {
    /// A device with a driver, and the options that follow from the model.
    Device(Kind, &'static [&'static str]),
    /// A cable or an adapter: anything may be behind it.
    Adapter,
    /// A device without a driver in Amber, and its name.
    NoDriver(&'static str),
    /// A gamepad. It may be that of an operator, so it is not configured.
    Gamepad,
    /// A camera that Linux has no file for.
    Camera,
    /// Another port of a device that has one already.
    Second(&'static str),
}

use Meaning::{Adapter, Camera, Device, Gamepad, NoDriver};

const ARDUINO: Meaning = NoDriver("an Arduino or a similar board, which runs a program of its own");

const fn model(vendor: u16, products: &'static [u16], meaning: Meaning) -> Model {
    Model {
        vendor,
        products,
        text: "",
        meaning,
    }
}

/// The first row that fits counts.
static MODELS: &[Model] = &[
    model(0x15d1, &[0x0000], Device(Kind::Hokuyo, &[])),
    Model {
        text: "roboclaw",
        // The ids are those of an example of Atmel.
        ..model(0x03eb, &[0x2404], Device(Kind::Roboclaw, &[]))
    },
    model(0x1ffb, &[0x0089], Device(Kind::Maestro, &["--servos=6"])),
    model(0x1ffb, &[0x008a], Device(Kind::Maestro, &["--servos=12"])),
    model(0x1ffb, &[0x008b], Device(Kind::Maestro, &["--servos=18"])),
    model(0x1ffb, &[0x008c], Device(Kind::Maestro, &["--servos=24"])),
    model(0x1209, &[0x0d32], Device(Kind::Odrive, &[])),
    // A VESC, or another board with an STM32.
    model(0x0483, &[0x5740], Adapter),
    model(
        0x1546,
        &[0x01a4, 0x01a5, 0x01a6, 0x01a7, 0x01a8, 0x01a9],
        Device(Kind::Gps, &[]),
    ),
    model(0x1546, &[], NoDriver("a modem of u-blox")),
    model(0x19a2, &[], NoDriver("a SICK laser scanner")),
    model(0x2341, &[], ARDUINO),
    model(0x2a03, &[], ARDUINO),
    model(0x16c0, &[0x0483], ARDUINO),
    model(0x2e8a, &[], ARDUINO),
    model(0x303a, &[], ARDUINO),
    // CH340, CH343, CP2102, FTDI, Prolific.
    model(0x1a86, &[0x5523, 0x7522, 0x7523, 0x55d3, 0x55d4], Adapter),
    model(0x10c4, &[0xea60], Adapter),
    model(0x0403, &[], Adapter),
    model(0x067b, &[], Adapter),
    model(0x045e, &[0x028e, 0x02d1, 0x02dd, 0x02ea, 0x0b12], Gamepad),
    model(0x046d, &[0xc216, 0xc219, 0xc21d, 0xc21f], Gamepad),
    model(0x054c, &[0x05c4, 0x09cc, 0x0ce6, 0x0df2], Gamepad),
    model(0x057e, &[0x2009], Gamepad),
    model(0x045e, &[0x02ae], NoDriver("a Kinect camera")),
    model(0x2bc5, &[], NoDriver("an Orbbec depth camera")),
];

/// What a USB device is; `None` if the table does not know it.
pub(super) fn meaning(usb: &Usb) -> Option<Meaning> {
    let text = usb.text.to_lowercase();
    let fits = |model: &&Model| {
        let is_product = model.products.is_empty() || model.products.contains(&usb.product);
        model.vendor == usb.vendor && is_product && text.contains(model.text)
    };
    let found = MODELS.iter().find(fits).map(|model| model.meaning);
    match found {
        // The first port takes commands, the other one is connected to pins.
        Some(Device(Kind::Maestro, _)) if usb.interface.is_some_and(|number| number > 0) => Some(
            Meaning::Second("the second port of the Maestro, for its pins TX and RX"),
        ),
        None if usb.is_camera => Some(Camera),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usb(vendor: u16, product: u16, text: &str) -> Usb {
        Usb {
            vendor,
            product,
            text: text.to_owned(),
            ..Usb::default()
        }
    }

    #[test]
    fn devices_are_known_by_their_ids() {
        let found = |vendor, product, text| meaning(&usb(vendor, product, text));
        assert_eq!(
            found(0x15d1, 0, "Hokuyo Data Flex for USB URG-Series USB Driver"),
            Some(Device(Kind::Hokuyo, &[]))
        );
        assert_eq!(
            found(0x1ffb, 0x008a, "Pololu Corporation"),
            Some(Device(Kind::Maestro, &["--servos=12"]))
        );
        let receiver = "u-blox AG - www.u-blox.com u-blox GNSS receiver";
        assert_eq!(
            found(0x1546, 0x01a9, receiver),
            Some(Device(Kind::Gps, &[]))
        );
        assert_eq!(found(0x10c4, 0xea60, "Silicon Labs CP2102"), Some(Adapter));
        assert_eq!(found(0x2341, 0x0043, "Arduino Uno"), Some(ARDUINO));
        assert_eq!(found(0x1d6b, 2, "Linux Foundation root hub"), None);
    }

    #[test]
    fn no_row_hides_another_one() {
        for model in MODELS {
            let product = model.products.first().copied().unwrap_or(0xffff);
            let found = meaning(&usb(model.vendor, product, model.text));
            assert_eq!(
                found,
                Some(model.meaning),
                "{:04x}:{product:04x}",
                model.vendor
            );
        }
    }

    #[test]
    fn borrowed_ids_count_only_with_the_right_text() {
        let found = |text| meaning(&usb(0x03eb, 0x2404, text));
        let roboclaw = Some(Device(Kind::Roboclaw, &[]));
        assert_eq!(found("03eb USB Roboclaw 2x30A"), roboclaw);
        assert_eq!(found("LUFA CDC Demo"), None);
    }

    #[test]
    fn the_second_port_of_a_maestro_and_cameras_are_told_apart() {
        let second = Usb {
            interface: Some(2),
            ..usb(0x1ffb, 0x0089, "")
        };
        assert!(matches!(meaning(&second), Some(Meaning::Second(_))));
        let camera = Usb {
            is_camera: true,
            ..usb(0x046d, 0x082d, "HD Pro Webcam C920")
        };
        assert_eq!(meaning(&camera), Some(Camera));
    }
}
