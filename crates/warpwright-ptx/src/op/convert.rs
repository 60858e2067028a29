//! Conversions between types and between address spaces.
