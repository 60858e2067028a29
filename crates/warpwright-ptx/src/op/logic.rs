//! Bitwise logic, shifts and bit fields.
