//! What a program does that was built with Kubernetes: its manifest, and its follower beside a server that plays the API
//! of Kubernetes. Answers are written after the documentation of Kubernetes 1.33.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};

use super::{ENGINE, planned};
use crate::docs::same;
use crate::fake_github::{FakeGitHub as FakeServer, Request, Response};
use crate::project::{Project, Ran};

/// The name of the plan's Jobs, without their number.
fn job_name(plan: &str) -> String {
    let stem = Path::new(plan).file_stem().expect("a name");
    format!("doc2harness-{}", stem.to_str().expect("text"))
}

#[test]
fn the_manifest_is_as_it_is_published_and_has_no_field_that_kubernetes_lacks() {
    let project = crate::evaluate::project();
    let plan = planned(&project);
    let site = ["--cpus", "4", "--namespace", "lab", "--dry-run"];
    let ran = project.run(&[&["submit", &plan], &ENGINE[..], &site].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let stem = job_name(&plan).replace("doc2harness-", "");
    let root = project.path("").canonicalize().expect("is there");
    let told = ran
        .stdout
        .replace(&stem, "PLAN")
        .replace(&root.display().to_string(), "ROOT");
    same("tests/fixtures/kubernetes/job.json", &told);
    // A field that the types do not know would be lost on the way.
    let value: Value = serde_json::from_str(&told).expect("JSON");
    let job: Job = serde_json::from_value(value.clone()).expect("a Job");
    assert_eq!(serde_json::to_value(&job).expect("JSON"), value);
    assert!(!project.path("data/shards").exists(), "nothing is written");

    let elsewhere = ["--shards", "/nowhere"];
    let ran = project.run(&[&["submit", &plan], &ENGINE[..], &site, &elsewhere].concat());
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("all that Pods see"), "{}", ran.stderr);
}

/// A server that gives these answers by method and kind, in this order; the last of a kind again and again.
fn playing(answers: [(&'static str, Vec<Response>); 3]) -> FakeServer {
    let answers = Mutex::new(BTreeMap::from(answers));
    FakeServer::start(move |request, _, _| {
        let mut answers = answers.lock().expect("no holder panics");
        let left = answers.get_mut(&*kind(request)).expect("is expected");
        match left.len() {
            0 | 1 => left.first().expect("one is left").clone(),
            _ => left.remove(0),
        }
    })
}

/// `GET jobs`
fn kind(request: &Request) -> String {
    let path = request.target.split('?').next().unwrap_or_default();
    let (_, objects) = path.rsplit_once('/').expect("a path");
    // Nothing is sent but what is posted.
    let method = if request.body.is_empty() {
        "GET"
    } else {
        "POST"
    };
    format!("{method} {objects}")
}

fn list(kind: &str, rest: &str, items: &[Value]) -> Response {
    let metadata = json!({ "resourceVersion": "7", "continue": rest });
    let version = if kind == "JobList" { "batch/v1" } else { "v1" };
    let list = json!({ "kind": kind, "apiVersion": version, "metadata": metadata, "items": items });
    Response::new(200, &list)
}

fn jobs(items: &[Value]) -> Response {
    list("JobList", "", items)
}

/// A refusal as the API server words it.
fn refusal(code: u16, reason: &str, message: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    Response::new(code, &status)
}

fn job(name: &str, shards: &str, suspend: bool, status: Value) -> Value {
    let container = json!({ "name": "shard", "env": [{ "name": "SHARDS", "value": shards }] });
    json!({
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "suspend": suspend, "template": { "spec": { "containers": [container] } } },
        "status": status,
    })
}

fn pod(job: &str, index: u32, status: Value) -> Value {
    let labels = json!({
        "batch.kubernetes.io/job-completion-index": index.to_string(),
        "batch.kubernetes.io/job-name": job,
    });
    json!({ "metadata": { "name": format!("{job}-{index}-abcde"), "labels": labels }, "status": status })
}

fn submit(project: &Project, plan: &str, server: &FakeServer, more: &[&str]) -> Ran {
    let fixed = ["submit", plan, "--api", &server.url, "--poll", "1"];
    project.run(&[&fixed[..], &ENGINE, more].concat())
}

fn told(ran: &Ran, parts: &[&str]) {
    for part in parts {
        assert!(
            ran.stderr.contains(part),
            "{part:?} is not in:\n{}",
            ran.stderr
        );
    }
}

#[test]
fn a_job_is_followed_through_cut_connections_and_all_that_the_server_asks_for() {
    let project = crate::evaluate::project();
    let plan = planned(&project);
    let sealed = project.run(&["evaluate", "--plan", &plan, "--shard", "1/3"]);
    assert_eq!(sealed.code, 0, "{}", sealed.stderr);
    let name = format!("{}-1", job_name(&plan));
    let empty = json!({});
    let busy = refusal(
        429,
        "TooManyRequests",
        "Too many requests, please try again later.",
    );
    let gone = refusal(410, "Expired", "The provided continue parameter is too old");
    let there = refusal(409, "AlreadyExists", "jobs.batch already exists");
    let cut = Response::new(200, &empty).cut();
    let active = job(&name, "2 3", false, json!({ "active": 2 }));
    let failed = json!({
        "failed": 4, "failedIndexes": "0-1",
        "conditions": [{ "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded" }],
    });
    let waiting = json!({ "reason": "ErrImagePull", "message": "not found" });
    let image = json!({
        "phase": "Pending",
        "containerStatuses": [{
            "name": "shard", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "waiting": waiting },
        }],
    });
    let evicted = json!({ "phase": "Failed", "reason": "Evicted", "message": "low on memory" });
    let pods = |rest, pod| list("PodList", rest, &[pod]);
    let answers = [
        (
            "GET jobs",
            vec![
                busy.header("retry-after", "1"),
                jobs(&[]),
                // It is this one that is there.
                jobs(std::slice::from_ref(&active)),
                jobs(&[active]),
                // One look sees nothing, however often it asks.
                cut.clone(),
                cut.clone(),
                cut.clone(),
                cut.clone(),
                jobs(&[job(&name, "2 3", false, failed)]),
            ],
        ),
        // The answer to the request that made the Job is lost.
        ("POST jobs", vec![cut, there]),
        (
            "GET pods",
            vec![
                pods("more", pod(&name, 0, image.clone())),
                gone,
                pods("again", pod(&name, 0, image)),
                pods("", pod(&name, 1, evicted)),
                list("PodList", "", &[]),
            ],
        ),
    ];
    let server = playing(answers);
    let ran = submit(&project, &plan, &server, &[]);
    assert_eq!(ran.code, 75, "{}{}", ran.stdout, ran.stderr);
    told(
        &ran,
        &[
            &format!("submitted shards 2-3 as the array {name}"),
            "1 of 3 shards sealed, 0 running, 2 waiting",
            "the image of shard 2 cannot be had (ErrImagePull: not found)",
            "the Pod of shard 3 was evicted (low on memory)",
            "does not answer",
            "shards 2-3 have failed as often as they may",
            "BackoffLimitExceeded",
            "1 of 3 shards sealed, 0 running, 0 waiting",
        ],
    );
    let requests = server.requests();
    let posted: Vec<&Request> = requests.iter().filter(|one| !one.body.is_empty()).collect();
    assert_eq!(posted.len(), 2);
    let posted: Job = serde_json::from_slice(&posted[0].body).expect("a Job");
    assert_eq!(posted.metadata.name.as_ref(), Some(&name));
    let targets: Vec<&str> = requests.iter().map(|one| one.target.as_str()).collect();
    let begin = "/api/v1/namespaces/default/pods?labelSelector=doc2harness";
    let pages = |rest: &str| {
        let is_page = |target: &&&str| target.starts_with(begin) && target.ends_with(rest);
        targets.iter().filter(is_page).count()
    };
    assert_eq!(
        (pages("continue=more"), pages("continue=again")),
        (1, 1),
        "{targets:?}"
    );
    assert_eq!(
        pages("limit=500"),
        3,
        "a list that is gone is read from its beginning"
    );
}

#[test]
fn a_job_that_is_there_is_followed_and_one_that_is_held_is_told() {
    let project = crate::evaluate::project();
    let plan = planned(&project);
    let name = format!("{}-4", job_name(&plan));
    let complete = json!({
        "completedIndexes": "0-2", "conditions": [{ "type": "Complete", "status": "True" }],
    });
    let held = job(&name, "1 2 3", true, json!({}));
    let answers = [
        (
            "GET jobs",
            vec![
                jobs(std::slice::from_ref(&held)),
                jobs(&[held]),
                jobs(&[job(&name, "1 2 3", false, complete)]),
            ],
        ),
        ("POST jobs", Vec::new()),
        ("GET pods", vec![list("PodList", "", &[])]),
    ];
    let server = playing(answers);
    let ran = submit(&project, &plan, &server, &[]);
    assert_eq!(ran.code, 75, "{}{}", ran.stdout, ran.stderr);
    let stem = job_name(&plan).replace("doc2harness-", "");
    let folder = project.path("data/shards").join(stem);
    assert!(folder.is_dir());
    told(
        &ran,
        &[
            &format!("kubectl patch job {name} -n default"),
            "shards 1-3 have succeeded, but no seal is in",
        ],
    );
    assert!(!folder.join("submission.json").exists());

    // All of it is over and nothing is sealed: the next Job has the next number.
    let over = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
    let answers = [
        ("GET jobs", vec![jobs(&[job(&name, "1 2 3", false, over)])]),
        (
            "POST jobs",
            vec![Response::new(201, &json!({ "kind": "Job" }))],
        ),
        ("GET pods", Vec::new()),
    ];
    let server = playing(answers);
    let ran = submit(&project, &plan, &server, &["--detach"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let array = format!("{}-5", job_name(&plan));
    assert!(ran.stdout.contains(&array), "{}", ran.stdout);
    let kept = std::fs::read_to_string(folder.join("submission.json")).expect("is kept");
    assert!(kept.contains(&array), "{kept}");
    let refused = refusal(
        403,
        "Forbidden",
        "jobs.batch is forbidden: User cannot list\u{1b}[2J",
    );
    let server = playing([
        ("GET jobs", vec![refused]),
        ("POST jobs", Vec::new()),
        ("GET pods", Vec::new()),
    ]);
    let ran = submit(&project, &plan, &server, &[]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    told(&ran, &["jobs.batch is forbidden: User cannot list␛[2J"]);
}

#[test]
fn of_two_who_submit_at_the_same_time_one_is_told_of_the_other() {
    let project = crate::evaluate::project();
    let plan = planned(&project);
    let stranger = format!("{}-99999999999999999999", job_name(&plan));
    let name = format!("{}-1", job_name(&plan));
    let before = job(&stranger, "", false, json!({}));
    let server = playing([
        (
            "GET jobs",
            vec![
                jobs(std::slice::from_ref(&before)),
                jobs(&[before, job(&name, "2 3", false, json!({}))]),
            ],
        ),
        (
            "POST jobs",
            vec![refusal(409, "AlreadyExists", "jobs.batch already exists")],
        ),
        ("GET pods", Vec::new()),
    ]);
    let ran = submit(&project, &plan, &server, &["--detach"]);
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    let there =
        format!("the Job {name} is there already, with the shards 2-3; nothing was submitted");
    told(&ran, &[&there, "type the same again"]);
}
