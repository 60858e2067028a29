//! The cache, held to what it promises: what comes out is what went in, whatever happens to the files.

use super::*;
use std::collections::HashSet;
use std::sync::Barrier;
use std::time::Duration;
use warpwright_ptx::ir::Arch;

/// Bytes of the header of a file.
const HEADER: u64 = 88;

/// A directory that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("warpwright-cache-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        Scratch(directory)
    }

    fn cache(&self, max_bytes: u64) -> Cache {
        let config = CubinCache { max_bytes, ..CubinCache::at(&self.0) };
        Cache::open(&config).expect("a directory and room")
    }

    /// Names of its files, sorted.
    fn names(&self) -> Vec<String> {
        let entries =
            fs::read_dir(&self.0).map(|entries| entries.flatten().collect()).unwrap_or_else(|_| vec![]);
        let mut names: Vec<_> =
            entries.iter().map(|entry| entry.file_name().into_string().expect("ASCII")).collect();
        names.sort();
        names
    }

    fn bytes(&self) -> u64 {
        self.names().iter().map(|name| fs::metadata(self.0.join(name)).expect("it is there").len()).sum()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn platform() -> Platform<'static> {
    Platform { driver: 12080, build: "", device: "a device", arch: Arch::sm(90), options: "" }
}

fn key(ptx: &str) -> Key {
    Key::new(ptx, &platform())
}

/// Bytes that look like any.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

#[test]
fn what_was_put_is_got_by_its_key_alone() {
    let scratch = Scratch::new("get");
    let cache = scratch.cache(1 << 20);
    assert_eq!(cache.get(&key("a")), None);
    for (ptx, image) in [("a", noise(1, 1000)), ("b", noise(2, 1)), ("c", Vec::new())] {
        cache.put(&key(ptx), &image);
        assert_eq!(cache.get(&key(ptx)).as_ref(), Some(&image), "{ptx}");
        assert_eq!(scratch.cache(1 << 20).get(&key(ptx)), Some(image), "another process finds it: {ptx}");
    }
    cache.put(&key("a"), &noise(3, 50));
    assert_eq!(cache.get(&key("a")), Some(noise(3, 50)), "the last one counts");
    cache.remove(&key("a"));
    assert_eq!(cache.get(&key("a")), None);
    assert_eq!(cache.get(&key("b")), Some(noise(2, 1)), "others stay");
}

#[test]
fn a_key_is_all_that_an_image_depends_on() {
    let base = platform();
    let keys = [
        Key::new("ptx", &base),
        Key::new("ptx ", &base),
        Key::new("ptx", &Platform { driver: 12090, ..base.clone() }),
        Key::new("ptx", &Platform { build: "570.86", ..base.clone() }),
        Key::new("ptx", &Platform { device: "another device", ..base.clone() }),
        Key::new("ptx", &Platform { arch: Arch::specific(90), ..base.clone() }),
        Key::new("ptx", &Platform { options: "-O1", ..base.clone() }),
        // What moves from one field to the next is another key too.
        Key::new("ptxa", &Platform { device: " device", ..base.clone() }),
        Key::new("pt", &Platform { build: "x", ..base.clone() }),
    ];
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len());
    assert_eq!(keys[0], Key::new("ptx", &base));
}

#[test]
fn a_change_of_any_byte_is_found_and_the_file_removed() {
    let scratch = Scratch::new("flip");
    let cache = scratch.cache(1 << 20);
    let (own, image) = (key("k"), noise(7, 300));
    cache.put(&own, &image);
    let path = cache.path(&own, IMAGE);
    let good = fs::read(&path).expect("it was written");
    assert_eq!(good.len() as u64, HEADER + 300);
    for at in 0..good.len() {
        for flip in [1u8, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            fs::write(&path, bad).expect("writable");
            assert_eq!(cache.get(&own), None, "byte {at}");
            assert!(!path.exists(), "byte {at}: removed");
        }
    }
    cache.put(&own, &image);
    assert_eq!(cache.get(&own), Some(image), "built again");
}

#[test]
fn what_is_cut_off_longer_or_of_something_else_is_found() {
    let scratch = Scratch::new("cut");
    let cache = scratch.cache(1 << 20);
    let (own, image) = (key("k"), noise(7, 300));
    cache.put(&own, &image);
    cache.put(&key("other"), &image);
    let path = cache.path(&own, IMAGE);
    let good = fs::read(&path).expect("it was written");
    let mut cases: Vec<Vec<u8>> = (0..good.len()).map(|len| good[..len].to_vec()).collect();
    cases.push([&good[..], b"\0"].concat());
    cases.push([&good[..], &good[..]].concat());
    cases.push(fs::read(cache.path(&key("other"), IMAGE)).expect("it was written"));
    cases.push(b"\x7fELF".repeat(100));
    cases.push(vec![0; good.len()]);
    cases.extend((0..200).map(|seed| noise(seed, seed as usize * 3)));
    for (number, case) in cases.into_iter().enumerate() {
        fs::write(&path, case).expect("writable");
        assert_eq!(cache.get(&own), None, "case {number}");
        assert!(!path.exists(), "case {number}: removed");
    }
    // A part that was changed, of any length anywhere.
    for seed in 0..2000u64 {
        let draw = noise(seed + 1, 16);
        let start = usize::from(u16::from_le_bytes([draw[0], draw[1]])) % good.len();
        let len = 1 + usize::from(u16::from_le_bytes([draw[2], draw[3]])) % (good.len() - start);
        let mut bad = good.clone();
        bad[start..start + len].copy_from_slice(&noise(seed + 5000, len));
        let same = bad == good;
        fs::write(&path, bad).expect("writable");
        assert_eq!(cache.get(&own), same.then(|| image.clone()), "seed {seed}: {len} bytes from {start} on");
    }
}

#[test]
fn the_least_recently_used_go_first() {
    let scratch = Scratch::new("evict");
    let one = HEADER + 912;
    let cache = scratch.cache(10 * one);
    let names: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    let long_ago = SystemTime::now() - Duration::from_secs(1000);
    for (age, name) in names.iter().enumerate() {
        cache.put(&key(name), &noise(age as u64, 912));
        let file = fs::File::open(cache.path(&key(name), IMAGE)).expect("it is there");
        file.set_modified(long_ago + Duration::from_secs(age as u64)).expect("its times can be set");
    }
    assert_eq!(scratch.bytes(), 10 * one, "they fit");
    assert!(cache.get(&key("0")).is_some(), "the oldest one is used");
    cache.put(&key("more"), &noise(99, 912));
    // A sixteenth below the bound: nine files.
    assert!(scratch.bytes() <= 10 * one - 10 * one / 16);
    let left = |name: &str| cache.path(&key(name), IMAGE).exists();
    let gone: Vec<_> = names.iter().filter(|name| !left(name)).collect();
    assert_eq!(gone, ["1", "2"], "the oldest that were not used");
    assert!(left("more"));
}

#[test]
fn the_bound_holds_whoever_writes() {
    let scratch = Scratch::new("bound");
    let max = 64 << 10;
    // As processes: each has an estimate of its own.
    let caches: Vec<Cache> = (0..4).map(|_| scratch.cache(max)).collect();
    for n in 0..400u64 {
        let bytes = 100 + (n as usize * 37) % 1900;
        caches[n as usize % 4].put(&key(&n.to_string()), &noise(n, bytes));
        // Each may not know of what the others have written of a part of the bound, and of one file.
        assert!(scratch.bytes() <= max + 4 * (max / 32 + HEADER + 2000), "after {n}: {}", scratch.bytes());
    }
    assert!(scratch.bytes() > max / 2, "and what fits is kept");
    caches[0].put(&key("large"), &noise(1, max as usize));
    assert_eq!(caches[0].get(&key("large")), None, "what never fits is not kept");
    assert!(scratch.bytes() > max / 2, "and evicts nothing");
}

#[test]
fn files_of_others_stay_and_what_was_abandoned_goes() {
    let scratch = Scratch::new("foreign");
    let cache = scratch.cache(4000);
    cache.put(&key("first"), &noise(1, 10));
    let old = SystemTime::now() - Duration::from_secs(7200);
    let foreign = ["notes.txt", "a-b-c.tmp.txt", "abc.image", ".tmp", "mine.tmp"];
    let abandoned = "1f-0-17a.tmp";
    let fresh = "1f-1-17b.tmp";
    for name in foreign.iter().chain([&abandoned, &fresh]) {
        fs::write(scratch.0.join(name), vec![0; 5000]).expect("writable");
        let age = if *name == fresh { SystemTime::now() } else { old };
        fs::File::open(scratch.0.join(name))
            .and_then(|file| file.set_modified(age))
            .expect("its times can be set");
    }
    fs::create_dir(scratch.0.join("0".repeat(64) + IMAGE)).expect("writable");
    for n in 0..20u64 {
        cache.put(&key(&n.to_string()), &noise(n, 500));
    }
    let names = scratch.names();
    assert!(foreign.iter().all(|name| names.contains(&(*name).to_owned())), "{names:?}");
    assert!(names.contains(&fresh.to_owned()), "it may still be written");
    assert!(!names.contains(&abandoned.to_owned()), "its process has died");
}

#[test]
fn threads_and_processes_share_a_directory() {
    let scratch = Scratch::new("share");
    let image = |n: u64| noise(n, 5000 + n as usize);
    let start = Barrier::new(8);
    std::thread::scope(|scope| {
        for writer in 0..8u64 {
            // Small enough that files go while others are read.
            let (cache, start) = (scratch.cache(40_000), &start);
            scope.spawn(move || {
                start.wait();
                for turn in 0..150u64 {
                    let n = (writer * 7 + turn) % 12;
                    let key = key(&n.to_string());
                    match cache.get(&key) {
                        Some(found) => assert!(found == image(n), "never half of a file, nor another one"),
                        None => cache.put(&key, &image(n)),
                    }
                    if turn % 40 == 39 {
                        cache.remove(&key);
                    }
                }
            });
        }
    });
    assert!(scratch.names().iter().all(|name| name.ends_with(IMAGE)), "no half-written file is left");
}

#[test]
fn without_a_directory_there_is_no_cache_and_no_error() {
    let scratch = Scratch::new("none");
    fs::create_dir_all(&scratch.0).expect("writable");
    // A file where the directory should be: nothing can be made below it, not even by a superuser.
    let file = scratch.0.join("file");
    fs::write(&file, "x").expect("writable");
    let cache = Cache::open(&CubinCache::at(file.join("cache"))).expect("a directory and room");
    cache.put(&key("a"), &noise(1, 10));
    assert_eq!(cache.get(&key("a")), None);
    assert_eq!(cache.keep_refused(&key("a"), "text"), None);
    // A directory where a file should be.
    let cache = scratch.cache(1 << 20);
    fs::create_dir_all(cache.path(&key("a"), IMAGE)).expect("writable");
    cache.put(&key("a"), &noise(1, 10));
    assert_eq!(cache.get(&key("a")), None);
    assert_eq!(scratch.names().len(), 2, "no half-written file is left");

    assert!(Cache::open(&CubinCache::off()).is_none());
    assert!(Cache::open(&CubinCache { max_bytes: 0, ..CubinCache::at(&scratch.0) }).is_none());
}

#[cfg(unix)]
#[test]
fn the_directory_is_its_owners() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("mode");
    let cache = Cache::open(&CubinCache::at(scratch.0.join("deep/er"))).expect("a directory and room");
    cache.put(&key("a"), &noise(1, 10));
    let mode = fs::metadata(scratch.0.join("deep/er")).expect("it was made").permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_a_file_is_not_waited_for() {
    let scratch = Scratch::new("pipe");
    let cache = scratch.cache(1 << 20);
    fs::create_dir_all(&scratch.0).expect("writable");
    let path = cache.path(&key("a"), IMAGE);
    let made = std::process::Command::new("mkfifo").arg(&path).status().expect("there is mkfifo");
    assert!(made.success());
    assert_eq!(cache.get(&key("a")), None);
    assert!(!path.exists(), "removed");
}
