//! Generates what the driver harness needs for lease, halt and expiry. PURE.

use std::fmt::Write;

use amber_schema::{Field, Method, Setting};

use super::{Condition, Device, Rpc, all};
use crate::field_path::FieldPath;

/// A request that moves something.
pub(super) struct Moves {
    /// When it stops the device; `None` if it cannot.
    stop: Option<Stop>,
    is_errand: bool,
}

struct Stop {
    values: Vec<Condition>,
    /// The arguments that are absent or empty.
    empty: Vec<FieldPath>,
}

impl Moves {
    /// What a method moves; `None` if it moves nothing. `find` finds a field, and `settings` the fields
    /// of values.
    pub(super) fn of(
        method: &Method,
        find: impl Fn(&str) -> Result<FieldPath, String>,
        settings: impl Fn(&[Setting]) -> Result<Vec<Condition>, String>,
    ) -> Result<Option<Self>, String> {
        let Some(moves) = &method.moves else {
            return Ok(None);
        };
        let stop = |stop: &Vec<Setting>| {
            let empty = method.empty_to_stop(stop);
            let empty = empty.map(|field: &Field| find(&field.path));
            Ok::<_, String>(Stop {
                values: settings(stop)?,
                empty: empty.collect::<Result<_, String>>()?,
            })
        };
        Ok(Some(Self {
            is_errand: moves.errand,
            stop: moves.stop.as_ref().map(stop).transpose()?,
        }))
    }
}

impl Rpc<'_> {
    /// What a message that requests this method does, as an expression of the type `Motion`; `None`
    /// if it moves nothing.
    fn motion(&self) -> Option<String> {
        let moves = self.moves.as_ref()?;
        let motion = match moves.is_errand {
            true => "::amber_driver::Motion::Errand",
            false => "::amber_driver::Motion::Moves",
        };
        let Some(stop) = &moves.stop else {
            return Some(motion.to_owned());
        };
        let values = stop.values.iter().map(Condition::holds_or_is_absent);
        let empty = stop.empty.iter().map(|place| place.is_empty("message"));
        Some(match all(values.chain(empty)) {
            // Every such request stops.
            nothing if nothing.is_empty() => "::amber_driver::Motion::Stops".to_owned(),
            stops => {
                format!("if {stops} {{ ::amber_driver::Motion::Stops }} else {{ {motion} }}")
            }
        })
    }

    /// Statements that make a message the request to stop; `None` if the method cannot stop.
    fn make_stop(&self) -> Option<String> {
        let stop = self.moves.as_ref()?.stop.as_ref()?;
        let flags = self.flags.iter().map(|flag| flag.set("message", "true"));
        let values = self.set.iter().chain(&stop.values);
        let values = values.map(|it| it.place.set_literal("message", &it.value));
        Some(
            flags
                .chain(values)
                .collect::<Vec<_>>()
                .join("\n            "),
        )
    }
}

impl Device<'_> {
    /// What the harness needs for lease, halt and expiry.
    pub(super) fn moves(&self, out: &mut String) {
        let Self {
            service, message, ..
        } = self;
        let mut motions = String::new();
        let mut refusals = String::new();
        for rpc in &self.rpcs {
            let Some(motion) = rpc.motion() else { continue };
            let condition = rpc.is_requested();
            let _ = writeln!(
                motions,
                "            if {condition} {{ motion = motion.max({motion}); }}"
            );
            if rpc.refusal.is_some() {
                let _ = writeln!(
                    refusals,
                    "            if {condition} {{ return \
                     ::core::option::Option::Some({service}Link::{}_refusal(why)); }}",
                    rpc.stem()
                );
            }
        }
        if motions.is_empty() {
            return;
        }
        let stop = match self.rpcs.iter().find_map(Rpc::make_stop) {
            Some(set) => format!(
                "::core::option::Option::Some(|| {{\n            \
                 let mut message = <{message} as ::amber_proto::DeviceMessage>::data();\n            \
                 {set}\n            message\n        }})"
            ),
            None => "::core::option::Option::None".to_owned(),
        };
        let handles = self.hook("handles_gone_clients");
        let _ = writeln!(
            out,
            "    fn moves(&self) -> ::core::option::Option<::amber_driver::Moves<{message}>> {{\n        \
             fn motion(message: &{message}) -> ::amber_driver::Motion {{\n            \
             let mut motion = ::amber_driver::Motion::Nothing;\n{motions}            motion\n        }}\n        \
             #[allow(unused_variables)]\n        \
             fn refusal(message: &{message}, why: &str) -> ::core::option::Option<{message}> {{\n\
             {refusals}            ::core::option::Option::None\n        }}\n        \
             ::core::option::Option::Some(::amber_driver::Moves {{ motion, stop: {stop}, refusal, \
             handles_gone_clients: {service}Driver::{handles}(&self.driver) }})\n    }}\n"
        );
    }
}
