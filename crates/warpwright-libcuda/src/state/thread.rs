//! Values of a thread, and the end of a thread.
//!
//! A thread's values live until it ends, and **in the thread that ends the process they live to the last**: clients
//! release resources in destructors of their globals, which run after those of thread-local values. So these values are
//! not dropped by `thread_local!`, but where the platform reports the end of a thread: however the thread ends, but not
//! when the process does.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

unsafe extern "C" {
    // POSIX.
    fn pthread_key_create(key: *mut c_uint, at_end: Option<AtEnd>) -> c_int;
    fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
}

/// A function that is called in a thread at its end.
pub(crate) type AtEnd = unsafe extern "C" fn(*mut c_void);

/// Watches the ends of threads.
pub(crate) struct EndOfThread {
    told: AtEnd,
    key: OnceLock<Option<c_uint>>,
}

impl EndOfThread {
    /// Registers a function for them. It must drop nothing that is in use, and must not panic.
    pub(crate) const fn new(told: AtEnd) -> Self {
        EndOfThread { told, key: OnceLock::new() }
    }

    /// Whether threads can be watched. A process has room for some hundred functions.
    pub(crate) fn is_there(&self) -> bool {
        self.key().is_some()
    }

    fn key(&self) -> Option<c_uint> {
        *self.key.get_or_init(|| {
            let mut key = 0;
            // SAFETY: a place for the key. The library is not unloaded before the process ends.
            let code = unsafe { pthread_key_create(&raw mut key, Some(self.told)) };
            (code == 0).then_some(key)
        })
    }

    /// Makes the function be called with this non-null pointer when the calling thread ends.
    pub(crate) fn watch(&self, value: *const c_void) {
        if let Some(key) = self.key() {
            // SAFETY: the key is there. Where there is no room for the value, the end is not noticed.
            unsafe { pthread_setspecific(key, value) };
        }
    }
}

/// A thread's value, for use in `thread_local!`.
pub(crate) struct Own<T> {
    value: ManuallyDrop<RefCell<T>>,
    is_watched: Cell<bool>,
}

impl<T: Default + 'static> Own<T> {
    /// The initial value.
    pub(crate) const fn new(value: T) -> Self {
        Own { value: ManuallyDrop::new(RefCell::new(value)), is_watched: Cell::new(false) }
    }

    /// The watch for the ends of threads that have one; shared by all values of the name.
    pub(crate) const fn end() -> EndOfThread {
        EndOfThread::new(Self::ended)
    }

    /// Accesses the value. `None` if the thread is accessing it already.
    pub(crate) fn with<R>(&self, end: &EndOfThread, look: impl FnOnce(&mut T) -> R) -> Option<R> {
        if !self.is_watched.replace(true) {
            end.watch(std::ptr::from_ref(self).cast());
        }
        self.value.try_borrow_mut().ok().map(|mut value| look(&mut value))
    }

    unsafe extern "C" fn ended(this: *mut c_void) {
        // SAFETY: `with` has given this thread's own value, which is where it is until the thread is gone.
        let this = unsafe { &*this.cast_const().cast::<Self>() };
        // Who is told later may have a use for it again.
        this.is_watched.set(false);
        if let Ok(value) = this.value.try_borrow_mut().map(|mut value| std::mem::take(&mut *value)) {
            drop(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_value_goes_with_its_thread_and_not_with_the_threads_other_values() {
        static END: EndOfThread = Own::<Option<Arc<()>>>::end();
        thread_local! {
            static OWN: Own<Option<Arc<()>>> = const { Own::new(None) };
            static LATER: Later = const { Later };
        }
        /// It goes before, and finds the value.
        struct Later;
        impl Drop for Later {
            fn drop(&mut self) {
                let is_there = OWN.with(|own| own.with(&END, |value| value.is_some()));
                assert_eq!(is_there, Some(true));
            }
        }
        let value = Arc::new(());
        let held = value.clone();
        std::thread::spawn(|| {
            LATER.with(|_| ());
            OWN.with(|own| own.with(&END, |own| *own = Some(held)));
        })
        .join()
        .unwrap();
        // A thread is gone when all of it is, which is when it can be joined.
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
