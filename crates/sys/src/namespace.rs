//! Network, user and mount namespaces.
//!
//! A network namespace lives as long as a process or an open descriptor holds
//! it. Nothing here is mounted or named, so when the process dies, by whatever
//! signal, the kernel takes the namespaces back.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::stat::Mode;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, getgid, getuid, write};

use crate::netlink::{NetlinkError, NetlinkSocket};
use crate::sockopt;

/// The network namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// Why a namespace could not be made or entered.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum NamespaceError {
    /// The kernel refused private namespaces.
    #[error("cannot enter private namespaces: {errno}; {cause}; {remedy}", errno = errno.desc())]
    Forbidden {
        errno: Errno,
        cause: String,
        remedy: String,
    },
    /// A step after the kernel's consent failed.
    #[error(
        "cannot {action}: {source}; a container runtime or security module may forbid it, try outside of it or as root"
    )]
    Step {
        action: &'static str,
        source: io::Error,
    },
    /// A new namespace could not be configured.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

fn step<E: Into<io::Error>>(action: &'static str) -> impl Fn(E) -> NamespaceError {
    move |error| NamespaceError::Step {
        action,
        source: error.into(),
    }
}

/// How the process came into its private namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privacy {
    /// As root: network and mount namespaces, in the host's user namespace.
    Root,
    /// As an ordinary user: in a user namespace too, where it is root.
    User,
}

/// Moves the process into network and mount namespaces of its own, in which it
/// has the rights of root and cannot touch the host's network.
///
/// Call it before the process starts its first thread: a process with threads
/// cannot enter a user namespace.
pub fn enter_private() -> Result<Privacy, NamespaceError> {
    let privacy = enter(&Maps::of_this_user()).map_err(refused)?;
    loopback_up(&NetlinkSocket::open()?)?;
    Ok(privacy)
}

/// What makes this user root in a user namespace.
struct Maps {
    user: String,
    group: String,
}

impl Maps {
    fn of_this_user() -> Self {
        Self {
            user: format!("0 {} 1", getuid()),
            group: format!("0 {} 1", getgid()),
        }
    }
}

/// Enters the namespaces, by system calls only. Some systems let a user make
/// namespaces and refuse the maps or the mount after it, as AppArmor does.
fn enter(maps: &Maps) -> nix::Result<Privacy> {
    let own = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS;
    // Root stays in the host's user namespace, where BPF is allowed. Root in a
    // container may lack the right to, and goes the way of a user.
    let privacy = if getuid().is_root() && unshare(own).is_ok() {
        Privacy::Root
    } else {
        unshare(own | CloneFlags::CLONE_NEWUSER)?;
        write_once(c"/proc/self/setgroups", "deny")?;
        write_once(c"/proc/self/uid_map", &maps.user)?;
        write_once(c"/proc/self/gid_map", &maps.group)?;
        Privacy::User
    };
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    Ok(privacy)
}

fn write_once(file: &CStr, content: &str) -> nix::Result<()> {
    let file = open(file, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    write(file, content.as_bytes()).map(drop)
}

/// Whether [`enter_private`] would succeed, found out by a child process that
/// tries it. Changes nothing for the caller.
pub fn can_enter_private() -> Result<(), NamespaceError> {
    let maps = Maps::of_this_user();
    // SAFETY: the child makes system calls only (no allocation, no lock, no
    // destructor but of descriptors) and leaves by `_exit`, which is sound in a
    // copy of a process with threads.
    let child = match unsafe { fork() } {
        Ok(ForkResult::Parent { child }) => child,
        Ok(ForkResult::Child) => {
            let code = enter(&maps).map_or_else(|errno| errno as libc::c_int, |_| 0);
            // SAFETY: ends the process without running anything of ours.
            unsafe { libc::_exit(code) }
        }
        Err(errno) => {
            return Err(step("start a process that tries namespaces")(errno));
        }
    };
    loop {
        match waitpid(child, None) {
            Err(Errno::EINTR) => {}
            Ok(WaitStatus::Exited(_, 0)) => return Ok(()),
            Ok(WaitStatus::Exited(_, code)) => {
                return Err(refused(Errno::from_raw(code)));
            }
            // A seccomp filter may kill instead of refusing.
            _ => return Err(refused(Errno::EPERM)),
        }
    }
}

/// Whether the process is in a user namespace other than the machine's own, as
/// far as it can tell: only the machine's own maps every user.
pub fn in_user_namespace() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let fields: Vec<&str> = map.split_whitespace().collect();
    fields != ["0", "0", "4294967295"]
}

fn refused(errno: Errno) -> NamespaceError {
    forbidden(errno, Path::new("/proc/sys"))
}

/// Finds the switch that forbids namespaces. `sysctls` is `/proc/sys`, or a
/// stand-in for tests.
fn forbidden(errno: Errno, sysctls: &Path) -> NamespaceError {
    let value = |name: &str| -> Option<u64> {
        let text = std::fs::read_to_string(sysctls.join(name)).ok()?;
        text.trim().parse().ok()
    };
    let (cause, remedy) = if value("kernel/unprivileged_userns_clone") == Some(0) {
        (
            "unprivileged user namespaces are switched off",
            "run as root, or set `sysctl kernel.unprivileged_userns_clone=1`",
        )
    } else if value("user/max_user_namespaces") == Some(0) {
        (
            "user namespaces are limited to none",
            "run as root, or set `sysctl user.max_user_namespaces=10000`",
        )
    } else if value("kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        (
            "AppArmor takes the rights away inside user namespaces of ordinary users",
            "run as root, install an AppArmor profile with `userns,` for this program, \
             or set `sysctl kernel.apparmor_restrict_unprivileged_userns=0`",
        )
    } else {
        match errno {
            Errno::ENOSPC | Errno::EUSERS => (
                "a limit of namespaces is reached (user.max_*_namespaces)",
                "raise it with `sysctl`, or end what holds namespaces",
            ),
            Errno::EINVAL | Errno::ENOSYS => (
                "the kernel lacks namespaces (CONFIG_USER_NS, CONFIG_NET_NS) or the process has threads",
                "use a kernel that has them",
            ),
            _ => (
                "a seccomp filter, a security module or a changed root directory forbids it, as containers do by default",
                "run outside of the container, or start it with `--privileged`",
            ),
        }
    };
    NamespaceError::Forbidden {
        errno,
        cause: cause.into(),
        remedy: remedy.into(),
    }
}

/// A network namespace, held by a descriptor, with a netlink socket inside.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    netlink: NetlinkSocket,
    inode: u64,
}

impl Namespace {
    /// Makes a network namespace, its loopback device up.
    pub fn create() -> Result<Self, NamespaceError> {
        // A thread cannot reliably return from a namespace, so it is used once
        // and ended.
        in_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(step("make a network namespace"))?;
            let namespace = Self::current()?;
            loopback_up(&namespace.netlink)?;
            Ok(namespace)
        })?
    }

    /// The network namespace of the calling thread.
    pub fn current() -> Result<Self, NamespaceError> {
        let opened = File::open(OWN).and_then(|file| Ok((file.metadata()?.ino(), file)));
        let (inode, file) = opened.map_err(step("open the network namespace"))?;
        let netlink = NetlinkSocket::open()?;
        Ok(Self {
            file,
            netlink,
            inode,
        })
    }

    /// A netlink socket inside the namespace, usable from any thread.
    pub fn netlink(&self) -> &NetlinkSocket {
        &self.netlink
    }

    /// Identifies the namespace, as `readlink /proc/<pid>/ns/net` shows it.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Identifies the namespace to eBPF programs, and is never given to another one.
    ///
    /// # Errors
    ///
    /// A kernel before Linux 5.14.
    pub fn cookie(&self) -> io::Result<u64> {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_NETNS_COOKIE);
        // SAFETY: any bytes are an integer.
        unsafe { sockopt::get(&self.netlink, level, option) }
    }

    /// Runs `work` in a fresh thread inside the namespace and returns its
    /// result. Sockets that it opens stay in the namespace. A panic of `work`
    /// continues in the caller.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        in_thread(|| {
            setns(&self.file, CloneFlags::CLONE_NEWNET)
                .map_err(step("enter a network namespace"))?;
            Ok(work())
        })?
    }

    /// The same, where `/sys` shows the devices of this namespace.
    ///
    /// # Errors
    ///
    /// Also where the machine does not let it be mounted: containers whose own `/sys` is
    /// hidden in part.
    pub fn run_with_sysfs<T: Send>(
        &self,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, NamespaceError> {
        self.run(|| {
            // Of this thread alone, and gone with it.
            let (none, kind) = (None::<&str>, Some("sysfs"));
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
            unshare(CloneFlags::CLONE_NEWNS)
                .and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none))
                .and_then(|()| mount(kind, "/sys", kind, flags, none))
                .map_err(step("mount the sysfs of a network namespace"))?;
            Ok(work())
        })?
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for Namespace {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

fn loopback_up(netlink: &NetlinkSocket) -> Result<(), NetlinkError> {
    let loopback = netlink.link("lo")?;
    netlink.set_link_up(loopback.index, true)
}

fn in_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("namespace".into())
            .spawn_scoped(scope, work)
            .map_err(step("start a thread"))?;
        let ended = thread.join();
        Ok(ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remedy_with(file: &str, value: &str, errno: Errno) -> String {
        let root = tempfile::tempdir().expect("temporary directory");
        let path = root.path().join(file);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("directory");
        std::fs::write(path, value).expect("write");
        forbidden(errno, root.path()).to_string()
    }

    #[test]
    fn the_switch_that_forbids_is_named() {
        for (file, value, expected) in [
            (
                "kernel/unprivileged_userns_clone",
                "0\n",
                "unprivileged_userns_clone=1",
            ),
            (
                "user/max_user_namespaces",
                "0\n",
                "max_user_namespaces=10000",
            ),
            (
                "kernel/apparmor_restrict_unprivileged_userns",
                "1\n",
                "apparmor_restrict_unprivileged_userns=0",
            ),
        ] {
            let text = remedy_with(file, value, Errno::EPERM);
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn a_switch_that_allows_is_not_blamed() {
        let text = remedy_with("kernel/unprivileged_userns_clone", "1\n", Errno::ENOSPC);
        assert!(text.contains("a limit of namespaces is reached"), "{text}");
    }
}
