//! The HTTP server: four read-only pages, served by a dedicated thread.

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Version, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use futures_util::stream::{self, Stream};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use model::{Event, Sink, SinkError};
use nix::fcntl::OFlag;
use nix::sys::socket::{setsockopt, sockopt::TcpUserTimeout};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, oneshot};
use tokio::task::JoinHandle as JoinTask;
use tokio::time::{sleep, timeout};

use crate::metrics::Form;
use crate::watched::{News, Watched};
use crate::{Listener, ServeError};

/// The live page that build.rs chose.
const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/live.html"));
/// Updates that a reader can lag behind: about ten seconds' worth.
const NEWS_MAX: usize = 128;
/// Maximum number of concurrent event readers.
const READERS_MAX: usize = 64;
/// Maximum number of open connections, event readers included. Beyond it, a new connection
/// replaces the oldest one that does not read events: idle clients cannot lock others out, and the
/// generator does not run out of file descriptors.
const CONNECTIONS_MAX: usize = 2 * READERS_MAX;
/// Limits on the time and size of a request's headers.
pub(crate) const HEADERS_WITHIN: Duration = Duration::from_secs(if cfg!(test) { 4 } else { 10 });
const HEADERS_BYTES_MAX: usize = 16 << 10;
/// Sent data must be acknowledged within this time, milliseconds.
const ACKNOWLEDGED_WITHIN_MS: u32 = if cfg!(test) { 3_000 } else { 30_000 };
/// Maximum age of a connection. The live page then reconnects and gets a snapshot.
const CONNECTED_MAX: Duration = Duration::from_secs(900);
/// Delay after a failed accept, such as one for lack of file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// Reply to a request for a report that does not exist.
const NO_REPORT: &str = "no report yet; it is written when the run ends\n";
/// Delay after which a disconnected reader reconnects.
const RETRY: Duration = Duration::from_secs(1);
/// Time for readers to fetch the report after the run.
const LINGER: Duration = Duration::from_secs(5);
/// Interval between checks whether readers are still connected.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// State shared by the run's thread and the server's thread.
struct Shared {
    watched: Mutex<Watched>,
    news: broadcast::Sender<News>,
    report: Mutex<Option<PathBuf>>,
    started: Instant,
}

impl Shared {
    fn watched(&self) -> MutexGuard<'_, Watched> {
        lock(&self.watched)
    }

    fn at_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Sends updates to all readers without waiting for them.
    fn publish(&self, news: impl IntoIterator<Item = News>) {
        for news in news {
            // The only error is that nobody listens.
            let _ = self.news.send(news);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sink that serves the run's events until it is dropped.
pub struct Dash {
    shared: Arc<Shared>,
    /// Dropped to stop the server.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Starts to answer requests on a new thread, which calls `prepare` first, for example to pin
    /// itself.
    pub fn serve(self, prepare: impl FnOnce() + Send + 'static) -> Result<Dash, ServeError> {
        self.socket.set_nonblocking(true).map_err(ServeError::Start)?;
        let shared = Arc::new(Shared {
            watched: Mutex::default(),
            news: broadcast::Sender::new(NEWS_MAX),
            report: Mutex::default(),
            started: Instant::now(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(ServeError::Start)?;
        let (stop, stopped) = oneshot::channel();
        let (is_private, socket, own) = (self.is_private(), self.socket, shared.clone());
        let thread = thread::Builder::new().name("dash".into()).spawn(move || {
            prepare();
            let server = serve(socket, own, is_private);
            // Unfinished replies end with the runtime, so a stuck reader does not delay the end.
            runtime.block_on(async {
                let server = tokio::spawn(server);
                let _ = stopped.await;
                server.abort();
            });
            runtime.shutdown_background();
        });
        let thread = Some(thread.map_err(ServeError::Start)?);
        Ok(Dash { shared, stop: Some(stop), thread })
    }
}

async fn serve(socket: TcpListener, shared: Arc<Shared>, is_private: bool) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(socket)?;
    let mut pages = Router::new()
        .route("/", get(async || no_store(Html(PAGE))))
        .route("/metrics", get(metrics))
        .route("/events", get(events))
        .route("/report", get(report))
        .fallback(async || {
            let text = "pages: /, /metrics, /events and, after the run, /report\n";
            no_store((StatusCode::NOT_FOUND, text))
        })
        .with_state(shared);
    if is_private {
        pages = pages.layer(middleware::from_fn(for_this_machine));
    }
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(HEADERS_BYTES_MAX);
    let mut connections: VecDeque<Connection> = VecDeque::new();
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            sleep(ACCEPT_AGAIN).await;
            continue;
        };
        make_room(&mut connections).await;
        // Otherwise a stuck reader keeps its slot until `CONNECTED_MAX`.
        let _ = setsockopt(&socket, TcpUserTimeout, &ACKNOWLEDGED_WITHIN_MS);
        let reads_news = ReadsNews::default();
        let pages = pages.clone().layer(Extension(reads_news.clone()));
        let connection =
            http.serve_connection(TokioIo::new(socket), TowerToHyperService::new(pages));
        // Errors of single connections are ignored.
        let task = tokio::spawn(async move { drop(timeout(CONNECTED_MAX, connection).await) });
        connections.push_back(Connection { task, reads_news });
    }
}

/// An open connection.
struct Connection {
    task: JoinTask<()>,
    reads_news: ReadsNews,
}

/// Whether a connection reads events; shared with its reader.
#[derive(Clone, Default)]
struct ReadsNews(Arc<AtomicBool>);

/// Makes room for one more connection.
async fn make_room(connections: &mut VecDeque<Connection>) {
    connections.retain(|connection| !connection.task.is_finished());
    if connections.len() < CONNECTIONS_MAX {
        return;
    }
    let idle = |connection: &Connection| !connection.reads_news.0.load(Ordering::Relaxed);
    // One exists: `READERS_MAX` is less than `CONNECTIONS_MAX`.
    let oldest = connections.iter().position(idle).unwrap_or_default();
    if let Some(Connection { task, .. }) = connections.remove(oldest) {
        task.abort();
        // Its file descriptor is free once the task has ended.
        let _ = task.await;
    }
}

/// Refuses requests for another host. Otherwise another site could point its name at this address
/// and read data meant for this machine only (DNS rebinding).
async fn for_this_machine(request: Request, next: Next) -> Response {
    let hosts = request.headers().get_all(header::HOST);
    // Only HTTP/1.1 requires a `Host` (RFC 9112, section 3.2).
    if request.version() == Version::HTTP_11 && hosts.iter().count() != 1 {
        return no_store((StatusCode::BAD_REQUEST, "expected exactly one `Host` header\n"));
    }
    let mut named = hosts.iter().map(|host| host.to_str().unwrap_or_default());
    let target = request.uri().authority().map(Authority::as_str);
    if named.all(is_this_machine) && target.is_none_or(is_this_machine) {
        return next.run(request).await;
    }
    let text = "this page is only served to this machine (expected http://localhost or \
                http://127.0.0.1; --serve 0.0.0.0:PORT serves others)\n";
    no_store((StatusCode::MISDIRECTED_REQUEST, text))
}

/// Whether a `Host` is `localhost` or a loopback address, with or without a port.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Forbids caching of a reply.
fn no_store(answer: impl IntoResponse) -> Response {
    let headers =
        [(header::CACHE_CONTROL, "no-store"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (headers, answer).into_response()
}

async fn metrics(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let accept = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let form = Form::preferred(&accept.collect::<Vec<_>>().join(","));
    // Render a copy, so that the run's thread does not wait for the lock.
    let metrics = shared.watched().metrics.clone();
    no_store(([(header::CONTENT_TYPE, form.content_type())], metrics.render(form)))
}

/// Reads a regular file, but not through a symbolic link; parent directories can be links.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut page = Vec::new();
    file.read_to_end(&mut page)?;
    Ok(page)
}

async fn report(State(shared): State<Arc<Shared>>) -> Response {
    let path = lock(&shared.report).clone();
    match path.map(|path| read_file(&path)) {
        Some(Ok(page)) => no_store(([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page)),
        _ => no_store((StatusCode::NOT_FOUND, NO_REPORT)),
    }
}

async fn events(
    State(shared): State<Arc<Shared>>,
    Extension(reads_news): Extension<ReadsNews>,
) -> Response {
    if shared.news.receiver_count() >= READERS_MAX {
        let text = format!(
            "all {READERS_MAX} reader slots are in use; try again when a reader has disconnected\n"
        );
        return no_store((StatusCode::SERVICE_UNAVAILABLE, text));
    }
    let stream =
        Sse::new(Reader::new(shared, reads_news).into_stream()).keep_alive(KeepAlive::default());
    no_store(stream)
}

/// A client of the event stream.
struct Reader {
    shared: Arc<Shared>,
    inbox: broadcast::Receiver<News>,
    /// State before the first update in `inbox`; `None` once it is sent.
    snapshot: Option<News>,
    reads_news: ReadsNews,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.reads_news.0.store(false, Ordering::Relaxed);
    }
}

impl Reader {
    fn new(shared: Arc<Shared>, reads_news: ReadsNews) -> Self {
        let (inbox, snapshot) = Self::subscribe(&shared);
        reads_news.0.store(true, Ordering::Relaxed);
        Self { shared, inbox, snapshot: Some(snapshot), reads_news }
    }

    /// A snapshot, and a receiver of all updates after it.
    fn subscribe(shared: &Shared) -> (broadcast::Receiver<News>, News) {
        // Updates are sent under the same lock, so none is missed or sent twice.
        let watched = shared.watched();
        (shared.news.subscribe(), watched.snapshot(shared.at_s()))
    }

    fn into_stream(self) -> impl Stream<Item = Result<SseEvent, Infallible>> {
        stream::unfold(self, |mut reader| async {
            let news = reader.next().await?;
            let event = SseEvent::default().event(news.name).data(news.json).retry(RETRY);
            Some((Ok(event), reader))
        })
    }

    async fn next(&mut self) -> Option<News> {
        if let Some(snapshot) = self.snapshot.take() {
            return Some(snapshot);
        }
        match self.inbox.recv().await {
            Ok(news) => Some(news),
            Err(broadcast::error::RecvError::Closed) => None,
            Err(broadcast::error::RecvError::Lagged(_)) => {
                let (inbox, snapshot) = Self::subscribe(&self.shared);
                self.inbox = inbox;
                Some(snapshot)
            }
        }
    }
}

impl Sink for Dash {
    fn name(&self) -> &'static str {
        "live page"
    }

    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        let mut watched = self.shared.watched();
        let news = watched.take(event, self.shared.at_s());
        self.shared.publish(news);
        Ok(())
    }
}

impl Dash {
    /// Sets the report to serve, or `None` for no report, and notifies the readers.
    pub fn report(&mut self, page: Option<PathBuf>) {
        let available = page.is_some();
        *lock(&self.shared.report) = page;
        let mut watched = self.shared.watched();
        let news = watched.set_report_available(available);
        self.shared.publish([news]);
    }

    /// Stops the server when all readers have disconnected, as the live page does once it has the
    /// report, or after five seconds.
    pub fn end(self) {
        let until = Instant::now() + LINGER;
        while self.shared.news.receiver_count() > 0 && Instant::now() < until {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Dash {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread has already reported its panic, if any.
            let _ = thread.join();
        }
    }
}
