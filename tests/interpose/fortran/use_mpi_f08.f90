! SPDX-License-Identifier: BSD-3-Clause
! The collectives by use mpi_f08.
program use_mpi_f08
  use mpi_f08
  implicit none
  integer, parameter :: ints = 96
  integer, allocatable :: from(:), to(:), counts(:), places(:)
  type(MPI_Datatype), allocatable :: types(:)
  type(MPI_Datatype) :: absolute
  type(MPI_Comm) :: near
  integer(kind=MPI_ADDRESS_KIND) :: address
  integer(kind=MPI_ADDRESS_KIND), allocatable :: addresses(:)
  integer :: me, ranks, code, wrong, turn, i
  include 'body.inc'
end program use_mpi_f08
