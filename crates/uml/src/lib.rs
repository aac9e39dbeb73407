//! A command of ours inside User-mode Linux: a kernel with nearly every
//! driver, run as a program by an ordinary user.
//!
//! The kernel takes the machine's files as its root, read-only, and one
//! directory to write into. So the same program is there, at the same path; it
//! is the first process inside (see [`guest`]), runs the command as it was
//! typed, and passes on its output, Ctrl-C and its exit code.
//!
//! What is special about the kernel is documented in docs/user-mode-linux.md.

mod boot;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod guest;
mod installation;
mod job;
#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

pub use boot::run_inside;
pub use error::UmlError;
pub use installation::Installation;

/// The environment variable that tells a process inside which CPU it is on.
pub const HOST_CPU: &str = "PLUMBLINE_HOST_CPU";

/// Whether this process runs inside User-mode Linux.
pub fn inside() -> bool {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    is_user_mode(&cpuinfo)
}

fn is_user_mode(cpuinfo: &str) -> bool {
    cpuinfo_value(cpuinfo, "vendor_id") == Some("User Mode Linux")
}

/// The first value of a key in `/proc/cpuinfo`.
fn cpuinfo_value<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    let mut pairs = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = pairs.find(|(name, _)| name.trim() == key)?;
    Some(value.trim())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_says_what_it_is() {
        assert!(super::is_user_mode(
            "processor\t: 0\nvendor_id\t: User Mode Linux\nmodel name\t: UML\n"
        ));
        assert!(!super::is_user_mode(
            "processor\t: 0\nvendor_id\t: GenuineIntel\n"
        ));
    }
}
