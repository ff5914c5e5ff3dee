// SPDX-License-Identifier: Apache-2.0
// Benchmarks of `tombolo bench svp` with Rayon: fib and the searches of trees by join(), skynet, n-queens
// and a loop by parallel iterators, which divide it as they like or into blocks. A line of JSON for each:
// rayon --workers N --rounds N [--quick].
use rayon::prelude::*;
use std::time::Instant;

struct Settings {
    workers: usize,
    rounds: usize,
    quick: bool,
}

fn plain(n: u64) -> u64 {
    if n < 2 { n } else { plain(n - 1) + plain(n - 2) }
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (one, two) = rayon::join(|| fib(n - 1), || fib(n - 2));
    one + two
}

fn skynet(number: u64, size: u64) -> u64 {
    if size == 1 {
        return number;
    }
    (0..10u64).into_par_iter().map(|i| skynet(number + i * (size / 10), size / 10)).sum()
}

#[derive(Clone, Copy)]
struct Board {
    all: u32,
    columns: u32,
    left: u32,
    right: u32,
}

impl Board {
    fn queens(&self) -> Vec<u32> {
        let mut free = self.all & !(self.columns | self.left | self.right);
        let mut found = Vec::new();
        while free != 0 {
            found.push(free & free.wrapping_neg());
            free &= free - 1;
        }
        found
    }
    fn with(&self, queen: u32) -> Board {
        Board {
            all: self.all,
            columns: self.columns | queen,
            left: ((self.left | queen) << 1) & self.all,
            right: (self.right | queen) >> 1,
        }
    }
    // Solutions, and queens placed.
    fn plain(&self) -> (u64, u64) {
        if self.columns == self.all {
            return (1, 0);
        }
        let queens = self.queens();
        queens.iter().fold((0, queens.len() as u64), |sum, queen| {
            let (solutions, placed) = self.with(*queen).plain();
            (sum.0 + solutions, sum.1 + placed)
        })
    }
    fn solutions(&self) -> u64 {
        if self.columns == self.all {
            return 1;
        }
        self.queens().par_iter().map(|queen| self.with(*queen).solutions()).sum()
    }
}

// The trees of svp/bench/tree_search.cpp, node by node.
fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E3779B97F4A7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D049BB133111EB);
    x ^ (x >> 31)
}

#[derive(Clone, Copy)]
struct Node {
    state: u64,
    depth: u32,
}

impl Node {
    fn root(seed: u64) -> Node {
        Node { state: mixed(seed), depth: 0 }
    }
    fn child(&self, i: u64) -> Node {
        let state = mixed(self.state.wrapping_add(i.wrapping_mul(0x632BE59BD9B4E019)));
        Node { state, depth: self.depth + 1 }
    }
    fn fraction(&self) -> f64 {
        (self.state >> 11) as f64 / (1u64 << 53) as f64
    }
}

trait Tree: Sync {
    fn children(&self, node: &Node) -> u64;

    fn plain(&self, node: &Node) -> u64 {
        1 + (0..self.children(node)).map(|i| self.plain(&node.child(i))).sum::<u64>()
    }
    fn search(&self, node: &Node) -> u64 {
        let children = self.children(node);
        1 + if children == 0 { 0 } else { self.search_children(node, 0, children) }
    }
    fn search_children(&self, node: &Node, from: u64, to: u64) -> u64 {
        if to - from == 1 {
            return self.search(&node.child(from));
        }
        let middle = from + (to - from) / 2;
        let (lower, upper) =
            rayon::join(|| self.search_children(node, from, middle), || self.search_children(node, middle, to));
        lower + upper
    }
}

struct Geometric {
    deepest: u32,
}

impl Tree for Geometric {
    fn children(&self, node: &Node) -> u64 {
        const MOST: f64 = 4.0; // on average
        if node.depth >= self.deepest {
            return 0;
        }
        ((1.0 - node.fraction()).ln() / (1.0 - 1.0 / (1.0 + MOST)).ln()) as u64
    }
}

struct Binomial {
    of_root: u64,
}

impl Tree for Binomial {
    fn children(&self, node: &Node) -> u64 {
        const LIKELY: f64 = 0.124875;
        if node.depth == 0 {
            return self.of_root;
        }
        if node.fraction() < LIKELY { 8 } else { 0 }
    }
}

// With the nodes that the other programs count in the tree.
fn search(settings: &Settings, benchmark: &str, tree: &impl Tree, seed: u64, nodes: u64) {
    let root = Node::root(seed);
    assert!(tree.plain(&root) == nodes, "{benchmark}: another tree");
    measure(settings, benchmark, nodes, || tree.search(&root) == nodes);
}

fn measure(settings: &Settings, benchmark: &str, tasks: u64, mut run: impl FnMut() -> bool) {
    let least = if settings.quick { 0.002 } else { 0.1 };
    let mut seconds = Vec::new();
    assert!(run(), "{benchmark}: a wrong result"); // wakes workers, and touches memory
    for _ in 0..settings.rounds {
        let start = Instant::now();
        let mut runs = 0;
        while runs == 0 || start.elapsed().as_secs_f64() < least {
            assert!(run(), "{benchmark}: a wrong result");
            runs += 1;
        }
        seconds.push(start.elapsed().as_secs_f64() / runs as f64);
    }
    println!(
        "{{\"benchmark\": \"{benchmark}\", \"runtime\": \"Rayon\", \"workers\": {}, \"tasks\": {tasks}, \
         \"seconds\": {seconds:?}}}",
        settings.workers
    );
}

fn all(settings: &Settings) {
    let n = if settings.quick { 24 } else { 32 };
    let expected = plain(n);
    measure(settings, "fib", 2 * plain(n + 1) - 1, || fib(n) == expected);

    let leaves = if settings.quick { 10_000 } else { 1_000_000 };
    measure(settings, "skynet", leaves, || skynet(0, leaves) == leaves * (leaves - 1) / 2);

    let (deepest, nodes) = if settings.quick { (6, 4_071) } else { (11, 4_159_510) };
    search(settings, "tree T1", &Geometric { deepest }, 89, nodes);
    let (of_root, nodes) = if settings.quick { (200, 8_601) } else { (2000, 4_139_777) };
    search(settings, "tree T3", &Binomial { of_root }, 79, nodes);

    let board = Board { all: (1 << if settings.quick { 8 } else { 11 }) - 1, columns: 0, left: 0, right: 0 };
    let (solutions, placed) = board.plain();
    measure(settings, "queens", placed, || board.solutions() == solutions);

    let indices = if settings.quick { 1_000_000 } else { 10_000_000 };
    let mut values = vec![1.5f32; indices];
    measure(settings, "loop", indices as u64, || {
        values.par_iter_mut().for_each(|v| *v = v.sqrt() + 1.0);
        values[indices / 2] > 1.0
    });
    for block in [1, 16, 256, 4096] {
        measure(settings, &format!("loop, blocks of {block}"), indices as u64, || {
            values.par_chunks_mut(block).with_max_len(1).for_each(|part| {
                part.iter_mut().for_each(|v| *v = v.sqrt() + 1.0);
            });
            values[indices / 2] > 1.0
        });
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let after = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1)?.parse::<usize>().ok()
    };
    let settings = Settings {
        workers: after("--workers").unwrap_or(1),
        rounds: after("--rounds").unwrap_or(3),
        quick: words.iter().any(|word| word == "--quick"),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(settings.workers).build().unwrap();
    pool.install(|| all(&settings));
}
