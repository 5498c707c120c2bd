//! Feeds for recorders: permissions, and the first records. PURE.

use std::time::Instant;

use amber_proto::Device;
use amber_proto::mediator::{self, Event as Notice, Refusal, refusal, reply};
use prost::Message;

use super::control::{is_loopback, refuse};
use super::{Core, Feed, FeedKey, ShellTask, Ticket};
use crate::feeds::{Feeds, devices_of};
use crate::limits;
use crate::router::Sender;

impl Core {
    /// A client asks for a feed.
    pub(super) fn want_feed(
        &mut self,
        ticket: Ticket,
        wanted: &mediator::OpenFeed,
    ) -> Result<(), Refusal> {
        // Frames to a driver go through its pipe, and would be recorded themselves.
        let local = matches!(ticket.to, Sender::Client(client) if is_loopback(client.address.ip()));
        if !local {
            return Err(refuse(
                refusal::Reason::NotAllowed,
                "only clients on the mediator's machine may record",
                Some("run `amber record` there"),
            ));
        }
        let devices = devices_of(wanted);
        if devices.len() > limits::FEED_DEVICES {
            let most = limits::FEED_DEVICES;
            let message = format!("{} devices to record, more than {most}", devices.len());
            return Err(refuse(
                refusal::Reason::BadRequest,
                &message,
                Some("name no device to record all"),
            ));
        }
        self.tasks.push_back(ShellTask::OpenFeed(ticket, devices));
        Ok(())
    }

    /// Answers [`ShellTask::OpenFeed`] with the path of the socket, or an error and a hint.
    pub fn answer_feed(
        &mut self,
        ticket: Ticket,
        outcome: Result<String, (String, Option<String>)>,
    ) {
        let reply = outcome.map(|path| reply::What::Feed(mediator::Feed { path }));
        self.answer_outcome(ticket, reply);
    }

    /// A recorder has connected. The feed begins with the version of the mediator and all ids in
    /// use. `key` must be new.
    pub fn open_feed(&mut self, now: Instant, key: FeedKey, devices: Vec<Device>) {
        let since_epoch = self.events.since_epoch().unwrap_or_default();
        let drops = self.router.drops(now);
        let peers = self.router.peers();
        let feeds = &mut self.router.feeds;
        feeds.open(now, since_epoch, key, devices, drops);
        feeds.note_to(key, |writer| writer.start(env!("CARGO_PKG_VERSION")));
        for (id, address) in peers {
            feeds.note_to(key, |writer| writer.peer(id, &address));
        }
    }

    /// The recorder has left, or the mediator ends. Writes the last records; the feed lasts until
    /// [`Feeds::close`].
    pub fn end_feed(&mut self, now: Instant, key: FeedKey) {
        self.note_drops(now);
        let feeds = &mut self.router.feeds;
        feeds.set_time(now);
        feeds.end(key);
    }

    /// The open feeds.
    pub fn feeds_mut(&mut self) -> &mut Feeds {
        &mut self.router.feeds
    }

    /// One feed, with everything that has happened until now.
    pub fn feed_mut(&mut self, now: Instant, key: FeedKey) -> Option<&mut Feed> {
        if self.router.feeds.wants_drops(now) {
            self.note_drops(now);
        }
        self.router.feeds.get_mut(key)
    }

    /// Whether there is a recorder.
    pub fn is_recorded(&self) -> bool {
        self.router.feeds.is_open()
    }

    pub(super) fn set_feed_time(&mut self, now: Instant) {
        if self.router.feeds.is_open() {
            self.router.feeds.set_time(now);
        }
    }

    pub(super) fn record_event(&mut self, notice: &Notice) {
        if self.router.feeds.is_open() {
            let event = notice.encode_to_vec();
            self.router.feeds.note(|writer| writer.event(&event));
        }
    }

    fn note_drops(&mut self, now: Instant) {
        let drops = self.router.drops(now);
        self.router.feeds.note_drops(now, &drops);
    }
}
