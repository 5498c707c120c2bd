//! What registries show of a package: an address that works, a README whose links work there, and
//! whether it is internal.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};

use crate::common::root;

/// The crates for programs of others. The rest are internal.
const FOR_OTHERS: [&str; 6] = [
    "amber-driver",
    "amber-mediator",
    "amber-proto",
    "amber-sdk",
    "amber-values",
    "amber-zenoh",
];
const ZENOH: &str = "drivers/gateways/zenoh";
const PYTHON: &str = "client-sdk/python";
const JAVASCRIPT: &str = "client-sdk/js";

/// The manifest of a crate that is published.
struct Manifest {
    folder: String,
    name: String,
    package: Table,
}

fn table(path: &Path) -> Table {
    let text = fs::read_to_string(path).unwrap();
    text.parse()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn workspace(root: &Path) -> Table {
    table(&root.join("Cargo.toml"))["workspace"]
        .as_table()
        .unwrap()
        .clone()
}

fn published(root: &Path) -> Vec<Manifest> {
    let members = workspace(root)["members"].as_array().unwrap().clone();
    let members = members.iter().map(|member| member.as_str().unwrap());
    let mut found = Vec::new();
    for folder in members.chain([".", ZENOH]) {
        let path = root.join(folder).join("Cargo.toml");
        // A copy has only the manifests that are published.
        if !path.exists() {
            continue;
        }
        let package = table(&path)["package"].as_table().unwrap().clone();
        if package.get("publish").and_then(Value::as_bool) != Some(false) {
            found.push(Manifest {
                folder: folder.to_owned(),
                name: package["name"].as_str().unwrap().to_owned(),
                package,
            });
        }
    }
    assert!(found.len() > 20, "the packages are here");
    found
}

/// The address of the repository, from the one line that says it.
fn address(root: &Path) -> String {
    let package = &workspace(root)["package"];
    package["repository"].as_str().unwrap().to_owned()
}

/// The READMEs that registries show.
fn readmes(root: &Path) -> BTreeSet<PathBuf> {
    let of_all = workspace(root)["package"]["readme"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut found: BTreeSet<_> = published(root)
        .iter()
        .map(|manifest| match &manifest.package["readme"] {
            Value::String(own) => root.join(&manifest.folder).join(own),
            _ => root.join(&of_all),
        })
        .collect();
    found.insert(root.join(PYTHON).join("README.md"));
    found.insert(root.join(PYTHON).join("mediator/README.md"));
    found.insert(root.join(JAVASCRIPT).join("README.md"));
    found
}

/// What is wrong with the addresses of all packages.
fn wrong_addresses(root: &Path) -> Vec<String> {
    let address = address(root);
    let inherited = Value::Table(
        [("workspace".to_owned(), Value::Boolean(true))]
            .into_iter()
            .collect(),
    );
    let written = Value::String(address.clone());
    let mut wrong = Vec::new();
    for manifest in published(root) {
        // amber-zenoh is in a workspace of its own.
        let expected = if manifest.folder == ZENOH {
            &written
        } else {
            &inherited
        };
        for key in ["repository", "homepage"] {
            if manifest.package.get(key) != Some(expected) {
                wrong.push(format!("{}: `{key}` is not {expected}", manifest.name));
            }
        }
        if manifest.package.contains_key("documentation") {
            wrong.push(format!(
                "{}: docs.rs is the default documentation",
                manifest.name
            ));
        }
    }
    if workspace(root)["package"]["homepage"] != written {
        wrong.push(format!("the workspace: `homepage` is not {address}"));
    }
    let urls = table(&root.join(PYTHON).join("pyproject.toml"))["project"]["urls"]
        .as_table()
        .unwrap()
        .clone();
    for needed in ["Homepage", "Documentation", "Changelog", "Repository"] {
        let url = urls.get(needed).and_then(Value::as_str);
        if !url.is_some_and(|url| url.starts_with(&address)) {
            wrong.push(format!("pyproject.toml: {needed} is {url:?}"));
        }
    }
    wrong
}

/// Where the links of a page lead: those in the text, and those at its end.
fn targets(page: &str) -> impl Iterator<Item = &str> {
    let inline = page.split("](").skip(1);
    let inline = inline.filter_map(|rest| rest.split(')').next());
    let definitions = page
        .lines()
        .filter(|line| line.starts_with('['))
        .filter_map(|line| Some(line.split_once("]: ")?.1));
    inline.chain(definitions)
}

/// The names of links that a page uses, such as `devices` in `[Devices][devices]`.
fn names(page: &str) -> impl Iterator<Item = &str> {
    let names = page.split("][").skip(1);
    names.filter_map(|rest| rest.split(']').next())
}

#[test]
fn every_package_names_the_repository() {
    let wrong = wrong_addresses(&root());
    assert!(
        wrong.is_empty(),
        "run scripts/address, or add the lines that other manifests have:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn links_of_readmes_work_in_registries() {
    let root = root();
    let files = format!("{}/blob/HEAD/", address(&root));
    let mut wrong = Vec::new();
    let mut seen = 0;
    for path in readmes(&root) {
        let page = fs::read_to_string(&path).unwrap();
        for target in targets(&page) {
            seen += 1;
            let works = match target.strip_prefix(&files) {
                Some(file) => root.join(file.split('#').next().unwrap()).exists(),
                None => target.starts_with("https://") && !target.contains("example.org"),
            };
            if !works {
                wrong.push(format!("{}: {target}", path.display()));
            }
        }
        for name in names(&page) {
            if !page.contains(&format!("\n[{name}]: ")) {
                wrong.push(format!("{}: [{name}] leads nowhere", path.display()));
            }
        }
    }
    assert!(seen > 20, "only {seen} links were found");
    assert!(
        wrong.is_empty(),
        "a registry shows the page without the repository, so write {files}FILE:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn internal_crates_say_so() {
    let promises = fs::read_to_string(root().join("docs/compatibility.md")).unwrap();
    let mut wrong = Vec::new();
    for manifest in published(&root()) {
        let name = &manifest.name;
        let description = manifest.package["description"].as_str().unwrap();
        let is_for_others = FOR_OTHERS.contains(&name.as_str());
        if description.starts_with("Internal to Amber: ") == is_for_others {
            wrong.push(format!("{name}: {description}"));
        }
        if is_for_others && !promises.contains(&format!("`{name}`")) {
            wrong.push(format!(
                "{name}: docs/compatibility.md says nothing about it"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn one_command_changes_the_address_everywhere() {
    let (from, copy) = (root(), tempfile::tempdir().unwrap());
    let mut files: BTreeSet<_> = published(&from)
        .iter()
        .map(|manifest| from.join(&manifest.folder).join("Cargo.toml"))
        .collect();
    files.extend(readmes(&from));
    files.insert(from.join(PYTHON).join("pyproject.toml"));
    files.insert(from.join(JAVASCRIPT).join("package.json"));
    files.insert(from.join("client-sdk/src/lib.rs"));
    files.insert(from.join("scripts/address"));
    let place = |file: &Path| copy.path().join(file.strip_prefix(&from).unwrap());
    for file in &files {
        fs::create_dir_all(place(file).parent().unwrap()).unwrap();
        fs::copy(file, place(file)).unwrap();
    }
    let old = address(&from);
    let run = |new: &str| {
        let mut script = Command::new(copy.path().join("scripts/address"));
        script.arg(new).output().unwrap()
    };

    let refused = run("https://somewhere.test/amber/");
    assert!(!refused.status.success(), "{refused:?}");
    let new = "https://somewhere.test/robots/amber";
    let done = run(new);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(address(copy.path()), new);
    assert_eq!(wrong_addresses(copy.path()), [] as [String; 0]);
    for file in &files {
        let text = fs::read_to_string(place(file)).unwrap();
        assert!(!text.contains(&old), "{}: {old}", file.display());
    }
}
