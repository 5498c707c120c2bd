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
const EXCEPTIONS: [&str; 2] = [
    // Options are structs of the driver that derive `Deserialize` of serde 1: a trait of our own would
    // need a macro of our own.
    "amber_driver::options::read<",
    // For a driver in the process of its test, which has tokio 1 anyway to run it. The standard library
    // has no traits for asynchronous streams.
    "amber_driver::serve_on<",
];

/// The traits that programs implement, besides those of drivers, which end with `Driver`. All others
/// must be sealed by a supertrait in a private module `sealed`, so that they can get new methods.
const OPEN: [&str; 1] = [
    // The rows of a table in messages of your own devices.
    "amber_values::Row<",
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
    let mut open = false;
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
        for item in snapshot::open_traits(&now)
            .into_iter()
            .filter(|item| !OPEN.iter().any(|known| item.contains(known)))
        {
            open = true;
            println!("{name}: a trait that is not sealed: {item}");
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
    if open {
        bail!(
            "programs can implement traits that may get new methods, which would break them\n\
             hint: seal the trait, as amber-sdk does with `Outcome`, or add it to OPEN in \
             tests/public-api/src/main.rs"
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
