//! What the decoder is given.

use crate::{assigned, models, plan_of, schedule_of};
use std::collections::HashMap;
use warpwright_dsl::{Asked, BuildError};
use warpwright_graph::persistent::{Buffer, Operand};
use warpwright_graph::{ArgSource, Arithmetic};
use warpwright_kernels::persistent::Assignment;
use warpwright_kernels::persistent::format::{ITEM_WORDS, Item, RECORD_HEAD};

/// Every item reads the record of its instance: numbers as they are, buffers by the address that was given for them.
#[test]
fn items_find_the_records_of_their_instances() {
    for seed in 0..10 {
        let (_, graph) = models::random(seed);
        let plan = plan_of(&graph, Arithmetic::Exact);
        let schedule = schedule_of(&plan);
        for assignment in Assignment::ALL {
            let assigned = assigned(&plan, &schedule, 9, assignment);
            // Each buffer has an address of its own.
            let mut addresses: HashMap<String, u64> = HashMap::new();
            let address = |buffer: Buffer<'_>| -> Result<u64, BuildError> {
                assert!(buffer.instance.args.contains(&(buffer.name, buffer.operand)));
                let next = 0x7000_0000_0000 + 256 * addresses.len() as u64;
                Ok(*addresses.entry(format!("{:?}", buffer.operand)).or_insert(next))
            };
            let words = schedule.encode(&assigned, address).expect("words");
            assert_eq!(words.phases as usize, schedule.phases.len());
            assert_eq!(words.bounds.len(), 2 * assigned.lists.len());
            assert_eq!((words.blocks, words.counters), (9, assigned.counters));
            let items: Vec<Item> = (words.items.chunks(ITEM_WORDS as usize))
                .map(|item| Item::decode(item.try_into().expect("an item")))
                .collect();
            assert_eq!(items.len(), assigned.items.len());
            for (item, of) in items.iter().zip(&assigned.items) {
                let instance = &schedule.instances[of.instance];
                assert_eq!(
                    (item.first, item.end, item.wait, item.signal),
                    (of.first, of.end, of.wait, of.signal)
                );
                assert_eq!(item.op as usize, instance.op);
                let record = &words.operands[item.operands as usize..];
                let [x, y, z] = instance.grid.map(u64::from);
                assert_eq!(record[..RECORD_HEAD], [x | y << 32, z]);
                for (asked, &word) in instance.call.operands().zip(&record[RECORD_HEAD..]) {
                    match asked {
                        Asked::Number(bits) => assert_eq!(word, *bits),
                        Asked::Table(table) => {
                            assert_eq!(words.operands[word as usize..][..table.len()], table[..]);
                        }
                        Asked::Arg(name) => {
                            let arg = instance.args.iter().find(|(arg, _)| arg == name).expect("an argument");
                            let expected = match arg.1 {
                                Operand::Plan(ArgSource::U32(value)) => value.into(),
                                Operand::Plan(ArgSource::F32(value)) => value.to_bits().into(),
                                other => addresses[&format!("{other:?}")],
                            };
                            assert_eq!(word, expected, "{name}");
                        }
                    }
                }
            }
        }
    }
}
