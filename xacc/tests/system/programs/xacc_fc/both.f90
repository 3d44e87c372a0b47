! A program of Fortran and C (both.c): each has directives, arrays and kernels of its own.
program both
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    function sum_of_squares(n) bind(C) result(total)
      import :: c_int, c_double
      integer(c_int), value :: n
      real(c_double) :: total
    end function sum_of_squares
  end interface
!$xmp nodes p(*)
!$xmp template t(100)
!$xmp distribute t(block) onto p
  real(8) :: a(100), total
!$xmp align a(i) with t(i)
  integer :: i
!$xmp loop on t(i)
!$acc parallel loop
  do i = 1, 100
    a(i) = (i - 1)**2
  end do
  total = 0
!$xmp loop on t(i) reduction(+: total)
!$acc parallel loop reduction(+: total)
  do i = 1, 50
    total = total + a(i)
  end do
  total = total - sum_of_squares(50)
!$xmp task on p(1)
  print '(f8.1)', total
!$xmp end task
end program both
