//! The client SDK from outside. One program: linking costs more than these tests.

mod paths;
mod protocol_document;
mod udp;
