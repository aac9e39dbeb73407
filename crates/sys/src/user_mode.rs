//! User-mode Linux: a kernel that runs as a program on another one.

/// Whether this kernel is one.
pub fn is_here() -> bool {
    host().is_some()
}

/// Name and release of the kernel that it runs on; `None` where this is none.
pub fn host() -> Option<String> {
    named_in(&std::fs::read_to_string("/proc/cpuinfo").ok()?)
}

pub(crate) fn named_in(cpuinfo: &str) -> Option<String> {
    let value = |key: &str| {
        let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(name, _)| name.trim() == key);
        found.map(|(_, value)| value.trim())
    };
    value("vendor_id").filter(|vendor| *vendor == "User Mode Linux")?;
    // As `uname -a` has it: the machine's name is the second word.
    let mut words = value("host")?.split_whitespace();
    Some(format!("{} {}", words.next()?, words.nth(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_is_a_program_names_its_host() {
        let cpuinfo = "processor\t: 0\nvendor_id\t: User Mode Linux\n\
            host\t\t: Linux box 6.18.1 #1 SMP x86_64\nflags\t: fpu hypervisor\n";
        assert_eq!(named_in(cpuinfo).as_deref(), Some("Linux 6.18.1"));
        let other = cpuinfo.replace("User Mode Linux", "GenuineIntel");
        assert_eq!(named_in(&other), None);
    }
}
