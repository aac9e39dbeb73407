//! Sounding a path: datagrams of growing size, trains of numbered ones, and a stream are sent
//! over it to see what becomes of them, and the namespaces on the way are looked at.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod offload;
mod resolve;
mod stream;
mod survey;
mod taking;
mod train;

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumbline_protocol::{SoundOrder, Sounded};

use offload::SwitchedOff;
use taking::Taking;

/// What an agent does for a path that is sounded.
#[derive(Clone, Default)]
pub(crate) struct Soundings {
    taking: Arc<Mutex<Option<Taking>>>,
    switched: Arc<Mutex<SwitchedOff>>,
}

impl Soundings {
    /// Carries out an order.
    pub(crate) fn answer(
        &self,
        order: &SoundOrder,
        stop: &AtomicBool,
    ) -> Result<Sounded, Box<dyn Error>> {
        Ok(match order {
            SoundOrder::Take { address, key } => {
                let taking = Taking::begin(*address, *key)?;
                let address = taking.address();
                *lock(&self.taking) = Some(taking);
                Sounded::Takes { address }
            }
            SoundOrder::Train(order) => Sounded::Train(train::send(order, stop)?),
            SoundOrder::Taken { train } => {
                let taking = lock(&self.taking);
                let taking = taking.as_ref().ok_or("nothing is taken here")?;
                Sounded::Taken(taking.taken(*train))
            }
            SoundOrder::Stream(order) => Sounded::Stream(stream::send(order, stop)),
            SoundOrder::Survey { towards } => Sounded::Survey(survey::look(towards)?),
            SoundOrder::Resolve(order) => Sounded::Resolved {
                name: resolve::ask(order, stop),
            },
            SoundOrder::SwitchOff { devices, offload } => Sounded::SwitchedOff {
                devices: lock(&self.switched).switch_off(devices, *offload),
            },
            SoundOrder::PutBack => {
                lock(&self.switched).put_back()?;
                Sounded::PutBack
            }
        })
    }

    /// Puts back what was switched off.
    pub(crate) fn end(&self) {
        // Nobody is left to be told.
        let _ = lock(&self.switched).put_back();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};
    use std::time::{Duration, Instant};

    use plumbline_protocol::{SentTrain, StreamOrder, TrainOrder};

    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);
    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn takes(soundings: &Soundings, key: u64) -> SocketAddr {
        let address = (HERE, 0).into();
        match soundings.answer(&SoundOrder::Take { address, key }, &NEVER) {
            Ok(Sounded::Takes { address }) => address,
            other => panic!("{other:?}"),
        }
    }

    fn train(to: SocketAddr, key: u64, packet_bytes: u32) -> SentTrain {
        let order = TrainOrder {
            to,
            key,
            train: 1,
            count: 20,
            packet_bytes,
            gap_ns: 10_000,
            wait_ns: 0,
        };
        match Soundings::default().answer(&SoundOrder::Train(order), &NEVER) {
            Ok(Sounded::Train(sent)) => sent,
            other => panic!("{other:?}"),
        }
    }

    fn arrived(soundings: &Soundings) -> u32 {
        match soundings.answer(&SoundOrder::Taken { train: 1 }, &NEVER) {
            Ok(Sounded::Taken(taken)) => taken.arrived,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_train_arrives_where_its_key_is_known() {
        let soundings = Soundings::default();
        let to = takes(&soundings, 5);
        assert_eq!(train(to, 4, 200).sent, 20, "of a stranger");
        let sent = train(to, 5, 200);
        assert_eq!((sent.sent, sent.refused, sent.answer), (20, 0, None));
        assert!(sent.limit > 1_500, "{sent:?}");
        let begun = Instant::now();
        while arrived(&soundings) < 20 && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(arrived(&soundings), 20);
    }

    #[test]
    fn a_stream_is_acknowledged_and_tells_its_segments() {
        let soundings = Soundings::default();
        let order = StreamOrder {
            to: takes(&soundings, 5),
            key: 5,
            length_ns: 300_000_000,
            connect_ns: 1_000_000_000,
        };
        match soundings.answer(&SoundOrder::Stream(order), &NEVER) {
            Ok(Sounded::Stream(sent)) => {
                assert_eq!(sent.refused, None);
                assert!(sent.acked > 100_000 && sent.send_mss > 1_400, "{sent:?}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nobody_at_the_other_end_is_part_of_what_is_seen() {
        let address = std::net::TcpListener::bind((HERE, 0)).unwrap().local_addr();
        let order = StreamOrder {
            to: address.unwrap(),
            key: 5,
            length_ns: 1_000_000,
            connect_ns: 1_000_000_000,
        };
        match Soundings::default().answer(&SoundOrder::Stream(order), &NEVER) {
            Ok(Sounded::Stream(sent)) => assert!(sent.refused.is_some(), "{sent:?}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_packet_that_cannot_be_is_an_error() {
        let order = TrainOrder {
            to: (HERE, 9).into(),
            key: 0,
            train: 0,
            count: 1,
            packet_bytes: 20,
            gap_ns: 0,
            wait_ns: 0,
        };
        let refused = Soundings::default().answer(&SoundOrder::Train(order), &NEVER);
        assert!(refused.unwrap_err().to_string().contains("20 bytes"));
    }

    #[test]
    fn this_namespace_is_surveyed() {
        let towards = vec![HERE];
        let survey = Soundings::default().answer(&SoundOrder::Survey { towards }, &NEVER);
        let Ok(Sounded::Survey(survey)) = survey else {
            panic!("{survey:?}")
        };
        assert!(survey.devices.iter().any(|it| it.name == "lo"));
        assert_eq!(survey.ways[0].as_ref().unwrap().device, "lo");
        assert!(survey.counters.contains_key("Udp.InCsumErrors"));
        assert!(survey.rp_filter.is_some(), "that of all devices");
    }
}
