//! Interrupt and termination as a flag.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: i32) {
    // A second Ctrl-C means now: the default action was restored by SA_RESETHAND.
    INTERRUPTED.store(true, Ordering::SeqCst);
}

/// Turns SIGINT, SIGTERM and SIGHUP into the flag that is returned. The first one
/// sets it; the second ends the process as if nothing had been installed. Where
/// SIGHUP is ignored, as under `nohup`, it stays ignored.
pub fn interruption() -> nix::Result<&'static AtomicBool> {
    let action = SigAction::new(
        SigHandler::Handler(note),
        SaFlags::SA_RESETHAND,
        SigSet::empty(),
    );
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
        unsafe { sigaction(signal, &action) }?;
    }
    // SAFETY: as above; an ignored signal runs no code at all.
    let before = unsafe { sigaction(Signal::SIGHUP, &action) }?;
    if matches!(before.handler(), SigHandler::SigIgn) {
        // SAFETY: as above.
        unsafe { sigaction(Signal::SIGHUP, &before) }?;
    }
    Ok(&INTERRUPTED)
}

/// Ignores SIGINT: an agent ends when its controller says so, not when the
/// terminal interrupts the whole process group.
pub fn ignore_interrupt() -> nix::Result<()> {
    let action = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { sigaction(Signal::SIGINT, &action) }?;
    Ok(())
}
