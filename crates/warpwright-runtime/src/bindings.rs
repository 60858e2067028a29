//! Collects a kernel's arguments, by name and in any order, with the buffers among them and the first mistake.
//!
//! Launches and operands share this code; each decides what to do with the arguments.

use crate::buffer::{AnyBuffer, Buffer, Element};
use crate::contract::{Argument, Arguments, Contract, ContractError, Number, Span};
use std::marker::PhantomData;
use warpwright_dsl::{Data, Mode, Sink};

/// The arguments that a kernel has been given so far.
pub(crate) struct Bindings {
    arguments: Arguments,
    buffers: Vec<AnyBuffer>,
    refused: Option<Box<ContractError>>,
}

impl Bindings {
    /// No arguments yet. Call the other functions with the same contract.
    pub(crate) fn new(contract: &Contract) -> Self {
        let buffers = Vec::with_capacity(contract.args.len());
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
        let given = contract.give(&mut self.arguments, name, Argument::Buffer(span));
        self.buffers.push(buffer.clone());
        self.note(given);
    }

    /// Gives a number.
    pub(crate) fn scalar<T: Element>(&mut self, contract: &Contract, name: &str, value: T) {
        self.number(contract, name, Number::new(T::TYPE, bytemuck::bytes_of(&value)));
    }

    fn number(&mut self, contract: &Contract, name: &str, number: Number) {
        let given = contract.give(&mut self.arguments, name, Argument::Number(number));
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

/// The [`Mode`] of a launch's arguments: references to buffers, and numbers of the host.
#[derive(Clone, Copy, Debug)]
pub struct LaunchMode<'a>(PhantomData<&'a ()>);

impl<'a> Mode for LaunchMode<'a> {
    type In<T: Data> = &'a Buffer<T::Host>;
    type Out<T: Data> = &'a Buffer<T::Host>;
    type InOut<T: Data> = &'a Buffer<T::Host>;
    type Scalar<T: Data> = T::Host;
    type AnyIn = &'a AnyBuffer;
    type AnyOut = &'a AnyBuffer;
    type AnyInOut = &'a AnyBuffer;
    type Dim = u64;
}

/// Passes arguments on to bindings.
pub(crate) struct ArgumentSink<'a> {
    pub(crate) contract: &'a Contract,
    pub(crate) bindings: &'a mut Bindings,
}

impl ArgumentSink<'_> {
    fn buffer(&mut self, name: &str, buffer: &AnyBuffer) {
        self.bindings.buffer(self.contract, name, buffer);
    }
}

impl<'a> Sink<LaunchMode<'a>> for ArgumentSink<'_> {
    fn input<T: Data>(&mut self, name: &'static str, value: &'a Buffer<T::Host>) {
        self.buffer(name, value.as_ref());
    }

    fn output<T: Data>(&mut self, name: &'static str, value: &'a Buffer<T::Host>) {
        self.buffer(name, value.as_ref());
    }

    fn in_out<T: Data>(&mut self, name: &'static str, value: &'a Buffer<T::Host>) {
        self.buffer(name, value.as_ref());
    }

    fn scalar<T: Data>(&mut self, name: &'static str, value: T::Host) {
        self.bindings.number(self.contract, name, Number::new(T::TYPE, bytemuck::bytes_of(&value)));
    }

    fn any_input(&mut self, name: &'static str, value: &'a AnyBuffer) {
        self.buffer(name, value);
    }

    fn any_output(&mut self, name: &'static str, value: &'a AnyBuffer) {
        self.buffer(name, value);
    }

    fn any_in_out(&mut self, name: &'static str, value: &'a AnyBuffer) {
        self.buffer(name, value);
    }

    fn dim(&mut self, name: &'static str, value: u64) {
        self.bindings.dim(self.contract, name, value);
    }
}
