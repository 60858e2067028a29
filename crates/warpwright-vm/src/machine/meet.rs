//! How the lanes that take part in a collective of the warp meet.

use super::{LANES, LanesOf, Machine, Park, Resume, Row32, Row64, Step, Warp};

/// The values that the lanes of a warp bring to collectives.
///
/// Lanes may arrive at a collective at different instructions. Their values are in `brought` while they are parked.
/// When all have arrived, that is a *meeting*: a copy, so that lanes that continue at once can bring other values to
/// the next collective before the rest has read this one.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Exchange {
    brought: Row64,
    meetings: Vec<Meeting>,
}

#[derive(Clone, Debug, Hash)]
struct Meeting {
    /// Lanes that have not looked yet.
    left: u32,
    brought: Row64,
}

impl Default for Exchange {
    fn default() -> Self {
        Exchange { brought: [0; LANES], meetings: Vec::new() }
    }
}

impl Exchange {
    /// No lane has brought a value.
    pub(super) fn clear(&mut self) {
        self.meetings.clear();
    }

    fn bring(&mut self, values: &Row64, mask: u32) {
        LanesOf(mask).for_each(|lane| self.brought[lane] = values[lane]);
    }

    /// These lanes have met: the meeting's number.
    fn hold(&mut self, lanes: u32) -> u32 {
        let meeting = Meeting { left: lanes, brought: self.brought };
        match self.meetings.iter().position(|meeting| meeting.left == 0) {
            Some(free) => {
                self.meetings[free] = meeting;
                free as u32
            }
            None => {
                self.meetings.push(meeting);
                self.meetings.len() as u32 - 1
            }
        }
    }

    fn look(&mut self, meeting: u32, lanes: u32) -> Row64 {
        let meeting = &mut self.meetings[meeting as usize];
        meeting.left &= !lanes;
        meeting.brought
    }
}

impl Warp {
    /// The paths that are parked at different instructions with this `need` and `key` may go on, since
    /// all the lanes that they need have come.
    pub(super) fn hold_meeting(&mut self, park: Park, come: u32) {
        let meeting = self.exchange.hold(come);
        for path in self.paths.iter_mut().filter(|path| path.park == park) {
            path.park = Park::Ready;
            path.resume = Some(Resume::Met { lanes: come, meeting });
        }
    }

    /// Divides the running path, at `pc`, by a value that its lanes have.
    fn divide(&mut self, pc: u32, mask: u32, values: &Row32) {
        let here = self.paths[self.current];
        let rest = here.mask & !mask;
        let mut todo = mask;
        let mut first = true;
        while todo != 0 {
            let value = values[todo.trailing_zeros() as usize];
            let same =
                LanesOf(todo).filter(|&lane| values[lane] == value).fold(0, |all, lane| all | 1 << lane);
            todo &= !same;
            let path = super::warp::Path { pc, mask: same, ..here };
            if first {
                self.paths[self.current] = path;
                first = false;
            } else {
                self.paths.push(path);
            }
        }
        if rest != 0 {
            self.paths.push(super::warp::Path { pc: pc + 1, mask: rest, ..here });
        }
    }
}

impl Machine<'_> {
    /// Waits until the lanes that each lane names in `members` are here, or at an instruction with the same key.
    /// Lanes that have exited are not waited for. Returns the lanes that are present, and their values: `read`
    /// returns those of the lanes of [`Machine::mask`].
    pub(crate) fn meet_lanes(
        &mut self,
        members: &Row32,
        key: u32,
        read: impl FnOnce(&Self) -> Row64,
    ) -> Result<(u32, Row64), Step> {
        let mask = self.mask;
        let (mut need, mut common, mut outside) = (0, u32::MAX, 0);
        for lane in LanesOf(mask) {
            need |= members[lane];
            common &= members[lane];
            outside |= (!members[lane] >> lane & 1) << lane;
        }
        if outside != 0 {
            self.report_outside_mask(outside, members);
        }
        match self.take_resume() {
            Some(Resume::Met { lanes, meeting }) => {
                return Ok((lanes, self.warp.exchange.look(meeting, mask)));
            }
            Some(Resume::Forced) => return Ok((mask, read(self))),
            Some(Resume::Passed { .. }) | None => {}
        }
        if need & self.warp.live & !mask == 0 {
            return Ok((mask, read(self)));
        }
        if need != common {
            self.warp.divide(self.pc, mask, members);
            self.not_yet();
            return Err(Step::Reload);
        }
        let values = read(self);
        self.warp.exchange.bring(&values, mask);
        match self.converge(need, key) {
            Some(step) => Err(step),
            None => Ok((mask, values)),
        }
    }

    /// Lets the lanes of the path come to this instruction one value at a time: whether they have one
    /// value only.
    pub(crate) fn one_at_a_time(&mut self, values: &Row32) -> Result<(), Step> {
        let first = values[self.mask.trailing_zeros() as usize & 31];
        if values.iter().fold(true, |same, &value| same & (value == first)) {
            return Ok(());
        }
        if LanesOf(self.mask).all(|lane| values[lane] == first) {
            return Ok(());
        }
        self.warp.divide(self.pc, self.mask, values);
        self.not_yet();
        Err(Step::Reload)
    }
}
