//! Promises that both sandboxes have to keep: each becomes a test in a module `namespaces` and one in a module `docker`.
//! The latter's run when they are asked to, and then a missing daemon is a failure.

use doc2harness::adapters::sandbox::{Docker, DockerConfig, Namespaces, Sandbox};

use crate::project::docker_asked;

/// The program under test, which is process 1 of a cell.
pub const PIPELINE: &str = env!("CARGO_BIN_EXE_pipeline");

/// A test for each promise and sandbox. A promise is an async function that takes what `From<Box<dyn Sandbox>>` makes.
macro_rules! promises {
    ($($promise:ident),* $(,)?) => {
        mod namespaces {
            $(#[test] fn $promise() { crate::both_sandboxes::on_namespaces(super::$promise); })*
        }
        mod docker {
            $(#[test] fn $promise() { crate::both_sandboxes::on_docker(super::$promise); })*
        }
    };
}
pub(crate) use promises;

pub fn on_namespaces<P: From<Box<dyn Sandbox>>, F: Future<Output = ()>>(
    promise: impl FnOnce(P) -> F,
) {
    let sandbox: Box<dyn Sandbox> = Box::new(Namespaces::new(PIPELINE));
    block_on(async { promise(sandbox.into()).await });
}

pub fn on_docker<P: From<Box<dyn Sandbox>>, F: Future<Output = ()>>(promise: impl FnOnce(P) -> F) {
    if !docker_asked() {
        return;
    }
    block_on(async {
        let docker = Docker::connect(docker_config()).await;
        let sandbox: Box<dyn Sandbox> = Box::new(docker.unwrap_or_else(|error| panic!("{error}")));
        promise(sandbox.into()).await;
    });
}

pub fn docker_config() -> DockerConfig {
    DockerConfig {
        program: PIPELINE.into(),
        ..DockerConfig::default()
    }
}

pub fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(future);
}
