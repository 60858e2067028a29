//! The best choice of each shape, measured.

use super::{Item, Outcome};
use crate::event::{Finding, Tuned};
use crate::measure::{Failure, Size};
use crate::models::{Choice, ModelConfig};
use warpwright_graph::{KernelLibrary, Plan, PlanOptions, device_model};
use warpwright_kernels::tune::{Candidate, Space, Table};
use warpwright_runtime::Device;

/// The items, for the rows of a table that are for the device: by default the shapes of well-known models.
pub(super) fn items(device: &Device, size: Size, rows: Option<&Table>) -> Result<Vec<Item>, Failure> {
    let (few, most) = size.pick((4, 2), (2, 6), (usize::MAX, usize::MAX));
    let (spaces, shapes) = match rows {
        Some(rows) => (rows.spaces(&device_model(device)), usize::MAX),
        None => (well_known(device, size)?.spaces(&device_model(device)), few),
    };
    Ok(spaces.into_iter().take(shapes).map(|space| item(space, size, most)).collect())
}

/// The choices that steps of well-known models need.
fn well_known(device: &Device, size: Size) -> Result<Table, Failure> {
    let models =
        [ModelConfig::llama_3_8b(), ModelConfig::llama_3_2_1b(), ModelConfig::qwen_3_4b()].map(|config| {
            // All layers are alike, but for the bits of some.
            size.pick(config.scaled_down(1), ModelConfig { layers: 8, ..config.clone() }, config)
        });
    let mut table = Table::default();
    for model in models {
        for graph in
            [model.decode(1, Choice::ArgMax), model.prefill(1, size.pick(16, 512, 512), Choice::ArgMax)]
        {
            let plan = Plan::new(&graph, &PlanOptions::for_device(device), &KernelLibrary)?;
            table.merge(plan.choices().clone());
        }
    }
    Ok(table)
}

fn item(space: Space, size: Size, most: usize) -> Item {
    Item::measure(space.shape.clone(), size, move |bench, found| {
        let mut times: Vec<(&str, f64)> = Vec::new();
        let mut refused = None;
        for Candidate { choice, launch } in space.candidates.iter().take(most) {
            match bench.launches(launch, bench.size.pick(1, 10, 10)) {
                Ok((samples, _)) => times.push((choice, samples.figure("", None, None).median)),
                // The device may be lost with it; else the others are compared all the same.
                Err(why) => refused = Some(format!("{choice}: {why}")),
            }
        }
        let estimated = times.first().map_or(f64::NAN, |(_, seconds)| *seconds);
        if let Some(&(choice, seconds)) = times.iter().min_by(|a, b| a.1.total_cmp(&b.1)) {
            let (row, candidates) = (format!("{} -> {choice}", space.shape), times.len());
            found(Finding::Tuned(Tuned { row, seconds, estimated, candidates }));
        }
        refused.map_or(Outcome::Ok(()), |why| Err(why.into()))
    })
}
