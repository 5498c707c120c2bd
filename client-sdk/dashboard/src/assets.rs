//! The files of the page, embedded in the program. PURE.

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    pub path: &'static str,
    pub content_type: &'static str,
    /// Its contents.
    pub bytes: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! asset {
    ($path:literal, $content_type:expr, $file:literal) => {
        Asset {
            path: $path,
            content_type: $content_type,
            bytes: include_bytes!(concat!("../page/", $file)),
        }
    };
}

/// All files of the page.
pub const ASSETS: &[Asset] = &[
    asset!("/", HTML, "index.html"),
    asset!("/style.css", CSS, "style.css"),
    asset!("/icon.svg", "image/svg+xml", "icon.svg"),
    asset!(
        "/manifest.json",
        "application/manifest+json",
        "manifest.json"
    ),
    asset!("/app.js", SCRIPT, "app.js"),
    asset!("/camera.js", SCRIPT, "camera.js"),
    asset!("/devices.js", SCRIPT, "devices.js"),
    asset!("/dom.js", SCRIPT, "dom.js"),
    asset!("/goal.js", SCRIPT, "goal.js"),
    asset!("/here.js", SCRIPT, "here.js"),
    asset!("/link.js", SCRIPT, "link.js"),
    asset!("/log.js", SCRIPT, "log.js"),
    asset!("/map.js", SCRIPT, "map.js"),
    asset!("/mapping.js", SCRIPT, "mapping.js"),
    asset!("/panel.js", SCRIPT, "panel.js"),
    asset!("/plot.js", SCRIPT, "plot.js"),
    asset!("/stick.js", SCRIPT, "stick.js"),
];

/// The file at a path.
#[must_use]
pub fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_smaller_than_300_kb() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(bytes < 300_000, "{bytes}");
    }

    #[test]
    fn the_page_loads_nothing_from_elsewhere() {
        for asset in ASSETS {
            let text = String::from_utf8_lossy(asset.bytes);
            // The name of the language of pictures is no address.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for foreign in ["http://", "https://", "src=\"//", "@import", "eval("] {
                assert!(!text.contains(foreign), "{}: {foreign}", asset.path);
            }
        }
    }

    #[test]
    fn every_script_that_is_imported_is_there() {
        for asset in ASSETS {
            let text = String::from_utf8_lossy(asset.bytes);
            for part in text.split("from \"./").skip(1) {
                let name = part.split('"').next().unwrap_or_default();
                assert!(
                    find(&format!("/{name}")).is_some(),
                    "{}: {name}",
                    asset.path
                );
            }
        }
    }
}
