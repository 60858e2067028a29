//! Images on disk.

use super::*;
use sha2::{Digest, Sha256};
use std::process::Command;
use warpwright_testing::device;

/// Where a process that a test has started finds the cache of the one that started it.
const INHERITED: &str = "WARPWRIGHT_TEST_INHERITED_CACHE";

/// Bytes before the image in a file of the cache, and those of them that are its checksum.
const HEADER: usize = 88;
const CHECKSUM: usize = 56;

#[test]
fn a_module_is_compiled_once() -> Result<()> {
    let scratch = Scratch::new("once");
    let first = open(scratch.cache());
    adds(&first.load_ptx(ADD)?)?;
    expect(&first, 1, 0);
    let image = scratch.image().map(|path| read(&path));

    adds(&first.load_ptx(ADD)?)?;
    expect(&first, 1, 1);
    let second = open(scratch.cache());
    adds(&second.load_ptx(ADD)?)?;
    expect(&second, 0, 1);
    assert_eq!(scratch.image().map(|path| read(&path)), image);

    adds(&second.load_ptx(&ADD.replace("own[40]", "own[48]"))?)?;
    expect(&second, 1, 1);

    let without = open(CubinCache::off());
    adds(&without.load_ptx(ADD)?)?;
    adds(&without.load_ptx(ADD)?)?;
    expect(&without, 2, 0);
    Ok(())
}

#[test]
fn images_with_tables_of_lines_are_others() -> Result<()> {
    let scratch = Scratch::new("lines");
    let images = match test_device() {
        TestDevice::Vm => 0,
        TestDevice::Cuda => 2,
    };
    for (compiled, cached) in [(1, 0), (0, 1)] {
        for line_info in [false, true] {
            let device = open_with(scratch.cache(), line_info);
            adds(&device.load_ptx(ADD)?)?;
            expect(&device, compiled, cached);
        }
        assert_eq!(scratch.files(".image").len(), images);
    }
    Ok(())
}

#[test]
fn another_process_finds_what_this_one_has_compiled() -> Result<()> {
    if let Some(directory) = std::env::var_os(INHERITED) {
        let device = open(CubinCache::at(directory));
        adds(&device.load_ptx(ADD)?)?;
        expect(&device, 0, 1);
        return Ok(());
    }
    let scratch = Scratch::new("processes");
    let device = open(scratch.cache());
    adds(&device.load_ptx(ADD)?)?;
    expect(&device, 1, 0);
    let name = "cached::another_process_finds_what_this_one_has_compiled";
    let own = std::env::current_exe().expect("this program");
    let ran = Command::new(own).args([name, "--exact"]).env(INHERITED, &scratch.0).status();
    assert!(ran.expect("it can be started").success());
    Ok(())
}

#[test]
fn threads_may_load_the_same_module_at_once() -> Result<()> {
    let scratch = Scratch::new("threads");
    let devices = [open(scratch.cache()), open(scratch.cache())];
    std::thread::scope(|scope| {
        for device in devices.iter().cycle().take(8) {
            scope.spawn(move || {
                for size in [40, 48, 56] {
                    let module = device.load_ptx(&ADD.replace("own[40]", &format!("own[{size}]")));
                    adds(&module.expect("it loads")).expect("it runs");
                }
            });
        }
    });
    let statistics = devices.iter().map(|device| device.statistics());
    let loads: u64 = statistics.map(|done| done.modules_compiled + done.modules_cached).sum();
    let expected = match test_device() {
        TestDevice::Vm => (0, 0),
        TestDevice::Cuda => (8 * 3, 3),
    };
    // Nothing but images is left.
    assert_eq!((loads, scratch.files("").len()), expected);
    Ok(())
}

/// What becomes of a file of the cache.
type Damage = fn(Vec<u8>) -> Vec<u8>;

#[test]
fn damaged_files_are_compiled_again() -> Result<()> {
    let scratch = Scratch::new("damaged");
    let first = open(scratch.cache());
    adds(&first.load_ptx(ADD)?)?;
    let good = scratch.image().map(|path| read(&path));
    let damages: [(&str, Damage); 6] = [
        ("emptied", |_| Vec::new()),
        ("cut off", |bytes| bytes[..bytes.len() / 2].to_vec()),
        ("longer", |bytes| [bytes, vec![0]].concat()),
        ("a byte of the header", |bytes| flipped(bytes, 30)),
        ("a byte of the image", |bytes| flipped(bytes, HEADER + 20)),
        // As another driver's may be: whole, and not what the driver takes.
        ("refused by the driver", |mut bytes| {
            bytes.truncate(HEADER);
            bytes.extend(b"\x7fELF and nothing more");
            let image = bytes.len() - HEADER;
            bytes[16..24].copy_from_slice(&(image as u64).to_le_bytes());
            let checksum = Sha256::digest(&bytes[HEADER..]);
            bytes[CHECKSUM..HEADER].copy_from_slice(&checksum);
            bytes
        }),
    ];
    for (what, damage) in damages {
        if let Some(path) = scratch.image() {
            fs::write(&path, damage(read(&path))).expect("writable");
        }
        let device = open(scratch.cache());
        adds(&device.load_ptx(ADD)?)?;
        expect(&device, 1, 0);
        assert!(scratch.image().map(|path| read(&path)) == good, "{what}: as it was");
        adds(&device.load_ptx(ADD)?)?;
        expect(&device, 1, 1);
    }
    Ok(())
}

fn flipped(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
    bytes[at] ^= 0x10;
    bytes
}

#[test]
fn a_directory_that_cannot_be_made_is_no_cache() -> Result<()> {
    let scratch = Scratch::new("unwritable");
    fs::create_dir_all(&scratch.0).expect("writable");
    let file = scratch.0.join("file");
    fs::write(&file, "no directory").expect("writable");
    let device = open(CubinCache::at(file.join("cache")));
    adds(&device.load_ptx(ADD)?)?;
    adds(&device.load_ptx(ADD)?)?;
    expect(&device, 2, 0);
    Ok(())
}

#[test]
fn the_compiler_says_what_a_kernel_takes() -> Result<()> {
    let module = device(VmConfig::default()).load_ptx(ADD)?;
    let add = module.load_function("add")?;
    let attributes = add.attributes();
    assert_eq!((attributes.max_threads_per_block, attributes.required_block), (64, None));
    assert_eq!(attributes.registers.is_some(), test_device() == TestDevice::Cuda);
    assert!(attributes.registers.is_none_or(|registers| (1..=255).contains(&registers)));
    // What nothing uses a compiler may leave out.
    assert!(attributes.local_bytes.is_some_and(|bytes| bytes <= 40), "{:?}", attributes.local_bytes);
    assert!(attributes.static_shared >= 256, "{}", attributes.static_shared);
    assert!(add.occupancy(64, 0) >= 1);
    assert_eq!(add.occupancy(65, 0), 0, "a block that the kernel does not have");
    assert_eq!(add.occupancy(0, 0), 0);
    Ok(())
}
