! The kernel of the Himeno benchmark, as himeno.c: Jacobi's method for the pressure of an incompressible fluid, 34
! flops a point. Fortran's first dimension is the fastest, so the last one is distributed.
!
!   peerway fc -cpp himeno.f90 -O3 -o himeno && peerway run -n 2 -- ./himeno
!
! Sizes: -DMI=129 -DMJ=129 -DMK=257 is size M. Without directives it is a sequential program.
#ifndef MI
#define MI 33
#define MJ 33
#define MK 65
#endif
module grid
  implicit none
  integer, parameter :: steps = 30
  real, parameter :: omega = 0.8
!$xmp nodes n(*)
!$xmp template t(MI)
!$xmp distribute t(block) onto n
  real :: p(MK, MJ, MI), next(MK, MJ, MI), bound(MK, MJ, MI), source(MK, MJ, MI)
  real :: a(MK, MJ, MI, 4), b(MK, MJ, MI, 3), c(MK, MJ, MI, 3)
!$xmp align (*, *, i) with t(i) :: p, next, bound, source
!$xmp align (*, *, i, *) with t(i) :: a, b, c
!$xmp shadow p(0, 0, 1)

contains

  subroutine start
    integer :: i, j, k, m
!$xmp loop (i) on t(i)
!$acc parallel loop collapse(3)
    do i = 1, MI
      do j = 1, MJ
        do k = 1, MK
          do m = 1, 3
            a(k, j, i, m) = 1
            b(k, j, i, m) = 0
            c(k, j, i, m) = 1
          end do
          a(k, j, i, 4) = 1.0/6
          p(k, j, i) = real((i - 1)*(i - 1))/((MI - 1)*(MI - 1))
          source(k, j, i) = 0
          bound(k, j, i) = 1
        end do
      end do
    end do
  end subroutine start

  subroutine jacobi(gosa)
    real(8), intent(out) :: gosa
    integer :: i, j, k
    real :: all, change
    gosa = 0
!$xmp reflect (p) width(0, 0, 1) acc
!$xmp loop (i) on t(i) reduction(+: gosa)
!$acc parallel loop collapse(3) reduction(+: gosa) private(all, change)
    do i = 2, MI - 1
      do j = 2, MJ - 1
        do k = 2, MK - 1
          all = a(k, j, i, 1)*p(k, j, i + 1) + a(k, j, i, 2)*p(k, j + 1, i) + a(k, j, i, 3)*p(k + 1, j, i) &
            + b(k, j, i, 1)*(p(k, j + 1, i + 1) - p(k, j - 1, i + 1) - p(k, j + 1, i - 1) + p(k, j - 1, i - 1)) &
            + b(k, j, i, 2)*(p(k + 1, j + 1, i) - p(k + 1, j - 1, i) - p(k - 1, j + 1, i) + p(k - 1, j - 1, i)) &
            + b(k, j, i, 3)*(p(k + 1, j, i + 1) - p(k + 1, j, i - 1) - p(k - 1, j, i + 1) + p(k - 1, j, i - 1)) &
            + c(k, j, i, 1)*p(k, j, i - 1) + c(k, j, i, 2)*p(k, j - 1, i) + c(k, j, i, 3)*p(k - 1, j, i) &
            + source(k, j, i)
          change = (all*a(k, j, i, 4) - p(k, j, i))*bound(k, j, i)
          gosa = gosa + change*change
          next(k, j, i) = p(k, j, i) + omega*change
        end do
      end do
    end do
!$xmp loop (i) on t(i)
!$acc parallel loop collapse(3)
    do i = 2, MI - 1
      do j = 2, MJ - 1
        do k = 2, MK - 1
          p(k, j, i) = next(k, j, i)
        end do
      end do
    end do
  end subroutine jacobi
end module grid

program himeno
  use, intrinsic :: iso_fortran_env, only: error_unit, int64
  use grid
  implicit none
  real(8) :: first, gosa, seconds
  integer :: step
  integer(int64) :: begin, over, rate
!$acc data create(p, next, bound, source, a, b, c)
  call start
  call jacobi(first)
  gosa = first
  call system_clock(begin, rate)
  do step = 2, steps
    call jacobi(gosa)
  end do
  call system_clock(over)
!$acc end data
  seconds = real(over - begin, 8)/rate
!$xmp task on n(1)
  print '(a, es12.6, a, i0, a)', 'gosa ', gosa, ' after ', steps, ' steps'
  write (error_unit, '(f0.1, a)') 34d-6*(MI - 2d0)*(MJ - 2d0)*(MK - 2d0)*(steps - 1)/seconds, ' MFLOPS'
!$xmp end task
  if (gosa >= first) error stop 1
end program himeno
