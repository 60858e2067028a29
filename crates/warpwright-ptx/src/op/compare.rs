//! Comparisons and selections.
