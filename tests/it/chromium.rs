//! Chromium without a window, driven over pipes in the DevTools protocol: what a person does with keys, and what the
//! page shows. Pictures go to `target/pictures/`.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use serde_json::{Value, json};

use crate::project::repository;

pub struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    n_sent: u64,
    session: Option<String>,
    /// Events of the page, as they came.
    pub events: Vec<Value>,
    _profile: tempfile::TempDir,
}

/// Whether this run of the tests was asked to use a browser; said aloud once when it was not.
pub fn asked() -> bool {
    static SAID: std::sync::Once = std::sync::Once::new();
    let asked = std::env::var_os("PIPELINE_TEST_BROWSER").is_some_and(|asked| asked == "1");
    if !asked {
        SAID.call_once(|| {
            let text = b"\nThe browser was not asked for; set PIPELINE_TEST_BROWSER=1\n";
            // Past the capture of the test runner, so that it is seen in a run that passes.
            std::io::Write::write_all(&mut std::io::stderr(), text).expect("stderr takes it");
        });
    }
    asked
}

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

impl Browser {
    pub fn start() -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        let (their_in, to) = pipe();
        let (from, their_out) = pipe();
        let (reads, writes) = (their_in.as_raw_fd(), their_out.as_raw_fd());
        let mut command = Command::new("chromium");
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-extensions",
                "--disable-background-networking",
                "--remote-debugging-pipe",
                "--window-size=1280,900",
                "about:blank",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // The protocol's pipes are the descriptors 3 and 4.
        unsafe {
            command.pre_exec(move || {
                // Out of the way first: either may be 3 or 4.
                let (reads, writes) = (
                    libc::fcntl(reads, libc::F_DUPFD, 10),
                    libc::fcntl(writes, libc::F_DUPFD, 10),
                );
                for (from, to) in [(reads, 3), (writes, 4)] {
                    if from < 0 || libc::dup2(from, to) < 0 {
                        return Err(std::io::Error::last_os_error());
                    }
                }
                Ok(())
            });
        }
        let child = command
            .spawn()
            .expect("chromium is installed: apt-get install chromium");
        let mut browser = Self {
            child,
            to: to.into(),
            from: BufReader::new(from.into()),
            n_sent: 0,
            session: None,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = browser.call(
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.try_call(method, params)
            .unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn try_call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.n_sent += 1;
        let mut message = json!({ "id": self.n_sent, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut bytes = serde_json::to_vec(&message).expect("JSON");
        bytes.push(0);
        self.to.write_all(&bytes).expect("chromium listens");
        loop {
            let mut bytes = Vec::new();
            self.from
                .read_until(0, &mut bytes)
                .expect("chromium answers");
            assert_eq!(bytes.pop(), Some(0), "chromium has ended");
            let mut answer: Value = serde_json::from_slice(&bytes).expect("JSON");
            if answer["id"] == self.n_sent {
                return match answer.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(answer["result"].take()),
                };
            }
            self.events.push(answer);
        }
    }

    /// Opens an address, and waits until the page's script has run.
    pub fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
        self.until("location.href !== 'about:blank'");
    }

    /// The value of an expression; none while a page gives way to the next.
    pub fn value(&mut self, expression: &str) -> Option<Value> {
        let params = json!({ "expression": expression, "returnByValue": true });
        let mut result = self.try_call("Runtime.evaluate", params).ok()?;
        match result.get("exceptionDetails") {
            Some(_) => None,
            None => Some(result["result"]["value"].take()),
        }
    }

    pub fn text(&mut self, expression: &str) -> String {
        let value = self.value(expression).unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a page is whole and an expression is true of it.
    pub fn until(&mut self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        let whole = format!("document.documentElement.dataset.ready === 'yes' && ({expression})");
        while self.value(&whole) != Some(Value::Bool(true)) {
            if Instant::now() > end {
                let page = self.text("location.href + ' ' + document.body.innerText");
                panic!("never: {expression}\n{page}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses and releases a key, with Ctrl when it begins with `Ctrl+`.
    pub fn key(&mut self, key: &str) {
        let (key, modifiers) = match key.strip_prefix("Ctrl+") {
            Some(key) => (key, 2),
            None => (key, 0),
        };
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "Tab" => 9,
            key => i64::from(key.to_ascii_uppercase().as_bytes()[0]),
        };
        let mut params = json!({
            "type": "keyDown", "key": key, "modifiers": modifiers, "windowsVirtualKeyCode": code,
        });
        if modifiers == 0 && (key.len() == 1 || key == "Enter") {
            let text = if key == "Enter" { "\r" } else { key };
            params["text"] = text.into();
        }
        self.call("Input.dispatchKeyEvent", params);
        let params = json!({ "type": "keyUp", "key": key, "modifiers": modifiers, "windowsVirtualKeyCode": code });
        self.call("Input.dispatchKeyEvent", params);
    }

    pub fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    pub fn dark(&mut self, on: bool) {
        let value = if on { "dark" } else { "light" };
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] }),
        );
    }

    pub fn size(&mut self, width: u32, height: u32) {
        let params =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", params);
    }

    /// Keeps a picture of what the window shows.
    pub fn picture(&mut self, name: &str) {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(shot["data"].as_str().expect("a picture"))
            .expect("base64");
        let folder = repository().join("target/pictures");
        std::fs::create_dir_all(&folder).expect("makes the folder");
        std::fs::write(folder.join(format!("{name}.png")), bytes).expect("writes");
    }

    /// Faults of scripts, what the policy refused, and requests to elsewhere.
    pub fn faults(&self, ours: &str) -> Vec<String> {
        self.events
            .iter()
            .filter_map(|event| match event["method"].as_str()? {
                "Runtime.exceptionThrown" => Some(event["params"].to_string()),
                "Log.entryAdded" if event["params"]["entry"]["level"] == "error" => {
                    let entry = &event["params"]["entry"];
                    let is_refusal = entry["text"].as_str()?.contains("status of 4");
                    (!is_refusal).then(|| entry.to_string())
                }
                "Network.requestWillBeSent" => {
                    let url = event["params"]["request"]["url"].as_str()?;
                    let is_ours = [ours, "data:", "about:", "chrome"]
                        .iter()
                        .any(|one| url.starts_with(one));
                    (!is_ours).then(|| url.to_owned())
                }
                _ => None,
            })
            .collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The end to read from and the end to write to; neither is passed on to other programs.
fn pipe() -> (OwnedFd, OwnedFd) {
    nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).expect("a pipe")
}
