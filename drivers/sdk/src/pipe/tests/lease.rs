//! Leases of a driver that is late, because its machine is busy.

use amber_proto::motion::lease_request::Action;
use amber_proto::motion::{self, LeaseRequest, MotionState};

use super::*;
use crate::motion::{Motion, Moves};
use crate::testing::{Mediator, run};

/// A device that moves.
struct Wheels;

impl Driver for Wheels {
    type Message = DriverMsg;

    fn moves(&self) -> Option<Moves<DriverMsg>> {
        Some(Moves {
            motion: |_| Motion::Moves,
            stop: None,
            refusal: |_, _| None,
            handles_gone_clients: false,
        })
    }

    async fn request(&mut self, _: Request<DriverMsg>) -> Option<DriverMsg> {
        None
    }
}

const PERIOD_MS: u32 = 400;

fn lease(syn: u32, action: Action) -> motion::DriverMsg {
    motion::DriverMsg {
        syn_num: Some(syn),
        lease_request: Some(LeaseRequest {
            action: action.into(),
            name: None,
            period_ms: Some(PERIOD_MS),
        }),
        ..motion::DriverMsg::data()
    }
}

/// The next answer about the lease.
async fn answer(mediator: &mut Mediator) -> MotionState {
    loop {
        let (_, message) = mediator.hear::<motion::DriverMsg>().await;
        if let Some(state) = message.motion_state {
            return state;
        }
    }
}

#[test]
fn a_request_that_waits_in_the_pipe_keeps_the_lease() {
    run(async {
        let (mut mediator, reader, writer) = Mediator::new();
        let serving = serve_on(Wheels, reader, writer);
        let asking = async {
            mediator.ask(1, lease(1, Action::Take)).await;
            assert!(answer(&mut mediator).await.yours());
            // The driver looks at its pipe and at its clock in any order.
            for round in 2..40 {
                mediator.ask(round, lease(round, Action::Keep)).await;
                // The driver does not run until the period is over.
                tokio::time::advance(Duration::from_millis(u64::from(PERIOD_MS) + 20)).await;
                let state = answer(&mut mediator).await;
                assert!(state.yours(), "round {round}: {:?}", state.refused);
            }
        };
        tokio::select! {
            served = serving => panic!("the driver has ended: {served:?}"),
            () = asking => {}
        }
    });
}
