//! The narrow waist: Target, Site, and the one loop that runs a Plan on any Target.
