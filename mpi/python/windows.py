# SPDX-License-Identifier: Apache-2.0
"""Windows from Python with mpi4py: flavors, attributes, the three kinds of epochs.

Prints "No Errors" on rank 0, or fails. Wants the separate memory model only.
"""

import array

from mpi4py import MPI

N = 64
world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
left, right = (rank - 1) % ranks, (rank + 1) % ranks


def row(of: int) -> array.array:
    return array.array("q", (1000 * of + i for i in range(N)))


def numbers(memory) -> list[int]:
    return list(memoryview(memory).cast("B").cast("q"))


def exercise(window: MPI.Win, memory, flavor: int) -> None:
    assert window.Get_attr(MPI.WIN_SIZE) == 8 * N
    assert window.Get_attr(MPI.WIN_DISP_UNIT) == 8
    assert window.Get_attr(MPI.WIN_CREATE_FLAVOR) == flavor
    assert window.Get_attr(MPI.WIN_MODEL) in (MPI.WIN_UNIFIED, MPI.WIN_SEPARATE)
    window.Fence()
    window.Put(row(rank), right)
    window.Fence()
    assert numbers(memory) == row(left).tolist()
    got = array.array("q", bytes(8 * N))
    window.Get(got, right)
    window.Fence(MPI.MODE_NOSUCCEED)
    assert got == row(rank)

    group = window.Get_group()
    window.Post(group.Incl([left]))
    window.Start(group.Incl([right]))
    window.Put(row(rank + 7), right)
    window.Complete()
    window.Wait()
    assert numbers(memory) == row(left + 7).tolist()

    window.Lock(rank)
    memoryview(memory).cast("B")[:] = bytes(8 * N)
    window.Unlock(rank)
    world.Barrier()
    one, former = array.array("q", [1]), array.array("q", [0])
    window.Lock(0, MPI.LOCK_SHARED)
    for _ in range(100):
        window.Fetch_and_op(one, former, 0, 0, MPI.SUM)
        window.Flush(0)
    window.Accumulate(one, 0, (1, 1, MPI.INT64_T), MPI.SUM)
    request = window.Rput(row(rank)[:1], 0, (2 + rank, 1, MPI.INT64_T))
    request.Wait()
    window.Unlock(0)
    world.Barrier()
    window.Lock_all()
    window.Get(got, 0)
    window.Flush_all()
    window.Unlock_all()
    assert got[:2].tolist() == [100 * ranks, ranks]
    assert got[2 : 2 + ranks].tolist() == [1000 * other for other in range(ranks)]
    world.Barrier()
    window.Free()


window = MPI.Win.Allocate(8 * N, 8, comm=world)
exercise(window, window.tomemory(), MPI.WIN_FLAVOR_ALLOCATE)
own = bytearray(8 * N)
exercise(MPI.Win.Create(own, 8, comm=world), own, MPI.WIN_FLAVOR_CREATE)
window = MPI.Win.Allocate_shared(8 * N, 8, comm=world)
exercise(window, window.tomemory(), MPI.WIN_FLAVOR_SHARED)
if rank == 0:
    print(" No Errors")
