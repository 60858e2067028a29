//! Text from a prompt.
