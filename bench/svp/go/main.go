// SPDX-License-Identifier: Apache-2.0
// Benchmarks of `tombolo bench svp` with goroutines: fib and skynet as the usual programs have them
// (a goroutine a call, a channel for the results), a chain of goroutines, and a counter under a
// mutex. A line of JSON for each: go -workers N -rounds N [-quick].
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
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
	if !*quick {
		n, calls, number = 27, 635621, 196418
		leaves, threads, additions = 1000000, 1000000, 200000
	}
	result := make(chan int, 1)
	measure("fib", calls, func() bool { fib(n, result); return <-result == number })
	measure("skynet", leaves, func() bool {
		skynet(0, leaves, result)
		return <-result == leaves*(leaves-1)/2
	})
	measure("chain", threads, func() bool { return chain(threads) == threads*(threads-1)/2 })
	measure("counter", additions, func() bool {
		return counter(additions) == additions / *workers * *workers
	})
}
