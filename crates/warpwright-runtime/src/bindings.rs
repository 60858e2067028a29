//! What a kernel is given, as it comes: arguments by name and in any order, the buffers among them, the first mistake.
//!
//! Launches and operands are bound alike; what becomes of the arguments is theirs to say.

use crate::buffer::{AnyBuffer, Element};
use crate::contract::{Arguments, Contract, ContractError, Number, Span};

/// What a kernel was given so far.
pub(crate) struct Bindings {
    arguments: Arguments,
    buffers: Vec<AnyBuffer>,
    refused: Option<Box<ContractError>>,
}

impl Bindings {
    /// Nothing is given yet. The other functions are asked with the same contract.
    pub(crate) fn new(contract: &Contract) -> Self {
        let buffers = Vec::with_capacity(contract.args().len());
        Bindings { arguments: contract.arguments(), buffers, refused: None }
    }

    /// Gives a buffer.
    pub(crate) fn buffer(&mut self, contract: &Contract, name: &str, buffer: &AnyBuffer) {
        let span = Span {
            dtype: buffer.element(),
            address: buffer.device_ptr(),
            bytes: buffer.num_bytes(),
            device: buffer.device().number(),
        };
        let given = contract.give_buffer(&mut self.arguments, name, span);
        self.buffers.push(buffer.clone());
        self.note(given);
    }

    /// Gives a number.
    pub(crate) fn scalar<T: Element>(&mut self, contract: &Contract, name: &str, value: T) {
        let number = Number::new(T::TYPE, bytemuck::bytes_of(&value));
        let given = contract.give_number(&mut self.arguments, name, number);
        self.note(given);
    }

    /// Gives a number that lengths or the grid depend on.
    pub(crate) fn dim(&mut self, contract: &Contract, name: &str, count: u64) {
        let given = contract.give_dim(&mut self.arguments, name, count);
        self.note(given);
    }

    fn note(&mut self, given: Result<(), ContractError>) {
        if let Err(error) = given {
            self.refused.get_or_insert(Box::new(error));
        }
    }

    /// The arguments and the buffers among them, or the first mistake.
    pub(crate) fn finish(self) -> Result<(Arguments, Vec<AnyBuffer>), Box<ContractError>> {
        match self.refused {
            Some(error) => Err(error),
            None => Ok((self.arguments, self.buffers)),
        }
    }
}
