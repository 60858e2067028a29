//! Enumerations of the interface: numbers with names, of which a client may pass any.

/// A number in a newtype, and its names.
macro_rules! enumeration {
    ($(#[$meta:meta])* $name:ident: $repr:ty { $($constant:ident = $value:literal),* $(,)? }) => {
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $repr);

        #[allow(missing_docs)] // The names are the interface's.
        impl $name {
            $(pub const $constant: $name = $name($value);)*
        }
    };
}

pub(super) use enumeration;
