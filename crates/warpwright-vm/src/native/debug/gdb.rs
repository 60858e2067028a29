//! Names of functions in `gdb`, and the way out of them: the interface for compilers at run time that it documents.
//!
//! `gdb` stops where `__jit_debug_register_code` is called, and reads from `__jit_debug_descriptor` where an object in
//! memory is, or no longer is. The object has no code: it says where a function is, what it is called, and what the
//! function has put onto the stack.
#![expect(unsafe_code, reason = "symbols that gdb knows, and a linked list as it reads them")]

use super::Function;
use std::arch::global_asm;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

// Both are weak: a program may have another such compiler, whose they may be.
global_asm!(
    ".pushsection .text.__jit_debug_register_code, \"ax\", @progbits",
    ".weak __jit_debug_register_code",
    ".type __jit_debug_register_code, @function",
    "__jit_debug_register_code: ret",
    ".size __jit_debug_register_code, 1",
    ".popsection",
    ".pushsection .data.__jit_debug_descriptor, \"aw\", @progbits",
    ".weak __jit_debug_descriptor",
    ".type __jit_debug_descriptor, @object",
    ".balign 8",
    "__jit_debug_descriptor: .long 1, 0",
    ".quad 0, 0",
    ".size __jit_debug_descriptor, 24",
    ".popsection",
);

unsafe extern "C" {
    fn __jit_debug_register_code();
    static mut __jit_debug_descriptor: Descriptor;
}

#[repr(C)]
struct Descriptor {
    version: u32,
    action: u32,
    relevant: *mut Entry,
    first: *mut Entry,
}

const REGISTER: u32 = 1;
const UNREGISTER: u32 = 2;

#[derive(Debug)]
#[repr(C)]
struct Entry {
    next: *mut Entry,
    previous: *mut Entry,
    file: *const c_void,
    bytes: u64,
}

/// Who changes the list.
static CHANGES: Mutex<()> = Mutex::new(());

/// An object that `gdb` knows, until this is dropped.
#[derive(Debug)]
pub(super) struct Object {
    entry: *mut Entry,
    _file: Box<[u8]>,
}

// SAFETY: the entry is its own, and the list is changed by one thread at a time.
unsafe impl Send for Object {}
// SAFETY: nothing is done with a shared one.
unsafe impl Sync for Object {}

impl Object {
    pub(super) fn new(function: &Function<'_>) -> Object {
        let pushes = PUSHED.map(|(_, push)| push).concat();
        debug_assert!(function.bytes.starts_with(&pushes), "what is saved is not what gdb is told");
        let file =
            elf(function.name(), function.start as u64, function.bytes.len() as u64).into_boxed_slice();
        let entry = Entry {
            next: null_mut(),
            previous: null_mut(),
            file: file.as_ptr().cast(),
            bytes: file.len() as u64,
        };
        let entry = Box::into_raw(Box::new(entry));
        change(|descriptor| {
            // SAFETY: entries of the list are there until they are taken out of it, and this one is new.
            unsafe {
                (*entry).next = descriptor.first;
                if let Some(next) = descriptor.first.as_mut() {
                    next.previous = entry;
                }
            }
            (descriptor.first, descriptor.relevant, descriptor.action) = (entry, entry, REGISTER);
        });
        Object { entry, _file: file }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let entry = self.entry;
        change(|descriptor| {
            // SAFETY: this entry and its neighbours are in the list.
            unsafe {
                let Entry { next, previous, .. } = *entry;
                match previous.as_mut() {
                    Some(previous) => previous.next = next,
                    None => descriptor.first = next,
                }
                if let Some(next) = next.as_mut() {
                    next.previous = previous;
                }
            }
            (descriptor.relevant, descriptor.action) = (entry, UNREGISTER);
        });
        // SAFETY: it came from a box, and nobody has it any more.
        drop(unsafe { Box::from_raw(entry) });
    }
}

/// Changes the list, and tells `gdb`.
fn change(how: impl FnOnce(&mut Descriptor)) {
    let _changes = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the descriptor is there as long as the program, and nobody else of this crate has it.
    unsafe {
        let descriptor = &raw mut __jit_debug_descriptor;
        how(&mut *descriptor);
        __jit_debug_register_code();
        (*descriptor).relevant = null_mut();
        (*descriptor).action = 0;
    }
}

/// What functions push, in this order: the register's number in DWARF, and the bytes of the instruction.
const PUSHED: [(u8, &[u8]); 6] = [
    (3, &[0x53]),
    (6, &[0x55]),
    (12, &[0x41, 0x54]),
    (13, &[0x41, 0x55]),
    (14, &[0x41, 0x56]),
    (15, &[0x41, 0x57]),
];

/// Where the caller's frame begins, and where its registers are, for code from an address on.
fn debug_frame(start: u64, bytes: u64) -> Vec<u8> {
    let mut out = Vec::new();
    // An entry is a multiple of eight bytes long, with its length.
    let finish = |out: &mut Vec<u8>, entry: &[&[u8]]| {
        let entry = entry.concat();
        let length = (entry.len() + 4).next_multiple_of(8);
        out.extend((length as u32 - 4).to_le_bytes());
        out.extend(&entry);
        out.resize(out.len() + length - 4 - entry.len(), 0);
    };
    // Version 1, nothing added, steps of 1 and -8, and the return address is number 16. It is what was pushed last.
    finish(&mut out, &[&u32::MAX.to_le_bytes(), &[1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x80 | 16, 1]]);
    let mut pushes = Vec::new();
    for ((register, push), number) in PUSHED.into_iter().zip(2..) {
        pushes.extend([0x40 | push.len() as u8, 0x0e, 8 * number, 0x80 | register, number]);
    }
    finish(&mut out, &[&[0; 4], &start.to_le_bytes(), &bytes.to_le_bytes(), &pushes]);
    out
}

/// An object in the format ELF that says that a function is at an address.
fn elf(name: &str, start: u64, bytes: u64) -> Vec<u8> {
    const SECTIONS: &[u8] = b"\0.text\0.debug_frame\0.symtab\0.strtab\0";
    const HEADER: usize = 64;
    let strings = [SECTIONS, name.as_bytes(), b"\0"].concat();
    let place =
        |name: &[u8]| SECTIONS.windows(name.len()).position(|window| window == name).unwrap_or(0) as u32;
    let mut symbols = vec![0; 24];
    symbols.extend((SECTIONS.len() as u32).to_le_bytes());
    // A global function, of the first section.
    symbols.extend([0x12, 0, 1, 0]);
    symbols.extend([start, bytes].map(u64::to_le_bytes).concat());
    let frames = debug_frame(start, bytes);
    let (frames_at, symbols_at) = (HEADER, HEADER + frames.len());
    let strings_at = symbols_at + symbols.len();
    let sections_at = (strings_at + strings.len()).next_multiple_of(8);
    // Type, flags, address, place in the file, size, size of an entry. The first section is nothing.
    let sections: [(&[u8], [u64; 6]); 4] = [
        (b".text\0", [8, 6, start, HEADER as u64, bytes, 0]),
        (b".debug_frame\0", [1, 0, 0, frames_at as u64, frames.len() as u64, 0]),
        (b".symtab\0", [2, 0, 0, symbols_at as u64, symbols.len() as u64, 24]),
        (b".strtab\0", [3, 0, 0, strings_at as u64, strings.len() as u64, 0]),
    ];
    let mut out = b"\x7fELF\x02\x01\x01".to_vec();
    out.resize(16, 0);
    // A program for x86-64.
    out.extend([2, 0, 62, 0]);
    out.extend(1u32.to_le_bytes());
    out.extend([0, 0, sections_at as u64].map(u64::to_le_bytes).concat());
    out.extend(0u32.to_le_bytes());
    out.extend([HEADER as u16, 0, 0, 64, 1 + sections.len() as u16, 4].map(u16::to_le_bytes).concat());
    for part in [frames, symbols, strings] {
        out.extend(part);
    }
    out.resize(sections_at + 64, 0);
    for (name, [kind, flags, address, offset, size, entry]) in sections {
        out.extend([place(name), kind as u32].map(u32::to_le_bytes).concat());
        out.extend([flags, address, offset, size].map(u64::to_le_bytes).concat());
        // The strings of symbols, and how many are local; alignment.
        out.extend(if entry == 0 { [0, 0] } else { [4u32, 1] }.map(u32::to_le_bytes).concat());
        out.extend([1, entry].map(u64::to_le_bytes).concat());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Code, FunctionCode};
    use crate::native::{Accesses, Variant};
    use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

    fn code(name: &str) -> Code {
        let function = FunctionCode { name: name.into(), ..FunctionCode::default() };
        Code { functions: vec![function], ..Code::default() }
    }

    fn object(code: &Code, bytes: &[u8]) -> Object {
        let variant = Variant { full: true, accesses: Accesses::Plain, counted: false };
        let (start, marks) = (bytes.as_ptr(), Vec::new());
        Object::new(&Function { code, number: 0, variant, start, bytes, marks })
    }

    #[test]
    fn an_object_says_where_a_function_is_and_what_it_is_called() {
        let bytes = elf("axpy", 0x7f12_3456_7000, 1234);
        let file = object::File::parse(&*bytes).expect("it is an object");
        let symbols: Vec<_> = file.symbols().collect();
        assert_eq!(symbols.len(), 1);
        let symbol = &symbols[0];
        assert_eq!((symbol.name(), symbol.address(), symbol.size()), (Ok("axpy"), 0x7f12_3456_7000, 1234));
        assert_eq!((symbol.kind(), symbol.is_global()), (object::SymbolKind::Text, true));
        let section =
            file.section_by_index(symbol.section_index().expect("it is in one")).expect("there is one");
        assert_eq!(
            (section.name(), section.address(), section.size()),
            (Ok(".text"), 0x7f12_3456_7000, 1234)
        );
        let names: Vec<_> = file.sections().filter_map(|section| section.name().ok()).collect();
        assert_eq!(names, [".text", ".debug_frame", ".symtab", ".strtab"]);
    }

    /// By the rules of DWARF, of which it needs three: behind the pushes, the frame of the caller is 56 bytes up.
    #[test]
    fn an_object_says_where_the_frame_of_the_caller_is() {
        let bytes = elf("axpy", 0x7000, 1234);
        let file = object::File::parse(&*bytes).expect("it is an object");
        let frames = file.section_by_name(".debug_frame").expect("it is there").data().expect("it has data");
        let word = |at: usize| u32::from_le_bytes(frames[at..at + 4].try_into().expect("four bytes"));
        let common = 4 + word(0) as usize;
        assert_eq!(frames.len(), common + 4 + word(common) as usize);
        assert_eq!(
            (word(4), word(common + 4), word(common + 8), word(common + 16)),
            (u32::MAX, 0, 0x7000, 1234)
        );
        let (mut at, mut place, mut frame, mut saved) = (common + 24, 0, 8, Vec::new());
        while at < frames.len() && frames[at] != 0 {
            match (frames[at] >> 6, frames[at] & 0x3f) {
                (1, bytes) => place += bytes,
                (0, 0x0e) => {
                    at += 1;
                    frame = frames[at];
                }
                (2, register) => {
                    at += 1;
                    saved.push((place, register, frame - 8 * frames[at]));
                }
                other => panic!("{other:?}"),
            }
            at += 1;
        }
        // Each register is where the stack ends when it has been pushed.
        assert_eq!(saved, [(1, 3, 0), (2, 6, 0), (4, 12, 0), (6, 13, 0), (8, 14, 0), (10, 15, 0)]);
        assert_eq!(frame, 56);
    }

    #[test]
    fn the_list_has_the_objects_that_are_there() {
        let (code, bytes) = (code("k"), PUSHED.map(|(_, push)| push).concat());
        let known = || {
            let _changes = CHANGES.lock().expect("no test fails with it");
            let (mut starts, mut previous) = (Vec::new(), null_mut());
            // SAFETY: nobody changes the list, whose objects have their entries.
            unsafe {
                let mut entry = __jit_debug_descriptor.first;
                while let Some(this) = entry.as_ref() {
                    assert_eq!(this.previous, previous);
                    starts.push((this.file, this.bytes));
                    (previous, entry) = (entry, this.next);
                }
            }
            starts
        };
        let [first, second, third] = [(); 3].map(|()| object(&code, &bytes));
        let file = |object: &Object| (object._file.as_ptr().cast(), object._file.len() as u64);
        assert_eq!(known(), [file(&third), file(&second), file(&first)]);
        drop(second);
        assert_eq!(known(), [file(&third), file(&first)]);
        drop(third);
        assert_eq!(known(), [file(&first)]);
        drop(first);
        assert_eq!(known(), []);
    }
}
