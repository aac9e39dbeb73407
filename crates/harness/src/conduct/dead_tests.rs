//! Treatments whose path carries nothing.

use plumbline_record::TrialStatus;

use super::tests::play;
use crate::planted::{PlantedTarget, plan};

/// Says it once, in the first block, and the others of its set go on without it.
#[test]
fn what_carries_nothing_fails_one_trial_and_is_left_out_of_later_blocks() {
    for rotates in [false, true] {
        let mut plan = plan(3, 2);
        plan.rotate = rotates;
        let mut target = PlantedTarget::new([]);
        target.rotates = rotates;
        target.second_is_dead = true;
        let played = play(&plan, &[], &mut target, None);
        let (alive, dead): (Vec<_>, Vec<_>) =
            played.trials.iter().partition(|it| it.treatment == 0);
        assert_eq!(alive.len(), 3, "{rotates}");
        assert!(alive.iter().all(|it| it.status == TrialStatus::Valid));
        let failed = |it: &TrialStatus| matches!(it, TrialStatus::Failed { error } if error.contains("leads nowhere"));
        assert_eq!(dead.len(), 1, "{rotates}");
        assert!(dead[0].block == 0 && failed(&dead[0].status));
        assert_eq!(played.ending.finished, plan.trials(), "{rotates}");
    }
}
