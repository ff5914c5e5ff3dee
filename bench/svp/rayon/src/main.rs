// SPDX-License-Identifier: Apache-2.0
// Benchmarks of `tombolo bench svp` with Rayon: fib by join(), skynet, n-queens and a loop by parallel
// iterators. A line of JSON for each: rayon --workers N --rounds N [--quick].
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

fn measure(settings: &Settings, benchmark: &str, tasks: u64, mut run: impl FnMut() -> bool) {
    let least = if settings.quick { 0.002 } else { 0.1 };
    let mut seconds = Vec::new();
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

    let board = Board { all: (1 << if settings.quick { 8 } else { 11 }) - 1, columns: 0, left: 0, right: 0 };
    let (solutions, placed) = board.plain();
    measure(settings, "queens", placed, || board.solutions() == solutions);

    let indices = if settings.quick { 1_000_000 } else { 10_000_000 };
    let mut values = vec![1.5f32; indices];
    measure(settings, "loop", indices as u64, || {
        values.par_iter_mut().for_each(|v| *v = v.sqrt() + 1.0);
        values[indices / 2] > 1.0
    });
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
