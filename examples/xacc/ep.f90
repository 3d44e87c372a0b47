! NPB's EP: pairs of Gaussian deviates, made from uniform random numbers and counted by their size.
!
!   peerway fc -cpp ep.f90 -O3 -o ep && peerway run -n 4 ./ep     (class S; -DCLASS_W, _A, _B: larger ones)
!
! Each batch of numbers begins at its own place in one sequence, so nodes need nothing of each other until the
! end. The numbers follow the report RNR-94-007; the sums are checked against the values that NASA publishes.
module random_numbers
  implicit none
  integer, parameter :: dp = kind(1d0), long = selected_int_kind(18)
  integer(long), parameter :: multiplier = 1220703125_long ! 5**13
contains
  ! a * x modulo 2**46, by halves of 23 bits: nothing exceeds 2**47
  pure integer(long) function product46(a, x)
    integer(long), intent(in) :: a, x
    integer(long), parameter :: mask = 8388607_long
    integer(long) :: low_a, low_x, middle
    low_a = iand(a, mask)
    low_x = iand(x, mask)
    middle = iand(shiftr(a, 23)*low_x + low_a*shiftr(x, 23), mask)
    product46 = iand(shiftl(middle, 23) + low_a*low_x, 70368744177663_long)
  end function product46

  ! the number that comes `count` places behind x in the sequence
  pure integer(long) function skipped(x, count)
    integer(long), intent(in) :: x, count
    integer(long) :: power, left
    skipped = x
    power = multiplier
    left = count
    do while (left > 0)
      if (mod(left, 2_long) == 1_long) skipped = product46(power, skipped)
      power = product46(power, power)
      left = left/2
    end do
  end function skipped
end module random_numbers

program ep
  use random_numbers
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
#if defined CLASS_B
  integer, parameter :: size = 30
  real(dp), parameter :: published(2) = [4.033815542441498d4, -2.660669192809235d4]
#elif defined CLASS_A
  integer, parameter :: size = 28
  real(dp), parameter :: published(2) = [-4.295875165629892d3, -1.580732573678431d4]
#elif defined CLASS_W
  integer, parameter :: size = 25
  real(dp), parameter :: published(2) = [-2.863319731645753d3, -6.320053679109499d3]
#else
  integer, parameter :: size = 24
  real(dp), parameter :: published(2) = [-3.247834652034740d3, -6.958407078382297d3]
#endif
  integer, parameter :: pairs = 2**10, batches = 2**(size - 10)
  integer :: batch, i, level, counts(0:9), own(0:9)
  integer(long) :: number
  real(dp) :: x, y, square, factor, scale, sum_x, sum_y, error
  integer(long) :: start, now, rate
!$xmp nodes p(*)
!$xmp template all_batches(0:batches - 1)
!$xmp distribute all_batches(block) onto p

  scale = 2/2d0**46
  counts = 0
  sum_x = 0
  sum_y = 0
!$acc data copy(counts)
  call system_clock(start, rate)
!$xmp loop (batch) on all_batches(batch) reduction(+: sum_x, sum_y)
!$acc parallel loop private(own) reduction(+: sum_x, sum_y)
  do batch = 0, batches - 1
    do level = 0, 9
      own(level) = 0
    end do
    number = skipped(271828183_long, 2_long*pairs*batch)
    do i = 1, pairs
      number = product46(multiplier, number)
      x = scale*number - 1
      number = product46(multiplier, number)
      y = scale*number - 1
      square = x*x + y*y
      if (square <= 1) then
        factor = sqrt(-2*log(square)/square)
        x = x*factor
        y = y*factor
        level = int(max(abs(x), abs(y)))
        own(level) = own(level) + 1
        sum_x = sum_x + x
        sum_y = sum_y + y
      end if
    end do
    do level = 0, 9
!$acc atomic
      counts(level) = counts(level) + own(level)
    end do
  end do
!$acc end data
!$xmp reduction (+: counts)
  call system_clock(now)

  error = max(abs(sum_x/published(1) - 1), abs(sum_y/published(2) - 1))
!$xmp task on p(1)
  print '(a, i0, a, 10i10)', 'pairs ', sum(counts), ', by size', counts
  print '(a, 2es23.14, 2a)', 'sums', sum_x, sum_y, ', ', trim(merge('as published    ', 'not as published', error <= 1d-8))
  write (error_unit, '(f0.3, a)') real(now - start, dp)/rate, ' s'
!$xmp end task
  if (.not. error <= 1d-8) error stop 1
end program ep
