//! Terminals: their size, and lines that pass bytes as they are.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use nix::sys::termios::{SetArg, cfmakeraw, tcdrain, tcgetattr, tcsetattr};

/// Rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines of text.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// The size of a terminal; an error when `terminal` is not one.
pub fn size(terminal: &impl AsFd) -> io::Result<TerminalSize> {
    let size = exchange(terminal, libc::TIOCGWINSZ, [0, 0])?;
    Ok(TerminalSize {
        rows: size.ws_row,
        columns: size.ws_col,
    })
}

/// Sets the size of a terminal.
pub fn set_size(terminal: &impl AsFd, size: TerminalSize) -> io::Result<()> {
    exchange(terminal, libc::TIOCSWINSZ, [size.rows, size.columns]).map(drop)
}

fn exchange(
    terminal: &impl AsFd,
    request: libc::Ioctl,
    [ws_row, ws_col]: [u16; 2],
) -> io::Result<libc::winsize> {
    let mut size = libc::winsize {
        ws_row,
        ws_col,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: both requests read or write one `winsize`, which lives on this stack.
    let code = unsafe { libc::ioctl(terminal.as_fd().as_raw_fd(), request, &raw mut size) };
    nix::errno::Errno::result(code)?;
    Ok(size)
}

/// Makes a terminal pass bytes both ways as they are: no echo, no line ends
/// changed, no bytes that stand for signals.
pub fn make_raw(terminal: &impl AsFd) -> io::Result<()> {
    let mut settings = tcgetattr(terminal)?;
    cfmakeraw(&mut settings);
    tcsetattr(terminal, SetArg::TCSANOW, &settings)?;
    Ok(())
}

/// Waits until all output has been sent.
pub fn drain(terminal: &impl AsFd) -> io::Result<()> {
    Ok(tcdrain(terminal)?)
}
