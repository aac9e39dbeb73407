//! Offloads that are switched off for a while, and put back.

use plumbline_protocol::OffloadGroup;
use plumbline_sys::ethtool::Offload;

/// What is switched off, to be put back when this is dropped.
#[derive(Default)]
pub(super) struct SwitchedOff(Vec<(String, Offload)>);

impl SwitchedOff {
    /// Switches a group off on those of some devices that let it be switched; gives those
    /// on which that changed anything.
    pub(super) fn switch_off(&mut self, devices: &[String], group: OffloadGroup) -> Vec<String> {
        let mut changed: Vec<String> = Vec::new();
        for device in devices {
            for offload in offloads(group) {
                let was_on = offload.is_on(device).unwrap_or(false);
                if was_on && offload.switch(device, false).is_ok() {
                    self.0.push((device.clone(), *offload));
                    if !changed.contains(device) {
                        changed.push(device.clone());
                    }
                }
            }
        }
        changed
    }

    /// Puts everything back, last first.
    ///
    /// # Errors
    ///
    /// The devices that did not take it, with the remedy.
    pub(super) fn put_back(&mut self) -> Result<(), String> {
        let mut failed = Vec::new();
        while let Some((device, offload)) = self.0.pop() {
            if let Err(error) = offload.switch(&device, true) {
                failed.push(format!("{offload:?} of {device}: {error}"));
            }
        }
        match failed.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "cannot be switched on again: {}; use `ethtool -K`",
                failed.join(", ")
            )),
        }
    }
}

impl Drop for SwitchedOff {
    fn drop(&mut self) {
        // Best effort: whoever ends well has put it back before.
        let _ = self.put_back();
    }
}

/// The order matters: what is put back last first needs what is put back before it.
fn offloads(group: OffloadGroup) -> &'static [Offload] {
    match group {
        OffloadGroup::Receive => &[Offload::Gro],
        OffloadGroup::Segmentation => &[Offload::Tso, Offload::Gso],
        OffloadGroup::Checksum => &[Offload::TxChecksum],
    }
}
