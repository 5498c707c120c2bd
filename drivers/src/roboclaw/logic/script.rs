//! Fixed sequences of commands that run before anything else. PURE.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Line, Settings, Tuning};
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
    let units = settings.layout.units();
    let ask = |command| {
        units
            .iter()
            .map(move |unit| ScriptStep::Tell(*unit, command))
    };
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
pub(super) fn stand(settings: &Settings) -> Script {
    shout(settings, STAND).collect()
}

/// Stops the wheels and releases the motors.
pub(super) fn release(settings: &Settings) -> Script {
    shout(settings, STAND)
        .chain(shout(settings, Command::Release))
        .collect()
}

fn shout(settings: &Settings, command: Command) -> impl Iterator<Item = ScriptStep> + use<> {
    let units = settings.layout.units().iter();
    units.map(move |unit| ScriptStep::Shout(*unit, command))
}

fn set_up(settings: &Settings) -> Script {
    let units = settings.layout.units();
    let stand = units.iter().map(|unit| ScriptStep::Tell(*unit, STAND));
    let mut script: Script = stand.collect();
    for &unit in units {
        let commands = tuning(settings.tuning).into_iter();
        script.extend(commands.map(|command| ScriptStep::Tell(unit, command)));
        if let Some(tenths) = settings.watchdog_tenths {
            script.push_back(ScriptStep::Try(unit, Command::SetTimeout(tenths)));
            // Firmware without this command needs a pause before the next packet.
            script.push_back(ScriptStep::Wait(2 * PACKET_GAP));
        }
    }
    script
}

/// What to set in a controller. Where only a part of the speed control is stated, the question for the
/// rest comes first: the answer leads to the command.
fn tuning(tuning: Tuning) -> Vec<Command> {
    let motors = [Motor::M1, Motor::M2];
    let mut commands = Vec::new();
    match tuning.whole() {
        Some(pid) => commands.extend(motors.map(|motor| Command::SetPid(motor, pid))),
        None if tuning.has_pid() => commands.extend(motors.map(Command::Pid)),
        None => {}
    }
    if tuning.quadrature {
        commands.extend(motors.map(Command::SetQuadrature));
    }
    commands
}
