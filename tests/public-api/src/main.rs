//! Compares the public API of the crates for users with the snapshots in `snapshots`. See
//! `scripts/public-api`, which runs rustdoc first.

#![expect(clippy::print_stdout, reason = "its output is a report")]

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Parser;

mod snapshot;

/// The crates whose API users see. `amber-proto` is missing: its messages are those of the
/// descriptions in `proto`, whose compatibility has tests of its own.
const CRATES: [&str; 4] = ["amber_sdk", "amber_client", "amber_driver", "amber_values"];

/// The format of rustdoc's JSON that the package `public-api` reads: that of Rust 1.95.
const FORMAT: u64 = 57;

/// What shows types of another package all the same.
const EXCEPTIONS: [&str; 7] = [
    // Options are read by serde, as everybody has it.
    "amber_driver::options::read<",
    // For drivers in the process of a test, and for gateways: streams and channels of tokio 1.
    "amber_driver::serve_on<",
    "amber_driver::serve_until<",
    "amber_driver::serve_many_until(",
    "amber_driver::Link<M>::holder(",
    "amber_client::transport::ChannelTransport::new(",
    "amber_client::lease::Claims::next_due(",
];

/// Compare the public API of Amber's crates with the one that is written down.
#[derive(Debug, Parser)]
struct Arguments {
    /// The folder of rustdoc's JSON files.
    json: PathBuf,
    /// Write the API down as it is now.
    #[arg(long)]
    update: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    for name in CRATES {
        let format = format(&arguments.json.join(name).with_extension("json"))?;
        if format != FORMAT {
            println!(
                "SKIP public API: this Rust writes it as format {format}, and {FORMAT} can be read"
            );
            return Ok(());
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots");
    let mut differs = false;
    let mut foreign = false;
    for name in CRATES {
        let now = public_api(&arguments.json.join(name).with_extension("json"))?;
        let is_exception = |item: &&str| EXCEPTIONS.iter().any(|known| item.contains(known));
        for item in snapshot::foreign(&now)
            .into_iter()
            .filter(|item| !is_exception(item))
        {
            foreign = true;
            println!("{name}: a type of another package: {item}");
        }
        let path = folder.join(name).with_extension("txt");
        if arguments.update {
            fs::write(&path, &now).with_context(|| format!("cannot write {}", path.display()))?;
            println!("{}: {} items", path.display(), now.lines().count());
            continue;
        }
        let before =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        for change in snapshot::changes(&before, &now) {
            differs = true;
            println!("{name}: {change}");
        }
    }
    if foreign {
        bail!(
            "the API shows types of other packages, whose new versions would break programs\n\
             hint: use types of the standard library, `bytes` or `futures-core`, or a type of Amber"
        );
    }
    if differs {
        bail!(
            "the public API is not the one in {}\n\
             hint: read docs/compatibility.md. If the change is wanted, run \
             `scripts/public-api --update` and mention it in CHANGELOG.md",
            folder.display()
        );
    }
    Ok(())
}

/// The format of a JSON file of rustdoc.
fn format(json: &Path) -> Result<u64> {
    let read = fs::read(json).with_context(|| {
        format!(
            "cannot read {}\nhint: `scripts/public-api` writes it",
            json.display()
        )
    })?;
    let read: serde_json::Value = serde_json::from_slice(&read)?;
    read["format_version"]
        .as_u64()
        .with_context(|| format!("{} has no format", json.display()))
}

/// The public items of a crate, sorted, a line each.
fn public_api(json: &Path) -> Result<String> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| format!("cannot read {}", json.display()))?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}
