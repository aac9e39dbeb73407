//! Services that a run makes by number: those that only stand, and beacons, which show
//! that the proxy of a node has all that was made before them.
//!
//! They have no selector, and EndpointSlices of ours: the cluster's controller makes those
//! of services with one, at 20 a second. Nobody asks the ones that only stand, so their
//! endpoints are addresses that nobody has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use plumbline_experiment::Family;
use serde_json::{Value, json};

use crate::ClusterError;
use crate::bulk::RunPlace;
use crate::manifest::{PORT, built};

/// Objects that are held in memory at a time.
const PART: usize = 1_000;

/// How services that only stand are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServiceShape {
    pub(crate) family: Family,
    /// Endpoints of each, at most the 1,000 that an EndpointSlice holds.
    pub(crate) endpoints: u32,
}

/// An address that nobody has: of those that RFC 2544 and RFC 5180 set aside for
/// measurements of networks.
pub(crate) fn stranger(family: Family, number: u32) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 1).to_bits() + number).into(),
        Family::V6 => {
            let first = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1).to_bits();
            Ipv6Addr::from_bits(first + u128::from(number)).into()
        }
    }
}

/// How many [strangers](stranger) there are.
pub(crate) const STRANGERS: u32 = (1 << 17) - 2;

/// Makes the services of these numbers, which only stand.
///
/// # Errors
///
/// As for [`RunPlace::apply`].
pub(crate) fn apply(
    place: RunPlace<'_>,
    numbers: Range<u32>,
    shape: ServiceShape,
) -> Result<(), ClusterError> {
    let endpoints = (0..shape.endpoints).map(|number| stranger(shape.family, number));
    let endpoints: Vec<IpAddr> = endpoints.collect();
    let numbers: Vec<u32> = numbers.collect();
    let what = format!("{} services", numbers.len());
    for part in numbers.chunks(PART) {
        let service = |&number: &u32| service(place, &name(number), number, shape.family);
        place.apply(&what, &part.iter().map(service).collect::<Vec<Service>>())?;
        let slice = |&number: &u32| slice(place, &name(number), number, &endpoints, PORT);
        let slices: Vec<EndpointSlice> = part.iter().map(slice).collect();
        place.apply(&format!("the endpoints of {what}"), &slices)?;
    }
    Ok(())
}

/// Deletes the services of these numbers.
///
/// # Errors
///
/// As for [`RunPlace::delete`].
pub(crate) fn delete(place: RunPlace<'_>, numbers: Range<u32>) -> Result<(), ClusterError> {
    let what = format!("{} services", numbers.len());
    // Without endpoints, a proxy would write yet another rule for them.
    place.delete::<Service>(&what, numbers.clone().map(name))?;
    place.delete::<EndpointSlice>(&format!("the endpoints of {what}"), numbers.map(name))
}

/// Makes the service of this name before one receiver, and gives its address.
///
/// A proxy hears of services in the order in which they were made and deleted, and of
/// endpoints too: once this one answers on a node, that node has all that was done before.
///
/// # Errors
///
/// As for [`RunPlace::apply`].
pub(crate) fn beacon(
    place: RunPlace<'_>,
    name: &str,
    receiver: SocketAddr,
) -> Result<SocketAddr, ClusterError> {
    let what = format!("service {name}");
    let family = if receiver.is_ipv4() {
        Family::V4
    } else {
        Family::V6
    };
    let made = place.apply(&what, &[service(place, name, 0, family)])?;
    let slice = slice(place, name, 0, &[receiver.ip()], receiver.port());
    place.apply(&format!("the endpoint of {what}"), &[slice])?;
    let made = made.into_iter().find_map(|it| it.spec?.cluster_ip);
    let address: Option<IpAddr> = made.and_then(|it| it.parse().ok());
    let address = address.ok_or_else(|| ClusterError::Refused {
        what: format!("make {what}"),
        message: "it got no address".to_owned(),
    })?;
    Ok((address, PORT).into())
}

/// Deletes the beacon of this name.
///
/// # Errors
///
/// As for [`RunPlace::delete`].
pub(crate) fn delete_beacon(place: RunPlace<'_>, name: &str) -> Result<(), ClusterError> {
    let what = format!("service {name}");
    place.delete::<Service>(&what, [name.to_owned()])?;
    place.delete::<EndpointSlice>(&what, [name.to_owned()])
}

/// Five digits, so that all names are of one length: they are in what proxies write.
fn name(number: u32) -> String {
    format!("service-{number:05}")
}

fn service(place: RunPlace<'_>, name: &str, number: u32, family: Family) -> Service {
    built(json!({
        "metadata": place.metadata(name, number),
        "spec": {
            "type": "ClusterIP",
            "ipFamilyPolicy": "SingleStack",
            "ipFamilies": [format!("IPv{}", u8::from(family))],
            "ports": [{ "name": "tcp", "protocol": "TCP", "port": PORT }],
        },
    }))
}

fn slice(
    place: RunPlace<'_>,
    name: &str,
    number: u32,
    endpoints: &[IpAddr],
    port: u16,
) -> EndpointSlice {
    let mut metadata = place.metadata(name, number);
    metadata["labels"]["kubernetes.io/service-name"] = place.mark.name(name).into();
    metadata["labels"]["endpointslice.kubernetes.io/managed-by"] = "plumbline".into();
    let is_v4 = endpoints.iter().all(IpAddr::is_ipv4);
    let endpoint = |it: &IpAddr| json!({ "addresses": [it], "conditions": { "ready": true } });
    let endpoints: Vec<Value> = endpoints.iter().map(endpoint).collect();
    built(json!({
        "metadata": metadata,
        "addressType": if is_v4 { "IPv4" } else { "IPv6" },
        "endpoints": endpoints,
        "ports": [{ "name": "tcp", "protocol": "TCP", "port": port }],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::tests::mark;
    use crate::planted::{PlantedServer, Reply};

    const SHAPE: ServiceShape = ServiceShape {
        family: Family::V4,
        endpoints: 3,
    };

    fn asked(act: impl FnOnce(RunPlace<'_>) -> Result<(), ClusterError>) -> (PlantedServer, usize) {
        let server = PlantedServer::start([], Reply::Echo);
        let (session, mark) = (server.session(), mark());
        act(RunPlace {
            session: &session,
            namespace: "shared",
            mark: &mark,
        })
        .unwrap();
        let asked = server.asked().len();
        (server, asked)
    }

    #[test]
    fn each_has_a_slice_of_endpoints_that_nobody_has() {
        let (server, asked) = asked(|place| apply(place, 7..9, SHAPE));
        assert_eq!(asked, 4);
        let bodies = (0..asked).map(|at| server.body(at));
        let slices: Vec<Value> = bodies
            .map(|body| serde_json::from_str(&body).unwrap())
            .filter(|it: &Value| it["kind"] == "EndpointSlice")
            .collect();
        assert_eq!(slices.len(), 2);
        for slice in slices {
            let labels = &slice["metadata"]["labels"];
            assert_eq!(labels["plumbline/run"], "3fa2");
            assert_eq!(
                labels["kubernetes.io/service-name"],
                slice["metadata"]["name"]
            );
            let addresses: Vec<&Value> = (0..3)
                .map(|at| &slice["endpoints"][at]["addresses"][0])
                .collect();
            assert_eq!(addresses, ["198.18.0.1", "198.18.0.2", "198.18.0.3"]);
        }
    }

    #[test]
    fn strangers_stay_in_the_range_that_was_set_aside() {
        let last = stranger(Family::V4, STRANGERS - 1);
        assert_eq!(last.to_string(), "198.19.255.254");
        assert_eq!(stranger(Family::V6, 0).to_string(), "2001:2::1");
    }
}
