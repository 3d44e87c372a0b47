! NPB's CG: the smallest eigenvalue of a sparse random matrix by inverse iteration with conjugate gradients.
!
!   peerway fc -cpp cg.f90 -O3 -o cg && peerway run -n 4 ./cg     (class S; -DCLASS_W, _A, _B: larger ones)
!
! Rows and vectors are distributed; gmove brings the vector that a product needs whole to each node. The matrix
! follows the report NAS-95-020; zeta is checked against the value that NASA publishes.
module problem
  implicit none
  integer, parameter :: dp = kind(1d0), long = selected_int_kind(18)
#if defined CLASS_B
  integer, parameter :: na = 75000, nonzer = 13, iterations = 75
  real(dp), parameter :: shift = 60, published = 22.712745482631d0
#elif defined CLASS_A
  integer, parameter :: na = 14000, nonzer = 11, iterations = 15
  real(dp), parameter :: shift = 20, published = 17.130235054029d0
#elif defined CLASS_W
  integer, parameter :: na = 7000, nonzer = 8, iterations = 15
  real(dp), parameter :: shift = 12, published = 10.362595087124d0
#else
  integer, parameter :: na = 1400, nonzer = 7, iterations = 15
  real(dp), parameter :: shift = 10, published = 8.5971775078648d0
#endif
  integer, parameter :: steps = 25
end module problem

! The matrix, the same on each node, in compressed rows.
module matrix
  use problem
  implicit none
  integer :: first(na + 1)
  integer, allocatable :: column(:)
  real(dp), allocatable :: element(:)
  integer(long), private :: seed = 314159265_long
contains
  ! the next number of x' = 5**13 x mod 2**46, divided by 2**46
  real(dp) function random()
    integer(long) :: middle
    integer(long), parameter :: half = 8388608_long, multiplier = 1220703125_long
    integer(long), parameter :: low = mod(multiplier, half), high = (multiplier - low)/half
    middle = mod(high*mod(seed, half) + low*(seed/half), half)
    seed = iand(middle*half + low*mod(seed, half), half*half - 1)
    random = seed/2d0**46
  end function random

  ! a row of the factor: nonzer random elements, and 0.5 on the diagonal
  subroutine sparse_row(row, places, values, count)
    integer, intent(in) :: row
    integer, intent(out) :: places(nonzer + 1), count
    real(dp), intent(out) :: values(nonzer + 1)
    integer :: power, place
    real(dp) :: value
    power = 1
    do while (power < na)
      power = 2*power
    end do
    count = 0
    do while (count < nonzer)
      value = random()
      place = int(power*random()) + 1
      if (place > na .or. any(places(:count) == place)) cycle
      count = count + 1
      places(count) = place
      values(count) = value
    end do
    do place = 1, count
      if (places(place) == row) then
        values(place) = 0.5_dp
        return
      end if
    end do
    count = count + 1
    places(count) = row
    values(count) = 0.5_dp
  end subroutine sparse_row

  subroutine make_matrix
    integer, allocatable :: places(:, :)
    real(dp), allocatable :: values(:, :)
    integer :: count(na), begin(na + 1), used(na), i, j, k, m, e
    real(dp) :: size, ratio, value
    allocate (places(nonzer + 1, na), values(nonzer + 1, na))
    value = random()
    do i = 1, na
      call sparse_row(i, places(:, i), values(:, i), count(i))
    end do
    begin = 0
    do i = 1, na
      do k = 1, count(i)
        begin(places(k, i) + 1) = begin(places(k, i) + 1) + count(i)
      end do
    end do
    begin(1) = 1
    do i = 1, na
      begin(i + 1) = begin(i) + begin(i + 1)
    end do
    allocate (column(begin(na + 1)), element(begin(na + 1)))
    used = 0
    size = 1
    ratio = 0.1_dp**(1/real(na, dp))
    do i = 1, na
      do k = 1, count(i)
        j = places(k, i)
        do m = 1, count(i)
          value = values(m, i)*(size*values(k, i))
          if (places(m, i) == j .and. j == i) value = value + 0.1_dp - shift
          e = begin(j)
          do while (e < begin(j) + used(j))
            if (column(e) == places(m, i)) exit
            e = e + 1
          end do
          if (e == begin(j) + used(j)) then
            column(e) = places(m, i)
            element(e) = 0
            used(j) = used(j) + 1
          end if
          element(e) = element(e) + value
        end do
      end do
      size = size*ratio
    end do
    first(1) = 1 ! close the gaps
    do i = 1, na
      first(i + 1) = first(i) + used(i)
      column(first(i):first(i + 1) - 1) = column(begin(i):begin(i) + used(i) - 1)
      element(first(i):first(i + 1) - 1) = element(begin(i):begin(i) + used(i) - 1)
    end do
  end subroutine make_matrix
end module matrix

module solver
  use problem
  use matrix
  implicit none
!$xmp nodes nodes(*)
!$xmp template t(na)
!$xmp distribute t(block) onto nodes
  real(dp) :: x(na), z(na), p(na), q(na), r(na), whole(na)
!$xmp align (i) with t(i) :: x, z, p, q, r
contains
  real(dp) function dot(v, w)
    real(dp), intent(in) :: v(na), w(na)
!$xmp align (i) with t(i) :: v, w
    integer :: i
    real(dp) :: total
    total = 0
!$xmp loop on t(i) reduction(+: total)
!$acc parallel loop reduction(+: total)
    do i = 1, na
      total = total + v(i)*w(i)
    end do
    dot = total
  end function dot

  ! q = A p
  subroutine multiply
    integer :: i, e
    real(dp) :: total
!$acc update self(p)
!$xmp gmove
    whole(:) = p(:)
!$acc update device(whole)
!$xmp loop on t(i)
!$acc parallel loop private(total)
    do i = 1, na
      total = 0
      do e = first(i), first(i + 1) - 1
        total = total + element(e)*whole(column(e))
      end do
      q(i) = total
    end do
  end subroutine multiply

  ! z: an approximation of A**(-1) x
  subroutine solve
    integer :: i, step
    real(dp) :: rho, before, alpha, beta
!$xmp loop on t(i)
!$acc parallel loop
    do i = 1, na
      z(i) = 0
      p(i) = x(i)
      r(i) = x(i)
    end do
    rho = dot(r, r)
    do step = 1, steps
      call multiply
      alpha = rho/dot(p, q)
      before = rho
!$xmp loop on t(i)
!$acc parallel loop
      do i = 1, na
        z(i) = z(i) + alpha*p(i)
        r(i) = r(i) - alpha*q(i)
      end do
      rho = dot(r, r)
      beta = rho/before
!$xmp loop on t(i)
!$acc parallel loop
      do i = 1, na
        p(i) = r(i) + beta*p(i)
      end do
    end do
  end subroutine solve
end module solver

program cg
  use solver
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  integer :: i, k
  real(dp) :: zeta, scale, error
  integer(long) :: start, now, rate
  call make_matrix
  zeta = 0
!$acc data copyin(first, column, element) create(x, z, p, q, r, whole)
!$xmp loop on t(i)
!$acc parallel loop
  do i = 1, na
    x(i) = 1
  end do
  call system_clock(start, rate)
  do k = 1, iterations
    call solve
    zeta = shift + 1/dot(x, z)
    scale = 1/sqrt(dot(z, z))
!$xmp loop on t(i)
!$acc parallel loop
    do i = 1, na
      x(i) = scale*z(i)
    end do
  end do
  call system_clock(now)
!$acc end data
  error = abs(zeta - published)/published
!$xmp task on nodes(1)
  print '(a, f0.10, 2a)', 'zeta ', zeta, ', ', trim(merge('as published    ', 'not as published', error < 1d-10))
  write (error_unit, '(f0.3, a)') real(now - start, dp)/rate, ' s'
!$xmp end task
  if (.not. error < 1d-10) error stop 1
end program cg
