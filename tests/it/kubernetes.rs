//! `submit --engine kubernetes`: its manifest, and its follower beside a server that plays the API of Kubernetes. Nothing
//! here was seen on a live cluster: answers are written after the documentation of Kubernetes 1.33.

#[cfg(feature = "kubernetes")]
mod built;

use crate::project::Project;

const ENGINE: [&str; 6] = [
    "--engine",
    "kubernetes",
    "--image",
    "registry/pipeline:1",
    "--claim",
    "project",
];

fn planned(project: &Project) -> String {
    let fixed = ["plan", "--run", "r", "--nonce-seed", "s"];
    let planned = project.json(&[&fixed[..], &["-c", "reference", "-n", "3"]].concat());
    planned["file"].as_str().expect("a file").to_owned()
}

#[cfg(not(feature = "kubernetes"))]
#[test]
fn a_program_without_kubernetes_says_how_to_build_it() {
    let project = crate::evaluate::project();
    let plan = planned(&project);
    for more in [&[][..], &["--dry-run"]] {
        let ran = project.run(&[&["submit", &plan], &ENGINE[..], more].concat());
        assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
        assert!(
            ran.stderr.contains("--features kubernetes"),
            "{}",
            ran.stderr
        );
        assert!(!project.path("data/shards").exists(), "nothing is written");
    }
}
