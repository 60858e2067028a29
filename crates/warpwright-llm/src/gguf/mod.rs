//! GGUF files: read by mapping them, checked before use, and written.
