//! The program around `#[amber_sdk::main]`: runtime, robot, Ctrl-C and exit code. IO.

use std::error::Error as StdError;
use std::process::ExitCode;

use tokio::runtime::Builder;

use crate::{Error, Robot};

/// The exit code of a program that Ctrl-C has ended, as shells have it.
const INTERRUPTED: u8 = 130;

/// What a program may return: nothing, or a [`Result`](crate::Result) with any error.
///
/// It is sealed: other packages cannot implement it.
pub trait Outcome: sealed::Outcome {}

mod sealed {
    use super::StdError;

    pub trait Outcome {
        fn failure(self) -> Option<Box<dyn StdError>>;
    }
}

impl Outcome for () {}

impl sealed::Outcome for () {
    fn failure(self) -> Option<Box<dyn StdError>> {
        None
    }
}

impl<E: Into<Box<dyn StdError>>> Outcome for std::result::Result<(), E> {}

impl<E: Into<Box<dyn StdError>>> sealed::Outcome for std::result::Result<(), E> {
    fn failure(self) -> Option<Box<dyn StdError>> {
        self.err().map(Into::into)
    }
}

/// Connects to a robot, runs the program, and leaves the robot: what
/// [`#[amber_sdk::main]`](crate::main) does with `main`. It is for programs whose `main` does something
/// before, such as reading arguments.
///
/// - The robot is that of [`Robot::here`]: the environment variable `AMBER_MEDIATOR` says where.
/// - Everything runs in one thread, on a runtime of tokio.
/// - When the program ends, or at Ctrl-C, the client leaves: what it has set in motion stops.
/// - An error is printed to stderr, with a hint if it is Amber's, and the exit code is 1. After Ctrl-C,
///   the exit code is 130.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     let words = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
///     amber_sdk::run(async |robot| {
///         robot.dummy(0).message(&words).await
///     })
/// }
/// ```
///
/// # Panics
/// Within a runtime of tokio.
pub fn run<T: Outcome>(program: impl AsyncFnOnce(Robot) -> T) -> ExitCode {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    runtime.block_on(async {
        let robot = match Robot::here().await {
            Ok(robot) => robot,
            Err(error) => return failed(&error),
        };
        let client = robot.client().clone();
        let ended = tokio::select! {
            outcome = program(robot) => Some(outcome),
            _ = tokio::signal::ctrl_c() => None,
        };
        client.close().await;
        match ended.map(sealed::Outcome::failure) {
            Some(None) => ExitCode::SUCCESS,
            Some(Some(error)) => failed(&*error),
            None => ExitCode::from(INTERRUPTED),
        }
    })
}

#[allow(clippy::print_stderr)] // For people.
fn failed(error: &(dyn StdError + 'static)) -> ExitCode {
    eprintln!("{}", explained(error));
    ExitCode::FAILURE
}

/// The error with its causes, and the hint of the first one of Amber.
fn explained(error: &(dyn StdError + 'static)) -> String {
    if let Some(error) = error.downcast_ref::<Error>() {
        return error.explained();
    }
    let mut text = format!("error: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        if let Some(hint) = error.downcast_ref::<Error>().and_then(Error::hint) {
            return format!("{text}\nhint: {hint}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::io;
    use std::sync::Arc;

    use super::sealed::Outcome;
    use super::*;

    #[derive(Debug)]
    struct Wrapped(Error);

    impl fmt::Display for Wrapped {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the tour has ended")
        }
    }

    impl StdError for Wrapped {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(&self.0)
        }
    }

    fn unreachable() -> Error {
        Error::Unreachable {
            mediator: "10.0.0.1".into(),
            source: Arc::new(io::Error::other("no route")),
        }
    }

    #[test]
    fn errors_are_explained() {
        let own = explained(&unreachable());
        assert!(
            own.starts_with("error: no mediator at 10.0.0.1: no route\nhint: "),
            "{own}"
        );
        let wrapped = explained(&Wrapped(unreachable()));
        let start = "error: the tour has ended: no mediator at 10.0.0.1: no route\nhint: check";
        assert!(wrapped.starts_with(start), "{wrapped}");
        let other = explained(&io::Error::other("a disk is full"));
        assert_eq!(other, "error: a disk is full");
    }

    #[test]
    fn programs_return_nothing_or_a_result_with_any_error() {
        assert!(().failure().is_none());
        assert!(Ok::<_, Error>(()).failure().is_none());
        let boxed: Result<(), Box<dyn StdError>> = Err("this went wrong".into());
        assert_eq!(boxed.failure().unwrap().to_string(), "this went wrong");
        let text = Err::<(), _>("so did this").failure();
        assert_eq!(text.unwrap().to_string(), "so did this");
    }
}
