//! Runs a program with its own mediator, for users of a far robot without a mediator. IO.

use std::process::{ExitCode, Stdio};
use std::time::Duration;

use amber_proto::Device;
use amber_terminal::Failure;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long a mediator takes to start and to end, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait for the robot before the program starts anyway, on a busy machine.
const SEARCH: Duration = Duration::from_secs(5);

/// Runs a program whose mediator serves these devices by this driver. Returns its exit code. The
/// program finds the mediator by the environment variable `AMBER_MEDIATOR`.
///
/// # Errors
/// The program or the mediator cannot be started.
pub async fn run(
    devices: &[Device],
    driver: &[String],
    program: &[String],
    stop: impl Future<Output = ()>,
) -> Result<ExitCode, Failure> {
    let mut mediator = Mediator::start(devices, driver).await?;
    mediator.wait_for_devices(devices).await;
    let ended = async {
        let mut child = Command::new(&program[0])
            .args(&program[1..])
            .env("AMBER_MEDIATOR", &mediator.address)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Failure::new(format!("cannot start {}: {error}", program[0])))?;
        tokio::select! {
            status = child.wait() => status.map_err(|error| Failure::new(error.to_string())),
            () = stop => {
                end(&mut child).await;
                Err(Failure::new("interrupted"))
            }
        }
    };
    let status = ended.await;
    end(&mut mediator.process).await;
    let code = status?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

struct Mediator {
    process: Child,
    address: String,
}

impl Mediator {
    async fn start(devices: &[Device], driver: &[String]) -> Result<Self, Failure> {
        let names: Vec<_> = devices.iter().map(ToString::to_string).collect();
        let words: Vec<_> = driver.iter().map(|word| quoted(word)).collect();
        let driver = format!("{}={}", names.join(","), words.join(" "));
        let mut command = Command::new("amber");
        command
            .args(["mediator", "--listen", "127.0.0.1:0", "--driver", &driver])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let failed = |problem: String| {
            Failure::new(format!("cannot start a mediator: {problem}"))
                .hint("check that `amber` is installed and in the PATH")
        };
        let mut process = command.spawn().map_err(|error| failed(error.to_string()))?;
        let (Some(output), Some(log)) = (process.stdout.take(), process.stderr.take()) else {
            return Err(failed("it has no output".to_owned()));
        };
        // Its log is not for the user of the program, unless it ends immediately.
        let log = tokio::spawn(async move {
            let mut lines = BufReader::new(log).lines();
            let mut last = String::new();
            while let Ok(Some(line)) = lines.next_line().await {
                tracing::debug!("mediator: {line}");
                last = line;
            }
            last
        });
        let address = async {
            match listening(output).await {
                Some(address) => Ok(address),
                None => Err(log.await.unwrap_or_default()),
            }
        };
        let address = match timeout(PATIENCE, address).await {
            Ok(Ok(address)) => address,
            Ok(Err(last)) => return Err(failed(format!("it has ended: {last}"))),
            Err(_) => return Err(failed("it does not listen".to_owned())),
        };
        Ok(Self { process, address })
    }

    /// Waits until all devices are there, but at most [`SEARCH`].
    async fn wait_for_devices(&self, devices: &[Device]) {
        let search = async {
            let Ok(client) = amber_client::Client::connect(&self.address).await else {
                return;
            };
            for device in devices {
                let device = client.device(*device);
                while device.ping().await.is_err() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        };
        // The program shows the error of the device.
        let _ = timeout(SEARCH, search).await;
    }
}

/// The address that a mediator announces on its output; `None` if it ends before.
async fn listening(output: impl AsyncRead + Unpin) -> Option<String> {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(address) = line.strip_prefix("listening on ") {
            return Some(address.trim().to_owned());
        }
    }
    None
}

/// Asks a process to end; kills it if it does not.
async fn end(process: &mut Child) {
    if let Some(pid) = process.id() {
        let mut kill = Command::new("kill");
        let _ = kill.args(["-s", "TERM", &pid.to_string()]).status().await;
    }
    if timeout(PATIENCE, process.wait()).await.is_err() {
        let _ = process.kill().await;
    }
}

/// A word for a command line of the mediator, which splits it like a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
