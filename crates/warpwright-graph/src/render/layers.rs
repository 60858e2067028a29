//! Boxes in layers, and the ways of arrows between them.
//!
//! A box is one layer below the lowest of those that it takes something from; boxes of a layer stand side by
//! side. An arrow to the next layer is a curve. A longer one goes through the gap below its box to a lane left of
//! all boxes, down the lane, and through the gap above the other box to it, so that no arrow crosses a box.
//!
//! Nothing here knows what boxes are. Units are those of the picture; `y` grows downwards.

/// Between boxes of one layer.
const ASIDE: f64 = 14.0;
/// Between two layers, for the ends of arrows alone.
const GAP: f64 = 30.0;
/// Between two lanes, and between the horizontal parts of two arrows.
const LANE: f64 = 7.0;

/// A place in the picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// A box with its upper left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rect {
    pub(super) at: Point,
    pub(super) size: [f64; 2],
}

/// The way of an arrow.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Way {
    /// A curve from a box to one below.
    Curve([Point; 2]),
    /// Straight lines through these points.
    Lane(Vec<Point>),
}

/// Where everything is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arranged {
    /// The boxes, in their order.
    pub(super) boxes: Vec<Rect>,
    /// The arrows, in their order.
    pub(super) ways: Vec<Way>,
    /// Width and height of it all.
    pub(super) size: [f64; 2],
}

/// Arranges boxes of such sizes. Arrows go from a box to one with a higher number; others are left out.
pub(super) fn arrange(sizes: &[[f64; 2]], arrows: &[(usize, usize)]) -> Arranged {
    let forward = |&&(from, to): &&(usize, usize)| from < to && to < sizes.len();
    let arrows: Vec<(usize, usize)> = arrows.iter().filter(forward).copied().collect();
    let mut layer_of = vec![0; sizes.len()];
    for to in 0..sizes.len() {
        let above = arrows.iter().filter(|arrow| arrow.1 == to).map(|&(from, _)| layer_of[from] + 1);
        layer_of[to] = above.max().unwrap_or(0);
    }
    let layers = layer_of.iter().max().map_or(0, |&last: &usize| last + 1);
    let lanes = lanes(&arrows, &layer_of);
    let lane_count = lanes.iter().flatten().max().map_or(0, |&last| last + 1) as f64;

    // Each layer in the middle of the widest; the gap above it has room for the arrows that turn there.
    let members = |layer: usize| (0..sizes.len()).filter(|&i| layer_of[i] == layer).collect::<Vec<_>>();
    let width_of = |boxes: &[usize]| {
        let boxes_alone: f64 = boxes.iter().map(|&i| sizes[i][0]).sum();
        boxes_alone + ASIDE * boxes.len().saturating_sub(1) as f64
    };
    let width = (0..layers).map(|layer| width_of(&members(layer))).fold(0.0, f64::max);
    let left = lane_count * LANE + if lane_count > 0.0 { LANE } else { 0.0 };
    let gap = GAP + 2.0 * lane_count * LANE;
    let mut boxes = vec![Rect { at: Point { x: 0.0, y: 0.0 }, size: [0.0; 2] }; sizes.len()];
    let (mut top, mut tops, mut bottoms) = (0.0, Vec::new(), Vec::new());
    for layer in 0..layers {
        let members = members(layer);
        let mut x = left + (width - width_of(&members)) / 2.0;
        let height = members.iter().map(|&i| sizes[i][1]).fold(0.0, f64::max);
        for i in members {
            boxes[i] = Rect { at: Point { x, y: top }, size: sizes[i] };
            x += sizes[i][0] + ASIDE;
        }
        tops.push(top);
        bottoms.push(top + height);
        top += height + gap;
    }

    let ends = ends(&arrows, &lanes, &boxes);
    let ways = arrows.iter().zip(&lanes).zip(ends).map(|((&(from, to), lane), [start, end])| {
        let Some(lane) = *lane else { return Way::Curve([start, end]) };
        let (lane_x, turn) = (left - LANE * (lane + 1) as f64, LANE * (lane + 1) as f64);
        let below = Point { x: start.x, y: bottoms[layer_of[from]] + turn };
        let above = Point { x: end.x, y: tops[layer_of[to]] - GAP / 2.0 - turn };
        let corner = |y| Point { x: lane_x, y };
        Way::Lane(vec![start, below, corner(below.y), corner(above.y), above, end])
    });
    let ways = ways.collect();
    Arranged { boxes, ways, size: [left + width, (top - gap).max(0.0)] }
}

/// Lanes of the arrows that need one: arrows that pass by the same layer have different ones, and short arrows
/// the inner ones.
fn lanes(arrows: &[(usize, usize)], layer_of: &[usize]) -> Vec<Option<usize>> {
    let span = |arrow: usize| {
        let (from, to) = arrows[arrow];
        (layer_of[from], layer_of[to])
    };
    let length = |arrow: usize| span(arrow).1 - span(arrow).0;
    let mut long: Vec<usize> = (0..arrows.len()).filter(|&arrow| length(arrow) > 1).collect();
    long.sort_by_key(|&arrow| (length(arrow), span(arrow)));
    let mut lanes: Vec<Option<usize>> = vec![None; arrows.len()];
    let mut taken: Vec<Vec<(usize, usize)>> = Vec::new();
    for arrow in long {
        let (from, to) = span(arrow);
        // They may not even touch: both turn in the gap between layers.
        let free = |others: &Vec<(usize, usize)>| others.iter().all(|&(a, b)| b < from || to < a);
        let lane = taken.iter().position(free).unwrap_or(taken.len());
        if lane == taken.len() {
            taken.push(Vec::new());
        }
        taken[lane].push((from, to));
        lanes[arrow] = Some(lane);
    }
    lanes
}

/// Where arrows leave and reach boxes: spread over the bottom and the top, in the order of what they go to. Lanes
/// are left of everything, the inner ones further to the right.
fn ends(arrows: &[(usize, usize)], lanes: &[Option<usize>], boxes: &[Rect]) -> Vec<[Point; 2]> {
    let side = |arrow: usize, other: usize| match lanes[arrow] {
        Some(lane) => -1.0 - lane as f64,
        None => boxes[other].at.x + boxes[other].size[0] / 2.0,
    };
    let mut all = vec![[Point { x: 0.0, y: 0.0 }; 2]; arrows.len()];
    for (i, Rect { at, size: [width, height] }) in boxes.iter().enumerate() {
        let mut leaving: Vec<usize> = (0..arrows.len()).filter(|&arrow| arrows[arrow].0 == i).collect();
        let mut coming: Vec<usize> = (0..arrows.len()).filter(|&arrow| arrows[arrow].1 == i).collect();
        leaving.sort_by(|&a, &b| side(a, arrows[a].1).total_cmp(&side(b, arrows[b].1)));
        coming.sort_by(|&a, &b| side(a, arrows[a].0).total_cmp(&side(b, arrows[b].0)));
        for (end, group, y) in [(0, leaving, at.y + height), (1, coming, at.y)] {
            let step = width / (group.len() + 1) as f64;
            for (place, arrow) in group.into_iter().enumerate() {
                all[arrow][end] = Point { x: at.x + step * (place + 1) as f64, y };
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(a: &Rect, b: &Rect) -> bool {
        let apart = |i: fn(&Point) -> f64, n: usize| {
            i(&a.at) + a.size[n] <= i(&b.at) || i(&b.at) + b.size[n] <= i(&a.at)
        };
        !apart(|p| p.x, 0) && !apart(|p| p.y, 1)
    }

    /// Boxes do not overlap, arrows go down, and no line of a long arrow crosses a box.
    #[test]
    fn nothing_is_in_the_way() {
        for seed in 0..60_usize {
            let count = 2 + seed % 17;
            let random = |i: usize| (i * 7919 + seed * 104_729) % 65_521;
            let sizes: Vec<[f64; 2]> = (0..count)
                .map(|i| [40.0 + random(i) as f64 % 90.0, 20.0 + random(i + 50) as f64 % 60.0])
                .collect();
            let arrows: Vec<(usize, usize)> =
                (1..count).flat_map(|to| [(random(to) % to, to), (random(to + 99) % to, to)]).collect();
            let Arranged { boxes, ways, size } = arrange(&sizes, &arrows);
            assert_eq!(ways.len(), arrows.len());
            for (i, a) in boxes.iter().enumerate() {
                assert!(a.at.x >= 0.0 && a.at.x + a.size[0] <= size[0] + 1e-6);
                assert!(a.at.y >= 0.0 && a.at.y + a.size[1] <= size[1] + 1e-6);
                assert!(boxes[..i].iter().all(|b| !overlap(a, b)), "seed {seed}, box {i}");
            }
            for (way, (from, to)) in ways.iter().zip(arrows) {
                assert!(boxes[from].at.y + boxes[from].size[1] < boxes[to].at.y, "seed {seed}");
                let Way::Lane(points) = way else { continue };
                for line in points.windows(2) {
                    let at = Point { x: line[0].x.min(line[1].x), y: line[0].y.min(line[1].y) };
                    let span = [(line[0].x - line[1].x).abs(), (line[0].y - line[1].y).abs()];
                    let line = Rect { at, size: span };
                    let passes = |b: &&Rect| {
                        let inner = Rect {
                            at: Point { x: b.at.x + 0.1, y: b.at.y + 0.1 },
                            size: [b.size[0] - 0.2, b.size[1] - 0.2],
                        };
                        overlap(&line, &inner)
                    };
                    // The first line leaves its box through the room under it, where its layer is higher.
                    assert!(!boxes.iter().any(|b| passes(&b)), "seed {seed}: {line:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_arranged() {
        let Arranged { boxes, ways, size } = arrange(&[], &[]);
        assert_eq!((boxes.len(), ways.len(), size), (0, 0, [0.0, 0.0]));
    }
}
