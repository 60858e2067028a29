//! What a stream captures, graphs, and graphs that were made ready to run.
