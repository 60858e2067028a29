//! Loads, stores, prefetches and address queries.
