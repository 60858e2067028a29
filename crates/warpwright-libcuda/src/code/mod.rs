//! Modules from PTX text, their functions and variables, occupancy.
