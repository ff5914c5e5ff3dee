// SPDX-License-Identifier: Apache-2.0
// Benchmarks of `tombolo bench svp` with goroutines: fib and skynet as the usual programs have them
// (a goroutine a call, a channel for the results), searches of trees likewise, a loop in a goroutine for
// each processor or in blocks, a chain of goroutines, and a counter under a mutex. A line of JSON for each:
// go -workers N -rounds N [-quick].
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

var workers = flag.Int("workers", 1, "processors that run goroutines")
var rounds = flag.Int("rounds", 3, "samples of each benchmark")
var quick = flag.Bool("quick", false, "small sizes")

func fib(n int, out chan<- int) {
	if n < 2 {
		out <- n
		return
	}
	one := make(chan int, 1)
	two := make(chan int, 1)
	go fib(n-1, one)
	fib(n-2, two)
	out <- <-one + <-two
}

func skynet(number, size int, out chan<- int) {
	if size == 1 {
		out <- number
		return
	}
	parts := make(chan int, 10)
	for i := 0; i < 10; i++ {
		go skynet(number+i*(size/10), size/10, parts)
	}
	sum := 0
	for i := 0; i < 10; i++ {
		sum += <-parts
	}
	out <- sum
}

// The trees of svp/bench/tree_search.cpp, node by node.
func mixed(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB
	return x ^ (x >> 31)
}

type node struct {
	state uint64
	depth int
}

func (n node) child(i int) node {
	return node{mixed(n.state + uint64(i)*0x632BE59BD9B4E019), n.depth + 1}
}
func (n node) fraction() float64 { return float64(n.state>>11) * 0x1p-53 }

type tree func(n node) int

func geometric(deepest int) tree {
	const most = 4.0 // on average
	return func(n node) int {
		if n.depth >= deepest {
			return 0
		}
		return int(math.Log(1-n.fraction()) / math.Log(1-1/(1+most)))
	}
}

func binomial(ofRoot int) tree {
	const likely = 0.124875
	return func(n node) int {
		if n.depth == 0 {
			return ofRoot
		}
		if n.fraction() < likely {
			return 8
		}
		return 0
	}
}

func (t tree) plain(n node) int {
	nodes := 1
	for i, children := 0, t(n); i < children; i++ {
		nodes += t.plain(n.child(i))
	}
	return nodes
}

func (t tree) search(n node) int {
	children := t(n)
	if children == 0 {
		return 1
	}
	return 1 + t.searchChildren(n, 0, children)
}

func (t tree) searchChildren(n node, from, to int) int {
	if to-from == 1 {
		return t.search(n.child(from))
	}
	middle := from + (to-from)/2
	upper := make(chan int, 1)
	go func() { upper <- t.searchChildren(n, middle, to) }()
	lower := t.searchChildren(n, from, middle)
	return lower + <-upper
}

// With the nodes that the other programs count in the tree.
func search(benchmark string, t tree, seed uint64, nodes int) {
	root := node{mixed(seed), 0}
	if t.plain(root) != nodes {
		fmt.Fprintf(os.Stderr, "%s: another tree\n", benchmark)
		os.Exit(1)
	}
	measure(benchmark, nodes, func() bool { return t.search(root) == nodes })
}

// Each goroutine takes the next block until there is none.
func loop(values []float32, block int) {
	var next atomic.Int64
	var all sync.WaitGroup
	for w := 0; w < *workers; w++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for {
				limit := int(next.Add(int64(block)))
				first := limit - block
				if first >= len(values) {
					return
				}
				if limit > len(values) {
					limit = len(values)
				}
				part := values[first:limit]
				for i, v := range part {
					part[i] = float32(math.Sqrt(float64(v))) + 1
				}
			}
		}()
	}
	all.Wait()
}

// All threads wait in turn for the one before.
func chain(threads int) int {
	before := make(chan int, 1)
	before <- 0
	for i := 0; i < threads; i++ {
		after := make(chan int, 1)
		go func(i int, in <-chan int, out chan<- int) { out <- <-in + i }(i, before, after)
		before = after
	}
	return <-before
}

func counter(additions int) int {
	var mutex sync.Mutex
	var all sync.WaitGroup
	count := 0
	for w := 0; w < *workers; w++ {
		all.Add(1)
		go func() {
			for i := 0; i < additions / *workers; i++ {
				mutex.Lock()
				count++
				mutex.Unlock()
			}
			all.Done()
		}()
	}
	all.Wait()
	return count
}

func measure(benchmark string, tasks int, run func() bool) {
	least := 100 * time.Millisecond
	if *quick {
		least = 2 * time.Millisecond
	}
	seconds := []float64{}
	run() // wakes workers, and touches memory
	for round := 0; round < *rounds; round++ {
		start, runs := time.Now(), 0
		for ; runs == 0 || time.Since(start) < least; runs++ {
			if !run() {
				fmt.Fprintf(os.Stderr, "%s: a wrong result\n", benchmark)
				os.Exit(1)
			}
		}
		seconds = append(seconds, time.Since(start).Seconds()/float64(runs))
	}
	line, _ := json.Marshal(map[string]any{"benchmark": benchmark, "runtime": "Go", "workers": *workers,
		"tasks": tasks, "seconds": seconds})
	fmt.Println(string(line))
}

func main() {
	flag.Parse()
	runtime.GOMAXPROCS(*workers)
	n, calls, number := 24, 150049, 46368
	leaves, threads, additions := 10000, 100000, 20000
	deepest, nodesOfT1, ofRoot, nodesOfT3, indices := 6, 4071, 200, 8601, 1000000
	if !*quick {
		n, calls, number = 27, 635621, 196418
		leaves, threads, additions = 1000000, 1000000, 200000
		deepest, nodesOfT1, ofRoot, nodesOfT3, indices = 11, 4159510, 2000, 4139777, 10000000
	}
	result := make(chan int, 1)
	measure("fib", calls, func() bool { fib(n, result); return <-result == number })
	measure("skynet", leaves, func() bool {
		skynet(0, leaves, result)
		return <-result == leaves*(leaves-1)/2
	})
	search("tree T1", geometric(deepest), 89, nodesOfT1)
	search("tree T3", binomial(ofRoot), 79, nodesOfT3)
	values := make([]float32, indices)
	for i := range values {
		values[i] = 1.5
	}
	whole := (indices + *workers - 1) / *workers
	for _, block := range []int{whole, 1, 16, 256, 4096} {
		benchmark := "loop"
		if block != whole {
			benchmark = fmt.Sprintf("loop, blocks of %d", block)
		}
		measure(benchmark, indices, func() bool { loop(values, block); return values[indices/2] >= 1 })
	}
	measure("chain", threads, func() bool { return chain(threads) == threads*(threads-1)/2 })
	measure("counter", additions, func() bool {
		return counter(additions) == additions / *workers * *workers
	})
}
