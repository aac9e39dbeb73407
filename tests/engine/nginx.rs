//! `load` against a real server: nginx, where it is installed.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use super::short_load;
use crate::world::{PATIENCE, Running, eventually, skip};

/// Where distributions put it; the second is not in everybody's search path.
const PROGRAMS: [&str; 2] = ["nginx", "/usr/sbin/nginx"];

/// Static files of two sizes, and the same page with its length not known
/// ahead (server-side includes), closed after each answer, or after ten.
fn configuration(port: u16) -> String {
    format!(
        "daemon off; master_process off; pid nginx.pid; error_log stderr crit;
events {{ worker_connections 128; }}
http {{
  access_log off;
  client_body_temp_path temp; proxy_temp_path temp; fastcgi_temp_path temp;
  uwsgi_temp_path temp; scgi_temp_path temp;
  default_type text/html;
  server {{
    listen 127.0.0.1:{port};
    root pages;
    location /closed/ {{ alias pages/; keepalive_timeout 0; }}
    location /tenth/ {{ alias pages/; keepalive_requests 10; }}
    location /chunked/ {{ alias pages/; ssi on; }}
  }}
}}
"
    )
}

/// Starts nginx in `directory` as whoever we are; `None` where there is none.
fn nginx(directory: &Path) -> Option<(Running, String)> {
    let program = PROGRAMS.into_iter().find(|program| {
        let asked = Command::new(program)
            .arg("-v")
            .stderr(Stdio::null())
            .status();
        asked.is_ok_and(|status| status.success())
    })?;
    let pages = directory.join("pages");
    std::fs::create_dir(&pages).unwrap();
    std::fs::write(pages.join("small"), "x".repeat(100)).unwrap();
    std::fs::write(pages.join("large"), "x".repeat(300_000)).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let file = directory.join("nginx.conf");
    std::fs::write(&file, configuration(address.port())).unwrap();
    let child = Command::new(program)
        .args(["-e", "stderr", "-p"])
        .arg(directory)
        .arg("-c")
        .arg(&file)
        .stdout(Stdio::null())
        .spawn()
        .expect("it could say its version");
    let running = Running(child);
    eventually("nginx listens", PATIENCE, || {
        TcpStream::connect(address).is_ok()
    });
    Some((running, address.to_string()))
}

#[test]
fn nginx_is_understood_in_every_mood() {
    let directory = tempfile::tempdir().unwrap();
    let Some((_server, address)) = nginx(directory.path()) else {
        skip(
            "nginx_is_understood_in_every_mood",
            "nginx is not installed",
        );
        return;
    };
    for (path, size, flags) in [
        ("small", 100, &[][..]),
        ("small", 100, &["--no-keep-alive"]),
        ("large", 300_000, &[]),
        ("closed/small", 100, &[]),
        ("tenth/small", 100, &["--rate", "500"]),
        ("chunked/small", 100, &[]),
        ("chunked/large", 300_000, &["--no-keep-alive"]),
    ] {
        let mut arguments = vec!["-c", "4"];
        arguments.extend(flags);
        let result = short_load(&format!("http://{address}/{path}"), &arguments);
        assert_eq!(result["errors"], 0, "{path} {flags:?}: {result}");
        let requests = result["requests"].as_u64().unwrap();
        assert!(requests > 0, "{path} {flags:?}: {result}");
        let received = result["bytes_received"].as_u64().unwrap();
        assert_eq!(received, requests * size, "{path} {flags:?}: {result}");
    }
    // What is not there is an error of its kind, not an answer.
    let missing = format!("http://{address}/nothing");
    let result = crate::world::output(&["load", &missing, "-d", "100ms", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&result.stdout).unwrap();
    assert_eq!(value["requests"], 0, "{value}");
    assert!(value["errors_by_kind"]["protocol"].as_u64() > Some(0));
    assert_eq!(result.status.code(), Some(2));
}
