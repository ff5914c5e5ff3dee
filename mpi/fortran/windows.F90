! SPDX-License-Identifier: Apache-2.0
! Windows from Fortran with `use mpi`, or with -DF08 `use mpi_f08`: every kind of epoch, flavor and predefined attribute.
! Prints "No Errors" on rank 0, or the failed expectations. Wants the separate memory model only.
program windows
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer, c_loc, c_intptr_t
  implicit none
  integer, parameter :: n = 64
#ifdef F08
  type(MPI_Win) :: win
  type(MPI_Group) :: world, partner
#else
  integer :: win, world, partner
#endif
  type(c_ptr) :: base
  integer, pointer :: cells(:)
  integer, target :: own(n)
  integer :: rank, ranks, right, left, errors, all, i, sent(n), got(n), one, former, ierror
  integer(MPI_ADDRESS_KIND) :: bytes, at

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  right = mod(rank + 1, ranks)
  left = mod(rank + ranks - 1, ranks)
  errors = 0
  bytes = n * 4_MPI_ADDRESS_KIND

  call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierror)
  call c_f_pointer(base, cells, [n])
  call try(transfer(base, 0_c_intptr_t), MPI_WIN_FLAVOR_ALLOCATE)
  call MPI_Win_free(win, ierror)

  own = 0
  cells => own
  call MPI_Win_create(own, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierror)
  call try(transfer(c_loc(own), 0_c_intptr_t), MPI_WIN_FLAVOR_CREATE)
  call MPI_Win_free(win, ierror)

  call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierror)
  call c_f_pointer(base, cells, [n])
  call try(transfer(base, 0_c_intptr_t), MPI_WIN_FLAVOR_SHARED)
  call MPI_Win_free(win, ierror)

  call MPI_Allreduce(errors, all, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (rank == 0 .and. all == 0) print *, 'No Errors'
  call MPI_Finalize(ierror)
  if (all /= 0) stop 1

contains

  subroutine expect(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) return
    errors = errors + 1
    print *, 'rank', rank, ': ', what
  end subroutine

  subroutine try(address, flavor)
    integer(c_intptr_t), intent(in) :: address
    integer, intent(in) :: flavor
    integer(MPI_ADDRESS_KIND) :: value
    logical :: found

    call MPI_Win_get_attr(win, MPI_WIN_BASE, value, found, ierror)
    call expect(found .and. value == address, 'MPI_WIN_BASE')
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, found, ierror)
    call expect(found .and. value == bytes, 'MPI_WIN_SIZE')
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, found, ierror)
    call expect(found .and. value == 4, 'MPI_WIN_DISP_UNIT')
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, found, ierror)
    call expect(found .and. value == flavor, 'MPI_WIN_CREATE_FLAVOR')
    call MPI_Win_get_attr(win, MPI_WIN_MODEL, value, found, ierror)
    call expect(found .and. (value == MPI_WIN_UNIFIED .or. value == MPI_WIN_SEPARATE), 'MPI_WIN_MODEL')

    at = 0
    sent = [(1000 * rank + i, i = 1, n)]
    call MPI_Win_fence(0, win, ierror)
    call MPI_Put(sent, n, MPI_INTEGER, right, at, n, MPI_INTEGER, win, ierror)
    call MPI_Win_fence(0, win, ierror)
    call expect(all_are(cells, left), 'put in fence epochs')
    call MPI_Get(got, n, MPI_INTEGER, right, at, n, MPI_INTEGER, win, ierror)
    call MPI_Win_fence(MPI_MODE_NOSUCCEED, win, ierror)
    call expect(all_are(got, rank), 'get in fence epochs')

    call MPI_Win_get_group(win, world, ierror)
    call MPI_Group_incl(world, 1, [left], partner, ierror)
    call MPI_Win_post(partner, 0, win, ierror)
    call MPI_Group_free(partner, ierror)
    call MPI_Group_incl(world, 1, [right], partner, ierror)
    call MPI_Win_start(partner, 0, win, ierror)
    sent = sent + 7
    call MPI_Put(sent, n, MPI_INTEGER, right, at, n, MPI_INTEGER, win, ierror)
    call MPI_Win_complete(win, ierror)
    call MPI_Win_wait(win, ierror)
    call MPI_Group_free(partner, ierror)
    call MPI_Group_free(world, ierror)
    call expect(all_are(cells - 7, left), 'put between start and complete')

    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win, ierror)
    cells = 0
    call MPI_Win_unlock(rank, win, ierror)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    one = 1
    call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win, ierror)
    do i = 1, 100
      call MPI_Fetch_and_op(one, former, MPI_INTEGER, 0, at, MPI_SUM, win, ierror)
      call MPI_Win_flush(0, win, ierror)
    end do
    at = 1
    call MPI_Accumulate(one, 1, MPI_INTEGER, 0, at, 1, MPI_INTEGER, MPI_SUM, win, ierror)
    call MPI_Win_unlock(0, win, ierror)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    call MPI_Win_lock_all(0, win, ierror)
    at = 0
    call MPI_Get(got, 2, MPI_INTEGER, 0, at, 2, MPI_INTEGER, win, ierror)
    call MPI_Win_flush_all(win, ierror)
    call MPI_Win_unlock_all(win, ierror)
    call expect(got(1) == 100 * ranks .and. got(2) == ranks, 'fetch_and_op and accumulate')
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
  end subroutine

  logical function all_are(values, of)
    integer, intent(in) :: values(n), of
    all_are = all_equal(values, [(1000 * of + i, i = 1, n)])
  end function

  logical function all_equal(a, b)
    integer, intent(in) :: a(n), b(n)
    all_equal = maxval(abs(a - b)) == 0
  end function
end program
