//! Processes that end while a kernel runs: they end at once, by whatever they end.

use crate::Gpu;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use warpwright_testing::Apart;

fn process(test: &str) -> Option<Apart> {
    Apart::new(test).map(|apart| apart.driver("90"))
}

/// A device that a kernel keeps busy, which nobody will tell to go on, and operations behind that.
fn busy_for_ever() -> Gpu {
    let gpu = Gpu::new(0);
    std::mem::forget(gpu.busy());
    let x = gpu.stream.alloc_zeros::<u32>(1).unwrap();
    gpu.launch("add", &x, &x, 1).unwrap();
    std::mem::forget(x);
    gpu
}

#[test]
fn by_exit() {
    if let Some(apart) = process("ends::by_exit") {
        return apart.run().exited(3);
    }
    let _gpu = busy_for_ever();
    std::process::exit(3);
}

#[test]
fn by_exit_on_another_thread() {
    if let Some(apart) = process("ends::by_exit_on_another_thread") {
        return apart.run().exited(4);
    }
    let gpu = busy_for_ever();
    // One thread waits for the device, and another one ends the process.
    std::thread::spawn(|| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::process::exit(4);
    });
    let _ = gpu.stream.synchronize();
    panic!("the kernel has ended");
}

#[test]
fn by_abort() {
    if let Some(apart) = process("ends::by_abort") {
        assert_eq!(apart.run().status.signal(), Some(6));
        return;
    }
    let _gpu = busy_for_ever();
    std::process::abort();
}

#[test]
fn by_being_killed() {
    if let Some(apart) = process("ends::by_being_killed") {
        let ready = std::env::temp_dir().join(format!("warpwright-killed-{}", std::process::id()));
        let mut running = apart.env("WARPWRIGHT_TEST_READY", &ready).start();
        let start = std::time::Instant::now();
        while !ready.exists() {
            assert!(start.elapsed() < std::time::Duration::from_secs(60), "it never begins");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        running.kill();
        assert_eq!(running.end().status.signal(), Some(9));
        std::fs::remove_file(ready).unwrap();
        return;
    }
    let gpu = busy_for_ever();
    let ready = std::env::var_os("WARPWRIGHT_TEST_READY").expect("the name of a file");
    std::fs::File::create(ready).and_then(|mut file| file.write_all(b"ready")).unwrap();
    gpu.stream.synchronize().unwrap();
}

/// What a program drops while the device has something to do is given back before the process ends.
#[test]
fn with_a_device_that_was_dropped_while_it_was_busy() {
    if let Some(apart) = crate::clean("ends::with_a_device_that_was_dropped_while_it_was_busy") {
        return apart.run().exited(0);
    }
    let gpu = Gpu::new(1);
    let flags = gpu.busy();
    let x = gpu.stream.alloc_zeros::<u32>(1).unwrap();
    (0..200).for_each(|_| gpu.launch("add", &x, &x, 1).unwrap());
    // Nobody waits for what is behind this.
    flags.set(0, 1).unwrap();
    drop((x, flags, gpu));
    std::process::exit(0);
}

/// It is not waited for for ever.
#[test]
fn with_a_device_that_was_dropped_and_is_busy_for_ever() {
    if let Some(apart) = process("ends::with_a_device_that_was_dropped_and_is_busy_for_ever") {
        return apart.run().exited(5);
    }
    drop(busy_for_ever());
    std::process::exit(5);
}

/// A panic drops what there is: a device that is busy for ever is not waited for for ever.
#[test]
fn by_a_panic_in_a_launch() {
    if let Some(apart) = process("ends::by_a_panic_in_a_launch") {
        return apart.run().exited(101);
    }
    let gpu = Gpu::new(0);
    let flags = gpu.busy();
    let x = gpu.stream.alloc_zeros::<u32>(1).unwrap();
    gpu.launch("add", &x, &x, 1).unwrap();
    // Told to go on while the panic unwinds, as a program would that cleans up.
    struct GoOn(warpwright_runtime::HostBuffer<u32>);
    impl Drop for GoOn {
        fn drop(&mut self) {
            self.0.set(0, 1).unwrap();
        }
    }
    let _go_on = GoOn(flags);
    panic!("as planned");
}
