//! A key to somebody's service: it is in no output, no error and no file, and goes through a network only encrypted.

use url::{Host, Url};

#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// None for a text that no header can carry.
    pub fn new(text: &str) -> Option<Self> {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        plain.then(|| Self(text.to_owned()))
    }

    /// For the header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Whether nobody between here and the host can read what is sent: it is encrypted, or stays on this machine.
pub fn is_private(url: &Url) -> bool {
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "https" || is_local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown_and_not_sent_in_clear() {
        let secret = Secret::new("s-1").expect("a secret");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert!(Secret::new("a\nb").is_none() && Secret::new("").is_none());
        let check = |url: &str, expected: bool| {
            assert_eq!(is_private(&url.parse().expect("a URL")), expected, "{url}");
        };
        check("https://example.com/v1", true);
        check("http://example.com/v1", false);
        check("http://localhost:8000/v1", true);
        check("http://127.0.0.1/v1", true);
        check("http://[::1]/v1", true);
        check("http://127.0.0.1.example.com/v1", false);
    }
}
