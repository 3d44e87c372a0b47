! Laplace's equation on a square by Jacobi's method, as laplace.c: the mean of four neighbours, until the change
! is small.
!
!   peerway fc laplace.f90 -O2 -o laplace && peerway run -n 4 -- ./laplace
!
! The boundary holds the harmonic function x^2 - y^2, which is its own mean of neighbours: the inner points
! converge to it, and after enough steps the error is checked. Without directives it is a sequential program.
program laplace
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  integer, parameter :: n = 64, steps = 20000
  real(8), parameter :: limit = 1d-13
  real(8) :: u(n, n), next(n, n)
!$xmp nodes p(*)
!$xmp template t(n)
!$xmp distribute t(block) onto p
!$xmp align u(*, j) with t(j)
!$xmp align next(*, j) with t(j)
!$xmp shadow u(0, 1)
  real(8) :: change, error
  integer :: i, j, done
  integer(8) :: start, now, rate

!$acc data copyout(u) create(next)
!$xmp loop (j) on t(j)
!$acc parallel loop collapse(2)
  do j = 1, n
    do i = 1, n
      if (i == 1 .or. j == 1 .or. i == n .or. j == n) then
        u(i, j) = exact(i, j)
      else
        u(i, j) = 0
      end if
    end do
  end do

  call system_clock(start, rate)
  do done = 1, steps
!$xmp reflect (u) acc
    change = 0
!$xmp loop (j) on t(j) reduction(max: change)
!$acc parallel loop collapse(2) reduction(max: change)
    do j = 2, n - 1
      do i = 2, n - 1
        next(i, j) = 0.25d0 * (u(i, j - 1) + u(i, j + 1) + u(i - 1, j) + u(i + 1, j))
        change = max(change, abs(next(i, j) - u(i, j)))
      end do
    end do
!$xmp loop (j) on t(j)
!$acc parallel loop collapse(2)
    do j = 2, n - 1
      do i = 2, n - 1
        u(i, j) = next(i, j)
      end do
    end do
    if (change <= limit) exit
  end do
  call system_clock(now)
!$acc end data

  error = 0
!$xmp loop (j) on t(j) reduction(max: error)
  do j = 1, n
    do i = 1, n
      error = max(error, abs(u(i, j) - exact(i, j)))
    end do
  end do

!$xmp task on p(1)
  print '(i0, a, es9.3, a, es9.3)', min(done, steps), ' steps, change ', change, ', error ', error
  write (error_unit, '(f0.1, a)') 1d-6 * min(done, steps) * (n - 2d0)**2 * rate / (now - start), &
    ' million points a second'
!$xmp end task
  if (change <= limit .and. error >= 1d-9) error stop 1

contains

  pure real(8) function exact(i, j)
    integer, intent(in) :: i, j
    real(8) :: x, y
    x = (j - 1) / real(n - 1, 8)
    y = (i - 1) / real(n - 1, 8)
    exact = x * x - y * y
  end function exact
end program laplace
