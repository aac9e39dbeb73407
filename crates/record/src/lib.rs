//! What was observed: histograms, trials, provenance, and the run directory on disk.
