//! Streams that start by a request: how to ask for all of one, and what such a request says.

use std::time::Duration;

use amber_schema::{Kind, Method, Setting};
use serde_json::{Map, Value, json};

use crate::Schemas;
use crate::arguments::{self, Spelling, StartStop};

/// A message of a client that starts, changes or stops a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRequest {
    /// It wants the newest message each period; a period of 0 means every message.
    Start {
        /// The period; 0 also for a stream without this argument.
        period: Duration,
    },
    /// It wants no more.
    Stop,
}

impl Schemas {
    /// The requests for all parts of a stream at this period: arguments of type bool are true, and
    /// others are absent. `None` if the stream needs further arguments. These schemas are those of
    /// the device ([`Schemas::for_device`]).
    pub fn whole_stream(&self, method: &Method, period: Duration) -> Option<StartStop> {
        let words = arguments::arguments(method).into_iter().filter_map(|it| {
            match (&*it.name, &*it.field.type_name) {
                ("period", _) => Some(format!("period={}ms", period.as_millis())),
                (name, "bool") => Some(format!("{name}=true")),
                _ => None,
            }
        });
        let words: Vec<_> = words.collect();
        let given = arguments::read(method, &words, Spelling::default()).ok()?;
        self.start_stop(method, &given).ok()
    }

    /// What a message says about a stream by request; `None` if it is another message. These schemas
    /// are those of the device ([`Schemas::for_device`]).
    pub fn stream_request(&self, method: &Method, message: &[u8]) -> Option<StreamRequest> {
        let Kind::StreamByRequest { period, stop, .. } = &method.kind else {
            return None;
        };
        let values = self.values(message)?;
        let is_there = |field: &amber_schema::Field| self.value_at(&values, &field.path).is_some();
        if !method.request.iter().any(is_there) {
            return None;
        }
        let has = |setting: &Setting| self.text_at(&values, &setting.field) == setting.value;
        if !stop.is_empty() && stop.iter().all(has) {
            return Some(StreamRequest::Stop);
        }
        let period = period
            .as_ref()
            .and_then(|path| self.value_at(&values, path));
        let period_ms = period.and_then(Value::as_u64).unwrap_or(0);
        Some(StreamRequest::Start {
            period: Duration::from_millis(period_ms),
        })
    }

    /// A value as in [`Setting::value`]. A field that is missing is 0.
    fn text_at(&self, values: &Map<String, Value>, path: &str) -> String {
        let value = self.value_at(values, path).cloned().unwrap_or(json!(0));
        let text = value.as_str().map(str::to_owned);
        text.unwrap_or_else(|| value.to_string())
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;
    use crate::built_in;

    const PERIOD: Duration = Duration::from_millis(70);

    #[test]
    fn a_whole_stream_is_recognised_by_its_requests() {
        let schemas = Schemas::built_in();
        let mut streams = 0;
        for interface in built_in() {
            let own = schemas.for_device(Some(DeviceType(interface.device_type)));
            let is_it = |it: &&Method| matches!(it.kind, Kind::StreamByRequest { .. });
            for method in interface.methods.iter().filter(is_it) {
                streams += 1;
                let requests = own.whole_stream(method, PERIOD).unwrap();
                assert_eq!(
                    own.stream_request(method, &requests.start),
                    Some(StreamRequest::Start { period: PERIOD }),
                    "{}",
                    interface.name
                );
                assert_eq!(
                    own.stream_request(method, &requests.stop),
                    Some(StreamRequest::Stop)
                );
                // Another request, and no message at all.
                assert_eq!(own.stream_request(method, b"\x10\x01"), None);
                assert_eq!(own.stream_request(method, b"\xff"), None);
            }
        }
        assert!(streams >= 2, "motion sensors and markers");
    }

    /// An absent period is 0, which stops a stream whose description says so, and otherwise means
    /// every message.
    #[test]
    fn an_absent_period_stops_a_stream_or_means_every_message() {
        let schemas = Schemas::built_in();
        let mut meanings = Vec::new();
        for interface in built_in() {
            for method in &interface.methods {
                let Kind::StreamByRequest {
                    period: Some(period),
                    start,
                    stop,
                } = &method.kind
                else {
                    continue;
                };
                let mut without = method.clone();
                without.set.extend(start.iter().cloned());
                let message = schemas.request(&without, &arguments::Given::default());
                let expected = match stop.iter().any(|setting| setting.field == *period) {
                    true => StreamRequest::Stop,
                    false => StreamRequest::Start {
                        period: Duration::ZERO,
                    },
                };
                let said = schemas.stream_request(method, &message.unwrap());
                assert_eq!(said, Some(expected), "{}", interface.name);
                meanings.push(expected == StreamRequest::Stop);
            }
        }
        assert!(meanings.contains(&true) && meanings.contains(&false));
    }
}
