//! Passwords, rights and TLS, with the words of Redis.

use crate::raw::{PATIENCE, Raw, command, options, put};
use gateway::{Acl, Gateway, Options, StartError, TlsFiles};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

const NO_AUTH: &str = "-NOAUTH Authentication required.\r\n";
const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

fn start(acl: Acl) -> Gateway {
    Gateway::start(Options { acl, ..options() }).unwrap()
}

#[test]
fn a_password_is_asked_for() {
    put("secret", "1");
    let gateway = start(Acl::with_password(b"word"));
    let mut client = Raw::connect(gateway.local());
    client.ask("GET secret\r\nPING\r\nCLIENT LIST\r\n", NO_AUTH.repeat(3));
    client.ask("AUTH wrong\r\nAUTH nobody word\r\n", WRONG.repeat(2));
    let hello = "-NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                 HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client \
                 and select the RESP protocol version at the same time\r\n";
    client.ask("HELLO 3\r\n", hello);
    client.ask("AUTH word\r\nGET secret\r\n", "+OK\r\n$1\r\n1\r\n");
    client.ask("RESET\r\nGET secret\r\n", format!("+RESET\r\n{NO_AUTH}"));
    client.send("HELLO 3 AUTH default word SETNAME me\r\n");
    assert_eq!(client.line(), "%7");
    let mut stranger = Raw::connect(gateway.local());
    stranger.send(format!("*11\r\n{}", "$1\r\na\r\n".repeat(11)));
    let reason = "unauthenticated multibulk length";
    assert_eq!(stranger.rest(), format!("-ERR Protocol error: {reason}\r\n"));
}

#[test]
fn a_password_that_nobody_asks_for_is_a_mistake() {
    let gateway = start(Acl::open());
    let mut client = Raw::connect(gateway.local());
    client.send("AUTH word\r\n");
    let line = client.line();
    assert!(line.starts_with("-ERR AUTH <password> called without any password"), "{line}");
    client.ask("AUTH default anything\r\n", "+OK\r\n");
}

#[test]
fn passwords_are_not_told_by_the_slow_log() {
    let gateway = start(Acl::with_password(b"word"));
    let mut client = Raw::connect(gateway.local());
    client.ask("AUTH word\r\nCONFIG SET slowlog-log-slower-than 0\r\n", "+OK\r\n+OK\r\n");
    client.ask("SLOWLOG RESET\r\nAUTH word\r\n", "+OK\r\n+OK\r\n");
    client.ask("HELLO 2 AUTH default wrong\r\n", WRONG);
    // The reset itself is there, and it alone.
    client.ask("SLOWLOG LEN\r\n", ":1\r\n");
}

#[test]
fn users_may_do_what_their_rules_say() {
    put("app:1", "1");
    let users = "user default off\nuser alice on >pw ~app:* +@read +acl|whoami";
    let gateway = start(Acl::parse(users).unwrap());
    let mut client = Raw::connect(gateway.local());
    client.ask("PING\r\n", NO_AUTH);
    client.ask("AUTH alice pw\r\n", "+OK\r\n");
    client.ask("ACL WHOAMI\r\n", "$5\r\nalice\r\n");
    client.ask("GET app:1\r\n", "$1\r\n1\r\n");
    client.ask("GET other\r\n", "-NOPERM No permissions to access a key\r\n");
    let denied =
        |name| format!("-NOPERM User alice has no permissions to run the '{name}' command\r\n");
    client.ask("CONFIG GET save\r\n", denied("config|get"));
    client.ask("ACL LIST\r\n", denied("acl|list"));
    client.ask("QUIT\r\n", "+OK\r\n");
}

#[test]
fn nobody_listens_to_a_network_without_a_password() {
    let listen = "0.0.0.0:0".parse().unwrap();
    let error = Gateway::start(Options { listen, ..options() }).unwrap_err();
    assert!(matches!(error, StartError::Unprotected(_)), "{error}");
    let off = Acl::parse("user default off").unwrap();
    Gateway::start(Options { listen, acl: off, ..options() }).unwrap().stop();
}

/// A certificate of an authority's, in files.
fn issue(folder: &Path, name: &str, authority: &rcgen::CertifiedIssuer<'_, rcgen::KeyPair>) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    std::fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
    std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

fn authority(folder: &Path, name: &str) -> rcgen::CertifiedIssuer<'static, rcgen::KeyPair> {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let authority = rcgen::CertifiedIssuer::self_signed(params, key).unwrap();
    std::fs::write(folder.join(format!("{name}.pem")), authority.pem()).unwrap();
    authority
}

/// What a client under TLS gets for PING and GET.
fn ask_under_tls(gateway: &Gateway, folder: &Path, own: Option<&str>) -> std::io::Result<String> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("ours.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let certificate =
                CertificateDer::from_pem_file(folder.join(format!("{own}.pem"))).unwrap();
            let key = PrivateKeyDer::from_pem_file(folder.join(format!("{own}.key"))).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(gateway.local()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = StreamOwned::new(connection, socket);
    stream.write_all(
        &[b"PING\r\n".to_vec(), command(&["GET", "tls"]), b"QUIT\r\n".to_vec()].concat(),
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

#[test]
fn clients_may_speak_tls_and_be_asked_for_a_certificate() {
    put("tls", &"x".repeat(1_000));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (ours, theirs) = (authority(folder, "ours"), authority(folder, "theirs"));
    issue(folder, "server", &ours);
    issue(folder, "friend", &ours);
    issue(folder, "foe", &theirs);
    let files = TlsFiles {
        certificate: folder.join("server.pem"),
        key: folder.join("server.key"),
        authorities: None,
    };
    let expected = format!("+PONG\r\n$1000\r\n{}\r\n+OK\r\n", "x".repeat(1_000));
    let gateway = Gateway::start(Options { tls: Some(files.clone()), ..options() }).unwrap();
    assert_eq!(ask_under_tls(&gateway, folder, None).unwrap(), expected);
    // Whoever does not speak TLS is not understood, and whoever says nothing keeps nobody.
    let mut plain = Raw::connect(gateway.local());
    plain.send("PING\r\n");
    assert!(!plain.rest().contains("PONG"));
    let _silent = Raw::connect(gateway.local());
    gateway.stop();

    let authorities = Some(folder.join("ours.pem"));
    let tls = Some(TlsFiles { authorities, ..files.clone() });
    let gateway = Gateway::start(Options { tls, ..options() }).unwrap();
    assert_eq!(ask_under_tls(&gateway, folder, Some("friend")).unwrap(), expected);
    assert!(ask_under_tls(&gateway, folder, Some("foe")).is_err());
    assert!(ask_under_tls(&gateway, folder, None).is_err());

    let wrong = TlsFiles { key: folder.join("friend.key"), ..files.clone() };
    let error = Gateway::start(Options { tls: Some(wrong), ..options() }).unwrap_err();
    assert!(matches!(error, StartError::Tls(_)), "{error}");
    let missing = TlsFiles { certificate: folder.join("none.pem"), ..files };
    let error = Gateway::start(Options { tls: Some(missing), ..options() }).unwrap_err();
    assert!(error.to_string().contains("none.pem"), "{error}");
}
