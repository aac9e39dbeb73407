//! Numbers to judgement: intervals, paired effects, verdicts.
