//! A seccomp filter like those of container runtimes, for tests of what happens
//! when a system call is refused.

use std::io;

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter, sock_fprog};

/// Makes `io_uring_setup` fail with `EPERM` from now on, for the calling thread
/// and the threads that it starts. This cannot be undone, so call it on a thread
/// that the test starts for it.
///
/// # Errors
///
/// The kernel's error, if it has no seccomp filters.
pub fn forbid_io_uring() -> io::Result<()> {
    let statement = |code, k| sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let mut filter = [
        // The number of the call lies at the start of seccomp_data.
        statement(BPF_LD | BPF_W | BPF_ABS, 0),
        sock_filter {
            jf: 1,
            ..statement(BPF_JMP | BPF_JEQ | BPF_K, libc::SYS_io_uring_setup as u32)
        },
        statement(
            BPF_RET | BPF_K,
            libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
        ),
        statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // Without this, an unprivileged process may set no filter.
    nix::sys::prctl::set_no_new_privs()?;
    install(&program)
}

#[allow(
    unsafe_code,
    reason = "no crate that we use sets a filter, and the product itself has no need to"
)]
fn install(program: &sock_fprog) -> io::Result<()> {
    // SAFETY: `program` and the filter that it points to live until the call
    // returns; the kernel copies and checks them.
    let code = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, program) };
    match code {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
