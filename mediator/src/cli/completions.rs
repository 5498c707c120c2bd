//! `amber completions`: scripts for shells. PURE.
//!
//! The commands and their options come from clap. Devices, requests and arguments come from
//! `amber complete`, which the scripts of bash, zsh and fish call.

use clap::Command;
use clap_complete::Shell;

/// The script for a shell.
pub(crate) fn script(shell: Shell, command: &mut Command) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, command, "amber", &mut bytes);
    let script = String::from_utf8_lossy(&bytes).into_owned();
    match shell {
        Shell::Bash => script + BASH,
        Shell::Fish => script + FISH,
        Shell::Zsh => zsh(&script),
        _ => script,
    }
}

/// Bash also ends words at `:` and `=`, and replaces only the part after them. The words are
/// therefore read from the line, and the part that bash keeps is cut off from the candidates.
const BASH: &str = r#"
_amber_described() {
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
    if [[ ${#COMPREPLY[@]} -eq 0 ]]; then
        _amber "$@"
    elif [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -F _amber_described -o bashdefault -o default amber
"#;

const FISH: &str = r#"
complete -c amber -n "__fish_seen_subcommand_from bench call describe ping record restart start status stop trace watch" -f -a "(amber complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)"
"#;

const ZSH: &str = r#"_amber() {
    local -a found names
    local line
    for line in ${(f)"$(amber complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
        case "${line%%$'\t'*}" in
            *=) names+=("${line%%$'\t'*}:${line#*$'\t'}") ;;
            *) found+=("${line%%$'\t'*}:${line#*$'\t'}") ;;
        esac
    done
    if (( $#found + $#names )); then
        _describe 'argument' found
        _describe 'name' names -S ''
    else
        _amber_options "$@"
    fi
}

"#;

/// Makes the function of clap the fallback.
fn zsh(script: &str) -> String {
    let script = script.replacen("_amber() {", "_amber_options() {", 1);
    script.replacen(
        "if [ \"$funcstack[1]\"",
        &format!("{ZSH}if [ \"$funcstack[1]\""),
        1,
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_script_asks_for_candidates() {
        let script = |shell| script(shell, &mut Cli::command());
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            assert!(script(shell).contains("amber complete -- "), "{shell}");
        }
        let zsh = script(Shell::Zsh);
        for words in [
            "_amber_options() {",
            "\n_amber() {\n",
            "compdef _amber amber",
        ] {
            assert_eq!(zsh.matches(words).count(), 1, "{words}");
        }
    }
}
