//! What the requests of a network's plugins waited for in the rate limiter of its agent, where
//! that shows it. Cilium's does, as a histogram by the kind of request, if it is started with
//! `--metrics=+cilium_api_limiter_wait_history_duration_seconds`; that it was waited is then
//! told from work.

use std::collections::BTreeMap;

use plumbline_record::LimiterWait;

use crate::node_proxy;
use crate::session::ClusterConnection;

/// Where Cilium's agent shows its metrics unless it is told otherwise.
const METRICS: (u16, &str) = (9962, "metrics");
const HISTOGRAM: &str = "cilium_api_limiter_wait_history_duration_seconds";

/// What has been waited on some nodes since their agents began: requests and seconds, by the
/// kind of request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Waited(BTreeMap<String, (u64, f64)>);

impl Waited {
    /// Adds what the agent of a node shows, if it has one that does.
    pub(super) fn read(&mut self, session: &ClusterConnection, node: &str) {
        let (port, path) = METRICS;
        let what = format!("read the metrics of the network's agent on node {node}");
        let at = format!("http:{node}:{port}");
        // Nothing listens there where it is no Cilium, or one that shows none.
        if let Ok(text) = node_proxy::read(session, (&at, path), &what) {
            self.add(&text);
        }
    }

    /// Adds what is in a text of Prometheus' exposition format.
    fn add(&mut self, text: &str) {
        let of_histogram = text.lines().filter_map(|it| it.strip_prefix(HISTOGRAM));
        for line in of_histogram {
            let Some((series, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let Some((kind, labels)) = series.split_once('{') else {
                continue;
            };
            let call = labels.split_once("api_call=\"");
            let call = call.and_then(|(_, rest)| rest.split_once('"'));
            let (Some((call, _)), Ok(value)) = (call, value.parse::<f64>()) else {
                continue;
            };
            let (requests, seconds) = self.0.entry(call.to_owned()).or_default();
            match kind {
                "_count" => *requests += value as u64,
                "_sum" => *seconds += value,
                _ => {}
            }
        }
    }

    /// What has been waited since then.
    pub(super) fn since(&self, before: &Self) -> Vec<LimiterWait> {
        let waits = self.0.iter().map(|(call, (requests, seconds))| {
            let (had, waited) = before.0.get(call).copied().unwrap_or_default();
            LimiterWait {
                call: call.clone(),
                requests: requests.saturating_sub(had),
                waited_ns: ((seconds - waited).max(0.0) * 1e9) as u64,
            }
        });
        waits.filter(|it| it.requests > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::{PlantedServer, Reply};

    const BEFORE: &str = "\
        # TYPE cilium_api_limiter_wait_history_duration_seconds histogram\n\
        cilium_api_limiter_wait_history_duration_seconds_bucket{api_call=\"endpoint-create\",le=\"+Inf\"} 3\n\
        cilium_api_limiter_wait_history_duration_seconds_sum{api_call=\"endpoint-create\"} 0.5\n\
        cilium_api_limiter_wait_history_duration_seconds_count{api_call=\"endpoint-create\"} 3\n";
    const AFTER: &str = "\
        cilium_api_limiter_wait_duration_seconds{api_call=\"endpoint-create\",value=\"mean\"} 9\n\
        cilium_api_limiter_wait_history_duration_seconds_sum{api_call=\"endpoint-create\"} 2.5\n\
        cilium_api_limiter_wait_history_duration_seconds_count{api_call=\"endpoint-create\"} 13\n\
        cilium_api_limiter_wait_history_duration_seconds_count{api_call=\"endpoint-get\"} x\n";

    #[test]
    fn what_was_waited_meanwhile_is_told_by_the_kind_of_request() {
        let shown = |text| {
            let server = PlantedServer::start([], Reply::Text(text));
            let mut waited = Waited::default();
            waited.read(&server.session(), "node1");
            let path = "GET /api/v1/nodes/http:node1:9962/proxy/metrics HTTP/1.1";
            assert_eq!(server.asked(), [path]);
            waited
        };
        let meanwhile = shown(AFTER).since(&shown(BEFORE));
        let wait = LimiterWait {
            call: "endpoint-create".to_owned(),
            requests: 10,
            waited_ns: 2_000_000_000,
        };
        assert_eq!(meanwhile, [wait]);
    }

    #[test]
    fn an_agent_that_shows_none_has_none() {
        let server = PlantedServer::start([], Reply::Status(503, "Unavailable", "refused"));
        let mut waited = Waited::default();
        waited.read(&server.session(), "node1");
        assert_eq!(waited, Waited::default());
        assert_eq!(server.asked().len(), 1, "{:?}", server.asked());
    }
}
