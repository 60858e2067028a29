//! Calls functions of the CUDA driver API as a C program would, and names the virtual GPUs behind them.
//!
//! ```text
//! WARPWRIGHT_DEVICES=80,90 cargo run -p warpwright-libcuda --example virtual_devices
//! ```

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the functions are C's")]
fn main() {
    use std::ffi::{CStr, c_char};
    use warpwright_cuda::api::{cuDeviceGetCount, cuDeviceGetName, cuInit};
    use warpwright_cuda::types::{Out, Status};

    let mut count = 0;
    // SAFETY: initialises; writes a number.
    let status = unsafe { [cuInit(0), cuDeviceGetCount(Out::new(&mut count))] };
    assert_eq!(status, [Status::SUCCESS; 2]);
    for ordinal in 0..count {
        let mut name: [c_char; 64] = [0; 64];
        // SAFETY: writes at most as many characters as there is room for, with a zero behind them.
        let status = unsafe { cuDeviceGetName(Out::new(name.as_mut_ptr()), 64, ordinal) };
        assert_eq!(status, Status::SUCCESS);
        // SAFETY: the zero is there.
        println!("{ordinal}: {}", unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy());
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}
