//! Models from the metadata of a GGUF file: configuration, graphs, weights.
