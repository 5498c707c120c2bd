//! Serves the metrics over HTTP. IO.

use std::net::SocketAddr;

use amber_client::Client;
use amber_terminal::{Failure, note};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use super::page;
use super::text::CONTENT_TYPE;

/// Where the metrics are.
const PATH: &str = "/metrics";

/// Serves until Ctrl-C. Each request asks the mediator anew.
pub(super) async fn serve(client: &Client, address: SocketAddr) -> Result<(), Failure> {
    let failed = |error| {
        let hint = "choose another port, for example --listen 127.0.0.1:0";
        Failure::new(format!("cannot listen on {address}: {error}")).hint(hint)
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    note(format_args!("metrics are at http://{address}{PATH}"));
    let app = Router::new()
        .route(PATH, get(metrics))
        .fallback(|| async { (StatusCode::NOT_FOUND, "the metrics are at /metrics\n") })
        .with_state(client.clone());
    let stopped = async {
        let _ = crate::interrupt().await;
    };
    let served = axum::serve(listener, app).with_graceful_shutdown(stopped);
    served.await.map_err(failed)
}

async fn metrics(State(client): State<Client>) -> Response {
    match page(&client).await {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}
