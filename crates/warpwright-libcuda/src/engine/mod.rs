//! What a device does, and in which order: memory by address, streams, events, errors that stay.
