//! The linker: takes PTX, and makes an image that loads like a cubin.

use super::{Checked, Image, Options, image, object};
use crate::lock;
use crate::report::log;
use crate::state::{Handles, Kind};
use crate::types::{CUjitInputType, CUlinkState, Result, Status};
use std::sync::{Arc, Mutex};
use warpwright_ptx::ir::{Arch, FunctionDirective, FunctionKind, ItemKind, Module};
use warpwright_ptx::link::{Input, LinkError};

/// All linkers.
pub(crate) static LINKS: Handles<Link> = Handles::new(Kind::Link);

/// The functions of CUDA's device runtime that the linker has.
const DEVICE_RUNTIME: &str = include_str!("device_runtime.ptx");

/// One of them, by which the archive's code is known.
const DEVICE_RUNTIME_FUNCTION: &str = "cudaCGGetIntrinsicHandle";

/// What messages call the linker's image.
const LINKED: &str = "the linked code";

/// A linker.
pub(crate) struct Link {
    target: Arch,
    state: Mutex<State>,
}

struct State {
    options: Options,
    inputs: Vec<Text>,
    /// Members of archives, of which the link takes those that it needs.
    library: Vec<Text>,
    /// Members without PTX for the target.
    unusable: Vec<(String, Image)>,
    /// Its image, which the client may read until the linker is destroyed.
    output: Option<Arc<[u8]>>,
}

/// An input, as it was given and as a module.
struct Text {
    name: String,
    text: Vec<u8>,
    module: Module,
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
        Ok(CUlinkState(LINKS.insert(Arc::new(Link::new(target, options)))?))
    }

    /// A linker for a target.
    pub(crate) fn new(target: Arch, options: Options) -> Link {
        let (inputs, library, unusable) = Default::default();
        Link { target, state: Mutex::new(State { options, inputs, library, unusable, output: None }) }
    }

    /// Adds an input, which is checked against the rules of PTX at once. `name` is for messages.
    pub(crate) fn add(&self, kind: CUjitInputType, data: &[u8], name: &str) -> Result<()> {
        let shown = if name.is_empty() { "an input of the linker".to_string() } else { format!("`{name}`") };
        let mut state = lock(&self.state);
        if state.output.is_some() {
            return Err(Status::INVALID_VALUE);
        }
        match kind {
            CUjitInputType::PTX | CUjitInputType::CUBIN | CUjitInputType::FATBINARY => {
                let image = Image::of(data, &shown)?;
                let text = self.text(&image, name, &shown, &mut state.options)?;
                state.inputs.extend(text);
            }
            CUjitInputType::OBJECT => {
                let binaries = object::of_object(data).map_err(|refused| refused.status(&shown))?;
                if binaries.is_empty() {
                    log::note(&format_args!(
                        "{shown} is set aside: it is an object without code for devices"
                    ));
                }
                for binary in binaries {
                    let text = self.text(&Image::Fat(binary), name, &shown, &mut state.options)?;
                    state.inputs.extend(text);
                }
            }
            CUjitInputType::LIBRARY if is_device_runtime(name) => {
                log::note(&format_args!("{name} is set aside: the linker has the device runtime's functions"))
            }
            CUjitInputType::LIBRARY => {
                for (member, data) in object::of_archive(data).map_err(|refused| refused.status(&shown))? {
                    let name = format!("{name}:{member}");
                    let shown = format!("`{name}`");
                    for binary in object::of_object(data).map_err(|refused| refused.status(&shown))? {
                        let image = Image::Fat(binary);
                        if image.is_for(self.target) {
                            let text = self.text(&image, &name, &shown, &mut state.options)?;
                            state.library.extend(text);
                        } else {
                            state.unusable.push((name.clone(), image));
                        }
                    }
                }
            }
            CUjitInputType::NVVM => {
                log::misuse(&format_args!(
                    "{shown} is NVVM code, and the linker of a virtual GPU takes PTX, and fat binaries, objects and \
                     archives with PTX: give it those"
                ));
                return Err(Status::NOT_SUPPORTED);
            }
            _ => return Err(Status::INVALID_VALUE),
        }
        Ok(())
    }

    /// The text of an image, checked; none if its code is that of the device runtime, which the linker has: programs of
    /// several objects carry the archive's code along, mostly as machine code.
    fn text(&self, image: &Image, name: &str, shown: &str, options: &mut Options) -> Result<Option<Text>> {
        if image.lacks(self.target, DEVICE_RUNTIME_FUNCTION) {
            return Ok(None);
        }
        let text = image.linkable(self.target, shown)?;
        let Checked { module, .. } = super::check(&text, self.target, options)?;
        Ok(Some(Text { name: name.to_string(), text: text.into_owned(), module }))
    }

    /// The image, which is made once and stays where it is until the linker is destroyed.
    pub(crate) fn complete(&self) -> Result<Arc<[u8]>> {
        let mut state = lock(&self.state);
        if let Some(output) = &state.output {
            return Ok(output.clone());
        }
        let text = state.linked(self.target)?;
        let output: Arc<[u8]> = image::link(self.target, &text).into();
        state.output = Some(output.clone());
        Ok(output)
    }

    /// The text of the image.
    pub(crate) fn linked_text(&self) -> Result<Vec<u8>> {
        Ok(Image::of(&self.complete()?, LINKED)?.linkable(self.target, LINKED)?.into_owned())
    }

    /// Messages so far, where the options have no place for them: warnings and errors.
    pub(crate) fn messages(&self) -> (String, String) {
        lock(&self.state).options.messages()
    }
}

/// Whether a library is that of the device runtime, by its name.
fn is_device_runtime(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.starts_with("libcudadevrt") || file.starts_with("cudadevrt")
}

/// Whether it is a function of CUDA's device runtime by which kernels launch kernels or graphs.
fn launches(symbol: &str) -> bool {
    let function = symbol.strip_prefix("__cudaCDP2").or_else(|| symbol.strip_prefix("cuda"));
    let parts = ["GetParameterBuffer", "LaunchDevice", "GraphLaunch"];
    function.is_some_and(|function| parts.iter().any(|part| function.starts_with(part)))
}

impl Text {
    fn input(&self) -> Input {
        Input { name: self.name.clone(), module: self.module.clone() }
    }
}

impl State {
    /// The text of all inputs together, with what they need of archives. A single one stays as it was written.
    fn linked(&mut self, target: Arch) -> Result<Vec<u8>> {
        let State { options, inputs, library, unusable, .. } = self;
        let mut modules: Vec<Input> = inputs.iter().map(Text::input).collect();
        let mut members: Vec<Input> = library.iter().map(Text::input).collect();
        members.push(device_runtime());
        let needed = warpwright_ptx::link::needed(&modules, &members);
        // A member's number among the modules leads to its text.
        let texts: Vec<&Text> =
            inputs.iter().chain(needed.iter().filter_map(|number| library.get(*number))).collect();
        modules.extend(needed.iter().map(|number| members[*number].clone()));
        let is_alone = modules.len() == 1;
        let linked = warpwright_ptx::link(modules, warpwright_vm::is_provided);
        let mut module = linked.map_err(|error| {
            let line = match &error {
                LinkError::Undefined { number, origin, .. } => {
                    texts.get(*number).and_then(|input| super::line_in(*origin, &input.text))
                }
                _ => None,
            };
            let is_launch = matches!(&error, LinkError::Undefined { symbol, .. } if launches(symbol));
            let why = match is_launch {
                true => format!("{error}: launches from kernels (dynamic parallelism) are not supported"),
                false => error.to_string(),
            };
            let what = match line {
                Some(line) => super::message(Some(line), "error   ", &why),
                None => format!("nvlink error   : {why}"),
            };
            log::misuse(&what);
            options.error(&what);
            match error {
                LinkError::Nothing => Status::INVALID_IMAGE,
                LinkError::Undefined { .. } if is_launch => Status::NOT_SUPPORTED,
                LinkError::Undefined { symbol, .. } => {
                    let mut unusable = unusable.iter();
                    let code = unusable.find(|(_, image)| image.lacks(target, &symbol));
                    let why =
                        code.and_then(|(name, image)| image.linkable(target, &format!("`{name}`")).err());
                    why.unwrap_or(Status::INVALID_PTX)
                }
                LinkError::DefinedTwice { .. } => Status::INVALID_PTX,
            }
        })?;
        let is_limited = options.max_registers.is_some_and(|max| limit_registers(&mut module, max));
        if is_alone
            && !is_limited
            && let [text] = &texts[..]
        {
            return Ok(text.text.clone());
        }
        let text = warpwright_ptx::print(&module).into_bytes();
        // Each input is right by itself; that their calls fit one another's definitions shows together.
        super::check(&text, target, options)?;
        Ok(text)
    }
}

/// Writes the option's limit of registers into kernels that say nothing of registers or of the size of their blocks:
/// those that do keep their own. Whether there are others.
fn limit_registers(module: &mut Module, max: u32) -> bool {
    use FunctionDirective::{MaxNCtaPerSm, MaxNReg, MaxNtid, MinNCtaPerSm, ReqNtid};
    let mut is_limited = false;
    for item in &mut module.items {
        let ItemKind::Function(function) = &mut item.kind else { continue };
        let bounds = |directive: &FunctionDirective| {
            matches!(directive, MaxNCtaPerSm(_) | MaxNReg(_) | MaxNtid(_) | MinNCtaPerSm(_) | ReqNtid(_))
        };
        let is_defined = function.kind == FunctionKind::Entry && function.body.is_some();
        if is_defined && !function.directives.iter().any(bounds) {
            function.directives.push(MaxNReg(max));
            is_limited = true;
        }
    }
    is_limited
}

fn device_runtime() -> Input {
    // A test reads the text, so that it is no empty module.
    let module = warpwright_ptx::parse(DEVICE_RUNTIME);
    let module = module.unwrap_or_else(|_| Module::new(warpwright_ptx::ir::Version::OLDEST, Arch::sm(70)));
    Input { name: "libcudadevrt".to_string(), module }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_launches_from_kernels_is_known_by_its_name() {
        for (symbol, expected) in [
            ("__cudaCDP2GetParameterBufferV2", true),
            ("__cudaCDP2LaunchDeviceV2", true),
            ("__cudaCDP2LaunchDevice", true),
            ("cudaGetParameterBuffer", true),
            ("cudaGetParameterBufferV2", true),
            ("cudaLaunchDevice", true),
            ("cudaLaunchDeviceV2_ptsz", true),
            ("cudaGraphLaunch", true),
            ("cudaCGGetIntrinsicHandle", false),
            ("LaunchDevice", false),
            ("myGetParameterBuffer", false),
        ] {
            assert_eq!(launches(symbol), expected, "{symbol}");
        }
    }
}
