//! Cutting a program down.

use crate::generate::{Node, Tree};

/// The smallest program, by leaving out parts and replacing blocks by their bodies, of which `fails`
/// still holds.
pub(crate) fn smallest(tree: &Tree, fails: impl Fn(&Tree) -> bool) -> Tree {
    let mut best = tree.clone();
    for which in 0..3 {
        let mut length = body(&mut best, which).len();
        // Long runs first, then single nodes.
        while length > 0 {
            let mut at = 0;
            while at < body(&mut best, which).len() {
                let mut candidate = best.clone();
                let nodes = body(&mut candidate, which);
                let end = nodes.len().min(at + length);
                nodes.drain(at..end);
                if fails(&candidate) {
                    best = candidate;
                } else {
                    at += length;
                }
            }
            length /= 2;
        }
    }
    // Then inside: until nothing more can go.
    loop {
        let before = best.clone();
        for which in 0..3 {
            let mut at = 0;
            while let Some(candidates) = changes(&best, which, at) {
                match candidates.into_iter().find(|candidate| fails(candidate)) {
                    Some(candidate) => best = candidate,
                    None => at += 1,
                }
            }
        }
        if count(&before) == count(&best) {
            return best;
        }
    }
}

fn body(tree: &mut Tree, which: usize) -> &mut Vec<Node> {
    match which {
        0 => &mut tree.kernel,
        n => &mut tree.functions[n - 1],
    }
}

/// What can be tried at the node of that number, counted through all depths; `None` after the last.
fn changes(tree: &Tree, which: usize, at: usize) -> Option<Vec<Tree>> {
    let replacements = {
        let mut probe = tree.clone();
        let mut number = at;
        let node = find(body(&mut probe, which), &mut number)?.clone();
        let mut replacements = vec![Vec::new()];
        match node {
            Node::If(_, then, otherwise) => replacements.extend([then, otherwise]),
            Node::Loop { body, .. } => replacements.push(body),
            Node::Switch(_, arms) => replacements.extend(arms),
            Node::Lines(lines) => {
                // A guard may not matter.
                let plain: Vec<String> = (lines.iter())
                    .map(|line| match line.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
                        Some((_, instruction)) => instruction.to_string(),
                        None => line.clone(),
                    })
                    .collect();
                if plain != lines {
                    replacements.push(vec![Node::Lines(plain)]);
                }
            }
            Node::Break(_) | Node::Leave(_) | Node::Call { .. } => {}
        }
        replacements
    };
    let candidates = replacements.into_iter().map(|replacement| {
        let mut candidate = tree.clone();
        replace(body(&mut candidate, which), &mut { at }, &replacement);
        candidate
    });
    Some(candidates.collect())
}

fn children(node: &mut Node) -> Vec<&mut Vec<Node>> {
    match node {
        Node::If(_, then, otherwise) => vec![then, otherwise],
        Node::Loop { body, .. } => vec![body],
        Node::Switch(_, arms) => arms.iter_mut().collect(),
        _ => Vec::new(),
    }
}

fn find<'a>(nodes: &'a mut [Node], number: &mut usize) -> Option<&'a mut Node> {
    for node in nodes {
        if *number == 0 {
            return Some(node);
        }
        *number -= 1;
        for block in children(node) {
            if let Some(found) = find(block, number) {
                return Some(found);
            }
        }
    }
    None
}

/// Puts nodes in the place of the one of that number; whether it was found.
fn replace(nodes: &mut Vec<Node>, number: &mut usize, replacement: &[Node]) -> bool {
    for i in 0..nodes.len() {
        if *number == 0 {
            nodes.splice(i..=i, replacement.iter().cloned());
            return true;
        }
        *number -= 1;
        if children(&mut nodes[i]).into_iter().any(|block| replace(block, number, replacement)) {
            return true;
        }
    }
    false
}

fn count(tree: &Tree) -> usize {
    fn nodes(list: &mut [Node]) -> usize {
        list.iter_mut()
            .map(|node| 1 + children(node).into_iter().map(|block| nodes(block)).sum::<usize>())
            .sum()
    }
    let mut tree = tree.clone();
    (0..3).map(|which| nodes(body(&mut tree, which))).sum()
}

/// A failure that one line is enough for is cut down to that line, wherever it stands.
#[test]
fn finds_the_line() {
    let line = |text: &str| Node::Lines(vec![text.to_string()]);
    let inner = Node::Loop { count: String::new(), max: 2, body: vec![line("a"), line("bad"), line("b")] };
    let tree = Tree {
        functions: [vec![line("c")], vec![line("d")]],
        kernel: vec![line("e"), Node::If(String::new(), vec![line("f")], vec![inner]), line("g")],
    };
    fn has(nodes: &[Node]) -> bool {
        nodes.iter().any(|node| match node {
            Node::Lines(lines) => lines == &["bad"],
            Node::If(_, then, otherwise) => has(then) || has(otherwise),
            Node::Loop { body, .. } => has(body),
            _ => false,
        })
    }
    let small = smallest(&tree, |tree| has(&tree.kernel));
    assert!(small.functions.iter().all(Vec::is_empty));
    assert!(matches!(&small.kernel[..], [Node::Lines(lines)] if lines == &["bad"]));
}
