//! Memory that another owner lends for a limited time.
//!
//! Handles of buffers, such as those in graphs and prepared launches, may outlive a loan. So the loan is checked when
//! an operation is issued: **no operation that uses lent memory is issued after the loan has ended, and a loan does not
//! end while such an operation is being issued**.

use crate::error::{Result, RuntimeError};
use crate::lock;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A period for which memory is lent.
#[derive(Debug, Default)]
pub(crate) struct Loan {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ended: bool,
    /// Operations that are being issued now.
    issuing: usize,
}

impl Loan {
    /// Ends the loan. When this returns, all operations that use the memory have been issued, and no more will be.
    pub(crate) fn end(&self) {
        let mut state = lock(&self.state);
        state.ended = true;
        while state.issuing > 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The loans that are used by an operation being issued.
#[derive(Default)]
pub(crate) struct Issuing {
    loans: Vec<Arc<Loan>>,
}

impl Issuing {
    /// Notes that the operation uses memory of the loan. Refused if it has ended.
    pub(super) fn enter(&mut self, loan: &Arc<Loan>) -> Result<()> {
        let mut state = lock(&loan.state);
        if state.ended {
            return Err(RuntimeError::LoanEnded);
        }
        state.issuing += 1;
        drop(state);
        self.loans.push(loan.clone());
        Ok(())
    }
}

impl Drop for Issuing {
    fn drop(&mut self) {
        for loan in &self.loans {
            lock(&loan.state).issuing -= 1;
            loan.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn what_is_being_issued_ends_before_the_loan_does() {
        let loan = Arc::new(Loan::default());
        let mut issuing = Issuing::default();
        // An operation may use the same memory twice.
        issuing.enter(&loan).expect("it is lent");
        issuing.enter(&loan).expect("it is lent");
        let (ended, end) = mpsc::channel();
        let other = loan.clone();
        let thread = thread::spawn(move || {
            other.end();
            ended.send(()).expect("somebody waits");
        });
        let mut refused = Issuing::default();
        while refused.enter(&loan).is_ok() {
            // The other thread has not come to it yet.
            refused = Issuing::default();
            thread::yield_now();
        }
        assert_eq!(end.try_recv(), Err(mpsc::TryRecvError::Empty), "an operation is being issued");
        drop(issuing);
        end.recv().expect("it ends now");
        thread.join().expect("it is done");
        assert!(matches!(Issuing::default().enter(&loan), Err(RuntimeError::LoanEnded)));
    }
}
