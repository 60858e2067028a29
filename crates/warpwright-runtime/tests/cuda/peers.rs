//! Copies between CUDA devices: two, where there are two, or one that is opened twice.

use crate::*;

#[test]
fn bytes_go_from_device_to_device_in_the_order_of_a_stream() {
    let here = Gpu::open();
    let there = Gpu::of(Device::cuda(1).or_else(|_| Device::cuda(0)).unwrap());
    let (near, far) = (here.device.new_stream().unwrap(), there.device.new_stream().unwrap());
    let x = near.clone_htod(&[1u32, 2, 3]).unwrap();
    let y = far.alloc_zeros::<u32>(3).unwrap();
    near.wait_event(&far.record_event().unwrap()).unwrap();
    let hold = here.hold(&near, &x, 10);
    near.memcpy_peer(&x, &y).unwrap();
    // The other stream waits for the copy by itself, since its memory is used.
    there.launch(&far, "add", 3, &y, &y, 100);
    hold.release();
    assert_eq!(far.clone_dtoh(&y).unwrap(), [111, 102, 103]);
    // And back, on a stream of the other device.
    far.memcpy_peer(&y.slice(1..).unwrap(), &x.slice(..2).unwrap()).unwrap();
    assert_eq!(near.clone_dtoh(&x).unwrap(), [102, 103, 3]);
}
