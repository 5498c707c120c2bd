//! What the `DriverMsg` of every device has in common.

use crate::{MsgType, SynNum};

/// A device's `DriverMsg`: the base fields, and the extensions of one device.
///
/// ```
/// use amber_proto::{DeviceMessage, MsgType, SynNum, dummy};
///
/// let mut ask = dummy::DriverMsg { get_status: Some(true), ..dummy::DriverMsg::data() };
/// ask.set_syn(Some(SynNum(7)));
/// assert_eq!(ask.kind(), Some(MsgType::Data));
/// assert_eq!(ask.syn(), Some(SynNum(7)));
/// ```
pub trait DeviceMessage: prost::Message + Default {
    /// The type; `None` when it is missing or not one of ours.
    fn kind(&self) -> Option<MsgType>;
    /// Sets the type; every message that is sent must have one.
    fn set_kind(&mut self, kind: MsgType);
    /// The number of this request.
    fn syn(&self) -> Option<SynNum>;
    /// Sets the number of this request.
    fn set_syn(&mut self, syn: Option<SynNum>);
    /// The number of the request that this answers; absent or 0 in published data.
    fn ack(&self) -> Option<SynNum>;
    /// Sets the number of the request that this answers.
    fn set_ack(&mut self, ack: Option<SynNum>);

    /// An empty message of a type.
    fn of_kind(kind: MsgType) -> Self {
        let mut message = Self::default();
        message.set_kind(kind);
        message
    }

    /// An empty DATA message.
    fn data() -> Self {
        Self::of_kind(MsgType::Data)
    }
}

macro_rules! device_message {
    ($($module:ident)*) => {$(
        impl DeviceMessage for crate::$module::DriverMsg {
            fn kind(&self) -> Option<MsgType> {
                // Not the generated getter: it says DATA for every unknown type.
                self.r#type.and_then(|number| MsgType::try_from(number).ok())
            }
            fn set_kind(&mut self, kind: MsgType) {
                self.r#type = Some(kind.into());
            }
            fn syn(&self) -> Option<SynNum> {
                self.syn_num.map(SynNum)
            }
            fn set_syn(&mut self, syn: Option<SynNum>) {
                self.syn_num = syn.map(|syn| syn.0);
            }
            fn ack(&self) -> Option<SynNum> {
                self.ack_num.map(SynNum)
            }
            fn set_ack(&mut self, ack: Option<SynNum>) {
                self.ack_num = ack.map(|ack| ack.0);
            }
        }
    )*};
}

device_message! {
    collision_avoidance drive_to_point dummy hokuyo location maestro mediator
    ninedof pid_follow_trajectory roboclaw stargazer
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn a_missing_or_unknown_type_is_not_data() {
        for bytes in [&b""[..], b"\x18\x07", b"\x10\x63"] {
            assert_eq!(crate::dummy::DriverMsg::decode(bytes).unwrap().kind(), None);
        }
        assert_eq!(
            crate::dummy::DriverMsg::decode(&b"\x10\x01"[..])
                .unwrap()
                .kind(),
            Some(MsgType::Data)
        );
    }
}
