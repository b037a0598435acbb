! SPDX-License-Identifier: BSD-3-Clause
! The collectives by mpif.h.
program mpif_h
  implicit none
  include 'mpif.h'
  integer, parameter :: ints = 96
  integer, allocatable :: from(:), to(:), counts(:), places(:)
  integer, allocatable :: types(:)
  integer :: absolute
  integer :: near
  integer(kind=MPI_ADDRESS_KIND) :: address
  integer(kind=MPI_ADDRESS_KIND), allocatable :: addresses(:)
  integer :: me, ranks, code, wrong, turn, i
  include 'body.inc'
end program mpif_h
