//! Items grouped by number, in a flat layout.

/// Items of `T` in groups, by the number of the group; within a group they keep their order.
#[derive(Clone, Debug)]
pub(super) struct Grouped<T> {
    offsets: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy + Default> Grouped<T> {
    /// `count` groups of items, each of which comes with the number of its group.
    pub(super) fn new(count: usize, items: impl Iterator<Item = (usize, T)> + Clone) -> Self {
        let mut offsets = vec![0u32; count + 1];
        items.clone().for_each(|(group, _)| offsets[group + 1] += 1);
        for i in 0..count {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut list = vec![T::default(); offsets[count] as usize];
        for (group, item) in items {
            list[next[group] as usize] = item;
            next[group] += 1;
        }
        Grouped { offsets, items: list }
    }

    /// The items of a group.
    pub(super) fn of(&self, group: usize) -> &[T] {
        &self.items[self.offsets[group] as usize..self.offsets[group + 1] as usize]
    }

    /// Number of groups.
    pub(super) fn count(&self) -> usize {
        self.offsets.len() - 1
    }
}
