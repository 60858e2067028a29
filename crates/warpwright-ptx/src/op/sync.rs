//! Barriers and fences.
