//! Clusters: addresses of other blocks, cluster barriers.
