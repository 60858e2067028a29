//! Textures and surfaces.
