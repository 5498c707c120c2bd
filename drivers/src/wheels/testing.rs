//! What the tests of the models share.

use std::time::Duration;

use amber_driver::proto::SynNum;
use amber_driver::{ClientId, Origin};
use amber_values::WheelSpeeds;

use super::{Model, Output};

/// Two clients.
pub(crate) const ALICE: ClientId = ClientId(1);
pub(crate) const BOB: ClientId = ClientId(2);

/// What the logic of a model has told clients and the log.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) notes: Vec<String>,
    pub(crate) answers: Vec<WheelSpeeds>,
    pub(crate) published: Vec<(WheelSpeeds, Duration)>,
}

impl Heard {
    /// Takes what it has to tell now.
    pub(crate) fn listen(&mut self, logic: &mut impl Model) {
        while let Some(output) = logic.poll_output() {
            match output {
                Output::Answer(_, speeds) => self.answers.push(speeds),
                Output::Publish(speeds, age) => self.published.push((speeds, age)),
                Output::Say(note) => self.notes.push(note.to_string()),
            }
        }
    }
}

/// A question of [`ALICE`].
pub(crate) fn question() -> Origin {
    Origin {
        clients: vec![ALICE],
        syn: Some(SynNum(1)),
        ..Origin::default()
    }
}
