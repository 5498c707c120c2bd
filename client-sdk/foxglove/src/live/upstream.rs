//! Requests the data that viewers subscribe to. IO.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use amber_client::{Announcement, Client, Error};
use amber_proto::camera::{self, PictureStream};
use amber_proto::{Device, DeviceMessage, DeviceType};
use amber_reflect::Schemas;
use amber_reflect::arguments::{self, Spelling};
use amber_scene::mount;
use amber_schema::{Kind, Method};
use amber_terminal::note;
use bytes::Bytes;
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::catalog::{Described, PICTURES, Upstream};
use super::input::Input;
use super::limits::{
    ASK_PERIOD, DEVICES_PERIOD, MAP_PERIOD, MEDIATOR_DEADLINE, PARTICLES_PERIOD, PICTURE_PERIOD,
    PICTURE_WIDTH, RETRY, STREAM_PERIOD,
};

/// Connects to the mediator; tries again until it succeeds.
pub(super) async fn connect(mediator: String, inputs: mpsc::Sender<Input>) {
    let mut is_new = true;
    loop {
        match Client::connect(&mediator).await {
            Ok(client) => {
                let _ = inputs.send(Input::Connected(client)).await;
                return;
            }
            Err(error) if is_new => note(format!("{error}; retrying")),
            Err(_) => {}
        }
        is_new = false;
        sleep(RETRY).await;
    }
}

/// The devices of the mediator, with their descriptions, and the shape of the robot.
pub(super) async fn watch_devices(client: Client, inputs: mpsc::Sender<Input>) {
    let mediator = client.mediator().with_deadline(MEDIATOR_DEADLINE);
    let built_in = Arc::new(Schemas::built_in());
    let mut known: HashMap<Device, Arc<Schemas>> = HashMap::new();
    let mut told = None;
    let mut ticks = interval(DEVICES_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Ok(drivers) = mediator.drivers().await else {
            continue;
        };
        let devices = drivers.iter().flat_map(|driver| &driver.devices);
        let devices: Vec<_> = devices
            .map(|it| Device::new(DeviceType(it.r#type), it.id))
            .collect();
        let mut described = Vec::new();
        for device in devices {
            let schemas = match known.get(&device) {
                Some(schemas) => schemas.clone(),
                None => match schemas(&client, &built_in, device).await {
                    Some(schemas) => known.entry(device).or_insert(schemas).clone(),
                    // Its driver may hand one over later.
                    None => continue,
                },
            };
            described.push(Described { device, schemas });
        }
        let has_robot = (described.iter()).any(|it| it.device.device_type == DeviceType::ROBOT);
        if has_robot
            && let Some(shape) = mount::shape(&client).await
            && told.as_ref() != Some(&shape)
        {
            told = Some(shape.clone());
            let _ = inputs.send(Input::Shape(Box::new(shape))).await;
        }
        if inputs.send(Input::Devices(described)).await.is_err() {
            return;
        }
    }
}

/// The description of a device, from Amber or from the mediator.
async fn schemas(client: &Client, built_in: &Arc<Schemas>, device: Device) -> Option<Arc<Schemas>> {
    if built_in.interface(device.device_type).is_some() {
        return Some(built_in.clone());
    }
    if client.announcement() == Announcement::Silent {
        return None;
    }
    let mediator = client.mediator().with_deadline(MEDIATOR_DEADLINE);
    let found = mediator.get_description(device.device_type.0, device.id.0);
    let files = found.await.ok()?.files;
    match Schemas::from_descriptors(&files) {
        Ok(served) => {
            let mut schemas = Schemas::built_in();
            schemas.add(served);
            Some(Arc::new(schemas))
        }
        Err(error) => {
            tracing::warn!(%device, "invalid description: {}", error.text);
            None
        }
    }
}

pub(super) fn device(upstream: &Upstream) -> Option<Device> {
    match upstream {
        Upstream::Events => None,
        Upstream::Published(device)
        | Upstream::ByRequest(device, _)
        | Upstream::Asked(device, _) => Some(*device),
    }
}

/// Sends the messages of a upstream to the hub until it is dropped.
pub(super) async fn run(
    client: Client,
    upstream: Upstream,
    schemas: Option<Arc<Schemas>>,
    inputs: mpsc::Sender<Input>,
) {
    loop {
        match (&upstream, &schemas) {
            (Upstream::Events, _) => events(&client, &inputs).await,
            (Upstream::Published(device), _) => published(&client, *device, None, &inputs).await,
            (Upstream::ByRequest(device, name), Some(schemas)) => {
                let requests = start_stop(schemas, *device, name);
                if requests.is_some() {
                    published(&client, *device, requests, &inputs).await;
                }
            }
            (Upstream::Asked(device, name), Some(schemas)) => {
                asked(&client, schemas, *device, name, &inputs).await;
            }
            (Upstream::ByRequest(..) | Upstream::Asked(..), None) => {}
        }
        sleep(RETRY).await;
    }
}

async fn events(client: &Client, inputs: &mpsc::Sender<Input>) {
    let Ok(mut events) = client.mediator().events().await else {
        return;
    };
    while let Some(update) = events.next().await {
        if inputs.send(Input::Event(update.message)).await.is_err() {
            return;
        }
    }
}

async fn published(
    client: &Client,
    device: Device,
    requests: Option<(Bytes, Bytes, Duration)>,
    inputs: &mpsc::Sender<Input>,
) {
    let proxy = client.device(device);
    let updates = match requests {
        Some((start, stop, period)) => proxy.subscribe_raw_by(start, stop, period).await,
        None => proxy.subscribe_raw().await,
    };
    let Ok(mut updates) = updates else {
        return;
    };
    while let Some(update) = updates.next().await {
        let input = Input::Message(device, update.message);
        if inputs.send(input).await.is_err() {
            return;
        }
    }
}

async fn asked(
    client: &Client,
    schemas: &Schemas,
    device: Device,
    name: &str,
    inputs: &mpsc::Sender<Input>,
) {
    let Some(method) = method(schemas, device, name) else {
        return;
    };
    let given = arguments::read(method, &[], Spelling::default());
    let schemas = schemas.for_device(Some(device.device_type));
    let request = given
        .ok()
        .and_then(|given| schemas.request(method, &given).ok());
    let Some(request) = request.map(Bytes::from) else {
        return;
    };
    let usual = match method.kind {
        Kind::Ask { timeout_ms, .. } => timeout_ms,
        _ => None,
    };
    let usual = usual.map(|ms| Duration::from_millis(ms.into()));
    let proxy = client.device(device);
    let proxy = proxy.with_deadline(usual.unwrap_or(client.deadline()));
    let mut ticks = interval(period(device, name));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match proxy.request_raw(request.clone()).await {
            Ok(answer) => {
                if inputs.send(Input::Message(device, answer)).await.is_err() {
                    return;
                }
            }
            // An old driver does not know the request, or its device does not work now.
            Err(Error::Refused { .. }) => {}
            Err(_) => return,
        }
    }
}

fn period(device: Device, name: &str) -> Duration {
    match (device.device_type, name) {
        (DeviceType::LOCATION, "map") => MAP_PERIOD,
        (DeviceType::LOCATION, "particles") => PARTICLES_PERIOD,
        _ => ASK_PERIOD,
    }
}

fn method<'a>(schemas: &'a Schemas, device: Device, name: &str) -> Option<&'a Method> {
    schemas.interface(device.device_type)?.method(name)
}

/// The two requests of a stream, with all flags set and the usual period.
fn start_stop(schemas: &Schemas, device: Device, name: &str) -> Option<(Bytes, Bytes, Duration)> {
    if (device.device_type, name) == (DeviceType::CAMERA, PICTURES) {
        let [start, stop] = [PICTURE_PERIOD, Duration::ZERO].map(pictures);
        return Some((start, stop, PICTURE_PERIOD));
    }
    let method = method(schemas, device, name)?;
    let schemas = schemas.for_device(Some(device.device_type));
    let requests = schemas.whole_stream(method, STREAM_PERIOD)?;
    Some((requests.start.into(), requests.stop.into(), STREAM_PERIOD))
}

/// The request for pictures with this period; 0 ends them.
fn pictures(period: Duration) -> Bytes {
    let mut message = camera::DriverMsg::data();
    message.stream_pictures = Some(PictureStream {
        period: u32::try_from(period.as_millis()).ok(),
        max_width: (!period.is_zero()).then_some(PICTURE_WIDTH),
        ..PictureStream::default()
    });
    message.encode_to_vec().into()
}
