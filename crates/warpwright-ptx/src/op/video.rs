//! Video instructions.
