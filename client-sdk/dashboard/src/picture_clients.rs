//! Sends the pictures of a camera to one page, with a client and a WebSocket of their own. IO.
//!
//! They have their own WebSocket because a picture takes a slow network long: the pose, and the pings
//! by which the dashboard notices that a page has frozen, must not wait behind it. They have their own
//! client because a camera keeps one rate and one size for each client. The camera is asked only
//! while the WebSocket is open, and a page opens it only while it shows pictures.

use std::future::pending;
use std::time::SystemTime;

use amber_client::{Camera, Client, Subscription, Update};
use amber_proto::camera::{Picture, PictureRequest, PictureStream};
use amber_proto::{Device, DeviceType};
use amber_robot::bucket::Bucket;
use amber_web::Role;
use amber_web::calls::in_words;
use amber_web::socket::Socket;
use amber_web::websocket::{Refusal, answer_close, refuse};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;

use crate::hub::FULL;
use crate::limits::{MAX_VIEWERS, MESSAGE_RATE, PICTURE_PINGS, PICTURE_TIME, SILENT_PICTURES};
use crate::pictures::{Pictures, Wanted, limited};
use crate::viewer::{Ended, place};

/// All pages that show pictures.
pub(crate) struct PictureClients {
    mediator: String,
    places: Semaphore,
}

impl PictureClients {
    /// None yet.
    pub(crate) fn new(mediator: String) -> Self {
        Self {
            mediator,
            places: Semaphore::new(MAX_VIEWERS),
        }
    }

    /// Serves a page that may do this, until it is gone or shows no pictures.
    pub(crate) async fn serve(&self, socket: Socket, role: Role) -> Ended {
        let Some(_place) = place(&self.places, role) else {
            refuse(socket, Refusal::Full, FULL).await;
            return Ended::Full;
        };
        let client = match Client::connect(&self.mediator).await {
            Ok(client) => client,
            Err(error) => {
                tracing::debug!("no pictures: {error}");
                refuse(socket, Refusal::Full, "the mediator is unavailable").await;
                return Ended::Gone;
            }
        };
        let mut show = Show {
            client: client.clone(),
            camera: None,
            shown: None,
            stills: JoinSet::new(),
            pictures: Pictures::default(),
            started: Instant::now(),
        };
        show.run(socket).await;
        let dropped = show.pictures.dropped();
        drop(show);
        client.close().await;
        tracing::debug!(dropped, "a page shows no more pictures");
        Ended::Gone
    }
}

/// The pictures of one page.
struct Show {
    client: Client,
    camera: Option<Camera>,
    shown: Option<Subscription<Picture>>,
    stills: JoinSet<amber_client::Result<Picture>>,
    pictures: Pictures,
    started: Instant,
}

impl Show {
    /// Runs until the page is gone.
    async fn run(&mut self, mut socket: Socket) {
        let mut pings = interval(PICTURE_PINGS);
        let mut messages = Bucket::new(MESSAGE_RATE);
        let mut heard = Instant::now();
        loop {
            let answer = tokio::select! {
                said = socket.next() => {
                    heard = Instant::now();
                    match said {
                        Some(Ok(Message::Text(text))) if messages.take(self.started.elapsed()) => {
                            self.handle(&text).await
                        }
                        Some(Ok(Message::Close(_))) => return answer_close(&mut socket).await,
                        Some(Ok(_)) => None,
                        Some(Err(_)) | None => return,
                    }
                }
                update = next(&mut self.shown) => match update {
                    Some(Update { message, missed, .. }) => {
                        let now = self.started.elapsed();
                        self.pictures.add(now, SystemTime::now(), message, missed);
                        None
                    }
                    // The client has ended.
                    None => return,
                },
                Some(still) = self.stills.join_next() => Some(self.still(still)),
                _ = pings.tick() => Some(Message::Ping(Bytes::new())),
                () = sleep_until(heard + SILENT_PICTURES) => return,
            };
            let picture = self.pictures.take(self.started.elapsed());
            for message in answer.into_iter().chain(picture.map(Message::Binary)) {
                // What the page sends meanwhile can wait: it only concerns the next pictures.
                if !matches!(
                    timeout(PICTURE_TIME, socket.send(message)).await,
                    Ok(Ok(()))
                ) {
                    return;
                }
            }
        }
    }

    /// The page has sent something. Returns the answer, if there is one.
    async fn handle(&mut self, text: &str) -> Option<Message> {
        let wanted = match serde_json::from_str(text) {
            Ok(wanted) => wanted,
            Err(error) => return Some(refused(&format!("invalid message: {error}"))),
        };
        match wanted {
            Wanted::Show {
                device,
                period,
                max_width,
            } => {
                let camera = device.parse::<Device>().ok();
                let camera = camera.filter(|it| it.device_type == DeviceType::CAMERA);
                let Some(camera) = camera else {
                    return Some(refused(&format!("'{device}' is not a camera")));
                };
                let camera = Camera::new(self.client.device(camera));
                let (period, max_width) = limited(period, max_width);
                let stream = PictureStream {
                    max_width,
                    ..PictureStream::default()
                };
                match camera.pictures(period, stream).await {
                    // The earlier subscription ends now: a camera that goes on need not switch off.
                    Ok(shown) => self.shown = Some(shown),
                    Err(error) => return Some(refused(&in_words(&error))),
                }
                self.pictures.change();
                self.camera = Some(camera);
                None
            }
            Wanted::Drawn { number } => {
                self.pictures.drawn(self.started.elapsed(), number);
                None
            }
            Wanted::Still => {
                let Some(camera) = self.camera.clone() else {
                    return Some(refused("no camera is shown"));
                };
                // A second one at the same time would be the same picture.
                if self.stills.is_empty() {
                    self.stills
                        .spawn(async move { camera.picture(PictureRequest::default()).await });
                }
                None
            }
        }
    }

    fn still(
        &mut self,
        taken: Result<amber_client::Result<Picture>, tokio::task::JoinError>,
    ) -> Message {
        match taken {
            Ok(Ok(picture)) => {
                let now = self.started.elapsed();
                Message::Binary(self.pictures.still(now, SystemTime::now(), picture))
            }
            Ok(Err(error)) => refused(&in_words(&error)),
            Err(error) => refused(&error.to_string()),
        }
    }
}

/// The next picture; it never comes without a camera.
async fn next(shown: &mut Option<Subscription<Picture>>) -> Option<Update<Picture>> {
    match shown {
        Some(shown) => shown.next().await,
        None => pending().await,
    }
}

/// Tells the page why something has no effect.
fn refused(why: &str) -> Message {
    let text = json!({ "t": "refused", "text": why }).to_string();
    Message::Text(text.into())
}
