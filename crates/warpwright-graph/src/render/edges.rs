//! Edges from makers to readers, by box numbers.

use std::collections::HashMap;

/// A tensor on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge<'a> {
    /// What makes it.
    pub(super) from: usize,
    /// What takes it.
    pub(super) to: usize,
    pub(super) tensor: &'a str,
}

/// What boxes, in order, read and make.
pub(super) fn edges<'a>(boxes: &[(&'a [String], &'a [String])]) -> Vec<Edge<'a>> {
    let mut makers: HashMap<&str, usize> = HashMap::new();
    let mut edges = Vec::new();
    for (to, (reads, writes)) in boxes.iter().enumerate() {
        // Names come again: what is read was made before.
        let made = reads.iter().filter_map(|tensor| Some((*makers.get(tensor.as_str())?, tensor.as_str())));
        edges.extend(made.map(|(from, tensor)| Edge { from, to, tensor }));
        makers.extend(writes.iter().map(|tensor| (tensor.as_str(), to)));
    }
    edges
}
