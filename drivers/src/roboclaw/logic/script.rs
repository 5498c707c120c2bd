//! Fixed sequences of commands that run before anything else. PURE.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Line, Settings};
use crate::roboclaw::protocol::{Command, Motor, PACKET_GAP};
use crate::roboclaw::units::Unit;

/// How long the reset line is held active: 0.5 ms, as in the original.
const RESET_PULSE: Duration = Duration::from_micros(500);

const STAND: Command = Command::Drive { m1: 0, m2: 0 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptStep {
    Tell(Unit, Command),
    /// Firmware without this command is accepted.
    Try(Unit, Command),
    /// Sent once; the result does not matter.
    Shout(Unit, Command),
    Set(Line, bool),
    Wait(Duration),
}

pub(super) type Script = VecDeque<ScriptStep>;

/// Identifies the controllers and sends the settings.
pub(super) fn start(settings: &Settings) -> Script {
    let questions = [Command::Version, Command::Status];
    let ask = |command| Unit::BOTH.map(|unit| ScriptStep::Tell(unit, command));
    let mut script: Script = questions.into_iter().flat_map(ask).collect();
    script.extend(set_up(settings));
    script
}

/// Pulses the reset line and sends the settings again.
pub(super) fn reset(settings: &Settings) -> Script {
    let mut script = Script::from([
        ScriptStep::Set(Line::Reset, true),
        ScriptStep::Wait(RESET_PULSE),
        ScriptStep::Set(Line::Reset, false),
        ScriptStep::Wait(settings.reset_delay),
    ]);
    script.extend(set_up(settings));
    script
}

/// Stops the wheels of every reachable controller.
pub(super) fn stand() -> Script {
    shout(STAND).into()
}

/// Stops the wheels and releases the motors.
pub(super) fn release() -> Script {
    [shout(STAND), shout(Command::Release)]
        .into_iter()
        .flatten()
        .collect()
}

fn shout(command: Command) -> [ScriptStep; 2] {
    Unit::BOTH.map(|unit| ScriptStep::Shout(unit, command))
}

fn set_up(settings: &Settings) -> Script {
    let pid = settings.pid;
    let mut script = Script::from(Unit::BOTH.map(|unit| ScriptStep::Tell(unit, STAND)));
    for unit in Unit::BOTH {
        let commands = [
            Command::SetPid(Motor::M1, pid),
            Command::SetPid(Motor::M2, pid),
            Command::SetQuadrature(Motor::M1),
            Command::SetQuadrature(Motor::M2),
        ];
        script.extend(commands.map(|command| ScriptStep::Tell(unit, command)));
        if let Some(tenths) = settings.watchdog_tenths {
            script.push_back(ScriptStep::Try(unit, Command::SetTimeout(tenths)));
            // Firmware without this command needs a pause before the next packet.
            script.push_back(ScriptStep::Wait(2 * PACKET_GAP));
        }
    }
    script
}
