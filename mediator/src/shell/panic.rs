//! A bug ends the mediator at once, and loudly. IO.
//!
//! A task that panics ends alone, and what is left would be half a mediator
//! that looks alive. Release builds abort anyway; this is for all others, and
//! for the words.

use std::io::{Write, stderr};
use std::panic;
use std::process::abort;

/// From now on a panic in any thread or task ends the process with SIGABRT.
/// Drivers are ended by the guard.
pub fn abort_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        report(panicked);
        let words = "error: this is a bug in amber, and the mediator ends here\n\
                     hint: please report it with the lines above; a service manager starts it again";
        // When nobody reads it, there is nobody to tell.
        let _ = writeln!(stderr(), "{words}");
        abort();
    }));
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use tokio::task::{LocalSet, spawn_local};

    use super::*;

    const IN_CHILD: &str = "AMBER_TEST_OF_PANIC";

    #[tokio::test]
    async fn a_panic_in_a_task_ends_the_process_loudly() {
        if env::var_os(IN_CHILD).is_some() {
            abort_on_panic();
            let task = async { spawn_local(async { panic!("on purpose") }).await };
            let _ = LocalSet::new().run_until(task).await;
            return;
        }
        let this_test = "shell::panic::tests::a_panic_in_a_task_ends_the_process_loudly";
        let output = Command::new(env::current_exe().unwrap())
            .args([this_test, "--exact", "--nocapture"])
            .env(IN_CHILD, "1")
            .output()
            .unwrap();
        let signal = nix::sys::signal::Signal::SIGABRT as i32;
        assert_eq!(output.status.signal(), Some(signal), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains("on purpose") && said.contains("this is a bug"),
            "{said}"
        );
    }
}
