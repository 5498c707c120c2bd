//! `amber completions`: scripts for shells, and the candidates that they ask for. IO.
//!
//! Clap's engine knows commands, options and the place of each word. What it does not know comes from
//! the mediator and from descriptions: devices, requests and arguments. Files are left to the shell.

use std::any::TypeId;
use std::ffi::OsStr;
use std::iter::once;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use amber_cli::complete::{Candidate, Line, after_device, devices};
use amber_cli::names;
use amber_client::MediatorAddress;
use amber_proto::Device;
use clap::{Arg, ArgMatches, Command, CommandFactory, Parser, ValueHint};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate, complete};

use super::Cli;

/// The script for a shell.
pub(crate) fn script(shell: Shell, command: &mut Command) -> String {
    match shell {
        Shell::Bash => BASH.to_owned(),
        Shell::Fish => FISH.to_owned(),
        Shell::Zsh => ZSH.to_owned(),
        _ => {
            let mut bytes = Vec::new();
            clap_complete::generate(shell, command, "amber", &mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        }
    }
}

/// Candidates for the last word of a command line (without `amber`).
pub(crate) fn candidates(words: &[String]) -> Vec<Candidate> {
    let Some((last, before)) = words.split_last() else {
        return Vec::new();
    };
    let amber = "amber".to_owned();
    let matches = matches(once(&amber).chain(before), names::FOR_COMPLETION);
    let line = Arc::new(line(&matches));
    let mut command = described(Cli::command(), &line);
    let all = once(&amber).chain(words).map(Into::into).collect();
    let found = complete(&mut command, all, words.len(), None).unwrap_or_default();
    let is_option = |it: &CompletionCandidate| it.get_value().as_encoded_bytes().starts_with(b"-");
    // Options hide the rest, unless they are wanted. Where the rest is unknown, it may be a file.
    let hides_options = last.is_empty() && takes_words(&command, &matches);
    (found.iter())
        .filter(|it| !(it.is_hide_set() || hides_options && is_option(it)))
        .map(|it| Candidate {
            word: it.get_value().to_string_lossy().into_owned(),
            about: it.get_help().map(ToString::to_string).unwrap_or_default(),
        })
        .collect()
}

/// Whether the command of a line takes anything but options.
fn takes_words(command: &Command, matches: &ArgMatches) -> bool {
    let inner = matches.subcommand();
    match inner.and_then(|(name, inner)| Some((command.find_subcommand(name)?, inner))) {
        Some((command, inner)) => takes_words(command, inner),
        None => command.has_subcommands() || command.get_positionals().next().is_some(),
    }
}

/// What can be read of a command line that may be incomplete. Names of users' devices are known from
/// here on.
pub(super) fn matches<S: AsRef<OsStr>>(
    words: impl Iterator<Item = S> + Clone,
    patience: Duration,
) -> ArgMatches {
    let read = || {
        let words = words.clone().map(|word| word.as_ref().to_owned());
        let read = Cli::command()
            .ignore_errors(true)
            .try_get_matches_from(words);
        read.unwrap_or_default()
    };
    let first = read();
    if names_unknown_device(words.clone()) {
        names::learn(&sources(&first), patience);
        return read();
    }
    first
}

fn names_unknown_device<S: AsRef<OsStr>>(words: impl Iterator<Item = S>) -> bool {
    let read = Cli::try_parse_from(words.map(|word| word.as_ref().to_owned()));
    read.err().is_some_and(|error| is_about_name(&error))
}

/// Whether a name of a device is unknown.
pub(super) fn is_about_name(error: &clap::Error) -> bool {
    error.to_string().contains("unknown device type")
}

/// Where a command line says that names come from.
fn sources(matches: &ArgMatches) -> names::Sources {
    let verb = verb(matches);
    names::Sources {
        files: paths(verb, "proto"),
        recordings: recordings(verb),
        mediator: mediator(verb),
    }
}

fn recordings(verb: &ArgMatches) -> Vec<PathBuf> {
    let ids = ["file", "files"].into_iter();
    ids.flat_map(|id| paths(verb, id)).collect()
}

fn line(matches: &ArgMatches) -> Line {
    let verb = verb(matches);
    let words = ["request", "stream", "args"].into_iter().flat_map(|id| {
        let words = verb.try_get_many::<String>(id).ok().flatten();
        words.into_iter().flatten().cloned()
    });
    Line {
        mediator: mediator(verb),
        proto: paths(verb, "proto"),
        recordings: recordings(verb),
        device: verb.try_get_one::<Device>("device").ok().flatten().copied(),
        words: words.collect(),
    }
}

/// The values of the command.
fn verb(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, verb)| verb)
}

fn mediator(matches: &ArgMatches) -> MediatorAddress {
    let given = matches.try_get_one::<MediatorAddress>("mediator");
    given.ok().flatten().cloned().unwrap_or_default()
}

fn paths(matches: &ArgMatches, id: &str) -> Vec<PathBuf> {
    let given = matches.try_get_many::<PathBuf>(id).ok().flatten();
    given.into_iter().flatten().cloned().collect()
}

/// The command and its subcommands with candidates for values.
fn described(command: Command, line: &Arc<Line>) -> Command {
    let verbs: Vec<_> = command
        .get_subcommands()
        .map(|it| it.get_name().to_owned())
        .collect();
    let command = verbs.into_iter().fold(command, |command, verb| {
        command.mut_subcommand(verb, |verb| described(verb, line))
    });
    let verb = command.get_name().to_owned();
    command.mut_args(|arg| with_candidates(&verb, arg, line))
}

fn with_candidates(verb: &str, arg: Arg, line: &Arc<Line>) -> Arg {
    let kind = arg.get_value_parser().type_id();
    if kind == TypeId::of::<PathBuf>() {
        // Shells know best how to complete and quote their names.
        return arg.value_hint(ValueHint::Other);
    }
    let of_line = |find: fn(&Line) -> Vec<Candidate>| {
        let line = line.clone();
        ArgValueCandidates::new(move || find(&line).into_iter().map(shown).collect())
    };
    if kind == TypeId::of::<Device>() {
        return arg.add(of_line(devices));
    }
    match (verb, arg.get_id().as_str()) {
        ("call", "request" | "args") => arg.add(of_line(|line| after_device(line, false))),
        ("watch", "stream" | "args") => arg.add(of_line(|line| after_device(line, true))),
        _ => arg,
    }
}

fn shown(candidate: Candidate) -> CompletionCandidate {
    let Candidate { word, about } = candidate;
    CompletionCandidate::new(word).help((!about.is_empty()).then(|| about.into()))
}

/// Bash also ends words at `:` and `=`, and replaces only the part after them. The words are
/// therefore read from the line, and the part that bash keeps is cut off from the candidates.
const BASH: &str = r#"_amber() {
    local line kept= breaks=
    local -a words
    COMPREPLY=()
    read -ra words <<<"${COMP_LINE:0:COMP_POINT}."
    words[-1]=${words[-1]%.}
    # Variables may stand before the command.
    while [[ ${#words[@]} -gt 1 && ${words[0]} != "$1" ]]; do
        words=("${words[@]:1}")
    done
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+="="
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=":"
    [[ $breaks ]] && kept=${words[-1]%"${words[-1]##*[$breaks]}"}
    while IFS= read -r line; do
        line=${line%%$'\t'*}
        COMPREPLY+=("${line#"$kept"}")
    done < <(amber complete -- "${words[@]:1}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -F _amber -o bashdefault -o default amber
"#;

const FISH: &str = r#"function __amber_candidates
    set -l found (amber complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c amber -f -a "(__amber_candidates)"
"#;

const ZSH: &str = r#"#compdef amber

_amber() {
    local -a found names
    local line word
    for line in ${(f)"$(amber complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
        word="${${line%%$'\t'*}//:/\\:}"
        case "$word" in
            *=) names+=("$word:${line#*$'\t'}") ;;
            *) found+=("$word:${line#*$'\t'}") ;;
        esac
    done
    if (( $#found + $#names )); then
        _describe 'argument' found
        _describe 'name' names -S ''
    else
        _files
    fi
}

if [ "$funcstack[1]" = "_amber" ]; then
    _amber "$@"
else
    compdef _amber amber
fi
"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        let line: Vec<_> = line.split(' ').map(str::to_owned).collect();
        candidates(&line).into_iter().map(|it| it.word).collect()
    }

    /// No mediator listens at this address.
    const NOWHERE: &str = "-m 127.0.0.1:1";

    #[test]
    fn each_script_asks_for_candidates() {
        let script = |shell| script(shell, &mut Cli::command());
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            assert!(script(shell).contains("amber complete -- "), "{shell}");
        }
        assert!(script(Shell::Elvish).contains("devices"));
    }

    #[test]
    fn words_are_completed_after_every_option() {
        for (line, expected) in [
            ("call roboc", &["roboclaw"][..]),
            ("--json -m 127.0.0.1:1 status ho", &["hokuyo"]),
            ("restart ho", &["hokuyo"]),
            ("bench --svg f.svg ho", &["hokuyo"]),
            ("call roboclaw s", &["speeds", "stop"]),
            ("call maestro:1 set-a", &["set-angle", "set-angles"]),
            ("call --timeout 2 maestro set-angle 3 ", &["angle="]),
            ("watch hokuyo ", &["scans"]),
            ("record -o drive.mcap --for 5 dummy ho", &["hokuyo"]),
            ("export drive.mcap --csv roboc", &["roboclaw"]),
            ("completions fi", &["fish"]),
            ("watch --per", &["--period"]),
            ("recov", &["recover"]),
            ("call --proto ", &[]),
            ("export dr", &[]),
            ("call 77 ", &[]),
            ("export ", &[]),
        ] {
            let line = match line.contains("-m ") {
                true => line.to_owned(),
                false => format!("{NOWHERE} {line}"),
            };
            assert_eq!(words(&line), expected, "{line}");
        }
        let commands = words("");
        assert!(commands.contains(&"devices".to_owned()), "{commands:?}");
        assert!(!commands.contains(&"guard".to_owned()), "hidden");
        assert!(!commands.contains(&"--json".to_owned()), "not wanted");
        let options = words("devices ");
        assert!(options.contains(&"--watch".to_owned()), "{options:?}");
    }
}
