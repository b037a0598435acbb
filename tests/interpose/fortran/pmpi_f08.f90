! SPDX-License-Identifier: BSD-3-Clause
! The profiling names by use mpi_f08, which have bindings of their own.
program profiling_names
  use mpi_f08
  implicit none
  integer, parameter :: ints = 96
  integer, allocatable :: from(:), to(:)
  integer :: me, ranks, wrong, turn, i
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  allocate(from(ints * ranks), to(ints * ranks))
  wrong = 0
  do turn = 1, 20
    from = [(me * 100000 + (i - 1) / ints * 1000 + turn, i = 1, ints * ranks)]
    call PMPI_Alltoall(from, ints, MPI_INTEGER, to, ints, MPI_INTEGER, MPI_COMM_WORLD)
    if (any(to /= [((i - 1) / ints * 100000 + me * 1000 + turn, i = 1, ints * ranks)])) wrong = wrong + 1
    call PMPI_Allgather(from, ints, MPI_INTEGER, to, ints, MPI_INTEGER, MPI_COMM_WORLD)
    if (any(to /= [((i - 1) / ints * 100000 + turn, i = 1, ints * ranks)])) wrong = wrong + 1
    call PMPI_Bcast(from, ints, MPI_INTEGER, mod(turn, ranks), MPI_COMM_WORLD)
    if (any(from(1 : ints) /= mod(turn, ranks) * 100000 + turn)) wrong = wrong + 1
  end do
  call MPI_Finalize()
  if (wrong /= 0) stop 1
end program profiling_names
