//! The order in which shared tiles are filled and read: what the build refuses, with the line and the other
//! line, and what comes close and is right.

use warpwright_dsl::*;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{Arch, Origin};

/// The mistakes of a body in a block of `threads`: code, line after the first, and message.
fn mistakes(first: u32, threads: u32, body: impl for<'k> FnOnce(K<'k>)) -> Vec<(Code, u32, String)> {
    let errors = match build("wrong", &LaunchRule::new(threads), Arch::sm(80), body) {
        Ok(_) => return Vec::new(),
        Err(errors) => errors,
    };
    let list = errors.iter().map(|diagnostic| match diagnostic.origin {
        Origin::Rust(location) => (diagnostic.code, location.line() - first, diagnostic.message.clone()),
        _ => panic!("no line: {diagnostic}"),
    });
    list.collect()
}

/// The lines on which the order is wrong; nothing else is.
fn wrong_lines(first: u32, threads: u32, body: impl for<'k> FnOnce(K<'k>)) -> Vec<u32> {
    let found = mistakes(first, threads, body);
    assert!(found.iter().all(|(code, ..)| *code == Code::TileOrder), "{found:?}");
    found.into_iter().map(|(_, line, _)| line).collect()
}

fn matrix<'k>(k: K<'k>) -> Matrix<'k, F16> {
    k.ptr::<F16>("x").matrix(64, 64)
}

#[test]
fn reading_without_waiting_is_refused_with_both_lines() {
    let first = line!();
    let found = mistakes(first, 64, |k| {
        let tile = k.shared_tile::<F16>(32, 32);
        tile.load(matrix(k), 0, 0);
        tile.rows(0, 16).load_a();
    });
    let message = format!(
        "the tile is read before all of the copies of line {} are there: `k.sync()` belongs between",
        first + 3
    );
    assert_eq!(found, [(Code::TileOrder, 4, message)]);
}

#[test]
fn every_way_to_read_too_early_is_refused() {
    let first = line!();
    let found = wrong_lines(first, 32, |k| {
        let (x, tile) = (matrix(k), k.shared_tile::<F16>(32, 32));
        tile.load(x, 0, 0);
        tile.rows(16, 16).load_b();
        tile.columns(16, 16).load_bt();
        tile.ld(k.lane(), 3);
        tile.ld_vec::<8>(k.lane(), 8);
        k.sync_warp();
        tile.load_a();
        k.sync_warp();
        let row = k.warp() * 16;
        tile.rows(row, 16).load(x, 0, 0);
        k.when(k.lane().lt(7), || k.ptr_mut::<F16>("y").st(0, tile.rows(row + 8, 8).ld(0, 0)));
        // Where the warp's rows are the tile's first cannot be decided.
        tile.rows(0, 16).load_a();
    });
    assert_eq!(found, [4, 5, 6, 7, 13]);
}

#[test]
fn filling_twice_and_filling_what_others_read_are_refused() {
    let first = line!();
    let found = wrong_lines(first, 64, |k| {
        let (x, tile) = (matrix(k), k.shared_tile::<F16>(32, 32));
        tile.load(x, 0, 0);
        tile.rows(16, 16).load(x, 0, 0);
        k.sync();
        tile.load_a();
        tile.load(x, 32, 0);
        k.sync();
        tile.ld(k.tid() & 31, 0);
        tile.load(x, 32, 32);
        k.sync();
        tile.load_a();
        k.sync();
        tile.load(x, 32, 32);
    });
    assert_eq!(found, [4, 7, 10]);
}

#[test]
fn what_comes_close_is_accepted() {
    let first = line!();
    let found = wrong_lines(first, 64, |k| {
        let x = matrix(k);
        let tile = k.shared_tile::<F16>(32, 64);
        // Halves in turn: what is filled is not what is read.
        tile.rows(0, 16).load(x, 0, 0);
        k.sync();
        tile.rows(16, 16).load(x, 16, 0);
        tile.rows(0, 16).load_a();
        tile.columns(32, 32).ld(k.tid() & 15, 0);
        k.block_sum(k.f32(1.0));
        // One or the other.
        let other = k.shared_tile::<F16>(16, 16);
        k.if_else(k.ctaid().eq(0), || other.load(x, 0, 0), || other.load(x, 16, 0));
        k.if_else(k.ctaid().eq(0), || other.load(x, 0, 0), || _ = other.load_a());
        k.sync();
        // Around a loop, with both barriers.
        k.each(k.upto(4), |i| {
            other.load(x, i * 16, 0);
            k.sync();
            other.load_a();
            k.sync();
        });
        // Elements that a thread stored itself.
        other.st(k.tid() & 15, k.tid() >> 4, k.f32(1.0).to::<F16>());
        other.ld(k.tid() & 15, k.tid() >> 4);
    });
    assert_eq!(found, []);
}

#[test]
fn stages_stay_in_their_turn_and_their_pipeline() {
    use std::cell::Cell;
    let first = line!();
    let found = wrong_lines(first, 64, |k| {
        let x = matrix(k);
        let (one, two) = (k.pipeline(2), k.pipeline(2));
        let (a, b) = (one.tile::<F16>(16, 64), two.tile::<F16>(16, 64));
        let (stage_out, tile_out) = (Cell::new(None), Cell::new(None));
        one.run(
            4,
            (),
            |stage, i| {
                stage_out.set(Some(stage));
                tile_out.set(Some(a.at(stage)));
                b.at(stage).load(x, i * 16, 0); // the other pipeline's tile
                a.at(stage).load(x, i * 16, 0);
            },
            |_, _, ()| (),
        );
        a.at(stage_out.get().expect("it was set"));
        tile_out.get().expect("it was set").load(x, 0, 0);
    });
    // The prologue and the loop's body both run `load`, whose mistake is said once; the slot is a value of the loop, too.
    assert_eq!(found, [12, 17, 18]);
}

#[test]
fn a_stage_is_filled_once_before_it_is_read() {
    let first = line!();
    let found = wrong_lines(first, 64, |k| {
        let x = matrix(k);
        let pipeline = k.pipeline(1);
        let (a, b) = (pipeline.tile::<F16>(16, 64), pipeline.tile::<F16>(16, 64));
        pipeline.run(
            4,
            (),
            |stage, i| {
                a.at(stage).load(x, i * 16, 0);
                a.at(stage).columns(0, 16).load(x, i * 16, 0);
            },
            |stage, _, ()| {
                a.at(stage).load_a();
                b.at(stage).load_a(); // nothing fills it
            },
        );
        let twice = |stage: Stage<'_, Filling>, _: Reg<'_, u32>| _ = stage;
        pipeline.run(4, (), twice, |_, _, ()| pipeline.run(4, (), twice, |_, _, ()| ()));
    });
    assert_eq!(found, [10, 14, 18]);
}

#[test]
fn elements_outside_of_the_tile_are_refused() {
    let first = line!();
    let found = mistakes(first, 32, |k| {
        let tile = k.shared_tile::<F16>(16, 32);
        tile.ld(16, 0);
        tile.rows(8, 8).ld_vec::<2>(0, 32);
        tile.st(0, 32, k.f32(0.0).to::<F16>());
    });
    let found: Vec<_> = found.into_iter().map(|(code, line, _)| (code, line)).collect();
    assert_eq!(found, [(Code::SharedMemory, 3), (Code::SharedMemory, 4), (Code::SharedMemory, 5)]);
}
