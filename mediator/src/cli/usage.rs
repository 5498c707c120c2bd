//! Reports errors of the command line as `error:` and `hint:`, like all others. PURE.

use amber_proto::DeviceType;

/// Rewrites clap's message about an invalid command line.
pub(super) fn explained(error: &str) -> String {
    let mut text: Vec<&str> = Vec::new();
    let mut hints: Vec<String> = Vec::new();
    let mut usage = None;
    for line in error
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
    {
        if let Some(tip) = line.trim_start().strip_prefix("tip: ") {
            hints.push(tip.to_owned());
        } else if let Some(line) = line.strip_prefix("Usage: ") {
            usage = Some(line);
        } else if !line.starts_with("For more information") {
            text.push(line);
        }
    }
    if error.contains("unknown device type ") {
        let names: Vec<_> = DeviceType::NAMES.iter().map(|(_, name)| *name).collect();
        hints.push(format!(
            "device types are {}; others are numbers, e.g. 77:0",
            names.join(", ")
        ));
    }
    if hints.is_empty() {
        hints.push(match usage {
            Some(usage) => format!("usage: {usage}; `--help` shows more"),
            None => "`--help` shows more".to_owned(),
        });
    }
    let mut out = text.join("\n");
    for hint in hints {
        out += &format!("\nhint: {hint}");
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::Cli;
    use super::*;

    #[test]
    fn invalid_command_lines_give_an_error_and_a_hint() {
        for (line, expected) in [
            (
                "amber statu",
                "error: unrecognized subcommand 'statu'\n\
                 hint: some similar subcommands exist: 'start', 'status'\n",
            ),
            (
                "amber ping",
                "error: the following required arguments were not provided:\n  <DEVICE>\n\
                 hint: usage: amber ping <DEVICE>; `--help` shows more\n",
            ),
            (
                "amber ping spoon",
                "error: invalid value 'spoon' for '<DEVICE>': unknown device type 'spoon'\n\
                 hint: device types are mediator, ninedof, roboclaw, stargazer, hokuyo, dummy, \
                 location, maestro, drive-to-point, collision-avoidance, pid-follow-trajectory, \
                 gateway; others are numbers, e.g. 77:0\n",
            ),
        ] {
            let error = Cli::try_parse_from(line.split(' ')).err().unwrap();
            assert_eq!(explained(&error.to_string()), expected);
        }
    }
}
