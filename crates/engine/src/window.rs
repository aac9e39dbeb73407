//! The phases of a load as moments of the monotonic clock.
//!
//! A load runs in slices: one for a window of its own, many where it takes turns
//! with others. Its own time goes on within its slices and stands still between
//! them.

use std::sync::Arc;

use plumbline_experiment::Slice;

/// How long answers may still come after a stop.
const LAST_CALL_NS: u64 = 30_000_000;

/// When a load runs, which part of it is recorded, and when the drain ends, in
/// nanoseconds of [`now_ns`](plumbline_sys::clock::now_ns).
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// In time order, on the clock.
    slices: Arc<[Placed]>,
    /// A stop ended the load here.
    until: u64,
    pub(crate) end: u64,
}

/// A slice with what came before it.
#[derive(Clone, Copy, Debug)]
struct Placed {
    slice: Slice,
    /// How long the load had run before, and how much of it was recorded.
    ran: u64,
    recorded: u64,
}

/// What happens at a moment of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// A slice begins; it ends at the moment given.
    Begins { until: u64 },
    /// Its recorded part begins.
    Opens,
    /// Both end.
    Closes,
    /// A slice ends of which nothing is recorded.
    Ends,
}

impl Default for Window {
    /// Before a load has started: nothing belongs to the window yet.
    fn default() -> Self {
        Self {
            slices: Arc::new([]),
            until: u64::MAX,
            end: u64::MAX,
        }
    }
}

impl Window {
    /// A load that starts at `start`, and waits for `drain` nanoseconds after the last
    /// of its slices.
    pub(crate) fn starting(start: u64, slices: &[Slice], drain: u64) -> Self {
        let (mut ran, mut recorded) = (0, 0);
        let mut placed = Vec::with_capacity(slices.len());
        for slice in slices {
            placed.push(Placed {
                slice: Slice {
                    begin_ns: start + slice.begin_ns,
                    open_ns: start + slice.open_ns,
                    end_ns: start + slice.end_ns,
                },
                ran,
                recorded,
            });
            ran += slice.end_ns - slice.begin_ns;
            recorded += slice.recorded_ns();
        }
        let close = placed.last().map_or(start, |last| last.slice.end_ns);
        Self {
            slices: placed.into(),
            until: u64::MAX,
            end: close + drain,
        }
    }

    /// When the load starts.
    pub(crate) fn start(&self) -> u64 {
        self.slices.first().map_or(u64::MAX, |it| it.slice.begin_ns)
    }

    /// When the recorded part of the first slice that has one begins.
    pub(crate) fn open(&self) -> u64 {
        let recorded = |it: &&Placed| it.slice.recorded_ns() > 0;
        let first = self.slices.iter().find(recorded);
        first
            .map_or(u64::MAX, |it| it.slice.open_ns)
            .min(self.until)
    }

    /// When the last slice ends.
    pub(crate) fn close(&self) -> u64 {
        let last = self.slices.last().map_or(u64::MAX, |it| it.slice.end_ns);
        last.min(self.until)
    }

    /// How much of the load was recorded before `at`, when a request intended at `at`
    /// is recorded too.
    #[inline]
    pub(crate) fn place(&self, at: u64) -> Option<u64> {
        let it = self.slice_at(at)?;
        let is_recorded = it.slice.open_ns <= at && at < it.slice.end_ns && at < self.until;
        is_recorded.then(|| it.recorded + (at - it.slice.open_ns))
    }

    /// Whether a request intended at `at` is recorded.
    #[inline]
    pub(crate) fn contains(&self, at: u64) -> bool {
        self.place(at).is_some()
    }

    /// How much of the load is recorded before `at`.
    pub(crate) fn recorded_before(&self, at: u64) -> u64 {
        let at = at.min(self.until);
        self.slice_at(at).map_or(0, |it| {
            let open = it.slice.open_ns;
            it.recorded + at.clamp(open, it.slice.end_ns) - open
        })
    }

    /// The last slice that has begun at `at`.
    #[inline]
    fn slice_at(&self, at: u64) -> Option<&Placed> {
        let begun = self.slices.partition_point(|it| it.slice.begin_ns <= at);
        self.slices[..begun].last()
    }

    /// The moment of the clock at which the load has run for `ran` nanoseconds. A
    /// moment between two slices is the beginning of the later one; the clock goes on
    /// after the last.
    pub(crate) fn clock_at(&self, ran: u64) -> u64 {
        let begun = self.slices.partition_point(|it| it.ran <= ran);
        match self.slices[..begun].last() {
            Some(it) => it.slice.begin_ns + (ran - it.ran),
            None => u64::MAX,
        }
    }

    /// The edges of all slices in time order, by number.
    #[inline]
    pub(crate) fn edge(&self, number: usize) -> Option<(u64, Edge)> {
        let slice = self.slices.get(number / 3)?.slice;
        let (at, edge) = match number % 3 {
            0 => {
                let until = slice.end_ns.min(self.until);
                (slice.begin_ns, Edge::Begins { until })
            }
            _ if slice.recorded_ns() == 0 => (slice.end_ns, Edge::Ends),
            1 => (slice.open_ns, Edge::Opens),
            _ => (slice.end_ns, Edge::Closes),
        };
        Some((at.min(self.until), edge))
    }

    /// The recorded parts, in time order.
    pub(crate) fn recorded(&self) -> impl Iterator<Item = (u64, u64)> {
        let slices = self.slices.iter().map(|it| it.slice);
        let recorded = slices.filter(|slice| slice.recorded_ns() > 0);
        recorded.map(|slice| (slice.open_ns, slice.end_ns))
    }

    /// Ends the load at `now`, because a stop was asked for. What was measured
    /// so far stays measured. Answers on their way may still arrive for a
    /// moment, so that a stop does not make punctual answers late.
    pub(crate) fn cut(&mut self, now: u64) {
        self.until = self.until.min(now);
        self.end = self.end.min(now + LAST_CALL_NS);
    }

    /// How much is recorded in all, nanoseconds.
    pub(crate) fn length(&self) -> u64 {
        self.recorded_before(u64::MAX)
    }
}

#[cfg(test)]
pub(crate) fn whole(start: u64, measure: u64, drain: u64) -> Window {
    let slice = Slice {
        begin_ns: 0,
        open_ns: 0,
        end_ns: measure,
    };
    Window::starting(start, &[slice], drain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 1,000 on: a warm-up of 100, then twice 10 not recorded and 40 recorded.
    fn window() -> Window {
        let slice = |begin_ns, open_ns, end_ns| Slice {
            begin_ns,
            open_ns,
            end_ns,
        };
        let slices = [
            slice(0, 100, 100),
            slice(300, 310, 350),
            slice(700, 710, 750),
        ];
        Window::starting(1_000, &slices, 50)
    }

    #[test]
    fn own_time_stands_still_between_slices() {
        let window = window();
        let clock = [0, 99, 100, 149, 150, 199].map(|ran| window.clock_at(ran));
        assert_eq!(clock, [1_000, 1_099, 1_300, 1_349, 1_700, 1_749]);
        // After the last slice nothing is due in it.
        assert_eq!(window.clock_at(200), window.close());
    }

    #[test]
    fn only_what_is_intended_in_a_recorded_part_is_recorded() {
        let window = window();
        let places = [1_050, 1_305, 1_310, 1_349, 1_350, 1_600, 1_710, 1_750];
        let places = places.map(|at| window.place(at));
        let expected = [None, None, Some(0), Some(39), None, None, Some(40), None];
        assert_eq!(places, expected);
        assert_eq!(
            (window.open(), window.close(), window.end),
            (1_310, 1_750, 1_800)
        );
        assert_eq!(window.length(), 80);
        assert_eq!(
            [1_000, 1_320, 1_500, 1_715].map(|at| window.recorded_before(at)),
            [0, 10, 40, 45]
        );
        assert_eq!(
            window.recorded().collect::<Vec<_>>(),
            [(1_310, 1_350), (1_710, 1_750)]
        );
    }

    #[test]
    fn edges_come_in_order() {
        let window = window();
        let edges: Vec<_> = (0..).map_while(|number| window.edge(number)).collect();
        assert_eq!(edges.len(), 9);
        assert_eq!(edges[1..3], [(1_100, Edge::Ends); 2]);
        assert!(edges.is_sorted_by_key(|(at, _)| *at));
        assert_eq!(edges[3], (1_300, Edge::Begins { until: 1_350 }));
        assert_eq!(edges[4], (1_310, Edge::Opens));
        assert_eq!(edges[5], (1_350, Edge::Closes));
    }

    #[test]
    fn a_stop_keeps_what_was_measured() {
        let mut window = window();
        window.cut(1_730);
        assert_eq!((window.length(), window.close()), (60, 1_730));
        assert!(window.contains(1_729) && !window.contains(1_730));
        assert!(window.end <= 1_800);
        let mut early = self::window();
        early.cut(1_200);
        assert_eq!((early.length(), early.open()), (0, 1_200));
        assert_eq!(Window::default().open(), u64::MAX);
    }
}
