//! What the schedule of a large mesh takes, with simulated sites. The time is
//! that of `benches/mesh.rs`; memory is counted here, by an allocator that knows
//! how much is in use.
#![allow(
    unsafe_code,
    reason = "a global allocator cannot be written without; it only counts and passes on"
)]

#[path = "mesh/sites.rs"]
mod sites;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use sites::{Sites, mesh};

struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a mesh of 1,000 nodes may take, in bytes.
const ALLOWED: usize = 200 << 20;

#[test]
fn a_thousand_nodes_are_scheduled_in_little_memory() {
    let mut sites = Sites::new(1000);
    let before = IN_USE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let mesh = mesh(1000);
    let trials = sites.run(&mesh, 7);
    let most = MOST.load(Ordering::Relaxed) - before;
    println!(
        "{trials} pairs in {} rounds, at most {most} bytes",
        mesh.rounds()
    );
    assert_eq!((trials, mesh.rounds()), (499_500, 999));
    assert!(most < ALLOWED, "{most} bytes");
}
