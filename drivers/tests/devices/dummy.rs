//! Tests that the built-in Dummy fulfils the contract of a Dummy.

use amber_driver::devices::dummy;
use amber_drivers::dummy::{Dummy, Options};
use tokio::io::duplex;

#[tokio::test(start_paused = true)]
async fn the_dummy_fulfils_its_contract() {
    let (to_driver, reader) = duplex(4096);
    let (writer, from_driver) = duplex(4096);
    let dummy = dummy::driver(Dummy::new(Options { period_ms: 100 }));
    let (served, ()) = tokio::join!(
        amber_driver::serve_on(dummy, reader, writer),
        super::common::check_dummy(from_driver, to_driver),
    );
    served.unwrap();
}
