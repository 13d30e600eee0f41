//! HTTP to servers that people name by address, and that may be told a key.

use reqwest::{ClientBuilder, redirect};
use url::Url;

/// The address of a server, over HTTP or HTTPS; none of anything else.
pub fn address(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    (["http", "https"].contains(&url.scheme()) && url.host_str().is_some()).then_some(url)
}

/// A client for that server. Redirects are answers like others, so that no other server hears what was meant for this
/// one.
pub fn client(server: &Url) -> ClientBuilder {
    // An error means that it was installed before, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().redirect(redirect::Policy::none());
    match server.scheme() {
        // A proxy would be told all of it, the key too.
        "http" => client.no_proxy(),
        _ => client,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_an_address_and_files_have_none() {
        for good in ["http://127.0.0.1:9/v1", "https://models.example/v1"] {
            assert_eq!(address(good).expect(good).as_str(), good);
        }
        for bad in [
            "",
            "models.example/v1",
            "file:///etc/passwd",
            "ftp://a/b",
            "http://",
        ] {
            assert!(address(bad).is_none(), "{bad:?}");
        }
    }
}
