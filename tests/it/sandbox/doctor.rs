//! What is said about a machine that cannot keep every promise.

use std::path::Path;

use doc2harness::adapters::sandbox::probe::{self, State};
use doc2harness::adapters::sandbox::{Docker, DockerConfig, Namespaces, Sandbox, SandboxError};
use futures_util::StreamExt;

use crate::project::{Project, ran};

use super::{PIPELINE, Place, block_on, docker_config, on_docker};

pub async fn doctor_finds_promises_kept(place: Place) {
    let findings = match place.sandbox.name() {
        "docker" => probe::docker(docker_config()).await,
        _ => probe::namespaces(&Namespaces::new(PIPELINE)).await,
    };
    let mut worst = vec![State::Holds];
    if !nix::unistd::geteuid().is_root() {
        worst.push(State::Weaker);
    }
    assert!(
        findings
            .iter()
            .filter(|finding| finding.promise != "control groups, version 2")
            .all(|finding| worst.contains(&finding.state)),
        "{findings:#?}"
    );
    let promises: Vec<_> = findings.iter().map(|finding| finding.promise).collect();
    for promise in [
        "no network",
        "read-only root",
        "system call filter",
        "memory limit",
        "process limit",
        "time limit",
        "unprivileged user",
        "process 1 out of reach",
        "no other sockets",
        "open files limit",
        "nothing outlives a launch",
        "output limit",
        "sized folders",
        "clean end",
    ] {
        assert!(promises.contains(&promise), "{promises:?}");
    }
}

#[test]
fn doctor_says_of_each_promise_how_it_stands() {
    let project = Project::new();
    let json = project.run(&["--json", "doctor"]).json();
    let words = project.run(&["doctor"]).stdout;
    let states = [
        "holds",
        "holds weaker",
        "does not hold",
        "not provable here",
    ];
    let parts = json["parts"].as_array().expect("parts");
    assert_eq!(parts[1]["name"], "namespace");
    for check in parts
        .iter()
        .flat_map(|part| part["checks"].as_array().expect("checks"))
    {
        let of = |key: &str| check[key].as_str().expect("text");
        assert!(states.contains(&of("state")), "{check}");
        // What was seen may differ from one try to the next, and so may the state where a machine is too busy.
        let line = words.lines().find(|line| line.contains(of("what")));
        let line = line.unwrap_or_else(|| panic!("{} is in no line of {words}", of("what")));
        assert!(states.iter().any(|state| line.contains(state)), "{line}");
    }
    let second = parts[1]["checks"]
        .as_array()
        .expect("checks")
        .last()
        .expect("a check");
    assert_eq!(second["what"], "control groups, version 2");
    let found = second["detail"].as_str().expect("text");
    assert!(
        !found.is_empty() && words.contains("control groups, version 2"),
        "{words}"
    );
}

#[test]
fn doctor_says_what_to_type_without_docker() {
    let config = DockerConfig {
        socket: Some("/no/such.sock".into()),
        ..docker_config()
    };
    block_on(async {
        let findings = probe::docker(config).await;
        let [daemon] = findings.as_slice() else {
            panic!("{findings:#?}")
        };
        assert_eq!(
            (daemon.promise, daemon.state),
            ("docker daemon", State::Broken)
        );
        assert!(
            daemon.remedy.as_ref().unwrap().contains(".ci/start-docker"),
            "{daemon:?}"
        );
    });
}

#[test]
fn refused_namespaces_say_what_to_type() {
    let project = Project::new();
    let script =
        format!("echo 0 > /proc/sys/user/max_user_namespaces && exec {PIPELINE} --json doctor");
    let mut command = std::process::Command::new("unshare");
    command
        .args(["-Ur", "sh", "-c", &script])
        .current_dir(project.path(""));
    let said = ran(&mut command);
    assert_eq!(said.code, 4, "{}", said.stderr);
    let parts = said.json();
    let refused = parts["parts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|part| part["name"] == "namespace")
        .flat_map(|part| part["checks"].as_array().into_iter().flatten())
        .find(|check| check["what"] == "user namespaces")
        .unwrap_or_else(|| panic!("{parts:#}"));
    assert_eq!(refused["state"], "does not hold", "{refused}");
    let remedy = refused["remedy"].as_str().unwrap_or_default();
    assert!(
        remedy.contains("sysctl -w user.max_user_namespaces"),
        "{refused}"
    );
}

#[test]
fn missing_image_is_said_so() {
    on_docker(|_: Place| async {
        let config = DockerConfig {
            image: "doc2harness-absent:1".into(),
            ..docker_config()
        };
        let error = Docker::connect(config)
            .await
            .expect_err("an image that nobody made");
        assert!(
            matches!(&error, SandboxError::ImageMissing { image } if image == "doc2harness-absent:1"),
            "{error}"
        );
        assert!(error.to_string().contains(".ci/base-image"));
    });
}

#[test]
#[cfg(target_arch = "x86_64")]
fn image_that_cannot_run_our_program_is_said_so() {
    const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
    on_docker(|place: Place| async move {
        // Nothing at all, and a loader that finds no library: the daemon fails to start the one, the other starts and dies.
        for (name, file) in [("empty", None), ("loader", Some(LOADER))] {
            let image = format!("doc2harness-test-{name}:1");
            import_image(&image, file).await;
            let docker = Docker::connect(DockerConfig {
                image: image.clone(),
                ..docker_config()
            })
            .await
            .unwrap();
            let error = docker
                .open(place.spec())
                .await
                .err()
                .expect("a cell was opened");
            assert!(
                matches!(&error, SandboxError::Setup { .. }),
                "{name}: {error:?}"
            );
            if file.is_some() {
                assert!(error.to_string().contains("libgcc_s.so.1"), "{error}");
            }
            let client = bollard::Docker::connect_with_unix_defaults().unwrap();
            let force = bollard::query_parameters::RemoveImageOptionsBuilder::default()
                .force(true)
                .build();
            client
                .remove_image(&image, Some(force), None)
                .await
                .unwrap();
        }
    });
}

/// Makes an image that holds one file of the host, or none.
async fn import_image(image: &str, file: Option<&str>) {
    let mut tar = tar::Builder::new(Vec::new());
    if let Some(file) = file {
        tar.append_path_with_name(Path::new(file).canonicalize().unwrap(), &file[1..])
            .unwrap();
    }
    let options = bollard::query_parameters::CreateImageOptionsBuilder::default()
        .from_src("-")
        .repo(image)
        .build();
    let client = bollard::Docker::connect_with_unix_defaults().unwrap();
    let body = bollard::body_full(tar.into_inner().unwrap().into());
    let mut progress = std::pin::pin!(client.create_image(Some(options), Some(body), None));
    while let Some(step) = progress.next().await {
        step.unwrap();
    }
}
