//! The experiment file, validated and expanded into a plan.
