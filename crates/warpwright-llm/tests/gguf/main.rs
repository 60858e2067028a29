//! Files: what is written is read, and what is damaged is refused.

mod read;
