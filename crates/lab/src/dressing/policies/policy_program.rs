//! The program of a pod's policies as Calico's eBPF mode makes it (projectcalico/calico,
//! `felix/bpf/polprog/pol_prog_builder.go`@00b9aad): for each rule its protocol, a look-up of
//! the address in the map of sets with the number of the set before it or a comparison with
//! one, its port, and the jump
//! to what allows; what does not fit goes on to the next rule. So it grows with the rules, and
//! is cut into parts that call each other.
//!
//! Felix begins a new part after so many jumps as the kernel follows in a row, 8,192 less some,
//! which are 1,600 rules; where a jump is longer than an instruction can say, it makes it in
//! several. Here a part is of fewer rules, and no jump is.

use std::net::IpAddr;

use plumbline_experiment::Family;
use plumbline_sys::bpf::Instruction;

/// Rules of one part.
pub(super) const PART: usize = 1_000;

/// The maps that a program names, by their descriptors.
#[derive(Clone, Copy)]
pub(super) struct MapNumbers {
    pub(super) state: i32,
    pub(super) sets: i32,
    /// Holds the program that allows.
    pub(super) programs: i32,
    /// Holds the parts.
    pub(super) policies: i32,
}

/// A rule that allows one TCP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortRule {
    pub(super) to: Allowed,
    pub(super) port: u16,
}

/// Whom a rule allows something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allowed {
    /// The members of a set.
    Set(u64),
    Address(IpAddr),
}

/// Which end of a packet is the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerEnd {
    Source,
    Destination,
}

// Offsets in `struct state` of `bpf/calico_policy.c`.
const FROM: i16 = 0;
const TO: i16 = 16;
const FROM_PORT: i16 = 32;
const TO_PORT: i16 = 34;
const PROTOCOL: i16 = 36;
const TCP: i32 = 6;

/// Where the key of the state is on the stack, and that of a set, whose address is then
/// aligned to 8.
const STATE_KEY: i16 = -4;
const SET_KEY: i16 = -36;

// Functions of the kernel.
const LOOK_UP: i32 = 1;
const TAIL_CALL: i32 = 12;
/// `TC_ACT_SHOT`.
const DROP: i32 = 2;

/// The program in its parts; `index` is where the first will be in the array of parts.
pub(super) fn parts(
    rules: &[PortRule],
    end: PeerEnd,
    family: Family,
    maps: MapNumbers,
    index: u32,
) -> Vec<Vec<Instruction>> {
    let parts = rules.chunks(PART);
    let last = parts.len().saturating_sub(1);
    let part = |(number, rules): (usize, &[PortRule])| {
        let mut code = Code::default();
        code.header(maps.state);
        for rule in rules {
            code.rule(*rule, end, family, maps.sets);
        }
        // The array has 64 positions.
        let next = (number < last).then_some(index as i32 + number as i32 + 1);
        code.finish(maps, next);
        code.instructions
    };
    parts.enumerate().map(part).collect()
}

/// A program that allows whatever comes: that of a pod which no policy restricts.
pub(super) fn unrestricted(maps: MapNumbers) -> Vec<Instruction> {
    let mut code = Code::default();
    code.header(maps.state);
    code.jump_to_allow();
    code.finish(maps, None);
    code.instructions
}

#[derive(Default)]
struct Code {
    instructions: Vec<Instruction>,
    /// Jumps to what allows, and to what drops, which are known at the end.
    to_allow: Vec<usize>,
    to_drop: Vec<usize>,
}

/// Codes of instructions (RFC 9669, section 4).
mod code {
    pub(super) const MOVE: u8 = 0xbf;
    pub(super) const MOVE_NUMBER: u8 = 0xb7;
    pub(super) const MOVE_NUMBER_32: u8 = 0xb4;
    pub(super) const ADD_NUMBER: u8 = 0x07;
    pub(super) const WIDE: u8 = 0x18;
    pub(super) const LOAD_8: u8 = 0x71;
    pub(super) const LOAD_16: u8 = 0x69;
    pub(super) const LOAD_32: u8 = 0x61;
    pub(super) const LOAD_64: u8 = 0x79;
    pub(super) const STORE_8: u8 = 0x73;
    pub(super) const STORE_16: u8 = 0x6b;
    pub(super) const STORE_32: u8 = 0x63;
    pub(super) const STORE_64: u8 = 0x7b;
    pub(super) const JUMP: u8 = 0x05;
    pub(super) const JUMP_EQUAL: u8 = 0x15;
    pub(super) const JUMP_UNEQUAL: u8 = 0x55;
    pub(super) const JUMP_EQUAL_32: u8 = 0x16;
    pub(super) const JUMP_UNEQUAL_32: u8 = 0x56;
    pub(super) const AND_32: u8 = 0x5c;
    pub(super) const CALL: u8 = 0x85;
    pub(super) const EXIT: u8 = 0x95;
}

impl Code {
    fn add(&mut self, code: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        self.instructions.push(Instruction {
            code,
            registers: to | (from << 4),
            offset,
            immediate,
        });
    }

    /// Copies a field of the state into register 1.
    fn load(&mut self, code: u8, offset: i16) {
        self.add(code, 1, 9, offset, 0);
    }

    /// Copies register 1 to the stack.
    fn store(&mut self, code: u8, offset: i16) {
        self.add(code, 10, 1, offset, 0);
    }

    fn number(&mut self, register: u8, number: i32) {
        self.add(code::MOVE_NUMBER, register, 0, 0, number);
    }

    /// The descriptor of a map, which the kernel replaces by its address.
    fn map(&mut self, register: u8, map: i32) {
        self.add(code::WIDE, register, 1, 0, map);
        self.add(0, 0, 0, 0, 0);
    }

    /// Looks the key on the stack up in a map.
    fn look_up(&mut self, map: i32, key: i16) {
        self.map(1, map);
        self.add(code::MOVE, 2, 10, 0, 0);
        self.add(code::ADD_NUMBER, 2, 0, 0, i32::from(key));
        self.add(code::CALL, 0, 0, 0, LOOK_UP);
    }

    /// Adds a jump whose end is not known yet, and gives where it is.
    fn jump(&mut self, code: u8, register: u8, number: i32) -> usize {
        self.add(code, register, 0, 0, number);
        self.instructions.len() - 1
    }

    /// The packet is kept in register 6, what is known of it in register 9.
    fn header(&mut self, state: i32) {
        self.add(code::MOVE, 6, 1, 0, 0);
        self.number(1, 0);
        self.store(code::STORE_32, STATE_KEY);
        self.look_up(state, STATE_KEY);
        let jump = self.jump(code::JUMP_EQUAL, 0, 0);
        self.to_drop.push(jump);
        self.add(code::MOVE, 9, 0, 0, 0);
    }

    fn rule(&mut self, rule: PortRule, end: PeerEnd, family: Family, sets: i32) {
        self.load(code::LOAD_8, PROTOCOL);
        let mut to_next = vec![self.jump(code::JUMP_UNEQUAL, 1, TCP)];
        match rule.to {
            Allowed::Set(set) => {
                self.set_key(set, end, family);
                self.look_up(sets, SET_KEY);
                match end {
                    PeerEnd::Source => to_next.push(self.jump(code::JUMP_EQUAL, 0, 0)),
                    // Over the jump to the next rule: Felix is ready for several sets here.
                    PeerEnd::Destination => {
                        self.add(code::JUMP_UNEQUAL, 0, 0, 1, 0);
                        to_next.push(self.jump(code::JUMP, 0, 0));
                    }
                }
            }
            Allowed::Address(address) => to_next.extend(self.compare(address, end)),
        }
        self.load(code::LOAD_16, TO_PORT);
        // As well, for several ports.
        self.add(code::JUMP_EQUAL, 1, 0, 1, i32::from(rule.port));
        to_next.push(self.jump(code::JUMP, 0, 0));
        self.jump_to_allow();
        let next = self.instructions.len();
        for jump in to_next {
            self.aim(jump, next);
        }
    }

    /// Compares an address with that of the packet, by words of 32 bits, under a mask with all
    /// bits; gives the jumps from where they differ.
    fn compare(&mut self, address: IpAddr, end: PeerEnd) -> Vec<usize> {
        let bytes = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let from = match end {
            PeerEnd::Source => FROM,
            PeerEnd::Destination => TO,
        };
        let words = bytes.chunks_exact(4).map(|it| {
            let word = it.try_into().expect("a chunk of four bytes");
            i32::from_ne_bytes(word)
        });
        let words: Vec<i32> = words.collect();
        let mut differ = Vec::new();
        let last = words.len() - 1;
        for (at, word) in (0_i16..).zip(words) {
            self.load(code::LOAD_32, from + 4 * at);
            self.add(code::MOVE_NUMBER_32, 2, 0, 0, -1);
            self.add(code::AND_32, 2, 1, 0, 0);
            if usize::from(at.unsigned_abs()) < last {
                differ.push(self.jump(code::JUMP_UNEQUAL_32, 2, word));
            } else {
                // Over the jump to the next rule: Felix is ready for several addresses here.
                self.add(code::JUMP_EQUAL_32, 2, 0, 1, word);
                differ.push(self.jump(code::JUMP, 0, 0));
            }
        }
        differ
    }

    /// The key of an address in a set, as the map has it: the length, the set, the address,
    /// the port, the protocol.
    fn set_key(&mut self, set: u64, end: PeerEnd, family: Family) {
        let (address, port) = match end {
            PeerEnd::Source => (FROM, FROM_PORT),
            PeerEnd::Destination => (TO, TO_PORT),
        };
        // Bytes more of an address, and bits of the whole.
        let (more, bits) = match family {
            Family::V4 => (0, 128),
            Family::V6 => (12, 224),
        };
        self.number(1, 0);
        self.store(code::STORE_8, SET_KEY + 19 + more);
        self.number(1, bits);
        self.store(code::STORE_32, SET_KEY);
        match family {
            Family::V4 => {
                self.load(code::LOAD_32, address);
                self.store(code::STORE_32, SET_KEY + 12);
            }
            Family::V6 => {
                for half in [0, 8] {
                    self.load(code::LOAD_64, address + half);
                    self.store(code::STORE_64, SET_KEY + 12 + half);
                }
            }
        }
        self.load(code::LOAD_16, port);
        self.store(code::STORE_16, SET_KEY + 16 + more);
        self.load(code::LOAD_8, PROTOCOL);
        self.store(code::STORE_8, SET_KEY + 18 + more);
        let [low, high] = set_halves(set);
        self.add(code::MOVE_NUMBER_32, 1, 0, 0, low);
        self.store(code::STORE_32, SET_KEY + 4);
        self.add(code::MOVE_NUMBER_32, 1, 0, 0, high);
        self.store(code::STORE_32, SET_KEY + 8);
    }

    fn jump_to_allow(&mut self) {
        let jump = self.jump(code::JUMP, 0, 0);
        self.to_allow.push(jump);
    }

    fn tail_call(&mut self, map: i32, index: i32) {
        self.add(code::MOVE, 1, 6, 0, 0);
        self.map(2, map);
        self.add(code::MOVE_NUMBER_32, 3, 0, 0, index);
        self.add(code::CALL, 0, 0, 0, TAIL_CALL);
    }

    /// The next part, if there is one, or the drop; and what allows.
    fn finish(&mut self, maps: MapNumbers, next: Option<i32>) {
        if let Some(index) = next {
            self.tail_call(maps.policies, index);
        }
        let drop = self.drop();
        let allow = self.instructions.len();
        self.tail_call(maps.programs, 0);
        // Where that is not there.
        self.drop();
        for jump in std::mem::take(&mut self.to_drop) {
            self.aim(jump, drop);
        }
        for jump in std::mem::take(&mut self.to_allow) {
            self.aim(jump, allow);
        }
    }

    /// Ends with the packet's; gives where that begins.
    fn drop(&mut self) -> usize {
        let begins = self.instructions.len();
        self.number(0, DROP);
        self.add(code::EXIT, 0, 0, 0, 0);
        begins
    }

    fn aim(&mut self, jump: usize, at: usize) {
        // A part is short enough for the offset.
        self.instructions[jump].offset = (at - jump - 1) as i16;
    }
}

/// The number of a set as two words, in the order of bytes of the key.
fn set_halves(set: u64) -> [i32; 2] {
    let [a, b, c, d, e, f, g, h] = set.to_be_bytes();
    [
        i32::from_ne_bytes([a, b, c, d]),
        i32::from_ne_bytes([e, f, g, h]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: MapNumbers = MapNumbers {
        state: 3,
        sets: 4,
        programs: 5,
        policies: 6,
    };

    fn made(rules: u64, end: PeerEnd, family: Family) -> Vec<Vec<Instruction>> {
        made_of(rules, Allowed::Set, end, family)
    }

    fn made_of(
        rules: u64,
        allowed: impl Fn(u64) -> Allowed,
        end: PeerEnd,
        family: Family,
    ) -> Vec<Vec<Instruction>> {
        let rule = |number| PortRule {
            to: allowed(number),
            port: 8080,
        };
        let rules: Vec<PortRule> = (0..rules).map(rule).collect();
        parts(&rules, end, family, MAPS, 0)
    }

    /// Protocol 2, port 4; 5 for a word, and for each more 4 of which one jumps on.
    #[test]
    fn an_address_is_compared_by_words() {
        for (address, rule) in [("198.18.0.1", 6 + 5), ("fd00::1", 6 + 3 * 4 + 5)] {
            let address: IpAddr = address.parse().unwrap();
            let family = match address {
                IpAddr::V4(_) => Family::V4,
                IpAddr::V6(_) => Family::V6,
            };
            let length = |rules| {
                let made = made_of(
                    rules,
                    |_| Allowed::Address(address),
                    PeerEnd::Source,
                    family,
                );
                made[0].len()
            };
            assert_eq!(length(200) - length(100), 100 * rule);
        }
    }

    /// As many instructions for a rule as Felix writes, and as docs/method.md says.
    #[test]
    fn it_grows_with_the_rules() {
        for (end, family, rule) in [
            (PeerEnd::Source, Family::V4, 26),
            (PeerEnd::Destination, Family::V4, 27),
            (PeerEnd::Source, Family::V6, 28),
            (PeerEnd::Destination, Family::V6, 29),
        ] {
            let length = |rules| made(rules, end, family)[0].len();
            // The head, the drop, and what allows.
            assert_eq!(length(1), 10 + rule + 2 + 7);
            assert_eq!(length(200) - length(100), 100 * rule);
        }
    }

    #[test]
    fn each_part_but_the_last_calls_the_next() {
        let parts = made(2_500, PeerEnd::Source, Family::V4);
        let called = |part: &Vec<Instruction>| {
            let is_policies = |it: &Instruction| it.code == code::WIDE && it.immediate == 6;
            let at = part.iter().position(is_policies)?;
            Some(part[at + 2].immediate)
        };
        let called: Vec<_> = parts.iter().map(called).collect();
        assert_eq!(called, [Some(1), Some(2), None]);
    }

    /// Every jump ends at an instruction of the same part, and none within a wide one.
    #[test]
    fn jumps_end_at_instructions() {
        for family in Family::BOTH {
            for part in made(PART as u64, PeerEnd::Destination, *family) {
                let jumps = part.iter().enumerate().filter(|(_, it)| {
                    [code::JUMP, code::JUMP_EQUAL, code::JUMP_UNEQUAL].contains(&it.code)
                });
                for (at, jump) in jumps {
                    assert!(jump.offset >= 0, "forwards only: {at}: {jump:?}");
                    let target = at + 1 + jump.offset as usize;
                    assert!(target < part.len(), "{at}: {jump:?}");
                    assert_ne!(part[target].code, 0, "{at}: {jump:?}");
                }
            }
        }
    }

    #[test]
    fn a_set_is_in_network_order() {
        assert_eq!(set_halves(1), [0, i32::from_ne_bytes([0, 0, 0, 1])]);
    }
}
