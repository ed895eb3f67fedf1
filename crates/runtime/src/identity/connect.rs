//! How one process asks another over HTTP, and under TLS if it is to be so.

use super::names::Expected;
use super::security::Security;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use ureq::config::Config;
use ureq::unversioned::resolver::Resolver;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, TcpConnector,
    Transport, TransportAdapter,
};

/// Who asks others of the cluster. Each new connection shows the newest certificate.
pub fn agent(
    security: &Security,
    expected: Expected,
    config: Config,
    resolver: impl Resolver,
) -> ureq::Agent {
    agent_over(MemberTls { security: security.clone(), expected }, config, resolver)
}

/// Who asks others, over connections that begin like this.
pub(super) fn agent_over(tls: impl Tls, config: Config, resolver: impl Resolver) -> ureq::Agent {
    let connector = ().chain(TcpConnector::default()).chain(TlsConnector(tls));
    ureq::Agent::with_parts(config, connector, resolver)
}

/// How connections are put under TLS.
pub(super) trait Tls: fmt::Debug + Send + Sync + 'static {
    /// Begins one; none if the connection is to be a plain one.
    fn begin(&self, to: &ConnectionDetails<'_>) -> Result<Option<ClientConnection>, ureq::Error>;
}

/// For what the library of TLS says.
pub(super) fn refused(error: rustls::Error) -> ureq::Error {
    ureq::Error::Other(Box::new(error))
}

/// To others of the cluster.
#[derive(Debug)]
struct MemberTls {
    security: Security,
    expected: Expected,
}

impl Tls for MemberTls {
    fn begin(&self, to: &ConnectionDetails<'_>) -> Result<Option<ClientConnection>, ureq::Error> {
        let Some(credentials) = self.security.credentials() else { return Ok(None) };
        let config = credentials.client(self.expected.clone()).map_err(refused)?;
        // Nobody looks at it: who it is, its certificate says.
        let at = to.addrs.first().ok_or(ureq::Error::HostNotFound)?;
        let name = ServerName::from(at.ip());
        ClientConnection::new(Arc::new(config), name).map(Some).map_err(refused)
    }
}

#[derive(Debug)]
struct TlsConnector<T>(T);

impl<In: Transport, T: Tls> Connector<In> for TlsConnector<T> {
    type Out = Either<In, TlsTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let Some(transport) = chained else { return Ok(None) };
        let Some(mut tls) = self.0.begin(details)? else {
            return Ok(Some(Either::A(transport)));
        };
        let clock = Arc::clone(&details.current_time);
        let mut socket = TransportAdapter::new(transport.boxed(), clock);
        socket.set_timeout(details.timeout);
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        let buffers = LazyBuffers::new(
            details.config.input_buffer_size(),
            details.config.output_buffer_size(),
        );
        let stream = StreamOwned::new(tls, socket);
        Ok(Some(Either::B(TlsTransport { buffers, stream })))
    }
}

struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        self.stream.write_all(output)?;
        self.stream.flush()?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let input = self.buffers.input_append_buf();
        let amount = match self.stream.read(input) {
            Ok(amount) => amount,
            // It was closed without a word, as by a process that was killed.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
            Err(error) => return Err(error.into()),
        };
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsTransport").finish_non_exhaustive()
    }
}
