//! Which program and which image run shards: those of the plan, or, where the plan says so, any build of its version.

use doc2harness::domain::shard::ShardId;

use super::hostile::edited;
use super::{CANDIDATES, Recorded};
use crate::project::docker_asked;

#[test]
fn a_plan_for_any_build_takes_outcomes_of_several_and_says_so() {
    let recorded = Recorded::new();
    let words = [&["--shards", "2", "--any-build"], &CANDIDATES[..]].concat();
    let (plan, file) = recorded.plan_with(&words);
    for index in [1, 2] {
        let shard = ShardId::new(index, 2).expect("a shard");
        recorded.sealed(&plan, shard, index.into());
    }
    let merged = recorded.merged_like_one(&file, &[]);
    let both = serde_json::json!(["build-id:1", "build-id:2"]);
    assert_eq!(merged["builds"], both);
    let ran = recorded.project.run(&["merge", &file]);
    let said = "outcomes of several builds: build-id:1, build-id:2";
    assert!(ran.stdout.contains(said), "{}", ran.stdout);

    // What names no build is nobody's.
    for odd in ["", "build-id:", "build-id:1\\u001b[2J", "sha256:../1"] {
        let attempt = recorded.sealed(&plan, ShardId::new(1, 2).expect("a shard"), 3);
        let claim = attempt.join("claim.json");
        let text = std::fs::read_to_string(&claim).expect("reads");
        let text = text.replace("\"build-id:3\"", &format!("\"{odd}\""));
        std::fs::write(&claim, text).expect("writes");
        let ran = recorded.project.run(&["merge", &file]);
        let told = ran.stdout.contains("names no build") && !ran.stdout.contains('\x1b');
        assert!(told, "{odd}: {}{}", ran.stdout, ran.stderr);
        std::fs::remove_dir_all(attempt).expect("removes");
    }

    // This very program runs it too.
    let command = ["evaluate", "--plan", &file, "--shard", "1/2"];
    let elsewhere = recorded.project.path("elsewhere");
    let folder = elsewhere.to_str().expect("text");
    let ran = recorded
        .project
        .json(&[&command[..], &["--shards", folder]].concat());
    assert_eq!(ran["sealed"], true);
}

#[test]
fn docker_cells_run_on_the_image_of_the_plan_and_on_no_other() {
    if !docker_asked() {
        return;
    }
    let recorded = Recorded::new();
    let project = &recorded.project;
    let words = [
        "--shards",
        "1",
        "-c",
        "reference",
        "--case",
        "headless/exit",
    ];
    let (plan, file) = recorded.plan_with(&[&words[..], &["--sandbox", "docker"]].concat());
    let image = plan.plan.image.as_ref().expect("Docker has images");
    let other = edited(&file, &plan, image, "sha256:0");
    let ran = project.run(&["evaluate", "--plan", &other, "--shard", "1/1"]);
    assert_eq!(ran.code, 78, "{}{}", ran.stdout, ran.stderr);
    let said = format!("the image is {image}, the plan has sha256:0");
    assert!(ran.stderr.contains(&said), "{}", ran.stderr);
    let ran = project.json(&["evaluate", "--plan", &file, "--shard", "1/1"]);
    assert_eq!(ran["sealed"], true);
    let merged = project.run(&["merge", &file]);
    assert_eq!(merged.code, 0, "{}{}", merged.stdout, merged.stderr);
}
