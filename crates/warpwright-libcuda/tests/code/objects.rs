//! Objects and archives in the linker, in files as `nvcc -dc` and `ar` write them.

use crate::links::{KERNEL, add, complete, create, returns};
use crate::*;

type Kind = CUjitInputType;

/// Machines of ELF files.
const X86_64: u16 = 62;
const CUDA: u16 = 190;

/// A fat binary with plain entries: PTX (1) or machine code (2) for an architecture.
fn fat(entries: &[(u16, u32, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, sm, payload) in entries {
        let padded = payload.len().next_multiple_of(8);
        let mut entry = vec![0; 64 + padded];
        entry[..2].copy_from_slice(&kind.to_le_bytes());
        entry[4] = 64;
        entry[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
        entry[28..32].copy_from_slice(&sm.to_le_bytes());
        entry[64..64 + payload.len()].copy_from_slice(payload);
        body.extend(entry);
    }
    let header = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    [&header[..], &(body.len() as u64).to_le_bytes(), &body].concat()
}

/// An object of these sections, each with a name.
fn object(machine: u16, sections: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut names, mut data, mut headers) = (vec![0u8], Vec::new(), vec![0u8; 64]);
    let mut section = |name: &str, kind: u32, bytes: &[u8], names: &mut Vec<u8>| {
        let mut header = [0; 64];
        header[..4].copy_from_slice(&(names.len() as u32).to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[24..32].copy_from_slice(&(64 + data.len() as u64).to_le_bytes());
        names.extend([name.as_bytes(), b"\0"].concat());
        // The section with the names holds its own.
        let bytes = if name == ".shstrtab" { &names[..] } else { bytes };
        header[32..40].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        data.extend(bytes);
        data.resize(data.len().next_multiple_of(8), 0);
        headers.extend(header);
    };
    for (name, bytes) in sections {
        section(name, 1, bytes, &mut names);
    }
    section(".shstrtab", 3, &[], &mut names);
    let mut elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0".to_vec();
    elf.extend(machine.to_le_bytes());
    elf.extend([1, 0, 0, 0]);
    elf.extend([0; 16]);
    elf.extend((64 + data.len() as u64).to_le_bytes());
    let count = sections.len() as u16 + 2;
    let sizes = [0, 0, 64, 0, 0, 64, count, count - 1];
    elf.extend(sizes.iter().flat_map(|size: &u16| size.to_le_bytes()));
    [elf, data, headers].concat()
}

/// An archive of these members.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, data) in members {
        let name = format!("{name}/");
        archive.extend(format!("{name:<16}0           0     0     100644  {:<10}`\n", data.len()).bytes());
        archive.extend(*data);
        archive.resize(archive.len().next_multiple_of(2), b'\n');
    }
    archive
}

fn module(text: &str) -> String {
    format!(".version 8.0\n.target sm_80\n.address_size 64\n{text}\n\0")
}

/// A relocatable object of a text.
fn relocatable(text: &str) -> Vec<u8> {
    object(X86_64, &[(".text", b"host"), ("__nv_relfatbin", &fat(&[(1, 80, module(text).as_bytes())]))])
}

/// A function `f` that returns a number.
fn f(value: u32) -> String {
    format!(".global .u32 x = {value};\n{}", returns(".visible", "f", "x"))
}

/// What a kernel of inputs that are linked stores, or the status of what refuses them.
fn run(kernel: &str, inputs: &[(Kind, Vec<u8>)]) -> Result<u32> {
    let link = create(&[])?;
    let added = inputs.iter().try_for_each(|(kind, data)| add(link, *kind, data).into_result());
    let linked = added.and_then(|()| complete(link)).and_then(|(image, _)| {
        let image = input(image);
        out(|module| call!(cuModuleLoadData(module, image)))
    });
    ok!(cuLinkDestroy(link));
    let word = words(1);
    assert_eq!(launch(function(linked?, kernel)?, CUstream::NULL, &[word]), OK);
    Ok(read(word, 1)[0])
}

#[test]
fn objects_and_archives_give_their_ptx() {
    let _context = Ctx::new();
    let machine_code = |name: &str| fat(&[(2, 80, name.as_bytes())]);
    let section = |name: &str, data: &[u8]| object(X86_64, &[(name, data)]);
    let ptx = |sm: u32, text: &str| (1, sm, module(text).into_bytes());
    let kernel = relocatable(KERNEL);
    let other = KERNEL.replace(" k(", " other(");
    let missing = KERNEL.replace("f()", "g()").replace(" f,", " g,").replace(" k(", " m(");
    let several =
        [fat(&[(1, 80, module(KERNEL).as_bytes())]), vec![0; 24], fat(&[(1, 80, module(&f(4)).as_bytes())])];
    let best = [ptx(75, &f(1)), ptx(90, &f(5)), ptx(80, &f(2)), ptx(100, &f(3))];
    let best: Vec<_> = best.iter().map(|(kind, sm, text)| (*kind, *sm, &text[..])).collect();
    let chain = returns(".visible", "f", "shared");
    let chain = format!(".extern .global .u32 shared;\n{chain}");
    let no_binary = Err(Status::NO_BINARY_FOR_GPU);
    let invalid = Err(Status::INVALID_IMAGE);
    let object_of = |object: Vec<u8>| (Kind::OBJECT, object);
    let library = |members: &[(&str, &[u8])]| (Kind::LIBRARY, archive(members));
    let k = || object_of(kernel.clone());
    let cases = [
        ("objects", vec![k(), object_of(relocatable(&f(3)))], Ok(3)),
        ("in the other order", vec![object_of(relocatable(&f(3))), k()], Ok(3)),
        ("with a text", vec![k(), (Kind::PTX, module(&f(6)).into_bytes())], Ok(6)),
        ("several containers", vec![object_of(section("__nv_relfatbin", &several.concat()))], Ok(4)),
        ("the best PTX", vec![k(), object_of(section("__nv_relfatbin", &fat(&best)))], Ok(5)),
        ("a program by itself", vec![object_of(section(".nv_fatbin", &several.concat()))], Ok(4)),
        (
            "what is linked already, beside what is to be linked",
            vec![
                k(),
                object_of(object(
                    X86_64,
                    &[
                        (".nv_fatbin", &fat(&[(1, 80, module(&f(1)).as_bytes())])),
                        ("__nv_relfatbin", &fat(&[(1, 80, module(&f(7)).as_bytes())])),
                    ],
                )),
            ],
            Ok(7),
        ),
        (
            "code of the host",
            vec![k(), object_of(section(".text", b"x")), object_of(relocatable(&f(8)))],
            Ok(8),
        ),
        ("an archive", vec![k(), library(&[("f.o", &relocatable(&f(9)))])], Ok(9)),
        ("an archive before", vec![library(&[("f.o", &relocatable(&f(9)))]), k()], Ok(9)),
        ("an archive alone", vec![library(&[("k.o", &kernel), ("f.o", &relocatable(&f(2)))])], Ok(2)),
        (
            "the first member that has it",
            vec![k(), library(&[("a.o", &relocatable(&f(1))), ("b.o", &relocatable(&f(2)))])],
            Ok(1),
        ),
        (
            "what is there already is not taken",
            vec![
                k(),
                object_of(relocatable(&f(4))),
                library(&[("f.o", &relocatable(&f(1))), ("k.o", &kernel)]),
            ],
            Ok(4),
        ),
        (
            "what a member needs",
            vec![
                k(),
                library(&[("x.o", &relocatable(".visible .global .u32 shared = 11;"))]),
                library(&[("f.o", &relocatable(&chain))]),
            ],
            Ok(11),
        ),
        (
            "what is not needed may lack something",
            vec![
                k(),
                library(&[
                    ("notes", b"text"),
                    ("g.o", &relocatable(&chain.replace(" f(", " g("))),
                    ("f.o", &relocatable(&f(3))),
                    ("code.o", &section("__nv_relfatbin", &machine_code("h"))),
                ]),
            ],
            Ok(3),
        ),
        (
            "a kernel that lacks something",
            vec![k(), library(&[("f.o", &relocatable(&f(3))), ("m.o", &relocatable(&missing))])],
            Err(Status::INVALID_PTX),
        ),
        ("nothing has it", vec![k(), library(&[("k.o", &relocatable(&other))])], Err(Status::INVALID_PTX)),
        ("machine code", vec![object_of(section("__nv_relfatbin", &machine_code("f")))], no_binary),
        (
            "machine code in a member that is needed",
            vec![k(), library(&[("f.o", &section("__nv_relfatbin", &machine_code("f")))])],
            no_binary,
        ),
        ("a cubin", vec![object_of(object(CUDA, &[(".text.k", b"code")]))], no_binary),
        (
            "a cubin in an archive",
            vec![library(&[("k.cubin", &object(CUDA, &[(".text.k", b"code")]))])],
            no_binary,
        ),
        ("no object", vec![object_of(module(KERNEL).into_bytes())], invalid),
        ("no archive", vec![(Kind::LIBRARY, kernel.clone())], invalid),
        ("a thin archive", vec![(Kind::LIBRARY, b"!<thin>\n".to_vec())], invalid),
        ("no code", vec![object_of(section(".text", b"x")), library(&[])], invalid),
        ("no container", vec![object_of(section("__nv_relfatbin", b"\0\0rubbish"))], invalid),
    ];
    for (what, inputs, expected) in cases {
        assert_eq!(run("k", &inputs), expected, "{what}");
    }
    let with_kernel = [k(), library(&[("f.o", &relocatable(&f(5))), ("other.o", &relocatable(&other))])];
    assert_eq!(run("other", &with_kernel), Ok(5), "the host finds the kernels of an archive");
}

/// The kinds of inputs of nvJitLink: it tells objects and archives by their content, where it is to.
#[test]
fn objects_and_archives_are_inputs_of_nvjitlink() {
    let _context = Ctx::new();
    let (kernel, archive) = (relocatable(KERNEL), archive(&[("f.o", &relocatable(&f(12)))]));
    let options = [text("-arch=sm_90")];
    let options = [chars(&options[0])];
    for kinds in [[5, 6], [10, 10], [10, 6]] {
        let mut link = 0;
        let created = call!(warpwrightJitLinkCreate(output(&mut link), 1, input(options.as_ptr())));
        assert_eq!(created, JitLinkResult::SUCCESS);
        for (kind, data) in kinds.into_iter().zip([&kernel, &archive]) {
            let at = input(data.as_ptr());
            let added = call!(warpwrightJitLinkAddData(link, kind, at, data.len(), null()));
            assert_eq!(added, JitLinkResult::SUCCESS, "{kind}");
        }
        let mut size = 0;
        assert_eq!(
            call!(warpwrightJitLinkGetLinkedCubinSize(link, output(&mut size))),
            JitLinkResult::SUCCESS
        );
        let mut image = vec![0u8; size];
        call!(warpwrightJitLinkGetLinkedCubin(link, output(image.as_mut_ptr())));
        let module = out(|module| call!(cuModuleLoadData(module, input(image.as_ptr())))).unwrap();
        let word = words(1);
        assert_eq!(launch(function(module, "k").unwrap(), CUstream::NULL, &[word]), OK);
        assert_eq!(read(word, 1), [12], "{kinds:?}");
        call!(warpwrightJitLinkDestroy(output(&mut link)));
    }
}

/// Damage is refused, or has hit what says nothing: no panic, which would be another status.
#[test]
fn damaged_objects_and_archives_are_refused() {
    let _context = Ctx::new();
    let object = relocatable(&f(1));
    let archive = archive(&[("a.o", &object), ("b.o", &relocatable(&f(2)))]);
    for (kind, whole) in [(Kind::OBJECT, &object), (Kind::LIBRARY, &archive)] {
        let link = create(&[]).unwrap();
        let refused = |data: &[u8]| {
            let status = add(link, kind, data);
            let fair = [
                OK,
                Status::INVALID_IMAGE,
                Status::INVALID_PTX,
                Status::UNSUPPORTED_PTX_VERSION,
                Status::NO_BINARY_FOR_GPU,
            ];
            assert!(fair.contains(&status), "{status:?}");
            status != OK
        };
        // The last bytes are the header of the names' section, whose end says nothing.
        let cut = (0..whole.len() - 24).step_by(3).filter(|length| !refused(&whole[..*length])).count();
        assert_eq!(cut, 0, "{kind:?}");
        for at in 0..whole.len() {
            for change in [0xff, 0x80, 1] {
                let mut damaged = whole.clone();
                damaged[at] ^= change;
                refused(&damaged);
            }
        }
        ok!(cuLinkDestroy(link));
    }
}
