//! Everything that fits no other family.
