//! The linker: takes PTX, and makes an image that loads like a cubin.
//!
//! The virtual GPU runs modules of one text, so a second input is refused.

use super::{Image, Options, image};
use crate::lock;
use crate::report::log;
use crate::state::{Handles, Kind};
use crate::types::{CUjitInputType, CUlinkState, Result, Status};
use std::sync::{Arc, Mutex};
use warpwright_ptx::ir::Arch;

/// All linkers.
pub(crate) static LINKS: Handles<Link> = Handles::new(Kind::Link);

/// A linker.
pub(crate) struct Link {
    target: Arch,
    state: Mutex<State>,
}

struct State {
    options: Options,
    input: Option<Vec<u8>>,
    /// Its image, which the client may read until the linker is destroyed.
    output: Option<Box<[u8]>>,
}

impl Link {
    /// Creates a linker for the target of the options, or that of the current device.
    pub(crate) fn create(options: Options) -> Result<CUlinkState> {
        let device = crate::state::current()?.device.arch();
        let target = match options.target {
            None => device,
            Some(number) => {
                // Suffixes are in the higher bits: 0x10000 for `a`, 0x20000 for `f`.
                let sm = u16::try_from(number & 0xffff).map_err(|_| Status::INVALID_VALUE)?;
                let target = Arch::sm(sm);
                target.introduced().ok_or(Status::INVALID_VALUE)?;
                target
            }
        };
        let state = Mutex::new(State { options, input: None, output: None });
        Ok(CUlinkState(LINKS.insert(Arc::new(Link { target, state }))?))
    }

    /// Adds an input, which is checked against the rules of PTX at once. `name` is for messages.
    pub(crate) fn add(&self, kind: CUjitInputType, data: &[u8], name: &str) -> Result<()> {
        match kind {
            CUjitInputType::PTX | CUjitInputType::CUBIN => {}
            CUjitInputType::FATBINARY | CUjitInputType::OBJECT | CUjitInputType::LIBRARY => {
                log::misuse(&"the linker of a virtual GPU takes PTX: no fat binaries, objects or libraries");
                return Err(Status::NOT_SUPPORTED);
            }
            _ => return Err(Status::INVALID_VALUE),
        }
        let text = match Image::of(data)? {
            Image::Ptx(text) => text,
            Image::Linked { ptx, .. } => ptx,
        };
        let mut state = lock(&self.state);
        if state.output.is_some() {
            return Err(Status::INVALID_VALUE);
        }
        super::check(&text, self.target, &mut state.options)?;
        if state.input.is_some() {
            let what = format!(
                "a second input, `{name}`: a virtual GPU runs modules of one text. Put the functions into one PTX \
                 file, or load two modules that do not call each other"
            );
            log::misuse(&what);
            state.options.error(&format!("nvlink error   : {what}"));
            return Err(Status::NOT_SUPPORTED);
        }
        state.input = Some(text);
        Ok(())
    }

    /// Makes the image: its address and size, good until the linker is destroyed.
    pub(crate) fn complete(&self) -> Result<(*const u8, usize)> {
        let mut state = lock(&self.state);
        let Some(text) = &state.input else {
            state.options.error("nvlink error   : there is nothing to link");
            return Err(Status::INVALID_IMAGE);
        };
        let output = image::link(self.target, text).into_boxed_slice();
        // Asked again it is the same, at the same place.
        let output = state.output.get_or_insert(output);
        Ok((output.as_ptr(), output.len()))
    }
}
