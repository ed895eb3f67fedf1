//! Somebody who asks admin servers, with whatever certificate or with none: it looks at nothing of
//! its own before it is shown.

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long one read or write may take.
const WAIT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(crate) struct Asker {
    config: Arc<ClientConfig>,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) struct Asked {
    /// None if there was no connection, or it was closed.
    pub(crate) status: Option<u16>,
    /// The certificate that the server has shown.
    pub(crate) shown: Vec<u8>,
    pub(crate) body: String,
}

impl Asker {
    /// Who believes this authority, and shows this certificate, whose key lies beside it. It goes
    /// by addresses, as other tools do.
    pub(crate) fn new(ca: &Path, certificate: Option<&Path>) -> Self {
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_file_iter(ca).unwrap() {
            roots.add(authority.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(roots);
        let config = match certificate {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let chain = CertificateDer::pem_file_iter(path).unwrap();
                let chain = chain.map(Result::unwrap).collect();
                let key = PrivateKeyDer::from_pem_file(path.with_extension("key")).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        Self { config: Arc::new(config) }
    }

    /// Sends a request with these headers; one with a content type has a body.
    pub(crate) fn ask(
        &self,
        method: &str,
        at: SocketAddr,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Asked {
        let mut asked = Asked { status: None, shown: Vec::new(), body: String::new() };
        let Ok(socket) = TcpStream::connect_timeout(&at, WAIT) else { return asked };
        socket.set_read_timeout(Some(WAIT)).unwrap();
        socket.set_write_timeout(Some(WAIT)).unwrap();
        let name = rustls::pki_types::ServerName::from(at.ip());
        let tls = ClientConnection::new(Arc::clone(&self.config), name).unwrap();
        let mut stream = StreamOwned::new(tls, socket);
        let host = format!("{at}");
        let has = |wanted: &str| headers.iter().any(|(name, _)| *name == wanted);
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !has("host") {
            head.push_str(&format!("host: {host}\r\n"));
        }
        let body = if has("content-type") { "{}" } else { "" };
        head.push_str(&format!("content-length: {}\r\n", body.len()));
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let text = format!("{head}\r\n{body}");
        if stream.write_all(text.as_bytes()).is_err() {
            return asked;
        }
        let mut answer = Vec::new();
        // It may be closed without a word, after an answer or without one.
        stream.read_to_end(&mut answer).ok();
        if let Some([first, ..]) = stream.conn.peer_certificates() {
            asked.shown = first.to_vec();
        }
        let answer = String::from_utf8_lossy(&answer);
        asked.status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        asked.body = answer.split_once("\r\n\r\n").map_or_else(String::new, |it| it.1.to_owned());
        asked
    }

    pub(crate) fn status(&self, method: &str, at: SocketAddr, path: &str) -> Option<u16> {
        self.ask(method, at, path, &[]).status
    }
}
