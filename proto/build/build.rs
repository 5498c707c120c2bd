//! Lists the `.proto` files of Amber's own devices, which are built into this crate. `proto` is a link
//! to them, so that a package of this crate contains them. Git for Windows may make a file of a link,
//! so a clone does without it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, error, fs};

fn main() -> Result<(), Box<dyn error::Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let link = here.join("proto");
    let folder = match link.is_dir() {
        true => link,
        false => here.join(".."),
    };
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "proto")
    });
    files.sort();

    let mut list = String::from("[\n");
    for path in files {
        println!("cargo:rerun-if-changed={}", path.display());
        let name = path.file_name().ok_or("a file without a name")?;
        writeln!(list, "    ({name:?}, include_str!({path:?})),")?;
    }
    list.push(']');
    fs::write(Path::new(&env::var("OUT_DIR")?).join("ours.rs"), list)?;
    Ok(())
}
