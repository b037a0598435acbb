! SPDX-License-Identifier: BSD-3-Clause
! The collectives by use mpi.
program use_mpi
  use mpi
  implicit none
  integer, parameter :: ints = 96
  integer, allocatable :: from(:), to(:), counts(:), places(:)
  integer, allocatable :: types(:)
  integer :: absolute
  integer :: near
  integer(kind=MPI_ADDRESS_KIND) :: address
  integer(kind=MPI_ADDRESS_KIND), allocatable :: addresses(:)
  integer :: me, ranks, code, wrong, turn, i
  include 'body.inc'
end program use_mpi
