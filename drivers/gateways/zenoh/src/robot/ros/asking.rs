//! Asks the programs that have set a goal for signs of life. IO.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use zenoh::Session;
use zenoh::qos::{CongestionControl, Priority};

use super::super::control::Input;
use super::super::orders::Program;
use super::super::vigil::Vigil;
use crate::health::OperatorInfo;
use crate::limits::{ERRAND_LIFE, SIGN_PERIOD};

/// The vigil, shared with the functions that Zenoh calls.
#[derive(Clone)]
pub(super) struct Asking {
    vigil: Arc<Mutex<Vigil>>,
    start: Instant,
    session: Session,
    inputs: mpsc::UnboundedSender<Input>,
    /// All nodes are one program.
    program: Program,
}

impl Asking {
    pub(super) fn new(
        session: Session,
        inputs: mpsc::UnboundedSender<Input>,
        program: Program,
    ) -> Self {
        Self {
            vigil: Arc::default(),
            start: Instant::now(),
            session,
            inputs,
            program,
        }
    }

    pub(super) fn vigil(&self) -> MutexGuard<'_, Vigil> {
        self.vigil.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks while nodes move the robot.
    pub(super) async fn run(self, mut operators: watch::Receiver<Vec<OperatorInfo>>) {
        let instance = format!("{:016x}", self.program.instance);
        let is_driven = |all: &Vec<OperatorInfo>| {
            let mut nodes = all.iter().filter(|it| it.who == self.program.who);
            nodes.any(|it| it.drives && it.instance == instance)
        };
        while operators.wait_for(is_driven).await.is_ok() {
            let sessions: Vec<_> = self.vigil().asked().cloned().collect();
            for session in sessions {
                if let Err(error) = self.ask(session).await {
                    tracing::debug!("no question for a sign of life: {error}");
                }
            }
            sleep(SIGN_PERIOD).await;
        }
    }

    async fn ask(&self, session: String) -> Result<(), zenoh::Error> {
        let (asking, sent) = (self.clone(), Instant::now());
        let key = format!("@/{session}/*");
        (self.session.get(key))
            .timeout(ERRAND_LIFE)
            // A full link is no reason to wait: the next question follows.
            .congestion_control(CongestionControl::Drop)
            .priority(Priority::InteractiveHigh)
            .express(true)
            .callback(move |reply| {
                if reply.result().is_ok() {
                    asking.answered(&session, sent);
                }
            })
            .await
    }

    fn answered(&self, session: &str, sent: Instant) {
        let sign = (self.vigil()).answered(session, sent.duration_since(self.start));
        if let Some(sign) = sign {
            let signed = Input::Signed(self.program.clone(), self.start + sign, None, None);
            // The thread ends when the robot leaves.
            let _ = self.inputs.send(signed);
        }
    }
}
