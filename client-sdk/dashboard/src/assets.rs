//! The files of the page, and those that programs in pages import, embedded in the program. PURE.

use std::sync::LazyLock;

use amber_web::headers;

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
    asset!("/client.js", SCRIPT, "client.js"),
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
    asset!("/telemetry.js", SCRIPT, "telemetry.js"),
    asset!("/watch.js", SCRIPT, "watch.js"),
];

/// The folder of the modules of `client-sdk/js`.
const MODULES: &str = "/amber/";

/// The example of a page that is a client.
const EXAMPLE: Asset = Asset {
    path: "/drive.html",
    content_type: HTML,
    bytes: amber_js::DRIVE.as_bytes(),
};

/// Its script is in it.
static EXAMPLE_POLICY: LazyLock<String> = LazyLock::new(|| headers::policy_of(amber_js::DRIVE));

/// The file at a path.
#[must_use]
pub fn find(path: &str) -> Option<Asset> {
    let own = ASSETS.iter().chain([&EXAMPLE]);
    own.copied()
        .find(|asset| asset.path == path)
        .or_else(|| module(path))
}

/// A module, or the descriptions that they load.
fn module(path: &str) -> Option<Asset> {
    let wanted = path.strip_prefix(MODULES)?;
    let scripts = amber_js::MODULES.iter().map(|it| (it, SCRIPT));
    let mut all = scripts.chain([(&amber_js::SCHEMAS, "application/octet-stream")]);
    let (&(name, bytes), content_type) = all.find(|((name, _), _)| *name == wanted)?;
    Some(Asset {
        path: name,
        content_type,
        bytes,
    })
}

impl Asset {
    /// The headers of this file.
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, &'static str)> {
        let policy = match self.path == EXAMPLE.path {
            true => EXAMPLE_POLICY.as_str(),
            false => headers::POLICY,
        };
        let mut all = vec![
            ("content-type", self.content_type),
            (headers::POLICY_NAME, policy),
        ];
        // Pages of other sites that may connect import them, too.
        let is_module = !self.path.starts_with('/');
        all.extend(is_module.then_some(("access-control-allow-origin", "*")));
        all.extend(headers::ALWAYS);
        all
    }
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
    fn the_modules_of_programs_are_in_a_folder() {
        let index = find("/amber/index.js").unwrap();
        assert_eq!(index.content_type, SCRIPT);
        assert!(
            index
                .headers()
                .contains(&("access-control-allow-origin", "*"))
        );
        assert!(find("/amber/schemas.binpb").is_some());
        for path in ["/amber/", "/amber/node.js", "/index.js", "/amber/../app.js"] {
            assert!(find(path).is_none(), "{path}");
        }
        let page = find("/app.js").unwrap().headers();
        assert!(
            !page
                .iter()
                .any(|(name, _)| name.starts_with("access-control"))
        );
    }

    #[test]
    fn the_example_runs_its_own_script() {
        let headers = find("/drive.html").unwrap().headers();
        let policy = headers
            .iter()
            .find(|(name, _)| *name == headers::POLICY_NAME);
        let (_, policy) = policy.unwrap();
        assert!(policy.contains("script-src 'self' 'sha256-"), "{policy}");
    }

    #[test]
    fn every_script_that_is_imported_is_there() {
        for asset in ASSETS {
            let text = String::from_utf8_lossy(asset.bytes);
            let imports = ["from \"", "import(\""].map(|start| text.split(start).skip(1));
            for part in imports.into_iter().flatten() {
                let name = part.split('"').next().unwrap_or_default();
                // Those of the package begin with its folder.
                let path = name.strip_prefix('.').unwrap_or(name);
                assert!(find(path).is_some(), "{}: {name}", asset.path);
            }
        }
    }
}
