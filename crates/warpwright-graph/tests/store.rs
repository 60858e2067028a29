//! What stays on the device: weights in the layouts that plans ask for, states through changes of plans.

mod common;

use common::{Random, random_bytes};
use warpwright_graph::{Element, Store, StoreError, TensorType};
use warpwright_kernels::{CacheDtype, Dtype, WeightFormat};
use warpwright_ptx::ir::Type;
use warpwright_runtime::VmConfig;

fn store() -> Store {
    let device = warpwright_testing::device(VmConfig::default());
    Store::new(&device.default_stream())
}

fn cache(element: CacheDtype, dims: [u32; 4]) -> TensorType {
    TensorType::new(Element::Cache(element), dims)
}

#[test]
fn weights_are_checked_when_they_come() {
    let mut store = store();
    let rows = random_bytes("w", TensorType::new(Element::Weights(WeightFormat::Q4K), [3, 256]), 1);
    store.add_matrix("w", WeightFormat::Q4K, 3, 256, &rows).expect("three rows");

    let twice = store.add_matrix("w", WeightFormat::Q4K, 3, 256, &rows);
    assert!(matches!(twice, Err(StoreError::Twice { name }) if name == "w"));
    let short = store.add_matrix("short", WeightFormat::Q4K, 3, 256, &rows[1..]);
    let Err(StoreError::Length { name, unit: "bytes", given, needed, .. }) = short else {
        panic!("{short:?}")
    };
    assert_eq!((name.as_str(), given, needed), ("short", 3 * 144 - 1, 3 * 144));
    let ragged = store.add_matrix("ragged", WeightFormat::Q4K, 2, 300, &rows);
    assert!(matches!(ragged, Err(StoreError::Type { name, .. }) if name == "ragged"));
    let empty = store.add_vector("empty", &[]);
    assert!(matches!(empty, Err(StoreError::Type { name, .. }) if name == "empty"));
    let quants = store.add_weight("quants", TensorType::new(Element::Int8, [1, 32]), &[]);
    assert!(matches!(quants, Err(StoreError::Type { name, .. }) if name == "quants"));

    assert_eq!(store.weights().map(|(name, _)| name).collect::<Vec<_>>(), ["w"]);
    assert_eq!(store.statistics().row_bytes, 3 * 144);
    assert!(store.remove_weight("w") && !store.remove_weight("w"));
    assert_eq!(store.statistics(), Default::default());
}

#[test]
fn states_begin_as_zeros_and_keep_what_they_hold() {
    let mut store = store();
    let four = TensorType::new(Element::U32, [4]);
    store.add_state("positions", four).expect("a state");
    assert_eq!(store.read_state::<u32>("positions").expect("its numbers"), [0; 4]);
    store.write_state("positions", &[1u32, 2, 3, 4]).expect("written");
    // A plan with fewer sequences has the first of them.
    store.add_state("positions", TensorType::new(Element::U32, [2])).expect("the same state");
    assert_eq!(store.read_state::<u32>("positions").expect("its numbers"), [1, 2, 3, 4]);
    assert_eq!(store.statistics().state_bytes, 16);

    for other in [
        TensorType::new(Element::U32, [5]),
        TensorType::new(Element::U64, [4]),
        TensorType::new(Element::U32, [4, 1]),
    ] {
        let refused = store.add_state("positions", other);
        let Err(StoreError::State { name, given, needed, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!((name.as_str(), given, needed), ("positions", four, other));
    }
    let wrong = store.read_state::<f32>("positions");
    assert!(matches!(wrong, Err(StoreError::Element { given: Type::F32, needed: Type::U32, .. })));
    let short = store.write_state("positions", &[1u32]);
    assert!(matches!(short, Err(StoreError::Length { given: 1, needed: 4, .. })));
    assert!(matches!(store.read_state::<u32>("lengths"), Err(StoreError::MissingState { .. })));
    assert!(matches!(
        store.add_state("w", TensorType::new(Element::Weights(WeightFormat::F32), [1, 4])),
        Err(StoreError::Type { .. })
    ));
    store.reset_state("positions").expect("zeros");
    assert_eq!(store.read_state::<u32>("positions").expect("its numbers"), [0; 4]);
}

/// The numbers of a cache that grow with every element.
fn fill(store: &Store, name: &str) {
    for part in store.state_buffers(name).expect("a state") {
        let bytes: Vec<u8> = {
            let mut random = Random::named(1, name);
            (0..part.num_bytes()).map(|_| random.below(256) as u8).collect()
        };
        let target = part.cast(Type::U8).and_then(|bytes| bytes.typed::<u8>()).expect("bytes");
        store.stream().memcpy_htod(&bytes, &target).expect("written");
    }
}

fn parts(store: &Store, name: &str) -> Vec<Vec<u8>> {
    let parts = store.state_buffers(name).expect("a state").iter();
    let read = parts.map(|part| {
        let bytes = part.cast(Type::U8).and_then(|bytes| bytes.typed::<u8>()).expect("bytes");
        store.stream().clone_dtoh(&bytes).expect("its bytes")
    });
    read.collect()
}

#[test]
fn resized_states_keep_what_both_sizes_have() {
    for element in CacheDtype::ALL {
        for (from, to) in [
            ([2, 3, 4, 32], [2, 3, 9, 32]),
            ([2, 3, 9, 32], [2, 3, 4, 32]),
            ([1, 2, 4, 64], [3, 2, 4, 64]),
            ([3, 2, 4, 64], [1, 2, 8, 64]),
        ] {
            let mut store = store();
            store.add_state("cache", cache(element, from)).expect("a cache");
            fill(&store, "cache");
            let before = parts(&store, "cache");
            store.resize_state("cache", cache(element, to)).expect("another size");
            let after = parts(&store, "cache");
            assert_eq!(before.len(), after.len());
            for (before, after) in before.iter().zip(&after) {
                // Bytes of a token's row of one head.
                let row = after.len() / to[..3].iter().product::<u32>() as usize;
                let at = |[batch, head, token]: [u32; 3], dims: [u32; 4]| {
                    ((batch * dims[1] + head) * dims[2] + token) as usize * row
                };
                for batch in 0..to[0] {
                    for head in 0..to[1] {
                        for token in 0..to[2] {
                            let place = [batch, head, token];
                            let new = &after[at(place, to)..][..row];
                            let was = batch < from[0] && token < from[2];
                            let old = was.then(|| &before[at(place, from)..][..row]);
                            assert_eq!(
                                new,
                                old.unwrap_or(&vec![0; row]),
                                "{element} {from:?} {to:?} {place:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn only_sequences_and_tokens_can_be_resized() {
    let mut store = store();
    let given = cache(CacheDtype::F16, [1, 2, 4, 32]);
    store.add_state("cache", given).expect("a cache");
    for other in [[1, 3, 4, 32], [1, 2, 4, 64]] {
        let refused = store.resize_state("cache", cache(CacheDtype::F16, other));
        assert!(matches!(refused, Err(StoreError::State { .. })), "{refused:?}");
    }
    let refused = store.resize_state("cache", cache(CacheDtype::F32, [1, 2, 8, 32]));
    assert!(matches!(refused, Err(StoreError::State { .. })), "{refused:?}");
    store.add_state("hidden", TensorType::f32([2, 8])).expect("a state");
    assert!(store.resize_state("hidden", TensorType::f32([2, 9])).is_err());
    assert!(matches!(store.resize_state("none", given), Err(StoreError::MissingState { .. })));
    let halves = TensorType::new(Element::Float(Dtype::F16), [2, 8]);
    assert!(store.resize_state("hidden", halves).is_err());
    store.resize_state("hidden", TensorType::f32([3, 8])).expect("another row");
    assert_eq!(store.states().find(|(name, _)| *name == "hidden"), Some(("hidden", TensorType::f32([3, 8]))));
}
