//! Tokenizers from the vocabulary of a GGUF file.
