//! Lists of public items: how two of them differ, which items show types of other packages, and which
//! traits other packages can implement. PURE.

use std::collections::BTreeSet;

/// The packages whose types the API may show, beside those of Amber.
const WELCOME: [&str; 5] = ["alloc", "bytes", "core", "futures_core", "std"];

/// The items that are in one of two lists only: `- ` and an item of the first, `+ ` and an item of
/// the second, in the order of the items.
pub(crate) fn changes(before: &str, now: &str) -> Vec<String> {
    let before: BTreeSet<&str> = before.lines().collect();
    let now: BTreeSet<&str> = now.lines().collect();
    let mut changes: Vec<(&str, char)> = before
        .difference(&now)
        .map(|item| (*item, '-'))
        .chain(now.difference(&before).map(|item| (*item, '+')))
        .collect();
    changes.sort_unstable();
    changes
        .into_iter()
        .map(|(item, sign)| format!("{sign} {item}"))
        .collect()
}

/// The items of a list that name another package than those which the API may show.
pub(crate) fn foreign(items: &str) -> Vec<&str> {
    items
        .lines()
        .filter(|item| {
            packages(item).any(|name| !WELCOME.contains(&name) && !name.starts_with("amber"))
        })
        .collect()
}

/// The traits of a list that other packages can implement, except those of drivers.
pub(crate) fn open_traits(items: &str) -> Vec<&str> {
    items
        .lines()
        .filter(|item| {
            let Some((_, declared)) = item.split_once("pub trait ") else {
                return false;
            };
            let (name, supertraits) = declared.split_once(": ").unwrap_or((declared, ""));
            !name.ends_with("Driver") && !supertraits.contains("::sealed::")
        })
        .collect()
}

/// The names with which the paths in an item begin, except types and `self`.
fn packages(item: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    item.match_indices("::").filter_map(move |(end, _)| {
        let before = &item[..end];
        let start = before.rfind(|c| !is_name(c)).map_or(0, |at| at + 1);
        let name = &before[start..];
        let begins = !before[..start].ends_with(':');
        (begins && name.starts_with(|c: char| c.is_ascii_lowercase())).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_the_items_of_one_list_only() {
        assert_eq!(changes("a\nb\nc\n", "a\nc\n"), ["- b"]);
        assert_eq!(
            changes("b(u8)\n", "b(u16)\nc\n"),
            ["+ b(u16)", "- b(u8)", "+ c"]
        );
        assert!(changes("a\nb\n", "a\nb\n").is_empty());
    }

    #[test]
    fn traits_that_are_not_sealed_are_found() {
        let open = "pub trait amber_values::Row<Table>: core::marker::Sized";
        let bare = "#[non_exhaustive] pub trait amber_client::Speaks";
        let driver = "pub trait amber_driver::devices::dummy::DummyDriver";
        let sealed = "pub trait amber_sdk::Outcome: amber_sdk::run::sealed::Outcome";
        let method = "pub fn amber_values::Row::table(&[Self]) -> Table";
        let items = [open, bare, driver, sealed, method].join("\n");
        assert_eq!(open_traits(&items), [open, bare]);
    }

    #[test]
    fn items_with_types_of_other_packages_are_found() {
        let own = "pub fn amber_client::Client::close(&self, bytes::bytes::Bytes) -> \
                   core::result::Result<(), amber_client::Error>";
        let other = "pub fn amber_client::Client::go(&self, prost::Message)";
        let generic =
            "pub fn amber_client::f<T: core::iter::Iterator>(T::Item, <T as serde::De>::X)";
        assert_eq!(
            foreign(&format!("{own}\n{other}\n{generic}\n")),
            [other, generic]
        );
    }
}
