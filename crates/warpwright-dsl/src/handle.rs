//! Handles: free to copy, whatever their type parameters.

/// A handle of a kernel is copied. (A derive would ask that of what it is of.)
macro_rules! handle {
    ($name:ident<$($param:ident),*>) => {
        impl<$($param),*> Clone for $name<'_, $($param),*> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<$($param),*> Copy for $name<'_, $($param),*> {}
    };
}
pub(super) use handle;
