//! A model on a device: prompts, tokens, logits.
