//! Accesses to global memory: those that are only noted, and those that are recorded.

use super::check::{self, Check};
use super::chunk::{CHUNK_ROWS, Noter};
use super::note::{self, NON_COHERENT};
use super::{
    AccessKind, BlockRaces, LaunchRaces, Race, RaceSpace, Stored, Strength, Through, WarpAccess, WorkerRaces,
    non_coherent, observe_all, order_fences, release_all,
};

impl BlockRaces {
    /// Records an access to global memory, before it is performed. Calls `race` with the accesses that it races with.
    pub fn global(
        &mut self,
        launch: &LaunchRaces,
        worker: &mut WorkerRaces,
        access: &WarpAccess<'_>,
        through: Through,
        stored: &dyn Stored,
        race: &mut dyn FnMut(Race),
    ) {
        self.clock = self.clocks.now;
        let who = (self.clocks.block, access.warp, access.pc);
        let noted = match worker.begun.take_if(|(begun, _)| *begun == who) {
            Some((_, noted)) => noted,
            None => self.note_global(launch, worker, (false, access), through),
        };
        worker.recorded = access.mask & !noted;
        if worker.recorded == 0 {
            return;
        }
        let access = &WarpAccess { mask: worker.recorded, ..*access };
        if access.strength != Strength::Weak {
            self.settle();
        }
        self.serial = self.serial.wrapping_add(1).max(1);
        let number = (self.serial, worker.chance.next());
        let mut check = Check::new(self.mode, RaceSpace::Global, access, &self.clocks, number, stored, race);
        worker.are_whole = check.global(&launch.rows, &mut worker.chunks, &mut worker.pieces);
        if let Strength::Strong { scope, release, .. } = access.strength
            && access.kind.is_write()
        {
            let replaces = launch.alone && access.kind == AccessKind::Write;
            if release || self.clocks.may_release(access.warp) || (replaces && launch.locations.is_used()) {
                let block = self.clocks.block;
                release_all(&mut self.clocks, access, scope, release, |place, thread, released| {
                    launch.locations.release(place, (block, thread), released, replaces);
                });
            }
        }
        let writes = access.kind.is_write();
        if access.strength != Strength::Weak
            && (self.clocks.has_sequential(access.warp) || (writes && launch.sequential.is_used()))
        {
            let block = self.clocks.block;
            order_fences(&mut self.clocks, access, |place, scope, thread, fenced| match fenced {
                Some(fenced) => {
                    launch.sequential.release(place, (block, thread), fenced, false);
                    None
                }
                None => launch.sequential.observe(place, block, scope),
            });
        }
    }

    /// Only notes an access of native code to global memory, or says that [`global`](Self::global) must see it, which goes on
    /// where this has ended. `is_line`: it is known to be one of a whole warp whose lanes are one behind the other, with at
    /// least four bytes each; the first lane's offset is enough then.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(dead_code, reason = "nothing is compiled for other processors")
    )]
    pub(crate) fn note(
        &self,
        launch: &LaunchRaces,
        worker: &mut WorkerRaces,
        (is_line, access): (bool, &WarpAccess<'_>),
        through: Through,
    ) -> bool {
        let noted = self.note_global(launch, worker, (is_line, access), through);
        if noted != access.mask {
            worker.begun = Some(((self.clocks.block, access.warp, access.pc), noted));
        }
        noted == access.mask
    }

    /// Only notes an access to global memory, if that is enough: the lanes of which it is.
    fn note_global(
        &self,
        launch: &LaunchRaces,
        worker: &mut WorkerRaces,
        (is_line, access): (bool, &WarpAccess<'_>),
        through: Through,
    ) -> u32 {
        let kind = match (note::kind(access), through) {
            (Some(kind), Through::Coherent) => kind,
            (Some(note::READ), Through::NonCoherent) => NON_COHERENT,
            _ => return 0,
        };
        let Some(noter) = Noter::new(&self.clocks, self.threads, access.warp) else { return 0 };
        let left = self.level.run(
            #[inline(always)]
            || {
                let is_line = is_line || access.is_line();
                worker.chunks.note(&launch.rows, access, (is_line, kind), &noter)
            },
        );
        access.mask & !left
    }

    /// Records a non-coherent read of global memory, or a write, which is the access that was recorded last, before it is
    /// performed. Calls `found` with each
    /// access that must not occur in the same launch, whatever orders the two. A texture may read what the launch
    /// writes later.
    pub fn non_coherent(
        &self,
        launch: &LaunchRaces,
        worker: &mut WorkerRaces,
        access: &WarpAccess<'_>,
        through: Through,
        found: &mut dyn FnMut(Race),
    ) {
        if worker.recorded == 0 {
            return;
        }
        let access = &WarpAccess { mask: worker.recorded, ..*access };
        let entry = check::entry(access, &self.clocks, self.clock, self.serial);
        let memory = (&launch.rows, &mut worker.chunks);
        if !worker.are_whole {
            worker.pieces.clear();
            access.runs(|run| run.pieces(|piece| worker.pieces.push(piece)));
        }
        non_coherent::access(&worker.pieces, (&entry, through != Through::Texture), memory, found);
    }

    /// Records the observation of a strong read of global memory, after the read: of the access recorded last.
    pub fn global_observed(
        &mut self,
        launch: &LaunchRaces,
        worker: &mut WorkerRaces,
        access: &WarpAccess<'_>,
    ) {
        self.settle();
        let entry = check::entry(access, &self.clocks, self.clock, self.serial);
        worker.pieces.clear();
        access.runs(|run| run.pieces(|piece| worker.pieces.push(piece)));
        let (rows, chunks) = (&launch.rows, &mut worker.chunks);
        for pieces in worker.pieces.chunk_by(|a, b| a.row / CHUNK_ROWS == b.row / CHUNK_ROWS) {
            chunks.with_rows(rows, pieces[0].row / CHUNK_ROWS, |rows| {
                for piece in pieces {
                    let row = &mut rows[(piece.row % CHUNK_ROWS) as usize];
                    row.observe(&entry.with(piece.bytes, piece.lanes));
                }
            });
        }
        if !launch.locations.is_used() {
            return;
        }
        let block = self.clocks.block;
        observe_all(&mut self.clocks, access, |place, scope| launch.locations.observe(place, block, scope));
    }
}
